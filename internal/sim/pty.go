package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// A PTY is a pseudo-terminal whose far end a driver or another program opens
// like a serial port.
type PTY struct {
	Device *os.File // our end: what the simulated hardware reads and writes
	Name   string   // the port to open, /dev/pts/N
	tty    *os.File // kept open so that the device end survives a client's close
}

// OpenPTY makes a raw pseudo-terminal. Raw comes first: until then a pty echoes,
// and a device that talks early would read its own words.
func OpenPTY() (*PTY, error) {
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("open /dev/ptmx: %w", err)
	}
	dev := os.NewFile(uintptr(fd), "/dev/ptmx")
	fail := func(what string, err error) (*PTY, error) {
		dev.Close()
		return nil, fmt.Errorf("pty: %s: %w", what, err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return fail("unlock", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		return fail("number", err)
	}
	name := fmt.Sprintf("/dev/pts/%d", n)
	tfd, err := unix.Open(name, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail("open "+name, err)
	}
	t, err := unix.IoctlGetTermios(tfd, unix.TCGETS)
	if err == nil {
		t.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
		t.Oflag &^= unix.OPOST
		t.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
		t.Cflag = t.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
		err = unix.IoctlSetTermios(tfd, unix.TCSETS, t)
	}
	if err != nil {
		unix.Close(tfd)
		return fail("raw mode", err)
	}
	return &PTY{Device: dev, Name: name, tty: os.NewFile(uintptr(tfd), name)}, nil
}

// Close hangs up: whoever has the port open sees it vanish.
func (p *PTY) Close() error {
	p.tty.Close()
	return p.Device.Close()
}

const (
	// unplugAfter is how long after its first request a device with the unplug
	// fault vanishes, and unplugFor how long it stays away, in real time.
	unplugAfter = 5 * time.Second
	unplugFor   = 2 * time.Second
)

// Serve puts a device on a new pseudo-terminal and makes path a link to it, as
// udev does for an adapter, until ctx ends; then the link goes. It calls ready
// once the link is there. With unplug, the device vanishes five seconds after
// its first request and comes back two seconds later under another name, once.
//
// It refuses to replace anything at path that is not a link.
func Serve(ctx context.Context, dev Device, path string, unplug bool, ready func()) error {
	pty, err := OpenPTY()
	if err != nil {
		return err
	}
	for {
		if err := point(path, pty.Name); err != nil {
			pty.Close()
			return err
		}
		if ready != nil {
			ready()
			ready = nil
		}
		running, cancel := context.WithCancel(ctx)
		wire := io.ReadWriter(pty.Device)
		if unplug {
			wire = &firstRead{ReadWriter: wire, then: func() { time.AfterFunc(unplugAfter, cancel) }}
		}
		err = dev.Run(running, wire)
		cancel()
		// Only our own link: somebody may have taken the name over.
		if now, linkErr := os.Readlink(path); linkErr == nil && now == pty.Name {
			os.Remove(path)
		}
		if ctx.Err() != nil || !unplug {
			pty.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("the device on %s has ended: %w", path, errors.Join(err, io.ErrUnexpectedEOF))
		}
		// The next one is opened first: the kernel would give the freed number again,
		// and the device is to come back under another name.
		next, err := OpenPTY()
		pty.Close()
		if err != nil {
			return err
		}
		pty, unplug = next, false
		select {
		case <-ctx.Done():
			pty.Close()
			return nil
		case <-time.After(unplugFor):
		}
	}
}

// point makes path a link to name, in one step.
func point(path, name string) error {
	if fi, err := os.Lstat(path); err == nil && fi.Mode()&os.ModeSymlink == 0 {
		return fmt.Errorf("%s is there and is not a link: remove it or choose another name", path)
	}
	tmp := fmt.Sprintf("%s.%d", path, os.Getpid())
	if err := os.Symlink(name, tmp); err != nil {
		return fmt.Errorf("link to the simulated port: %w", err)
	}
	if err := os.Rename(tmp, path); err != nil {
		os.Remove(tmp)
		return fmt.Errorf("link to the simulated port: %w", err)
	}
	return nil
}

// A firstRead calls then at the first byte that is read.
type firstRead struct {
	io.ReadWriter
	then func()
}

func (r *firstRead) Read(p []byte) (int, error) {
	n, err := r.ReadWriter.Read(p)
	if n > 0 && r.then != nil {
		r.then()
		r.then = nil
	}
	return n, err
}
