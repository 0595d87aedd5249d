package station

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// schedulerHolder is the name under which the scheduler holds the motion lease.
const schedulerHolder = "scheduler"

// Bounds of a pass, station time.
const (
	driftLimit   = 60 * time.Second // elements that move AOS further make the pass drift (hazard S-04)
	driftSearch  = 10 * time.Minute // where to look for it, before and after
	retryEvery   = time.Second      // between two tries of what may pass
	lateMargin   = 2 * time.Second  // kept when a pass is begun late, beside the slew
	lateTries    = 5                // to find where a late antenna meets the satellite
	minRemainder = 10 * time.Second // shorter is not worth it
	parkGrace    = 30 * time.Second // beside the slew
	completeFrac = 0.9              // of the pass on the beam: completed, else partial
)

// A PassJob is one scheduled pass to be worked.
type PassJob struct {
	ScheduledID string
	PassID      string
	NoradID     int
	Satellite   string
	AOS, TCA    time.Time
	LOS         time.Time
	MaxElDeg    float64
	Downlink    radio.Tuning // nominal; a zero frequency leaves the radio alone
	Uplink      radio.Tuning
	By          event.Author // who booked it
}

// A PassEnd is how a pass ended: a terminal state of the contract, section 6.
type PassEnd struct {
	State  string
	Code   string
	Reason string
	Stats  track.Stats
	Tally  track.Tally
	// TrackedS is the time under setpoints; DopplerMaxHz the largest shift set.
	TrackedS     float64
	DopplerMaxHz int64
}

// passView is the pass that is being worked.
type passView struct {
	PassJob
	plan     *track.Plan
	state    string
	errorDeg float64
	measured bool
}

// A passEnded cancels a pass with a terminal state.
type passEnded struct{ state, code, reason string }

func (e *passEnded) Error() string { return e.reason }

// passRun is one pass at work.
type passRun struct {
	s      *Station
	booked PassJob
	job    PassJob // as the newest elements have it
	orbit  *passes.Orbit
	report func(state, code, reason string)
	cmd    Command
	seq    uint64
	about  event.About
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	rec     *track.Recorder
	lastObs time.Time
	errNow  float64
	shift   int64
	aosSent bool
	tally   track.Tally
	tracked time.Duration
}

// RunPass works one pass: plan, pre-point, track, park. It reports each state
// and returns the terminal one. The context's end gives the pass up; its cause,
// when it is not the end of the station, is for the caller.
func (s *Station) RunPass(ctx context.Context, job PassJob, report func(state, code, reason string)) PassEnd {
	pctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	by := job.By
	r := &passRun{s: s, booked: job, job: job, report: report, cancel: cancel, rec: track.NewRecorder(s.o.BeamwidthDeg),
		cmd: Command{ID: newCommandID(), Caller: Caller{Role: Operator, UID: -1, User: schedulerHolder, Session: schedulerHolder}, Verb: VerbPass,
			Args: map[string]any{"scheduled_pass_id": job.ScheduledID, "pass_id": job.PassID, "created_by": job.By}},
		about: event.About{Subject: "pass/" + job.PassID, Correlation: job.ScheduledID, Author: &by}}
	s.mu.Lock()
	s.stopping = func(state, code, reason string) { cancel(&passEnded{state, code, reason}) }
	s.pass = &passView{PassJob: job, state: "prepass"}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.stopping, s.pass, s.observe = nil, nil, nil
		s.mu.Unlock()
		s.leases.drop(schedulerHolder)
		s.changed("schedule")
	}()
	if s.rot == nil {
		return PassEnd{State: "refused", Code: string(safety.DeviceAbsent), Reason: "no rotator is configured"}
	}
	r.state("prepass", "")
	end := r.work(pctx)
	why, taken := context.Cause(pctx).(*passEnded)
	if taken {
		end.State, end.Code, end.Reason = why.state, why.code, why.reason
	}
	if r.seq == 0 { // nothing was moved, and nothing is now
		return end
	}
	if ctx.Err() == nil && !taken { // else somebody else decides what the antenna does
		r.park(ctx)
	}
	s.result(r.cmd, r.seq, end.State, end.Reason, r.tracked)
	return end
}

