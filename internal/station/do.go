package station

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// A Command asks for one thing.
type Command struct {
	ID     string // made by Do when empty
	Caller Caller
	Verb   Verb
	Args   any    // for the audit and for recognising a repeat; no secrets
	Key    string // idempotency key, or ""
	Expect string // antenna state that the caller believes in, or ""

	Target *unit.AzEl                             // point
	Tune   *TuneRequest                           // tune
	Mode   safety.Mode                            // mode
	Reason string                                 // mode, reset
	Fault  safety.Code                            // reset
	Safety bool                                   // an automatic safety action: it takes the lease from anyone
	Stream bool                                   // point: the session sends targets without end; those that follow soon are one command
	Apply  func(ctx context.Context) (any, error) // schedule, cancel: the effect; a *safety.Refusal is a refusal
	Still  func(answer json.RawMessage) bool      // schedule, cancel: an earlier answer to the same still holds; nil: it does
}

// A TuneRequest sets a receiver, or the uplink's frequency without keying it.
type TuneRequest struct {
	Path        radio.Path `json:"link"`
	FrequencyHz int64      `json:"frequency_hz"`
	Mode        radio.Mode `json:"mode,omitempty"`
}

// A Result is the answer to a command: one of Refusal, Err and Data.
type Result struct {
	CommandID string
	Refusal   *safety.Refusal
	Err       error           // a fault: we tried, the device or the disk did not
	Data      json.RawMessage // verb-specific
	Repeated  bool            // the first answer to the same request, again
}

// verbRule is one row of who may do what.
type verbRule struct {
	min    Role
	person bool   // agents never
	moves  bool   // needs the motion lease
	sort   string // of the hourly budget; "" has none
	gate   safety.Verb
}

var verbRules = map[Verb]verbRule{
	VerbPoint:    {min: Operator, moves: true, sort: "moves", gate: safety.VerbPoint},
	VerbPark:     {min: Operator, moves: true, sort: "moves", gate: safety.VerbPark},
	VerbTune:     {min: Operator, sort: "moves", gate: safety.VerbTune},
	VerbSchedule: {min: Operator, sort: "bookings", gate: safety.VerbSchedule},
	VerbCancel:   {min: Operator, sort: "bookings", gate: safety.VerbSchedule},
	VerbResume:   {min: Operator, person: true},
	VerbReset:    {min: Operator, person: true},
	VerbWinding:  {min: Operator, person: true},
	VerbMode:     {min: Supervisor, person: true},
}

// May reports why a caller may not use a verb, or nil.
func May(c Caller, v Verb) *safety.Refusal {
	r, ok := verbRules[v]
	if !ok {
		return safety.Refuse(safety.NotPermitted, "use one of the documented commands", "there is no command %q", v)
	}
	if r.person && c.Agent {
		return safety.Refuse(safety.NotPermitted, "ask a person with the role to do it", "%s is for people: an agent can never do it", v)
	}
	if c.Role < r.min {
		return safety.Refuse(safety.NotPermitted, "ask a person with the role, or ask for the role in [access] of station.toml", "%s needs the role %s, %s has the role %s", v, r.min, who(c), c.Role)
	}
	return nil
}

func who(c Caller) string {
	if c.User != "" {
		return c.User
	}
	return fmt.Sprintf("uid %d", c.UID)
}

func rank(c Caller) safety.Rank {
	switch {
	case c.UID < 0:
		return safety.RankScheduler
	case c.Agent:
		return safety.RankAgent
	}
	return safety.RankOperator
}

