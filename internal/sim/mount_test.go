package sim_test

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/sim"
)

func TestMountTakesTheTimeOfATrapezoid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sim.NewMount(clock.System(), sim.DefaultMount()) // 6 and 3°/s, 12°/s²
		m.SetTarget(90, 30)
		// 0.5 s to reach 6°/s, 1.5° each for speeding up and braking, 87° at 6°/s.
		time.Sleep(15500*time.Millisecond - time.Millisecond)
		if !m.Moving() {
			t.Errorf("stands %.3f° before it can be there", 90-m.Truth().AzDeg)
		}
		time.Sleep(2 * time.Millisecond)
		at := m.Truth()
		if m.Moving() || math.Abs(at.AzDeg-90) > 1e-9 || math.Abs(at.ElDeg-30) > 1e-9 {
			t.Errorf("after 15.501 s: %+v, want 90/30 and standing", at)
		}
	})
}

func TestMountDoesNotDependOnWhenItIsLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := sim.DefaultMount()
		cfg.BacklashDeg, cfg.Gravity = 0.4, 0.3
		seldom, often := sim.NewMount(clock.System(), cfg), sim.NewMount(clock.System(), cfg)
		for _, step := range []struct {
			az, el float64
			wait   time.Duration
		}{{100, 80, 7 * time.Second}, {20, 10, 9 * time.Second}, {449, 179, 100 * time.Second}, {440, 0, 2 * time.Second}} {
			seldom.SetTarget(step.az, step.el)
			often.SetTarget(step.az, step.el)
			for range int(step.wait / (10 * time.Millisecond)) {
				time.Sleep(10 * time.Millisecond)
				often.Truth()
			}
			a, b := seldom.Truth(), often.Truth()
			if math.Abs(a.AzDeg-b.AzDeg) > 1e-5 || math.Abs(a.ElDeg-b.ElDeg) > 1e-5 {
				t.Errorf("after going to %v/%v for %v: looked at once %+v, looked at often %+v", step.az, step.el, step.wait, a, b)
			}
		}
	})
}

func TestMountStopsWithinItsBrakingDistance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sim.NewMount(clock.System(), sim.DefaultMount())
		m.SetTarget(300, 90)
		time.Sleep(5 * time.Second)
		before := m.Truth()
		m.Stop()
		time.Sleep(time.Second)
		after := m.Truth()
		if d := after.AzDeg - before.AzDeg; math.Abs(d-1.5) > 1e-6 || m.Moving() || after.AzRateDps != 0 {
			t.Errorf("rolled %.3f° after the stop, want 6²/(2·12) = 1.5°; %+v", d, after)
		}
	})
}

func TestMountRunsIntoItsEndStopAndStaysThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sim.NewMount(clock.System(), sim.DefaultMount())
		m.SetTarget(600, -20)
		time.Sleep(5 * time.Minute)
		if at := m.Truth(); at.AzDeg != 450 || at.ElDeg != 0 || m.Moving() {
			t.Errorf("%+v, want 450/0 and standing", at)
		}
		m.TurnAzimuth(-100)
		time.Sleep(10500 * time.Millisecond)
		if at := m.Truth(); math.Abs(at.AzDeg-(450-1.5-60)) > 1e-6 || at.AzRateDps != -6 {
			t.Errorf("turning back at more than its speed: %+v, want 388.5 at -6°/s", at)
		}
	})
}

func TestMountFaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := sim.NewMount(clock.System(), sim.DefaultMount())
		m.Jam(true, false)
		m.SetTarget(90, 30)
		time.Sleep(20 * time.Second)
		if at := m.Truth(); at.AzDeg != 0 || at.ElDeg != 30 || !m.Moving() {
			t.Errorf("azimuth jammed: %+v, moving %v; want 0/30 with the motor on", at, m.Moving())
		}
		m.Jam(false, false)
		time.Sleep(5 * time.Second)
		m.RunAway(true)
		m.Stop()
		m.SetTarget(10, 10)
		time.Sleep(5 * time.Minute)
		if at := m.Truth(); at.AzDeg != 450 || at.ElDeg != 30 {
			t.Errorf("ran away: %+v, want the azimuth on its end stop and the elevation, which stood, at 30", at)
		}
		m.RunAway(false)
		m.Push(-3, 2)
		if at := m.Truth(); at.AzDeg != 447 || at.ElDeg != 32 {
			t.Errorf("pushed: %+v, want 447/32", at)
		}
	})
}