func (r *passRun) state(state, reason string) {
	r.s.mu.Lock()
	if r.s.pass != nil {
		r.s.pass.state = state
	}
	r.s.mu.Unlock()
	r.report(state, "", reason)
	r.s.changed("schedule")
}

// work tries until the pass is over; what may pass (a lease, a lost line, a
// hold) is tried again, what cannot is a refusal.
func (r *passRun) work(ctx context.Context) PassEnd {
	var last error
	refusedOnce := safety.Code("")
	for ctx.Err() == nil {
		plan, orbit, err := r.plan(ctx)
		if err == nil {
			err = r.attempt(ctx, plan, orbit)
			if err == nil {
				break
			}
		}
		if errors.Is(err, errTooLate) {
			if last == nil {
				last = err
			}
			break
		}
		last = err
		var ref *safety.Refusal
		if errors.As(err, &ref) {
			if refusedOnce != ref.Code { // once each: it is tried every second
				refusedOnce = ref.Code
				r.s.refused(r.cmd, ref)
			}
			if final(ref.Code) {
				if r.tracked > 0 { // a part of it was worked
					break
				}
				return r.end("refused", string(ref.Code), ref.Why)
			}
		}
		if r.s.o.Clock.Sleep(ctx, retryEvery) != nil {
			break
		}
	}
	return r.verdict(ctx, last)
}

// final says that waiting does not help.
func final(c safety.Code) bool {
	switch c {
	case safety.LeaseHeld, safety.HeldAfterStop, safety.Standby, safety.ModeLocal, safety.ModeMaintenance, safety.DeviceAbsent,
		safety.FeedbackStale, safety.ClockUntrusted, safety.PowerLow, safety.Wind, safety.StateNotDurable, safety.DeviceFault,
		safety.Stalled, safety.FeedbackSuspect, safety.EStop, safety.WrapUnknown:
		return false
	}
	return true
}

var errTooLate = errors.New("nothing useful of the pass is left")

// plan makes the motion plan from where the antenna is now, with the newest
// elements; late, it begins as soon as the antenna can be there.
func (r *passRun) plan(ctx context.Context) (*track.Plan, *safety.Orbit, error) {
	s := r.s
	orbit, facts := s.o.Orbits.Orbit(r.job.NoradID)
	if orbit == nil {
		if facts != nil && facts.Decayed != "" {
			return nil, nil, safety.Refuse(safety.SatelliteDecayed, "choose another satellite", "satellite %d: %s", r.job.NoradID, facts.Decayed)
		}
		return nil, nil, safety.Refuse(safety.SatelliteUnknown, "import its elements", "no elements of satellite %d are known", r.job.NoradID)
	}
	if err := r.refresh(ctx, orbit); err != nil {
		return nil, nil, err
	}
	now := s.o.Clock.Now()
	begin := r.job.AOS
	if now.After(begin) {
		begin = now
	}
	if r.job.LOS.Sub(begin) < minRemainder {
		return nil, nil, errTooLate
	}
	f := s.facts()
	// What may pass is not worth a plan: this is tried every second.
	if ref := safety.Decide(&s.o.Rules, f, safety.Request{Verb: safety.VerbPrePoint, Holder: schedulerHolder, Rank: safety.RankScheduler, Mech: &f.Position, Orbit: facts}); ref != nil && !final(ref.Code) {
		return nil, nil, ref
	}
	for try := 0; ; try++ { // the slew depends on where it goes
		if r.job.LOS.Sub(begin) < minRemainder {
			return nil, nil, errTooLate
		}
		plan, ref := s.makePlan(orbit, f.Position, begin, r.job.LOS)
		if ref != nil {
			return nil, nil, ref
		}
		// The last try is near enough: the antenna catches up.
		if plan.PreSlew == 0 || !now.Add(plan.PreSlew+lateMargin/2).After(begin) || try == lateTries {
			return plan, facts, nil
		}
		begin = now.Add(plan.PreSlew + lateMargin)
	}
}

