package station

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// badFacts are the ways in which a station that was well a moment ago must not
// move any more.
func badFacts() map[safety.Code]func(w *world) {
	return map[safety.Code]func(w *world){
		safety.PowerLow:        func(w *world) { w.set(func() { w.powerLow = true }) },
		safety.StateNotDurable: func(w *world) { w.set(func() { w.durable = errors.New("the disk is full") }) },
		safety.HeldAfterStop: func(w *world) {
			w.st.mu.Lock()
			w.st.mode.Held = true
			w.st.mu.Unlock()
		},
		safety.ModeMaintenance: func(w *world) {
			w.st.mu.Lock()
			w.st.mode.Mode = safety.ModeMaint
			w.st.mu.Unlock()
		},
	}
}

// What changes between the admission and the owner is refused by the owner,
// with nothing on the wire.
func TestTheOwnerAsksTheGateAgain(t *testing.T) {
	for code, spoil := range badFacts() {
		t.Run(string(code), func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				w.set(func() { w.auditWait = time.Second }) // the intent takes a second
				m := w.mark()
				time.AfterFunc(500*time.Millisecond, func() { spoil(w) })
				r := w.point(alice, 200, 40)
				w.wantCode(r, code)
				if len(w.audits(r.CommandID)) == 0 {
					t.Error("the first gate refused already: the test shows nothing")
				}
				w.sleep(20 * time.Second)
				if got := moves(w.since(m, "wire")); len(got) > 0 {
					t.Errorf("bytes went out:\n%s", dump(got))
				}
				if l := w.st.Antenna().Lease; l != nil {
					t.Errorf("a refused move keeps the lease: %+v", l)
				}
				if wd := w.store.winding(); wd.Moving {
					t.Errorf("a refused move leaves the mark: %+v", wd)
				}
			})
		})
	}
}

func TestAFactThatTurnsBadHaltsTheMove(t *testing.T) {
	for code, spoil := range badFacts() {
		t.Run(string(code), func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				r := w.mustPoint(alice, 10, 20)
				w.sleep(4 * time.Second)
				m := w.mark()
				spoil(w)
				w.sleep(2 * time.Second)
				ns := w.since(m, "wire")
				stop := -1
				for i, n := range ns {
					if isStop(n) {
						stop = i
						break
					}
				}
				if stop < 0 || len(moves(ns[stop:])) > 0 {
					t.Fatalf("no halt, or moves after it:\n%s", dump(ns))
				}
				w.sleep(10 * time.Second)
				if w.mount.Moving() {
					t.Error("it still moves")
				}
				found := false
				for _, n := range w.since(0, "audit") {
					found = found || n.text == "result" && n.rec.Command == r.CommandID && strings.Contains(n.rec.Detail, string(code))
				}
				if !found && code != safety.StateNotDurable {
					t.Errorf("no result names %s", code)
				}
			})
		})
	}
}

// A mode that forbids motion stops what moves, and no move slips in between.
func TestAModeChangeStopsMotion(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 10, 20)
		w.sleep(4 * time.Second)
		done := w.watch(7*time.Millisecond, func() {
			w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbPark})
		})
		r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeMaint, Reason: "mast work"})
		if r.Refusal != nil || r.Err != nil {
			t.Fatalf("mode: %+v", r)
		}
		m := w.mark()
		w.sleep(5 * time.Second)
		done()
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("moves after the mode changed:\n%s", dump(got))
		}
		if w.mount.Moving() {
			t.Error("it still moves")
		}
		w.wantCode(w.do(alice, VerbPark), safety.ModeMaintenance)
		w.wantCode(w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbMode, Mode: safety.ModeRemote}), safety.NotPermitted)
		if r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeRemote}); r.Refusal != nil || r.Err != nil {
			t.Fatalf("mode: %+v", r)
		}
		w.mustPoint(alice, 200, 40)
	})
}

func TestAModeThatCannotBeSavedIsNotTaken(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.store.fail(errors.New("read-only file system"))
		if r := w.st.Do(context.Background(), Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeMaint}); r.Err == nil {
			t.Fatalf("mode: %+v, want an error", r)
		}
		if mode, _, _, _ := w.st.Mode(); mode != safety.ModeRemote {
			t.Errorf("mode is %s", mode)
		}
	})
}

func TestNonsenseIsRefusedWithNothingOnTheWire(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		m := w.mark()
		nan, inf := math.NaN(), math.Inf(1)
		for _, d := range []unit.AzEl{{AzDeg: nan, ElDeg: 10}, {AzDeg: 10, ElDeg: nan}, {AzDeg: inf, ElDeg: 10}, {AzDeg: 10, ElDeg: 200}, {AzDeg: 10, ElDeg: -3}} {
			if r := w.point(alice, d.AzDeg, d.ElDeg); r.Refusal == nil {
				t.Errorf("point to %v: %+v, want a refusal", d, r)
			}
		}
		if r := w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbPoint}); r.Refusal == nil {
			t.Errorf("point to nowhere: %+v, want a refusal", r)
		}
		if r := w.st.Do(context.Background(), Command{Caller: alice, Verb: "explode"}); r.Refusal == nil {
			t.Errorf("an unknown verb: %+v, want a refusal", r)
		}
		w.wantCode(w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbPark, Expect: "tracking"}), safety.StateChanged)
		w.sleep(5 * time.Second)
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("bytes went out:\n%s", dump(got))
		}
	})
}

