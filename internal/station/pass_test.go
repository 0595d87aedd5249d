package station

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

func wantEnd(t *testing.T, e PassEnd, state, code string) {
	t.Helper()
	if e.State != state || code != "" && e.Code != code || e.Code == "" || e.Reason == "" {
		t.Fatalf("the pass ended %q %q (%s), want %s %s", e.State, e.Code, e.Reason, state, code)
	}
}

// The main job: a pass is pre-pointed, tracked, its Doppler corrected, and the
// antenna parked; the error told agrees with the truth.
func TestAPassIsWorked(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		worst, n := 0.0, 0
		stop := w.watch(time.Second, func() {
			if now := w.clk.Now(); now.After(job.AOS.Add(time.Second)) && now.Before(job.LOS.Add(-time.Second)) {
				n++
				worst = max(worst, w.errorOfTruth(iss))
				if w.rig.Truth().Main.FrequencyHz == 0 {
					t.Error("the radio has no frequency")
				}
			}
		})
		e := k.end()
		stop()
		wantEnd(t, e, "completed", "DONE")
		whole := job.LOS.Sub(job.AOS).Seconds()
		if n < 300 || math.Abs(e.TrackedS-whole) > 1 || e.Tally.Ticks < int(9.8*whole) || e.Tally.Late != 0 {
			t.Errorf("%d looks, %+v for %v s", n, e, whole)
		}
		if worst > 1.5 || math.Abs(e.Stats.MaxDeg-worst) > 0.5 || e.Stats.P50Deg > 0.5 || e.Stats.Samples < int(whole) {
			t.Errorf("the truth was off by up to %.2f°, told was %+v", worst, e.Stats)
		}
		if e.DopplerMaxHz < 8000 || e.DopplerMaxHz > 11000 {
			t.Errorf("largest Doppler shift %d Hz", e.DopplerMaxHz)
		}
		if got := k.saw(); !slices.Equal(got, []string{"prepass", "acquiring", "tracking", "postpass"}) {
			t.Errorf("states %v", got)
		}
		w.sleep(2 * time.Second)
		if a := w.st.Antenna(); a.State != AntennaParked || a.Lease != nil || a.Pass != nil {
			t.Errorf("after the pass: %+v", a)
		}
		for _, kind := range []string{"pass.aos", "pass.tca", "pass.los"} {
			if got := w.saw(kind); len(got) != 1 {
				t.Errorf("%d events %s", len(got), kind)
			}
		}
	})
}

// One intent for a pass, before its first byte, and one result after its last.
func TestAPassHasOneIntentBeforeItsFirstByte(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.AOS.Add(-3 * time.Minute))
		w.set(func() { w.auditWait = 500 * time.Millisecond })
		m := w.mark()
		wantEnd(t, w.begin(job).end(), "completed", "")
		w.sleep(5 * time.Second)
		var intents, results []int
		ns := w.since(m, "wire", "audit")
		first, last := -1, -1
		for i, n := range ns {
			switch {
			case n.text == "intent":
				intents = append(intents, i)
			case n.text == "result":
				results = append(results, i)
			case isMove(n):
				if first < 0 {
					first = i
				}
				last = i
			}
		}
		if len(intents) != 1 || len(results) != 1 || intents[0] > first || results[0] < last {
			t.Errorf("intents at %v, results at %v, moves from %d to %d", intents, results, first, last)
		}
	})
}

func TestAPassMovesNothingWithoutItsIntent(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.AOS.Add(-3 * time.Minute))
		w.set(func() { w.auditErr = errors.New("no space left on device") })
		m := w.mark()
		wantEnd(t, w.begin(job).end(), "missed", string(safety.StateNotDurable))
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("moves:\n%s", dump(got[:1]))
		}
	})
}

