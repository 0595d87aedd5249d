package tools

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	timepiece "gsd-mcp/internal/clock"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// rigStart is near the embedded elements' epochs. The ISS rises over London at
// 06:53Z, 08:29Z (75°), 10:05Z (89°), 11:42Z (41°) and 13:20Z.
const rigStart = "2026-08-13T06:00:00Z"

const iss = 25544

// Callers of the tests, as the door makes them.
var (
	nobody    = Who{Caller: station.Caller{Role: station.NoRole, UID: 1009, User: "stranger"}}
	observer  = Who{Caller: station.Caller{Role: station.Observer, UID: 1001, User: "otto"}, MayStop: true}
	operator  = Who{Caller: station.Caller{Role: station.Operator, UID: 1002, User: "olga"}, MayStop: true}
	another   = Who{Caller: station.Caller{Role: station.Operator, UID: 1003, User: "oscar"}, MayStop: true}
	copilot   = Who{Caller: station.Caller{Role: station.Operator, Agent: true, UID: 1004, User: "copilot"}, MayStop: true}
	readOnly  = Who{Caller: operator.Caller, MayStop: true, ReadOnly: true}
	mayNoStop = Who{Caller: observer.Caller}
)

// A rig is a simulated station in fake time with the whole catalogue of tools
// on it: real drivers and simulated devices on wires in memory, state in
// memory.
type rig struct {
	t      *testing.T
	clk    *timepiece.Clock
	mount  *sim.Mount
	st     *station.Station
	book   *schedule.Book
	bus    *event.Bus
	server *mcp.Server
	sets   *sets
	disk   *memory
	wg     sync.WaitGroup
	cancel context.CancelFunc
	open   []*session
}

// A rigOption changes a rig before it runs.
type rigOption func(r *rig, o *station.Options, d *Deps)

// inRig runs f on a station that stands at its park position.
func inRig(t *testing.T, f func(t *testing.T, r *rig), options ...rigOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, options...)
		defer r.close()
		time.Sleep(15 * time.Second) // the first readings, fake time
		f(t, r)
	})
}

func newRig(t *testing.T, options ...rigOption) *rig {
	t.Helper()
	start, err := time.Parse(time.RFC3339, rigStart)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, disk: &memory{files: map[string][]byte{}}, sets: newSets(elements.Embedded())}
	if r.clk, err = timepiece.Simulated(start, time.Now(), 1); err != nil {
		t.Fatal(err)
	}
	travel := safety.Travel{AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 180}
	r.mount = sim.NewMount(r.clk, sim.MountConfig{AzMaxDeg: 450, ElMaxDeg: 180, AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 6, StartAzDeg: 90, StartElDeg: 80})
	ctl, err := sim.NewController("easycomm2", r.mount)
	if err != nil {
		t.Fatal(err)
	}
	dev, err := sim.NewRadio("ic-9700", r.clk)
	if err != nil {
		t.Fatal(err)
	}
	r.bus = event.NewBus(event.Options{Station: "gs-01", Simulated: true, Clock: r.clk})
	ctx, cancel := context.WithCancel(t.Context())
	r.cancel = cancel
	drv, err := rotator.Lookup("easycomm2")
	if err != nil {
		t.Fatal(err)
	}
	model, err := radio.Lookup("icom-ic9700")
	if err != nil {
		t.Fatal(err)
	}
	o := station.Options{Clock: r.clk, Site: unit.Site{LatDeg: 51.5074, LonDeg: -0.1278, AltM: 25}, BeamwidthDeg: 30,
		Rules: safety.Rules{Travel: travel, MarginDeg: 2, Horizon: unit.FlatHorizon(5), AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 6,
			FeedbackMoving: 2 * time.Second, FeedbackIdle: 10 * time.Second,
			Zones: []safety.Zone{{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMaxDeg: 35, Reason: "the mast of the neighbours"}}},
		Park: unit.AzEl{AzDeg: 90, ElDeg: 80}, Store: r.disk, Audit: r.disk, Bus: r.bus, Orbits: r,
		Trust:     func() station.Trust { return station.Trust{Good: true, State: "simulated"} },
		Rotator:   &station.RotatorOptions{Driver: drv, Absolute: true, DeadbandDeg: 0.1, Open: r.plug(ctx, ctl)},
		Radio:     &station.RadioOptions{Model: model, Open: r.plug(ctx, dev)},
		Simulated: true, BootID: "boot-1", AgentBudget: station.DefaultAgentBudget()}
	d := Deps{Catalogue: r.sets, Bus: r.bus, StationID: "gs-01", Name: "Test station", Horizon: unit.FlatHorizon(5),
		Frequency: func(n int) (down, up Channel) {
			if n == iss {
				return Channel{145_800_000, "FM"}, Channel{145_990_000, "FM"}
			}
			return down, up
		},
		Config: func() any { return map[string]any{"station": map[string]any{"id": "gs-01"}} }}
	for _, f := range options {
		f(r, &o, &d)
	}
	if r.st, _, err = station.New(o); err != nil {
		t.Fatal(err)
	}
	if r.book, _, err = schedule.Open(r.disk, r.clk.Now, func(schedule.Change) {}); err != nil {
		t.Fatal(err)
	}
	d.Station, d.Book = r.st, r.book
	r.server = mcp.New(mcp.Options{Info: mcp.Info{Name: "gsd-mcp", Version: "test"}, ContractVersion: ContractVersion,
		Log: func(msg string, kv ...any) { t.Errorf("the server logged %s %v", msg, kv) }})
	Register(r.server, d, NewDoctor(d))
	r.st.OnChange(func(thing string) { r.server.ResourceUpdated("station://" + thing) })
	r.wg.Go(func() { r.st.Run(ctx) })
	return r
}

