package station

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// A Wire is an open line to a device.
type Wire interface {
	Write(ctx context.Context, p []byte) error
	Read(ctx context.Context, p []byte) (int, error)
	Discard() error
	Close() error
}

// An Opener opens the line to a device. It is called again, with back-off,
// whenever the line was lost.
type Opener func(ctx context.Context) (Wire, error)

// RotatorOptions describes the rotator to its owner.
type RotatorOptions struct {
	Driver      rotator.Driver
	Open        Opener
	Absolute    bool          // the controller reports azimuth over the whole travel, not modulo a turn
	DeadbandDeg float64       // a setpoint closer than this to the last one is not sent
	MinInterval time.Duration // least station time between two moves
}

// An AntennaState is what the antenna is doing (contract, section 6).
type AntennaState string

// The antenna's states.
const (
	AntennaUnknown    AntennaState = "unknown"
	AntennaStandby    AntennaState = "standby"
	AntennaSlewing    AntennaState = "slewing"
	AntennaPositioned AntennaState = "positioned"
	AntennaTracking   AntennaState = "tracking"
	AntennaParking    AntennaState = "parking"
	AntennaParked     AntennaState = "parked"
	AntennaStopped    AntennaState = "stopped"
	AntennaFault      AntennaState = "fault"
)

// Bounds of the owner's loop. Station time unless they say real.
const (
	pollMoving     = 500 * time.Millisecond // 2 Hz
	pollIdle       = 5 * time.Second        // 0.2 Hz
	pollStopping   = 250 * time.Millisecond
	stopResend     = 500 * time.Millisecond
	stopTries      = 8
	stallStart     = time.Second     // a motor may take this long to start
	stallWithin    = 3 * time.Second // then it moves stallDeg in this time
	stallDeg       = 1.0
	horizonDeg     = 10.0                   // no target further ahead than this (hazard M-21)
	arriveCount    = 2                      // readings in a row that agree (hazards register, row 14)
	suspectFactor  = 1.5                    // times top speed: faster cannot be true (M-16)
	suspectNoise   = 3.0                    // degrees
	deadmanPeriods = 3                      // setpoints missing in a row
	deadmanReal    = 300 * time.Millisecond // real: the least a dead-man waits, whatever the simulated rate
	haltTimeout    = 2 * time.Second        // real: for the stop bytes and their answer
	startTimeout   = 3 * time.Second        // real: from asking for a move to its first byte
	lostReplies    = 3                      // unanswered questions in a row: the device is absent
	reopenMin      = 500 * time.Millisecond // real
	reopenMax      = 10 * time.Second       // real
	settleReadings = 2                      // readings after a (re)start before the position counts
	windingTrust   = 180.0                  // degrees that may pass unseen
	uncommandedDeg = 3.0                    // motion while idle (M-15)
)

// A motion is one move of the antenna under way.
type motion struct {
	id    string
	kind  AntennaState // slewing or parking
	req   safety.Request
	route safety.Route
	leg   int
	begun time.Duration // station monotonic
	done  func(outcome motionEnd)
}

// A motionEnd says how a motion ended: nil fault and refusal is arrival.
type motionEnd struct {
	Refusal *safety.Refusal
	Fault   error // what the device did wrong
	Stopped string
	At      unit.AzEl // true direction
}

type startRequest struct {
	m     *motion
	reply chan error // nil, or a *safety.Refusal, or a fault
}

// A rotatorOwner is the one goroutine that writes to the rotator. Three inboxes
// are looked at in order: stop, setpoint (newest wins), start.
type rotatorOwner struct {
	o     RotatorOptions
	clk   *clock.Clock
	rules *safety.Rules
	hooks rotatorHooks
	t0    time.Time

	start chan startRequest
	wake  chan struct{}
	beat  beat

	mu       sync.Mutex
	view     rotatorView
	stopReqs []stopRequest // waiting for the stop bytes
	cancel   context.CancelFunc
	slot     *track.Setpoint
	track    *tracking
	rtt      time.Duration // real, smoothed

	// Below: the owner's goroutine only.
	drv      rotator.Rotator
	move     *motion
	sent     unit.AzEl // last target given to the controller
	hasSent  bool
	sentAt   time.Duration
	stop     *stopping
	misses   int
	seen     int // readings since the line was opened
	last     unit.AzEl
	lastAt   time.Duration
	still    int
	doubts   int
	progress unit.AzEl // position at the last sign of progress
	progAt   time.Duration
	backoff  time.Duration
}