// Do carries out one command: who and may they, is it a repeat, is it sane, is
// it safe, write down the intent, hand it to the owner, write down the result.
// Each step may refuse; nothing has been sent to the hardware then.
func (s *Station) Do(ctx context.Context, c Command) Result {
	if c.ID == "" {
		c.ID = newCommandID()
	}
	no := func(ref *safety.Refusal) Result {
		s.refused(c, ref)
		return Result{CommandID: c.ID, Refusal: ref}
	}
	if ref := May(c.Caller, c.Verb); ref != nil { // steps 1 and 2
		return no(ref)
	}
	rule := verbRules[c.Verb]
	if len(c.Key) > maxKeyLen {
		return no(safety.Refuse(safety.IdempotencyMismatch, "use a shorter key", "the idempotency key has %d characters, at most %d are kept", len(c.Key), maxKeyLen))
	}
	hash := hashArgs(c)
	if c.Stream {
		hash = c.ID // going there and back is no repeat
	}
	if rule.sort != "" {
		leave, err := s.guards.enter(ctx, c.Caller.UID, c.Key)
		if err != nil {
			return Result{CommandID: c.ID, Err: err}
		}
		defer leave()
		first, ref := s.guards.repeated(c.Caller.UID, c.Key, hash)
		if ref != nil {
			return no(ref)
		}
		if first != nil && (c.Key != "" || s.still(first, c)) {
			return Result{CommandID: first.ID, Data: first.Data, Repeated: true}
		}
		if c.Caller.Agent && !c.Stream {
			limit := s.o.AgentBudget.Moves
			if rule.sort == "bookings" {
				limit = s.o.AgentBudget.Bookings
			}
			if ref := s.guards.spend(c.Caller.UID, rule.sort, limit); ref != nil {
				return no(ref)
			}
		}
	}
	if ref := s.expected(c); ref != nil { // step 3
		return no(ref)
	}
	req := safety.Request{Verb: rule.gate, Holder: c.Caller.Session, Rank: rank(c.Caller)}
	if c.Safety {
		req.Rank = safety.RankSafety
	}
	switch c.Verb {
	case VerbPoint:
		if c.Target != nil {
			to := s.reach(*c.Target)
			c.Target = &to
		}
		req.Target = c.Target
	case VerbPark:
		req.Target = &s.o.Park
	}
	if rule.gate != "" { // step 4
		if ref := safety.Decide(&s.o.Rules, s.facts(), req); ref != nil {
			return no(ref)
		}
	} else if s.o.ReadOnly {
		return no(safety.Refuse(safety.ReadOnly, "use a station that may write", "this station is read-only"))
	}
	if c.Stream {
		if r, joined := s.renew(ctx, c, req); joined {
			return r
		}
		if s.there(*c.Target) {
			return answered(moveAnswer(c.ID, *c.Target, 0), true)
		}
		if c.Caller.Agent { // once for all its targets
			if ref := s.guards.spend(c.Caller.UID, rule.sort, s.o.AgentBudget.Moves); ref != nil {
				return no(ref)
			}
		}
	}
	seq, ref := s.intent(c) // step 5
	if ref != nil {
		return no(ref)
	}
	by := author(c.Caller)
	s.emit(event.About{Subject: "command/" + c.ID, Correlation: c.ID, Trace: c.Caller.Trace, Author: &by},
		event.ActuationRequested{CommandID: c.ID, Verb: string(c.Verb), AuditSeq: seq})
	begun := s.o.Clock.Now()
	data, err := s.perform(ctx, c, seq, req) // steps 6 and 7
	took := s.o.Clock.Now().Sub(begun)
	if err != nil {
		var r *safety.Refusal
		if errors.As(err, &r) {
			s.result(c, seq, "refused", string(r.Code)+": "+r.Why, took)
			return no(r)
		}
		s.result(c, seq, "failed", err.Error(), took)
		return Result{CommandID: c.ID, Err: err}
	}
	if !rule.moves { // a move's result is written when it ends
		s.result(c, seq, "done", "", took)
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Result{CommandID: c.ID, Err: fmt.Errorf("answer of %s: %w", c.Verb, err)}
	}
	if rule.sort != "" {
		if err := s.guards.remember(remembered{UID: c.Caller.UID, Verb: string(c.Verb), Key: c.Key, Hash: hash, ID: c.ID, Data: raw}); err != nil {
			s.disk(err)
		}
	}
	return Result{CommandID: c.ID, Data: raw}
}

// still reports whether the effect of an earlier equal request still holds, so
// that repeating it would change nothing. Parking and tuning are done again:
// stow is always re-sent, and a dial may have been turned.
func (s *Station) still(first *remembered, c Command) bool {
	switch c.Verb {
	case VerbPoint:
		if s.rot == nil {
			return false
		}
		v, _ := s.rot.View()
		return v.motionID == first.ID || v.motionID == "" && v.lastMotion == first.ID && v.state == AntennaPositioned
	case VerbPark, VerbTune:
		return false
	}
	return c.Still == nil || c.Still(first.Data)
}

