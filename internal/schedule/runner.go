package schedule

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gsd-mcp/internal/clock"
)

// An Outcome is how a pass ended.
type Outcome struct {
	State  State // terminal
	Code   string
	Reason string
	Record *Record
}

// An Executor works one pass from its prepass to its end and tells of each
// state on the way. It returns when nothing of the pass is left to do; its
// context ends when the pass is to be given up, and context.Cause says why.
type Executor interface {
	RunPass(ctx context.Context, e Entry, report func(s State, code, reason string)) Outcome
}

// An ended says with which outcome a running pass is to be given up.
type ended struct {
	State        State
	Code, Reason string
}

func (e *ended) Error() string { return e.Reason }

// Runner starts each pass of a book in time. There is one antenna, so one pass
// runs at a time.
type Runner struct {
	book *Book
	clk  *clock.Clock
	exec Executor
	down time.Time // when the last run of the station was last seen alive; for the reason of a missed pass
}

// NewRunner works the passes of book with exec. lastAlive is when the station
// was last known to run, zero if never.
func NewRunner(book *Book, clk *clock.Clock, exec Executor, lastAlive time.Time) *Runner {
	return &Runner{book: book, clk: clk, exec: exec, down: lastAlive}
}

// Run works passes until ctx ends. A pass that was under way when the station
// ended is resumed when enough of it is left, and missed otherwise, with the
// reason: never silently.
func (r *Runner) Run(ctx context.Context) {
	resumed := true // the first look at the book after a start
	for ctx.Err() == nil {
		e, ok := r.book.Next()
		if !ok {
			if !r.wait(ctx, time.Time{}) {
				return
			}
			resumed = false
			continue
		}
		now := r.clk.Now()
		left := e.LOS.Sub(now)
		switch {
		case left <= 0 || left < MinUseful && e.AOS.Before(now):
			r.miss(e, resumed)
		case now.Before(e.AOS.Add(-PrepassLead)) && !e.State.Active():
			if !r.wait(ctx, e.AOS.Add(-PrepassLead)) {
				return
			}
			resumed = false
		default:
			r.work(ctx, e)
			resumed = false
		}
	}
}

// wait sleeps until t (forever when zero), the book changes or ctx ends.
func (r *Runner) wait(ctx context.Context, t time.Time) bool {
	wctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer cancel()
		select {
		case <-r.book.wake:
		case <-wctx.Done():
		}
	})
	if t.IsZero() {
		<-wctx.Done()
	} else {
		r.clk.SleepUntil(wctx, t)
		cancel()
	}
	wg.Wait()
	return ctx.Err() == nil
}

func (r *Runner) miss(e Entry, resumed bool) {
	why := fmt.Sprintf("the pass from %s to %s was not worked: the antenna was busy or held", e.AOS.UTC().Format("15:04:05Z"), e.LOS.UTC().Format("15:04:05Z"))
	code := "BUSY"
	if resumed {
		code = "STATION_DOWN"
		why = fmt.Sprintf("the station was not running when the pass was due (%s to %s)", e.AOS.UTC().Format("15:04:05Z"), e.LOS.UTC().Format("15:04:05Z"))
		if !r.down.IsZero() {
			why += fmt.Sprintf("; it was last alive at %s", r.down.UTC().Format("15:04:05Z"))
		}
	}
	r.book.Move(e.ID, Missed, code, why, nil)
}

func (r *Runner) work(ctx context.Context, e Entry) {
	pctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if !r.book.running(e.ID, func(s State, code, reason string) { cancel(&ended{s, code, reason}) }) {
		return // cancelled or displaced a moment ago
	}
	defer r.book.idle(e.ID)
	out := r.exec.RunPass(pctx, e, func(s State, code, reason string) {
		r.book.Move(e.ID, s, code, reason, nil)
	})
	done := out.State == Completed || out.State == Partial
	if ctx.Err() != nil && !done { // the station ends: the next start decides what becomes of the pass
		return
	}
	if why, ok := context.Cause(pctx).(*ended); ok && !done {
		out.State, out.Code, out.Reason = why.State, why.Code, why.Reason
	}
	if !out.State.Terminal() {
		out.State, out.Code, out.Reason = Failed, "NO_OUTCOME", fmt.Sprintf("the work on the pass ended as %q, which is no end", out.State)
	}
	r.book.Move(e.ID, out.State, out.Code, out.Reason, func(x *Entry) { x.Record = out.Record })
}

// running tells the book how to give up a pass that is about to be worked. It is
// false when the pass is over already.
func (b *Book) running(id string, stop func(State, string, string)) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i < 0 || b.entries[i].State.Terminal() {
		return false
	}
	b.cancel[id] = stop
	return true
}

// idle tells the book that a pass is worked no longer.
func (b *Book) idle(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.cancel, id)
}
