package station

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// keyed points with an idempotency key.
func (w *world) keyed(c Caller, key string, az, el float64) Result {
	t := unit.AzEl{AzDeg: az, ElDeg: el}
	return w.st.Do(context.Background(), Command{Caller: c, Verb: VerbPoint, Target: &t, Args: t, Key: key})
}

func sameAnswer(t *testing.T, first, again Result) {
	t.Helper()
	if again.Refusal != nil || again.Err != nil || !again.Repeated || again.CommandID != first.CommandID || !bytes.Equal(again.Data, first.Data) {
		t.Errorf("got %+v, want the first answer %+v, marked as repeated", again, first)
	}
}

func TestTheSameKeyGivesTheFirstAnswerAgain(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		first := w.keyed(alice, "k1", 150, 60)
		if first.Refusal != nil || first.Err != nil || first.Repeated {
			t.Fatalf("first: %+v", first)
		}
		w.until(time.Minute, "arrival", w.arrived)
		m := w.mark()
		sameAnswer(t, first, w.keyed(alice, "k1", 150, 60))
		w.wantCode(w.keyed(alice, "k1", 151, 60), safety.IdempotencyMismatch)
		w.sleep(time.Hour) // a key has no end
		sameAnswer(t, first, w.keyed(alice, "k1", 150, 60))
		w.wantCode(w.keyed(alice, "k1", 151, 60), safety.IdempotencyMismatch)
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("a repeat moved the antenna:\n%s", dump(got))
		}
		if r := w.keyed(bob, "k1", 170, 60); r.Refusal != nil || r.Repeated { // another uid's key is another key
			t.Errorf("bob: %+v", r)
		}
		w.wantCode(w.keyed(alice, strings.Repeat("k", maxKeyLen+1), 150, 60), safety.IdempotencyMismatch)
	})
}

func TestKeysOutliveARestart(t *testing.T) {
	store := newMemStore()
	var first Result
	inWorld(t, setup{store: store}, func(w *world) {
		first = w.keyed(alice, "k1", 150, 60)
		w.until(time.Minute, "arrival", w.arrived)
	})
	inWorld(t, setup{store: store}, func(w *world) {
		m := w.mark()
		sameAnswer(t, first, w.keyed(alice, "k1", 150, 60))
		w.wantCode(w.keyed(alice, "k1", 151, 60), safety.IdempotencyMismatch)
		if got := moves(w.since(m, "wire")); len(got) > 0 {
			t.Errorf("a repeat moved the antenna:\n%s", dump(got))
		}
	})
}

// A client that asks again before it was answered gets the same answer, not a
// second effect.
func TestTheSameKeyAtTheSameTimeActsOnce(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		var mu sync.Mutex
		ran := 0
		book := func() Result {
			return w.st.Do(context.Background(), Command{Caller: copilot, Verb: VerbSchedule, Args: "pass", Key: "k", Apply: func(context.Context) (any, error) {
				mu.Lock()
				defer mu.Unlock()
				ran++
				return ran, nil
			}})
		}
		w.set(func() { w.auditWait = time.Second })
		got := make([]Result, 5)
		var wg sync.WaitGroup
		for i := range got {
			wg.Go(func() { got[i] = book() })
		}
		wg.Wait()
		if ran != 1 {
			t.Fatalf("%d bookings, want 1", ran)
		}
		fresh := 0
		for _, r := range got {
			if string(r.Data) != "1" {
				t.Errorf("answer %+v", r)
			}
			if !r.Repeated {
				fresh++
			}
		}
		if fresh != 1 {
			t.Errorf("%d answers are not marked as repeated, want 1", fresh)
		}
	})
}

func TestTheSameRequestWithoutAKeyIsARepeatWhileItHolds(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		first := w.mustPoint(alice, 150, 60)
		sameAnswer(t, first, w.point(alice, 150, 60)) // under way
		w.until(time.Minute, "arrival", w.arrived)
		sameAnswer(t, first, w.point(alice, 150, 60)) // there
		w.mustPoint(alice, 160, 60)
		if r := w.mustPoint(alice, 150, 60); r.Repeated { // A, B, A
			t.Error("the way back is no repeat")
		}
		w.until(time.Minute, "arrival", w.arrived)
		w.sleep(61 * time.Second)
		w.mustPoint(bob, 200, 60) // somebody else moved it
		w.until(time.Minute, "arrival", w.arrived)
		w.sleep(61 * time.Second)
		if r := w.mustPoint(alice, 150, 60); r.Repeated {
			t.Error("the antenna is where bob sent it, and alice is told that it is where she did")
		}
		w.until(time.Minute, "arrival", w.arrived)
		w.sleep(11 * time.Minute)
		if r := w.mustPoint(alice, 150, 60); r.Repeated {
			t.Error("a repeat after more than ten minutes")
		}
	})
}

// A booking that was cancelled by somebody else is no answer any more.
func TestARepeatedBookingIsAskedWhetherItHolds(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		holds, ran := true, 0
		book := func() Result {
			return w.st.Do(context.Background(), Command{Caller: copilot, Verb: VerbSchedule, Args: "pass",
				Apply: func(context.Context) (any, error) { ran++; return "sp-1", nil },
				Still: func(b json.RawMessage) bool { return holds && string(b) == `"sp-1"` }})
		}
		book()
		if r := book(); !r.Repeated || ran != 1 {
			t.Errorf("%+v after %d bookings", r, ran)
		}
		holds = false
		if r := book(); r.Repeated || ran != 2 {
			t.Errorf("%+v after %d bookings", r, ran)
		}
	})
}

func TestAnAgentHasABudget(t *testing.T) {
	store := newMemStore()
	limits := func(o *Options) { o.AgentBudget = Budget{Moves: 3, Bookings: 2} }
	inWorld(t, setup{store: store, options: limits}, func(w *world) {
		for i := range 3 {
			if r := w.point(copilot, 170-float64(i), 70); r.Refusal != nil {
				t.Fatal(r.Refusal)
			}
			w.sleep(time.Minute)
		}
		ref := w.wantCode(w.point(copilot, 100, 70), safety.RateLimited)
		after, _ := ref.Extra["retry_after_s"].(int)
		if after < 50*60 || after > 3600 || !strings.Contains(ref.Why, "next is allowed at") {
			t.Errorf("refusal %+v does not say when", ref)
		}
		w.mustPoint(alice, 100, 70) // people have none
		if ans := w.st.Stop(context.Background(), copilot, "x"); !ans.Sent {
			t.Error("stop has no budget")
		}
		w.do(alice, VerbResume)
		// Bookings are counted apart.
		if r := w.st.Do(context.Background(), Command{Caller: copilot, Verb: VerbSchedule, Apply: func(context.Context) (any, error) { return 1, nil }}); r.Refusal != nil {
			t.Errorf("booking: %v", r.Refusal)
		}
	})
	inWorld(t, setup{store: store, options: limits}, func(w *world) {
		w.wantCode(w.point(copilot, 100, 70), safety.RateLimited) // also after a restart
		w.sleep(time.Hour)
		if r := w.point(copilot, 100, 70); r.Refusal != nil {
			t.Errorf("an hour later: %v", r.Refusal)
		}
	})
}
