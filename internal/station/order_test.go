package station

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// The intent is on the disk before the first byte of a move, and so is the
// mark that a restart looks for; the result follows, and nothing is between.
func TestIntentIsWrittenBeforeTheFirstByteOfAMove(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.set(func() { w.auditWait = 300 * time.Millisecond }) // a slow card
		m := w.mark()
		r := w.mustPoint(alice, 200, 40)
		w.until(time.Minute, "arrival", w.arrived)
		w.sleep(time.Second)
		ns := w.since(m, "wire", "audit", "save")
		first := slices.IndexFunc(ns, isMove)
		intent := slices.IndexFunc(ns, func(n note) bool { return n.text == "intent" && n.rec.Command == r.CommandID })
		marked := slices.IndexFunc(ns, func(n note) bool { return n.kind == "save" && contains(n.text, windingFile, `"moving":true`) })
		result := slices.IndexFunc(ns, func(n note) bool { return n.text == "result" && n.rec.Command == r.CommandID })
		if !(0 <= intent && intent < first && 0 <= marked && marked < first && first < result) {
			t.Fatalf("intent %d, mark %d, first byte %d, result %d in:\n%s", intent, marked, first, result, dump(ns))
		}
		if got := w.audits(r.CommandID); !slices.Equal(got, []string{"intent", "result"}) {
			t.Errorf("audit of the move = %v, want intent and result", got)
		}
		if wd := w.store.winding(); wd.Moving {
			t.Errorf("after standstill the disk says %+v, want no mark", wd)
		}
	})
}

func TestNoByteGoesOutWhenTheIntentCannotBeWritten(t *testing.T) {
	for name, breakIt := range map[string]func(w *world){
		"audit":   func(w *world) { w.set(func() { w.auditErr = errors.New("no space left on device") }) },
		"winding": func(w *world) { w.store.fail(errors.New("read-only file system")) },
		"durable": func(w *world) { w.set(func() { w.durable = errors.New("the outbox is full") }) },
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, setup{}, func(w *world) {
				breakIt(w)
				m := w.mark()
				w.wantCode(w.point(alice, 200, 40), safety.StateNotDurable)
				w.wantCode(w.do(alice, VerbPark), safety.StateNotDurable)
				w.sleep(10 * time.Second)
				if got := moves(w.since(m, "wire")); len(got) > 0 {
					t.Errorf("bytes went out:\n%s", dump(got))
				}
				if at := w.mount.Truth(); at.AzDeg != 180 {
					t.Errorf("the antenna moved to %v", at.AzDeg)
				}
			})
		})
	}
}

func TestStopWritesItsBytesBeforeAnyDisk(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.mustPoint(alice, 20, 40)
		w.sleep(5 * time.Second)
		w.set(func() { w.auditWait = 5 * time.Second })
		w.store.mu.Lock()
		w.store.wait = 5 * time.Second
		w.store.mu.Unlock()
		m, called := w.mark(), time.Now()
		ans := w.st.Stop(context.Background(), visitor, "test")
		if !ans.Sent {
			t.Fatalf("stop: %+v", ans)
		}
		ns := w.since(m, "wire", "audit", "save")
		if len(ns) == 0 || !isStop(ns[0]) {
			t.Fatalf("the first thing after a stop is not its bytes:\n%s", dump(ns))
		}
		if d := ns[0].at.Sub(called); d > 50*time.Millisecond {
			t.Errorf("stop bytes after %v", d)
		}
		w.sleep(time.Minute)
		if got := w.audits(ans.CommandID); !slices.Equal(got, []string{"stop"}) {
			t.Errorf("audit of the stop = %v", got)
		}
	})
}

func TestRefusalsAreAuditedAndPublished(t *testing.T) {
	inWorld(t, setup{rules: func(r *safety.Rules) { r.Horizon = unit.FlatHorizon(10) }}, func(w *world) {
		r := w.point(alice, 200, 4)
		w.wantCode(r, safety.ElevationBelowMask)
		w.sleep(time.Second)
		if got := w.audits(r.CommandID); !slices.Equal(got, []string{"refused"}) {
			t.Errorf("audit = %v, want refused", got)
		}
		if got := w.saw("actuation.refused"); len(got) != 1 {
			t.Errorf("%d events of a refusal, want 1", len(got))
		}
		r = w.st.Do(context.Background(), Command{Caller: visitor, Verb: VerbPark})
		w.wantCode(r, safety.NotPermitted)
		w.sleep(time.Second)
		if got := w.audits(r.CommandID); !slices.Equal(got, []string{"refused"}) {
			t.Errorf("audit = %v, want refused", got)
		}
	})
}

// A process that ends in the middle of a move stops it and writes what came of
// it: every intent has its result.
func TestTheEndOfTheStationHaltsAndWritesTheResult(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		r := w.mustPoint(alice, 10, 40)
		w.sleep(5 * time.Second)
		m := w.mark()
		begun := time.Now()
		w.shut()
		if took := time.Since(begun); took > 10*time.Second {
			t.Errorf("the end took %v", took)
		}
		ns := w.since(m, "wire")
		if len(ns) == 0 || !isStop(ns[0]) {
			t.Fatalf("the first bytes of the end are not a stop:\n%s", dump(ns))
		}
		if got := moves(ns); len(got) > 0 {
			t.Errorf("moves after the end was asked for:\n%s", dump(got))
		}
		if got := w.audits(r.CommandID); !slices.Equal(got, []string{"intent", "result"}) {
			t.Errorf("audit of the move = %v, want intent and result", got)
		}
		if w.mount.Moving() {
			t.Error("the antenna still moves after the end")
		}
		if wd := w.store.winding(); wd.Moving {
			t.Errorf("the antenna stands and the disk says %+v", wd)
		}
		w.stop = nil
	})
}

func contains(s string, parts ...string) bool {
	for _, p := range parts {
		if !strings.Contains(s, p) {
			return false
		}
	}
	return true
}
