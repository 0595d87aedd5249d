package station

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/track"
)

// run owns the device until ctx ends. It leaves the antenna halted.
func (w *rotatorOwner) run(ctx context.Context) {
	for ctx.Err() == nil {
		wire, err := w.open(ctx)
		if err == nil {
			err = w.session(ctx, wire)
			wire.Close()
		}
		if ctx.Err() == nil {
			w.absent(err.Error())
			w.wait(ctx, w.nextBackoff())
		}
	}
	w.endMotion(motionEnd{Stopped: "the station ended"})
	w.mu.Lock()
	w.over = true
	w.mu.Unlock()
	w.answerStops(errors.New("the station has ended"))
}

// open opens the line. Nobody waits for it: who wants to stop or to move is
// told that there is no line.
func (w *rotatorOwner) open(ctx context.Context) (wire Wire, err error) {
	w.beat.now()
	done := make(chan struct{})
	go func() {
		defer close(done)
		wire, err = w.o.Open(ctx)
	}()
	for {
		w.answerStops(w.unreachable())
		select {
		case <-done:
			return wire, err
		case r := <-w.start:
			r.reply <- w.noDevice()
		case <-w.wake:
		}
	}
}

func (w *rotatorOwner) unreachable() error {
	return fmt.Errorf("the rotator is not reachable (%s): it may still move to its last target; use the switch at the station", w.viewWhy())
}

func (w *rotatorOwner) noDevice() *safety.Refusal {
	return safety.Refuse(safety.DeviceAbsent, "check its cable, power and port, then read get_station_health", "the rotator does not answer (%s)", w.viewWhy())
}

func (w *rotatorOwner) nextBackoff() time.Duration {
	w.backoff = min(max(reopenMin, 2*w.backoff), reopenMax)
	return w.backoff
}

// absent notes that there is no line: the antenna may still be moving to its
// last target.
func (w *rotatorOwner) absent(why string) {
	const moves = "it may still move to its last target"
	w.mu.Lock()
	was := w.view.present
	w.view.present, w.view.why, w.view.measured = false, why, false
	if w.track != nil && w.track.err == nil {
		w.track.err = &safety.Refusal{Code: safety.DeviceAbsent, Why: "the rotator's line was lost, " + moves + ": " + why, Fix: "check its cable and power"}
	}
	w.mu.Unlock()
	w.hasIdle, w.stance.since = false, 0
	if was {
		w.setState(AntennaUnknown, "line lost: "+why)
	}
	w.endMotion(motionEnd{Fault: fmt.Errorf("the rotator's line was lost, %s: %s", moves, why)})
}

// wait waits out a back-off, answering that there is no device.
func (w *rotatorOwner) wait(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	w.beat.now()
	for {
		w.answerStops(w.unreachable())
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case r := <-w.start:
			r.reply <- w.noDevice()
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
	if err := w.sendStop(ctx); err != nil { // every start stops first, also what is deaf at first
		return err
	}
	if s := w.o.Driver.Caps.Settle; s > 0 {
		if err := w.settle(ctx, s); err != nil || ctx.Err() != nil {
			return err
		}
		if err := w.sendStop(ctx); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return w.leave(ctx)
}

// settle waits out the time in which a controller hears nothing after its port
// was opened. A stop is written all the same.
func (w *rotatorOwner) settle(ctx context.Context, d time.Duration) error {
	t := w.clk.NewTimer(d)
	defer t.Stop()
	for {
		w.beat.now()
		if w.pendingStop() {
			if err := w.sendStop(ctx); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			return nil
		case r := <-w.start:
			r.reply <- safety.Refuse(safety.DeviceAbsent, "wait some seconds", "the rotator's controller is starting up")
		case <-w.wake:
		}
	}
}

// leave halts at the end of the station and stays until the antenna stands, so
// that the next start knows where it is.
func (w *rotatorOwner) leave(ctx context.Context) error {
	w.ending = true
	w.mu.Lock()
	moving := w.view.moving
	w.mu.Unlock()
	lctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTimeout)
	defer cancel()
	err := w.sendStop(lctx)
	w.abortTrack(errors.New("the station ended"))
	w.endMotion(motionEnd{Stopped: "the station ended"})
	if !moving {
		return err
	}
	for err == nil && lctx.Err() == nil && w.stop != nil {
		err = w.step(lctx)
	}
	return err
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
	if w.deadman() || w.stale() {
		return w.sendStop(ctx)
	}
	if sp, req, ok := w.takeSetpoint(); ok {
		if err := w.follow(ctx, sp, req); err != nil {
			return err
		}
	}
	if w.mono() >= w.pollDue() {
		if err := w.poll(ctx); err != nil {
			return err
		}
	}
	if w.stop != nil && w.stop.again(w.mono()) {
		return w.sendStop(ctx)
	}
	select { // also when something is always due
	case r := <-w.start:
		return w.begin(ctx, r)
	default:
	}
	return w.rest(ctx)
}

// pendingStop reports whether somebody waits for a stop. Those who wanted to
// stop a motion that is over are done.
func (w *rotatorOwner) pendingStop() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	keep := w.stopReqs[:0]
	for _, r := range w.stopReqs {
		if r.only != "" && r.only != w.view.motionID {
			r.reply <- nil
			continue
		}
		keep = append(keep, r)
	}
	w.stopReqs = keep
	return len(keep) > 0
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

// tracks reports whether setpoints are let through.
func (w *rotatorOwner) tracks() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.track != nil && w.track.err == nil
}

