package door

import (
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestListenOpensTheDoorToEveryone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "gsd.sock")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o666, filepath.Dir(path): 0o755} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", name, got, want)
		}
	}
	l.Close()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("after Close the socket is still there: %v", err)
	}
}

func TestListenReplacesOnlyADeadSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gsd.sock")
	first, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another process answers") {
		t.Fatalf("a second Listen beside a living one: %v", err)
	}
	first.SetUnlinkOnClose(false) // as after SIGKILL
	first.Close()
	second, err := Listen(path)
	if err != nil {
		t.Fatalf("Listen over a dead socket: %v", err)
	}
	second.Close()
}

func TestListenLeavesOtherFilesAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gsd.sock")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "not a socket") {
		t.Errorf("Listen over a file: %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("the file now holds %q", b)
	}
	if _, err := Listen("/tmp/" + strings.Repeat("x", 120)); err == nil || !strings.Contains(err.Error(), "at most 107") {
		t.Errorf("Listen on a path that is too long: %v", err)
	}
}

func TestSocketActivation(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gsd.sock")
	held, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	self := os.Getpid()
	pass := func(f func() (*os.File, error)) int { // activated closes what it is given
		file, err := f()
		if err != nil {
			t.Fatal(err)
		}
		fd := dup(t, file)
		file.Close()
		return fd
	}
	l, err := activated(strconv.Itoa(self), "1", self, pass(held.File))
	if err != nil || l == nil {
		t.Fatalf("activated = %v, %v", l, err)
	}
	go func() {
		if c, err := net.Dial("unix", path); err == nil {
			c.Close()
		}
	}()
	c, err := l.AcceptUnix()
	if err != nil {
		t.Fatalf("accept on the passed socket: %v", err)
	}
	c.Close()
	l.Close()
	if _, err := os.Stat(path); err != nil {
		t.Errorf("the daemon removed systemd's socket: %v", err)
	}

	if l, err := activated(strconv.Itoa(self+1), "1", self, -1); l != nil || err != nil {
		t.Errorf("a socket for another process: %v, %v", l, err)
	}
	if l, err := activated("", "", self, -1); l != nil || err != nil {
		t.Errorf("without activation: %v, %v", l, err)
	}
	if _, err := activated(strconv.Itoa(self), "2", self, -1); err == nil || !strings.Contains(err.Error(), "2 sockets") {
		t.Errorf("two sockets: %v", err)
	}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcp.Close()
	if _, err := activated(strconv.Itoa(self), "1", self, pass(tcp.(*net.TCPListener).File)); err == nil || !strings.Contains(err.Error(), "Unix stream socket") {
		t.Errorf("a TCP socket: %v", err)
	}
}
