// Package serialport is the one place that opens a tty. It gives a driver a
// wire with deadlines both ways, tells an unplugged adapter from our own Close,
// and always closes. It must never list or probe ports that nobody asked for:
// opening a port moves its modem lines and can reset what hangs on it.
//
// go.bug.st/serial only configures the line. Its reads and writes have traps
// that cannot be worked round from outside: a write after Close goes to
// whatever file got the number, a blocked write cannot be cancelled, and
// descriptors over 1023 panic. So this package holds a descriptor of its own
// on the same tty, non-blocking and close-on-exec, and does all input and
// output through the runtime's poller; the library's handle is closed as soon
// as the line is set up. Settings belong to the tty and stay while any
// descriptor is open.
package serialport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.bug.st/serial"
	"golang.org/x/sys/unix"
)

// Errors to ask for with errors.Is.
var (
	// ErrUnplugged: the device went away while we had it open.
	ErrUnplugged = errors.New("the device is gone")
	// ErrMissing: there is no such port.
	ErrMissing = errors.New("no such port")
	// ErrBusy: another program has the port.
	ErrBusy = errors.New("the port is in use by another program")
	// ErrIdentity: the port's name now leads to another kind of adapter.
	ErrIdentity = errors.New("the adapter behind the name has changed")
)

const (
	// drainBound is how long Close waits for bytes that are still going out:
	// a stop of 13 bytes takes 217 ms at 600 baud.
	drainBound = time.Second
	// closeBound is how long Close waits for the kernel. A UART that does not
	// drain holds close(2) for 30 s (closing_wait).
	closeBound = 2 * time.Second
	// stallMargin is how far behind its line rate an output queue may fall
	// before it counts as stalled. USB adapters add tens of milliseconds.
	stallMargin = 250 * time.Millisecond
)

// Config says which port and how.
type Config struct {
	Path   string        // a tty, or a link to one such as /dev/serial/by-id/...; or tcp://host:port of a device server
	Baud   int           // one of Bauds; nothing for tcp
	Stop2  bool          // two stop bits instead of one; always 8 data bits, no parity, no handshake
	HangUp bool          // drop DTR and RTS at the last close: where a line keys a transmitter. Otherwise a restart makes no edge, which spares boards that reset on one.
	Settle time.Duration // after opening: read and drop what a board that has just been reset says

	Identity string // USB vendor:product the adapter must have, 1a86:7523; "" = any
	Sysfs    string // where to read it; "" = /sys
}

// Bauds are the line rates that may be configured: standard ones, because the
// library takes any number (-5 becomes 4294967291).
func Bauds() []int {
	return []int{300, 600, 1200, 2400, 4800, 9600, 19200, 38400, 57600, 115200, 230400, 460800, 921600}
}

// Validate reports what is wrong with the settings, without touching the port.
func (c Config) Validate() error {
	if c.Path == "" {
		return errors.New("no port given: set port to a name in /dev/serial/by-id")
	}
	if _, ok := tcpAddress(c.Path); ok {
		return nil
	}
	if !slices.Contains(Bauds(), c.Baud) {
		return fmt.Errorf("port %s: baud %d is not one of %v", show(c.Path), c.Baud, Bauds())
	}
	return nil
}

// A Port is an open serial port. One goroutine at a time may write, and one read
// or discard; Close and Stats are for any.
type Port struct {
	path     string
	identity string
	perByte  time.Duration
	f        wire
	tty      bool // false: a TCP connection
	c        counters
	closed   atomic.Bool
	closeErr chan error

	cut     bool      // the last write was cut off
	drained time.Time // when everything written so far should have gone out
}

