package station

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// A stance is where the antenna has been since when: it stands when it has not
// left that place for long enough.
type stance struct {
	at    unit.AzEl
	since time.Duration // 0: none yet
}

// stillTol is what a reading may differ from the last without being motion.
func (w *rotatorOwner) stillTol() float64 {
	return max(w.o.Driver.Caps.ResolutionDeg, w.o.DeadbandDeg, 0.1)
}

// stillFor is how long the same reading makes a standstill: an antenna at half
// speed would have left it, however coarse the reading.
func (w *rotatorOwner) stillFor() time.Duration {
	v := min(w.rules.AzSpeedDps, w.rules.ElSpeedDps) / 2
	return pollMoving + time.Duration(w.stillTol()/v*float64(time.Second))
}

func (w *rotatorOwner) standing() bool {
	return w.stance.since != 0 && w.goodAt-w.stance.since >= w.stillFor()
}

// stands takes a reading into the stance and reports whether it has moved.
func (w *rotatorOwner) stands(p unit.AzEl, now time.Duration) (moved bool) {
	if w.stance.since != 0 && near(p, w.stance.at, w.stillTol()+1e-6) {
		return false
	}
	moved = w.stance.since != 0
	w.stance = stance{p, now}
	return moved
}

// poll reads the position and acts on it.
func (w *rotatorOwner) poll(ctx context.Context) error {
	if w.setOnly() {
		w.unseen()
		return nil
	}
	var raw unit.AzEl
	begun := w.clk.Now()
	err := w.exchange(ctx, func(ctx context.Context) (err error) {
		raw, err = w.drv.Position(ctx)
		return err
	})
	w.pollAt = w.mono()
	if err != nil {
		w.mu.Lock()
		if !w.view.present {
			w.view.why = err.Error()
		}
		w.mu.Unlock()
		lerr := w.linkError(err)
		if w.stop != nil && !errors.Is(err, context.Canceled) {
			w.stop.silent = true
		}
		return lerr
	}
	w.misses, w.backoff = 0, 0
	took := w.clk.Now().Sub(begun)
	return w.reading(ctx, raw, begun.Add(took/2), took)
}

// unseen is what there is instead of a reading where the controller cannot tell
// its position: the line is open. A stop is sent again, and is over after a time,
// which confirms nothing.
func (w *rotatorOwner) unseen() {
	w.pollAt, w.backoff = w.mono(), 0
	if w.stop != nil {
		w.stop.silent = w.stop.tries < stopsUnseen
		if !w.stop.silent {
			w.stop = nil
		}
	}
	w.mu.Lock()
	w.view.present, w.view.why = true, ""
	w.mu.Unlock()
}

// reading takes in one position: is it possible, where is it on the cable, has
// the antenna arrived, does it do what it was told.
func (w *rotatorOwner) reading(ctx context.Context, raw unit.AzEl, at time.Time, took time.Duration) error {
	now := w.mono()
	if w.seen == 0 {
		raw.AzDeg = w.unwind(raw, now)
	} else if !w.o.Absolute {
		raw.AzDeg = unit.Nearest(raw.AzDeg, w.last.AzDeg)
	}
	since := now - w.goodAt + took
	possible := w.seen == 0 || w.plausible(raw, w.last, since)
	echo := w.seen > 0 && w.echoes(raw, w.last, since)
	if d := since + w.goodAt - w.beforeAt; w.seen > 1 && d < 4*pollMoving { // was it the last one that was damaged?
		possible = possible || w.plausible(raw, w.before, d)
		echo = echo && w.echoes(raw, w.before, d)
	}
	if !possible || echo || w.strays(raw) {
		if w.doubts++; w.doubts < 2 {
			return nil // once may be a damaged frame
		}
	}
	if !possible || echo {
		why := fmt.Sprintf("the position jumped from %v to %v in %.1f s", w.last, raw, (now - w.goodAt).Seconds())
		if echo {
			why = fmt.Sprintf("the position was %v, the target %v, and %.1f s later the position is exactly the target: the controller reports what it was told and not where the antenna is, or the mount is far faster than its profile", w.last, w.sent, (now - w.goodAt).Seconds())
		}
		w.doubts, w.last, w.goodAt, w.stance.since = 0, raw, now, 0
		if !w.windingTold() { // it may be a turn off from here on
			w.mu.Lock()
			w.view.windingOK = false
			w.mu.Unlock()
		}
		return w.fail(ctx, safety.FeedbackSuspect, why)
	}
	w.doubts = 0
	w.seen++
	was, wasAt := w.last, w.goodAt
	w.before, w.beforeAt = was, wasAt
	w.last, w.hasLast, w.goodAt, w.goodReal = raw, true, now, time.Now()
	moved := w.stands(raw, now)
	tracking := w.tracks()
	w.mu.Lock()
	v := &w.view
	v.mech, v.readAt, v.readTime, v.present, v.why = raw, now, at, true, ""
	v.measured = w.seen >= settleReadings
	v.moving = w.move != nil || tracking || w.stop != nil || !w.standing()
	first := v.state == AntennaUnknown && v.measured
	var req safety.Request
	if w.track != nil {
		req = w.track.req
	}
	w.mu.Unlock()
	w.hooks.reading(at, raw)
	if first {
		w.setState(AntennaStandby, "position read")
	}
	switch {
	case w.stop != nil:
		w.confirmStop(raw, moved, now)
		return nil
	case w.move != nil:
		return w.progressed(ctx, raw)
	case tracking && w.hasSent:
		if done, err := w.stillAllowed(ctx, req); done {
			return err
		}
		return w.onTarget(ctx, raw, was, now-wasAt)
	case !tracking && w.seen > settleReadings:
		return w.uncommanded(ctx, raw)
	}
	return nil
}

