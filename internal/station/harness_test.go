package station

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// worldStart is when the simulated world begins: the embedded elements are two
// days old then, and the ISS comes up to 40.6° from 11:41:26 to 11:52:06.
var worldStart = time.Date(2026, 8, 13, 11, 30, 0, 0, time.UTC)

// zenithStart is before a pass of the ISS that goes up to 87.0°, from 09:15:43 on.
var zenithStart = time.Date(2026, 8, 12, 9, 10, 0, 0, time.UTC)

// greenwich is where the simulated station stands.
var greenwich = unit.Site{LatDeg: 51.4779, LonDeg: -0.0015, AltM: 46}

// Callers of the tests.
var (
	alice   = Caller{Role: Operator, UID: 1001, User: "alice", Session: "s-alice"}
	bob     = Caller{Role: Operator, UID: 1002, User: "bob", Session: "s-bob"}
	copilot = Caller{Role: Operator, Agent: true, UID: 2001, User: "copilot", Session: "s-copilot"}
	visitor = Caller{Role: Observer, UID: 3001, User: "visitor", Session: "s-visitor"}
	chief   = Caller{Role: Supervisor, UID: 1, User: "chief", Session: "s-chief"}
)

// A note is one thing that happened, in order: bytes to the rotator ("wire"),
// its line being opened ("open"), an audit line ("audit"), a file ("save").
type note struct {
	at   time.Time
	kind string
	text string
	rec  *auditRecord // "audit"
}

// A world is a whole station in a synctest bubble with simulated devices.
type world struct {
	t     *testing.T
	clk   *clock.Clock
	rules safety.Rules
	mount *sim.Mount
	ctl   *sim.Controller
	rig   *sim.IC9700
	store *memStore
	bus   *event.Bus
	st    *Station
	sky   *skies
	opt   Options

	ctx    context.Context // of the devices and watchers
	end    context.CancelFunc
	wg     sync.WaitGroup
	stop   context.CancelFunc // of the station
	ended  chan struct{}
	events <-chan event.Event

	mu        sync.Mutex
	notes     []note
	trust     Trust
	powerLow  bool
	durable   error
	auditErr  error
	auditWait time.Duration
	onMove    func(to unit.AzEl) // told of each target on the rotator's wire
	gone      bool               // the rotator's port is not there
	rigGone   bool
	link      *sim.MemLink // the rotator's newest
	rigLink   *sim.MemLink
	happened  []event.Event
}

// setup changes what a world is made of before the station starts.
type setup struct {
	protocol string
	mount    sim.MountConfig
	rules    func(*safety.Rules)
	options  func(*Options)
	rotator  func(*RotatorOptions)
	noRadio  bool
	store    *memStore // from an earlier station
	boot     string
	modulo   bool      // the controller answers 0..360 and the station knows it
	idle     bool      // do not wait for the first position
	from     time.Time // when it begins; zero: worldStart
}

// inWorld runs f with a station that runs, in fake time.
func inWorld(t *testing.T, s setup, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, s)
		defer w.close()
		w.start()
		if !s.idle {
			w.until(time.Minute, "the first position is read", func() bool { return w.st.Antenna().Measured != nil && w.still() })
		}
		f(w)
	})
}

