package clock

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"syscall"
	"time"
)

// States of trust, best first. Holdover is good with a warning: synchronised
// once, and drifting since.
const (
	Synced       = "synced"
	Holdover     = "holdover"
	Unsynced     = "unsynced"
	Unknown      = "unknown"
	SimulatedNow = "simulated"
)

const (
	// readEvery is how often the kernel is asked. The gate needs it every ten
	// seconds; a step of the clock under a moving antenna should show sooner,
	// and a reading costs microseconds.
	readEvery = time.Second
	// staleAfter is the age at which a reading says nothing any more: three
	// times the ten seconds that the gate needs.
	staleAfter = 30 * time.Second
	// growth is what the kernel adds to maxerror while nobody corrects the
	// clock: 500 ppm (MAXFREQ in the kernel's ntp.c).
	growth = 500e-6
	// ceiling is where maxerror ends (NTP_PHASE_LIMIT): 16 s, also at boot.
	ceiling = 16 * time.Second
	// maxOverride bounds how long a person may vouch for the clock.
	maxOverride = 24 * time.Hour
)

// A Sample is one reading of the kernel's clocks.
type Sample struct {
	Wall     time.Time     // the time of day
	Mono     time.Duration // the monotonic clock at the same instant
	MaxError time.Duration // adjtimex maxerror: the bound of the time of day's error
	Source   string        // who disciplines the clock, as far as can be seen: chrony, timesyncd ...
}

// Limits says how wrong the time of day may be.
type Limits struct {
	Max  time.Duration // refuse over it
	Warn time.Duration // warn over it
	Step time.Duration // a jump of the time of day over it is a step
}

// DefaultLimits are those of a new station.toml. At 5 s a low pass at an ISS
// height is 5° off; timesyncd may let maxerror reach 1 s with all well.
func DefaultLimits() Limits {
	return Limits{Max: 5 * time.Second, Warn: 1500 * time.Millisecond, Step: 200 * time.Millisecond}
}

// Trust is a verdict on the time of day: whether orbits may be computed by it.
type Trust struct {
	State         string        // Synced, Holdover, Unsynced, Unknown or SimulatedNow
	Good          bool          // motion by prediction and transmission are not refused for the clock
	Warn          bool          // a person should look, though Good may hold
	MaxError      time.Duration // the bound of the error; 0 where unknown or simulated
	Source        string        // who disciplines the clock; "" where that cannot be seen
	Why           string        // one sentence, with the numbers
	Fix           string        // the next step; "" when all is well
	Age           time.Duration // of the reading
	LastStep      time.Time     // when the time of day last jumped, by the new time; zero: not since the start
	StepBy        time.Duration // by how much, forwards positive
	OverrideBy    string        // who vouches for the clock; "" nobody
	OverrideUntil time.Time     // by the station's time of day, for people; the end is kept on the monotonic clock
}

// MarshalJSON gives durations in units that their names say.
func (t Trust) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		State         string    `json:"state"`
		Good          bool      `json:"good"`
		MaxErrorMs    int64     `json:"max_error_ms"`
		Source        string    `json:"source,omitempty"`
		Why           string    `json:"why"`
		Fix           string    `json:"fix,omitempty"`
		AgeS          float64   `json:"age_s"`
		LastStep      time.Time `json:"last_step,omitzero"`
		LastStepS     float64   `json:"last_step_s,omitzero"`
		OverrideBy    string    `json:"override_by,omitempty"`
		OverrideUntil time.Time `json:"override_until,omitzero"`
	}{t.State, t.Good, t.MaxError.Milliseconds(), t.Source, t.Why, t.Fix, t.Age.Seconds(),
		t.LastStep, t.StepBy.Seconds(), t.OverrideBy, t.OverrideUntil})
}

// A Change is something that happened to the clock: a step, or another verdict.
type Change struct {
	At            time.Time     // station time, after the change
	StepBy        time.Duration // 0: no step
	Before, After Trust
}

// A Watcher looks after the time of day. It is safe for concurrent use.
type Watcher struct {
	clk    *Clock
	read   func() (Sample, error)
	limits Limits
	notify []func(Change)

	mu       sync.Mutex
	sample   Sample
	err      error     // of the last reading
	readAt   time.Time // zero: never
	base     time.Duration
	haveBase bool
	lastStep time.Time
	stepBy   time.Duration
	override struct {
		by, reason string
		until      time.Time // with its monotonic reading: a wrong time of day must not prolong it
	}
	last Trust // as last told to notify
}

// NewWatcher watches clk with read, which is SystemReader's result outside of
// tests. It reads nothing until Run or Refresh.
func NewWatcher(clk *Clock, read func() (Sample, error), limits Limits) *Watcher {
	w := &Watcher{clk: clk, read: read, limits: limits}
	w.last = w.Trust()
	return w
}

// OnChange calls f, from the goroutine that reads, whenever the verdict changes
// or the time of day steps. Call it before Run; f must not block.
func (w *Watcher) OnChange(f func(Change)) { w.notify = append(w.notify, f) }

// Run reads the clock until ctx ends.
func (w *Watcher) Run(ctx context.Context) {
	w.Refresh()
	tick := time.NewTicker(readEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			w.Refresh()
		}
	}
}

