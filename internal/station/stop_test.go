package station

import (
	"context"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
)

// The bytes of a stop are on the wire within 50 ms of the call, whatever the
// owner of the rotator is doing, and the antenna then stands.
func TestStopBytesGoOutWithin50msInEveryState(t *testing.T) {
	states := map[string]func(w *world){
		"idle": func(w *world) { w.sleep(7 * time.Second) },
		"slewing": func(w *world) {
			w.mustPoint(alice, 10, 20)
			w.sleep(4 * time.Second)
		},
		"waiting for a mute controller": func(w *world) {
			w.mustPoint(alice, 10, 20)
			w.sleep(2 * time.Second)
			w.ctl.SetFault(sim.RotatorMute)
			w.sleep(700 * time.Millisecond)
		},
		"a write that does not end": func(w *world) {
			w.mustPoint(alice, 10, 20)
			w.sleep(2 * time.Second)
			w.link.Stall(true)
			w.sleep(600 * time.Millisecond)
		},
		"tracking": func(w *world) {
			job := w.job(iss, 40, 65)
			k := w.begin(job)
			w.t.Cleanup(func() { k.cancel(nil) })
			w.until(10*time.Minute, "tracking", k.in("tracking"))
			w.sleep(90 * time.Second)
		},
		"while the radio is prepared": func(w *world) {
			job := w.job(iss, 40, 65)
			w.rig.SetFault(sim.RadioSlow)
			k := w.begin(job)
			w.t.Cleanup(func() { k.cancel(nil) })
			w.sleep(1500 * time.Millisecond)
		},
	}
	for name, bring := range states {
		t.Run(name, func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				bring(w)
				m, called := w.mark(), time.Now()
				ans := w.st.Stop(context.Background(), visitor, "test")
				ns := w.since(m, "wire")
				if len(ns) == 0 || !isStop(ns[0]) {
					t.Fatalf("the first bytes after the call are no stop:\n%s", dump(ns))
				}
				if d := ns[0].at.Sub(called); d > 50*time.Millisecond {
					t.Errorf("the stop went out after %v", d)
				}
				if !ans.Sent && name != "while the radio is prepared" {
					t.Errorf("answer %+v, want sent", ans)
				}
				w.link.Stall(false)
				w.ctl.SetFault(sim.RotatorHealthy)
				w.rig.SetFault(sim.RadioHealthy)
				w.sleep(20 * time.Second)
				if w.mount.Moving() {
					t.Error("the antenna still moves")
				}
				at := w.mount.Truth()
				w.sleep(10 * time.Minute)
				if now := w.mount.Truth(); now.AzDeg != at.AzDeg || now.ElDeg != at.ElDeg {
					t.Errorf("the antenna moved from %v to %v after the stop", at, now)
				}
				if got := moves(w.since(m, "wire")); len(got) > 0 {
					t.Errorf("moves after a stop:\n%s", dump(got))
				}
			})
		})
	}
}

func TestStopIsConfirmedByStandstill(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		for range 2 { // the second time an earlier confirmation must not count
			w.mustPoint(alice, 10, 20)
			w.sleep(3 * time.Second)
			ans := w.st.Stop(context.Background(), alice, "test")
			if !ans.Confirmed {
				t.Fatalf("answer %+v, want confirmed", ans)
			}
			if tr := w.mount.Truth(); tr.AzRateDps != 0 || tr.ElRateDps != 0 {
				t.Fatalf("confirmed while it moves: %+v", tr)
			}
			if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
				t.Fatal(r)
			}
		}
	})
}

// A radio that cannot be told does not keep the station from looking whether
// the antenna stands.
func TestStopIsConfirmedThoughTheRadioIsGone(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.set(func() { w.rigGone = true })
		w.rigLink.Unplug()
		w.sleep(30 * time.Second)
		w.mustPoint(alice, 10, 20)
		w.sleep(3 * time.Second)
		ans := w.st.Stop(context.Background(), alice, "test")
		if !ans.Confirmed || len(ans.Problems) != 1 {
			t.Fatalf("answer %+v, want standstill confirmed and the radio's problem told", ans)
		}
	})
}

