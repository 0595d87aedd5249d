package serialport

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// tcpAddress is host:port of a path that names a device server, such as
// Hamlib's rotctld or a controller with a network port.
func tcpAddress(path string) (address string, ok bool) {
	return strings.CutPrefix(path, "tcp://")
}

// openTCP connects. Keep-alive probes find a host that has vanished within 15 s
// also when nothing is sent.
func openTCP(ctx context.Context, cfg Config, address string) (*Port, error) {
	d := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 2}}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		if errors.Is(err, unix.ECONNREFUSED) || errors.Is(err, unix.EHOSTUNREACH) || errors.Is(err, unix.ENETUNREACH) {
			err = fmt.Errorf("%w (%w); is the server running, and is this its address", ErrMissing, err)
		}
		return nil, fmt.Errorf("port %s: %w", show(cfg.Path), err)
	}
	return &Port{path: cfg.Path, f: conn.(*net.TCPConn), closeErr: make(chan error, 1)}, nil
}

// discardTCP reads what is there without waiting.
func (p *Port) discardTCP() error {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return p.wireError(err)
	}
	p.f.SetReadDeadline(time.Time{})
	var buf [1024]byte
	var readErr error
	err = rc.Read(func(fd uintptr) bool {
		for {
			n, err := unix.Read(int(fd), buf[:])
			switch {
			case err == unix.EAGAIN:
				return true
			case err == unix.EINTR:
			case err != nil:
				readErr = err
				return true
			case n == 0:
				readErr = unix.ECONNRESET
				return true
			}
		}
	})
	if err == nil {
		err = readErr
	}
	if err != nil {
		return fmt.Errorf("port %s: drop input: %w", show(p.path), p.wireError(err))
	}
	p.c.quiet()
	return nil
}
