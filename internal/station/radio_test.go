package station

import (
	"context"
	"testing"
	"time"

	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
)

func (w *world) tune(hz int64) Result {
	return w.st.Do(context.Background(), Command{Caller: alice, Verb: VerbTune, Tune: &TuneRequest{Path: radio.Downlink, FrequencyHz: hz}, Args: hz})
}

func TestTuneSetsTheRadioAndReadsItBack(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		if r := w.tune(145_800_000); r.Refusal != nil || r.Err != nil {
			t.Fatalf("%+v", r)
		}
		if tr := w.rig.Truth(); tr.Main.FrequencyHz != 145_800_000 && tr.Sub.FrequencyHz != 145_800_000 {
			t.Errorf("the radio has %+v", tr)
		}
		w.st.Stop(context.Background(), visitor, "x")
		w.wantCode(w.tune(145_900_000), safety.HeldAfterStop)
		if n := w.rig.Truth().KeyRequests; n != 0 {
			t.Errorf("%d requests would have keyed it", n)
		}
	})
}

// An unplugged radio is noticed at the next question, and used again when it is
// back.
func TestARadioThatIsUnpluggedIsNoticedAndComesBack(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.set(func() { w.rigGone = true })
		w.rigLink.Unplug()
		w.until(radioIdlePoll+time.Second, "the loss is noticed", func() bool { return !w.st.Radio().Present })
		w.wantCode(w.tune(145_800_000), safety.DeviceAbsent)
		w.set(func() { w.rigGone = false })
		w.until(reopenMax+time.Second, "it is back", func() bool { return w.st.Radio().Present })
		if r := w.tune(145_800_000); r.Refusal != nil || r.Err != nil {
			t.Errorf("%+v", r)
		}
	})
}

// One silence is forgiven, three in a row are a radio that is not there.
func TestAMuteRadioIsAbsent(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.rig.SetFault(sim.RadioMute)
		w.until(time.Minute, "it is absent", func() bool { return !w.st.Radio().Present })
		w.rig.SetFault(sim.RadioHealthy)
		w.until(time.Minute, "it is back", func() bool { return w.st.Radio().Present })
	})
}
