package station

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

const (
	// streamGap is how long a stream of targets stays open after its last one,
	// station time. Tracking programs send one every 0.7 s to a few seconds.
	streamGap = 5 * time.Second
	// refusalGap is how often equal refusals of a stream are told, station time:
	// a tracking program asks again every second for as long as it runs.
	refusalGap = time.Minute
	// maxTold bounds what is remembered of refusals.
	maxTold = 256
)

// errMotionOver tells that the motion that was to get a new target has ended.
var errMotionOver = errors.New("the move is over")

// A manual is the move that was asked for by hand last. A stream is one that is
// given new targets while it lasts: it has one intent and one result in the
// audit, as a pass has, and ends streamGap after its last target.
type manual struct {
	id      string // of its command
	uid     int
	session string
	left    bool // the session took its leave; the move goes on
	stream  bool
	motion  *motion
	target  unit.AzEl
	targets int
	grant   *grant // of the session that took the stream over
}

// ours reports whether a caller may take the move for its own: it began it, or
// is the same account and the session that began it has left.
func (m *manual) ours(c Caller) bool {
	return m != nil && (m.session == c.Session || m.left && m.uid == c.UID)
}

// renew gives the stream that a caller has under way another target. ok is
// false when there is none: the command begins one.
func (s *Station) renew(ctx context.Context, c Command, req safety.Request) (r Result, ok bool) {
	s.mu.Lock()
	m := s.manual
	ok = m.ours(c.Caller) && m.stream
	taken := ok && m.left
	s.mu.Unlock()
	if !ok {
		return Result{}, false
	}
	no := func(ref *safety.Refusal) (Result, bool) {
		s.refused(c, ref)
		return Result{CommandID: m.id, Refusal: ref}, true
	}
	if taken {
		g, ref := s.leases.take(c.Caller.Session, who(c.Caller), req.Rank, nil)
		if ref != nil {
			return no(ref)
		}
		s.mu.Lock()
		m.session, m.left, m.grant = c.Caller.Session, false, g
		s.mu.Unlock()
	}
	took, err := s.rot.Renew(ctx, m.motion, req)
	var ref *safety.Refusal
	switch {
	case errors.Is(err, errMotionOver):
		if taken {
			s.leases.drop(c.Caller.Session)
		}
		return Result{}, false
	case errors.As(err, &ref):
		return no(ref)
	case err != nil:
		return Result{CommandID: m.id, Err: err}, true
	}
	s.mu.Lock()
	m.target = *req.Target
	m.targets++
	s.mu.Unlock()
	return answered(moveAnswer(m.id, *req.Target, took), false), true
}

// manualOver closes the account of a move that has ended.
func (s *Station) manualOver(m *manual) (target unit.AzEl, targets int) {
	s.mu.Lock()
	g := m.grant
	target, targets = m.target, m.targets
	s.mu.Unlock()
	if g != nil {
		g.release(leaseAfter)
	}
	return target, targets
}

func answered(a MoveAnswer, repeated bool) Result {
	raw, err := json.Marshal(a)
	return Result{CommandID: a.CommandID, Data: raw, Err: err, Repeated: repeated}
}

// there reports that the antenna stands at a target, within the deadband, so
// that a stream to it needs no move.
func (s *Station) there(target unit.AzEl) bool {
	if s.rot == nil {
		return false
	}
	v, _ := s.rot.View()
	at := s.o.Rules.True(v.mech)
	return v.measured && !v.moving && v.motionID == "" &&
		math.Abs(unit.Diff(at.AzDeg, target.AzDeg)) < s.rot.o.DeadbandDeg && math.Abs(at.ElDeg-target.ElDeg) < s.rot.o.DeadbandDeg
}