func newWorld(t *testing.T, s setup) *world {
	t.Helper()
	if s.from.IsZero() {
		s.from = worldStart
	}
	clk, err := clock.Simulated(s.from, time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if s.protocol == "" {
		s.protocol = "easycomm2"
	}
	if s.mount == (sim.MountConfig{}) {
		s.mount = sim.DefaultMount()
		s.mount.StartAzDeg, s.mount.StartElDeg = 180, 80
	}
	w := &world{t: t, clk: clk, store: s.store, sky: newSkies(clk), ended: make(chan struct{}), trust: Trust{Good: true, State: "simulated"}}
	if w.store == nil {
		w.store = newMemStore()
	}
	w.store.world = w
	m := s.mount
	w.rules = safety.Rules{
		Travel:    safety.Travel{AzMinDeg: m.AzMinDeg, AzMaxDeg: m.AzMaxDeg, ElMinDeg: m.ElMinDeg, ElMaxDeg: m.ElMaxDeg},
		MarginDeg: 0, AzSpeedDps: m.AzSpeedDps, ElSpeedDps: m.ElSpeedDps, AccelDps2: m.AccelDps2,
		FeedbackMoving: 2 * time.Second, FeedbackIdle: 10 * time.Second,
	}
	if s.rules != nil {
		s.rules(&w.rules)
	}
	w.mount = sim.NewMount(clk, m)
	if w.ctl, err = sim.NewController(s.protocol, w.mount); err != nil {
		t.Fatal(err)
	}
	if s.modulo {
		w.ctl.SetFault(sim.RotatorModulo)
	}
	drv, err := rotator.Lookup(s.protocol)
	if err != nil {
		t.Fatal(err)
	}
	w.ctx, w.end = context.WithCancel(context.Background())
	ro := &RotatorOptions{Driver: drv, Open: w.openRotator, Absolute: !s.modulo}
	if s.rotator != nil {
		s.rotator(ro)
	}
	w.bus = event.NewBus(event.Options{Station: "test", Simulated: true, BootID: "boot", Clock: clk})
	var unsubscribe func()
	w.events, unsubscribe = w.bus.Subscribe(4096)
	w.wg.Go(func() {
		defer unsubscribe()
		for {
			select {
			case <-w.ctx.Done():
				return
			case e := <-w.events:
				w.mu.Lock()
				w.happened = append(w.happened, e)
				w.mu.Unlock()
			}
		}
	})
	if s.boot == "" {
		s.boot = "boot-1"
	}
	w.opt = Options{Clock: clk, Site: greenwich, Rules: w.rules, BeamwidthDeg: 30, Park: unit.AzEl{AzDeg: 180, ElDeg: 80}, Rotator: ro,
		Store: w.store, Audit: w, Bus: w.bus, Orbits: w.sky, BootID: s.boot, Simulated: true, AgentBudget: DefaultAgentBudget(),
		Trust:   func() Trust { w.mu.Lock(); defer w.mu.Unlock(); return w.trust },
		Power:   func() (bool, string) { w.mu.Lock(); defer w.mu.Unlock(); return w.powerLow, "4.6 V" },
		Durable: func() error { w.mu.Lock(); defer w.mu.Unlock(); return w.durable },
	}
	if !s.noRadio {
		model, err := radio.Lookup("icom-ic9700")
		if err != nil {
			t.Fatal(err)
		}
		w.rig = sim.NewIC9700(clk)
		w.opt.Radio = &RadioOptions{Model: model, Open: w.openRadio}
	}
	if s.options != nil {
		s.options(&w.opt)
	}
	if w.st, _, err = New(w.opt); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	go func() { defer close(w.ended); w.st.Run(ctx) }()
}

// shut ends the station as SIGTERM does, and waits for it.
func (w *world) shut() {
	w.stop()
	<-w.ended
}

func (w *world) close() {
	if w.stop != nil {
		w.shut()
	}
	w.end()
	w.mu.Lock()
	for _, l := range []*sim.MemLink{w.link, w.rigLink} {
		if l != nil {
			l.Unplug()
		}
	}
	w.mu.Unlock()
	w.wg.Wait()
}

// A tappedWire is a wire that says what went over it.
type tappedWire struct {
	*sim.MemLink
	w    *world
	kind string
}

func (t tappedWire) Write(ctx context.Context, p []byte) error {
	if t.kind == "rig" { // it talks a lot
		return t.MemLink.Write(ctx, p)
	}
	n := note{kind: t.kind, text: string(p)}
	t.w.add(n)
	t.w.mu.Lock()
	f := t.w.onMove
	t.w.mu.Unlock()
	if f != nil && isMove(n) {
		f(target(n))
	}
	return t.MemLink.Write(ctx, p)
}

func (t tappedWire) Close() error { t.MemLink.Unplug(); return nil }

func (w *world) add(n note) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n.at = time.Now()
	w.notes = append(w.notes, n)
}

func (w *world) openRotator(context.Context) (Wire, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return nil, errors.New("no such port")
	}
	link, dev := sim.Wire()
	w.link = link
	w.wg.Go(func() { w.ctl.Run(w.ctx, dev) })
	w.notes = append(w.notes, note{at: time.Now(), kind: "open"})
	return tappedWire{link, w, "wire"}, nil
}