// rotatorView is what others may see of the owner.
type rotatorView struct {
	state     AntennaState
	since     time.Time
	present   bool
	why       string
	fault     safety.Code
	faultWhy  string
	suspect   string
	mech      unit.AzEl
	measured  bool
	readAt    time.Duration // station monotonic
	readTime  time.Time
	moving    bool
	windingOK bool
	target    *unit.AzEl // true direction asked for
	motionID  string
	stopSent  time.Time
	stopped   bool // confirmed by standstill
}

// rotatorHooks is how the owner asks and tells the station. None may block.
type rotatorHooks struct {
	facts   func() safety.Facts
	reading func(at time.Time, mech unit.AzEl)                   // each good reading
	state   func(from, to AntennaState, why string)              // for events
	fault   func(code safety.Code, why string)                   // latched
	stood   func(mech unit.AzEl)                                 // the antenna stands still after a move
	restore func(mech unit.AzEl) (unwrapped float64, known bool) // at the first reading
}

type tracking struct {
	req      safety.Request
	lastSet  time.Duration
	lastReal time.Time
	err      error
}

type stopping struct {
	resendAt time.Duration
	tries    int
	still    int
	last     unit.AzEl
	has      bool
}

func newRotatorOwner(o RotatorOptions, clk *clock.Clock, rules *safety.Rules, h rotatorHooks) *rotatorOwner {
	if o.DeadbandDeg <= 0 {
		o.DeadbandDeg = max(o.Driver.Caps.ResolutionDeg, 0.1)
	}
	return &rotatorOwner{o: o, clk: clk, rules: rules, hooks: h, t0: time.Now(),
		start: make(chan startRequest), wake: make(chan struct{}, 1),
		view: rotatorView{state: AntennaUnknown, why: "not opened yet", since: clk.Now()}}
}

// mono is monotonic station time since the owner was made.
func (w *rotatorOwner) mono() time.Duration { return w.clk.Station(time.Since(w.t0)) }

func (w *rotatorOwner) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

type stopRequest struct {
	why   string // what the state says; "" leaves it
	reply chan error
}

// Stop asks for a stop and returns once its bytes are written, or with why
// they could not be. It cuts off whatever exchange is under way. why is what
// the antenna's state will say.
func (w *rotatorOwner) Stop(ctx context.Context, why string) error {
	c := make(chan error, 1)
	w.mu.Lock()
	w.stopReqs = append(w.stopReqs, stopRequest{why, c})
	w.slot = nil
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.poke()
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop the rotator: %w", context.Cause(ctx))
	}
}

// Start begins a motion: it returns once the first target has been accepted by
// the controller, or with the refusal or the fault.
func (w *rotatorOwner) Start(ctx context.Context, m *motion) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	r := startRequest{m, make(chan error, 1)}
	select {
	case w.start <- r:
	case <-ctx.Done():
		return fmt.Errorf("the rotator's owner did not take the move in %v: %w", startTimeout, ctx.Err())
	}
	select {
	case err := <-r.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the rotator did not accept the move in %v: %w", startTimeout, ctx.Err())
	}
}

// BeginTrack lets setpoints through; req is asked of the gate for each.
func (w *rotatorOwner) BeginTrack(req safety.Request) {
	w.mu.Lock()
	w.track = &tracking{req: req, lastSet: w.mono(), lastReal: time.Now()}
	w.mu.Unlock()
	w.poke()
}

