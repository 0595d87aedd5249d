package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/state"
)

// A fixture is a station's outbox with a publisher that can be restarted.
type fixture struct {
	t   *testing.T
	dir string
	d   *state.Dir
	box *state.Outbox
	bus *event.Bus
	p   *Publisher
	end func()
	ids []string // of every event emitted, in order
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, dir: t.TempDir()}
	f.open()
	t.Cleanup(f.close)
	return f
}

func (f *fixture) open() {
	f.t.Helper()
	var err error
	if f.d, err = state.Open(f.dir); err != nil {
		f.t.Fatal(err)
	}
	if f.box, _, err = state.OpenOutbox(f.d.Path("outbox"), state.OutboxOptions{KeepFree: 1}); err != nil {
		f.t.Fatal(err)
	}
	f.bus = event.NewBus(event.Options{Station: "gs-01", Crit: f.box.Crit, Info: f.box.Info})
}

func (f *fixture) close() {
	f.stop()
	if f.box != nil {
		f.box.Close()
		f.d.Close()
		f.box = nil
	}
}

// start runs a publisher with short timeouts.
func (f *fixture) start(c Config) {
	f.t.Helper()
	c.Station, c.Dir = "gs-01", f.d
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&c.MinBackoff, 20*time.Millisecond)
	def(&c.MaxBackoff, 200*time.Millisecond)
	def(&c.SlowBackoff, 200*time.Millisecond)
	def(&c.MaxSlowBackoff, 400*time.Millisecond)
	def(&c.StateEvery, 50*time.Millisecond)
	p, err := New(c, f.bus, f.box.Crit, f.box.Info, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.p = p
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	f.end = func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				f.t.Errorf("Run = %v", err)
			}
		case <-time.After(30 * time.Second):
			f.t.Error("Run did not end within 30 s")
		}
	}
}

func (f *fixture) stop() {
	if f.end != nil {
		f.end()
		f.end = nil
	}
}

// emit records n events, crit and info in turn.
func (f *fixture) emit(n int) {
	f.t.Helper()
	for i := range n {
		var d event.Data = event.PassAOS{PassRef: event.PassRef{PassID: fmt.Sprintf("p-%d", i)}}
		if i%2 == 1 {
			d = event.PassTCA{}
		}
		ev, err := f.bus.Emit(f.t.Context(), event.About{}, d)
		if err != nil {
			f.t.Fatal(err)
		}
		f.ids = append(f.ids, ev.ID)
	}
}

func eventually(t *testing.T, what string, d time.Duration, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(d)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %v", what, d)
		}
		time.Sleep(5 * time.Millisecond) // a poll: sockets move no fake clock
	}
}