func (w *world) openRadio(context.Context) (Wire, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.rigGone {
		return nil, errors.New("no such port")
	}
	link, dev := sim.Wire()
	w.rigLink = link
	w.wg.Go(func() { w.rig.Run(w.ctx, dev) })
	return tappedWire{link, w, "rig"}, nil
}

// unplug pulls the rotator's cable; plug puts it back.
func (w *world) unplug() {
	w.mu.Lock()
	w.gone = true
	l := w.link
	w.mu.Unlock()
	l.Unplug()
}

func (w *world) plug() {
	w.mu.Lock()
	w.gone = false
	w.mu.Unlock()
}

// Append implements Auditor.
func (w *world) Append(rec any) (uint64, error) {
	w.mu.Lock()
	wait, err := w.auditWait, w.auditErr
	w.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	if err != nil {
		return 0, err
	}
	r := rec.(auditRecord)
	w.add(note{kind: "audit", text: r.What, rec: &r})
	w.mu.Lock()
	defer w.mu.Unlock()
	return uint64(len(w.notes)), nil
}

// set changes a fact of the world.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// mark is a place in the notes; since gives what came after it.
func (w *world) mark() int {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.notes)
}

func (w *world) since(m int, kinds ...string) []note {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []note
	for _, n := range w.notes[m:] {
		for _, k := range kinds {
			if n.kind == k {
				out = append(out, n)
			}
		}
	}
	return out
}

// audits gives the audit lines of a command, by what they are.
func (w *world) audits(command string) (what []string) {
	for _, n := range w.since(0, "audit") {
		if n.rec.Command == command {
			what = append(what, n.text)
		}
	}
	return what
}

// EasyComm II on the wire.
func isStop(n note) bool { return n.kind == "wire" && strings.Contains(n.text, "SA SE") }
func isMove(n note) bool {
	return n.kind == "wire" && !strings.Contains(n.text, "SA SE") && strings.ContainsAny(n.text, "0123456789")
}

// stops counts the stops on the wire since a mark.
func (w *world) stops(m int) (n int) {
	for _, x := range w.since(m, "wire") {
		if isStop(x) {
			n++
		}
	}
	return n
}

// target reads the position that a move asks for.
func target(n note) (p unit.AzEl) {
	fmt.Sscanf(n.text, "AZ%f EL%f", &p.AzDeg, &p.ElDeg)
	return p
}

func moves(ns []note) (out []note) {
	for _, n := range ns {
		if isMove(n) {
			out = append(out, n)
		}
	}
	return out
}

