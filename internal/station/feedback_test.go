package station

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// A radio that refuses is a radio that is there: its port stays open.
func TestWhatARadioRefusesDoesNotCloseItsPort(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		w.until(time.Minute, "the radio is there", func() bool { return w.st.Radio().Present })
		link := w.rigLink
		w.rig.SetFault(sim.RadioNAK)
		for range 2 * lostReplies {
			if r := w.tune(145_800_000); r.Err == nil || !strings.Contains(r.Err.Error(), radio.ErrRefused.Error()) {
				t.Fatalf("the radio refuses, and the tune says %+v", r)
			}
		}
		w.rig.SetFault(sim.RadioHealthy)
		for range 2 * lostReplies {
			if r := w.tune(1); r.Err == nil {
				t.Fatalf("1 Hz was set: %+v", r)
			}
		}
		if w.rigLink != link || !w.st.Radio().Present {
			t.Errorf("the port was opened again, or the radio is absent: %s", w.st.Radio().Why)
		}
		if r := w.tune(145_900_000); r.Err != nil || r.Refusal != nil {
			t.Errorf("afterwards: %+v", r)
		}
	})
}

// A direction that the protocol cannot say ends the move in words, and the line
// stays.
func TestAMoveOutsideOfTheProtocolFailsAndTheLineStays(t *testing.T) {
	m := sim.DefaultMount()
	m.AzMinDeg, m.StartAzDeg, m.StartElDeg = -90, 10, 40
	inWorld(t, setup{mount: m}, func(w *world) { // easycomm2 has no negative azimuth
		for range lostReplies + 1 {
			mark := w.mark()
			r := w.point(alice, 330, 40)
			if r.Refusal != nil {
				t.Fatalf("refused: %v", r.Refusal)
			}
			if r.Err == nil { // it set out, and came to 0
				w.until(time.Minute, "the end of the move", w.still)
			} else if !strings.Contains(r.Err.Error(), "protocol's range") {
				t.Errorf("the move ended with %v", r.Err)
			}
			w.until(10*time.Second, "standstill", w.still)
			for _, n := range moves(w.since(mark, "wire")) {
				if target(n).AzDeg < 0 {
					t.Errorf("sent %q", n.text)
				}
			}
			if n := len(w.since(0, "open")); n != 1 {
				t.Fatalf("the port was opened %d times", n)
			}
		}
		if at := w.st.Antenna(); !at.Present || at.Fault != "" || !strings.Contains(string(at.State), "stopped") {
			t.Errorf("the antenna is %+v", at)
		}
		w.mustPoint(alice, 60, 40)
		w.until(time.Minute, "another move arrives", w.arrived)
	})
}

// A controller that refuses every move ends each of them and is not unplugged.
func TestAControllerThatRefusesIsNotALostLine(t *testing.T) {
	m := sim.DefaultMount()
	m.AzMaxDeg, m.StartAzDeg, m.StartElDeg = 360, 180, 80
	inWorld(t, setup{protocol: "gs232b", mount: m, modulo: true}, func(w *world) {
		w.ctl.SetFault(sim.RotatorReject)
		for range lostReplies + 1 {
			if r := w.point(alice, 200, 60); r.Err == nil || !strings.Contains(r.Err.Error(), "refused") {
				t.Fatalf("%+v", r)
			}
			w.until(10*time.Second, "standstill", w.still)
		}
		if n := len(w.since(0, "open")); n != 1 || !w.st.Antenna().Present {
			t.Errorf("the port was opened %d times: %+v", n, w.st.Antenna())
		}
	})
}

// tilted is an azimuth rotator with the antenna fixed at 20 degrees.
func tilted(protocol string) setup {
	m := sim.DefaultMount()
	m.AzMaxDeg, m.StartAzDeg, m.StartElDeg = 360, 180, 0
	return setup{protocol: protocol, mount: m, rules: func(r *safety.Rules) {
		r.Travel.ElMinDeg, r.Travel.ElMaxDeg = -0.1, 0.1
		r.Offset.ElDeg = 20
		r.Horizon = unit.FlatHorizon(5)
	}}
}

// Whatever elevation is asked for, a mount with one axis keeps its tilt and
// says so.
func TestAMountWithOneAxisKeepsItsTilt(t *testing.T) {
	for _, protocol := range []string{"rotorez", "rot2prog"} { // a controller for one axis, and one for two with one motor
		t.Run(protocol, func(t *testing.T) { keepsItsTilt(t, protocol) })
	}
}