func (f *fixture) waitReason(reason string, d time.Duration) {
	f.t.Helper()
	var last Status
	deadline := time.Now().Add(d)
	for time.Now().Before(deadline) {
		if last = f.p.Status(); last.Hub.Reason == reason {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	f.t.Fatalf("health says %q (%s, %s), want %q within %v", last.Hub.Reason, last.Hub.State, last.Hub.Detail, reason, d)
}

// A hubSide keeps what a broker in this process took.
type hubSide struct {
	mu   sync.Mutex
	msgs []sim.Message
}

func (h *hubSide) take(m sim.Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.msgs = append(h.msgs, m)
}

func (h *hubSide) all() []sim.Message {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.msgs)
}

// events are the numbered ones, duplicates included.
func (h *hubSide) events() (out []event.Event) {
	for _, m := range h.all() {
		var e event.Event
		if json.Unmarshal(m.Payload, &e) == nil && e.Sequence != "" {
			out = append(out, e)
		}
	}
	return out
}

func ids(events []event.Event) map[string]int {
	m := map[string]int{}
	for _, e := range events {
		m[e.ID]++
	}
	return m
}

func (h *hubSide) has(want []string) bool {
	m := ids(h.events())
	for _, id := range want {
		if m[id] == 0 {
			return false
		}
	}
	return true
}

// inOrder checks that first arrivals of each source come by sequence.
func inOrder(t *testing.T, events []event.Event) {
	t.Helper()
	last, seen := map[string]string{}, map[string]bool{}
	for _, e := range events {
		if seen[e.ID] {
			continue
		}
		seen[e.ID] = true
		if e.Sequence <= last[e.Source] {
			t.Errorf("%s: sequence %s came after %s", e.Source, e.Sequence, last[e.Source])
		}
		last[e.Source] = e.Sequence
	}
}

func inProcess(t *testing.T, o sim.BrokerOptions) (*sim.Broker, *hubSide) {
	t.Helper()
	h := &hubSide{}
	o.OnMessage = h.take
	b, err := sim.NewBroker(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b, h
}

func TestEventsReachABrokerWithoutAPort(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.emit(40)
	f.start(Config{Dial: b.Dial})
	eventually(t, "40 events", 10*time.Second, func() bool { return h.has(f.ids) })
	inOrder(t, h.events())
	f.bus.SetState("rotator", map[string]float64{"azimuth_deg": 1})
	eventually(t, "the rotator's state", 5*time.Second, func() bool {
		return slices.ContainsFunc(h.all(), func(m sim.Message) bool { return m.Topic == "gsd/v1/gs-01/state/rotator" && m.Retain })
	})
	s := f.p.Status()
	if s.Hub.State != "connected" || s.Hub.Reason != "" || len(s.Degraded) != 0 || s.Outbox.Crit.Pending != 0 || s.Outbox.Crit.Puback != 20 {
		t.Errorf("health %+v", s)
	}
	f.stop()
	msgs := h.all()
	for i, m := range msgs {
		if strings.Contains(m.Topic, "/events/") && m.Retain {
			t.Errorf("event on %s is retained: it would replay as new", m.Topic)
		}
		if i == 0 && (m.Topic != "gsd/v1/gs-01/availability" || !m.Retain || !strings.Contains(string(m.Payload), `"online"`)) {
			t.Errorf("first message is %s %s, want online", m.Topic, m.Payload)
		}
	}
	if last := msgs[len(msgs)-1]; last.Topic != "gsd/v1/gs-01/availability" || !strings.Contains(string(last.Payload), `"offline"`) ||
		!strings.Contains(string(last.Payload), "shutdown") {
		t.Errorf("last message is %s %s, want offline by shutdown and no will after it", last.Topic, last.Payload)
	}
}

func TestTopicsFollowTheType(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial})
	for _, d := range event.All() {
		if _, err := f.bus.Emit(t.Context(), event.About{}, d); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "every kind", 10*time.Second, func() bool { return len(h.events()) >= len(event.All()) })
	topics := map[string]bool{}
	for _, m := range h.all() {
		topics[m.Topic] = true
	}
	for _, d := range event.All() {
		if want := "gsd/v1/gs-01/events/" + d.Kind().Topic; !topics[want] {
			t.Errorf("nothing came on %s", want)
		}
	}
}

// A lost connection, a lost PUBACK and a stuck broker: each event arrives, and
// the cursor never passes one that was not acknowledged.
func TestNothingIsLostWhenPubacksAre(t *testing.T) {
	for name, rule := range map[string]sim.AckRule{"taken without PUBACK": sim.TakeMute, "swallowed": sim.Swallow, "hung up": sim.HangUp} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			b, h := inProcess(t, sim.BrokerOptions{})
			var n atomic.Int64
			b.Rule(func(m sim.Message) sim.AckRule {
				if strings.Contains(m.Topic, "/events/") {
					if k := n.Add(1); k%23 == 0 && k < 120 {
						return rule
					}
				}
				return sim.Take
			})
			f.emit(60)
			f.start(Config{Dial: b.Dial, AckTimeout: 300 * time.Millisecond})
			eventually(t, "60 events", 20*time.Second, func() bool { return h.has(f.ids) && f.p.Status().Outbox.Info.Pending == 0 })
			for id, k := range ids(h.events()) {
				if k > 1+5 {
					t.Errorf("event %s came %d times", id, k)
				}
			}
			if q := f.p.Status().Outbox.QuarantinedTotal; q != 0 {
				t.Errorf("%d events were put aside for a fault of the link", q)
			}
		})
	}
}