// Open opens and sets up a port: raw, 8 bits, no parity, no handshake. It
// refuses a port that another program has locked (flock, or TIOCEXCL). It does
// not wait longer than ctx allows.
func Open(ctx context.Context, cfg Config) (*Port, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	type result struct {
		p   *Port
		err error
	}
	opened := make(chan result, 1)
	go func() { // open(2) of a sick adapter can hang
		p, err := open(ctx, cfg)
		opened <- result{p, err}
	}()
	var p *Port
	select {
	case r := <-opened:
		if r.err != nil {
			return nil, r.err
		}
		p = r.p
	case <-ctx.Done():
		go func() {
			if r := <-opened; r.p != nil {
				r.p.Close()
			}
		}()
		return nil, fmt.Errorf("open port %s: %w", show(cfg.Path), ctx.Err())
	}
	if cfg.Settle > 0 {
		if err := p.settle(ctx, cfg.Settle); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// A wire is what a Port needs of a file or a connection.
type wire interface {
	io.ReadWriteCloser
	syscall.Conn
	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
}

func open(ctx context.Context, cfg Config) (*Port, error) {
	if address, ok := tcpAddress(cfg.Path); ok {
		return openTCP(ctx, cfg, address)
	}
	real, err := filepath.EvalSymlinks(cfg.Path)
	if err != nil {
		return nil, openError(cfg.Path, err)
	}
	id := usbIdentity(cfg.Sysfs, real)
	if cfg.Identity != "" && id != cfg.Identity {
		if id == "" {
			id = "no USB identity"
		}
		return nil, fmt.Errorf("port %s: %w: it has %s, configured is %s; plug the right adapter in, or change the port or its identity in the configuration",
			show(cfg.Path), ErrIdentity, id, cfg.Identity)
	}
	fd, err := unix.Open(real, unix.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, openError(cfg.Path, err)
	}
	// The lock comes before anything that the program which has the port would
	// notice. It also makes TIOCEXCL's hole for root harmless among programs
	// that use flock.
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		return nil, openError(cfg.Path, err)
	}
	if err := configure(fd, real, cfg); err != nil {
		unix.Close(fd)
		return nil, openError(cfg.Path, err)
	}
	f := os.NewFile(uintptr(fd), cfg.Path)
	if err := f.SetDeadline(time.Time{}); err != nil {
		f.Close()
		return nil, fmt.Errorf("port %s: no deadlines on this descriptor, so a stuck device could not be stopped: %w", show(cfg.Path), err)
	}
	bits := 10
	if cfg.Stop2 {
		bits = 11
	}
	return &Port{
		path: cfg.Path, identity: id, f: f, tty: true,
		perByte:  time.Duration(bits) * time.Second / time.Duration(cfg.Baud),
		closeErr: make(chan error, 1),
	}, nil
}

// configure sets the line up through the library and then everything the
// library does not do.
func configure(fd int, real string, cfg Config) error {
	mode := &serial.Mode{BaudRate: cfg.Baud, DataBits: 8, Parity: serial.NoParity, StopBits: serial.OneStopBit}
	if cfg.Stop2 {
		mode.StopBits = serial.TwoStopBits
	}
	// The library opens without close-on-exec: no child may start meanwhile.
	syscall.ForkLock.RLock()
	lib, err := serial.Open(real, mode)
	if err == nil {
		err = lib.Close() // ours is open, so this is not the last close
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return err
	}
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return fmt.Errorf("read line settings: %w", err)
	}
	t.Cflag &^= unix.HUPCL
	if cfg.HangUp {
		t.Cflag |= unix.HUPCL
	}
	if err := unix.IoctlSetTermios(fd, unix.TCSETS, t); err != nil {
		return fmt.Errorf("set line settings: %w", err)
	}
	// A pty keeps the flag while its far end lives, so a simulated station that
	// was killed could not open its port again.
	if !isPTS(real) {
		if err := unix.IoctlSetInt(fd, unix.TIOCEXCL, 0); err != nil {
			return fmt.Errorf("set exclusive use: %w", err)
		}
	}
	if err := unix.IoctlSetInt(fd, unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return fmt.Errorf("drop old input: %w", err)
	}
	return nil
}