// plug opens a wire to a simulated device.
func (r *rig) plug(ctx context.Context, dev sim.Device) station.Opener {
	return func(context.Context) (station.Wire, error) {
		link, end := sim.Wire()
		r.wg.Go(func() { dev.Run(ctx, end) })
		context.AfterFunc(ctx, func() { end.Close() })
		return &plugged{link, end}, nil
	}
}

type plugged struct {
	*sim.MemLink
	end io.Closer
}

func (p *plugged) Close() error { return p.end.Close() }

func (r *rig) close() {
	for _, s := range r.open {
		s.close()
	}
	r.cancel()
	r.wg.Wait()
}

// Orbit implements station.Orbits.
func (r *rig) Orbit(norad int) (*passes.Orbit, *safety.Orbit) {
	set, ok := r.sets.Get(norad)
	if !ok {
		return nil, nil
	}
	t := set.Trust(r.clk.Now())
	f := &safety.Orbit{NoradID: norad, AgeDays: t.AgeDays, MaxDays: t.LimitDays}
	o, err := passes.New(set)
	if err != nil {
		f.Decayed = err.Error()
	}
	return o, f
}

// sets is a catalogue in memory.
type sets struct{ all []elements.Set }

func newSets(all []elements.Set) *sets { return &sets{all} }

func (s *sets) All() []elements.Set { return s.all }

func (s *sets) Get(n int) (elements.Set, bool) {
	for _, x := range s.all {
		if x.NoradID == n {
			return x, true
		}
	}
	return elements.Set{}, false
}

func (s *sets) Find(query string, limit int) (out []elements.Set) {
	for _, x := range s.all {
		if len(out) < limit && strings.Contains(strings.ToLower(x.Name+fmt.Sprint(" ", x.NoradID)), strings.ToLower(query)) {
			out = append(out, x)
		}
	}
	return out
}

// memory is a disk that can fail: store and audit of a station.
type memory struct {
	mu    sync.Mutex
	files map[string][]byte
	lines []string
	full  error
}

func (m *memory) Save(name string, v any) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full != nil {
		return m.full
	}
	b, err := json.Marshal(v)
	m.files[name] = b
	return err
}

