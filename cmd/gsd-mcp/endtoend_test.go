package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"fmt"

	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub/hubtest"
	"gsd-mcp/internal/peers"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/unit"
)

// The pass of the end-to-end tests: the ISS over London, 41° high. Its look
// angles in testdata/endtoend come from Skyfield.
const (
	e2ePass    = "25544-20260813T1146Z"
	e2eAOS     = "2026-08-13T11:42:38Z" // 5° mask, rounded
	e2eBegin   = "2026-08-13T11:40:00Z"
	e2eConfig  = "station.toml"
	e2eMessage = "the daemon's log:\n%s"
)

var (
	buildOnce sync.Once
	built     string
	buildErr  error
)

// program builds gsd-mcp once and returns its path.
func program(t *testing.T) string {
	t.Helper()
	buildOnce.Do(func() {
		dir, err := os.MkdirTemp("", "gsd-mcp-test-")
		if err != nil {
			buildErr = err
			return
		}
		built = filepath.Join(dir, "gsd-mcp")
		out, err := exec.Command("go", "build", "-o", built, ".").CombinedOutput()
		if err != nil {
			buildErr = fmt.Errorf("go build: %v\n%s", err, out)
		}
	})
	if buildErr != nil {
		t.Fatal(buildErr)
	}
	return built
}

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(filepath.Dir(built))
	}
	os.Exit(code)
}

// A process is a running gsd-mcp.
type process struct {
	cmd *exec.Cmd
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// unitNice is how the unit file runs the daemon; simulated hardware, which would
// not wait for a processor at all, gets the same. Without the right to it a test
// runs at the priority of everything else.
const unitNice = -5

// start runs gsd-mcp with arguments; it ends with the test.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{exec.Command(program(t), args...), &lockedBuffer{}}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	syscall.Setpriority(syscall.PRIO_PGRP, p.cmd.Process.Pid, unitNice)
	t.Cleanup(func() { p.cmd.Process.Kill(); p.cmd.Wait() })
	return p
}

// end asks a process to end and waits for it.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Fatalf("%v ended with %v\n%s", p.cmd.Args, err, p.log)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%v did not end\n%s", p.cmd.Args, p.log)
	}
}

// eventually looks until something holds.
func eventuallyTrue(t *testing.T, what string, within time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); ; {
		if holds() {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, within)
		}
		time.Sleep(50 * time.Millisecond) // a look at another process, bounded by the deadline
	}
}

// A rig is a station of processes on pseudo-terminals: a rotator, a radio, and
// the daemon when it is started.
type rig struct {
	dir, truth string
	made       []string // flags of made-up time
	rate       float64
	anchor     time.Time
	daemon     *process
}