// EndTrack ends the tracking and halts the antenna.
func (w *rotatorOwner) EndTrack() {
	w.mu.Lock()
	on := w.track != nil && w.track.err == nil
	w.track, w.slot = nil, nil
	w.mu.Unlock()
	if on {
		ctx, cancel := context.WithTimeout(context.Background(), haltTimeout)
		defer cancel()
		w.Stop(ctx, "") // a failure shows as a lost line
	}
}

// Set implements track.Mover.
func (w *rotatorOwner) Set(sp track.Setpoint) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.track == nil {
		return errors.New("not tracking")
	}
	if w.track.err != nil {
		return w.track.err
	}
	w.slot = &sp
	w.track.lastSet, w.track.lastReal = w.mono(), time.Now()
	w.poke()
	return nil
}

// Lead implements track.Mover: half a round trip and half a period, since a
// setpoint holds until the next one.
func (w *rotatorOwner) Lead() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clk.Station(w.rtt/2) + track.Period/2
}

// View is a copy of what is known.
func (w *rotatorOwner) View() (v rotatorView, age time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view, w.mono() - w.view.readAt
}

// Reset clears a latched fault. It moves nothing.
func (w *rotatorOwner) Reset() {
	w.mu.Lock()
	w.view.fault, w.view.faultWhy, w.view.suspect = "", "", ""
	w.mu.Unlock()
	w.setState(AntennaStandby, "fault reset")
}

// ConfirmWinding tells that a person has seen the cables: the azimuth reading
// nearest to mechDeg is the true winding.
func (w *rotatorOwner) ConfirmWinding() {
	w.mu.Lock()
	w.view.windingOK = true
	w.mu.Unlock()
}

// run owns the device until ctx ends. It leaves the antenna halted.
func (w *rotatorOwner) run(ctx context.Context) {
	for ctx.Err() == nil {
		wire, err := w.o.Open(ctx)
		if err != nil {
			w.absent(err.Error())
			w.idle(ctx, w.nextBackoff())
			continue
		}
		err = w.session(ctx, wire)
		wire.Close()
		if ctx.Err() == nil {
			w.absent(err.Error())
			w.idle(ctx, w.nextBackoff())
		}
	}
}

func (w *rotatorOwner) nextBackoff() time.Duration {
	w.backoff = min(max(reopenMin, 2*w.backoff), reopenMax)
	return w.backoff
}

// absent notes that there is no line: the antenna may still be moving to its
// last target.
func (w *rotatorOwner) absent(why string) {
	w.mu.Lock()
	was := w.view.present
	w.view.present, w.view.why, w.view.measured = false, why, false
	if w.track != nil && w.track.err == nil {
		w.track.err = &safety.Refusal{Code: safety.DeviceAbsent, Why: "the rotator's line was lost: " + why, Fix: "check its cable and power; assume that the antenna may still move"}
	}
	w.mu.Unlock()
	if was {
		w.setState(AntennaUnknown, "line lost: "+why)
	}
	w.endMotion(motionEnd{Fault: fmt.Errorf("the rotator's line was lost: %s", why)})
}

// idle waits out a back-off, answering that there is no device.
func (w *rotatorOwner) idle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	w.beat.now()
	for {
		w.answerStops(fmt.Errorf("the rotator is not reachable (%s): it may still move to its last target; use the switch at the station", w.viewWhy()))
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case r := <-w.start:
			r.reply <- safety.Refuse(safety.DeviceAbsent, "check its cable, power and port, then read get_station_health", "the rotator does not answer (%s)", w.viewWhy())
		case <-w.wake:
		}
	}
}

func (w *rotatorOwner) viewWhy() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.view.why
}

// answerStops tells those who wait for a stop how it went, and what the state
// should say.
func (w *rotatorOwner) answerStops(err error) (told bool, why string) {
	w.mu.Lock()
	reqs := w.stopReqs
	w.stopReqs = nil
	w.mu.Unlock()
	for _, r := range reqs {
		r.reply <- err
		if r.why != "" {
			why = r.why
		}
	}
	return len(reqs) > 0, why
}