// windingTold reports whether an azimuth reading alone says how the cable hangs.
func (w *rotatorOwner) windingTold() bool {
	return w.o.Absolute || w.rules.Travel.AzMaxDeg-w.rules.Travel.AzMinDeg <= 360
}

// unwind finds the unwrapped azimuth of the first reading of a line: from what
// this process saw last, if the antenna cannot have turned unseen by half a turn
// since, or from what the station knows.
func (w *rotatorOwner) unwind(raw unit.AzEl, now time.Duration) (az float64) {
	az, known := w.hooks.restore(raw)
	w.mu.Lock()
	defer w.mu.Unlock()
	unseen := (now - w.goodAt).Seconds() * w.rules.AzSpeedDps
	if w.hasLast && w.view.windingOK && !w.windingTold() && unseen < windingTrust {
		az, known = unit.Nearest(raw.AzDeg, w.last.AzDeg), true
	}
	w.view.windingOK = known
	return az
}

// strays reports whether an antenna that is to stand is read somewhere else.
// Any way is possible in the time between two idle readings, and a digit that
// the wire has changed must not be taken for motion: it is read again.
func (w *rotatorOwner) strays(p unit.AzEl) bool {
	return w.move == nil && w.stop == nil && w.hasIdle && w.seen > 0 && !w.tracks() && !near(p, w.idle, w.o.Watch.UncommandedDeg)
}

// echoes reports whether the position is the target of a move, to the last
// digit, long before the mount can have got there from where it was at last.
func (w *rotatorOwner) echoes(p, last unit.AzEl, dt time.Duration) bool {
	if w.move == nil || !w.hasSent || !near(p, w.sent, w.o.Driver.Caps.ResolutionDeg/2+1e-6) {
		return false
	}
	s := echoFactor * (dt.Seconds() + 0.2)
	return math.Abs(p.AzDeg-last.AzDeg) > s*w.rules.AzSpeedDps+echoNoise || math.Abs(p.ElDeg-last.ElDeg) > s*w.rules.ElSpeedDps+echoNoise
}

// plausible reports whether the antenna can be at p, dt after it was at last.
func (w *rotatorOwner) plausible(p, last unit.AzEl, dt time.Duration) bool {
	if !p.Finite() {
		return false
	}
	inside := func(q unit.AzEl) bool {
		t := w.rules.Travel
		return q.AzDeg >= t.AzMinDeg-10 && q.AzDeg <= t.AzMaxDeg+10 && q.ElDeg >= t.ElMinDeg-10 && q.ElDeg <= t.ElMaxDeg+10
	}
	if inside(last) && !inside(p) {
		return false
	}
	s := dt.Seconds() + 0.2 // the reading's own time is not known better
	return math.Abs(p.AzDeg-last.AzDeg) <= w.o.Watch.JumpFactor*w.rules.AzSpeedDps*s+suspectNoise &&
		math.Abs(p.ElDeg-last.ElDeg) <= w.o.Watch.JumpFactor*w.rules.ElSpeedDps*s+suspectNoise
}