// refresh moves the pass to where the newest elements have it, or refuses one
// that has moved too far: what was booked is not what would be worked.
func (r *passRun) refresh(ctx context.Context, orbit *passes.Orbit) error {
	if r.orbit == orbit {
		return nil
	}
	b := r.booked
	found, _, err := passes.Find(ctx, orbit, r.s.o.Site, passes.Options{From: b.AOS.Add(-driftSearch), To: b.LOS.Add(driftSearch), Horizon: r.s.o.Rules.Horizon})
	if err != nil {
		return fmt.Errorf("look for the pass with the newest elements: %w", err)
	}
	fix := "compare sources of elements, then cancel it and book the pass as it is now"
	p, ok := passes.Match(b.PassID, found)
	if !ok {
		return safety.Refuse(safety.PassDrifted, fix, "with the newest elements satellite %d has no pass around %s", b.NoradID, b.TCA.UTC().Format("15:04:05Z"))
	}
	if !p.InProgressAtStart {
		if d := p.AOS.Time.Sub(b.AOS); d.Abs() > driftLimit {
			return safety.Refuse(safety.PassDrifted, fix, "with the newest elements AOS is at %s, %.0f s from the %s that was booked; the limit is %.0f s",
				p.AOS.Time.UTC().Format("15:04:05Z"), d.Abs().Seconds(), b.AOS.UTC().Format("15:04:05Z"), driftLimit.Seconds())
		}
		r.job.AOS = p.AOS.Time
	}
	if !p.CutAtEnd {
		r.job.LOS = p.LOS.Time
	}
	r.job.TCA, r.orbit = p.TCA.Time, orbit
	r.s.mu.Lock()
	if r.s.pass != nil {
		r.s.pass.AOS, r.s.pass.TCA, r.s.pass.LOS = r.job.AOS, r.job.TCA, r.job.LOS
	}
	r.s.mu.Unlock()
	return nil
}

func (s *Station) makePlan(orbit *passes.Orbit, from unit.AzEl, begin, end time.Time) (*track.Plan, *safety.Refusal) {
	q := track.Request{Sky: s.sky(orbit), Rules: &s.o.Rules, From: from, Begin: begin, End: end, BeamwidthDeg: s.o.BeamwidthDeg}
	q.AzimuthOnly = s.azimuthOnly()
	if s.o.Rules.SunSeparationDeg > 0 {
		q.Sun = func(t time.Time) *unit.AzEl { sun := passes.Sun(s.o.Site, t); return &sun }
	}
	return track.Make(q)
}

// sky shows an orbit from the station.
func (s *Station) sky(orbit *passes.Orbit) track.Sky {
	return func(t time.Time) (track.Sight, error) {
		l, err := orbit.Look(s.o.Site, t)
		if err != nil {
			return track.Sight{}, err
		}
		return track.Sight{AzEl: unit.AzEl{AzDeg: l.AzDeg, ElDeg: l.ElDeg}, RangeKm: l.RangeKm, RangeRateKmS: l.RangeRateKmS}, nil
	}
}

// PlanPass is the dry run of a pass: the plan from where the antenna is now, or
// the refusal of its geometry. warn says what the gate would hold against it
// now and may not any more when the pass comes.
func (s *Station) PlanPass(noradID int, aos, los time.Time) (plan *track.Plan, ref *safety.Refusal, warn []string) {
	orbit, facts := s.o.Orbits.Orbit(noradID)
	if orbit == nil {
		return nil, safety.Refuse(safety.SatelliteUnknown, "search with find_satellites, or import its elements", "no elements of satellite %d are known", noradID), nil
	}
	f := s.facts()
	if now := safety.PredictionGood(f, facts); now != nil {
		warn = append(warn, now.Why+": "+now.Fix)
	}
	plan, ref = s.makePlan(orbit, f.Position, aos, los)
	return plan, ref, warn
}