// session drives an open line until it is lost (the error) or ctx ends (nil).
func (w *rotatorOwner) session(ctx context.Context, wire Wire) error {
	w.drv = w.o.Driver.New(wire)
	if p, ok := w.drv.(rotator.Pacer); ok && w.clk.Simulated() {
		p.Pace(w.gap())
	}
	w.hasSent, w.seen, w.misses, w.stop, w.doubts = false, 0, 0, nil, 0
	defer func() { // whatever happens, leave it halted; the old context is over
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
		defer cancel()
		err := w.drv.Halt(hctx)
		w.answerStops(err)
	}()
	if s := w.o.Driver.Caps.Settle; s > 0 {
		t := w.clk.NewTimer(s)
		defer t.Stop()
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
	if err := w.sendStop(ctx); err != nil { // every start stops first
		return err
	}
	for ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// exchange runs one conversation with the device that Stop can cut off.
func (w *rotatorOwner) exchange(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.mu.Lock()
	if len(w.stopReqs) > 0 { // a stop came first
		w.mu.Unlock()
		return context.Canceled
	}
	w.cancel = cancel
	w.mu.Unlock()
	begun := time.Now()
	err := f(ctx)
	d := time.Since(begun)
	w.mu.Lock()
	w.cancel = nil
	if err == nil {
		w.rtt = (7*w.rtt + d) / 8
	}
	w.mu.Unlock()
	return err
}

// step does the most urgent thing and then waits for the next.
func (w *rotatorOwner) step(ctx context.Context) error {
	w.beat.now()
	if w.pendingStop() {
		return w.sendStop(ctx)
	}
	now := w.mono()
	if err := w.deadman(ctx, now); err != nil {
		return err
	}
	if sp, req, ok := w.takeSetpoint(); ok {
		if err := w.follow(ctx, sp, req); err != nil {
			return err
		}
	}
	if now >= w.pollDue() {
		if err := w.poll(ctx); err != nil {
			return err
		}
	}
	if w.stop != nil && w.mono() >= w.stop.resendAt && w.stop.still == 0 && w.stop.tries < stopTries {
		return w.sendStop(ctx) // it moves still, or says nothing
	}
	return w.rest(ctx)
}

func (w *rotatorOwner) pendingStop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.stopReqs) > 0
}

func (w *rotatorOwner) takeSetpoint() (track.Setpoint, safety.Request, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slot == nil || w.track == nil || w.track.err != nil {
		return track.Setpoint{}, safety.Request{}, false
	}
	sp := *w.slot
	w.slot = nil
	return sp, w.track.req, true
}

// rest waits until something is due or asked.
func (w *rotatorOwner) rest(ctx context.Context) error {
	d := w.pollDue() - w.mono()
	w.mu.Lock()
	busy := len(w.stopReqs) > 0 || w.slot != nil
	if w.track != nil && w.track.err == nil { // look at the dead-man in time
		d = min(d, deadmanPeriods*track.Period)
	}
	w.mu.Unlock()
	if busy || d <= 0 {
		return nil
	}
	if w.stop != nil && w.stop.still == 0 {
		d = min(d, max(0, w.stop.resendAt-w.mono()))
	}
	t := w.clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-w.wake:
	case r := <-w.start:
		return w.begin(ctx, r)
	}
	return nil
}

func (w *rotatorOwner) pollDue() time.Duration {
	every := pollIdle
	w.mu.Lock()
	tracking := w.track != nil && w.track.err == nil
	w.mu.Unlock()
	switch {
	case w.stop != nil:
		every = pollStopping
	case w.seen < settleReadings:
		every = pollStopping
	case w.move != nil || tracking || w.still < arriveCount:
		every = pollMoving
	}
	return w.lastAt + max(every, w.o.Driver.Caps.MinInterval)
}

// gap is the real time to leave between two exchanges: a simulated device is
// as fast as its clock.
func (w *rotatorOwner) gap() time.Duration { return w.clk.Real(w.o.Driver.Caps.MinInterval) }

