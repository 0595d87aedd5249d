package station

import (
	"context"
	"errors"
	"fmt"
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
	MinInterval time.Duration // least station time between two setpoints
	Watch       Watch         // the zero value: DefaultWatch
}

// A Watch is what is expected of a mount: anything else is a stop and a fault.
// Times are station time. The letters are those of the hazard register.
type Watch struct {
	StallDeg       float64       // driven, and an axis moved less than this ...
	StallWithin    time.Duration // ... in this time ...
	StartWithin    time.Duration // ... after this time to start: a stall (M-12)
	WrongWayDeg    float64       // this far away from the target at first: wired the wrong way (M-13)
	OvershootDeg   float64       // this far past the target: a runaway (M-14)
	UncommandedDeg float64       // motion of an idle antenna (M-15)
	JumpFactor     float64       // times top speed: faster cannot be true (M-16)
	StopWithin     time.Duration // still by then after a stop, beside the mount's own stopping time (M-18) ...
	StopRetry      time.Duration // ... and stop is sent again this often
	TrackErrorDeg  float64       // off the target by this ...
	TrackErrorFor  time.Duration // ... for so long, and not on its way at speed: it obeys nothing
}

// DefaultWatch are the values of a new station.toml.
func DefaultWatch() Watch {
	return Watch{StallDeg: 1, StallWithin: 3 * time.Second, StartWithin: time.Second, WrongWayDeg: 3, OvershootDeg: 5, UncommandedDeg: 3,
		JumpFactor: 1.5, StopWithin: 2 * time.Second, StopRetry: 500 * time.Millisecond, TrackErrorDeg: 10, TrackErrorFor: 5 * time.Second}
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
	horizonDeg     = 10.0                   // no target further ahead than this (hazard M-21) ...
	horizonTime    = 2.0                    // ... or than this many seconds of travel
	suspectNoise   = 3.0                    // degrees beside what the speed allows
	echoFactor     = 1.25                   // times top speed: a target reached faster is an echo ...
	echoNoise      = 1.0                    // ... beside these degrees
	deadmanPeriods = 3                      // setpoints missing in a row
	deadmanReal    = 300 * time.Millisecond // real: the least a dead-man waits, whatever the simulated rate
	watchReal      = time.Second            // real: the least time after which a silence or a standstill is held against the device
	staleReal      = time.Second            // real: a wire is not faster in simulated time
	haltTimeout    = 2 * time.Second        // real: for the stop bytes and their answer
	startTimeout   = 3 * time.Second        // real: from asking for a move to its first byte
	leaveTimeout   = 6 * time.Second        // real: from the end's stop to standstill; systemd waits 10 s
	lostReplies    = 3                      // unanswered questions in a row: the device is absent
	reopenMin      = 500 * time.Millisecond // real
	reopenMax      = 10 * time.Second       // real
	settleReadings = 2                      // readings after a (re)start before the position counts
	stopsUnseen    = 3                      // stops in a row where no standstill can be read
	windingTrust   = 180.0                  // degrees that may pass unseen
)

// A motion is one move of the antenna under way.
type motion struct {
	id   string
	kind AntennaState // slewing or parking
	req  safety.Request
	done func(outcome motionEnd)

	route safety.Route
	leg   int
	from  unit.AzEl     // where the leg began
	coast unit.AzEl     // degrees that the mount may run on from its speed then
	begun time.Duration // station monotonic

	astray int // readings in a row that go where they must not

	linger time.Duration // it is not over before this long after asked
	asked  time.Duration // when it was given its target, station monotonic
}

// way is the waypoint that the motion is going to.
func (m *motion) way() unit.AzEl { return m.route.Waypoints[m.leg] }

// A motionEnd says how a motion ended: nil fault and refusal is arrival.
type motionEnd struct {
	Refusal *safety.Refusal
	Fault   error // what the device did wrong
	Stopped string
	At      unit.AzEl // true direction
}