func newRig(t *testing.T, rate float64, extra string) *rig {
	t.Helper()
	r := &rig{dir: t.TempDir(), rate: rate, anchor: time.Now().Add(2 * time.Second)}
	r.truth = filepath.Join(r.dir, "truth.jsonl")
	r.made = []string{"--sim-start", e2eBegin, "--sim-rate", fmt.Sprint(rate), "--sim-anchor", r.anchor.UTC().Format(time.RFC3339Nano)}
	rot, rad := filepath.Join(r.dir, "rotator"), filepath.Join(r.dir, "radio")
	start(t, append([]string{"sim", "rotator", "--protocol", "easycomm2", "--link", rot, "--truth", r.truth}, r.made...)...)
	start(t, append([]string{"sim", "radio", "--protocol", "ic-9700", "--link", rad}, r.made...)...)
	for _, link := range []string{rot, rad} {
		eventuallyTrue(t, "the simulated device at "+link, 10*time.Second, func() bool { _, err := os.Stat(link); return err == nil })
	}
	config := fmt.Sprintf(`version = 1
[station]
id = "gs-01"
name = "Test station"
latitude_deg = 51.5074
longitude_deg = -0.1278
altitude_m = 25.0
[horizon]
elevation_deg = 5.0
[rotator]
driver = "easycomm2"
port = %q
absolute_azimuth = true
deadband_deg = 0.1
min_interval_ms = 0
park = { azimuth_deg = 90.0, elevation_deg = 88.0 }
[rotator.limits]
azimuth_min_deg = 0.0
azimuth_max_deg = 450.0
elevation_min_deg = 0.0
elevation_max_deg = 180.0
azimuth_speed_dps = 6.0
elevation_speed_dps = 3.0
acceleration_dps2 = 6.0
[[radio]]
driver = "icom-ic9700"
port = %q
[[satellite]]
norad_id = 25544
downlink_hz = 145800000
mode = "FM"
%s`, rot, rad, extra)
	if err := os.WriteFile(r.path(e2eConfig), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// at is the real time of a station time.
func (r *rig) at(station time.Time) time.Time {
	begin, _ := time.Parse(time.RFC3339, e2eBegin)
	return r.anchor.Add(time.Duration(float64(station.Sub(begin)) / r.rate))
}

func (r *rig) path(name string) string { return filepath.Join(r.dir, name) }

func (r *rig) serve(t *testing.T) {
	t.Helper()
	r.daemon = start(t, append([]string{"serve", "--config", r.path(e2eConfig), "--state-dir", r.path("state"), "--socket", r.path("sock")}, r.made...)...)
	eventuallyTrue(t, "the daemon's socket", 20*time.Second, func() bool {
		if r.daemon.cmd.ProcessState != nil {
			t.Fatalf("the daemon ended\n%s", r.daemon.log)
		}
		_, err := os.Stat(r.path("sock"))
		return err == nil
	})
}

// client connects the official Go SDK's client through `gsd-mcp stdio`.
func (r *rig) client(t *testing.T) *mcp.ClientSession {
	t.Helper()
	c := mcp.NewClient(&mcp.Implementation{Name: "end-to-end test", Version: "1"}, nil)
	s, err := c.Connect(t.Context(), &mcp.CommandTransport{Command: exec.Command(program(t), "stdio", "--socket", r.path("sock"))}, nil)
	if err != nil {
		t.Fatalf("connect: %v\n"+e2eMessage, err, r.daemon.log)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// call calls a tool and decodes what it answers.
func call(t *testing.T, s *mcp.ClientSession, tool string, args any, to any) string {
	t.Helper()
	r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	text := r.Content[0].(*mcp.TextContent).Text
	if r.IsError {
		t.Fatalf("%s: %s", tool, text)
	}
	b, err := json.Marshal(r.StructuredContent)
	if err == nil && to != nil {
		err = json.Unmarshal(b, to)
	}
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return text
}

// book waits until the devices have answered and books the pass.
func (r *rig) book(t *testing.T, s *mcp.ClientSession) schedule.Entry {
	t.Helper()
	eventuallyTrue(t, "a position", 20*time.Second, func() bool {
		var a struct{ Feedback string }
		call(t, s, "get_antenna", nil, &a)
		return a.Feedback == "measured"
	})
	var p struct {
		Passes []struct {
			ID string `json:"pass_id"`
		}
	}
	call(t, s, "predict_passes", map[string]any{"norad_id": 25544, "hours": 6}, &p)
	if len(p.Passes) == 0 || p.Passes[0].ID != e2ePass {
		t.Fatalf("predict_passes gives %+v, want %s first", p.Passes, e2ePass)
	}
	var e schedule.Entry
	call(t, s, "schedule_pass", map[string]any{"pass_id": e2ePass, "idempotency_key": "e2e"}, &e)
	return e
}

// entry reads the booking.
func entry(t *testing.T, s *mcp.ClientSession) schedule.Entry {
	t.Helper()
	var l struct {
		List []schedule.Entry `json:"scheduled_passes"`
	}
	call(t, s, "list_scheduled_passes", map[string]any{"from": e2eBegin}, &l)
	if len(l.List) != 1 {
		t.Fatalf("%d scheduled passes, want 1", len(l.List))
	}
	return l.List[0]
}

// reference reads Skyfield's look angles, one a second.
func reference(t *testing.T) (first time.Time, looks []unit.AzEl) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "testdata", "endtoend", "iss_london.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows[1:] {
		at, err := time.Parse(time.RFC3339, row[0])
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = at
		}
		az, err1 := strconv.ParseFloat(row[1], 64)
		el, err2 := strconv.ParseFloat(row[2], 64)
		if err1 != nil || err2 != nil || at.Sub(first) != time.Duration(i)*time.Second {
			t.Fatalf("row %d: %v", i+1, row)
		}
		looks = append(looks, unit.AzEl{AzDeg: az, ElDeg: el})
	}
	return first, looks
}

// between interpolates the reference at an instant.
func between(first time.Time, looks []unit.AzEl, at time.Time) (unit.AzEl, bool) {
	x := at.Sub(first).Seconds()
	i := int(x)
	if x < 0 || i+1 >= len(looks) {
		return unit.AzEl{}, false
	}
	a, b, f := looks[i], looks[i+1], x-float64(i)
	return unit.AzEl{AzDeg: a.AzDeg + f*unit.Diff(b.AzDeg, a.AzDeg), ElDeg: a.ElDeg + f*(b.ElDeg-a.ElDeg)}, true
}

// The main job, from a booking by the official client to the end of the pass,
// in processes on real pseudo-terminals: the antenna's truth stays within half
// a degree of where Skyfield says the satellite is.
func TestAPassIsWorkedFromBookingToCompleted(t *testing.T) {
	if testing.Short() {
		t.Skip("a minute of tracking")
	}
	r := newRig(t, 8, "")
	r.serve(t)
	s := r.client(t)
	e := r.book(t, s)
	time.Sleep(time.Until(r.at(e.LOS))) // nothing to ask while it is tracked
	eventuallyTrue(t, "the end of the pass", 3*time.Minute, func() bool { e = entry(t, s); return e.State.Terminal() })
	if e.State != schedule.Completed {
		t.Fatalf("the pass ended %s (%s): %s\n"+e2eMessage, e.State, e.ReasonCode, e.Reason, r.daemon.log)
	}
	first, looks := reference(t)
	f, err := os.Open(r.truth)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	worst, n := 0.0, 0
	var where string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var l struct {
			Time time.Time
			Az   float64 `json:"az_deg"`
			El   float64 `json:"el_deg"`
		}
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			t.Fatalf("truth line %q: %v", lines.Text(), err)
		}
		want, ok := between(first, looks, l.Time)
		if !ok || l.Time.Before(e.AOS) || l.Time.After(e.LOS) {
			continue
		}
		n++
		if d := unit.Separation(unit.AzEl{AzDeg: l.Az, ElDeg: l.El}, want); d > worst {
			worst, where = d, fmt.Sprintf("at %s antenna %.2f/%.2f, satellite %v", l.Time.Format("15:04:05.000"), l.Az, l.El, want)
		}
	}
	t.Logf("%d true positions between AOS and LOS, the worst %.3f° off (%s); the station's own record: %+v", n, worst, where, *e.Record)
	if n < 1000 {
		t.Errorf("only %d true positions during the pass", n)
	}
	if worst > 0.5 {
		t.Errorf("the antenna was %.2f° off, want at most 0.5°: %s", worst, where)
	}
}