// sendStop writes the stop bytes first and asks questions later.
func (w *rotatorOwner) sendStop(ctx context.Context) error {
	hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
	err := w.drv.Halt(hctx)
	cancel()
	told, why := w.answerStops(err)
	w.mu.Lock()
	w.slot = nil
	w.view.stopSent, w.view.stopped = w.clk.Now(), false
	w.mu.Unlock()
	w.hasSent = false
	if w.stop == nil || told {
		w.stop = &stopping{}
	}
	w.stop.tries++
	// Two readings fit between two stops, however slow the line is.
	w.stop.resendAt = w.mono() + max(stopResend, 3*w.o.Driver.Caps.MinInterval)
	if told {
		w.endMotion(motionEnd{Stopped: "stopped"})
	}
	if why != "" {
		w.setState(AntennaStopped, why)
	}
	if err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	return nil
}

// deadman halts when the tracking loop has gone silent.
func (w *rotatorOwner) deadman(ctx context.Context, now time.Duration) error {
	w.mu.Lock()
	t := w.track
	silent := t != nil && t.err == nil && now-t.lastSet > deadmanPeriods*track.Period && time.Since(t.lastReal) > deadmanReal
	if silent {
		t.err = fmt.Errorf("no setpoint for %v: the antenna was halted", (now - t.lastSet).Round(time.Millisecond))
		w.slot = nil
	}
	w.mu.Unlock()
	if !silent {
		return nil
	}
	w.setState(AntennaStopped, "the tracking loop went silent")
	return w.sendStop(ctx)
}

// begin admits a motion: the gate once more on fresh facts, then the first
// target.
func (w *rotatorOwner) begin(ctx context.Context, r startRequest) error {
	f := w.hooks.facts()
	route, ref := safety.Way(w.rules, f, r.m.req)
	if ref != nil {
		r.reply <- ref
		return nil
	}
	w.endMotion(motionEnd{Stopped: "replaced by another move"})
	m := r.m
	m.route, m.leg, m.begun = route, 0, w.mono()
	w.move = m
	w.stop = nil
	w.still = 0
	w.progress, w.progAt = w.last, w.mono()
	tgt := w.rules.True(route.Target())
	w.mu.Lock()
	w.view.target, w.view.motionID, w.view.moving = &tgt, m.id, true
	w.mu.Unlock()
	err := w.advance(ctx)
	r.reply <- err
	if err == nil {
		w.setState(m.kind, "")
		return nil
	}
	w.endMotion(motionEnd{Fault: err})
	if lerr := w.linkError(err); lerr != nil {
		return lerr
	}
	return w.sendStop(ctx) // half a command may have gone out
}

// advance gives the controller the next target on the route, never further
// ahead than horizonDeg (or two seconds of travel).
func (w *rotatorOwner) advance(ctx context.Context) error {
	m := w.move
	way := m.route.Waypoints[m.leg]
	ahead := func(from, to, speed float64) float64 {
		h := max(horizonDeg, 2*speed)
		return from + max(-h, min(h, to-from))
	}
	next := unit.AzEl{AzDeg: ahead(w.last.AzDeg, way.AzDeg, w.rules.AzSpeedDps), ElDeg: ahead(w.last.ElDeg, way.ElDeg, w.rules.ElSpeedDps)}
	if w.hasSent && next != way {
		// On its way still: renew the target only when half of it is used up.
		usedAz := math.Abs(w.sent.AzDeg-w.last.AzDeg) < max(horizonDeg, 2*w.rules.AzSpeedDps)/2
		usedEl := math.Abs(w.sent.ElDeg-w.last.ElDeg) < max(horizonDeg, 2*w.rules.ElSpeedDps)/2
		if !(usedAz && w.sent.AzDeg != way.AzDeg) && !(usedEl && w.sent.ElDeg != way.ElDeg) {
			return nil
		}
	}
	if w.hasSent && next == w.sent {
		return nil
	}
	return w.point(ctx, next)
}

