package station

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// begin admits a motion: the gate once more on fresh facts, then the first
// target.
func (w *rotatorOwner) begin(ctx context.Context, r startRequest) error {
	if r.renew != nil {
		return w.renewed(ctx, r)
	}
	m := r.m
	if w.ending {
		r.reply <- safety.Refuse(safety.DeviceAbsent, "wait until the station is up again", "the station is ending")
		return nil
	}
	// An idle antenna is looked at seldom: a move begins from where it is now, and
	// the next request must not find an old reading under a moving antenna.
	if w.seen > 0 && w.mono()-w.goodAt > pollMoving {
		if err := w.poll(ctx); err != nil {
			r.reply <- err
			return err
		}
	}
	route, ref := safety.Way(w.rules, w.hooks.facts(), m.req)
	if ref == nil && !w.hooks.holds(m.req.Holder) {
		ref = safety.Refuse(safety.LeaseHeld, "ask again", "the lease of this move ended before it began: its session is gone, or the antenna was stopped")
	}
	if ref != nil {
		r.reply <- ref
		return nil
	}
	w.endMotion(motionEnd{Stopped: "replaced by another move"})
	w.abortTrack(errors.New("another move took the antenna"))
	m.req.Already = true
	m.route, m.leg, m.begun, m.asked = route, 0, w.mono(), w.mono()
	w.move, w.stop = m, nil
	w.legBegins()
	tgt := w.rules.True(route.Target())
	w.mu.Lock()
	w.view.target, w.view.motionID, w.view.lastMotion, w.view.moving = &tgt, m.id, m.id, true
	w.mu.Unlock()
	return w.setOut(ctx, r)
}

// setOut sends the first target of a motion that has begun, or got another
// target, and tells whoever asked how that went.
func (w *rotatorOwner) setOut(ctx context.Context, r startRequest) error {
	err := w.advance(ctx)
	if err == nil {
		w.setState(r.m.kind, "")
		r.reply <- nil
		return nil
	}
	w.endMotion(motionEnd{Fault: err})
	lerr := w.linkError(err)
	r.reply <- err
	if lerr != nil {
		return lerr
	}
	return w.sendStop(ctx) // half a command may have gone out
}

// legBegins starts the way to the next waypoint from where the antenna is.
func (w *rotatorOwner) legBegins() {
	m := w.move
	m.from, m.coast = w.last, unit.AzEl{}
	if !w.standing() { // it may come from the other side
		coast := func(v float64) float64 { return v*v/(2*w.rules.AccelDps2) + v*pollMoving.Seconds() }
		m.coast = unit.AzEl{AzDeg: coast(w.rules.AzSpeedDps), ElDeg: coast(w.rules.ElSpeedDps)}
	}
	w.hasSent = false
	w.stance.since = 0
	w.watchAxes()
}

// ahead is the point on the straight way from a position, both axes at their own
// speeds, that is horizonTime or horizonDeg further on: a host that dies leaves
// no longer move behind (hazard M-21), and what it leaves is on the way that
// was proved.
func (w *rotatorOwner) ahead(from, to unit.AzEl) unit.AzEl {
	t := max(horizonTime, horizonDeg/max(w.rules.AzSpeedDps, w.rules.ElSpeedDps))
	step := func(from, to, v float64) float64 { return from + max(-v*t, min(v*t, to-from)) }
	return unit.AzEl{AzDeg: step(from.AzDeg, to.AzDeg, w.rules.AzSpeedDps), ElDeg: step(from.ElDeg, to.ElDeg, w.rules.ElSpeedDps)}
}

// advance gives the controller the next target on the way to the waypoint. On
// its way still, the target is renewed only when half of it is used up.
func (w *rotatorOwner) advance(ctx context.Context) error {
	way := w.move.way()
	next := w.ahead(w.last, way)
	if w.hasSent {
		half := w.ahead(unit.AzEl{}, unit.AzEl{AzDeg: math.Inf(1), ElDeg: math.Inf(1)})
		az := w.sent.AzDeg != way.AzDeg && math.Abs(w.sent.AzDeg-w.last.AzDeg) < half.AzDeg/2
		el := w.sent.ElDeg != way.ElDeg && math.Abs(w.sent.ElDeg-w.last.ElDeg) < half.ElDeg/2
		if !az && !el || next == w.sent {
			return nil
		}
	}
	return w.pointTo(ctx, next)
}

func (w *rotatorOwner) pointTo(ctx context.Context, to unit.AzEl) error {
	err := w.exchange(ctx, func(ctx context.Context) error { return w.drv.Point(ctx, to) })
	if err != nil {
		return fmt.Errorf("point: %w", err)
	}
	w.sent, w.hasSent, w.sentAt = to, true, w.mono()
	return nil
}

// clear reports whether the straight way from where the antenna is to a
// waypoint is allowed.
func (w *rotatorOwner) clear(to unit.AzEl, sun *unit.AzEl) bool {
	route, ref := w.rules.RouteTo(w.last, to, sun)
	return ref == nil && len(route.Waypoints) == 1
}