func TestStopThatIsLostIsSentAgain(t *testing.T) {
	for _, fault := range []sim.RotatorFault{sim.RotatorDropStop, sim.RotatorSwallowStop} {
		t.Run(string(fault), func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				w.mustPoint(alice, 10, 20)
				w.sleep(3 * time.Second)
				w.ctl.SetFault(fault)
				m := w.mark()
				w.st.Stop(context.Background(), alice, "test")
				w.sleep(3 * time.Second)
				if n := w.stops(m); n < 2 {
					t.Errorf("%d stops were sent, want it to be repeated", n)
				}
				// Though no stop is obeyed, the target was near.
				w.until(10*time.Second, "standstill", func() bool { return !w.mount.Moving() })
			})
		})
	}
}

// A mount that obeys nothing: a person is called, and stop is tried on and on.
func TestAnAntennaThatDoesNotObeyStopIsAFault(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 150, 60)
		w.sleep(time.Second)
		w.ctl.SetFault(sim.RotatorRunAway)
		w.st.Stop(context.Background(), alice, "test")
		w.until(8*time.Second, "a fault is latched", func() bool { return w.st.Antenna().Fault == safety.DeviceFault })
		if !w.mount.Moving() {
			t.Fatal("the antenna has stopped: the test shows nothing")
		}
		m := w.mark()
		w.sleep(3 * time.Second)
		if n := w.stops(m); n < 3 {
			t.Errorf("%d stops in 3 s after the fault", n)
		}
		w.ctl.SetFault(sim.RotatorHealthy)
		w.until(5*time.Second, "standstill", func() bool { return !w.mount.Moving() && w.still() })
		m = w.mark()
		w.sleep(time.Minute)
		if n := w.stops(m); n > 0 {
			t.Errorf("%d stops though the antenna stands", n)
		}
		if got := w.saw("antenna.fault"); len(got) != 1 {
			t.Errorf("%d events of one fault", len(got))
		}
	})
}

func TestStopHoldsUntilAPersonResumes(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.st.Stop(context.Background(), visitor, "test") // an observer may
		w.wantCode(w.point(alice, 200, 40), safety.HeldAfterStop)
		w.wantCode(w.do(copilot, VerbResume), safety.NotPermitted)
		w.wantCode(w.do(visitor, VerbResume), safety.NotPermitted)
		w.wantCode(w.point(alice, 200, 40), safety.HeldAfterStop)
		if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
			t.Fatalf("resume: %+v", r)
		}
		w.mustPoint(alice, 200, 40)
		w.until(time.Minute, "arrival", w.arrived)
	})
}

func TestTheHoldOutlivesARestart(t *testing.T) {
	store := newMemStore()
	inWorld(t, setup{store: store}, func(w *world) {
		w.st.Stop(context.Background(), alice, "test")
	})
	inWorld(t, setup{store: store}, func(w *world) {
		w.wantCode(w.point(alice, 200, 40), safety.HeldAfterStop)
		if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
			t.Fatalf("resume: %+v", r)
		}
	})
	inWorld(t, setup{store: store}, func(w *world) { w.mustPoint(alice, 200, 40) })
}

// A slow disk must not bring a hold back that was resumed.
func TestResumeIsNotUndoneByALateWrite(t *testing.T) {
	store := newMemStore()
	inWorld(t, setup{store: store}, func(w *world) {
		w.set(func() { w.auditWait = 3 * time.Second })
		w.st.Stop(context.Background(), alice, "test")
		if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
			t.Fatalf("resume: %+v", r)
		}
	})
	inWorld(t, setup{store: store}, func(w *world) { w.mustPoint(alice, 200, 40) })
}

