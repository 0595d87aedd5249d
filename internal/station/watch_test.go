package station

import (
	"context"
	"math"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// slowMount turns 1°/s and 0.5°/s.
func slowMount() sim.MountConfig {
	m := sim.DefaultMount()
	m.StartAzDeg, m.StartElDeg = 180, 80
	m.AzSpeedDps, m.ElSpeedDps, m.AccelDps2 = 1, 0.5, 1
	return m
}

// wantFault waits for a latched fault and checks all that goes with it.
func wantFault(w *world, within time.Duration, code safety.Code) {
	w.t.Helper()
	w.until(within, "the fault "+string(code), func() bool { return w.st.Antenna().Fault != "" })
	a := w.st.Antenna()
	if a.Fault != code || a.State != AntennaFault || a.FaultWhy == "" {
		w.t.Fatalf("fault %q in state %s (%s), want %s", a.Fault, a.State, a.FaultWhy, code)
	}
	w.sleep(time.Second)
	if got := w.saw("antenna.fault"); len(got) == 0 {
		w.t.Error("no event tells of the fault")
	}
	if ns := w.since(0, "wire"); w.stops(0) < 3 || isMove(ns[len(ns)-1]) { // two at the start
		w.t.Errorf("no stop was sent, or it was moved on:\n%s", dump(ns[len(ns)-5:]))
	}
	w.sleep(61 * time.Second) // let the lease run out
	w.wantCode(w.point(alice, 200, 40), code)
	w.wantCode(w.st.Do(context.Background(), Command{Caller: copilot, Verb: VerbReset}), safety.NotPermitted)
	w.wantCode(w.st.Do(context.Background(), Command{Caller: visitor, Verb: VerbReset}), safety.NotPermitted)
}

// resetAndMove lets an operator reset, which moves nothing, and then move.
func resetAndMove(w *world) {
	w.t.Helper()
	w.ctl.SetFault(sim.RotatorHealthy)
	w.sleep(20 * time.Second)
	m := w.mark()
	if r := w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbReset}); r.Refusal != nil || r.Err != nil {
		w.t.Fatalf("reset: %+v", r)
	}
	w.sleep(20 * time.Second)
	if got := moves(w.since(m, "wire")); len(got) > 0 {
		w.t.Errorf("a reset moved:\n%s", dump(got))
	}
	w.mustPoint(alice, 200, 40)
	w.until(2*time.Minute, "arrival after the reset", w.arrived)
}

func TestAJamIsAStall(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		r := w.mustPoint(alice, 20, 20)
		w.sleep(3 * time.Second)
		w.ctl.SetFault(sim.RotatorJam)
		wantFault(w, 8*time.Second, safety.Stalled)
		w.sleep(time.Second)
		if got := w.audits(r.CommandID); len(got) != 2 || got[1] != "result" {
			t.Errorf("audit of the move = %v", got)
		}
		resetAndMove(w)
	})
}

// One axis jams while the other runs: the motor of the first burns all the
// same (register C, row 39).
func TestAJamOfOneAxisIsAStall(t *testing.T) {
	for name, jam := range map[string][2]bool{"azimuth": {true, false}, "elevation": {false, true}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, setup{mount: slowMount()}, func(w *world) {
				w.mustPoint(alice, 60, 10)
				w.sleep(5 * time.Second)
				w.mount.Jam(jam[0], jam[1])
				wantFault(w, 12*time.Second, safety.Stalled)
				w.mount.Jam(false, false)
				resetAndMove(w)
			})
		})
	}
}

// An antenna that stops a little short of its target is stuck too: the move
// must end, and with it the lease.
func TestAJamJustBeforeTheTargetIsAStall(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 150, 80)
		w.until(time.Minute, "nearly there", func() bool { return w.mount.Truth().AzDeg < 151.5 })
		w.ctl.SetFault(sim.RotatorJam)
		wantFault(w, 15*time.Second, safety.Stalled)
	})
}

func TestAJamWhileTrackingIsAStall(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		w.clockTo(job.TCA.Add(-30 * time.Second))
		w.ctl.SetFault(sim.RotatorJam)
		wantFault(w, 30*time.Second, safety.Stalled)
		if e := k.end(); e.State != "partial" {
			t.Errorf("the pass ended %+v, want partial", e)
		}
	})
}

func TestAMotorWiredTheWrongWayIsStopped(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.ctl.SetFault(sim.RotatorWrongWay)
		w.mustPoint(alice, 120, 60)
		wantFault(w, 10*time.Second, safety.DeviceFault)
		if at := w.mount.Truth().AzDeg; at > 195 {
			t.Errorf("it went %v° the wrong way before it was stopped", at-180)
		}
	})
}

// A runaway: motors on, deaf to every command.
func TestARunawayIsNoticed(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 120, 60)
		w.sleep(3 * time.Second)
		w.ctl.SetFault(sim.RotatorRunAway)
		wantFault(w, 30*time.Second, safety.DeviceFault)
	})
}

