package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"sync"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/event"
)

var (
	start   = time.Date(2026, 8, 13, 0, 0, 0, 0, time.UTC)
	person  = event.Author{Kind: "person", UID: 1001, User: "alice"}
	agent   = event.Author{Kind: "agent", UID: 2001, User: "copilot"}
	errDisk = errors.New("no space left on device")
)

type memStore struct {
	mu    sync.Mutex
	files map[string][]byte
	err   error
}

func newStore() *memStore { return &memStore{files: map[string][]byte{}} }

func (s *memStore) Save(name string, v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	b, err := json.Marshal(v)
	s.files[name] = b
	return err
}

func (s *memStore) Load(name string, v any) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return "", json.Unmarshal(b, v)
}

func (s *memStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// A desk is a book with a runner and an executor that does what it is told, in
// fake time.
type desk struct {
	t     *testing.T
	clk   *clock.Clock
	store *memStore
	book  *Book
	exec  *fakeExec
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu      sync.Mutex
	changes []Change
}

func newDesk(t *testing.T, store *memStore) *desk {
	t.Helper()
	clk, err := clock.Simulated(start, time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{t: t, clk: clk, store: store}
	if d.book, _, err = Open(store, clk.Now, func(c Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.changes = append(d.changes, c)
	}); err != nil {
		t.Fatal(err)
	}
	d.exec = &fakeExec{clk: clk}
	return d
}

func (d *desk) run(lastAlive time.Time) {
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.wg.Go(func() { NewRunner(d.book, d.clk, d.exec, lastAlive).Run(ctx) })
}

func (d *desk) end() {
	d.stop()
	d.wg.Wait()
}

// pass is a pass of ten minutes that begins in so long.
func pass(name string, in time.Duration, priority int) Entry {
	aos := start.Add(in)
	return Entry{PassID: name, NoradID: 25544, Satellite: "ISS", AOS: aos, TCA: aos.Add(5 * time.Minute), LOS: aos.Add(10 * time.Minute), MaxElDeg: 40, Priority: priority, CreatedBy: person}
}

func (d *desk) add(e Entry) Entry {
	d.t.Helper()
	got, ref, err := d.book.Add(e)
	if ref != nil || err != nil {
		d.t.Fatalf("add %s: %v %v", e.PassID, ref, err)
	}
	return got
}

func (d *desk) wantState(id string, s State, code string) Entry {
	d.t.Helper()
	e, ok := d.book.Get(id)
	if !ok || e.State != s || code != "" && e.ReasonCode != code {
		d.t.Fatalf("%s is %q %q (%s), want %s %s", id, e.State, e.ReasonCode, e.Reason, s, code)
	}
	return e
}

// fakeExec works passes by waiting.
type fakeExec struct {
	clk *clock.Clock

	mu      sync.Mutex
	began   []string
	at      []time.Time
	outcome Outcome        // zero: completed
	instead func() Outcome // at once
}

func (x *fakeExec) RunPass(ctx context.Context, e Entry, report func(State, string, string)) Outcome {
	x.mu.Lock()
	x.began, x.at = append(x.began, e.PassID), append(x.at, x.clk.Now())
	out, instead := x.outcome, x.instead
	x.mu.Unlock()
	if instead != nil {
		return instead()
	}
	report(Prepass, "", "")
	x.clk.SleepUntil(ctx, e.AOS)
	report(Tracking, "", "")
	if x.clk.SleepUntil(ctx, e.LOS) != nil {
		return Outcome{State: Failed, Code: "GIVEN_UP", Reason: context.Cause(ctx).Error(), Record: &Record{TrackedS: 7}}
	}
	if out.State == "" {
		out = Outcome{State: Completed, Code: "DONE", Reason: "done", Record: &Record{TrackedS: 600}}
	}
	return out
}

func (x *fakeExec) worked() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return slices.Clone(x.began)
}