// What cannot be worked is refused with its code, and the antenna does not move.
func TestPassesThatAreRefused(t *testing.T) {
	all := func(r *safety.Rules) {
		r.Zones = []safety.Zone{{Name: "tent", AzFromDeg: 0, AzToDeg: 360, ElMinDeg: 20, ElMaxDeg: 50, Reason: "test"}}
	}
	tests := []struct {
		name  string
		setup setup
		spoil func(w *world, job *PassJob)
		code  safety.Code
	}{
		{"through a keep-out", setup{rules: all}, func(*world, *PassJob) {}, safety.KeepOut},
		{"old elements", setup{}, func(w *world, _ *PassJob) { w.sky.age = 30 }, safety.ElementsTooOld},
		{"no elements", setup{}, func(w *world, _ *PassJob) { delete(w.sky.sets, iss) }, safety.SatelliteUnknown},
		{"a decayed satellite", setup{}, func(w *world, _ *PassJob) {
			w.sky.replace(iss, func(e *elements.Set) { e.Epoch = e.Epoch.Add(-3000 * 24 * time.Hour); e.BStar = 0.01 })
		}, ""},
		{"no rotator", setup{options: func(o *Options) { o.Rotator = nil }, idle: true}, func(*world, *PassJob) {}, safety.DeviceAbsent},
		{"a pass that moved by two minutes", setup{}, func(w *world, _ *PassJob) { w.shift(iss, 2*time.Minute) }, safety.PassDrifted},
		{"a pass that is gone", setup{}, func(w *world, _ *PassJob) { w.shift(iss, 40*time.Minute) }, safety.PassDrifted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inWorld(t, tt.setup, func(w *world) {
				job := w.job(iss, 40, 65)
				w.clockTo(job.AOS.Add(-3 * time.Minute))
				tt.spoil(w, &job)
				m := w.mark()
				e := w.begin(job).end()
				wantEnd(t, e, "refused", string(tt.code))
				w.sleep(time.Minute)
				if got := moves(w.since(m, "wire")); len(got) > 0 {
					t.Errorf("the antenna was moved for a refused pass:\n%s", dump(got))
				}
				if e.Code != string(safety.DeviceAbsent) {
					if got := w.saw("actuation.refused"); len(got) != 1 {
						t.Errorf("%d events of the refusal", len(got))
					}
				}
			})
		})
	}
}

// shift lets a satellite come later: its mean anomaly is turned back.
func (w *world) shift(norad int, by time.Duration) {
	w.sky.replace(norad, func(e *elements.Set) {
		e.MeanAnomalyDeg = unit.Norm360(e.MeanAnomalyDeg - 360*by.Seconds()/e.Period().Seconds())
	})
}

// Elements that move the pass a little move the tracking with it.
func TestAPassThatDriftsALittleIsWorkedWhereItIsNow(t *testing.T) {
	inWorld(t, setup{rules: func(r *safety.Rules) { r.Horizon = unit.FlatHorizon(10) }}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.AOS.Add(-3 * time.Minute))
		w.shift(iss, 30*time.Second)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		if d := w.clk.Now().Sub(job.AOS); d < 20*time.Second || d > 40*time.Second {
			t.Errorf("tracking began %v after the booked AOS, want about 30 s", d)
		}
		w.sleep(2 * time.Minute)
		if off := w.errorOfTruth(iss); off > 1.5 {
			t.Errorf("%.1f° off the satellite", off)
		}
		wantEnd(t, k.end(), "completed", "")
	})
}

// A pass that is begun late is worked from there on, with the right numbers.
func TestAPassThatIsBegunLate(t *testing.T) {
	for late, want := range map[time.Duration]string{20 * time.Second: "completed", 5 * time.Minute: "partial"} {
		t.Run(late.String(), func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				job := w.job(iss, 40, 65)
				w.clockTo(job.AOS.Add(late))
				e := w.begin(job).end()
				wantEnd(t, e, want, "")
				left := job.LOS.Sub(job.AOS.Add(late)).Seconds()
				if e.TrackedS > left || e.TrackedS < left-50 { // the slew takes up to 45 s
					t.Errorf("tracked %v s of %v s left", e.TrackedS, left)
				}
				if e.Stats.P99Deg > 2 {
					t.Errorf("errors %+v: it began before the antenna was there", e.Stats)
				}
			})
		})
	}
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.LOS.Add(-5 * time.Second))
		m := w.mark()
		wantEnd(t, w.begin(job).end(), "missed", "")
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("moves for nothing:\n%s", dump(got))
		}
	})
}