// Every event of a tracked pass reaches a real mosquitto, each once by id and
// in order, although the daemon is restarted in mid-pass; and the pass goes on.
func TestMosquittoReceivesEveryEventOfAPassAcrossARestart(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of tracking")
	}
	b := hubtest.Mosquitto(t, hubtest.Options{})
	got := hubtest.Collect(t, b.URL, "gsd/v1/gs-01/events/#")
	r := newRig(t, 20, fmt.Sprintf("[hub]\nbroker = %q\nconfirmation = false\n", b.URL))
	r.serve(t)
	s := r.client(t)
	e := r.book(t, s)
	aos, err := time.Parse(time.RFC3339, e2eAOS)
	if err != nil {
		t.Fatal(err)
	}
	var seen struct{ Time time.Time }
	eventuallyTrue(t, "the middle of the pass", time.Minute, func() bool {
		call(t, s, "get_station_health", nil, &seen)
		return seen.Time.After(aos.Add(2*time.Minute)) && entry(t, s).State == schedule.Tracking
	})
	r.daemon.end(t)
	r.serve(t)
	// The bridge finds the new daemon by itself: the same session goes on.
	eventuallyTrue(t, "an answer after the restart", 20*time.Second, func() bool {
		_, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: "get_station_health"})
		return err == nil
	})
	eventuallyTrue(t, "the end of the pass", 2*time.Minute, func() bool { e = entry(t, s); return e.State.Terminal() })
	if e.State != schedule.Completed && e.State != schedule.Partial {
		t.Errorf("the pass ended %s (%s): %s; want it resumed", e.State, e.ReasonCode, e.Reason)
	}
	r.daemon.end(t) // delivers what waits
	// What the station's own journals hold is what has to arrive. The broker hands
	// it on in its own time.
	held, want := journalled(t, r.path("state")), 0
	for _, last := range held {
		want += last
	}
	all := got.WaitEvents(t, want, 30*time.Second)
	next := map[string]int{}
	ids := map[string]bool{}
	var ended []event.Event
	for _, ev := range all {
		stream := ev.Source + " " + ev.Epoch
		n, err := strconv.Atoi(strings.TrimLeft(ev.Sequence, "0"))
		if err != nil || n != next[stream]+1 {
			t.Errorf("%s: sequence %s after %d", stream, ev.Sequence, next[stream])
		}
		next[stream] = n
		if ids[ev.ID] {
			t.Errorf("event %s twice", ev.ID)
		}
		ids[ev.ID] = true
		if ev.Type == "gsd.pass.ended.v1" {
			ended = append(ended, ev)
		}
	}
	numbered := 0
	for _, m := range got.Messages() {
		var ev event.Event
		if json.Unmarshal(m.Payload, &ev) == nil && ev.Sequence != "" {
			numbered++
		}
	}
	t.Logf("%d events in %d messages, streams %v; the pass: %s (%s)", len(all), numbered, next, e.State, e.Reason)
	if numbered != len(all) {
		t.Errorf("%d messages for %d events: some came twice over clean ends", numbered, len(all))
	}
	if len(next) != 2 || len(ended) != 1 {
		t.Errorf("%d streams and %d ends of passes, want crit and info and one end", len(next), len(ended))
	}
	for stream, last := range held {
		if next[stream] != last {
			t.Errorf("%s: the journal holds %d events, %d arrived", stream, last, next[stream])
		}
	}
}

