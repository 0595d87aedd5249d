package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

func mustOpen(t testing.TB, dir string, o JournalOptions) (*Journal, Recovery) {
	t.Helper()
	j, rec, err := OpenJournal(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { j.Close() })
	return j, rec
}

func text(s string) func(uint64, string) ([]byte, error) {
	return func(uint64, string) ([]byte, error) { return []byte(s), nil }
}

func numbered(seq uint64, epoch string) ([]byte, error) {
	return fmt.Appendf(nil, `{"n":%d,"epoch":"%s"}`, seq, epoch), nil
}

func mustAppend(t testing.TB, j *Journal, build func(uint64, string) ([]byte, error)) uint64 {
	t.Helper()
	seq, err := j.Append(context.Background(), build)
	if err != nil {
		t.Fatalf("append: %v", err)
	}
	return seq
}

func readAll(t testing.TB, j *Journal, after uint64) (out []Record) {
	t.Helper()
	for {
		recs, err := j.Read(after, 7)
		if err != nil {
			t.Fatalf("read after %d: %v", after, err)
		}
		if len(recs) == 0 {
			return out
		}
		out = append(out, recs...)
		after = recs[len(recs)-1].Seq
	}
}

func seqs(recs []Record) (out []uint64) {
	for _, r := range recs {
		out = append(out, r.Seq)
	}
	return out
}

func upTo(from, to uint64) (out []uint64) {
	for ; from <= to; from++ {
		out = append(out, from)
	}
	return out
}

func TestRecordsSurviveAReopenInOrderOverSegments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "crit")
	o := JournalOptions{Segment: 300}
	j, rec := mustOpen(t, dir, o)
	if !rec.Created || rec.NewEpoch {
		t.Errorf("recovery of a new journal = %+v", rec)
	}
	epoch := j.Epoch()
	for range 40 {
		mustAppend(t, j, numbered)
	}
	j.Close()
	j, rec = mustOpen(t, dir, o)
	if rec.Created || rec.NewEpoch || len(rec.Notes) > 0 || j.Epoch() != epoch {
		t.Errorf("recovery of a clean journal = %+v, epoch %s, want %s and nothing to say", rec, j.Epoch(), epoch)
	}
	mustAppend(t, j, numbered)
	recs := readAll(t, j, 0)
	if !slices.Equal(seqs(recs), upTo(1, 41)) {
		t.Errorf("read %v, want 1..41", seqs(recs))
	}
	for _, r := range recs {
		if want, _ := numbered(r.Seq, epoch); !bytes.Equal(r.Data, want) {
			t.Errorf("record %d = %s, want %s", r.Seq, r.Data, want)
		}
	}
	if got := readAll(t, j, 33); !slices.Equal(seqs(got), upTo(34, 41)) {
		t.Errorf("read after 33 = %v", seqs(got))
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "seg-*")); len(files) < 5 {
		t.Errorf("%d segments for 41 records of 300 bytes each segment", len(files))
	}
}

// The line format is a contract with whoever reads the disk of a dead station.
func TestLineFormat(t *testing.T) {
	got := string(appendLine(nil, 12, []byte(`{"a":1}`)))
	if check := fmt.Sprintf("%08x", crc32Sum([]byte("123456789"))); check != "e3069283" {
		t.Fatalf("crc32c(123456789) = %s, RFC 3720 says e3069283", check)
	}
	if want := fmt.Sprintf("%08x 12 {\"a\":1}\n", crc32Sum([]byte(`12 {"a":1}`))); got != want {
		t.Errorf("line = %q, want %q", got, want)
	}
}