// Halt halts the antenna, unless somebody else moves it, without the hold that
// a Stop leaves behind. ours is false when somebody else does: then nothing was
// sent, and only Stop ends that motion.
func (s *Station) Halt(ctx context.Context, c Caller) (ours bool, err error) {
	if s.rot == nil {
		return true, nil
	}
	v, _ := s.rot.View()
	s.mu.Lock()
	mine := s.manual.ours(c) && s.manual.id == v.motionID
	s.mu.Unlock()
	if !mine && (v.motionID != "" || s.leases.current().Holder == schedulerHolder) {
		return false, nil
	}
	why := ""
	if mine {
		why = "halted by " + who(c)
	}
	// A client that is gone must not take its halt along.
	hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
	defer cancel()
	if err := s.rot.Stop(hctx, why); err != nil {
		return true, fmt.Errorf("halt: %w", err)
	}
	return true, nil
}

// SessionLeft tells that a session took its leave, as rotctl does once its move
// has been accepted: its lease ends, and its move goes on to where it was sent.
// For a connection that is simply gone there is SessionEnded.
func (s *Station) SessionLeft(session string) {
	s.mu.Lock()
	if s.manual != nil && s.manual.session == session {
		s.manual.left = true
	}
	s.mu.Unlock()
	s.leases.drop(session)
}

// A told is when a refusal was told last, and how often it was not since.
type told struct {
	at   time.Time
	more int
}

type toldKey struct {
	uid  int
	code safety.Code
}

// tell says whether a refusal of a stream is written and published, and with
// which words: equal ones are once in refusalGap.
func (s *Station) tell(uid int, ref *safety.Refusal) (*safety.Refusal, bool) {
	now := s.o.Clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k := toldKey{uid, ref.Code}
	t, known := s.told[k]
	if known && now.Sub(t.at).Abs() < refusalGap {
		t.more++
		s.told[k] = t
		return ref, false
	}
	if len(s.told) >= maxTold || s.told == nil {
		s.told = map[toldKey]told{}
	}
	s.told[k] = told{at: now}
	if t.more > 0 {
		r := *ref
		r.Why += fmt.Sprintf(" (and %d more such refusals since %s)", t.more, t.at.Format("15:04:05Z"))
		ref = &r
	}
	return ref, true
}

// Renew gives a motion under way another target, after the gate, and returns
// how long the way to it takes. A target within the deadband of the last one is
// taken note of and not sent. A refusal leaves the motion as it is.
func (w *rotatorOwner) Renew(ctx context.Context, m *motion, req safety.Request) (time.Duration, error) {
	if err := w.ask(ctx, startRequest{m: m, renew: &req, reply: make(chan error, 1)}); err != nil {
		return 0, err
	}
	v, _ := w.View()
	if to := w.rules.Mechanical(*req.Target, v.mech); len(to) > 0 {
		return w.rules.SlewTime(v.mech, to[0]), nil
	}
	return 0, nil
}

// renewed takes in another target for the motion under way.
func (w *rotatorOwner) renewed(ctx context.Context, r startRequest) error {
	m := w.move
	if m == nil || m != r.m || w.ending {
		r.reply <- errMotionOver
		return nil
	}
	route, ref := safety.Way(w.rules, w.hooks.facts(), *r.renew)
	if ref != nil { // it goes on to the last target that was allowed
		r.reply <- ref
		return nil
	}
	m.asked = w.mono()
	m.req.Holder = r.renew.Holder // another session may have taken it over
	if was, to := m.route.Target(), route.Target(); math.Abs(was.AzDeg-to.AzDeg) < w.o.DeadbandDeg && math.Abs(was.ElDeg-to.ElDeg) < w.o.DeadbandDeg {
		r.reply <- nil
		return nil
	}
	m.req, m.route, m.leg = *r.renew, route, 0
	m.req.Already = true
	w.legBegins()
	tgt := w.rules.True(route.Target())
	w.mu.Lock()
	w.view.target = &tgt
	w.mu.Unlock()
	if w.mono()-w.sentAt < w.o.MinInterval { // the next reading sends it
		r.reply <- nil
		return nil
	}
	return w.setOut(ctx, r)
}