// --- leases ---

func TestTwoOperatorsRaceAndOneMoves(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		callers := []Caller{alice, bob}
		got := make([]Result, 2)
		var wg sync.WaitGroup
		for i, c := range callers {
			wg.Go(func() { got[i] = w.point(c, 100+50*float64(i), 40) })
		}
		wg.Wait()
		won := -1
		for i, r := range got {
			if r.Refusal == nil && r.Err == nil {
				if won >= 0 {
					t.Fatalf("both moved: %+v", got)
				}
				won = i
			} else if r.Refusal == nil || r.Refusal.Code != safety.LeaseHeld || !strings.Contains(r.Refusal.Why, callers[1-i].User) {
				t.Errorf("the loser got %+v, want LEASE_HELD with the holder's name", r)
			}
		}
		if won < 0 {
			t.Fatalf("nobody moved: %+v", got)
		}
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth().AzDeg; math.Abs(at-(100+50*float64(won))) > 0.5 {
			t.Errorf("the antenna went to %v", at)
		}
	})
}

func TestTheLeaseEndsAMinuteAfterTheMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 170, 70)
		w.until(time.Minute, "arrival", w.arrived)
		ended := time.Now()
		ref := w.wantCode(w.point(bob, 160, 70), safety.LeaseHeld)
		if ref.Extra["retry_after_s"] == nil {
			t.Errorf("the refusal does not say when: %+v", ref)
		}
		w.sleep(leaseAfter - 2*time.Second - time.Since(ended))
		w.wantCode(w.point(bob, 160, 70), safety.LeaseHeld)
		w.sleep(3 * time.Second)
		w.mustPoint(bob, 160, 70)
	})
}

// A second move by the same holder keeps the lease for as long as that one
// takes, though the first has ended.
func TestTheLeaseOfAReplacedMoveIsTheNewOnes(t *testing.T) {
	inWorld(t, setup{mount: slowMount()}, func(w *world) {
		w.mustPoint(alice, 170, 70)
		w.sleep(time.Second)
		w.mustPoint(alice, 20, 20) // 150° at 1°/s
		w.sleep(100 * time.Second)
		if w.st.Antenna().State != AntennaSlewing {
			t.Fatal("the move is over already: the test shows nothing")
		}
		ref := w.wantCode(w.point(bob, 160, 70), safety.LeaseHeld)
		if strings.Contains(ref.Why, "just moved") {
			t.Errorf("the lease has an end while the antenna moves: %s", ref.Why)
		}
	})
}

// A new move that is refused leaves the lease of the one under way alone.
func TestARefusedMoveDoesNotEndTheLeaseOfTheOneUnderWay(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 10, 20)
		w.sleep(2 * time.Second)
		w.store.fail(errors.New("read-only file system")) // at the mark, after the lease was taken
		w.wantCode(w.point(alice, 100, 40), safety.StateNotDurable)
		w.store.fail(nil)
		w.st.ProbeDisk(func() error { return nil })
		if w.st.Antenna().State == AntennaSlewing {
			w.wantCode(w.point(bob, 160, 70), safety.LeaseHeld)
		}
		if wd := w.store.winding(); w.mount.Moving() && !wd.Moving {
			t.Errorf("the antenna moves and the disk says %+v", wd)
		}
	})
}

func TestALostSessionStopsItsMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 10, 20)
		w.sleep(3 * time.Second)
		w.st.SessionEnded(bob.Session) // not his
		w.sleep(time.Second)
		if !w.mount.Moving() {
			t.Fatal("another session's end stopped the move")
		}
		m := w.mark()
		w.st.SessionEnded(alice.Session)
		w.sleep(5 * time.Second)
		if ns := w.since(m, "wire"); len(ns) == 0 || !isStop(ns[0]) || w.mount.Moving() {
			t.Errorf("moving %v; wire:\n%s", w.mount.Moving(), dump(ns))
		}
		w.mustPoint(bob, 170, 60) // the lease is free
	})
}

// A session that ends while its command is on its way must not leave a move
// behind.
func TestASessionThatEndsBeforeItsMoveBeganMovesNothing(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.store.mu.Lock()
		w.store.wait = time.Second // the mark takes a second: the lease is taken, nothing moves yet
		w.store.mu.Unlock()
		m := w.mark()
		time.AfterFunc(500*time.Millisecond, func() { w.st.SessionEnded(alice.Session) })
		r := w.point(alice, 10, 20)
		w.sleep(20 * time.Second)
		if got := moves(w.since(m, "wire")); len(got) > 0 || r.Refusal == nil {
			t.Errorf("result %+v, moves:\n%s", r, dump(got))
		}
	})
}

func TestAnOperatorTakesTheAntennaFromAnAgent(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(copilot, 10, 20)
		w.sleep(3 * time.Second)
		w.mustPoint(alice, 300, 60)
		w.wantCode(w.point(copilot, 10, 20), safety.LeaseHeld)
		w.until(2*time.Minute, "arrival", w.arrived)
		if at := w.mount.Truth(); math.Abs(at.AzDeg-300) > 0.5 {
			t.Errorf("the antenna went to %v", at.AzDeg)
		}
	})
}