func TestStopWorksForAClientThatIsGone(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 10, 20)
		w.sleep(3 * time.Second)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if ans := w.st.Stop(ctx, alice, "test"); !ans.Sent || !ans.Confirmed {
			t.Fatalf("answer %+v, want sent and confirmed", ans)
		}
	})
}

// Stop is answered at once while there is no line.
func TestStopSaysThatTheLineIsGone(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 10, 20)
		w.sleep(3 * time.Second)
		w.unplug()
		w.sleep(5 * time.Second)
		begun := time.Now()
		ans := w.st.Stop(context.Background(), alice, "test")
		if ans.Sent || ans.Confirmed || len(ans.Problems) == 0 {
			t.Errorf("answer %+v, want the problem told", ans)
		}
		if d := time.Since(begun); d > time.Second {
			t.Errorf("the answer took %v", d)
		}
		m := w.mark()
		w.plug()
		w.until(30*time.Second, "standstill", func() bool { return w.st.Antenna().Present && w.still() })
		if ns := w.since(m, "wire"); !isStop(ns[0]) {
			t.Errorf("first bytes after the line came back: %q", ns[0].text)
		}
		w.wantCode(w.point(alice, 200, 40), safety.HeldAfterStop)
	})
}

func TestEveryOpeningSendsStopFirstAndNoMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.sleep(20 * time.Second)
		ns := w.since(0, "open", "wire")
		if ns[0].kind != "open" || !isStop(ns[1]) {
			t.Fatalf("first bytes after opening:\n%s", dump(ns[:2]))
		}
		if got := moves(ns); len(got) > 0 {
			t.Errorf("moves that nobody asked for:\n%s", dump(got))
		}
	})
}

// A stop during the deaf seconds after opening (a controller that resets) is
// written at once, and again when the controller hears.
func TestStopDuringTheSettlingOfTheLine(t *testing.T) {
	inWorld(t, setup{idle: true}, func(w *world) {
		w.sleep(500 * time.Millisecond)
		if len(w.since(0, "open")) != 1 {
			t.Fatal("the line is not open yet")
		}
		m, called := w.mark(), time.Now()
		ans := w.st.Stop(context.Background(), visitor, "test")
		ns := w.since(m, "wire")
		if !ans.Sent || len(ns) == 0 || !isStop(ns[0]) || ns[0].at.Sub(called) > 50*time.Millisecond {
			t.Fatalf("answer %+v, wire:\n%s", ans, dump(ns))
		}
		if w.sleep(3 * time.Second); w.stops(m) < 2 {
			t.Errorf("no stop after the controller woke up:\n%s", dump(w.since(m, "wire")))
		}
	})
}

// The line is lost in mid-move: the move's result says to assume motion, and
// the first bytes after it is back are a stop.
func TestALostLineIsAssumedToMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		r := w.mustPoint(alice, 10, 20)
		w.sleep(4 * time.Second)
		w.unplug()
		w.until(3*time.Second, "the loss is noticed", func() bool { return !w.st.Antenna().Present })
		w.sleep(time.Second)
		var detail string
		for _, n := range w.since(0, "audit") {
			if n.text == "result" && n.rec.Command == r.CommandID {
				detail = n.rec.Detail
			}
		}
		if !contains(detail, "may still move") {
			t.Errorf("the result says %q, want that it may still move", detail)
		}
		w.wantCode(w.point(alice, 200, 40), safety.DeviceAbsent)
		m := w.mark()
		w.plug()
		w.until(30*time.Second, "the line is back", func() bool { return w.st.Antenna().Present && w.still() })
		ns := w.since(m, "wire")
		if !isStop(ns[0]) {
			t.Errorf("first bytes: %q", ns[0].text)
		}
		if got := moves(ns); len(got) > 0 {
			t.Errorf("the old move went on:\n%s", dump(got))
		}
		w.mustPoint(alice, 200, 40)
		w.until(time.Minute, "arrival", w.arrived)
	})
}
