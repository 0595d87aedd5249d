package track

import (
	"context"
	"errors"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/unit"
)

// simClock shows noon now.
func simClock(t *testing.T, at time.Time) *clock.Clock {
	t.Helper()
	c, err := clock.Simulated(at, time.Now(), 1)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func flybyPlan(t *testing.T) *Plan {
	t.Helper()
	p, ref := Make(flyby{headingDeg: 20, maxElDeg: 60, kmS: 7.5}.request(g5500(), unit.AzEl{AzDeg: 200, ElDeg: 10}))
	if ref != nil {
		t.Fatal(ref)
	}
	return p
}

// slowMover takes its time for each setpoint.
type slowMover struct {
	takes time.Duration
	lead  time.Duration
	err   error
	at    []time.Time
	sp    []Setpoint
}

func (m *slowMover) Set(sp Setpoint) error {
	m.at, m.sp = append(m.at, time.Now()), append(m.sp, sp)
	time.Sleep(m.takes)
	return m.err
}
func (m *slowMover) Lead() time.Duration { return m.lead }

// Deadlines are absolute: a tick that takes long does not push the next.
func TestFollowKeepsItsTicks(t *testing.T) {
	for takes, late := range map[time.Duration]bool{0: false, 70 * time.Millisecond: false, 250 * time.Millisecond: true} {
		t.Run(takes.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := flybyPlan(t)
				clk := simClock(t, p.Begin)
				m := &slowMover{takes: takes, lead: 80 * time.Millisecond}
				begun := time.Now()
				tally, err := Follow(t.Context(), clk, p, m)
				if err != nil {
					t.Fatal(err)
				}
				whole := p.End.Sub(p.Begin)
				if d := time.Since(begun) - whole; d < 0 || d > takes+Period {
					t.Errorf("it ended %v after the plan", d)
				}
				if got := float64(tally.Ticks + tally.Late); math.Abs(got-whole.Seconds()*10) > 3 || (tally.Late > 0) != late || tally.Ticks != len(m.at) {
					t.Errorf("%+v for %v", tally, whole)
				}
				for i, at := range m.at {
					if off := at.Sub(begun) % Period; off != 0 {
						t.Fatalf("tick %d is %v off its grid", i, off)
					}
					want, _, _ := p.At(clk.Now().Add(-time.Since(at) + m.lead))
					if unit.Separation(want, m.sp[i].Mech) > 1e-6 {
						t.Fatalf("tick %d: setpoint %v, want where the satellite is a lead later, %v", i, m.sp[i].Mech, want)
					}
				}
			})
		})
	}
}

func TestFollowEndsWhenToldTo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := flybyPlan(t)
		clk := simClock(t, p.Begin)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if tally, err := Follow(ctx, clk, p, &slowMover{}); !errors.Is(err, context.DeadlineExceeded) || tally.Ticks < 100 || tally.Ticks > 101 {
			t.Errorf("%+v, %v", tally, err)
		}
		no := errors.New("halted")
		if tally, err := Follow(t.Context(), clk, p, &slowMover{err: no}); err != no || tally.Ticks != 0 {
			t.Errorf("%+v, %v; want the mover's error at once", tally, err)
		}
	})
}

type tuner struct {
	clk *clock.Clock

	mu  sync.Mutex
	hz  int64
	set int
	at  []time.Time
}

func (r *tuner) Tune(hz int64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hz = hz
	r.set++
	r.at = append(r.at, r.clk.Now())
	return nil
}
func (r *tuner) Lead() time.Duration { return 0 }

func (r *tuner) has() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.hz
}

// The receiver stays within its mode's dead band of what the orbit package says
// of the carrier, with as few steps as that takes.
func TestDopplerStaysInItsBand(t *testing.T) {
	const nominal = 437_800_000
	for mode, band := range map[string]float64{"FM": 500, "USB": 20, "RTTY": 50, "AM": 200} {
		t.Run(mode, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sky, pass := issPass(t, 40)
				p, ref := Make(Request{Sky: sky, Rules: g5500(), From: unit.AzEl{AzDeg: 180, ElDeg: 80}, Begin: pass.AOS.Time, End: pass.LOS.Time, BeamwidthDeg: 30})
				if ref != nil {
					t.Fatal(ref)
				}
				clk := simClock(t, p.Begin)
				r := &tuner{clk: clk}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- FollowDoppler(ctx, clk, p, nominal, mode, r) }()
				travel := 0.0
				prev := math.NaN()
				for clk.Now().Before(p.End.Add(-time.Second)) {
					time.Sleep(time.Second)
					synctest.Wait()
					s, _ := sky(clk.Now())
					want := nominal + passes.Doppler(nominal, s.RangeRateKmS) // what is heard
					if off := math.Abs(float64(r.has()) - want); off > band+1 {
						t.Fatalf("%.0f Hz off at %v, the band is %v", off, clk.Now(), band)
					}
					if !math.IsNaN(prev) {
						travel += math.Abs(want - prev)
					}
					prev = want
				}
				time.Sleep(5 * time.Second)
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if limit := int(travel/band) + 2; r.set > limit {
					t.Errorf("%d steps for %.0f Hz, want at most %d", r.set, travel, limit)
				}
				for i := 1; i < len(r.at); i++ {
					if d := r.at[i].Sub(r.at[i-1]); d < DopplerPeriod {
						t.Errorf("two steps within %v", d)
					}
				}
			})
		})
	}
}