func keepsItsTilt(t *testing.T, protocol string) {
	inWorld(t, tilted(protocol), func(w *world) {
		for _, el := range []float64{0, 20, 75} {
			if ref := w.st.CheckPointing(unit.AzEl{AzDeg: 100, ElDeg: el}); ref != nil {
				t.Errorf("elevation %v: %v", el, ref)
			}
			w.mustPoint(alice, 100+el, el)
			w.until(2*time.Minute, "arrival", w.arrived)
			a := w.st.Antenna()
			if !a.AzOnly || a.Commanded.ElDeg != 20 || a.Measured.ElDeg != 20 || math.Abs(a.Measured.AzDeg-100-el) > 2 {
				t.Errorf("asked for elevation %v: %+v commanded %v measured %v", el, a, a.Commanded, a.Measured)
			}
		}
		if r := w.do(alice, VerbPark); r.Refusal != nil || r.Err != nil {
			t.Fatalf("park: %+v", r)
		}
		w.until(2*time.Minute, "parked", func() bool { return w.st.Antenna().State == AntennaParked })
	})
}

// A pass is tracked in azimuth, and its pointing error is the whole one.
func TestAMountWithOneAxisTracksALowPass(t *testing.T) {
	inWorld(t, tilted("rotorez"), func(w *world) {
		job := w.job(iss, 15, 35)
		e := w.begin(job).end()
		if e.State != "completed" {
			t.Fatalf("%+v", e)
		}
		if want := math.Max(20, job.MaxElDeg-20); e.Stats.MaxDeg < want-6 || e.Stats.MaxDeg > want+4 {
			t.Errorf("the largest error is %.1f°, and the tilt alone makes about %.1f°", e.Stats.MaxDeg, want)
		}
	})
}

// A pass that is off the beam for the most part, since the antenna cannot look
// up, is refused with why.
func TestAMountWithOneAxisRefusesAHighPassWithANarrowBeam(t *testing.T) {
	s := tilted("rotorez")
	s.options = func(o *Options) { o.BeamwidthDeg = 4 }
	inWorld(t, s, func(w *world) {
		job := w.job(iss, 35, 90)
		_, ref, _ := w.st.PlanPass(iss, job.AOS, job.LOS)
		if ref == nil || ref.Code != safety.Keyhole || !strings.Contains(ref.Why, "no elevation axis and stays at 20°") {
			t.Errorf("%+v", ref)
		}
	})
}

// A controller that cannot tell its position is stopped and never moved, and its
// line is not taken for a lost one.
func TestAControllerWithoutPositionIsStoppedAndNotMoved(t *testing.T) {
	for _, protocol := range []string{"easycomm1", "dcu1"} {
		t.Run(protocol, func(t *testing.T) {
			inWorld(t, setup{protocol: protocol, idle: true}, func(w *world) {
				w.until(time.Minute, "the line is open", func() bool { return w.st.Antenna().Present })
				w.sleep(2 * time.Minute)
				if n := len(w.since(0, "open")); n != 1 {
					t.Errorf("the port was opened %d times", n)
				}
				a := w.st.Antenna()
				if !a.SetOnly || a.Measured != nil || a.Feedback != "none" || a.Fault != "" {
					t.Errorf("%+v", a)
				}
				for name, ref := range map[string]*safety.Refusal{
					"point": w.wantCode(w.point(alice, 100, 40), safety.FeedbackStale),
					"park":  w.wantCode(w.do(alice, VerbPark), safety.FeedbackStale),
					"check": w.st.CheckPointing(unit.AzEl{AzDeg: 100, ElDeg: 40}),
				} {
					if ref == nil || !strings.Contains(ref.Why, "cannot tell its position") {
						t.Errorf("%s: %v", name, ref)
					}
				}
				mark := w.mark()
				ans := w.st.Stop(context.Background(), visitor, "x")
				if !ans.Sent || ans.Confirmed || len(ans.Problems) != 1 || !strings.Contains(ans.Problems[0], "not confirmed: this controller cannot tell its position") {
					t.Errorf("stop: %+v", ans)
				}
				w.sleep(time.Minute)
				if n := len(w.since(mark, "wire")); n < 1 || n > 2*stopsUnseen {
					t.Errorf("%d frames after a stop:\n%s", n, dump(w.since(mark, "wire")))
				}
				if w.mount.Moving() {
					t.Errorf("it moves: %+v", w.mount.Truth())
				}
			})
		})
	}
}