// attempt works the plan once: nil when its end was reached.
func (r *passRun) attempt(ctx context.Context, plan *track.Plan, orbit *safety.Orbit) error {
	s := r.s
	req := safety.Request{Verb: safety.VerbPrePoint, Holder: schedulerHolder, Rank: safety.RankScheduler, Mech: &plan.Start, Orbit: orbit}
	if ref := safety.Decide(&s.o.Rules, s.facts(), req); ref != nil {
		return ref
	}
	if r.seq == 0 { // one intent per pass, before its first byte
		seq, ref := s.intent(r.cmd)
		if ref != nil {
			return ref
		}
		r.seq = seq
		by := r.job.By
		s.emit(event.About{Subject: r.about.Subject, Correlation: r.job.ScheduledID, Author: &by}, event.ActuationRequested{CommandID: r.cmd.ID, Verb: string(r.cmd.Verb), AuditSeq: seq})
	}
	s.mu.Lock()
	if s.pass != nil {
		s.pass.plan = plan
	}
	s.mu.Unlock()
	actx, cancel := context.WithCancel(ctx)
	var prepared sync.WaitGroup // the antenna does not wait for the radio
	defer prepared.Wait()
	defer cancel()
	if s.rad != nil && r.job.Downlink.FrequencyHz > 0 {
		prepared.Go(func() { r.prepareRadio(actx, plan) })
	}
	if err := r.prePoint(ctx, plan, req); err != nil {
		return err
	}
	r.state("acquiring", "waiting at the point where the pass begins")
	// The mark comes before the wait: at the pass's beginning nothing waits for a
	// disk.
	if ref := s.markMoving(); ref != nil {
		return ref
	}
	if err := s.o.Clock.SleepUntil(ctx, plan.Begin); err != nil {
		if v, _ := s.rot.View(); v.measured && !v.moving { // the mark is not needed after all
			s.stood(v.mech)
		}
		return err
	}
	return r.track(ctx, plan, orbit)
}

// prePoint brings the antenna to where the plan begins.
func (r *passRun) prePoint(ctx context.Context, plan *track.Plan, req safety.Request) error {
	s := r.s
	done := make(chan motionEnd, 1)
	begun := s.o.Clock.Now()
	_, err := s.startMove(ctx, mover{id: r.cmd.ID, holder: schedulerHolder, who: fmt.Sprintf("the scheduler (%s, until %s)", r.job.ScheduledID, r.job.LOS.UTC().Format("15:04:05Z")), kind: AntennaSlewing, req: req, after: -1,
		lost: func(to string) { r.cancel(&passEnded{"preempted", "LEASE_HELD", to + " took the antenna"}) }}, func(e motionEnd) { done <- e })
	if err != nil {
		return err
	}
	select {
	case e := <-done:
		outcome, detail := e.words()
		s.emit(r.about, s.movedEvent(s.o.Rules.True(plan.Start), outcome, s.o.Clock.Now().Sub(begun)))
		switch {
		case e.Refusal != nil:
			return e.Refusal
		case outcome != "done":
			return fmt.Errorf("the antenna did not reach the start of the pass: %s", detail)
		}
		return nil
	case <-ctx.Done():
		r.halt(r.cmd.ID, "the pass was given up")
		return context.Cause(ctx)
	}
}

// halt stops a motion of the pass on a context of its own.
func (r *passRun) halt(id, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), haltTimeout)
	defer cancel()
	if err := r.s.rot.StopMotion(ctx, id, why); err != nil {
		r.s.log.Error("halt of a pass", "pass", r.job.PassID, "error", err)
	}
}

// prepareRadio sets both paths for the beginning of the pass. A radio that does
// not play along degrades the pass; the antenna tracks all the same.
func (r *passRun) prepareRadio(ctx context.Context, plan *track.Plan) {
	s := r.s
	_, sight, err := plan.At(plan.Begin)
	if err != nil {
		return
	}
	down := r.job.Downlink
	down.FrequencyHz = track.Received(down.FrequencyHz, sight.RangeRateKmS)
	err = s.rad.Do(ctx, func(ctx context.Context, rad radio.Radio) error { return rad.Prepare(ctx, down, r.job.Uplink) })
	name := s.o.Radio.Model.Name
	if err != nil {
		if ctx.Err() == nil {
			s.emit(r.about, event.RadioFault{Radio: name, Code: "RADIO_NOT_PREPARED", Fault: err.Error(), Fix: "check the radio's cable, power and satellite mode; the antenna tracks without it"})
		}
		return
	}
	s.emit(r.about, event.RadioTuned{Radio: name, Occasion: "pass_start", PassID: r.job.PassID, DownlinkHz: down.FrequencyHz, UplinkHz: r.job.Uplink.FrequencyHz,
		Mode: string(down.Mode), DopplerHz: down.FrequencyHz - r.job.Downlink.FrequencyHz, ReadBackEqual: true})
	s.changed("radio")
}

