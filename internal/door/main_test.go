package door

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// TestMain lets the test binary play a process of another user.
func TestMain(m *testing.M) {
	switch os.Getenv("GSD_DOOR_CHILD") {
	case "":
		os.Exit(m.Run())
	case "raw": // a program that speaks to the socket itself
		c, err := net.Dial("unix", os.Getenv("GSD_SOCKET"))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		go func() {
			io.Copy(c, os.Stdin)
			c.(*net.UnixConn).CloseWrite()
		}()
		io.Copy(os.Stdout, c)
	case "bridge":
		err := Bridge(context.Background(), os.Stdin, os.Stdout, BridgeOptions{Socket: os.Getenv("GSD_SOCKET"), Build: "build-1", Role: os.Getenv("GSD_ROLE")})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// openDir is a directory that every uid may enter, which t.TempDir is not.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "gsd-door-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to start a process as another uid")
	}
}

// as starts this test binary as another user in the given way.
func as(t *testing.T, dir, mode, socket string, cred *syscall.Credential, env ...string) *wire {
	t.Helper()
	needRoot(t)
	self := filepath.Join(dir, "door.test")
	if _, err := os.Stat(self); err != nil {
		b, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(self, b, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(self, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(self)
	cmd.Dir = "/"
	cmd.Env = append([]string{"GSD_DOOR_CHILD=" + mode, "GSD_SOCKET=" + socket}, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: cred}
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start as %+v: %v", cred, err)
	}
	t.Cleanup(func() {
		in.Close()
		cmd.Process.Kill()
		cmd.Wait()
		if stderr.Len() > 0 {
			t.Logf("the process of uid %d said: %s", cred.Uid, stderr.String())
		}
	})
	return newWire(t, in, out)
}
