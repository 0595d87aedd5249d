package station

import (
	"context"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// woundAt is a mount of 450° whose controller answers modulo a turn.
func woundAt(az float64, store *memStore) setup {
	m := sim.DefaultMount()
	m.StartAzDeg, m.StartElDeg = az, 60
	return setup{mount: m, modulo: true, store: store}
}

func (w *world) confirm() {
	w.t.Helper()
	if r := w.do(alice, VerbWinding); r.Refusal != nil || r.Err != nil {
		w.t.Fatalf("confirm the winding: %+v", r)
	}
}

func TestTheWindingIsUnknownUntilAPersonHasLooked(t *testing.T) {
	inWorld(t, woundAt(100, nil), func(w *world) {
		m := w.mark()
		w.wantCode(w.point(alice, 200, 40), safety.WrapUnknown)
		w.wantCode(w.do(copilot, VerbWinding), safety.NotPermitted)
		w.wantCode(w.do(visitor, VerbWinding), safety.NotPermitted)
		w.confirm()
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("a confirmation moved:\n%s", dump(got))
		}
		w.mustPoint(alice, 200, 40)
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; at < 199 || at > 201 {
			t.Errorf("at %v", at)
		}
	})
}

func TestAMountOfOneTurnOrOneThatTellsHasNoSecret(t *testing.T) {
	inWorld(t, setup{}, func(w *world) { w.mustPoint(alice, 200, 40) }) // absolute
	m := sim.DefaultMount()
	m.AzMaxDeg, m.StartAzDeg, m.StartElDeg = 360, 100, 40
	inWorld(t, setup{mount: m, modulo: true}, func(w *world) { w.mustPoint(alice, 200, 40) })
}

// Standing at 380, which the controller calls 20: a restart in the same boot
// knows it, another boot does not.
func TestARestartKnowsTheWindingOfTheSameBoot(t *testing.T) {
	store := newMemStore()
	inWorld(t, woundAt(300, store), func(w *world) {
		w.confirm()
		w.mustPoint(alice, 20, 60) // the near way: through north to 380
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; at < 379 {
			t.Fatalf("at %v: the test shows nothing", at)
		}
		w.sleep(time.Second)
	})
	inWorld(t, woundAt(380, store), func(w *world) {
		if at := w.st.Antenna().Mechanical.AzDeg; at < 379 || at > 381 {
			t.Fatalf("mechanical azimuth %v after the restart, want 380", at)
		}
		w.mustPoint(alice, 300, 60)
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; at < 299 || at > 301 {
			t.Errorf("at %v", at)
		}
		w.mustPoint(alice, 20, 60)
		w.until(2*time.Minute, "arrival", w.arrived)
		w.sleep(time.Second)
	})
	s := woundAt(380, store)
	s.boot = "boot-2"
	inWorld(t, s, func(w *world) { w.wantCode(w.point(alice, 300, 60), safety.WrapUnknown) })
	inWorld(t, woundAt(200, store), func(w *world) { // turned by hand meanwhile
		w.wantCode(w.point(alice, 300, 60), safety.WrapUnknown)
	})
}

// A process that dies in mid-move leaves its mark. The next start knows the
// winding only if the antenna cannot have turned by half a turn since.
func TestARestartInMidMoveKnowsTheWindingWithinHalfATurn(t *testing.T) {
	var left windingState
	inWorld(t, woundAt(300, nil), func(w *world) {
		w.confirm()
		w.mustPoint(alice, 60, 60) // to 420: 20 s
		w.sleep(12 * time.Second)
		left = w.store.winding() // as a kill would leave it
	})
	if !left.Moving {
		t.Fatalf("on disk in mid-move: %+v, want the mark", left)
	}
	if left.AzDeg < 340 {
		t.Errorf("the mark is at %v after 12 s of motion: it was not renewed", left.AzDeg)
	}
	start := func(az float64, age time.Duration) (w *memStore, s setup) {
		store := newMemStore()
		mark := left
		mark.At = worldStart.Add(-age)
		if err := store.Save(windingFile, mark); err != nil {
			t.Fatal(err)
		}
		return store, woundAt(az, store)
	}
	_, s := start(400, 5*time.Second)
	inWorld(t, s, func(w *world) {
		if at := w.st.Antenna().Mechanical.AzDeg; at < 399 || at > 401 {
			t.Errorf("mechanical azimuth %v, want 400", at)
		}
		w.mustPoint(alice, 300, 60)
	})
	_, s = start(400, 40*time.Second) // 240° may have passed
	inWorld(t, s, func(w *world) { w.wantCode(w.point(alice, 300, 60), safety.WrapUnknown) })
	_, s = start(400, -time.Minute) // a clock that went backwards
	inWorld(t, s, func(w *world) { w.wantCode(w.point(alice, 300, 60), safety.WrapUnknown) })
	_, s = start(400, 5*time.Second)
	s.boot = "boot-2"
	inWorld(t, s, func(w *world) { w.wantCode(w.point(alice, 300, 60), safety.WrapUnknown) })
}