func TestTornTailIsCutAtEveryByte(t *testing.T) {
	src := filepath.Join(t.TempDir(), "j")
	j, _ := mustOpen(t, src, JournalOptions{})
	for range 4 {
		mustAppend(t, j, numbered)
	}
	epoch := j.Epoch()
	j.Close()
	seg := segmentName(1)
	whole, err := os.ReadFile(filepath.Join(src, seg))
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(whole, []byte("\n"))
	keep := len(lines[0]) + len(lines[1])
	for cut := keep; cut < len(whole); cut++ {
		dir := clone(t, src)
		if err := os.Truncate(filepath.Join(dir, seg), int64(cut)); err != nil {
			t.Fatal(err)
		}
		j, rec := mustOpen(t, dir, JournalOptions{})
		want := uint64(bytes.Count(whole[:cut], []byte("\n")))
		torn := int64(cut - bytes.LastIndexByte(whole[:cut], '\n') - 1)
		if j.Last() != want || rec.TornBytes != torn || rec.NewEpoch || j.Epoch() != epoch {
			t.Fatalf("cut at %d: last %d, torn %d, new epoch %v; want %d, %d, false", cut, j.Last(), rec.TornBytes, rec.NewEpoch, want, torn)
		}
		if torn > 0 {
			kept, _ := filepath.Glob(filepath.Join(dir, "quarantine", "tail-*.torn"))
			if len(kept) != 1 {
				t.Fatalf("cut at %d: quarantine has %v", cut, kept)
			}
			if b, _ := os.ReadFile(kept[0]); !bytes.Equal(b, whole[cut-int(torn):cut]) {
				t.Fatalf("cut at %d: quarantine has %q, not the tail", cut, b)
			}
		}
		if next := mustAppend(t, j, numbered); next != want+1 {
			t.Fatalf("cut at %d: next record is %d, want %d", cut, next, want+1)
		}
		if got := seqs(readAll(t, j, 0)); !slices.Equal(got, upTo(1, want+1)) {
			t.Fatalf("cut at %d: read %v", cut, got)
		}
		j.Close()
	}
}

// Whatever bit flips: every record comes back as it was, or is declared.
func TestFlippedBitIsRecoveredOrDeclared(t *testing.T) {
	const n = 12
	src := newMemFS()
	o := JournalOptions{FS: src, Segment: 150} // some in closed segments, some in the active one
	j, _ := mustOpen(t, "/j", o)
	for range n {
		mustAppend(t, j, numbered)
	}
	epoch := j.Epoch()
	j.Close()
	var files []string
	for name := range src.names {
		if isSegment(name) {
			files = append(files, name)
		}
	}
	slices.Sort(files)
	r := rand.New(rand.NewSource(1))
	for range 2000 {
		m := src.cut(r) // everything was flushed: this is a copy
		o.FS = m
		name := files[r.Intn(len(files))]
		data := m.names[name].data
		at, bit := r.Intn(len(data)), r.Intn(8)
		data[at] ^= 1 << bit
		declared := map[uint64]bool{}
		renamed := false
		for range 2 { // a second start must say nothing new
			j, _ := mustOpen(t, "/j", o)
			again := 0
			j.DeclareGaps(func(g Gap) error {
				again++
				if g.Previous != "" {
					renamed = true // the end was cut: the old epoch ends where it ends
				}
				for s := g.From; s <= g.To && g.Previous == ""; s++ {
					declared[s] = true
				}
				return nil
			})
			got := readAll(t, j, 0)
			for _, rec := range got {
				if want, _ := numbered(rec.Seq, epoch); !bytes.Equal(rec.Data, want) {
					t.Fatalf("%s byte %d bit %d: record %d came back as %q", name, at, bit, rec.Seq, rec.Data)
				}
			}
			have := map[uint64]bool{}
			for _, rec := range got {
				have[rec.Seq] = true
			}
			for s := uint64(1); s <= n; s++ {
				if !have[s] && !declared[s] && !(renamed && s > j.Last()) {
					t.Fatalf("%s byte %d bit %d: record %d is gone without a word; have %v", name, at, bit, s, seqs(got))
				}
			}
			j.Close()
			if again > 0 {
				if again > 1 {
					t.Fatalf("%s byte %d bit %d: %d declarations for one flip", name, at, bit, again)
				}
				continue
			}
		}
	}
}