// track follows the plan to its end.
func (r *passRun) track(ctx context.Context, plan *track.Plan, orbit *safety.Orbit) error {
	s := r.s
	r.observe(plan)
	defer func() {
		s.mu.Lock()
		s.observe = nil
		s.mu.Unlock()
	}()
	if !r.aosSent {
		r.aosSent = true
		r.lookEvent(ctx, plan, plan.Begin, func(l event.Look, _ track.Sight) event.Data {
			return event.PassAOS{PassRef: r.ref(), Look: l, PointingErrorDeg: r.currentError()}
		})
	}
	s.rot.BeginTrack(safety.Request{Verb: safety.VerbTrack, Holder: schedulerHolder, Rank: safety.RankScheduler, Orbit: orbit})
	tctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { r.state("tracking", "") }) // it goes to the disk, and the satellite does not wait
	if s.rad != nil && r.job.Downlink.FrequencyHz > 0 {
		s.rad.Busy(true)
		wg.Go(func() {
			track.FollowDoppler(tctx, s.o.Clock, plan, r.job.Downlink.FrequencyHz, string(r.job.Downlink.Mode), &dopplerTuner{r: r})
			s.rad.Busy(false)
		})
	}
	if r.job.TCA.After(s.o.Clock.Now()) && r.job.TCA.Before(plan.End) {
		wg.Go(func() {
			if s.o.Clock.SleepUntil(tctx, r.job.TCA) == nil {
				r.lookEvent(ctx, plan, r.job.TCA, func(l event.Look, sight track.Sight) event.Data {
					shift := float64(track.Received(r.job.Downlink.FrequencyHz, sight.RangeRateKmS) - r.job.Downlink.FrequencyHz)
					return event.PassTCA{PassRef: r.ref(), Look: l, PointingErrorDeg: r.currentError(), DopplerHz: shift}
				})
			}
		})
	}
	begun := s.o.Clock.Now()
	tally, err := track.Follow(ctx, s.o.Clock, plan, s.rot)
	r.mu.Lock()
	r.tracked += s.o.Clock.Now().Sub(begun)
	r.tally.Ticks += tally.Ticks
	r.tally.Late += tally.Late
	r.mu.Unlock()
	s.rot.EndTrack()
	cancel()
	wg.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err == nil {
		r.lookEvent(ctx, plan, plan.End, func(l event.Look, _ track.Sight) event.Data { return event.PassLOS{PassRef: r.ref(), Look: l} })
	}
	return err
}

func (r *passRun) ref() event.PassRef {
	return event.PassRef{PassID: r.job.PassID, ScheduledPassID: r.job.ScheduledID, NoradID: r.job.NoradID, Satellite: r.job.Satellite}
}

func (r *passRun) lookEvent(ctx context.Context, plan *track.Plan, at time.Time, make func(event.Look, track.Sight) event.Data) {
	_, sight, err := plan.At(at)
	if err != nil {
		return
	}
	r.s.emit(r.about, make(event.Look{AzimuthDeg: unit.Norm360(sight.AzDeg), ElevationDeg: sight.ElDeg, RangeKm: sight.RangeKm}, sight))
}