// openError says what is wrong with a port and what to do.
func openError(path string, err error) error {
	p := show(path)
	var pe *serial.PortError
	code := serial.PortErrorCode(-1)
	if errors.As(err, &pe) {
		code = pe.Code()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("port %s: %w; check cable and power, then look at: ls -l /dev/serial/by-id", p, ErrMissing)
	case errors.Is(err, unix.EBUSY), errors.Is(err, unix.EWOULDBLOCK), code == serial.PortBusy:
		return fmt.Errorf("port %s: %w; find it with: fuser -v %s", p, ErrBusy, p)
	case errors.Is(err, fs.ErrPermission), code == serial.PermissionDenied:
		return fmt.Errorf("port %s: no permission; put the station's user into the group of the device (usually dialout): %w", p, err)
	case errors.Is(err, unix.ENOTTY), errors.Is(err, unix.EISDIR), errors.Is(err, unix.EINVAL), code == serial.InvalidSerialPort:
		return fmt.Errorf("port %s is not a serial port (%w); give a tty such as one in /dev/serial/by-id", p, err)
	}
	return fmt.Errorf("open port %s: %w", p, err)
}

// Path is the name that the port was opened by.
func (p *Port) Path() string { return p.path }

// Identity is the adapter's USB vendor:product, such as 1a86:7523, or "" where
// the system does not say (a UART on the board, a pty).
func (p *Port) Identity() string { return p.identity }

// Write sends b whole in one write call. If it is cut off, by ctx or by a
// device that takes no more, the error says how much went out, and the next
// Write first throws away what is still queued: an old half command must not
// be completed by a new one. A queue that has fallen far behind its line rate
// is thrown away likewise, so that a stop does not stand behind it.
func (p *Port) Write(ctx context.Context, b []byte) error {
	p.unstall()
	n, err := p.bounded(ctx, p.f.SetWriteDeadline, p.f.Write, b)
	p.c.bytesOut.Add(uint64(n))
	now := time.Now()
	if p.drained.Before(now) {
		p.drained = now
	}
	p.drained = p.drained.Add(time.Duration(n) * p.perByte)
	p.cut = err != nil && n < len(b)
	p.c.wrote(now)
	if err != nil {
		return fmt.Errorf("port %s: write: %d of %d bytes sent: %w", show(p.path), n, len(b), err)
	}
	return nil
}

// Read returns at least one byte, or an error.
func (p *Port) Read(ctx context.Context, b []byte) (int, error) {
	if len(b) == 0 {
		return 0, fmt.Errorf("port %s: read into nothing", show(p.path))
	}
	n, err := p.bounded(ctx, p.f.SetReadDeadline, p.f.Read, b)
	if n > 0 {
		p.c.bytesIn.Add(uint64(n))
		p.c.heard(time.Now())
		return n, nil
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		p.c.timeouts.Add(1)
	}
	return 0, fmt.Errorf("port %s: read: %w", show(p.path), err)
}

// bounded runs one read or write that ends when ctx does.
func (p *Port) bounded(ctx context.Context, setDeadline func(time.Time) error, do func([]byte) (int, error), b []byte) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, asTimeout(err)
	}
	if err := setDeadline(time.Time{}); err != nil {
		return 0, p.wireError(err)
	}
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		setDeadline(time.Unix(1, 0)) // in the past: ends the call at once
		close(ended)
	})
	n, err := do(b)
	if !stop() {
		<-ended // else it could cut the next call short
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, asTimeout(ctx.Err())
	}
	if err != nil {
		return n, p.wireError(err)
	}
	return n, nil
}

// A timeoutError is both kinds of "time is up", so that callers may ask for
// either.
type timeoutError struct{ error }

func (timeoutError) Unwrap() []error {
	return []error{context.DeadlineExceeded, os.ErrDeadlineExceeded}
}

func asTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{err}
	}
	return err
}

