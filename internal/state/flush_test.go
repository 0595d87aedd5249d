package state

import (
	"errors"
	"testing"
	"time"
)

// Records that were accepted and not yet written are on the disk after a Flush,
// and a Flush takes no number.
func TestFlushPutsWhatWasSubmittedOnTheDisk(t *testing.T) {
	j, _, err := OpenJournal(t.TempDir(), JournalOptions{Linger: 200 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	line := func(uint64, string) ([]byte, error) { return []byte(`{"n":1}`), nil }
	for range 3 {
		for range 50 {
			if err := j.Submit(line, func(uint64, error) {}); err != nil {
				t.Fatal(err)
			}
		}
		want := j.Last() // what is committed so far, at least
		if err := j.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := j.Last(); got < want || got%50 != 0 || got == 0 {
			t.Fatalf("last record %d after a flush, want a multiple of 50", got)
		}
	}
	recs, err := j.Read(0, 1000)
	if err != nil || len(recs) != 150 || recs[149].Seq != 150 {
		t.Fatalf("%d records, %v; want 150 with contiguous numbers", len(recs), err)
	}
	j.Close()
	if err := j.Flush(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("flush of a closed journal: %v", err)
	}
}