// Refresh reads the clock now and returns the verdict. A tracking loop may call
// it at its own rate.
func (w *Watcher) Refresh() Trust {
	if w.clk.Simulated() {
		return w.Trust()
	}
	s, err := w.read()
	w.mu.Lock()
	w.err, w.readAt = err, time.Now()
	var step time.Duration
	if err == nil {
		w.sample = s
		offset := s.Wall.Sub(time.Unix(0, 0)) - s.Mono
		if !w.haveBase {
			w.base, w.haveBase = offset, true
		} else if d := offset - w.base; d.Abs() > w.limits.Step {
			step, w.base = d, offset
			w.lastStep, w.stepBy = s.Wall, d
			w.override.until = time.Time{} // somebody vouched for another time than this
		}
	}
	before, after := w.last, w.trust()
	w.last = after
	w.mu.Unlock()
	if step != 0 || before.State != after.State || before.Good != after.Good {
		for _, f := range w.notify {
			f(Change{At: w.clk.Now(), StepBy: step, Before: before, After: after})
		}
	}
	return after
}

// Override lets a person vouch for the clock for a while: a station without
// network whose time was set by hand. It ends by itself and at the next step.
// Whether the person may is the caller's business.
func (w *Watcher) Override(by, reason string, d time.Duration) error {
	if strings.TrimSpace(by) == "" || strings.TrimSpace(reason) == "" {
		return errors.New("override the clock: say who vouches for it and why")
	}
	if !(d > 0 && d <= maxOverride) {
		return fmt.Errorf("override the clock: %v is outside 0..%v; give a shorter time", d, maxOverride)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.override.by, w.override.reason, w.override.until = by, reason, time.Now().Add(d)
	return nil
}

// EndOverride ends an override early.
func (w *Watcher) EndOverride() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.override.until = time.Time{}
}

// Trust is the verdict by the last reading.
func (w *Watcher) Trust() Trust {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.trust()
}

func (w *Watcher) trust() Trust {
	if w.clk.Simulated() {
		return Trust{State: SimulatedNow, Good: true, Source: "simulation", Why: "the time is made up: a simulated station"}
	}
	t := w.judge()
	t.LastStep, t.StepBy = w.lastStep, w.stepBy
	if left := time.Until(w.override.until); left > 0 {
		t.OverrideBy, t.OverrideUntil = w.override.by, w.clk.Now().Add(left)
		if !t.Good {
			t.Good = true
			t.Why += fmt.Sprintf("; %s vouches for it for another %v: %s", w.override.by, left.Round(time.Second), w.override.reason)
		}
	}
	return t
}

// judge is the verdict without override and steps.
func (w *Watcher) judge() Trust {
	const look = "check the network, or: chronyc tracking, or: timedatectl timesync-status"
	if w.readAt.IsZero() {
		return Trust{State: Unknown, Why: "the clock has not been looked at yet", Fix: "wait a second"}
	}
	age := time.Since(w.readAt)
	if age > staleAfter {
		return Trust{State: Unknown, Warn: true, Age: age,
			Why: fmt.Sprintf("the clock was last looked at %v ago", age.Round(time.Second)), Fix: "restart the station: its clock watch has stopped"}
	}
	if w.err != nil {
		t := Trust{State: Unknown, Warn: true, Age: age, Why: fmt.Sprintf("the kernel does not say how good the clock is: %v", w.err), Fix: look}
		if errors.Is(w.err, fs.ErrPermission) || errors.Is(w.err, syscall.ENOSYS) {
			t.Fix = "allow the system call adjtimex: in a container by its seccomp profile, in systemd by SystemCallFilter=adjtimex and no ProtectClock="
		}
		return t
	}
	s := w.sample
	t := Trust{MaxError: s.MaxError, Source: s.Source, Age: age}
	bound := fmt.Sprintf("its error may be %.1f s", s.MaxError.Seconds())
	switch {
	case !(s.MaxError >= 0 && s.MaxError <= w.limits.Max):
		t.State, t.Warn, t.Fix = Unsynced, true, look
		t.Why = fmt.Sprintf("the clock is not synchronised%s: %s, the limit is %.1f s", lasting(s.MaxError), bound, w.limits.Max.Seconds())
	case s.MaxError > w.limits.Warn:
		t.State, t.Good, t.Warn, t.Fix = Holdover, true, true, look
		t.Why = fmt.Sprintf("the clock runs free%s: %s, motion is refused over %.1f s", lasting(s.MaxError), bound, w.limits.Max.Seconds())
	default:
		t.State, t.Good = Synced, true
		t.Why = fmt.Sprintf("the clock is synchronised: its error is under %.2f s", max(s.MaxError.Seconds(), 0.01))
	}
	return t
}

// lasting says for how long nobody has corrected a clock with this maxerror.
func lasting(maxError time.Duration) string {
	if maxError >= ceiling {
		return ", perhaps never since its start"
	}
	h := maxError.Seconds() / growth / 3600
	if h < 1 {
		return fmt.Sprintf(" for about %.0f min", h*60)
	}
	return fmt.Sprintf(" for about %.1f h", h)
}