func TestMotionThatNobodyAskedForIsStopped(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.sleep(time.Minute)
		m := w.mark()
		w.ctl.SetFault(sim.RotatorUncommanded)
		wantFault(w, time.Minute, safety.DeviceFault)
		if w.stops(m) == 0 {
			t.Error("no stop was sent")
		}
	})
}

// A slow creep is motion as well.
func TestASlowCreepIsNoticed(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.sleep(time.Minute)
		done := w.watch(5*time.Second, func() { w.mount.Push(0.09, 0) })
		defer done()
		w.until(5*time.Minute, "a fault", func() bool { return w.st.Antenna().Fault == safety.DeviceFault })
	})
}

// In local and maintenance mode a person may turn the antenna.
func TestAPersonAtTheStationMayTurnTheAntenna(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		if r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeOnSite}); r.Refusal != nil || r.Err != nil {
			t.Fatal(r)
		}
		w.sleep(20 * time.Second)
		w.mount.SetTarget(250, 40)
		w.sleep(time.Minute)
		if a := w.st.Antenna(); a.Fault != "" {
			t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
		}
		if r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeRemote}); r.Refusal != nil || r.Err != nil {
			t.Fatal(r)
		}
		w.sleep(time.Minute)
		if a := w.st.Antenna(); a.Fault != "" {
			t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
		}
	})
}

// One damaged reading is forgiven, two are not.
func TestAnImpossiblePositionTwiceIsAFault(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.sleep(time.Minute)
		before := w.st.Antenna().Measured.AzDeg
		w.ctl.SetFault(sim.RotatorAxisSwap)
		w.sleep(5100 * time.Millisecond)
		if got := w.st.Antenna(); got.Measured.AzDeg != before || got.Fault != "" {
			t.Fatalf("after one bad reading: %+v", got)
		}
		wantFault(w, 20*time.Second, safety.FeedbackSuspect)
	})
}

func TestOneDamagedReadingIsForgiven(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 20)
		for range 10 {
			w.sleep(1700 * time.Millisecond)
			w.ctl.SetFault(sim.RotatorBitFlip)
		}
		w.ctl.SetFault(sim.RotatorHealthy)
		w.until(2*time.Minute, "arrival", w.arrived)
		if a := w.st.Antenna(); a.Fault != "" {
			t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
		}
	})
}

// A silence in mid-move is not a jump: the way that was possible in that time
// is believed afterwards.
func TestASilenceIsNotAJump(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 20)
		w.sleep(4 * time.Second)
		w.ctl.SetFault(sim.RotatorMute)
		w.sleep(1200 * time.Millisecond)
		w.ctl.SetFault(sim.RotatorHealthy)
		w.sleep(20 * time.Second)
		if a := w.st.Antenna(); a.Fault != "" {
			t.Errorf("fault %s: %s", a.Fault, a.FaultWhy)
		}
	})
}

// A position older than two seconds stops a move: nobody knows where it goes.
func TestStaleFeedbackStopsTheMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 20)
		w.sleep(4 * time.Second)
		m, from := w.mark(), time.Now()
		w.ctl.SetFault(sim.RotatorMute)
		w.until(5*time.Second, "a stop on the wire", func() bool { return w.stops(m) > 0 })
		if d := time.Since(from); d > 3500*time.Millisecond {
			t.Errorf("stopped %v after the last reading", d)
		}
		w.sleep(61 * time.Second)
		if r := w.point(alice, 200, 40); r.Refusal == nil {
			t.Errorf("moved without feedback: %+v", r)
		}
		w.ctl.SetFault(sim.RotatorHealthy)
		w.until(time.Minute, "readings again", func() bool { return w.st.Antenna().Present && w.still() })
		w.mustPoint(alice, 200, 40)
	})
}

func TestFrozenFeedbackIsAStall(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 20)
		w.sleep(3 * time.Second)
		w.ctl.SetFault(sim.RotatorFrozen)
		wantFault(w, 8*time.Second, safety.Stalled)
	})
}

// The silence of the tracking loop halts the antenna.
func TestTheDeadManHalts(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.st.rot.BeginTrack(safety.Request{Verb: safety.VerbTrack, Holder: schedulerHolder, Rank: safety.RankScheduler, Orbit: &safety.Orbit{NoradID: 1, MaxDays: 7}})
		defer w.st.rot.EndTrack()
		begun := time.Now()
		for i := range 50 {
			if err := w.st.rot.Set(trackTo(180-0.3*float64(i), 80)); err != nil {
				t.Fatal(err)
			}
			w.sleep(100 * time.Millisecond)
		}
		m, last := w.mark(), time.Now()
		w.until(2*time.Second, "a halt", func() bool { return w.stops(m) > 0 })
		if d := time.Since(last); d > time.Second {
			t.Errorf("halted %v after the last setpoint", d)
		}
		if err := w.st.rot.Set(trackTo(100, 80)); err == nil {
			t.Error("a late setpoint was taken")
		}
		if begun.IsZero() || w.st.Antenna().State != AntennaStopped {
			t.Errorf("state %s", w.st.Antenna().State)
		}
	})
}