func (w *rotatorOwner) point(ctx context.Context, to unit.AzEl) error {
	err := w.exchange(ctx, func(ctx context.Context) error { return w.drv.Point(ctx, to) })
	if err != nil {
		return fmt.Errorf("point: %w", err)
	}
	w.sent, w.hasSent, w.sentAt = to, true, w.mono()
	return nil
}

// follow sends one setpoint of a pass, after the gate.
func (w *rotatorOwner) follow(ctx context.Context, sp track.Setpoint, req safety.Request) error {
	d := max(math.Abs(sp.Mech.AzDeg-w.sent.AzDeg), math.Abs(sp.Mech.ElDeg-w.sent.ElDeg))
	if w.hasSent && (d < w.o.DeadbandDeg || w.mono()-w.sentAt < w.o.MinInterval) {
		return nil
	}
	req.Mech = &sp.Mech
	if ref := safety.Decide(w.rules, w.hooks.facts(), req); ref != nil {
		w.abortTrack(ref)
		return w.sendStop(ctx)
	}
	if !w.hasSent {
		w.progress, w.progAt = w.last, w.mono()
	}
	tgt := sp.Sight.AzEl
	w.mu.Lock()
	w.view.target, w.view.moving = &tgt, true
	w.mu.Unlock()
	w.stop = nil
	w.setState(AntennaTracking, "")
	return w.linkError(w.point(ctx, sp.Mech))
}

func (w *rotatorOwner) abortTrack(err error) {
	w.mu.Lock()
	if w.track != nil && w.track.err == nil {
		w.track.err = err
	}
	w.slot = nil
	w.mu.Unlock()
}

