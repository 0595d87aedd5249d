package station

import (
	"context"
	"math"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// How a fault ends.
const (
	carriesOn = iota // the move arrives all the same
	latches          // stopped, and held until an operator's reset
	loses            // stopped or cut off; it goes on by itself when the controller is well, the move does not
	obeysLate        // a stop is sent until the antenna stands
	unseen           // nothing that the station reads tells of it
)

// A switchCase is one fault of the simulated controller and what has to come
// of it. The antenna begins at 180/80 and is sent to 20/20.
type switchCase struct {
	fault  sim.RotatorFault
	hazard string // row of docs/safety.md
	set    setup
	to     unit.AzEl     // zero: 20/20
	idle   bool          // the fault comes while the antenna stands, and no move is asked for
	first  bool          // the fault is there from power-up on
	after  time.Duration // the fault comes so long after the move has begun
	end    int
	code   safety.Code   // latched, or in the result of the move
	within time.Duration // from the fault to the code
	stands time.Duration // from the code to where the true antenna moves no more
}

// at makes a mount that begins elsewhere.
func at(az, el float64, change func(*sim.MountConfig)) sim.MountConfig {
	m := sim.DefaultMount()
	m.StartAzDeg, m.StartElDeg = az, el
	if change != nil {
		change(&m)
	}
	return m
}

// south is a mount that turns 180° both ways from south.
func south(m *sim.MountConfig) { m.AzMinDeg, m.AzMaxDeg = -180, 180 }

// switches are all faults of sim.RotatorFaults, some more than once.
func switches() []switchCase {
	const brake = time.Second // half a second of braking, and the bytes
	return []switchCase{
		// The wire. A frame that is none is no position (M-27, M-17, M-20).
		{fault: sim.RotatorMute, hazard: "M-17", after: 4 * time.Second, end: loses, code: safety.FeedbackStale, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorMute, hazard: "M-20", idle: true, end: loses, code: safety.DeviceAbsent, within: 15 * time.Second, stands: brake},
		{fault: sim.RotatorGarbage, hazard: "M-27", after: 4 * time.Second, end: loses, code: safety.FeedbackStale, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorNoiseLine, hazard: "M-27", after: 4 * time.Second, end: loses, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorStrayByte, hazard: "M-27", after: 4 * time.Second, end: loses, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorFrameGap, hazard: "M-17", after: 4 * time.Second, end: loses, code: safety.FeedbackStale, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorBitFlip, hazard: "M-16", after: 4 * time.Second, end: carriesOn},
		{fault: sim.RotatorBitFlip, hazard: "M-16", idle: true, end: carriesOn},
		{fault: sim.RotatorStaleBurst, hazard: "M-25", after: 4 * time.Second, end: carriesOn},
		{fault: sim.RotatorLate, hazard: "M-25", after: 4 * time.Second, end: carriesOn},
		{fault: sim.RotatorUnplug, hazard: "M-20", after: 4 * time.Second, end: loses, within: time.Second, stands: brake},

		// The controller.
		{fault: sim.RotatorSwallowStop, hazard: "M-18", after: 4 * time.Second, end: obeysLate, stands: 3 * time.Second}, // its target is near (M-21)
		{fault: sim.RotatorDropStop, hazard: "M-18", after: 4 * time.Second, end: obeysLate, stands: 2 * time.Second},
		{fault: sim.RotatorHalfCommands, hazard: "M-19", set: setup{protocol: "gs232b"}, after: 4 * time.Second, end: obeysLate, stands: brake},
		{fault: sim.RotatorReject, hazard: "M-12", after: 4 * time.Second, end: latches, code: safety.Stalled, within: 7 * time.Second, stands: brake},
		{fault: sim.RotatorBootDeaf, hazard: "M-23", after: 4 * time.Second, end: loses, code: safety.FeedbackStale, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorBootHoming, hazard: "M-24", after: 4 * time.Second, end: loses, code: safety.FeedbackStale, within: 3 * time.Second, stands: 13 * time.Second}, // deaf to stop too

		// The mount.
		{fault: sim.RotatorJam, hazard: "M-12", after: 4 * time.Second, end: latches, code: safety.Stalled, within: 5 * time.Second, stands: brake},
		{fault: sim.RotatorRunAway, hazard: "M-14", after: 4 * time.Second, end: latches, code: safety.DeviceFault, within: 20 * time.Second, stands: time.Minute}, // to its end stops
		{fault: sim.RotatorWrongWay, hazard: "M-13", first: true, end: latches, code: safety.DeviceFault, within: 2 * time.Second, stands: brake},
		{fault: sim.RotatorUncommanded, hazard: "M-15", idle: true, end: latches, code: safety.DeviceFault, within: 25 * time.Second, stands: 10 * time.Minute}, // no stop helps

		// Feedback that lies.
		{fault: sim.RotatorEchoOnly, hazard: "M-16", first: true, end: latches, code: safety.FeedbackSuspect, within: 2 * time.Second, stands: brake},
		{fault: sim.RotatorEchoOnly, hazard: "M-16", after: 4 * time.Second, end: latches, code: safety.FeedbackSuspect, within: 2 * time.Second, stands: brake},
		{fault: sim.RotatorEchoOnly, hazard: "M-16", first: true, to: unit.AzEl{AzDeg: 176, ElDeg: 78}, end: unseen}, // shorter than what noise may be
		{fault: sim.RotatorFrozen, hazard: "M-12", first: true, end: latches, code: safety.Stalled, within: 5 * time.Second, stands: brake},
		{fault: sim.RotatorFrozen, hazard: "M-12", after: 4 * time.Second, end: latches, code: safety.Stalled, within: 5 * time.Second, stands: brake},
		{fault: sim.RotatorAxisSwap, hazard: "M-16", after: 4 * time.Second, end: latches, code: safety.FeedbackSuspect, within: time.Second, stands: brake},
		{fault: sim.RotatorAxisSwap, hazard: "M-13", first: true, end: latches, code: safety.DeviceFault, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorSignLoss, hazard: "M-16", set: setup{protocol: "satnogs", mount: at(-90, 40, south)}, after: 4 * time.Second, end: latches, code: safety.FeedbackSuspect, within: time.Second, stands: brake},
		{fault: sim.RotatorSignLoss, hazard: "M-14", set: setup{protocol: "satnogs", mount: at(-90, 40, south)}, first: true, end: latches, code: safety.DeviceFault, within: 16 * time.Second, stands: brake}, // from the turning point on,
		{fault: sim.RotatorWrongScale, hazard: "M-16", after: 4 * time.Second, end: latches, code: safety.FeedbackSuspect, within: time.Second, stands: brake},
		{fault: sim.RotatorWrongScale, hazard: "M-13", first: true, end: latches, code: safety.DeviceFault, within: 3 * time.Second, stands: brake},
		{fault: sim.RotatorModulo, hazard: "M-16", set: setup{mount: at(340, 80, nil)}, to: unit.AzEl{AzDeg: 60, ElDeg: 20}, after: 2 * time.Second, end: latches, code: safety.FeedbackSuspect, within: 4 * time.Second, stands: brake},
		{fault: sim.RotatorModulo, hazard: "M-05", set: setup{mount: at(340, 80, nil), modulo: true}, to: unit.AzEl{AzDeg: 60, ElDeg: 20}, after: 2 * time.Second, end: carriesOn},
	}
}

func TestEveryFaultEndsAsItsHazardSays(t *testing.T) {
	cases := switches()
	for _, f := range sim.RotatorFaults() {
		known := false
		for _, c := range cases {
			known = known || c.fault == f
		}
		if !known {
			t.Errorf("no case shows what comes of %s", f)
		}
	}
	for _, c := range cases {
		name := c.hazard + " " + string(c.fault)
		switch {
		case c.first:
			name += " from power-up"
		case c.idle:
			name += " while idle"
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.run(t) })
		})
	}
}

