package sim

import (
	"fmt"
	"os"

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