// stale notices that a moving antenna has not been seen for too long: nobody
// knows where it goes (hazard M-17).
func (w *rotatorOwner) stale() bool {
	tracking := w.tracks() && w.hasSent
	if w.move == nil && !tracking {
		return false
	}
	since := w.goodAt
	if w.move != nil {
		since = max(since, w.move.begun)
	}
	age := w.mono() - since
	if age <= w.rules.FeedbackMoving || time.Since(w.goodReal) <= staleReal {
		return false
	}
	ref := safety.Refuse(safety.FeedbackStale, "check the rotator's cable and power, then read get_antenna", "no position for %.1f s while the antenna was moving: it was stopped", age.Seconds())
	w.abortTrack(ref)
	w.setState(AntennaStopped, ref.Why)
	w.endMotion(motionEnd{Fault: fmt.Errorf("%s: %s", ref.Code, ref.Why)})
	return true
}

// confirmStop looks for standstill after a stop, and asks for a person when the
// antenna does not obey. It is stopped again and again all the same.
func (w *rotatorOwner) confirmStop(p unit.AzEl, moved bool, now time.Duration) {
	s := w.stop
	s.readings++
	s.moves = moved
	if w.standing() {
		w.stop = nil
		w.idle, w.hasIdle = p, true
		w.hooks.stood(p)
		w.mu.Lock()
		w.view.stopped, w.view.moving = true, false
		ended := w.view.state == AntennaTracking && w.track == nil
		w.mu.Unlock()
		if ended {
			w.setState(AntennaPositioned, "tracking ended")
		}
		return
	}
	brake := max(w.rules.AzSpeedDps, w.rules.ElSpeedDps) / w.rules.AccelDps2
	limit := w.o.Watch.StopWithin + time.Duration(brake*float64(time.Second)) + w.stillFor()
	// Only a reading that shows motion counts against it, not time that has passed.
	if moved && now-s.begun > w.patience(limit) && s.readings > 0 && s.tries > 1 && !s.latched {
		s.latched = true
		w.latch(safety.DeviceFault, fmt.Sprintf("the antenna still moves %.1f s after it was told to stop, %d times: use the switch at the station", (now-s.begun).Seconds(), s.tries))
	}
}

// patience is how long to wait before the device is blamed: in simulated time a
// busy computer makes seconds out of a moment.
func (w *rotatorOwner) patience(d time.Duration) time.Duration {
	return max(d, w.clk.Station(watchReal))
}

// An axisWatch is the last sign of life of a driven axis.
type axisWatch struct {
	at   float64
	when time.Duration
}

// watchAxes begins to look for progress from here.
func (w *rotatorOwner) watchAxes() {
	now := w.mono()
	w.axes = [2]axisWatch{{w.last.AzDeg, now}, {w.last.ElDeg, now}}
}

// An axis is one axis of the mount, as the watch sees it.
type axis struct {
	name                  string
	at, from, target      float64
	speed, tolerance, ext float64 // ext: degrees that it may run on at first
}

func (w *rotatorOwner) axesTo(p, from, target, ext unit.AzEl, tolerance float64) [2]axis {
	return [2]axis{
		{"azimuth", p.AzDeg, from.AzDeg, target.AzDeg, w.rules.AzSpeedDps, tolerance, ext.AzDeg},
		{"elevation", p.ElDeg, from.ElDeg, target.ElDeg, w.rules.ElSpeedDps, tolerance, ext.ElDeg},
	}
}

// underway checks a motion: the right way, not too far, and not stuck.
func (w *rotatorOwner) underway(ctx context.Context, p unit.AzEl) error {
	m := w.move
	axes := w.axesTo(p, m.from, m.way(), m.coast, w.arriveTol())
	if why := w.astray(axes); why != "" {
		if m.astray++; m.astray < 2 {
			return nil // once may be a damaged frame
		}
		return w.fail(ctx, safety.DeviceFault, why)
	}
	m.astray = 0
	return w.stalled(ctx, axes)
}

// astray says which axis goes where it must not: the wrong way at first, or past
// its target.
func (w *rotatorOwner) astray(axes [2]axis) (why string) {
	for _, a := range axes {
		way := a.target - a.from
		past := math.Abs(a.at - a.target) // an axis that is not to move
		if math.Abs(way) > a.tolerance {
			past = math.Copysign(1, way) * (a.at - a.target)
			if back := math.Copysign(1, way) * (a.from - a.at); back > w.o.Watch.WrongWayDeg+a.ext {
				return fmt.Sprintf("the %s turned %.1f° the wrong way, from %.1f° to %.1f° instead of towards %.1f°: is a motor or a sensor wired the wrong way round?", a.name, back, a.from, a.at, a.target)
			}
		}
		if past > w.o.Watch.OvershootDeg+a.ext {
			return fmt.Sprintf("the %s ran %.1f° past its target of %.1f°", a.name, past, a.target)
		}
	}
	return ""
}