// arriveTol is how near to a target counts as there.
func (w *rotatorOwner) arriveTol() float64 {
	return max(2*w.o.Driver.Caps.ResolutionDeg, w.o.DeadbandDeg, 0.3)
}

func near(p, q unit.AzEl, tol float64) bool {
	return math.Abs(p.AzDeg-q.AzDeg) <= tol && math.Abs(p.ElDeg-q.ElDeg) <= tol
}

// progressed follows a motion to its end, reading by reading.
func (w *rotatorOwner) progressed(ctx context.Context, p unit.AzEl) error {
	m := w.move
	facts := w.hooks.facts()
	route, ref := safety.Way(w.rules, facts, m.req)
	if ref != nil { // the power is low, the disk is full, somebody took the lease
		w.endMotion(motionEnd{Refusal: ref})
		w.setState(AntennaStopped, ref.Why)
		return w.sendStop(ctx)
	}
	there := near(p, m.way(), w.arriveTol())
	final := m.leg+1 == len(m.route.Waypoints)
	switch {
	case there && final:
		if w.standing() && w.mono()-m.asked >= m.linger {
			w.arrived(p)
		}
		return nil
	case there && !final && w.clear(m.route.Waypoints[m.leg+1], facts.Sun):
		m.leg++
		w.legBegins()
	case !there && !w.clear(m.way(), facts.Sun), there && !final && w.standing():
		// The mount has left the way that was proved, since an axis is slower than
		// its profile, or stopped short of a corner: a new way from here.
		m.route, m.leg = route, 0
		w.legBegins()
	}
	if err := w.advance(ctx); err != nil {
		if lerr := w.linkError(err); lerr != nil || errors.Is(err, context.Canceled) {
			return lerr
		}
		w.endMotion(motionEnd{Fault: err})
		w.setState(AntennaStopped, err.Error())
		return w.sendStop(ctx)
	}
	return w.underway(ctx, p)
}

// arrived ends a motion that has reached its target.
func (w *rotatorOwner) arrived(p unit.AzEl) {
	w.hooks.stood(p)
	w.hasSent = false
	w.mu.Lock()
	w.view.moving = false
	w.mu.Unlock()
	if w.move.kind == AntennaParking {
		w.setState(AntennaParked, "")
	} else {
		w.setState(AntennaPositioned, "")
	}
	w.endMotion(motionEnd{At: w.rules.True(p)})
}

// follow sends one setpoint of a pass, after the gate. A satellite that is far
// ahead of a slow mount is followed with near targets on the way to it.
func (w *rotatorOwner) follow(ctx context.Context, sp track.Setpoint, req safety.Request) error {
	w.want = sp.Mech
	to := w.ahead(w.last, sp.Mech)
	d := max(math.Abs(to.AzDeg-w.sent.AzDeg), math.Abs(to.ElDeg-w.sent.ElDeg))
	if w.hasSent && (d < w.o.DeadbandDeg || w.mono()-w.sentAt < w.o.MinInterval) {
		return nil
	}
	if done, err := w.stillAllowed(ctx, req); done {
		return err
	}
	if !w.hasSent {
		w.watchAxes()
		w.offSince = 0
	}
	tgt := sp.Sight.AzEl
	w.mu.Lock()
	if w.view.target == nil || *w.view.target != tgt {
		w.view.target = &tgt
	}
	w.view.moving = true
	w.mu.Unlock()
	w.stop = nil
	w.setState(AntennaTracking, "")
	err := w.pointTo(ctx, to)
	if err == nil || errors.Is(err, context.Canceled) {
		return nil
	}
	if lerr := w.linkError(err); lerr != nil {
		return lerr
	}
	if answeredNo(err) { // it may have understood half
		w.abortTrack(err)
		w.setState(AntennaStopped, err.Error())
		return w.sendStop(ctx)
	}
	return nil
}

// stillAllowed asks the gate about the setpoint wanted and halts when it says
// no.
func (w *rotatorOwner) stillAllowed(ctx context.Context, req safety.Request) (halted bool, err error) {
	want := w.want
	req.Mech = &want
	ref := safety.Decide(w.rules, w.hooks.facts(), req)
	if ref == nil {
		return false, nil
	}
	w.abortTrack(ref)
	w.setState(AntennaStopped, ref.Why)
	return true, w.sendStop(ctx)
}

// endMotion ends the motion under way, if there is one, and tells whoever began
// it.
func (w *rotatorOwner) endMotion(e motionEnd) {
	m := w.move
	if m == nil {
		return
	}
	w.move = nil
	w.idle, w.hasIdle = w.last, true
	w.mu.Lock()
	w.view.motionID = ""
	w.mu.Unlock()
	if e.Stopped != "" {
		w.setState(AntennaStopped, e.Stopped)
	}
	m.done(e)
}