// The false acknowledgement: with the library's own reconnect a token says
// "done" for a message that the broker never saw. The cursor must not move.
func TestCursorDoesNotMoveWithoutPuback(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	b.Rule(func(m sim.Message) sim.AckRule {
		if strings.Contains(m.Topic, "/events/") {
			return sim.Swallow
		}
		return sim.Take
	})
	f.emit(32)
	f.start(Config{Dial: b.Dial, AckTimeout: time.Second})
	for range 10 { // connections come and go; nothing was ever acknowledged
		eventually(t, "a session", 5*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
		b.DropClients()
		eventually(t, "the end of the session", 5*time.Second, func() bool { return f.p.Status().Hub.State != "connected" })
		if c, i := f.box.Crit.Cursor(), f.box.Info.Cursor(); c != 0 || i != 0 {
			t.Fatalf("cursors at %d and %d; the broker took nothing", c, i)
		}
	}
	b.Rule(nil)
	eventually(t, "all events in the end", 20*time.Second, func() bool { return h.has(f.ids) })
}

func TestBrokerThatIsAwayIsWaitedFor(t *testing.T) {
	f := newFixture(t)
	f.emit(4)
	f.start(Config{Broker: "mqtt://127.0.0.1:1"})
	f.waitReason(reasonRefused, 5*time.Second)
	s := f.p.Status()
	if s.Outbox.Crit.Pending != 2 || s.Hub.NextStep == "" || s.Hub.Attempts == 0 {
		t.Errorf("health %+v", s)
	}
	f.stop()
}

func TestWrongPasswordIsNamedAndNotShown(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{User: "gs-01", Password: "right"})
	file := filepath.Join(t.TempDir(), "pw")
	os.WriteFile(file, []byte("hunter2\n"), 0o600)
	f.emit(2)
	f.start(Config{Dial: b.Dial, PasswordFile: file})
	f.waitReason(reasonAuth, 5*time.Second)
	if j, _ := json.Marshal(f.p.Status()); strings.Contains(string(j), "hunter2") || strings.Contains(string(j), file) {
		t.Errorf("health shows a secret: %s", j)
	}
	os.WriteFile(file, []byte("right\n"), 0o600)
	f.p.Retry()
	eventually(t, "the events after the password was mended", 5*time.Second, func() bool { return h.has(f.ids) })
}

func TestPoisonedRecordIsPutAsideAndDeclared(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.emit(20)
	poison := f.ids[4]
	b.Rule(func(m sim.Message) sim.AckRule {
		if strings.Contains(string(m.Payload), poison) && !strings.Contains(m.Topic, "outbox/quarantined") {
			return sim.HangUp
		}
		return sim.Take
	})
	f.start(Config{Dial: b.Dial})
	rest := slices.Delete(slices.Clone(f.ids), 4, 5)
	eventually(t, "all other events", 30*time.Second, func() bool { return h.has(rest) })
	var declared event.OutboxQuarantined
	eventually(t, "the declaration", 10*time.Second, func() bool {
		for _, e := range h.events() {
			if e.Type == "gsd.outbox.quarantined.v1" {
				return json.Unmarshal(e.Data, &declared) == nil
			}
		}
		return false
	})
	if declared.EventID != poison || declared.Sequence != "00000000000000000003" || declared.StreamName != "crit" {
		t.Errorf("declared %+v, want %s, crit 3", declared, poison)
	}
	kept, _ := filepath.Glob(f.d.Path("outbox", "crit", "quarantine", "refused-*"))
	if len(kept) != 1 {
		t.Fatalf("quarantine has %v, want the one record", kept)
	}
	if data, _ := os.ReadFile(kept[0]); !strings.Contains(string(data), poison) {
		t.Errorf("quarantine has %s", data)
	}
	if s := f.p.Status(); s.Outbox.QuarantinedTotal != 1 || !slices.Contains(s.Degraded, "events_quarantined") {
		t.Errorf("health %+v", s)
	}
}