// observe measures the pointing error at each reading of the position.
func (r *passRun) observe(plan *track.Plan) {
	s := r.s
	f := func(at time.Time, mech unit.AzEl) {
		if at.Before(plan.Begin) || at.After(plan.End) {
			return
		}
		_, sight, err := plan.At(at)
		if err != nil {
			return
		}
		e := unit.Separation(s.o.Rules.True(mech), sight.AzEl)
		r.mu.Lock()
		d := at.Sub(r.lastObs)
		if r.lastObs.IsZero() || d > 5*time.Second || d < 0 {
			d = pollMoving
		}
		r.lastObs = at
		r.errNow = e
		r.rec.Add(e, d)
		r.mu.Unlock()
		s.mu.Lock()
		if s.pass != nil {
			s.pass.errorDeg, s.pass.measured = e, true
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.observe = f
	s.mu.Unlock()
}

func (r *passRun) currentError() float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return math.Round(r.errNow*1000) / 1000
}

// dopplerTuner sets the downlink of the station's radio.
type dopplerTuner struct{ r *passRun }

// Tune implements track.Tuner. A frequency that the radio did not take shows in
// health; the next one is tried all the same.
func (d *dopplerTuner) Tune(hz int64) error {
	r := d.r
	r.mu.Lock()
	if shift := hz - r.job.Downlink.FrequencyHz; shift > r.shift || -shift > r.shift {
		r.shift = max(shift, -shift)
	}
	r.mu.Unlock()
	r.s.rad.Set(radio.Downlink, hz)
	r.s.changed("radio")
	return nil
}

// Lead implements track.Tuner.
func (d *dopplerTuner) Lead() time.Duration { return d.r.s.rad.Lead() }

func (r *passRun) end(state, code, reason string) PassEnd {
	r.mu.Lock()
	defer r.mu.Unlock()
	return PassEnd{State: state, Code: code, Reason: reason, Stats: r.rec.Stats(), Tally: r.tally,
		TrackedS: math.Round(r.tracked.Seconds()*10) / 10, DopplerMaxHz: r.shift}
}

// verdict names the end of a pass that was worked, or could not be.
func (r *passRun) verdict(ctx context.Context, last error) PassEnd {
	e := r.end("", "", "")
	whole := r.job.LOS.Sub(r.job.AOS).Seconds()
	onBeam := e.TrackedS - e.Stats.OffBeamS
	switch {
	case ctx.Err() != nil:
		e.State, e.Code, e.Reason = "failed", "GIVEN_UP", fmt.Sprintf("given up after %.0f s of %.0f s: %v", e.TrackedS, whole, context.Cause(ctx))
	case onBeam >= completeFrac*whole:
		e.State, e.Code = "completed", "DONE"
		e.Reason = fmt.Sprintf("tracked %.0f s of %.0f s, pointing error %.2f° (median) to %.2f° (largest)", e.TrackedS, whole, e.Stats.P50Deg, e.Stats.MaxDeg)
	case e.TrackedS > 0:
		e.State, e.Code = "partial", "PARTLY_TRACKED"
		e.Reason = fmt.Sprintf("tracked %.0f s of %.0f s, %.0f s of it off the beam%s", e.TrackedS, whole, e.Stats.OffBeamS, cause(last))
	default:
		e.State, e.Code = "missed", "NOT_POSSIBLE"
		var ref *safety.Refusal
		if errors.As(last, &ref) {
			e.Code = string(ref.Code)
		}
		e.Reason = "the pass was not tracked" + cause(last)
	}
	return e
}

func cause(err error) string {
	if err == nil {
		return ""
	}
	var ref *safety.Refusal
	if errors.As(err, &ref) {
		return ": " + ref.Why
	}
	return ": " + err.Error()
}

// park brings the antenna home after a pass; a refusal leaves it where it is
// and is told.
func (r *passRun) park(ctx context.Context) {
	s := r.s
	r.state("postpass", "parking")
	req := safety.Request{Verb: safety.VerbPark, Holder: schedulerHolder, Rank: safety.RankScheduler, Target: &s.o.Park}
	route, ref := safety.Way(&s.o.Rules, s.facts(), req)
	if ref != nil {
		s.refused(Command{ID: r.cmd.ID, Caller: r.cmd.Caller, Verb: VerbPark}, ref)
		return
	}
	pctx, cancel := context.WithTimeout(ctx, s.o.Clock.Real(route.Time+parkGrace)+haltTimeout)
	defer cancel()
	done := make(chan motionEnd, 1)
	begun := s.o.Clock.Now()
	_, err := s.startMove(pctx, mover{id: r.cmd.ID, holder: schedulerHolder, who: "the scheduler (parking)", kind: AntennaParking, req: req, after: -1}, func(e motionEnd) { done <- e })
	if err != nil {
		s.log.Error("park after a pass", "error", err)
		return
	}
	select {
	case e := <-done:
		outcome, _ := e.words()
		s.emit(r.about, s.movedEvent(s.o.Park, outcome, s.o.Clock.Now().Sub(begun)))
	case <-pctx.Done():
		r.halt(r.cmd.ID, "parking took too long")
	}
}