// expected is the compare-and-set of expect_state.
func (s *Station) expected(c Command) *safety.Refusal {
	if c.Target != nil && !c.Target.Finite() {
		return safety.Refuse(safety.AzimuthLimit, "give real numbers", "%v is not a direction", *c.Target)
	}
	if c.Expect == "" || s.rot == nil {
		return nil
	}
	if v, _ := s.rot.View(); string(v.state) != c.Expect {
		return safety.Refuse(safety.StateChanged, "read get_antenna and decide again", "the antenna is %s, not %s as the caller expected", v.state, c.Expect)
	}
	return nil
}

// perform hands an admitted command to whoever does it.
func (s *Station) perform(ctx context.Context, c Command, seq uint64, req safety.Request) (any, error) {
	switch c.Verb {
	case VerbPoint:
		return s.moveTo(ctx, c, seq, req, AntennaSlewing)
	case VerbPark:
		return s.moveTo(ctx, c, seq, req, AntennaParking)
	case VerbTune:
		return s.tune(ctx, c)
	case VerbSchedule, VerbCancel:
		return c.Apply(ctx)
	case VerbResume:
		return s.resume(ctx, c)
	case VerbMode:
		return s.setMode(ctx, c)
	case VerbReset:
		return s.reset(c)
	case VerbWinding:
		return s.confirmWinding()
	}
	return nil, fmt.Errorf("command %q has no effect", c.Verb)
}

// A MoveAnswer is the handle of a move under way.
type MoveAnswer struct {
	CommandID string    `json:"command_id"`
	Target    unit.AzEl `json:"target"`
	ExpectedS float64   `json:"expected_s"` // until arrival
	Follow    string    `json:"follow"`     // the resource to read
}

func (s *Station) moveTo(ctx context.Context, c Command, seq uint64, req safety.Request, kind AntennaState) (any, error) {
	begun := s.o.Clock.Now()
	route, ref := safety.Way(&s.o.Rules, s.facts(), req)
	if ref != nil {
		return nil, ref
	}
	m := &manual{id: c.ID, uid: c.Caller.UID, session: c.Caller.Session, stream: c.Stream, target: *req.Target, targets: 1}
	mv := mover{id: c.ID, holder: c.Caller.Session, who: who(c.Caller), kind: kind, req: req, after: leaseAfter}
	if c.Stream {
		mv.linger = streamGap
	}
	mo, err := s.startMove(ctx, mv, func(e motionEnd) {
		outcome, detail := e.words()
		took := s.o.Clock.Now().Sub(begun)
		target, targets := s.manualOver(m)
		if targets > 1 {
			detail = strings.TrimPrefix(fmt.Sprintf("%s; %d targets, the last one %v", detail, targets, target), "; ")
		}
		s.result(c, seq, outcome, detail, took)
		by := author(c.Caller)
		s.emit(event.About{Subject: "command/" + c.ID, Correlation: c.ID, Trace: c.Caller.Trace, Author: &by},
			s.movedEvent(target, outcome, took))
	})
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	m.motion, s.manual = mo, m
	s.mu.Unlock()
	return moveAnswer(c.ID, *req.Target, route.Time), nil
}

func moveAnswer(id string, target unit.AzEl, expected time.Duration) MoveAnswer {
	return MoveAnswer{CommandID: id, Target: target, ExpectedS: expected.Seconds(), Follow: "station://antenna"}
}

func (s *Station) movedEvent(target unit.AzEl, outcome string, took time.Duration) event.AntennaMoved {
	v, _ := s.rot.View()
	at := s.o.Rules.True(v.mech)
	words := map[string]string{"done": "arrived", "stopped": "stopped", "failed": "timeout"}
	return event.AntennaMoved{CommandedAzimuthDeg: target.AzDeg, CommandedElevationDeg: target.ElDeg,
		MeasuredAzimuthDeg: at.AzDeg, MeasuredElevationDeg: at.ElDeg, DurationS: took.Seconds(), Outcome: words[outcome]}
}

// words are the outcome and its detail for the audit.
func (e motionEnd) words() (outcome, detail string) {
	switch {
	case e.Refusal != nil:
		return "stopped", string(e.Refusal.Code) + ": " + e.Refusal.Why
	case e.Fault != nil:
		return "failed", e.Fault.Error()
	case e.Stopped != "":
		return "stopped", e.Stopped
	}
	return "done", ""
}