func TestGapIsDeclaredOnceAndNotBeforeItIsDurable(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j, _ := mustOpen(t, dir, JournalOptions{})
	for range 5 {
		mustAppend(t, j, numbered)
	}
	j.Close()
	path := filepath.Join(dir, segmentName(1))
	data, _ := os.ReadFile(path)
	lines := bytes.SplitAfter(data, []byte("\n"))
	lines[2][20] ^= 1
	os.WriteFile(path, bytes.Join(lines, nil), 0o600)

	j, rec := mustOpen(t, dir, JournalOptions{})
	if rec.BadLines != 1 {
		t.Errorf("recovery found %d bad regions, want 1", rec.BadLines)
	}
	j.DeclareGaps(func(Gap) error { return errors.New("crit is full") })
	if s := j.Stats(); s.Undeclared != 1 {
		t.Errorf("after a failed declaration %d are open, want 1", s.Undeclared)
	}
	j.Close()

	var got []Gap
	j, _ = mustOpen(t, dir, JournalOptions{})
	j.DeclareGaps(func(g Gap) error { got = append(got, g); return nil })
	want := Gap{Epoch: j.Epoch(), From: 3, To: 3, Why: damagedWhy}
	if len(got) != 1 || got[0] != want {
		t.Errorf("after a restart declared %+v, want %+v", got, want)
	}
	readAll(t, j, 0)
	j.Close()
	got = nil
	j, _ = mustOpen(t, dir, JournalOptions{})
	j.DeclareGaps(func(g Gap) error { got = append(got, g); return nil })
	readAll(t, j, 0)
	if len(got) != 0 {
		t.Errorf("declared again: %+v", got)
	}
}

func TestDamagedAcknowledgedEndMakesANewEpoch(t *testing.T) {
	for name, hurt := range map[string]func(data []byte) []byte{
		"bit in a whole line": func(b []byte) []byte { b[len(b)-5] ^= 4; return b },
		"zeros":               func(b []byte) []byte { clear(b[len(b)-30:]); return b },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "j")
			j, _ := mustOpen(t, dir, JournalOptions{})
			for range 3 {
				mustAppend(t, j, numbered)
			}
			old := j.Epoch()
			j.Close()
			path := filepath.Join(dir, segmentName(1))
			data, _ := os.ReadFile(path)
			os.WriteFile(path, hurt(data), 0o600)
			j, rec := mustOpen(t, dir, JournalOptions{})
			var got []Gap
			j.DeclareGaps(func(g Gap) error { got = append(got, g); return nil })
			if !rec.NewEpoch || j.Epoch() == old || len(got) != 1 || got[0].Previous != old || got[0].Epoch != j.Epoch() || got[0].To != 2 {
				t.Errorf("recovery %+v, declared %+v; want a new epoch that says record 2 was the last of %s", rec, got, old)
			}
			if n := mustAppend(t, j, numbered); n != 3 {
				t.Errorf("next record is %d, want 3", n)
			}
		})
	}
}

// The broker has more than the disk: those numbers belong to other records.
func TestNumbersThatTheBrokerHasAreNeverUsedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "j")
	j, _ := mustOpen(t, dir, JournalOptions{})
	for range 5 {
		mustAppend(t, j, numbered)
	}
	if err := j.Ack(5); err != nil {
		t.Fatal(err)
	}
	old := j.Epoch()
	j.Close()
	data, _ := os.ReadFile(filepath.Join(dir, segmentName(1)))
	lines := bytes.SplitAfter(data, []byte("\n"))
	os.WriteFile(filepath.Join(dir, segmentName(1)), bytes.Join(lines[:3], nil), 0o600)
	j, rec := mustOpen(t, dir, JournalOptions{})
	if !rec.NewEpoch || j.Epoch() == old {
		t.Errorf("recovery = %+v, want a new epoch", rec)
	}
	if n := mustAppend(t, j, numbered); n != 6 {
		t.Errorf("next record is %d, want 6", n)
	}
	var gaps []Gap
	j.DeclareGaps(func(g Gap) error { gaps = append(gaps, g); return nil })
	if got := seqs(readAll(t, j, 0)); !slices.Equal(got, []uint64{1, 2, 3, 6}) || len(gaps) != 1 {
		t.Errorf("read %v, declared %+v; want 1 2 3 6 and the change of epoch only", got, gaps)
	}
}

func TestCursorSurvivesATornSlot(t *testing.T) {
	m := newMemFS()
	c, _, err := openCursor(m, "/cursor")
	if err != nil {
		t.Fatal(err)
	}
	for v := uint64(1); v <= 5; v++ {
		if err := c.set(v); err != nil {
			t.Fatal(err)
		}
	}
	if c.set(3); c.get() != 5 {
		t.Errorf("cursor went back to %d", c.get())
	}
	for slot := range int64(2) {
		for at := range int64(slotBytes) {
			m2 := newMemFS()
			m2.names["/cursor"] = &inode{data: slices.Clone(m.names["/cursor"].data)}
			m2.names["/cursor"].data[slot*slotGap+at] ^= 0x10
			c, damaged, err := openCursor(m2, "/cursor")
			want := []uint64{5, 4}
			if slot == 0 {
				want = []uint64{4, 4}
			}
			if err != nil || damaged || !slices.Contains([]uint64{want[0], want[1], 5}, c.get()) || c.get() < 4 {
				t.Fatalf("slot %d byte %d: cursor %d, damaged %v, %v; want 4 or 5", slot, at, c.get(), damaged, err)
			}
			if c.set(6); c.get() != 6 {
				t.Fatal("cursor is stuck")
			}
		}
	}
}