// While a pass is tracked the mark is on disk, and the pass ends without it.
func TestAPassLeavesItsMarkWhileItLasts(t *testing.T) {
	inWorld(t, woundAt(180, nil), func(w *world) {
		w.confirm()
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		unmarked := 0
		stop := w.watch(time.Second, func() {
			wd, at := w.store.winding(), w.mount.Truth()
			switch {
			case !w.clk.Now().Before(job.LOS):
			case !wd.Moving:
				unmarked++
			case wd.AzDeg-at.AzDeg > 100 || at.AzDeg-wd.AzDeg > 100:
				t.Errorf("the mark says %v, the antenna is at %v", wd.AzDeg, at.AzDeg)
			}
		})
		if e := k.end(); e.State != "completed" {
			t.Errorf("the pass ended %+v", e)
		}
		stop()
		if unmarked > 0 {
			t.Errorf("for %d s of the pass the disk said that the antenna stands", unmarked)
		}
		w.sleep(10 * time.Second)
		if wd := w.store.winding(); wd.Moving {
			t.Errorf("after the pass: %+v", wd)
		}
	})
}

// The line is lost on the way through north and comes back when the antenna may
// have turned by more than half a turn: the winding is not known any more.
func TestALineThatWasLostTooLongLosesTheWinding(t *testing.T) {
	for away, known := range map[time.Duration]bool{8 * time.Second: true, 40 * time.Second: false} {
		t.Run(away.String(), func(t *testing.T) {
			inWorld(t, woundAt(300, nil), func(w *world) {
				w.confirm()
				w.mustPoint(alice, 60, 60)
				w.sleep(11 * time.Second) // past north
				w.unplug()
				w.sleep(away)
				w.plug()
				w.until(time.Minute, "the line is back", func() bool { a := w.st.Antenna(); return a.Present && a.Measured != nil && w.still() })
				a := w.st.Antenna()
				if a.WindingOK != known {
					t.Errorf("the winding is known: %v, want %v; at %v", a.WindingOK, known, a.Mechanical)
				}
				if at := w.mount.Truth().AzDeg; known && (a.Mechanical.AzDeg-at > 1 || at-a.Mechanical.AzDeg > 1) {
					t.Errorf("mechanical azimuth %v, truth %v", a.Mechanical.AzDeg, at)
				}
			})
		})
	}
}

// A move that begins just when another ends keeps its mark, however slow the
// disk is.
func TestTheMarkOfTheNextMoveIsNotTakenAwayByTheLast(t *testing.T) {
	inWorld(t, woundAt(180, nil), func(w *world) {
		w.confirm()
		w.store.mu.Lock()
		w.store.wait = 700 * time.Millisecond
		w.store.mu.Unlock()
		w.set(func() {
			w.onMove = func(unit.AzEl) {
				if wd := w.store.winding(); !wd.Moving {
					t.Errorf("a target goes out and the disk says %+v", wd)
				}
			}
		})
		for i := range 20 {
			r := w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbPoint, Target: &unit.AzEl{AzDeg: 180 - 4*float64(i%2), ElDeg: 60}, Args: i})
			if r.Refusal != nil || r.Err != nil {
				t.Fatalf("%+v", r)
			}
			w.sleep(time.Duration(1500+70*i) * time.Millisecond)
		}
	})
}

func TestTheWindingIsNotConfirmedWhileTheAntennaMoves(t *testing.T) {
	inWorld(t, woundAt(100, nil), func(w *world) {
		if r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeOnSite}); r.Refusal != nil {
			t.Fatal(r.Refusal)
		}
		w.sleep(5 * time.Second)
		w.mount.SetTarget(300, 60)
		w.sleep(10 * time.Second)
		w.wantCode(w.do(alice, VerbWinding), safety.WrapUnknown)
	})
}