// A mover is who starts a move and how.
type mover struct {
	id, holder, who string
	kind            AntennaState
	req             safety.Request
	lost            func(to string) // somebody of a higher rank took the lease
	after           time.Duration   // how long the lease outlives the move; negative: it is kept
	linger          time.Duration   // the move is not over before this long after its last target
}

// startMove takes the lease, writes the mark and starts the motion. ended is
// called once, after startMove has returned nil, when the motion is over; an
// error means that it never began.
func (s *Station) startMove(ctx context.Context, m mover, ended func(motionEnd)) (*motion, error) {
	g, ref := s.leases.take(m.holder, m.who, m.req.Rank, m.lost)
	if ref != nil {
		return nil, ref
	}
	// Until it is known whether this move begins, the end of another one must not
	// take the mark away.
	s.mu.Lock()
	s.starting++
	s.mu.Unlock()
	begun := false
	defer func() {
		s.mu.Lock()
		s.starting--
		s.mu.Unlock()
		if v, _ := s.rot.View(); !begun && v.measured && !v.moving {
			s.stood(v.mech)
		}
	}()
	if ref := s.markMoving(); ref != nil {
		g.undo()
		return nil, ref
	}
	// The owner may end the motion before it has told us that it began.
	var (
		mu       sync.Mutex
		accepted bool
		end      *motionEnd
	)
	finish := func(e motionEnd) {
		if m.after >= 0 {
			g.release(m.after)
		}
		ended(e)
	}
	mo := &motion{id: m.id, kind: m.kind, req: m.req, linger: m.linger, done: func(e motionEnd) {
		mu.Lock()
		end = &e
		now := accepted
		mu.Unlock()
		if now {
			finish(e)
		}
	}}
	if err := s.rot.Start(ctx, mo); err != nil {
		var ref *safety.Refusal
		if !errors.As(err, &ref) { // it may have begun all the same
			sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
			defer cancel()
			if serr := s.rot.Stop(sctx, "a move was not accepted"); serr != nil {
				err = errors.Join(err, serr)
			}
		}
		g.undo()
		return nil, err
	}
	begun = true
	g.keep()
	mu.Lock()
	accepted = true
	e := end
	mu.Unlock()
	if e != nil {
		finish(*e)
	}
	return mo, nil
}

