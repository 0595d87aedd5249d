package mcp

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/peers"
)

// serverEnv makes this test binary a server on stdin and stdout, as a command
// of ours would be: for peers that start their server, and for what only a real
// process shows.
const serverEnv = "GSD_MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) == "" {
		os.Exit(m.Run())
	}
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	srv := station(Options{}, nil)
	go func() {
		for range time.Tick(50 * time.Millisecond) {
			srv.ResourceUpdated("station://health")
		}
	}()
	err := srv.Serve(ctx, os.Stdin, os.Stdout, SessionOptions{Caller: "operator"})
	fmt.Fprintln(os.Stderr, "served:", err)
}

// endsWithin is under the drain of 2 s: nothing is open that it would wait for.
const endsWithin = 1800 * time.Millisecond

// spawn starts the server as a process.
func spawn(t *testing.T) (cmd *exec.Cmd, in io.WriteCloser, out io.ReadCloser, stderr *strings.Builder) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), serverEnv+"=1", "GORACE=atexit_sleep_ms=0")
	stderr = &strings.Builder{}
	cmd.Stderr = stderr
	if in, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if out, err = cmd.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, in, out, stderr
}

// finished waits for the process and says how long that took.
func finished(t *testing.T, cmd *exec.Cmd) (time.Duration, error) {
	t.Helper()
	start, done := time.Now(), make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	select {
	case err := <-done:
		return time.Since(start), err
	case <-time.After(10 * time.Second):
		t.Fatal("the process does not end")
		return 0, nil
	}
}

func TestProcessEndsWithItsInput(t *testing.T) {
	cmd, in, out, stderr := spawn(t)
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"scan_noise","arguments":{"seconds":0.2},`+testMeta+"}}\n")
	in.Close()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(line, "done") {
		t.Errorf("the open call was answered with %q, %v", line, err)
	}
	if d, err := finished(t, cmd); err != nil || d > endsWithin {
		t.Errorf("the process ended after %v with %v: %s", d, err, stderr)
	}
}

func TestProcessEndsOnTermination(t *testing.T) {
	cmd, in, out, stderr := spawn(t)
	defer in.Close()
	io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+testMeta+"}}\n")
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	if d, err := finished(t, cmd); err != nil || d > endsWithin || !strings.Contains(stderr.String(), "served: <nil>") {
		t.Errorf("SIGTERM ended the idle process after %v with %v: %s", d, err, stderr)
	}
}

// Without care the first write to a dead client ends a Go process by signal and
// what should follow, the safe stop, never runs.
func TestProcessOutlivesItsReader(t *testing.T) {
	cmd, in, out, stderr := spawn(t)
	defer in.Close()
	out.Close()
	for range 3 {
		io.WriteString(in, `{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{`+testMeta+"}}\n")
	}
	d, err := finished(t, cmd)
	var exit *exec.ExitError
	if errors.As(err, &exit) || d > endsWithin || !strings.Contains(stderr.String(), "served: write to the client") {
		t.Errorf("the process ended after %v with %v and said %q; want the code after Serve to have run", d, err, stderr)
	}
}

func TestTypeScriptClients(t *testing.T) {
	node := peers.Need(t, "node", "nodejs")
	dir := os.Getenv("GSD_TS_CLIENTS")
	if dir == "" {
		peers.Missing(t, "the directory GSD_TS_CLIENTS", "npm: @modelcontextprotocol/sdk@1 and @modelcontextprotocol/client@2")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	work := t.TempDir()
	if err := os.Symlink(filepath.Join(dir, "node_modules"), filepath.Join(work, "node_modules")); err != nil {
		t.Fatal(err)
	}
	for _, run := range [][]string{{"sdk1.mjs"}, {"sdk2.mjs", "default"}, {"sdk2.mjs", "auto"}, {"sdk2.mjs", "modern"}} {
		t.Run(strings.Join(run, " "), func(t *testing.T) {
			src, err := os.ReadFile(filepath.Join("testdata/ts", run[0]))
			if err != nil {
				t.Fatal(err)
			}
			script := filepath.Join(work, run[0])
			if err := os.WriteFile(script, src, 0o644); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, node, append(append([]string{script}, run[1:]...), self)...)
			cmd.Env = append(os.Environ(), serverEnv+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %v\n%s", run, err, out)
			}
		})
	}
}