func (c switchCase) run(t *testing.T) {
	if c.to == (unit.AzEl{}) {
		c.to = unit.AzEl{AzDeg: 20, ElDeg: 20}
	}
	cut := &cutting{}
	if c.fault == sim.RotatorHalfCommands {
		c.set.rotator = func(o *RotatorOptions) {
			open := o.Open
			o.Open = func(ctx context.Context) (Wire, error) {
				wire, err := open(ctx)
				return &cutWire{wire, cut}, err
			}
		}
	}
	w := newWorld(t, c.set)
	defer w.close()
	if c.first {
		w.ctl.SetFault(c.fault)
	}
	w.start()
	w.until(time.Minute, "the first position", func() bool { return w.st.Antenna().Measured != nil && w.still() })
	w.sleep(20 * time.Second)

	r := Result{}
	if c.set.modulo {
		if r := w.do(alice, VerbWinding); r.Refusal != nil || r.Err != nil {
			t.Fatalf("confirm the winding: %+v", r)
		}
	}
	if !c.idle {
		r = w.mustPoint(alice, c.to.AzDeg, c.to.ElDeg)
		w.sleep(c.after)
	}
	seen, m, on := len(w.saw("")), w.mark(), time.Now()
	switch {
	case c.fault == sim.RotatorUnplug:
		w.unplug()
	case !c.first:
		w.ctl.SetFault(c.fault)
	}
	switch c.end {
	case carriesOn, unseen:
		if c.idle {
			w.sleep(10 * time.Minute)
		} else {
			w.until(2*time.Minute, "arrival", w.arrived)
			c.wantResult(w, r, "done", "")
		}
		off := w.mount.Truth()
		if d := math.Abs(unit.Nearest(off.AzDeg-c.to.AzDeg, 0)); !c.idle && (d > 0.5 || math.Abs(off.ElDeg-c.to.ElDeg) > 0.5) {
			t.Errorf("the antenna is at %+v, not at %v", off, c.to)
		}
		if a := w.st.Antenna(); a.Fault != "" || len(w.saw("antenna.fault")) > 0 {
			t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
		}
		w.ctl.SetFault(sim.RotatorHealthy)
		w.sleep(20 * time.Second)
	case latches:
		w.until(c.within, "the fault "+string(c.code), func() bool { return w.st.Antenna().Fault != "" })
		if a := w.st.Antenna(); a.Fault != c.code || a.State != AntennaFault {
			t.Fatalf("fault %s (%s) in state %s, want %s", a.Fault, a.FaultWhy, a.State, c.code)
		}
		w.wantStop(m)
		if !c.idle {
			c.wantResult(w, r, "failed", string(c.code))
		}
		w.wantStandstill(c.stands)
		if len(w.saw("antenna.fault")) == 0 {
			t.Error("no event tells of the fault")
		}
		w.sleep(61 * time.Second) // let the lease run out
		refused := w.point(alice, 200, 40)
		w.wantCode(refused, w.st.Antenna().Fault)
		w.sleep(time.Second)
		if ns := w.since(0, "audit"); ns[len(ns)-1].text != "refused" || ns[len(ns)-1].rec.Code != refused.Refusal.Code {
			t.Errorf("the last audit line is %+v, want the refusal", ns[len(ns)-1].rec)
		}
		w.ctl.SetFault(sim.RotatorHealthy)
		w.sleep(20 * time.Second)
		if again := w.point(alice, 200, 40); again.Refusal == nil {
			t.Error("the latch has opened by itself")
		}
		if r := w.do(alice, VerbReset); r.Refusal != nil || r.Err != nil {
			t.Fatalf("reset: %+v", r)
		}
	case loses:
		gone := func() bool { a := w.st.Antenna(); return !a.Present || a.State == AntennaStopped }
		w.until(c.within, "the loss", gone)
		t.Logf("noticed after %v: %+v", time.Since(on), w.st.Antenna())
		if !c.idle {
			c.wantResult(w, r, "failed", string(c.code))
		}
		w.wantStandstill(c.stands)
		if len(w.saw("")) == seen {
			t.Error("no event tells of the loss")
		}
		switch c.fault {
		case sim.RotatorBootDeaf, sim.RotatorBootHoming: // well again by itself
		default:
			w.until(15*time.Second, "the line is given up", func() bool { return !w.st.Antenna().Present })
			w.sleep(61 * time.Second)
			w.wantCode(w.point(alice, 200, 40), safety.DeviceAbsent)
			w.ctl.SetFault(sim.RotatorHealthy)
		}
		m = w.mark()
		w.plug()
		w.until(time.Minute, "the controller is back", func() bool { return w.st.Antenna().Present && w.st.Antenna().Measured != nil && w.still() })
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("the old move went on:\n%s", dump(got))
		}
	case obeysLate:
		if c.fault == sim.RotatorHalfCommands {
			cut.next()
			w.until(10*time.Second, "a command is cut", cut.done)
		}
		m = w.mark()
		w.st.Stop(context.Background(), alice, "test")
		w.wantStandstill(c.stands)
		c.wantResult(w, r, "stopped", "")
		stops := 0
		for _, n := range w.since(m, "wire") {
			if isStop(n) || strings.HasPrefix(n.text, "S\r") {
				stops++
			}
		}
		if c.fault != sim.RotatorHalfCommands && stops < 2 {
			t.Errorf("%d stops were sent, want it to be repeated", stops)
		}
		w.sleep(61 * time.Second)
		w.wantCode(w.point(alice, 200, 40), safety.HeldAfterStop)
		w.ctl.SetFault(sim.RotatorHealthy)
		if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
			t.Fatalf("resume: %+v", r)
		}
	}
	w.sleep(61 * time.Second)
	to := unit.AzEl{AzDeg: 170, ElDeg: 40}
	w.mustPoint(alice, to.AzDeg, to.ElDeg)
	w.until(2*time.Minute, "arrival when all is well", w.arrived)
	if got := w.mount.Truth(); math.Abs(unit.Nearest(got.AzDeg-to.AzDeg, 0)) > 1.1 || math.Abs(got.ElDeg-to.ElDeg) > 1.1 {
		t.Errorf("the antenna is at %+v, not at %v", got, to)
	}
}