// A broker that hangs up at everything has another trouble: nothing is put
// aside.
func TestBrokerThatRefusesAllCostsNothing(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	b.Rule(func(m sim.Message) sim.AckRule {
		if strings.Contains(m.Topic, "/events/") {
			return sim.HangUp
		}
		return sim.Take
	})
	f.emit(10)
	f.start(Config{Dial: b.Dial})
	f.waitReason(reasonRefusesAll, 20*time.Second)
	if s := f.p.Status(); s.Outbox.QuarantinedTotal != 0 || s.Outbox.Crit.Puback != 0 {
		t.Errorf("health %+v, want everything kept", s)
	}
	b.Rule(nil)
	eventually(t, "all events", 20*time.Second, func() bool { return h.has(f.ids) })
}

func TestNoMoreThanThreeInARowArePutAside(t *testing.T) {
	f := newFixture(t)
	b, _ := inProcess(t, sim.BrokerOptions{})
	b.Rule(func(m sim.Message) sim.AckRule {
		if strings.Contains(m.Topic, "/events/") && !strings.Contains(m.Topic, "canary") {
			return sim.HangUp
		}
		return sim.Take
	})
	f.emit(10)
	f.start(Config{Dial: b.Dial, MinBackoff: time.Millisecond, MaxBackoff: 2 * time.Millisecond, SlowBackoff: time.Millisecond, MaxSlowBackoff: 2 * time.Millisecond})
	eventually(t, "three put aside", 30*time.Second, func() bool { return f.p.Status().Outbox.QuarantinedTotal == 3 })
	before := f.p.Status().Hub.Session
	eventually(t, "twenty more sessions", 30*time.Second, func() bool { return f.p.Status().Hub.Session > before+20 })
	if n := f.p.Status().Outbox.QuarantinedTotal; n != 3 {
		t.Errorf("%d put aside, want 3", n)
	}
}

func TestConfirmationMovesItsCursorAndAsksForWhatIsMissing(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.emit(20)
	f.start(Config{Dial: b.Dial, Confirmation: true})
	eventually(t, "20 events", 10*time.Second, func() bool { return h.has(f.ids) && f.p.Status().Outbox.Info.Pending == 0 })
	epoch := f.box.Crit.Epoch()
	bad := []string{
		`not json`, `{"crit":5}`,
		`{"crit":{"epoch":"00000000","upto":"9"}}`,                        // another numbering
		`{"crit":{"epoch":"` + epoch + `","upto":"999999"}}`,              // more than there is
		`{"crit":{"epoch":"` + epoch + `","upto":"-1"}}`,                  // nonsense
		`{"crit":{"epoch":"` + epoch + `","upto":"0","missing":["x"]}}`,   // nonsense
		`{"crit":{"epoch":"` + epoch + `","upto":"0","missing":["5-1"]}}`, // nonsense
	}
	for _, m := range bad {
		b.Publish("gsd/v1/gs-01/ack", []byte(m), true)
	}
	b.Publish("gsd/v1/gs-01/ack", []byte(`{"crit":{"epoch":"`+epoch+`","upto":"7","missing":["3-4"]}}`), true)
	eventually(t, "the confirmation", 5*time.Second, func() bool { return f.p.Status().Outbox.Crit.Confirmed == 7 })
	again := []string{f.ids[4], f.ids[6]} // crit 3 and 4
	eventually(t, "the missing events again", 5*time.Second, func() bool {
		m := ids(h.events())
		return m[again[0]] == 2 && m[again[1]] == 2
	})
	b.Publish("gsd/v1/gs-01/ack", []byte(`{"crit":{"epoch":"`+epoch+`","upto":"5"}}`), true)
	if s := f.p.Status(); s.Outbox.Crit.Confirmed != 7 || s.Outbox.Crit.Puback != 10 {
		t.Errorf("confirmed %d, delivered %d; want 7 and 10", s.Outbox.Crit.Confirmed, s.Outbox.Crit.Puback)
	}
	if n := len(h.events()); n != 22 {
		t.Errorf("%d events came, want 20 and 2 again", n)
	}
}