// However many wait, there is one flush for all of them.
func TestGroupCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newMemFS()
		var syncs, writes int
		m.fail = func(_ int, what, name string) error {
			if isSegment(name) && what == "sync" {
				syncs++
			}
			if isSegment(name) && what == "write" {
				writes++
			}
			return nil
		}
		j, _ := mustOpen(t, "/j", JournalOptions{FS: m, Linger: 20 * time.Millisecond})
		start := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() { mustAppend(t, j, numbered) })
		}
		wg.Wait()
		if syncs != 1 || writes != 1 || time.Since(start) != 20*time.Millisecond {
			t.Errorf("50 records: %d writes, %d flushes in %v; want 1, 1 in 20ms", writes, syncs, time.Since(start))
		}
		j.Close()
	})
}

func TestCritDoesNotLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _ := mustOpen(t, "/j", JournalOptions{FS: newMemFS()})
		start := time.Now()
		mustAppend(t, j, numbered)
		if d := time.Since(start); d != 0 {
			t.Errorf("append waited %v", d)
		}
		j.Close()
	})
}

func TestFullDiskIsAnErrorAndTheJournalGoesOn(t *testing.T) {
	for k := 1; k <= 12; k++ { // at every write
		m := newMemFS()
		writes := 0
		m.fail = func(_ int, what, name string) error {
			if what == "write" && isSegment(name) {
				if writes++; writes == k {
					return syscall.ENOSPC
				}
			}
			return nil
		}
		j, _ := mustOpen(t, "/j", JournalOptions{FS: m, Segment: 200})
		var refused int
		for range 12 {
			_, err := j.Append(t.Context(), numbered)
			if errors.Is(err, ErrNoSpace) && errors.Is(err, syscall.ENOSPC) {
				refused++
			} else if err != nil {
				t.Fatalf("write %d full: %v", k, err)
			}
		}
		if got := seqs(readAll(t, j, 0)); refused != 1 || !slices.Equal(got, upTo(1, 11)) {
			t.Errorf("write %d full: refused %d, read %v; want 1 and 1..11", k, refused, got)
		}
		j.Close()
		j, rec := mustOpen(t, "/j", JournalOptions{FS: m, Segment: 200})
		if got := seqs(readAll(t, j, 0)); len(rec.Notes) > 0 || !slices.Equal(got, upTo(1, 11)) {
			t.Errorf("write %d full: after a restart %v, %+v", k, got, rec)
		}
		j.Close()
	}
}

// After a failed flush nobody knows what the disk has; only a restart can look.
func TestFailedFlushClosesTheJournalForGood(t *testing.T) {
	m := newMemFS()
	broken := true
	syncs := 0
	m.fail = func(_ int, what, name string) error {
		if what == "sync" && isSegment(name) {
			if syncs++; broken && syncs == 2 {
				return syscall.EIO
			}
		}
		return nil
	}
	j, _ := mustOpen(t, "/j", JournalOptions{FS: m})
	mustAppend(t, j, numbered)
	for range 3 {
		if _, err := j.Append(t.Context(), numbered); !errors.Is(err, ErrJournalDead) || !errors.Is(err, syscall.EIO) {
			t.Fatalf("append = %v, want ErrJournalDead with the reason", err)
		}
	}
	if syncs != 2 {
		t.Errorf("flushed %d times, want no try after the failure", syncs)
	}
	if s := j.Stats(); s.State != "journal_dead" {
		t.Errorf("state %q", s.State)
	}
	if got := seqs(readAll(t, j, 0)); !slices.Equal(got, []uint64{1}) {
		t.Errorf("a dead journal reads %v, want what was durable", got)
	}
}