// wantResult looks for the audit line and the event that tell how a move ended.
func (c switchCase) wantResult(w *world, r Result, outcome, detail string) {
	w.t.Helper()
	w.until(5*time.Second, "the result of the move", func() bool { return len(w.audits(r.CommandID)) > 1 })
	if got := w.audits(r.CommandID); len(got) != 2 || got[0] != "intent" || got[1] != "result" {
		w.t.Errorf("audit of the move: %v", got)
	}
	for _, n := range w.since(0, "audit") {
		if n.text == "result" && n.rec.Command == r.CommandID && (n.rec.Outcome != outcome || !strings.Contains(n.rec.Detail, detail)) {
			w.t.Errorf("the move's result is %q (%s), want %q with %q", n.rec.Outcome, n.rec.Detail, outcome, detail)
		}
	}
	if len(w.saw("antenna.moved")) == 0 {
		w.t.Error("no event tells how the move ended")
	}
}

// wantStop wants a stop on the wire, and no target after the first one.
func (w *world) wantStop(m int) {
	w.t.Helper()
	stopped := false
	for _, n := range w.since(m, "wire") {
		stopped = stopped || isStop(n)
		if stopped && isMove(n) {
			w.t.Errorf("a target after the stop: %q", n.text)
		}
	}
	if !stopped {
		w.t.Error("no stop was sent")
	}
}