func TestAClockThatIsTrustedLateGivesAPart(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.AOS.Add(-3 * time.Minute))
		w.set(func() { w.trust = Trust{State: "unsynced", Why: "no NTP since the start"} })
		k := w.begin(job)
		m := w.mark()
		w.clockTo(job.AOS.Add(job.LOS.Sub(job.AOS) / 2))
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("it moved by a clock that is not trusted:\n%s", dump(got[:1]))
		}
		w.set(func() { w.trust = Trust{Good: true} })
		e := k.end()
		wantEnd(t, e, "partial", "")
		if got := w.saw("actuation.refused"); len(got) != 1 {
			t.Errorf("%d events of one refusal", len(got))
		}
	})
	inWorld(t, setup{}, func(w *world) { // and lost on the way
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.clockTo(job.TCA)
		m := w.mark()
		w.set(func() { w.trust = Trust{Why: "the clock stepped"} })
		w.sleep(time.Second)
		if w.stops(m) == 0 {
			t.Error("a clock that is lost does not halt the pass")
		}
		e := k.end()
		wantEnd(t, e, "partial", "")
	})
}

func TestARotatorThatIsUnpluggedAndComesBackGoesOn(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.clockTo(job.TCA.Add(-time.Minute))
		w.unplug()
		w.sleep(15 * time.Second)
		m := w.mark()
		w.plug()
		w.sleep(45 * time.Second)
		if ns := w.since(m, "wire"); !isStop(ns[0]) {
			t.Errorf("first bytes: %q", ns[0].text)
		}
		if off := w.errorOfTruth(iss); off > 2 {
			t.Errorf("%.1f° off the satellite after the line came back", off)
		}
		e := k.end()
		if e.State != "completed" && e.State != "partial" || e.TrackedS < 0.8*job.LOS.Sub(job.AOS).Seconds() {
			t.Errorf("%+v", e)
		}
	})
}

func TestAPassIsTrackedWithoutItsRadio(t *testing.T) {
	for name, s := range map[string]setup{"none": {noRadio: true}, "gone": {}, "mute": {}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, s, func(w *world) {
				switch name {
				case "gone":
					w.set(func() { w.rigGone = true })
					w.rigLink.Unplug()
				case "mute":
					w.rig.SetFault(sim.RadioMute)
				}
				job := w.job(iss, 40, 65)
				wantEnd(t, w.begin(job).end(), "completed", "")
				if got := w.saw("radio.fault"); name != "none" && len(got) == 0 {
					t.Error("nobody is told of the radio")
				}
			})
		})
	}
}

func TestAPassEndsAsItWasEnded(t *testing.T) {
	tests := []struct {
		name  string
		end   func(w *world, k *work)
		state string
	}{
		{"stopped", func(w *world, _ *work) { w.st.Stop(context.Background(), visitor, "x") }, "stopped"},
		{"the mode changes", func(w *world, _ *work) {
			w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeMaint})
		}, "stopped"},
		{"an operator takes the antenna", func(w *world, _ *work) { w.mustPoint(alice, 10, 60) }, "preempted"},
		{"given up", func(_ *world, k *work) { k.cancel(errors.New("the booking was cancelled")) }, "failed"},
	}
	for _, tt := range tests {
		for _, when := range []string{"acquiring", "tracking", "slewing"} {
			t.Run(tt.name+" while "+when, func(t *testing.T) {
				inWorld(t, setup{}, func(w *world) {
					job := w.job(iss, 40, 65)
					k := w.begin(job)
					if when == "slewing" {
						w.sleep(time.Second)
					} else {
						w.until(10*time.Minute, when, k.in(when))
						w.sleep(time.Minute)
					}
					tt.end(w, k)
					wantEnd(t, k.end(), tt.state, "")
					w.sleep(time.Second)
					m := w.mark()
					w.sleep(2 * time.Minute)
					at := w.mount.Truth()
					if tt.state == "preempted" {
						if math.Abs(at.AzDeg-10) > 0.5 && math.Abs(at.AzDeg-370) > 0.5 {
							t.Errorf("the operator's move ended at %v", at)
						}
						return
					}
					if got := moves(w.since(m, "wire")); len(got) > 0 {
						t.Errorf("moves after the end:\n%s", dump(got))
					}
					if w.mount.Moving() {
						t.Error("the antenna still moves")
					}
					if wd := w.store.winding(); wd.Moving {
						t.Errorf("the antenna stands and the disk says %+v", wd)
					}
				})
			})
		}
	}
}