func TestRecordThatDoesNotFitIsRefusedAndCostsNoNumber(t *testing.T) {
	j, _ := mustOpen(t, "/j", JournalOptions{FS: newMemFS()})
	for _, bad := range []func(uint64, string) ([]byte, error){
		text(string(make([]byte, MaxRecord+1))), text("a\nb"),
		func(uint64, string) ([]byte, error) { return nil, errors.New("cannot be built") },
	} {
		if _, err := j.Append(t.Context(), bad); err == nil {
			t.Error("a bad record was taken")
		}
	}
	if n := mustAppend(t, j, numbered); n != 1 {
		t.Errorf("first good record is %d, want 1", n)
	}
}

func TestCallerThatGivesUpWithdrawsItsRecordOrIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j, _ := mustOpen(t, "/j", JournalOptions{FS: newMemFS(), Linger: time.Second})
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := j.Append(ctx, numbered); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, ErrUncertain) {
			t.Errorf("append = %v, want the deadline and certainty", err)
		}
		if n := mustAppend(t, j, numbered); n != 1 {
			t.Errorf("the withdrawn record took a number: next is %d", n)
		}
		j.Close()
	})
}

// Random work with random faults and power cuts: what was acknowledged is
// there afterwards, or declared, and no number ever means two records.
func TestNothingAcknowledgedIsLostUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewSource(rapid.Int64().Draw(t, "seed")))
		m := newMemFS()
		o := func() JournalOptions { return JournalOptions{FS: m, Segment: 400} }
		acked := map[string]string{} // "epoch/seq" -> contents
		lost, delivered := map[string]bool{}, map[string]bool{}
		for range rapid.IntRange(1, 6).Draw(t, "lives") {
			j, rec, err := OpenJournal("/j", o())
			if err != nil {
				t.Fatalf("open: %v", err)
			}
			t.Logf("open: last %d, delivered %d, %+v", j.Last(), j.Cursor(), rec)
			j.DeclareGaps(func(g Gap) error {
				t.Logf("gap %+v", g)
				for s := g.From; s <= g.To; s++ {
					lost[fmt.Sprintf("%s/%d", g.Epoch, s)] = true
				}
				return nil
			})
			fault := rapid.SampledFrom([]string{"none", "write", "sync", "truncate", "open"}).Draw(t, "fault")
			at := rapid.IntRange(1, 40).Draw(t, "at")
			m.mu.Lock()
			start := m.op
			m.fail = func(op int, what, name string) error {
				if what == fault && op-start >= at && op-start < at+3 && isSegment(name) {
					return syscall.ENOSPC
				}
				return nil
			}
			m.mu.Unlock()
			for i := range rapid.IntRange(0, 25).Draw(t, "appends") {
				body := fmt.Sprintf(`{"r":%d}`, r.Int63())
				var key string
				seq, err := j.Append(context.Background(), func(seq uint64, epoch string) ([]byte, error) {
					key = fmt.Sprintf("%s/%d", epoch, seq)
					return []byte(body), nil
				})
				if err != nil {
					continue
				}
				if old, ok := acked[key]; ok && old != body {
					t.Fatalf("%s was %s and is now %s", key, old, body)
				}
				acked[key] = body
				if i%3 == 0 && j.Ack(seq) == nil {
					for k := range acked {
						delivered[k] = true
					}
				}
			}
			m.mu.Lock()
			m.fail = nil
			m.mu.Unlock()
			j.Close() // what a dying process leaves is less than this: cut decides how much
			if rapid.Bool().Draw(t, "power cut") {
				m = m.cut(r)
			}
		}
		j, _, err := OpenJournal("/j", o())
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		have := map[string]string{}
		for after := uint64(0); ; {
			recs, err := j.Read(after, 10)
			if err != nil {
				t.Fatal(err)
			}
			if len(recs) == 0 {
				break
			}
			for _, rec := range recs {
				j.mu.Lock()
				key := fmt.Sprintf("%s/%d", j.epochOf(rec.Seq), rec.Seq)
				j.mu.Unlock()
				have[key] = string(rec.Data)
				after = rec.Seq
			}
		}
		for k, body := range acked {
			if have[k] == "" && delivered[k] {
				continue // a full disk takes what the broker has
			}
			if have[k] != body && !lost[k] {
				t.Fatalf("%s was acknowledged as %s, is %q and not declared", k, body, have[k])
			}
		}
	})
}

func clone(t testing.TB, src string) string {
	t.Helper()
	dst := filepath.Join(t.TempDir(), "clone")
	if err := os.CopyFS(dst, os.DirFS(src)); err != nil {
		t.Fatal(err)
	}
	return dst
}