// until lets time pass until a condition holds, at most for max.
func (w *world) until(max time.Duration, what string, cond func() bool) {
	w.t.Helper()
	for end := time.Now().Add(max); ; {
		synctest.Wait()
		if cond() {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within %v; antenna %+v; truth %+v", what, max, w.st.Antenna(), w.mount.Truth())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// sleep lets time pass.
func (w *world) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// still reports whether the owner knows that the antenna stands.
func (w *world) still() bool { return !w.st.Antenna().Moving }

func (w *world) arrived() bool {
	s := w.st.Antenna().State
	return s == AntennaPositioned || s == AntennaParked
}

func (w *world) point(c Caller, az, el float64) Result {
	t := unit.AzEl{AzDeg: az, ElDeg: el}
	return w.st.Do(context.Background(), Command{Caller: c, Verb: VerbPoint, Target: &t, Args: t})
}

func (w *world) do(c Caller, v Verb) Result {
	return w.st.Do(context.Background(), Command{Caller: c, Verb: v})
}

// mustPoint points and fails the test when that is refused.
func (w *world) mustPoint(c Caller, az, el float64) Result {
	w.t.Helper()
	r := w.point(c, az, el)
	if r.Refusal != nil || r.Err != nil {
		w.t.Fatalf("point to %v/%v: refusal %v, error %v", az, el, r.Refusal, r.Err)
	}
	return r
}

// wantCode fails unless a command was refused with a code.
func (w *world) wantCode(r Result, want safety.Code) *safety.Refusal {
	w.t.Helper()
	if r.Refusal == nil || r.Refusal.Code != want {
		w.t.Fatalf("got refusal %v, error %v; want %s", r.Refusal, r.Err, want)
	}
	if r.Refusal.Why == "" || r.Refusal.Fix == "" {
		w.t.Errorf("refusal without a reason or a way out: %+v", r.Refusal)
	}
	return r.Refusal
}

// saw gives the events of a type so far.
func (w *world) saw(kind string) (out []event.Event) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.happened {
		if strings.Contains(e.Type, kind) {
			out = append(out, e)
		}
	}
	return out
}

// watch calls f every so often until the station ends or the returned function
// is called.
func (w *world) watch(every time.Duration, f func()) (done func()) {
	ctx, cancel := context.WithCancel(w.ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-time.After(every):
				f()
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

const iss = 25544

// job is the first pass of a satellite from now on that climbs over minEl and not
// over maxEl.
func (w *world) job(norad int, minEl, maxEl float64) PassJob {
	w.t.Helper()
	o, _ := w.sky.Orbit(norad)
	now := w.clk.Now()
	found, why, err := passes.Find(context.Background(), o, greenwich, passes.Options{From: now.Add(3 * time.Minute), To: now.Add(72 * time.Hour), Horizon: w.rules.Horizon, MinElevationDeg: minEl})
	for _, p := range found {
		if p.MaxElDeg <= maxEl {
			return jobOf(p)
		}
	}
	w.t.Fatalf("no pass of %d up to %v°..%v°: %d found, %v, %v", norad, minEl, maxEl, len(found), why, err)
	return PassJob{}
}

func jobOf(p passes.Pass) PassJob {
	return PassJob{ScheduledID: "sp-" + p.ID, PassID: p.ID, NoradID: p.NoradID, Satellite: p.Satellite, AOS: p.AOS.Time, TCA: p.TCA.Time, LOS: p.LOS.Time, MaxElDeg: p.MaxElDeg,
		Downlink: radio.Tuning{FrequencyHz: 437_800_000, Mode: "FM"}, By: event.Author{Kind: "person", UID: 1001, User: "alice"}}
}

// clockTo lets time pass until the station's clock shows at.
func (w *world) clockTo(at time.Time) {
	if d := at.Sub(w.clk.Now()); d > 0 {
		w.sleep(d)
	}
}

// A work is a pass under way.
type work struct {
	w      *world
	done   chan PassEnd
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	states []string
}

// begin works a pass from two minutes before it.
func (w *world) begin(job PassJob) *work {
	w.clockTo(job.AOS.Add(-2 * time.Minute))
	ctx, cancel := context.WithCancelCause(context.Background())
	k := &work{w: w, done: make(chan PassEnd, 1), cancel: cancel}
	go func() {
		k.done <- w.st.RunPass(ctx, job, func(state, _, _ string) {
			k.mu.Lock()
			defer k.mu.Unlock()
			k.states = append(k.states, state)
		})
	}()
	return k
}

func (k *work) end() PassEnd {
	defer k.cancel(nil)
	return <-k.done
}

func (k *work) saw() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]string(nil), k.states...)
}

func (k *work) in(state string) func() bool {
	return func() bool { s := k.saw(); return len(s) > 0 && s[len(s)-1] == state }
}

// errorOfTruth measures how far the antenna really is off a satellite.
func (w *world) errorOfTruth(norad int) float64 {
	o, _ := w.sky.Orbit(norad)
	l, err := o.Look(greenwich, w.clk.Now())
	if err != nil {
		w.t.Error(err)
	}
	t := w.mount.Truth()
	return unit.Separation(w.rules.True(unit.AzEl{AzDeg: t.AzDeg, ElDeg: t.ElDeg}), l.Pointing())
}

func dump(ns []note) string {
	var b bytes.Buffer
	for _, n := range ns {
		fmt.Fprintf(&b, "%s %-5s %q\n", n.at.Format("15:04:05.000"), n.kind, n.text)
	}
	return b.String()
}

func trackTo(az, el float64) track.Setpoint {
	p := unit.AzEl{AzDeg: az, ElDeg: el}
	return track.Setpoint{Mech: p, Sight: track.Sight{AzEl: p}, For: time.Now()}
}