func TestHubThatDoesNotConfirmIsNoticed(t *testing.T) {
	f := newFixture(t)
	b, _ := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial, Confirmation: true, ConfirmWithin: 200 * time.Millisecond})
	f.emit(2)
	f.waitReason(reasonNotConfirming, 5*time.Second)
	if s := f.p.Status(); s.Hub.State != "connected" || !slices.Contains(s.Degraded, reasonNotConfirming) || s.Hub.NextStep == "" {
		t.Errorf("health %+v", s)
	}
	b.Publish("gsd/v1/gs-01/ack", []byte(`{"crit":{"epoch":"`+f.box.Crit.Epoch()+`","upto":"1"}}`), true)
	f.waitReason("", 5*time.Second)
}

func TestReplaySendsAgainAndMovesNothing(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.emit(10)
	f.start(Config{Dial: b.Dial})
	eventually(t, "10 events", 10*time.Second, func() bool { return h.has(f.ids) })
	for _, bad := range []error{f.p.Replay("other", 1, 2), f.p.Replay("crit", 0, 2), f.p.Replay("crit", 3, 2), f.p.Replay("crit", 99, 99)} {
		if bad == nil {
			t.Error("a nonsense replay was accepted")
		}
	}
	if err := f.p.Replay("crit", 2, 4); err != nil {
		t.Fatal(err)
	}
	eventually(t, "three again", 5*time.Second, func() bool { return len(h.events()) == 13 })
	m := ids(h.events())
	if m[f.ids[2]] != 2 || m[f.ids[4]] != 2 || m[f.ids[6]] != 2 || f.box.Crit.Cursor() != 5 {
		t.Errorf("came %v, cursor %d; want crit 2..4 twice and the cursor at 5", m, f.box.Crit.Cursor())
	}
}

// Many changes in a short time are one message: the last.
func TestStateTopicsAreCoalesced(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial, StateEvery: 300 * time.Millisecond})
	eventually(t, "a session", 5*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	start := time.Now()
	for i := range 200 {
		f.bus.SetState("rotator", map[string]int{"azimuth_deg": i})
		time.Sleep(5 * time.Millisecond)
	}
	last := func() string {
		s := ""
		for _, m := range h.all() {
			if m.Topic == "gsd/v1/gs-01/state/rotator" {
				s = string(m.Payload)
			}
		}
		return s
	}
	eventually(t, "the last state", 5*time.Second, func() bool { return strings.Contains(last(), `"azimuth_deg":199`) })
	n := 0
	for _, m := range h.all() {
		if strings.Contains(m.Topic, "/state/") {
			n++
		}
	}
	if most := int(time.Since(start)/(300*time.Millisecond)) + 2; n > most {
		t.Errorf("%d messages for 200 changes, want at most %d", n, most)
	}
}

func TestWillCarriesTheSessionAndIsNotSentAfterAGoodEnd(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial})
	eventually(t, "a session", 5*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	b.DropClients()
	type word struct {
		State   string `json:"state"`
		Session uint64 `json:"session"`
		Reason  string `json:"reason"`
	}
	words := func() (out []word) {
		for _, m := range h.all() {
			if strings.HasSuffix(m.Topic, "/availability") {
				var w word
				json.Unmarshal(m.Payload, &w)
				out = append(out, w)
			}
		}
		return out
	}
	eventually(t, "the second session", 10*time.Second, func() bool {
		w := words()
		return len(w) >= 3 && slices.Contains(w, word{"online", 2, ""})
	})
	f.stop()
	f.start(Config{Dial: b.Dial})
	eventually(t, "the session after a restart", 5*time.Second, func() bool { return slices.Contains(words(), word{"online", 3, ""}) })
	f.stop()
	want := []word{{"online", 1, ""}, {"offline", 1, ""}, {"online", 2, ""}, {"offline", 2, "shutdown"}, {"online", 3, ""}, {"offline", 3, "shutdown"}}
	got := words()
	slices.SortStableFunc(got, func(a, b word) int { return int(a.Session) - int(b.Session) }) // a late will may come after the next online
	if !slices.Equal(got, want) {
		t.Errorf("availability %v, want %v", got, want)
	}
}