// linkError says whether an error of an exchange ends the session: a stop that
// cut it off and a single silence do not.
func (w *rotatorOwner) linkError(err error) error {
	if err == nil {
		w.misses = 0
		return nil
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	w.misses++
	if w.misses >= lostReplies {
		return err
	}
	return nil
}

// poll reads the position and acts on it.
func (w *rotatorOwner) poll(ctx context.Context) error {
	var raw unit.AzEl
	begun := w.clk.Now()
	err := w.exchange(ctx, func(ctx context.Context) (err error) {
		raw, err = w.drv.Position(ctx)
		return err
	})
	if err != nil {
		w.lastAt = w.mono()
		if !errors.Is(err, context.Canceled) {
			w.mu.Lock()
			if w.misses+1 >= lostReplies {
				w.view.present, w.view.why = false, err.Error()
			}
			w.mu.Unlock()
		}
		return w.linkError(err)
	}
	w.misses, w.backoff = 0, 0
	took := w.clk.Now().Sub(begun)
	return w.reading(ctx, raw, begun.Add(took/2), took)
}

// reading takes in one position: is it possible, where is it on the cable, has
// the antenna arrived, is it stuck.
func (w *rotatorOwner) reading(ctx context.Context, raw unit.AzEl, at time.Time, took time.Duration) error {
	now := w.mono()
	dt := (now - w.lastAt + took).Seconds()
	if w.seen == 0 {
		az, known := w.hooks.restore(raw)
		w.mu.Lock()
		w.view.windingOK = w.view.windingOK || known
		w.mu.Unlock()
		raw.AzDeg = az
	} else if !w.o.Absolute {
		raw.AzDeg = unit.Nearest(raw.AzDeg, w.last.AzDeg)
	}
	if w.seen > 0 && !w.plausible(raw, dt) {
		w.doubts++
		w.lastAt = now
		if w.doubts < 2 {
			return nil // once may be a damaged frame
		}
		why := fmt.Sprintf("the position jumped from %v to %v in %.1f s", w.last, raw, dt)
		w.doubts = 0
		w.last = raw
		return w.fail(ctx, safety.FeedbackSuspect, why)
	}
	w.doubts = 0
	moved := 0.0
	if w.seen > 0 {
		moved = max(math.Abs(raw.AzDeg-w.last.AzDeg), math.Abs(raw.ElDeg-w.last.ElDeg))
	}
	if moved <= max(w.o.Driver.Caps.ResolutionDeg, 0.1) {
		w.still++
	} else {
		w.still = 0
	}
	w.seen++
	w.last, w.lastAt = raw, now
	w.mu.Lock()
	v := &w.view
	v.mech, v.readAt, v.readTime, v.present, v.why = raw, now, at, true, ""
	v.measured = w.seen >= settleReadings
	tracking := w.track != nil && w.track.err == nil
	v.moving = w.move != nil || tracking || w.still < arriveCount
	first := v.state == AntennaUnknown && v.measured
	w.mu.Unlock()
	w.hooks.reading(at, raw)
	if first {
		w.setState(AntennaStandby, "position read")
	}
	switch {
	case w.stop != nil:
		return w.confirmStop(raw)
	case w.move != nil:
		return w.progressed(ctx, raw)
	case tracking && w.hasSent:
		return w.stalled(ctx, raw, w.sent)
	case !tracking && w.still == 0 && w.seen > settleReadings && !w.hasSent:
		return w.uncommanded(ctx, raw)
	}
	return nil
}

func (w *rotatorOwner) plausible(p unit.AzEl, dt float64) bool {
	t := w.rules.Travel
	in := p.Finite() && p.AzDeg >= t.AzMinDeg-10 && p.AzDeg <= t.AzMaxDeg+10 && p.ElDeg >= t.ElMinDeg-10 && p.ElDeg <= t.ElMaxDeg+10
	if !in && w.seen > settleReadings {
		return false
	}
	dt += 0.2 // the reading's own time is not known better
	return math.Abs(p.AzDeg-w.last.AzDeg) <= suspectFactor*w.rules.AzSpeedDps*dt+suspectNoise &&
		math.Abs(p.ElDeg-w.last.ElDeg) <= suspectFactor*w.rules.ElSpeedDps*dt+suspectNoise
}

// confirmStop counts equal readings after a stop.
func (w *rotatorOwner) confirmStop(p unit.AzEl) error {
	s := w.stop
	res := max(w.o.Driver.Caps.ResolutionDeg, 0.1)
	if s.has && math.Abs(p.AzDeg-s.last.AzDeg) <= res && math.Abs(p.ElDeg-s.last.ElDeg) <= res {
		s.still++
	} else {
		s.still = 0
	}
	s.last, s.has = p, true
	if s.still >= arriveCount {
		w.stop = nil
		w.progress, w.progAt = p, w.mono()
		w.hooks.stood(p)
		w.mu.Lock()
		w.view.stopped, w.view.moving = true, false
		ended := w.view.state == AntennaTracking && w.track == nil
		w.mu.Unlock()
		if ended {
			w.setState(AntennaPositioned, "tracking ended")
		}
		return nil
	}
	if s.tries >= stopTries && w.mono() > s.resendAt {
		w.stop = nil
		w.latch(safety.DeviceFault, fmt.Sprintf("the antenna still moves after %d stops: use the switch at the station", stopTries))
	}
	return nil
}

// progressed follows a motion to its end.
func (w *rotatorOwner) progressed(ctx context.Context, p unit.AzEl) error {
	m := w.move
	way := m.route.Waypoints[m.leg]
	tol := max(2*w.o.Driver.Caps.ResolutionDeg, w.o.DeadbandDeg, 0.3)
	if math.Abs(p.AzDeg-way.AzDeg) <= tol && math.Abs(p.ElDeg-way.ElDeg) <= tol {
		if m.leg+1 < len(m.route.Waypoints) {
			m.leg++
			w.progress, w.progAt = p, w.mono()
			return w.linkError(w.advance(ctx))
		}
		if w.still >= arriveCount {
			kind := m.kind
			w.hooks.stood(p)
			w.hasSent = false
			w.mu.Lock()
			w.view.moving = false
			w.mu.Unlock()
			if kind == AntennaParking {
				w.setState(AntennaParked, "")
			} else {
				w.setState(AntennaPositioned, "")
			}
			w.endMotion(motionEnd{At: w.rules.True(p)})
		}
		return nil
	}
	if ref := safety.Decide(w.rules, w.hooks.facts(), m.req); ref != nil { // the wind came, the clock went
		w.endMotion(motionEnd{Refusal: ref})
		w.setState(AntennaStopped, ref.Why)
		return w.sendStop(ctx)
	}
	if err := w.linkError(w.advance(ctx)); err != nil {
		return err
	}
	return w.stalled(ctx, p, way)
}

// stalled faults when the antenna is driven and does not move.
func (w *rotatorOwner) stalled(ctx context.Context, p, target unit.AzEl) error {
	now := w.mono()
	left := max(math.Abs(p.AzDeg-target.AzDeg), math.Abs(p.ElDeg-target.ElDeg))
	moved := max(math.Abs(p.AzDeg-w.progress.AzDeg), math.Abs(p.ElDeg-w.progress.ElDeg))
	if moved >= stallDeg || left < 2*stallDeg {
		w.progress, w.progAt = p, now
		return nil
	}
	if now-w.progAt <= stallStart+stallWithin {
		return nil
	}
	return w.fail(ctx, safety.Stalled, fmt.Sprintf("driven towards %v for %.1f s, moved %.1f° and stands at %v", w.rules.True(target), (now-w.progAt).Seconds(), moved, w.rules.True(p)))
}

// uncommanded stops an antenna that moves by itself.
func (w *rotatorOwner) uncommanded(ctx context.Context, p unit.AzEl) error {
	d := max(math.Abs(p.AzDeg-w.progress.AzDeg), math.Abs(p.ElDeg-w.progress.ElDeg))
	if m := w.hooks.facts().Mode; m == safety.ModeOnSite || m == safety.ModeMaint { // a person moves it by hand
		w.progress, w.progAt = p, w.mono()
		return nil
	}
	if w.progAt == 0 || d <= uncommandedDeg {
		if w.progAt == 0 {
			w.progress, w.progAt = p, w.mono()
		}
		return nil
	}
	return w.fail(ctx, safety.DeviceFault, fmt.Sprintf("the antenna moved %.1f° by itself, from %v to %v", d, w.rules.True(w.progress), w.rules.True(p)))
}

// fail stops, latches a fault and ends what was under way.
func (w *rotatorOwner) fail(ctx context.Context, code safety.Code, why string) error {
	w.latch(code, why)
	err := w.sendStop(ctx)
	w.abortTrack(&safety.Refusal{Code: code, Why: why, Fix: "look at the mount, then an operator runs: gsd-mcp reset " + string(code)})
	w.endMotion(motionEnd{Fault: fmt.Errorf("%s: %s", code, why)})
	return err
}

func (w *rotatorOwner) latch(code safety.Code, why string) {
	w.mu.Lock()
	w.view.fault, w.view.faultWhy = code, why
	if code == safety.FeedbackSuspect {
		w.view.suspect = why
	}
	w.mu.Unlock()
	w.setState(AntennaFault, why)
	w.hooks.fault(code, why)
}

func (w *rotatorOwner) endMotion(e motionEnd) {
	m := w.move
	if m == nil {
		return
	}
	w.move = nil
	w.progress, w.progAt = w.last, w.mono()
	w.mu.Lock()
	w.view.motionID = ""
	w.mu.Unlock()
	if e.Stopped != "" {
		w.setState(AntennaStopped, e.Stopped)
	}
	m.done(e)
}

func (w *rotatorOwner) setState(s AntennaState, why string) {
	w.mu.Lock()
	from := w.view.state
	if from == s || from == AntennaFault && s != AntennaStandby && w.view.fault != "" {
		w.mu.Unlock()
		return
	}
	w.view.state, w.view.since = s, w.clk.Now()
	w.mu.Unlock()
	w.hooks.state(from, s, why)
}