func (s *Station) tune(ctx context.Context, c Command) (any, error) {
	t := c.Tune
	if t == nil {
		return nil, errors.New("the request names no frequency")
	}
	var got int64
	err := s.rad.Do(ctx, func(ctx context.Context, r radio.Radio) (err error) {
		if t.Mode != "" {
			if err = r.SetMode(ctx, t.Path, t.Mode); err != nil {
				return err
			}
		}
		got, err = r.Tune(ctx, t.Path, t.FrequencyHz)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("tune: %w", err)
	}
	d := event.RadioTuned{Radio: s.o.Radio.Model.Name, Occasion: "manual", Mode: string(t.Mode), ReadBackEqual: got == t.FrequencyHz}
	if t.Path == radio.Uplink {
		d.UplinkHz = got
	} else {
		d.DownlinkHz = got
	}
	by := author(c.Caller)
	s.emit(event.About{Subject: "radio", Correlation: c.ID, Trace: c.Caller.Trace, Author: &by}, d)
	s.changed("radio")
	return map[string]any{"link": t.Path, "frequency_hz": got, "mode": t.Mode}, nil
}

// A StopAnswer says how a stop went.
type StopAnswer struct {
	CommandID string   `json:"command_id"`
	LatencyMs float64  `json:"latency_ms"` // to the last stop byte, real time
	Sent      bool     `json:"sent"`       // every device that is there was told
	Confirmed bool     `json:"confirmed"`  // standstill was read back
	Problems  []string `json:"problems"`
	Next      string   `json:"next"`
}

// Stop stops motion and transmission now. Anyone may; it asks no gate, no
// lease and no disk, and the station holds until an operator resumes. Bytes
// come first, then standstill is awaited for a moment, then it is written down.
func (s *Station) Stop(ctx context.Context, c Caller, reason string) StopAnswer {
	begun := time.Now()
	ans := StopAnswer{CommandID: newCommandID(), Sent: true, Problems: []string{}, Next: "an operator makes sure that all is safe and runs: gsd-mcp resume"}
	by := fmt.Sprintf("by %s at %s", who(c), s.o.Clock.Now().Format("15:04:05Z"))
	s.mu.Lock()
	s.mode.Held, s.mode.HeldBy, s.mode.Since = true, by, s.o.Clock.Now()
	mode := s.mode.Mode
	end := s.stopping
	var passID string
	if s.pass != nil {
		passID = s.pass.PassID
	}
	s.mu.Unlock()
	// Bytes first, on a context of its own: a client that is gone must not take
	// its stop along.
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
	defer cancel()
	var rotErr, radErr error
	var wg sync.WaitGroup
	if s.rot != nil {
		wg.Go(func() { rotErr = s.rot.Stop(sctx, "stopped "+by) })
	}
	if s.rad != nil {
		wg.Go(func() { radErr = s.rad.Halt(sctx) })
	}
	wg.Wait()
	for _, err := range []error{rotErr, radErr} {
		if err != nil {
			ans.Sent = false
			ans.Problems = append(ans.Problems, err.Error())
		}
	}
	ans.LatencyMs = float64(time.Since(begun).Microseconds()) / 1000
	if end != nil {
		end("stopped", string(safety.HeldAfterStop), "stopped "+by)
	}
	s.leases.clear()
	s.queue.put(func() { // the hold, also for the next start
		if err := s.saveMode(); err != nil {
			s.disk(err)
		}
	})
	if s.rot != nil && rotErr == nil {
		if s.rot.setOnly() {
			ans.Problems = append(ans.Problems, "not confirmed: this controller cannot tell its position: look at the antenna")
		} else if ans.Confirmed = s.awaitStill(sctx); !ans.Confirmed {
			ans.Problems = append(ans.Problems, "standstill has not been read back yet: read get_antenna")
		}
	}
	rec := auditRecord{What: "stop", Command: ans.CommandID, Verb: VerbStop, By: author(c), Role: c.Role.String(), Detail: reason, Outcome: fmt.Sprintf("sent=%v confirmed=%v", ans.Sent, ans.Confirmed), Station: mode}
	s.queue.put(func() {
		if _, err := s.o.Audit.Append(rec); err != nil {
			s.disk(err)
		}
	})
	a := author(c)
	s.emit(event.About{Subject: "station", Correlation: ans.CommandID, Trace: c.Trace, Author: &a},
		event.StationStopped{Reason: reason, LatencyMs: ans.LatencyMs, Confirmed: ans.Confirmed, PassID: passID, HeldUntil: "resume"})
	s.changed("health")
	s.changed("antenna")
	return ans
}

// awaitStill waits until the owner has confirmed standstill, or ctx ends.
func (s *Station) awaitStill(ctx context.Context) bool {
	for {
		v, _ := s.rot.View()
		if v.stopped {
			return true
		}
		if s.o.Clock.Sleep(ctx, pollStopping) != nil {
			return false
		}
	}
}

func (s *Station) resume(ctx context.Context, c Command) (any, error) {
	s.mu.Lock()
	was := s.mode
	if !was.Held {
		s.mu.Unlock()
		return map[string]any{"resumed": false, "note": "the station did not hold"}, nil
	}
	s.mode.Held, s.mode.HeldBy = false, ""
	s.mu.Unlock()
	if err := s.saveMode(); err != nil {
		s.mu.Lock()
		s.mode.Held, s.mode.HeldBy = true, was.HeldBy
		s.mu.Unlock()
		s.disk(err)
		return nil, fmt.Errorf("resume: %w", err)
	}
	by := author(c.Caller)
	s.emit(event.About{Subject: "station", Correlation: c.ID, Trace: c.Caller.Trace, Author: &by}, event.StationResumed{StoppedForS: s.o.Clock.Now().Sub(was.Since).Seconds()})
	s.changed("health")
	return map[string]any{"resumed": true}, nil
}

// setMode changes the mode; every change stops motion first. While it lasts
// nothing may begin to move.
func (s *Station) setMode(ctx context.Context, c Command) (any, error) {
	switch c.Mode {
	case safety.ModeStandby, safety.ModeRemote, safety.ModeOnSite, safety.ModeMaint:
	default:
		return nil, safety.Refuse(safety.NotPermitted, "use standby, remote, local or maintenance", "mode %q cannot be set", unit.Printable(string(c.Mode), 20))
	}
	s.mu.Lock()
	was := s.mode
	end := s.stopping
	if was.Mode == safety.ModeEStop {
		s.mu.Unlock()
		return nil, safety.Refuse(safety.EStop, "reset the emergency stop first", "the emergency stop is latched")
	}
	s.mode.Mode, s.mode.Why = safety.ModeStandby, "the mode changes to "+string(c.Mode)
	s.mu.Unlock()
	set := func(m modeState) {
		s.mu.Lock()
		m.Held, m.HeldBy = s.mode.Held, s.mode.HeldBy // a stop may have come meanwhile
		s.mode = m
		s.mu.Unlock()
	}
	if s.rot != nil {
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
		err := s.rot.Stop(sctx, "the mode changes to "+string(c.Mode))
		cancel()
		if v, _ := s.rot.View(); err != nil && v.present {
			set(was)
			return nil, fmt.Errorf("the mode was not changed, since motion could not be stopped: %w", err)
		}
	}
	if end != nil {
		end("stopped", "MODE_CHANGED", "the mode changed to "+string(c.Mode))
	}
	next := was
	next.Version, next.Mode, next.Since = 1, c.Mode, s.o.Clock.Now()
	next.Why = fmt.Sprintf("set by %s", who(c.Caller))
	if c.Reason != "" {
		next.Why += ": " + c.Reason
	}
	set(next)
	if err := s.saveMode(); err != nil {
		set(was)
		s.disk(err)
		return nil, fmt.Errorf("change the mode: %w", err)
	}
	by := author(c.Caller)
	s.emit(event.About{Subject: "station", Correlation: c.ID, Trace: c.Caller.Trace, Author: &by}, event.ModeChanged{From: string(was.Mode), To: string(next.Mode), Reason: next.Why})
	s.changed("health")
	return map[string]any{"mode": next.Mode, "was": was.Mode}, nil
}

// reset clears a latched device fault. It moves nothing.
func (s *Station) reset(c Command) (any, error) {
	if s.rot == nil {
		return nil, safety.Refuse(safety.DeviceAbsent, "add [rotator] to station.toml", "no rotator is configured")
	}
	v, _ := s.rot.View()
	if v.fault == "" {
		return map[string]any{"reset": false, "note": "no fault is latched"}, nil
	}
	if c.Fault != "" && c.Fault != v.fault {
		return nil, safety.Refuse(safety.DeviceFault, "run: gsd-mcp reset "+string(v.fault), "the latched fault is %s, not %s", v.fault, c.Fault)
	}
	if err := s.forgetFaults(); err != nil {
		s.disk(err)
		return nil, fmt.Errorf("the fault stays latched, since the reset could not be written down: %w", err)
	}
	s.rot.Reset()
	s.changed("health")
	return map[string]any{"reset": true, "fault": v.fault}, nil
}

// confirmWinding takes a person's word that the cables hang as the position
// says.
func (s *Station) confirmWinding() (any, error) {
	if s.rot == nil {
		return nil, safety.Refuse(safety.DeviceAbsent, "add [rotator] to station.toml", "no rotator is configured")
	}
	v, _ := s.rot.View()
	if !v.measured {
		return nil, safety.Refuse(safety.FeedbackStale, "check the rotator, then read get_antenna", "no position has been read yet")
	}
	if v.moving {
		return nil, safety.Refuse(safety.WrapUnknown, "stop the antenna, look at the cables, then confirm", "the antenna moves: where its cables hang is not what was seen")
	}
	s.rot.ConfirmWinding()
	s.stood(v.mech)
	return map[string]any{"unwrapped_azimuth_deg": v.mech.AzDeg}, nil
}

// EndPass ends the pass that is being worked, if any, with a terminal state.
func (s *Station) EndPass(state, code, reason string) {
	s.mu.Lock()
	end := s.stopping
	s.mu.Unlock()
	if end != nil {
		end(state, code, reason)
	}
}

// SessionEnded tells that a connection is gone: its lease ends and a manual
// move of it stops. A scheduled pass belongs to the scheduler and goes on.
func (s *Station) SessionEnded(session string) {
	l := s.leases.current()
	if l.Holder != session || session == "" {
		return
	}
	s.leases.drop(session)                // first: a move of it that is on its way is refused then
	if l.Until.IsZero() && s.rot != nil { // it moves
		ctx, cancel := context.WithTimeout(context.Background(), haltTimeout)
		defer cancel()
		if err := s.rot.Stop(ctx, "the session that moved it ended"); err != nil {
			s.log.Error("stop after a lost session", "error", err)
		}
	}
}