func TestAnAgentCannotTakeTheAntennaFromAPass(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		ref := w.wantCode(w.point(copilot, 10, 60), safety.LeaseHeld)
		if !strings.Contains(ref.Why, job.ScheduledID) || !strings.Contains(ref.Why, job.LOS.Format("15:04:05")) {
			t.Errorf("the refusal names neither the pass nor its end: %s", ref.Why)
		}
		w.st.SessionEnded(alice.Session) // who booked it goes home
		wantEnd(t, k.end(), "completed", "")
	})
}

// A station that holds waits with its pass until it is resumed.
func TestAPassWaitsForTheResume(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		w.clockTo(job.AOS.Add(-3 * time.Minute))
		w.st.Stop(context.Background(), alice, "x")
		k := w.begin(job)
		w.clockTo(job.AOS.Add(time.Minute))
		if w.mount.Moving() {
			t.Error("it moves though it was stopped")
		}
		w.do(alice, VerbResume)
		wantEnd(t, k.end(), "partial", "")
	})
}

// The end of the station gives the pass up at once and leaves the antenna
// standing.
func TestTheEndOfTheStationEndsThePass(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		w.sleep(time.Minute)
		begun := time.Now()
		k.cancel(nil)
		k.end()
		w.shut()
		if d := time.Since(begun); d > 8*time.Second {
			t.Errorf("the end took %v", d)
		}
		if w.mount.Moving() || w.store.winding().Moving {
			t.Errorf("moving %v, on disk %+v", w.mount.Moving(), w.store.winding())
		}
		w.stop = nil
	})
}

// A setpoint that the gate refuses on the way halts the pass.
func TestTheGateIsAskedForEverySetpoint(t *testing.T) {
	for code, spoil := range badFacts() {
		t.Run(string(code), func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				job := w.job(iss, 40, 65)
				k := w.begin(job)
				w.clockTo(job.TCA)
				m := w.mark()
				spoil(w)
				w.sleep(time.Second)
				if w.stops(m) == 0 {
					t.Fatal("no halt")
				}
				wantEnd(t, k.end(), "partial", "")
			})
		})
	}
}

// A satellite that hardly moves is watched as well: no new setpoint goes out for
// minutes, and the gate still counts.
func TestTheGateIsAskedWhileASatelliteStands(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.st.rot.BeginTrack(safety.Request{Verb: safety.VerbTrack, Holder: schedulerHolder, Rank: safety.RankScheduler, Orbit: &safety.Orbit{NoradID: 1, MaxDays: 7}})
		defer w.st.rot.EndTrack()
		stop := w.watch(100*time.Millisecond, func() { w.st.rot.Set(trackTo(180, 80)) })
		defer stop()
		w.sleep(20 * time.Second)
		m := w.mark()
		w.set(func() { w.powerLow = true })
		w.sleep(time.Second)
		if w.stops(m) == 0 || w.st.Antenna().State != AntennaStopped {
			t.Errorf("%d stops, state %s", w.stops(m), w.st.Antenna().State)
		}
	})
}
