package door

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestBudgetRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := NewBudget(20, 2)
		for range 2 {
			if b.Take() != 0 {
				t.Fatal("a full bucket refuses")
			}
		}
		if wait := b.Take(); wait != 50*time.Millisecond {
			t.Fatalf("an empty bucket says wait %v, want 50 ms", wait)
		}
		time.Sleep(49 * time.Millisecond)
		if b.Take() == 0 {
			t.Error("it gives a token too early")
		}
		time.Sleep(time.Millisecond)
		if wait := b.Take(); wait != 0 {
			t.Errorf("after the wait it says wait %v", wait)
		}
		time.Sleep(time.Hour)
		first, second, third := b.Take(), b.Take(), b.Take()
		if first != 0 || second != 0 || third == 0 {
			t.Error("after an hour it holds other than its burst")
		}
	})
}

func TestFloodIsReadSlowlyAndWhole(t *testing.T) {
	for name, flood := range map[string]struct {
		text string
		cost int
	}{
		"10000 pings":       {strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n", 10000), 10000},
		"one line of 40 MB": {strings.Repeat("x", 10000*lineBytes), 10000},
	} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r := &pacedReader{t.Context(), bytes.NewReader([]byte(flood.text)), NewBudget(linesPerSecond, lineBurst)}
			n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{r}, make([]byte, 64<<10))
			if err != nil || n != int64(len(flood.text)) {
				t.Fatalf("%s: read %d of %d bytes, %v", name, n, len(flood.text), err)
			}
			want := time.Duration(flood.cost-lineBurst) * time.Second / linesPerSecond
			if took := time.Since(began); took < want-time.Second/10 || took > want+2*time.Second {
				t.Errorf("%s took %v, want about %v", name, took, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		io.Copy(io.Discard, &pacedReader{t.Context(), strings.NewReader(strings.Repeat("x\n", 1000)), NewBudget(linesPerSecond, lineBurst)})
		if took := time.Since(began); took != 0 {
			t.Errorf("a thousand lines at once took %v, want no time", took)
		}
	})
}