func TestBacklashIsSeenByTheAntennaAndNotByTheSensor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := sim.DefaultMount()
		cfg.BacklashDeg = 1
		m := sim.NewMount(clock.System(), cfg)
		m.SetTarget(50, 0)
		time.Sleep(time.Minute)
		m.SetTarget(49.4, 0)
		time.Sleep(time.Minute)
		if at, sensor := m.Truth(), m.Reading(); math.Abs(at.AzDeg-49.5) > 1e-9 || math.Abs(sensor.AzDeg-49.4) > 1e-9 {
			t.Errorf("antenna %.3f°, sensor %.3f°; want 49.5 and 49.4", at.AzDeg, sensor.AzDeg)
		}
	})
}

func TestMountFollowsASimulatedClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clk, err := clock.Simulated(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), time.Now(), 20)
		if err != nil {
			t.Fatal(err)
		}
		m := sim.NewMount(clk, sim.DefaultMount())
		m.SetTarget(90, 0)
		time.Sleep(15500 * time.Millisecond / 20)
		if at := m.Truth(); math.Abs(at.AzDeg-90) > 1e-6 {
			t.Errorf("after 15.5 s of station time at 20×: %+v, want 90°", at)
		}
	})
}

// No order of commands and waits leaves the end stops, exceeds a speed, or ends
// elsewhere than at the last target.
func TestMountStaysWithinItsTravelAndSpeedWhateverItIsTold(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		cfg := sim.DefaultMount()
		cfg.Gravity = rapid.Float64Range(0, 0.9).Draw(rt, "gravity")
		type command struct {
			what, ms     int
			az, el, rate float64
		}
		commands := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) command {
			return command{
				rapid.IntRange(0, 3).Draw(rt, "what"), rapid.IntRange(0, 30000).Draw(rt, "ms"),
				rapid.Float64Range(-100, 600).Draw(rt, "az"), rapid.Float64Range(-30, 210).Draw(rt, "el"), rapid.Float64Range(-10, 10).Draw(rt, "rate"),
			}
		}), 1, 20).Draw(rt, "commands")
		var wrong string
		synctest.Test(t, func(*testing.T) {
			m := sim.NewMount(clock.System(), cfg)
			last := m.Truth()
			for _, c := range commands {
				switch c.what {
				case 0, 1:
					m.SetTarget(c.az, c.el)
				case 2:
					m.Stop()
				case 3:
					m.TurnAzimuth(c.rate)
				}
				dt := time.Duration(c.ms) * time.Millisecond
				time.Sleep(dt)
				at := m.Truth()
				if !(0 <= at.AzDeg && at.AzDeg <= 450 && 0 <= at.ElDeg && at.ElDeg <= 180) {
					wrong = fmt.Sprintf("outside its travel: %+v", at)
				}
				if math.Abs(at.AzDeg-last.AzDeg) > 6*dt.Seconds()+1e-6 || math.Abs(at.ElDeg-last.ElDeg) > 3*dt.Seconds()+1e-6 {
					wrong = fmt.Sprintf("faster than its speed: %+v, %v after %+v", at, dt, last)
				}
				last = at
			}
			m.SetTarget(123, 45)
			time.Sleep(30 * time.Minute)
			if at := m.Truth(); math.Abs(at.AzDeg-123) > 1e-9 || math.Abs(at.ElDeg-45) > 1e-9 || m.Moving() {
				wrong = fmt.Sprintf("half an hour after the last target: %+v, want 123/45 and standing", at)
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}