// stalled faults when an axis is driven and does not move.
func (w *rotatorOwner) stalled(ctx context.Context, axes [2]axis) error {
	now, watch := w.mono(), w.o.Watch
	for i, a := range axes {
		s := &w.axes[i]
		moved := math.Abs(a.at - s.at)
		if moved >= watch.StallDeg || math.Abs(a.at-a.target) <= a.tolerance {
			*s = axisWatch{a.at, now}
			continue
		}
		// A slow mount needs longer for as many degrees.
		within := watch.StartWithin + max(watch.StallWithin, time.Duration(4*watch.StallDeg/a.speed*float64(time.Second)))
		if now-s.when > w.patience(within) {
			return w.fail(ctx, safety.Stalled, fmt.Sprintf("the %s was driven towards %.1f° for %.1f s, moved %.1f° and stands at %.1f°", a.name, a.target, (now-s.when).Seconds(), moved, a.at))
		}
	}
	return nil
}

// onTarget checks a mount that follows a satellite: it moves, and it is where it
// should be, or on its way there as fast as it can.
func (w *rotatorOwner) onTarget(ctx context.Context, p, was unit.AzEl, dt time.Duration) error {
	tolerance := max(w.arriveTol(), 2*w.o.Watch.StallDeg)
	axes := w.axesTo(p, w.sent, w.sent, unit.AzEl{}, tolerance)
	if err := w.stalled(ctx, axes); err != nil || w.stop != nil {
		return err
	}
	now := w.mono()
	off := unit.Separation(w.rules.True(p), w.rules.True(w.want))
	closing := func(at, before, want, v float64) bool {
		return math.Copysign(1, want-at)*(at-before) > v*dt.Seconds()/2
	}
	busy := closing(p.AzDeg, was.AzDeg, w.want.AzDeg, w.rules.AzSpeedDps) || closing(p.ElDeg, was.ElDeg, w.want.ElDeg, w.rules.ElSpeedDps)
	if off <= w.o.Watch.TrackErrorDeg || busy {
		w.offSince = 0
		return nil
	}
	if w.offSince == 0 {
		w.offSince = now
	}
	if now-w.offSince < w.patience(w.o.Watch.TrackErrorFor) {
		return nil
	}
	return w.fail(ctx, safety.Stalled, fmt.Sprintf("%.1f° off the satellite for %.1f s and not on the way to it: at %v instead of %v", off, (now-w.offSince).Seconds(), w.rules.True(p), w.rules.True(w.want)))
}

// uncommanded stops an antenna that moves by itself.
func (w *rotatorOwner) uncommanded(ctx context.Context, p unit.AzEl) error {
	mode := safety.Mode("")
	if w.hasIdle {
		if near(p, w.idle, w.o.Watch.UncommandedDeg) {
			return nil
		}
		mode = w.hooks.facts().Mode
	}
	if !w.hasIdle || mode == safety.ModeOnSite || mode == safety.ModeMaint { // a person moves it by hand
		w.idle, w.hasIdle = p, true
		return nil
	}
	from := w.idle
	w.idle = p
	d := max(math.Abs(p.AzDeg-from.AzDeg), math.Abs(p.ElDeg-from.ElDeg))
	return w.fail(ctx, safety.DeviceFault, fmt.Sprintf("the antenna moved %.1f° by itself, from %v to %v", d, w.rules.True(from), w.rules.True(p)))
}

// fail stops, latches a fault and ends what was under way.
func (w *rotatorOwner) fail(ctx context.Context, code safety.Code, why string) error {
	err := w.sendStop(ctx)
	w.latch(code, why)
	w.abortTrack(&safety.Refusal{Code: code, Why: why, Fix: "look at the mount, then an operator runs: gsd-mcp reset " + string(code)})
	w.endMotion(motionEnd{Fault: errors.New(string(code) + ": " + why)})
	return err
}

func (w *rotatorOwner) latch(code safety.Code, why string) {
	w.mu.Lock()
	again := w.view.fault == code
	w.view.fault, w.view.faultWhy = code, why
	if code == safety.FeedbackSuspect {
		w.view.suspect = why
	}
	w.mu.Unlock()
	w.setState(AntennaFault, why)
	if !again {
		w.hooks.fault(code, why)
	}
}