func (m *memory) Load(name string, v any) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b, ok := m.files[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return "", json.Unmarshal(b, v)
}

func (m *memory) Append(rec any) (uint64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.full != nil {
		return 0, m.full
	}
	b, err := json.Marshal(rec)
	m.lines = append(m.lines, string(b))
	return uint64(len(m.lines)), err
}

func (m *memory) fill(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.full = err
}

// audited lists the audit's lines that hold all of some texts.
func (m *memory) audited(parts ...string) (out []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		hit := true
		for _, p := range parts {
			hit = hit && strings.Contains(l, p)
		}
		if hit {
			out = append(out, l)
		}
	}
	return out
}

// A session is one client of the rig's server, speaking lines.
type session struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	next  int
	notes []string // what came without being asked
	id    string
}

// Protocol eras of a session.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"rig","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

// as opens a session of a caller with a handshake; close ends it.
func (r *rig) as(w Who) *session {
	r.t.Helper()
	s := &session{t: r.t, lines: make(chan string, 1024), id: fmt.Sprintf("s%d", len(r.open)+1)}
	r.open = append(r.open, s)
	in, out := io.Pipe()
	read, write := io.Pipe()
	s.in = out
	r.wg.Go(func() {
		r.server.Serve(r.t.Context(), in, write, mcp.SessionOptions{Caller: w, ID: s.id, Denied: Denied})
		write.Close()
	})
	r.wg.Go(func() {
		defer close(s.lines)
		for sc := bufio.NewReaderSize(read, 1<<20); ; {
			line, err := sc.ReadString('\n')
			if err != nil {
				return
			}
			s.lines <- line
		}
	})
	s.send(`{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"` + legacy + `","capabilities":{},"clientInfo":{"name":"rig","version":"1"}}}`)
	s.await("open")
	s.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

func (s *session) close() { s.in.Close() }

func (s *session) send(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.t.Fatalf("send %s: %v", line, err)
	}
}

// A reply is a JSON-RPC answer.
type reply struct {
	Result json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    json.RawMessage
	}
	raw string
}

// await reads until the answer to id; notifications are kept.
func (s *session) await(id string) reply {
	s.t.Helper()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.t.Fatalf("the session ended before the answer to %s", id)
			}
			var m struct {
				ID     json.RawMessage
				Method string
				reply
			}
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				s.t.Fatalf("line %q: %v", line, err)
			}
			if m.Method != "" {
				s.notes = append(s.notes, line)
				continue
			}
			if got := strings.Trim(string(m.ID), `"`); got != id {
				s.t.Fatalf("answer to %s, want to %s: %s", got, id, line)
			}
			m.raw = line
			return m.reply
		case <-time.After(10 * time.Minute): // fake time
			s.t.Fatalf("no answer to %s", id)
		}
	}
}

// ask makes one request in an era.
func (s *session) ask(era, method, params string) reply {
	s.t.Helper()
	s.next++
	if era == modern {
		sep := ","
		if strings.TrimSpace(params) == "{}" {
			sep = ""
		}
		params = "{" + modernMeta + sep + strings.TrimPrefix(params, "{")
	}
	id := fmt.Sprint(s.next)
	s.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params))
	return s.await(id)
}

// An answer is what a tool said.
type answer struct {
	Content []struct{ Type, Text string }
	Data    json.RawMessage `json:"structuredContent"`
	IsError bool
	rpc     *reply // of an error of the protocol
}

// text is the sentence for the model.
func (a answer) text() string {
	if len(a.Content) == 0 {
		return ""
	}
	return a.Content[0].Text
}

// into decodes the structured content.
func (a answer) into(t *testing.T, to any) {
	t.Helper()
	if a.rpc != nil {
		t.Fatalf("an error of the protocol: %s", a.rpc.raw)
	}
	if a.IsError || a.Data == nil {
		t.Fatalf("no structured content: %s", a.text())
	}
	if err := json.Unmarshal(a.Data, to); err != nil {
		t.Fatalf("%s: %v", a.Data, err)
	}
}

