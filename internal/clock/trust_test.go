package clock

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A kernel is a pair of clocks that a test can step.
type kernel struct {
	mu       sync.Mutex
	start    time.Time
	step     time.Duration
	maxError time.Duration
	err      error
	reads    int
}

func (k *kernel) read() (Sample, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.reads++
	if k.err != nil {
		return Sample{}, k.err
	}
	mono := time.Since(k.start)
	return Sample{Wall: k.start.Round(0).Add(mono + k.step), Mono: mono, MaxError: k.maxError, Source: "chrony"}, nil
}

func (k *kernel) set(f func()) { k.mu.Lock(); defer k.mu.Unlock(); f() }

func TestVerdicts(t *testing.T) {
	tests := []struct {
		name     string
		maxError time.Duration
		err      error
		state    string
		good     bool
		why      string // must be in Why
	}{
		{"fresh", 3 * time.Millisecond, nil, Synced, true, "under 0.01 s"},
		{"zero, as timesyncd sets it", 0, nil, Synced, true, "synchronised"},
		{"at the warning", 1500 * time.Millisecond, nil, Synced, true, "1.50 s"},
		{"just over the warning", 1501 * time.Millisecond, nil, Holdover, true, "50 min"},
		{"at the limit", 5 * time.Second, nil, Holdover, true, "2.8 h"},
		{"just over the limit", 5*time.Second + time.Microsecond, nil, Unsynced, false, "limit is 5.0 s"},
		{"FIELD.md's example", 5600 * time.Millisecond, nil, Unsynced, false, "for about 3.1 h: its error may be 5.6 s"},
		{"never since boot", 16 * time.Second, nil, Unsynced, false, "never since its start"},
		{"a negative bound", -time.Second, nil, Unsynced, false, "limit"},
		{"an overflowed bound", math.MinInt64, nil, Unsynced, false, "limit"},
		{"container", 0, syscall.EPERM, Unknown, false, "operation not permitted"},
		{"no such call", 0, syscall.ENOSYS, Unknown, false, "not implemented"},
		{"anything else", 0, errors.New("odd"), Unknown, false, "odd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := &kernel{start: time.Now(), maxError: tt.maxError, err: tt.err}
			w := NewWatcher(System(), k.read, DefaultLimits())
			got := w.Refresh()
			if got.State != tt.state || got.Good != tt.good || !strings.Contains(got.Why, tt.why) {
				t.Errorf("got %+v, want state %s, good %v, why with %q", got, tt.state, tt.good, tt.why)
			}
			if got.State != Synced && got.Fix == "" {
				t.Errorf("%s has no next step", got.State)
			}
			if tt.err == syscall.EPERM && !strings.Contains(got.Fix, "seccomp") {
				t.Errorf("Fix = %q, want the way out of a container", got.Fix)
			}
		})
	}
}

func TestAClockThatNobodyReadsIsNotTrusted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{start: time.Now()}
		w := NewWatcher(System(), k.read, DefaultLimits())
		if got := w.Trust(); got.Good || got.State != Unknown {
			t.Fatalf("before the first reading: %+v", got)
		}
		w.Refresh()
		time.Sleep(30 * time.Second)
		if got := w.Trust(); !got.Good {
			t.Errorf("after 30 s: %+v, want good", got)
		}
		time.Sleep(time.Second)
		if got := w.Trust(); got.Good || !strings.Contains(got.Why, "31s ago") {
			t.Errorf("after 31 s: %+v, want not good", got)
		}
	})
}

func TestStepsAreNoticedWithinASecondAndCountedOnce(t *testing.T) {
	for _, step := range []time.Duration{201 * time.Millisecond, -201 * time.Millisecond, 5 * time.Minute, -20 * 365 * 24 * time.Hour} {
		synctest.Test(t, func(t *testing.T) {
			k := &kernel{start: time.Now()}
			w := NewWatcher(System(), k.read, DefaultLimits())
			var steps []Change
			w.OnChange(func(c Change) {
				if c.StepBy != 0 {
					steps = append(steps, c)
				}
			})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { w.Run(ctx); close(done) }()
			time.Sleep(90 * time.Second)
			k.set(func() { k.step += 150 * time.Millisecond })
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if len(steps) != 0 {
				t.Fatalf("a move of 150 ms was a step: %+v", steps)
			}
			k.set(func() { k.step += step - 150*time.Millisecond })
			time.Sleep(1001 * time.Millisecond)
			synctest.Wait()
			if len(steps) != 1 || steps[0].StepBy != step {
				t.Fatalf("steps %+v, want one by %v within a second", steps, step)
			}
			if got := w.Trust(); got.StepBy != step || got.LastStep.IsZero() || !got.Good {
				t.Errorf("Trust = %+v, want the step in it, and good: maxerror decides that", got)
			}
			time.Sleep(time.Hour)
			cancel()
			<-done
			if len(steps) != 1 {
				t.Errorf("%d steps after an hour, want 1", len(steps))
			}
		})
	}
}