// wireError tells an unplugged device from our own Close.
func (p *Port) wireError(err error) error {
	switch {
	case p.closed.Load(), errors.Is(err, os.ErrClosed):
		return os.ErrClosed
	// A hung-up tty reads as end of file or EIO; USB adapters add ENXIO, ENODEV;
	// the rest is TCP.
	case err == io.EOF, errors.Is(err, unix.EIO), errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV),
		errors.Is(err, unix.ECONNRESET), errors.Is(err, unix.EPIPE), errors.Is(err, unix.ETIMEDOUT):
		return fmt.Errorf("%w (%w)", ErrUnplugged, err)
	}
	return err
}

// Discard drops what has been received and not yet read.
func (p *Port) Discard() error {
	if !p.tty {
		return p.discardTCP()
	}
	if err := p.ioctl(unix.TCFLSH, unix.TCIFLUSH); err != nil {
		return fmt.Errorf("port %s: drop input: %w", show(p.path), err)
	}
	p.c.quiet()
	return nil
}

// unstall throws the output queue away if the last write was cut off or the
// queue has not gone out in the time that its line rate allows.
func (p *Port) unstall() {
	if !p.tty { // TCP cannot take bytes back; an owner who stops closes it
		return
	}
	late := time.Since(p.drained) > stallMargin
	if p.cut || late && p.queued() > 0 {
		if p.ioctl(unix.TCFLSH, unix.TCOFLUSH) == nil {
			p.c.flushes.Add(1)
			p.drained = time.Now()
		}
		p.cut = false
	}
}

// queued is how many bytes the kernel still has to send.
func (p *Port) queued() int {
	var n int
	p.control(func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.TIOCOUTQ)
		return err
	})
	return n
}

func (p *Port) ioctl(request uint, value int) error {
	return p.control(func(fd int) error { return unix.IoctlSetInt(fd, request, value) })
}

// control runs do on the descriptor, which stays valid meanwhile.
func (p *Port) control(do func(fd int) error) error {
	rc, err := p.f.SyscallConn()
	if err != nil {
		return p.wireError(err)
	}
	var doErr error
	if err := rc.Control(func(fd uintptr) { doErr = do(int(fd)) }); err != nil {
		return p.wireError(err)
	}
	if doErr != nil {
		return p.wireError(doErr)
	}
	return nil
}

// settle listens for d and drops what comes: the banner of a board that opening
// has reset.
func (p *Port) settle(ctx context.Context, d time.Duration) error {
	wait, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	buf := make([]byte, 256)
	for {
		if _, err := p.Read(wait, buf); err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				p.c.quiet()
				return nil
			}
			return fmt.Errorf("wait for the device to settle: %w", err)
		}
	}
}

// Close lets what was written go out, for at most a second, and closes. It
// wakes a Read or Write that is waiting. It always returns; an error says that
// the kernel has not let go of the port yet.
func (p *Port) Close() error {
	if p.closed.Swap(true) {
		return nil
	}
	for deadline := time.Now().Add(drainBound); p.tty && p.queued() > 0; {
		if time.Now().After(deadline) {
			p.ioctl(unix.TCFLSH, unix.TCOFLUSH)
			break
		}
		<-time.After(5 * time.Millisecond)
	}
	if p.tty {
		p.ioctl(unix.TIOCNXCL, 0) // for whoever still has the tty open
	}
	go func() { p.closeErr <- p.f.Close() }()
	select {
	case err := <-p.closeErr:
		if err != nil && !errors.Is(err, unix.EIO) { // EIO: it was unplugged
			return fmt.Errorf("close port %s: %w", show(p.path), err)
		}
		return nil
	case <-time.After(closeBound):
		return fmt.Errorf("close port %s: the kernel has not let go after %v; the device does not take its last bytes", show(p.path), closeBound)
	}
}

// IsPTY reports whether a port is a pseudo-terminal, so a simulated device:
// what the name leads to is in /dev/pts. A name that leads nowhere is not.
func IsPTY(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	return err == nil && isPTS(real)
}

func isPTS(real string) bool {
	n, ok := strings.CutPrefix(real, "/dev/pts/")
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}
