package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// soon is how long a test waits for what must happen on two busy cores.
const soon = 20 * time.Second

// A post is a daemon under test, and the commands that ask it.
type post struct {
	t      *testing.T
	dir    string
	socket string
	args   []string // of serve
	*process
}

// mannedBy is [access] with one role for whoever runs the test.
func mannedBy(role string) string {
	return fmt.Sprintf("[access]\n%s = [\"uid:%d\"]\n", role, os.Getuid())
}

// onSimulators is a station whose devices are simulated inside of the daemon.
const onSimulators = `version = 1
[station]
id = "gs-02"
name = "Post under test"
latitude_deg = 51.5074
longitude_deg = -0.1278
[rotator]
driver = "easycomm2"
port = "sim"
absolute_azimuth = true
min_interval_ms = 0
[rotator.limits]
azimuth_max_deg = 450.0
elevation_max_deg = 180.0
azimuth_speed_dps = 6.0
elevation_speed_dps = 3.0
acceleration_dps2 = 6.0
[simulation]
rate = 10
`

// onPort is a station with a rotator at a port, in real time.
func onPort(port string) string {
	return strings.NewReplacer(`"sim"`, fmt.Sprintf("%q", port), "[simulation]\nrate = 10\n", "").Replace(onSimulators)
}

// newPost prepares a daemon with a configuration, "" for `serve --sim`.
func newPost(t *testing.T, config string) *post {
	t.Helper()
	p := &post{t: t, dir: t.TempDir()}
	p.socket = filepath.Join(p.dir, "sock")
	p.args = []string{"serve", "--state-dir", filepath.Join(p.dir, "state"), "--socket", p.socket}
	if config == "" {
		p.args = append(p.args, "--sim", "--sim-rate", "10")
	} else {
		p.args = append(p.args, "--config", p.file("station.toml", config))
	}
	return p
}

// with is the same post for a subtest.
func (p *post) with(t *testing.T) *post {
	q := *p
	q.t = t
	return &q
}

// file writes a file of the test and returns its path.
func (p *post) file(name, text string) string {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// serve starts the daemon and waits until it listens.
func (p *post) serve() *post {
	p.t.Helper()
	p.process = start(p.t, p.args...)
	p.listens()
	return p
}

func (p *post) listens() {
	p.t.Helper()
	var err error
	for deadline := time.Now().Add(soon); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) { // a look at another process
		var c net.Conn
		if c, err = net.Dial("unix", p.socket); err == nil {
			c.Close()
			return
		}
	}
	p.t.Fatalf("the daemon does not listen: %v\n%s", err, p.log)
}

// up checks that the daemon still runs and answers.
func (p *post) up() {
	p.t.Helper()
	if _, _, code := p.cli("tools", "--json"); code != exitDone {
		p.t.Fatalf("the daemon does not answer any more (exit code %d):\n%s", code, p.log)
	}
}

// cli runs a client command against the daemon.
func (p *post) cli(args ...string) (stdout, stderr string, code int) {
	p.t.Helper()
	return command(p.t, append(args, "--socket", p.socket)...)
}

// asks runs a client command with --json that must end with a code, and decodes
// its one document.
func (p *post) asks(to any, code int, args ...string) {
	p.t.Helper()
	out, notes, got := p.cli(append(args, "--json")...)
	if got != code {
		p.t.Fatalf("%v: exit code %d, want %d\n%s%s", args, got, code, out, notes)
	}
	if err := json.Unmarshal([]byte(out), to); err != nil {
		p.t.Fatalf("%v: %v in %q", args, err, out)
	}
}

// command runs gsd-mcp to its end.
func command(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return finish(t, exec.CommandContext(t.Context(), program(t), args...))
}

// finish runs a command and returns what it said.
func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	err := cmd.Run()
	var e *exec.ExitError
	if err != nil && !errors.As(err, &e) {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	return out.String(), notes.String(), cmd.ProcessState.ExitCode()
}

// A healthDoc is what these tests read in `health --json`.
type healthDoc struct {
	Verdict  string
	Held     bool `json:"held_after_stop"`
	Findings []struct {
		Code, Cause string
		Next        string `json:"next_step"`
	}
	Hub struct {
		Hub    struct{ State string }
		Outbox struct {
			State string
			Crit  struct{ Pending int }
			Info  struct{ Pending int }
		}
	}
}

// health reads the health whatever it is.
func (p *post) health() (h healthDoc) {
	p.t.Helper()
	out, notes, _ := p.cli("health", "--json")
	if err := json.Unmarshal([]byte(out), &h); err != nil {
		p.t.Fatalf("health: %v in %q %s\n%s", err, out, notes, p.log)
	}
	return h
}

// finding is the cause of a finding, "" when it is not there.
func (h healthDoc) finding(code string) string {
	for _, f := range h.Findings {
		if f.Code == code {
			return f.Cause + " -> " + f.Next
		}
	}
	return ""
}

// An antennaDoc is what these tests read in `antenna show --json`.
type antennaDoc struct {
	State, Why, Feedback string
	Present              bool
	Measured             *struct {
		Az float64 `json:"azimuth_deg"`
		El float64 `json:"elevation_deg"`
	}
}

func (p *post) antenna() (a antennaDoc) {
	p.t.Helper()
	p.asks(&a, exitDone, "antenna", "show")
	return a
}

// measured waits until the antenna's position is known.
func (p *post) measured() {
	p.t.Helper()
	eventuallyTrue(p.t, "a position", soon, func() bool { return p.antenna().Feedback == "measured" })
}

// A stream is a client that speaks lines on the socket.
type stream struct {
	t   *testing.T
	in  io.WriteCloser
	out *bufio.Reader
	set func(time.Time) error
}

// raw opens a connection to the daemon's socket.
func (p *post) raw() *stream {
	p.t.Helper()
	c, err := net.Dial("unix", p.socket)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Close() })
	return &stream{p.t, c, bufio.NewReader(c), c.SetReadDeadline}
}

// bridge starts `gsd-mcp stdio`.
func (p *post) bridge(args ...string) *stream {
	p.t.Helper()
	cmd := exec.Command(program(p.t), append([]string{"stdio", "--socket", p.socket}, args...)...)
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { in.Close(); cmd.Process.Kill(); cmd.Wait() })
	return &stream{p.t, in, bufio.NewReader(out), out.(*os.File).SetReadDeadline}
}

func (s *stream) say(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatalf("write %.200s: %v", line, err)
	}
}

// hears reads until a line that holds all of some texts; what else comes is
// passed over only when it is a notification.
func (s *stream) hears(parts ...string) string {
	s.t.Helper()
	for {
		if err := s.set(time.Now().Add(soon)); err != nil {
			s.t.Fatal(err)
		}
		line, err := s.out.ReadString('\n')
		if err != nil {
			s.t.Fatalf("no line with %q came: %v", parts, err)
		}
		if !strings.Contains(line, `"id":`) && strings.Contains(line, `"method":"notifications/`) {
			continue
		}
		for _, p := range parts {
			if !strings.Contains(line, p) {
				s.t.Fatalf("got %s\nwant %q in it", line, p)
			}
		}
		return line
	}
}

const (
	lineInitialize  = `{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"post","version":"1"}}}`
	lineInitialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

func lineCall(id int, tool, args string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, id, tool, args)
}

// opens does the handshake.
func (s *stream) opens() *stream {
	s.t.Helper()
	s.say(lineInitialize)
	s.hears(`"id":"init"`, `"protocolVersion":"2025-11-25"`)
	s.say(lineInitialized)
	return s
}