func TestSmallJumpsAddUp(t *testing.T) {
	k := &kernel{start: time.Now()}
	w := NewWatcher(System(), k.read, DefaultLimits())
	n := 0
	w.OnChange(func(c Change) {
		if c.StepBy != 0 {
			n++
		}
	})
	for range 5 {
		w.Refresh()
		k.set(func() { k.step += 60 * time.Millisecond })
	}
	if n != 1 {
		t.Errorf("240 ms in four jumps gave %d steps, want 1", n)
	}
}

func TestTheRunningWatcherTellsOfEachVerdictOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{start: time.Now()}
		w := NewWatcher(System(), k.read, DefaultLimits())
		var told []string
		w.OnChange(func(c Change) { told = append(told, c.Before.State+">"+c.After.State) })
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { w.Run(ctx); close(done) }()
		time.Sleep(time.Minute)
		k.set(func() { k.maxError = 2 * time.Second })
		time.Sleep(time.Minute)
		k.set(func() { k.maxError = 9 * time.Second })
		time.Sleep(time.Minute)
		k.set(func() { k.err = syscall.EPERM })
		time.Sleep(time.Minute)
		k.set(func() { k.err, k.maxError = nil, 0 })
		time.Sleep(time.Minute)
		cancel()
		<-done
		want := "unknown>synced synced>holdover holdover>unsynced unsynced>unknown unknown>synced"
		if got := strings.Join(told, " "); got != want {
			t.Errorf("told %s\nwant %s", got, want)
		}
	})
}

func TestAnOverrideEndsByItselfAndAtAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &kernel{start: time.Now(), maxError: 16 * time.Second}
		w := NewWatcher(System(), k.read, DefaultLimits())
		for _, bad := range []struct {
			by, reason string
			d          time.Duration
		}{{"", "r", time.Hour}, {"ann", " ", time.Hour}, {"ann", "r", 0}, {"ann", "r", -1}, {"ann", "r", 25 * time.Hour}} {
			if err := w.Override(bad.by, bad.reason, bad.d); err == nil {
				t.Errorf("Override(%q, %q, %v) was accepted", bad.by, bad.reason, bad.d)
			}
		}
		if err := w.Override("ann", "set by hand from the radio", time.Hour); err != nil {
			t.Fatal(err)
		}
		got := w.Refresh()
		if !got.Good || got.State != Unsynced || !got.Warn || got.OverrideBy != "ann" || !strings.Contains(got.Why, "ann vouches") {
			t.Errorf("with override: %+v", got)
		}
		time.Sleep(time.Hour)
		if got := w.Refresh(); got.Good || got.OverrideBy != "" {
			t.Errorf("an hour later: %+v, want not good", got)
		}
		if err := w.Override("ann", "again", time.Hour); err != nil {
			t.Fatal(err)
		}
		k.set(func() { k.step = time.Minute })
		if got := w.Refresh(); got.Good {
			t.Errorf("after a step: %+v, want not good", got)
		}
		if err := w.Override("ann", "again", time.Hour); err != nil {
			t.Fatal(err)
		}
		w.EndOverride()
		if w.Trust().Good {
			t.Error("EndOverride did not end it")
		}
	})
}

func TestASimulatedClockIsTrustedAndNeverRead(t *testing.T) {
	clk, err := Simulated(time.Unix(1e9, 0), time.Now(), 20)
	if err != nil {
		t.Fatal(err)
	}
	k := &kernel{err: syscall.EPERM}
	w := NewWatcher(clk, k.read, DefaultLimits())
	if got := w.Refresh(); got.State != SimulatedNow || !got.Good || k.reads != 0 {
		t.Errorf("got %+v after %d readings", got, k.reads)
	}
}

func TestTrustInJSON(t *testing.T) {
	b, err := json.Marshal(Trust{State: Unsynced, MaxError: 5600 * time.Millisecond, Why: "w", Fix: "f", Age: 1500 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"state":"unsynced","good":false,"max_error_ms":5600,"why":"w","fix":"f","age_s":1.5}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
}

func TestSystemReaderAgreesWithTheComputer(t *testing.T) {
	read := SystemReader("/")
	a, err := read()
	if err != nil {
		t.Skipf("this computer does not let us read its clock: %v", err)
	}
	if d := time.Since(a.Wall).Abs(); d > 5*time.Second {
		t.Errorf("Wall is %v away from now", d)
	}
	if !(a.MaxError >= 0 && a.MaxError <= time.Minute) {
		t.Errorf("MaxError = %v", a.MaxError)
	}
	b, err := read()
	if err != nil {
		t.Fatal(err)
	}
	if d := b.Wall.Sub(a.Wall) - (b.Mono - a.Mono); d.Abs() > 150*time.Millisecond {
		t.Errorf("wall and monotonic clock drifted %v apart between two readings", d)
	}
}

func TestServiceIsFoundByItsFiles(t *testing.T) {
	root := t.TempDir()
	if got := service(root); got != "" {
		t.Errorf("empty root: %q", got)
	}
	for _, s := range []struct{ file, want string }{{"run/systemd/timesync/synchronized", "timesyncd"}, {"run/chrony/chronyd.pid", "chrony"}} {
		path := filepath.Join(root, s.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if got := service(root); got != s.want {
			t.Errorf("with %s: %q, want %q", s.file, got, s.want)
		}
	}
}