// No target on the wire is further from the measured position than 10° or two
// seconds of travel (hazard M-21): a host that dies leaves a short move behind.
func TestTargetsOnTheWireAreNear(t *testing.T) {
	check := func(w *world) {
		f := func(p unit.AzEl) {
			at := w.mount.Truth() // the position was measured up to half a second before
			az := max(10, 2*w.rules.AzSpeedDps) + 0.6*w.rules.AzSpeedDps
			el := max(10, 2*w.rules.ElSpeedDps) + 0.6*w.rules.ElSpeedDps
			if math.Abs(p.AzDeg-at.AzDeg) > az || math.Abs(p.ElDeg-at.ElDeg) > el {
				w.t.Errorf("target %v with the antenna at %.1f/%.1f", p, at.AzDeg, at.ElDeg)
			}
		}
		w.set(func() { w.onMove = f })
	}
	t.Run("manual", func(t *testing.T) {
		inWorld(t, setup{}, func(w *world) {
			check(w)
			w.mustPoint(alice, 10, 20)
			w.until(2*time.Minute, "arrival", w.arrived)
			w.mustPoint(alice, 350, 10)
			w.until(2*time.Minute, "arrival", w.arrived)
			w.mustPoint(alice, 100, 85) // and turned round on the way
			w.sleep(10 * time.Second)
			w.mustPoint(alice, 340, 20)
			w.until(2*time.Minute, "arrival", w.arrived)
		})
	})
	t.Run("a pass that is too fast", func(t *testing.T) {
		m := sim.DefaultMount()
		m.StartAzDeg, m.StartElDeg, m.AzSpeedDps, m.ElSpeedDps, m.ElMaxDeg = 180, 80, 3, 2, 90
		inWorld(t, setup{mount: m, from: zenithStart}, func(w *world) {
			check(w)
			job := w.job(iss, 80, 90)
			if e := w.begin(job).end(); e.State != "completed" || e.Stats.MaxDeg < 10 {
				t.Errorf("the pass ended %+v, want it completed though the mount lagged", e)
			}
		})
	})
}

// A move that replaces another one turns at once, it does not first go on to
// where the old one was going.
func TestAReplacedMoveTurnsAtOnce(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 80)
		w.sleep(5 * time.Second)
		m := w.mark()
		w.mustPoint(alice, 300, 80)
		ns := moves(w.since(m, "wire"))
		if len(ns) == 0 || target(ns[0]).AzDeg < w.mount.Truth().AzDeg {
			t.Fatalf("the antenna is at %v; wire:\n%s", w.mount.Truth().AzDeg, dump(ns))
		}
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; math.Abs(at-300) > 0.5 {
			t.Errorf("arrived at %v", at)
		}
	})
}

// The antenna's truth never enters a zone between start and target, with an
// elevation axis that is slower than the azimuth, and that goes up slower than
// its profile says.
func TestTheWayRoundAKeepOutIsKept(t *testing.T) {
	for _, protocol := range []string{"easycomm2", "gs232b"} {
		t.Run(protocol, func(t *testing.T) {
			m := sim.DefaultMount()
			m.StartAzDeg, m.StartElDeg, m.Gravity = 100, 10, 0.3
			zone := safety.Zone{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMinDeg: 0, ElMaxDeg: 35, Reason: "mast"}
			inWorld(t, setup{protocol: protocol, mount: m, rules: func(r *safety.Rules) { r.Zones = []safety.Zone{zone} }}, func(w *world) {
				bad := 0
				defer w.watch(10*time.Millisecond, func() {
					tr := w.mount.Truth()
					if zone.Contains(unit.AzEl{AzDeg: tr.AzDeg, ElDeg: tr.ElDeg}) {
						if bad++; bad < 5 {
							t.Errorf("the antenna is in the zone: %+v", tr)
						}
					}
				})()
				for _, d := range []unit.AzEl{{AzDeg: 260, ElDeg: 10}, {AzDeg: 165, ElDeg: 5}, {AzDeg: 180, ElDeg: 60}, {AzDeg: 195, ElDeg: 20}, {AzDeg: 100, ElDeg: 30}, {AzDeg: 200, ElDeg: 50}, {AzDeg: 150, ElDeg: 10}} {
					w.mustPoint(alice, d.AzDeg, d.ElDeg)
					w.until(3*time.Minute, "arrival", w.arrived)
				}
			})
		})
	}
}

// A rotator without an elevation axis arrives when its azimuth does, and a jam
// of that is a stall.
func TestARotatorWithoutElevation(t *testing.T) {
	m := sim.DefaultMount()
	m.AzMaxDeg, m.StartAzDeg = 360, 180
	inWorld(t, setup{protocol: "rotorez", mount: m}, func(w *world) {
		w.mustPoint(alice, 90, 40)
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; math.Abs(at-90) > 2 {
			t.Errorf("at %v", at)
		}
		w.mustPoint(alice, 200, 10)
		w.sleep(5 * time.Second)
		w.ctl.SetFault(sim.RotatorJam)
		w.until(15*time.Second, "the stall", func() bool { return w.st.Antenna().Fault == safety.Stalled })
	})
}
