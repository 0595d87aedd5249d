package station

import (
	"testing"
	"time"
)

// The satellite is somewhere else by the new time: stop, plan again, go on.
func TestAStepOfTheClockStopsAndPlansThePassAgain(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.st.ClockStepped(time.Minute) // nothing is tracked: nothing happens
		job := w.job(iss, 40, 65)
		k := w.begin(job)
		w.until(10*time.Minute, "tracking", k.in("tracking"))
		w.sleep(time.Minute)
		m := w.mark()
		w.st.ClockStepped(400 * time.Millisecond)
		if n := w.stops(m); n == 0 {
			t.Error("the antenna was not stopped")
		}
		w.until(time.Minute, "tracking again", func() bool {
			s := k.saw()
			return len(s) > 3 && s[len(s)-1] == "tracking"
		})
		e := k.end()
		if e.State != "completed" && e.State != "partial" || e.TrackedS < 0.8*job.LOS.Sub(job.AOS).Seconds() {
			t.Errorf("the pass ended %+v, want it worked after the step", e)
		}
		w.sleep(time.Minute)
		told := false
		for _, ev := range w.saw("actuation.refused") {
			told = told || len(ev.Data) > 0
		}
		if !told {
			t.Error("nobody was told why the tracking was broken off")
		}
	})
}