// journalled reads the last sequence of each stream from the segments on disk.
func journalled(t *testing.T, state string) map[string]int {
	t.Helper()
	out := map[string]int{}
	files, err := filepath.Glob(filepath.Join(state, "outbox", "*", "seg-*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no journal in %s: %v", state, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			_, rest, ok1 := bytes.Cut(line, []byte(" "))
			_, payload, ok2 := bytes.Cut(rest, []byte(" "))
			var ev event.Event
			if !ok1 || !ok2 || json.Unmarshal(payload, &ev) != nil {
				t.Fatalf("%s: line %q", name, line)
			}
			n, _ := strconv.Atoi(strings.TrimLeft(ev.Sequence, "0"))
			out[ev.Source+" "+ev.Epoch] = max(out[ev.Source+" "+ev.Epoch], n)
		}
	}
	return out
}

// The binary for the Raspberry Pi answers an MCP client, under emulation.
func TestTheARM64BinaryAnswersInitialize(t *testing.T) {
	qemu := peers.Need(t, "qemu-aarch64-static", "qemu-user-static")
	bin := filepath.Join(t.TempDir(), "gsd-mcp")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build for arm64: %v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, qemu, bin, "--sim")
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}` + "\n")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("arm64 under qemu: %v\n%s", err, out)
	}
	var r struct {
		ID     int
		Result struct {
			ProtocolVersion string
			ServerInfo      struct{ Name, Title string }
		}
	}
	if err := json.Unmarshal(out, &r); err != nil || r.ID != 1 || r.Result.ServerInfo.Name != "gsd-mcp" || !strings.HasPrefix(r.Result.ServerInfo.Title, "SIMULATED") {
		t.Fatalf("answer %q (%v)", out, err)
	}
}