type startRequest struct {
	m     *motion
	renew *safety.Request // another target for m, which is under way
	reply chan error      // nil, or a *safety.Refusal, or a fault
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
	over     bool          // run has returned

	// Below: the owner's goroutine only.
	drv      rotator.Rotator
	ending   bool // the station ends: nothing begins
	move     *motion
	sent     unit.AzEl // last target given to the controller
	hasSent  bool
	sentAt   time.Duration
	want     unit.AzEl // where the satellite is, as last asked for
	stop     *stopping
	misses   int
	seen     int // readings since the line was opened
	last     unit.AzEl
	before   unit.AzEl // the reading before last
	beforeAt time.Duration
	hasLast  bool          // last holds a reading of this process
	goodAt   time.Duration // when last was read
	goodReal time.Time
	pollAt   time.Duration // when the position was last asked for
	doubts   int
	stance   stance
	idle     unit.AzEl // where the antenna stands while nobody moves it
	hasIdle  bool
	axes     [2]axisWatch
	offSince time.Duration // off the satellite since then, 0: on it
	backoff  time.Duration
}

// rotatorView is what others may see of the owner.
type rotatorView struct {
	state      AntennaState
	since      time.Time
	present    bool
	why        string
	fault      safety.Code
	faultWhy   string
	suspect    string
	mech       unit.AzEl
	measured   bool
	readAt     time.Duration // station monotonic
	readTime   time.Time
	moving     bool
	windingOK  bool
	target     *unit.AzEl // true direction asked for
	motionID   string     // of the motion under way
	lastMotion string     // of the newest motion
	stopSent   time.Time
	stopped    bool // confirmed by standstill
}

// rotatorHooks is how the owner asks and tells the station. None may block.
type rotatorHooks struct {
	facts   func() safety.Facts
	holds   func(holder string) bool                             // the lease is still his
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

func newRotatorOwner(o RotatorOptions, clk *clock.Clock, rules *safety.Rules, h rotatorHooks) *rotatorOwner {
	if o.DeadbandDeg <= 0 {
		o.DeadbandDeg = max(o.Driver.Caps.ResolutionDeg, 0.1)
	}
	if o.Watch == (Watch{}) {
		o.Watch = DefaultWatch()
	}
	return &rotatorOwner{o: o, clk: clk, rules: rules, hooks: h, t0: time.Now(),
		start: make(chan startRequest), wake: make(chan struct{}, 1),
		view: rotatorView{state: AntennaUnknown, why: "not opened yet", since: clk.Now()}}
}

// setOnly reports whether the controller cannot tell its position. Then the
// station keeps the line and stops the antenna, and never moves it.
func (w *rotatorOwner) setOnly() bool { return !w.o.Driver.Caps.Feedback }

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
	only  string // id of the motion to stop; "" stops whatever moves
	reply chan error
}

// Stop asks for a stop and returns once its bytes are written, or with why
// they could not be. It cuts off whatever exchange is under way and ends the
// tracking. why is what the antenna's state will say.
func (w *rotatorOwner) Stop(ctx context.Context, why string) error {
	return w.askStop(ctx, stopRequest{why: why})
}

// StopMotion stops one motion and leaves another that took its place alone.
func (w *rotatorOwner) StopMotion(ctx context.Context, id, why string) error {
	return w.askStop(ctx, stopRequest{why: why, only: id})
}

func (w *rotatorOwner) askStop(ctx context.Context, r stopRequest) error {
	r.reply = make(chan error, 1)
	w.mu.Lock()
	if r.only != "" && r.only != w.view.motionID {
		w.mu.Unlock()
		return nil
	}
	if w.over {
		w.mu.Unlock()
		return errors.New("the station has ended and left the rotator halted")
	}
	w.stopReqs = append(w.stopReqs, r)
	if r.only == "" {
		w.slot = nil
		if w.track != nil && w.track.err == nil {
			w.track.err = errors.New("the antenna was stopped")
		}
	}
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.poke()
	select {
	case err := <-r.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("stop the rotator: %w", context.Cause(ctx))
	}
}

// Start begins a motion: it returns once the first target has been accepted by
// the controller, or with the refusal or the fault.
func (w *rotatorOwner) Start(ctx context.Context, m *motion) error {
	return w.ask(ctx, startRequest{m: m, reply: make(chan error, 1)})
}

// ask hands a request to the owner's goroutine and waits for its answer.
func (w *rotatorOwner) ask(ctx context.Context, r startRequest) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("the move was given up before it began: %w", err)
	}
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

// EndTrack ends the tracking and halts the antenna, unless somebody else has
// moved or stopped it meanwhile.
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
	if w.slot == nil {
		w.slot = new(track.Setpoint)
	}
	*w.slot = sp
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
// is the true winding.
func (w *rotatorOwner) ConfirmWinding() {
	w.mu.Lock()
	w.view.windingOK = true
	w.mu.Unlock()
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