// try calls a tool with arguments in JSON.
func (s *session) try(tool, args string) answer {
	s.t.Helper()
	r := s.ask(legacy, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, args))
	if r.Error != nil {
		return answer{rpc: &r}
	}
	var a answer
	if err := json.Unmarshal(r.Result, &a); err != nil {
		s.t.Fatalf("%s: %v", r.Result, err)
	}
	return a
}

// call calls a tool that must succeed.
func (s *session) call(tool, args string) answer {
	s.t.Helper()
	a := s.try(tool, args)
	if a.rpc != nil {
		s.t.Fatalf("%s %s: %s", tool, args, a.rpc.raw)
	}
	if a.IsError {
		s.t.Fatalf("%s %s: %s", tool, args, a.text())
	}
	return a
}

// A denial is a refusal as programs read it.
type denial struct {
	Refused      bool
	Code         safety.Code
	Why, Fix     string
	Nearest      *unit.AzEl `json:"nearest_allowed"`
	Alternatives []struct {
		PassID string `json:"pass_id"`
		AOS    time.Time
		Max    float64 `json:"max_elevation_deg"`
	}
	RetryS int    `json:"retry_after_s"`
	ID     string `json:"scheduled_pass_id"`
	With   string `json:"conflicts_with"`
}

// refusal calls a tool that must be refused with a code, and checks the form of
// the refusal: a sentence, then the same as JSON, and nothing else.
func (s *session) refusal(code safety.Code, tool, args string) denial {
	s.t.Helper()
	a := s.try(tool, args)
	if a.rpc != nil {
		s.t.Fatalf("%s %s: %s", tool, args, a.rpc.raw)
	}
	n, err := parseNo(a)
	if err != nil {
		s.t.Fatalf("%s %s: %v", tool, args, err)
	}
	if n.Code != code {
		s.t.Errorf("%s %s was refused %s (%s), want %s", tool, args, n.Code, n.Why, code)
	}
	return n
}

func parseNo(a answer) (n denial, err error) {
	switch {
	case !a.IsError:
		return n, fmt.Errorf("not refused: %s", a.text())
	case a.Data != nil:
		return n, fmt.Errorf("a refusal has structuredContent %s", a.Data)
	case len(a.Content) != 2 || a.Content[0].Type != "text" || a.Content[1].Type != "text":
		return n, fmt.Errorf("a refusal has the content %v, want two texts", a.Content)
	}
	if err := json.Unmarshal([]byte(a.Content[1].Text), &n); err != nil {
		return n, fmt.Errorf("second text %q: %w", a.Content[1].Text, err)
	}
	if !n.Refused || n.Code == "" || n.Why == "" || n.Fix == "" {
		return n, fmt.Errorf("the refusal lacks refused, code, why or fix: %s", a.Content[1].Text)
	}
	for _, part := range []string{string(n.Code), n.Why, n.Fix} {
		if !strings.Contains(a.Content[0].Text, part) {
			return n, fmt.Errorf("the sentence %q lacks %q", a.Content[0].Text, part)
		}
	}
	return n, nil
}

// tools lists a session's tools.
func (s *session) tools() map[string]listedTool {
	s.t.Helper()
	r := s.ask(legacy, "tools/list", "{}")
	var l struct{ Tools []listedTool }
	if err := json.Unmarshal(r.Result, &l); err != nil {
		s.t.Fatalf("%s: %v", r.raw, err)
	}
	out := map[string]listedTool{}
	for _, x := range l.Tools {
		out[x.Name] = x
	}
	return out
}

type listedTool struct {
	Name, Title, Description string
	InputSchema              json.RawMessage
	OutputSchema             json.RawMessage
	Annotations              map[string]bool
}

func names[V any](m map[string]V) []string {
	var out []string
	for k := range maps.Keys(m) {
		out = append(out, k)
	}
	return out
}

var errNoSpace = errors.New("no space left on device")