func TestShutdownDeliversWhatWaits(t *testing.T) {
	f := newFixture(t)
	b, h := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial})
	eventually(t, "a session", 5*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	f.emit(50)
	f.bus.Emit(t.Context(), event.About{}, event.StationStopping{Reason: "SIGTERM"})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := f.p.Shutdown(ctx); err != nil {
		t.Fatal(err)
	}
	if !h.has(f.ids[:1]) || len(h.events()) < 26 { // crit for certain; info may linger
		t.Errorf("%d events came before the end", len(h.events()))
	}
	if s := f.p.Status(); s.Hub.State != "down" || s.Hub.Reason != reasonShutdown {
		t.Errorf("health %+v", s.Hub)
	}
}

// A mute broker must not hold up the end of the daemon.
func TestShutdownEndsInTimeWhenTheBrokerIsMute(t *testing.T) {
	f := newFixture(t)
	b, _ := inProcess(t, sim.BrokerOptions{})
	f.start(Config{Dial: b.Dial, ShutdownWait: 300 * time.Millisecond})
	eventually(t, "a session", 5*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	b.Rule(func(sim.Message) sim.AckRule { return sim.Swallow })
	f.emit(4)
	start := time.Now()
	f.stop()
	if d := time.Since(start); d > 3*time.Second {
		t.Errorf("the end took %v with a mute broker, want about 0.6 s", d)
	}
}

func TestConfigurationMistakesAreNamed(t *testing.T) {
	f := newFixture(t)
	for _, tt := range []struct {
		name string
		c    Config
		want string
	}{
		{"station", Config{Station: "GS 1", Broker: "mqtt://h"}, "[station] id"},
		{"empty", Config{Station: "gs-01"}, "[hub] broker"},
		{"scheme", Config{Station: "gs-01", Broker: "http://h"}, "ssl://host:8883"},
		{"host", Config{Station: "gs-01", Broker: "ssl://:8883"}, "no host name"},
		{"secret", Config{Station: "gs-01", Broker: "mqtt://u:hunter2@h"}, "password_file"},
		{"garbage", Config{Station: "gs-01", Broker: "mqtt://u:hunter2@h:\x7f"}, "[hub] broker"},
		{"half a certificate", Config{Station: "gs-01", Broker: "ssl://h", CertFile: "c"}, "key_file"},
	} {
		_, err := New(tt.c, f.bus, f.box.Crit, f.box.Info, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: New = %v, want a sentence with %q and no secret", tt.name, err, tt.want)
		}
	}
	if _, err := New(Config{Station: "gs-01", Broker: "mqtt://h"}, f.bus, nil, nil, nil); err == nil {
		t.Error("a publisher without journals was made")
	}
}

func TestMissingFilesAreAConfigurationReason(t *testing.T) {
	for _, c := range []Config{
		{Broker: "mqtt://127.0.0.1:1", PasswordFile: "/nonexistent/secret"},
		{Broker: "ssl://127.0.0.1:1", CAFile: "/nonexistent/ca"},
		{Broker: "ssl://127.0.0.1:1", CertFile: "/nonexistent/c", KeyFile: "/nonexistent/k"},
	} {
		f := newFixture(t)
		f.start(c)
		f.waitReason(reasonConfig, 5*time.Second)
		if d := f.p.Status().Hub.Detail; strings.Contains(d, "/nonexistent") || !strings.Contains(d, "[hub]") {
			t.Errorf("detail %q, want the key and not the path", d)
		}
	}
}
