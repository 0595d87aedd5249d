package station

import (
	"context"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
)

// A fault latches: switching the station off and on is no reset, and a reset
// lasts over the next start.
func TestALatchedFaultOutlivesARestartAndAResetToo(t *testing.T) {
	store := newMemStore()
	inWorld(t, setup{store: store}, func(w *world) {
		w.mustPoint(alice, 200, 40)
		w.ctl.SetFault(sim.RotatorJam)
		w.until(time.Minute, "the stall", func() bool { return w.st.Antenna().Fault != "" })
		w.sleep(time.Second)
	})
	inWorld(t, setup{store: store}, func(w *world) {
		a := w.st.Antenna()
		if a.Fault != safety.Stalled || a.State != AntennaFault || a.FaultWhy == "" {
			t.Fatalf("after the restart: fault %q, state %s (%s); want STALLED", a.Fault, a.State, a.FaultWhy)
		}
		w.wantCode(w.point(alice, 200, 40), safety.Stalled)
		if r := w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbReset, Fault: safety.Stalled}); r.Refusal != nil || r.Err != nil {
			t.Fatalf("reset: %+v", r)
		}
	})
	inWorld(t, setup{store: store}, func(w *world) {
		w.mustPoint(alice, 200, 40)
		w.until(2*time.Minute, "arrival", w.arrived)
	})
}

// A file that cannot be read hides what was wrong, so a person has to look.
func TestFaultsThatCannotBeReadAreAFault(t *testing.T) {
	store := newMemStore()
	store.files[faultsFile] = []byte("\x00torn")
	inWorld(t, setup{store: store}, func(w *world) {
		w.wantCode(w.point(alice, 200, 40), safety.DeviceFault)
	})
}
