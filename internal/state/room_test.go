package state

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"
)

func TestReserveCarriesTheNewsOfAFullDisk(t *testing.T) {
	m := newMemFS()
	m.free = 12 << 20
	j, _ := mustOpen(t, "/j", JournalOptions{FS: m, Reserve: true})
	var mu sync.Mutex
	var said []string
	j.OnPressure(func(what string) { mu.Lock(); said = append(said, what); mu.Unlock() })
	mustAppend(t, j, numbered)
	m.mu.Lock()
	m.free = 10
	m.mu.Unlock()
	mustAppend(t, j, numbered) // takes the reserve
	if s := j.Stats(); s.State != "disk_full" {
		t.Errorf("state %q, want disk_full", s.State)
	}
	m.mu.Lock()
	m.free = 0
	m.mu.Unlock()
	if _, err := j.Append(t.Context(), numbered); !errors.Is(err, ErrNoSpace) {
		t.Errorf("append without reserve = %v, want ErrNoSpace", err)
	}
	m.mu.Lock()
	m.free = 100 << 20
	m.mu.Unlock()
	j.tidyDue.Store(true)
	mustAppend(t, j, numbered)
	if s := j.Stats(); s.State != "ok" {
		t.Errorf("state with space again %q, want ok", s.State)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Equal(said, []string{"disk_full", "recovered"}) {
		t.Errorf("said %v, want disk_full, recovered", said)
	}
}

func TestQuotaDropsDeliveredThenDeclaresOldest(t *testing.T) {
	m := newMemFS()
	o := JournalOptions{FS: m, Segment: 200, Quota: 1000, Droppable: true}
	j, _ := mustOpen(t, "/j", o)
	var gaps []Gap
	j.DeclareGaps(func(g Gap) error {
		for s := g.From; s <= g.To; s++ { // declared while it is still there
			if recs, err := j.Read(s-1, 1); err != nil || len(recs) != 1 || recs[0].Seq != s {
				t.Errorf("record %d was gone before it was declared", s)
			}
		}
		gaps = append(gaps, g)
		return nil
	})
	for range 10 {
		mustAppend(t, j, numbered)
	}
	j.Ack(8)
	for range 40 {
		mustAppend(t, j, numbered)
	}
	got := seqs(readAll(t, j, j.Cursor()))
	if got[len(got)-1] != 50 {
		t.Fatalf("read %v", got)
	}
	next := uint64(9) // after what was delivered
	for _, g := range gaps {
		if g.From != next {
			t.Errorf("gap %+v, want one from %d", g, next)
		}
		next = g.To + 1
	}
	if got[0] != next || len(gaps) == 0 {
		t.Errorf("after the gaps %+v the journal begins at %d", gaps, got[0])
	}
	if b := j.bytes(); b > 1000 {
		t.Errorf("%d bytes over a quota of 1000", b)
	}
}

func TestUndeliveredCritIsNeverGivenUp(t *testing.T) {
	j, _ := mustOpen(t, "/j", JournalOptions{FS: newMemFS(), Segment: 200, Quota: 1000})
	var said []string
	j.OnPressure(func(w string) { said = append(said, w) })
	n := uint64(0)
	for {
		seq, err := j.Append(t.Context(), numbered)
		if errors.Is(err, ErrQuota) {
			break
		}
		if err != nil || n > 100 {
			t.Fatalf("append %d: %v", n, err)
		}
		n = seq
	}
	if got := seqs(readAll(t, j, 0)); !slices.Equal(got, upTo(1, n)) {
		t.Errorf("read %v, want 1..%d", got, n)
	}
	if j.Stats().State != "disk_full" {
		t.Errorf("state %q, want disk_full", j.Stats().State)
	}
	if err := j.Ack(n); err != nil {
		t.Fatal(err)
	}
	if got := mustAppend(t, j, numbered); got != n+1 || j.Stats().State != "ok" {
		t.Errorf("after delivery: record %d, state %s; want %d, ok", got, j.Stats().State, n+1)
	}
}

func TestDeliveredSegmentsStayForAWeekOrUntilTheHubConfirms(t *testing.T) {
	m := newMemFS()
	now := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	j, _ := mustOpen(t, "/j", JournalOptions{FS: m, Segment: 200, Now: func() time.Time { return now }})
	for range 20 {
		mustAppend(t, j, numbered)
	}
	j.Ack(20)
	tidy := func() uint64 {
		j.tidyDue.Store(true)
		mustAppend(t, j, numbered)
		return readAll(t, j, 0)[0].Seq
	}
	now = now.Add(7*24*time.Hour - time.Minute)
	if first := tidy(); first != 1 {
		t.Errorf("before a week is over the journal begins at %d", first)
	}
	j.Confirm(8)
	first := tidy()
	if first < 3 || first > 9 {
		t.Errorf("after the confirmation of 8 it begins at %d", first)
	}
	now = now.Add(2 * time.Minute)
	if first := tidy(); first < 15 {
		t.Errorf("after a week it begins at %d", first)
	}
}
