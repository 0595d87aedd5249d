package door

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// maxPath is what sun_path of sockaddr_un(7) holds, without the final zero.
const maxPath = 107

// firstFD is SD_LISTEN_FDS_START of sd_listen_fds(3).
const firstFD = 3

// Listen opens the station's socket. Everyone may knock (mode 0666): the role
// decides what comes of it. A missing directory is made, and a socket that a
// dead daemon left behind is replaced, but not one that still answers. Closing
// the listener removes the socket. Call it only with the lock of the state
// directory held, so that two daemons cannot both find the socket dead.
func Listen(path string) (*net.UnixListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("socket path %s has %d bytes; the kernel takes at most %d: choose a shorter one (--socket or GSD_SOCKET)", path, len(path), maxPath)
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return nil, fmt.Errorf("make the directory of the socket: %w", err)
		}
		if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask: the unit's is 0077
			return nil, fmt.Errorf("open the directory of the socket to others: %w", err)
		}
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on the station's socket: %w", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		l.Close()
		return nil, fmt.Errorf("open the socket to others: %w", err)
	}
	return l, nil
}

// removeStale removes a socket at path on which nobody listens any more.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("look at the socket's path: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is not a socket: move it away or choose another path (--socket or GSD_SOCKET)", path)
	}
	c, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		c.Close()
		return fmt.Errorf("another process answers on %s: only one station may use the hardware; stop that one first (systemctl stop gsd-mcp)", path)
	}
	// EAGAIN is a full backlog: somebody listens, however slowly.
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("is the socket %s in use: %w", path, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the socket of a daemon that is gone: %w", err)
	}
	return nil
}

// Activated returns the socket that systemd holds for the daemon
// (sd_listen_fds(3)), or nil when the process was not started by a socket.
// Call it once, before anything is executed: the variables are removed, so
// that no child takes them for its own.
func Activated() (*net.UnixListener, error) {
	pid, count := os.Getenv("LISTEN_PID"), os.Getenv("LISTEN_FDS")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	return activated(pid, count, os.Getpid(), firstFD)
}

func activated(pid, count string, self, fd int) (*net.UnixListener, error) {
	if pid != strconv.Itoa(self) {
		return nil, nil // nothing, or meant for another process
	}
	n, err := strconv.Atoi(count)
	if err != nil || n < 1 {
		return nil, nil
	}
	if n > 1 {
		return nil, fmt.Errorf("systemd passed %d sockets, want one: keep a single ListenStream in gsd-mcp.socket", n)
	}
	syscall.CloseOnExec(fd)
	f := os.NewFile(uintptr(fd), "LISTEN_FD_"+strconv.Itoa(fd))
	l, err := net.FileListener(f) // a duplicate
	f.Close()
	if err != nil {
		return nil, fmt.Errorf("take over the socket from systemd: %w", err)
	}
	unix, ok := l.(*net.UnixListener)
	if !ok || l.Addr().Network() != "unix" { // unixpacket is a UnixListener too
		l.Close()
		return nil, fmt.Errorf("systemd passed a %s socket, want a Unix stream socket: ListenStream in gsd-mcp.socket must be a path", l.Addr().Network())
	}
	unix.SetUnlinkOnClose(false) // it is systemd's
	return unix, nil
}
