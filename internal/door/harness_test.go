package door

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
)

// patience is how long a test waits for what must happen: two shared cores.
const patience = 10 * time.Second

// eventually polls until ok, or fails with what was waited for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v still not: %s", patience, what)
		}
	}
}

func dup(t *testing.T, f *os.File) int {
	t.Helper()
	fd, err := syscall.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// A house is a daemon's door with a small station behind it.
type house struct {
	socket string
	door   *Door
	server *mcp.Server
	slow   chan struct{} // slow_tool answers when this is closed
	stop   func()        // as SIGTERM; waits

	mu      sync.Mutex
	notices []Notice
	ran     []string // private methods and moves that were run
}

func (h *house) note(n Notice) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.notices = append(h.notices, n)
}

func (h *house) saw(kind NoticeKind) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := 0
	for _, x := range h.notices {
		if x.Kind == kind {
			n++
		}
	}
	return n
}

func (h *house) run(what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ran = append(h.ran, what)
}

func (h *house) did() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.ran, " ")
}

// kill ends the daemon as SIGKILL does: nobody gets an answer.
func (h *house) kill() {
	os.Remove(h.socket) // first, so that nobody comes back to this one
	for _, s := range h.door.Sessions() {
		s.conn.Close()
	}
	h.stop()
}

const noArguments = `{"type":"object","additionalProperties":false,"properties":{}}`

func role(caller any) station.Role { return caller.(station.Caller).Role }

// open starts a house on a socket; policy nil: this test's uid is a supervisor.
func open(t *testing.T, socket string, policy *Policy, versions ...string) *house {
	t.Helper()
	if policy == nil {
		policy = mustPolicy(t, Access{Supervisor: []string{fmt.Sprintf("uid:%d", os.Getuid())}})
	}
	if versions == nil {
		versions = mcp.Versions()
	}
	h := &house{socket: socket, slow: make(chan struct{})}
	h.server = mcp.New(mcp.Options{Info: mcp.Info{Name: "gsd-mcp", Version: "test"}, Versions: versions})
	h.server.AddTool(mcp.Tool{Name: "get_thing", InputSchema: json.RawMessage(noArguments),
		Visible: func(c any) bool { return role(c) >= station.Observer },
		Handle: func(_ context.Context, c *mcp.Call) (*mcp.Result, error) {
			return &mcp.Result{Text: "the thing, for " + role(c.Caller).String(), Structured: map[string]any{"thing": 1}}, nil
		}})
	h.server.AddTool(mcp.Tool{Name: "slow_thing", InputSchema: json.RawMessage(noArguments),
		Handle: func(ctx context.Context, _ *mcp.Call) (*mcp.Result, error) {
			h.run("slow")
			select {
			case <-h.slow:
				return &mcp.Result{Text: "at last"}, nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}})
	h.server.AddTool(mcp.Tool{Name: "move_thing", InputSchema: json.RawMessage(noArguments),
		Visible: func(c any) bool { return role(c) >= station.Operator },
		Handle: func(context.Context, *mcp.Call) (*mcp.Result, error) {
			h.run("moved")
			return refused(safety.Refuse(safety.Sun, "wait an hour", "the sun is %.1f° away", 2.0)), nil
		}})
	h.server.AddResource(mcp.Resource{URI: "station://thing", Name: "thing", MIMEType: "application/json",
		Read: func(context.Context, any) (string, error) { return `{"thing":1}`, nil }})
	private := func(name string, min station.Role, person bool) Private {
		return Private{name, min, person, func(_ context.Context, c station.Caller, params json.RawMessage) (any, error) {
			h.run(name)
			var p struct {
				Fail string `json:"fail"`
			}
			d := json.NewDecoder(bytes.NewReader(params))
			d.DisallowUnknownFields()
			if err := d.Decode(&p); err != nil {
				return nil, &ParamsError{err.Error()}
			}
			if p.Fail != "" {
				return nil, safety.Refuse(safety.EStop, "reset it", "%s", p.Fail)
			}
			return map[string]any{"by": c.UID, "session": c.Session, "client": c.Client}, nil
		}}
	}
	privates, err := NewPrivates(private("gsd/resume", station.Operator, true), private("gsd/approve", station.Supervisor, true),
		private("gsd/estop", station.Observer, true), private("gsd/audit", station.Observer, false))
	if err != nil {
		t.Fatal(err)
	}
	h.door = New(Options{Policy: policy, Server: h.server, Privates: privates, Build: "build-1", Observe: h.note})
	l, err := Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- h.door.Serve(ctx, l) }()
	h.stop = sync.OnceFunc(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("the door ended with: %v", err)
			}
		case <-time.After(patience):
			t.Error("the door does not end")
		}
	})
	t.Cleanup(h.stop)
	return h
}

func mustPolicy(t *testing.T, a Access) *Policy {
	t.Helper()
	p, err := NewPolicy(a)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func socketPath(t *testing.T) string { return filepath.Join(t.TempDir(), "gsd.sock") }

// A wire is one end of a line stream, with a deadline on every read.
type wire struct {
	t *testing.T
	w io.WriteCloser
	// lines is closed at the end of the stream.
	lines chan string
}

func newWire(t *testing.T, w io.WriteCloser, r io.Reader) *wire {
	x := &wire{t, w, make(chan string, 1000)}
	go func() {
		defer close(x.lines)
		in := bufio.NewReaderSize(r, 64<<10)
		for {
			line, err := in.ReadString('\n')
			if line != "" {
				x.lines <- strings.TrimSuffix(line, "\n")
			}
			if err != nil {
				return
			}
		}
	}()
	return x
}

func dialWire(t *testing.T, socket string) *wire {
	t.Helper()
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return newWire(t, c, c)
}

func (x *wire) send(lines ...string) {
	x.t.Helper()
	if _, err := io.WriteString(x.w, strings.Join(lines, "\n")+"\n"); err != nil {
		x.t.Fatalf("write %s: %v", lines, err)
	}
}

// next is the next line, "" at the end.
func (x *wire) next() string {
	x.t.Helper()
	select {
	case line := <-x.lines:
		return line
	case <-time.After(patience):
		x.t.Fatal("no line came")
		return ""
	}
}

func (x *wire) want(parts ...string) string {
	x.t.Helper()
	line := x.next()
	for _, p := range parts {
		if !strings.Contains(line, p) {
			x.t.Fatalf("got the line %s\nwant %q in it", line, p)
		}
	}
	return line
}

// wantAll reads one line for each pattern, in any order.
func (x *wire) wantAll(patterns ...string) {
	x.t.Helper()
	var lines []string
	for range patterns {
		lines = append(lines, x.next())
	}
	for _, p := range patterns {
		re := regexp.MustCompile(p)
		if !slices.ContainsFunc(lines, re.MatchString) {
			x.t.Errorf("no line matches %s in\n%s", p, strings.Join(lines, "\n"))
		}
	}
}

// ends checks that nothing more comes.
func (x *wire) ends() {
	x.t.Helper()
	if line := x.next(); line != "" {
		x.t.Fatalf("got the line %s\nwant the end", line)
	}
}

const (
	initializeLine  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	initializedLine = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func callLine(id int, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":{}}}`, id, tool)
}

func privateLine(id int, method string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{}}`, id, method)
}

// greet does the handshake.
func (x *wire) greet() {
	x.t.Helper()
	x.send(initializeLine)
	x.want(`"id":"init"`, `"result"`)
	x.send(initializedLine)
}