// wantStandstill wants the true antenna to stand after a time, and to stay.
func (w *world) wantStandstill(within time.Duration) {
	w.t.Helper()
	w.sleep(within)
	at := w.mount.Truth()
	w.sleep(30 * time.Second)
	if now := w.mount.Truth(); math.Abs(now.AzDeg-at.AzDeg) > 0.01 || math.Abs(now.ElDeg-at.ElDeg) > 0.01 {
		w.t.Errorf("%v after it was noticed the antenna still moved, from %+v to %+v", within, at, now)
	}
}

// A cutting says that the next target is to be cut in the middle of its bytes.
type cutting struct {
	mu         sync.Mutex
	armed, cut bool
}

func (c *cutting) next() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.armed = true
}

func (c *cutting) done() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cut
}

// take reports whether this write is to be cut.
func (c *cutting) take() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.armed {
		return false
	}
	c.armed, c.cut = false, true
	return true
}

// A cutWire is a wire on which the write of a target ends half way.
type cutWire struct {
	Wire
	c *cutting
}

func (c *cutWire) Write(ctx context.Context, p []byte) error {
	if p[0] != 'W' || !c.c.take() {
		return c.Wire.Write(ctx, p)
	}
	if err := c.Wire.Write(ctx, p[:len(p)/2]); err != nil {
		return err
	}
	<-ctx.Done()
	return ctx.Err()
}

// A lyingWire changes one answer when it is told to.
type lyingWire struct {
	Wire
	lie chan string // the next answer instead
}

func (l lyingWire) Read(ctx context.Context, p []byte) (int, error) {
	n, err := l.Wire.Read(ctx, p)
	if n > 0 {
		select {
		case s := <-l.lie:
			return copy(p, s), err
		default:
		}
	}
	return n, err
}

// One damaged reading that looks like a turn the wrong way, a run past the
// target or motion by itself is read again before anybody is called.
func TestOneReadingAstrayIsReadAgain(t *testing.T) {
	for name, c := range map[string]struct {
		from, to unit.AzEl
		after    time.Duration
		lie      string
	}{
		"the wrong way":   {unit.AzEl{AzDeg: 180, ElDeg: 80}, unit.AzEl{AzDeg: 150, ElDeg: 80}, 600 * time.Millisecond, "AZ184.0 EL80.0\n"},
		"past the target": {unit.AzEl{AzDeg: 180, ElDeg: 80}, unit.AzEl{AzDeg: 160, ElDeg: 80}, 3 * time.Second, "AZ154.0 EL80.0\n"},
		"by itself":       {unit.AzEl{AzDeg: 180, ElDeg: 80}, unit.AzEl{AzDeg: 180, ElDeg: 80}, time.Minute, "AZ188.0 EL80.0\n"},
	} {
		t.Run(name, func(t *testing.T) {
			lie := make(chan string, 1)
			inWorld(t, setup{mount: at(c.from.AzDeg, c.from.ElDeg, nil), rotator: func(o *RotatorOptions) {
				open := o.Open
				o.Open = func(ctx context.Context) (Wire, error) {
					wire, err := open(ctx)
					return lyingWire{wire, lie}, err
				}
			}}, func(w *world) {
				w.mustPoint(alice, c.to.AzDeg, c.to.ElDeg)
				w.sleep(c.after)
				lie <- c.lie
				w.until(10*time.Second, "the lie is read", func() bool { return len(lie) == 0 })
				w.until(time.Minute, "arrival", w.arrived)
				w.sleep(time.Minute)
				if a := w.st.Antenna(); a.Fault != "" {
					t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
				}
			})
		})
	}
}