// rest waits until something is due or asked.
func (w *rotatorOwner) rest(ctx context.Context) error {
	now := w.mono()
	d := w.pollDue() - now
	w.mu.Lock()
	busy := len(w.stopReqs) > 0 || w.slot != nil && w.track != nil && w.track.err == nil
	if w.track != nil && w.track.err == nil { // look at the dead-man in time
		d = min(d, deadmanPeriods*track.Period)
	}
	w.mu.Unlock()
	if busy || d <= 0 {
		return nil
	}
	if w.stop != nil && w.stop.resendAt > now {
		d = min(d, w.stop.resendAt-now)
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
	switch {
	case w.stop != nil, w.doubts > 0, w.move != nil && w.move.astray > 0, w.seen < settleReadings && !w.setOnly():
		every = pollStopping
	case w.move != nil, w.misses > 0, !w.standing(), w.tracks():
		every = pollMoving
	}
	return w.pollAt + max(every, w.o.Driver.Caps.MinInterval)
}

// gap is the real time to leave between two exchanges: a simulated device is
// as fast as its clock.
func (w *rotatorOwner) gap() time.Duration { return w.clk.Real(w.o.Driver.Caps.MinInterval) }

// A stopping is a stop that has not been confirmed by standstill yet.
type stopping struct {
	begun    time.Duration
	resendAt time.Duration
	tries    int
	readings int // since the last try
	moves    bool
	silent   bool
	latched  bool
}

// again says that it is time for another stop: the antenna moves still, or says
// nothing. Two readings come first, however slow the line is.
func (s *stopping) again(now time.Duration) bool {
	return now >= s.resendAt && (s.moves && s.readings >= 2 || s.silent)
}

// sendStop writes the stop bytes first and asks questions later.
func (w *rotatorOwner) sendStop(ctx context.Context) error {
	hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
	err := w.drv.Halt(hctx)
	cancel()
	now := w.mono()
	w.mu.Lock()
	w.slot = nil
	w.view.stopSent, w.view.stopped = w.clk.Now(), false
	w.mu.Unlock()
	told, why := w.answerStops(err)
	w.hasSent = false
	if w.stop == nil || told {
		w.stop = &stopping{begun: now}
		w.stance.since = 0 // standstill counts from here
	}
	w.stop.tries++
	w.stop.readings, w.stop.silent = 0, false
	w.stop.resendAt = now + max(w.o.Watch.StopRetry, 3*w.o.Driver.Caps.MinInterval)
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

// deadman notices that the tracking loop has gone silent: then the antenna is
// to be halted.
func (w *rotatorOwner) deadman() bool {
	w.mu.Lock()
	t, now := w.track, w.mono()
	silent := t != nil && t.err == nil && now-t.lastSet > deadmanPeriods*track.Period && time.Since(t.lastReal) > deadmanReal
	if silent {
		t.err = fmt.Errorf("no setpoint for %v: the antenna was halted", (now - t.lastSet).Round(time.Millisecond))
		w.slot = nil
	}
	w.mu.Unlock()
	if silent {
		w.setState(AntennaStopped, "the tracking loop went silent")
	}
	return silent
}

func (w *rotatorOwner) abortTrack(err error) {
	w.mu.Lock()
	if w.track != nil && w.track.err == nil {
		w.track.err = err
	}
	w.slot = nil
	w.mu.Unlock()
}

// answeredNo reports whether an error of a driver is the protocol's or the
// controller's no: the line is well.
func answeredNo(err error) bool {
	return errors.Is(err, rotator.ErrRange) || errors.Is(err, rotator.ErrRejected) || errors.Is(err, rotator.ErrNoFeedback)
}

// linkError says whether an error of an exchange ends the session. A stop that
// cut it off does not, nor a no, nor a single silence or a reply that makes no
// sense; everything else is a line that is gone.
func (w *rotatorOwner) linkError(err error) error {
	switch {
	case err == nil:
		w.misses = 0
		return nil
	case errors.Is(err, context.Canceled), answeredNo(err):
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, context.DeadlineExceeded), errors.Is(err, rotator.ErrNoReply),
		errors.Is(err, rotator.ErrBadReply):
		if w.misses++; w.misses < lostReplies {
			return nil
		}
	}
	return err
}
