package radio

import (
	"context"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/sim"
)

func TestOpeningSendsNothing(t *testing.T) {
	for _, m := range Models() {
		w := newTestWire()
		m.New(w)
		if got := w.takeSent(); len(got) != 0 {
			t.Errorf("%s: New wrote % x, want nothing", m.Name, got)
		}
	}
}

func TestIC9700PreparesACrossBandPass(t *testing.T) {
	tests := []struct {
		name     string
		down, up Tuning
	}{
		{"ISS repeater: both bands trade places", Tuning{437_800_000, FM}, Tuning{145_990_000, FM}},
		{"linear transponder on 2 m down", Tuning{145_960_000, USB}, Tuning{435_140_000, LSB}},
		{"23 cm up", Tuning{145_950_000, FM}, Tuning{1_267_350_000, FM}},
		{"data mode", Tuning{437_100_000, FMD}, Tuning{145_825_000, FMD}},
	}
	for _, tt := range tests {
		bubble(t, tt.name, func(t *testing.T) {
			r, dev, _ := plugIC9700(t)
			if err := r.Prepare(within(t), tt.down, tt.up); err != nil {
				t.Fatal(err)
			}
			got := dev.Truth()
			want := sim.RadioTruth{Main: side(tt.down), Sub: side(tt.up), Satellite: true, TransmitHz: tt.up.FrequencyHz}
			got.Time, got.Requests = want.Time, 0
			if got != want {
				t.Errorf("the radio is at\n%+v, want\n%+v", got, want)
			}
			st, err := r.Status(within(t))
			if wantSt := (Status{Downlink: tt.down, Uplink: tt.up, Satellite: true}); err != nil || st != wantSt {
				t.Errorf("Status = %+v, %v; want %+v", st, err, wantSt)
			}
		})
	}
}

func side(t Tuning) sim.RadioSide {
	return sim.RadioSide{FrequencyHz: t.FrequencyHz, Mode: string(t.Mode)}
}

func TestIC9700DopplerStepSelectsNoBand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		ctx := within(t)
		if err := r.Prepare(ctx, Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
			t.Fatal(err)
		}
		w.takeSent()
		if got, err := r.Tune(ctx, Downlink, 437_809_123); got != 437_809_123 || err != nil {
			t.Fatalf("Tune = %d, %v", got, err)
		}
		wantFrames(t, w.takeSent(), "07d2", "052391803704", "03")
		if got, err := r.Tune(ctx, Uplink, 145_990_000); got != 145_990_000 || err != nil {
			t.Fatalf("Tune = %d, %v", got, err)
		}
		wantFrames(t, w.takeSent(), "1c03") // right already
		if got, err := r.Tune(ctx, Uplink, 145_987_000); got != 145_987_000 || err != nil {
			t.Fatalf("Tune = %d, %v", got, err)
		}
		wantFrames(t, w.takeSent(), "1c03", "07d2", "07d1", "050070984501", "03", "07d0", "1c03")
		if tr := dev.Truth(); tr.SubSelected || tr.Main.FrequencyHz != 437_809_123 || tr.Sub.FrequencyHz != 145_987_000 {
			t.Errorf("the radio is at %+v", tr)
		}
	})
}

func TestIC9700LeavesTheOperatorsBandSelected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		ctx := within(t)
		if err := r.Prepare(ctx, Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
			t.Fatal(err)
		}
		press(t, w, dev, "07d1") // the operator selects SUB
		if _, err := r.Tune(ctx, Downlink, 437_805_000); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Status(ctx); err != nil {
			t.Fatal(err)
		}
		if tr := dev.Truth(); !tr.SubSelected || tr.Main.FrequencyHz != 437_805_000 || tr.Sub.FrequencyHz != 145_990_000 {
			t.Errorf("the radio is at %+v, want SUB selected and only MAIN retuned", tr)
		}
	})
}

// press sends a request straight to the simulated radio, as its front panel
// would, and waits until it has been taken.
func press(t *testing.T, w *testWire, dev *sim.IC9700, body string) {
	t.Helper()
	b, err := hex.DecodeString("fefea2e0" + body + "fd")
	if err != nil {
		t.Fatal(err)
	}
	before := dev.Truth().Requests
	w.toDevice <- b
	for end := time.Now().Add(5 * time.Second); dev.Truth().Requests == before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the simulated radio does not take %s", body)
		}
	}
	time.Sleep(time.Millisecond)
	w.Discard()
}

func TestIC9700TradesBandsForASingleDownlink(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, _ := plugIC9700(t)
		if got, err := r.Tune(within(t), Downlink, 435_103_000); got != 435_103_000 || err != nil {
			t.Fatalf("Tune = %d, %v", got, err)
		}
		if tr := dev.Truth(); tr.Main.FrequencyHz != 435_103_000 || tr.Sub.FrequencyHz != 145_800_000 {
			t.Errorf("the radio is at %+v", tr)
		}
	})
}

func TestIC9700RefusesWithTheNumbers(t *testing.T) {
	r, dev, w := plugIC9700(t)
	ctx := within(t)
	before := dev.Truth()
	tests := []struct {
		name string
		do   func() error
		want string
	}{
		{"13 cm", func() error { _, err := r.Tune(ctx, Downlink, 2_400_100_000); return err }, "2400.100000 MHz is outside what this radio receives (144..148, 430..450, 1240..1300 MHz)"},
		{"below zero", func() error { _, err := r.Tune(ctx, Downlink, -1); return err }, "-0.000001 MHz is outside"},
		{"least integer", func() error { _, err := r.Tune(ctx, Downlink, math.MinInt64); return err }, "is outside"},
		{"eleven digits", func() error { _, err := r.Tune(ctx, Downlink, 21_458_000_000_0); return err }, "is outside"},
		{"unknown mode", func() error { return r.SetMode(ctx, Downlink, "NOSUCH") }, `mode "NOSUCH" is not one of this radio's: LSB, USB`},
		{"mode with control characters", func() error { return r.SetMode(ctx, Downlink, "FM\x1b[2J\n") }, `mode "FM[2J" is not`},
		{"unknown path", func() error { _, err := r.Tune(ctx, "sideways", 145_800_000); return err }, `path "sideways" is neither downlink nor uplink`},
		{"same band", func() error { return r.Prepare(ctx, Tuning{145_800_000, FM}, Tuning{145_990_000, FM}) }, "are on the same band"},
		{"uplink without satellite mode", func() error { _, err := r.Tune(ctx, Uplink, 435_100_000); return err }, "satellite mode is off"},
		{"mode without frequency", func() error { return r.Prepare(ctx, Tuning{0, FM}, Tuning{}) }, "is outside"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := tt.do(); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error with %q", err, tt.want)
			}
		})
	}
	for _, f := range w.takeSent() {
		if got := hex.EncodeToString(f[4 : len(f)-1]); got != "165a" && got != "1c00" {
			t.Errorf("a refused request sent %s", got)
		}
	}
	after := dev.Truth()
	if after.Main != before.Main || after.Sub != before.Sub {
		t.Errorf("a refused request moved the radio from %+v to %+v", before, after)
	}
}

func TestIC9700DoesNotPrepareWhileItTransmits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		dev.SetFault(sim.RadioMicPTT)
		err := r.Prepare(within(t), Tuning{437_800_000, FM}, Tuning{145_990_000, FM})
		if !errors.Is(err, ErrTransmitting) {
			t.Fatalf("Prepare = %v, want %v", err, ErrTransmitting)
		}
		wantFrames(t, w.takeSent(), "1c00")
	})
}

func TestIC9700HaltOnlyEverSwitchesOff(t *testing.T) {
	bubble(t, "receiving: a question is enough", func(t *testing.T) {
		r, _, w := plugIC9700(t)
		if err := r.Halt(within(t)); err != nil {
			t.Fatal(err)
		}
		wantFrames(t, w.takeSent(), "1c00")
	})
	bubble(t, "keyed: off, and confirmed", func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		press(t, w, dev, "1c0001")
		if !dev.Truth().Transmitting {
			t.Fatal("the simulated radio does not key")
		}
		if err := r.Halt(within(t)); err != nil || dev.Truth().Transmitting {
			t.Fatalf("Halt = %v, transmitting %v", err, dev.Truth().Transmitting)
		}
		wantFrames(t, w.takeSent(), "1c00", "1c0000", "1c00")
	})
	bubble(t, "stuck: says so after three tries", func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		press(t, w, dev, "1c0001")
		dev.SetFault(sim.RadioStuckPTT)
		err := r.Halt(within(t))
		if err == nil || !strings.Contains(err.Error(), "still transmits") {
			t.Fatalf("Halt = %v", err)
		}
		wantFrames(t, w.takeSent(), "1c00", "1c0000", "1c00", "1c0000", "1c00", "1c0000", "1c00")
	})
	bubble(t, "mute: off is sent all the same", func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		dev.SetFault(sim.RadioMute)
		if err := r.Halt(within(t)); err == nil {
			t.Fatal("Halt = nil from a radio that says nothing")
		}
		if sent := bodies(w.takeSent()); !slices.Contains(sent, "1c0000") {
			t.Errorf("sent %v, want 1c0000 among it", sent)
		}
	})
}

func TestIC9700SurvivesFaults(t *testing.T) {
	tests := []struct {
		fault sim.RadioFault
		want  string // "" works
	}{
		{sim.RadioHealthy, ""},
		{sim.RadioGarbage, ""},
		{sim.RadioForeign, ""},
		{sim.RadioCollision, ""},
		{sim.RadioAckLost, ""},
		{sim.RadioEcho, ""},
		{sim.RadioMute, "no answer"},
		{sim.RadioSlow, "no answer"},
		{sim.RadioNoise, ""}, // any error will do
		{sim.RadioNAK, "refused"},
		{sim.RadioFloat32, "reads 437.100992 MHz"},
	}
	for _, tt := range tests {
		name := string(tt.fault)
		if name == "" {
			name = "healthy"
		}
		bubble(t, name, func(t *testing.T) {
			r, dev, _ := plugIC9700(t)
			ctx := within(t)
			if tt.fault != sim.RadioAckLost {
				if err := r.Prepare(ctx, Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
					t.Fatal(err)
				}
			} else if _, err := r.Tune(ctx, Downlink, 145_900_000); err != nil {
				t.Fatal(err)
			}
			dev.SetFault(tt.fault)
			hz := int64(437_101_001)
			if tt.fault == sim.RadioAckLost {
				hz = 145_990_123
			}
			start := time.Now()
			got, err := r.Tune(ctx, Downlink, hz)
			took := time.Since(start)
			switch {
			case tt.fault == sim.RadioNoise:
				if err == nil {
					t.Errorf("noise tuned the radio: %d", got)
				}
			case tt.want == "" && (err != nil || got != hz || dev.Truth().Main.FrequencyHz != hz):
				t.Errorf("Tune = %d, %v; the radio is at %+v", got, err, dev.Truth().Main)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("Tune = %d, %v; want an error with %q", got, err, tt.want)
			}
			if took > 2*time.Second {
				t.Errorf("Tune took %v", took)
			}
			dev.SetFault(sim.RadioHealthy)
			if tt.fault == sim.RadioSlow {
				time.Sleep(sim.RadioSlowness * 3) // its late answers are still to come
			}
			if got, err := r.Tune(ctx, Downlink, hz+1000); err != nil || got != hz+1000 {
				t.Errorf("after the fault: Tune = %d, %v", got, err)
			}
		})
	}
}

func TestIC9700NoticesTheDial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, w := plugIC9700(t)
		ctx := within(t)
		if err := r.Prepare(ctx, Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
			t.Fatal(err)
		}
		dev.Dial(437_812_000)
		for end := time.Now().Add(5 * time.Second); len(w.toDriver) == 0; time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("the simulated radio does not announce its dial")
			}
		}
		st, err := r.Status(ctx)
		if err != nil || st.Downlink.FrequencyHz != 437_812_000 {
			t.Fatalf("Status = %+v, %v", st, err)
		}
		moves := r.(Watcher).Moves()
		if want := []Move{{FrequencyHz: 437_812_000}}; !slices.Equal(moves, want) {
			t.Errorf("Moves = %v, want %v", moves, want)
		}
		if again := r.(Watcher).Moves(); len(again) != 0 {
			t.Errorf("Moves again = %v, want none", again)
		}
		for i := range 40 {
			dev.Dial(437_800_000 + int64(i))
			if _, err := r.Status(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := len(r.(Watcher).Moves()); n > keptMoves {
			t.Errorf("%d moves kept, want at most %d", n, keptMoves)
		}
	})
}

func TestIC9700SeesSatelliteModeFallOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, _ := plugIC9700(t)
		ctx := within(t)
		if err := r.Prepare(ctx, Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
			t.Fatal(err)
		}
		dev.SetFault(sim.RadioSatLost)
		_, err := r.Tune(ctx, Uplink, 145_985_000)
		if !errors.Is(err, ErrMismatch) || !strings.Contains(err.Error(), "would transmit on 437.800000 MHz") {
			t.Fatalf("Tune = %v, want a mismatch that names the frequency in danger", err)
		}
	})
}

func TestACancelledExchangeEndsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, dev, _ := plugIC9700(t)
		dev.SetFault(sim.RadioMute)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(20*time.Millisecond, cancel)
		start := time.Now()
		_, err := r.Tune(ctx, Downlink, 145_900_000)
		if took := time.Since(start); err == nil || took > 200*time.Millisecond {
			t.Errorf("Tune = %v after %v, want an error at once", err, took)
		}
		dev.SetFault(sim.RadioHealthy)
		if err := r.Halt(within(t)); err != nil {
			t.Errorf("Halt after a cut-off exchange = %v", err)
		}
	})
}

// bodies are the CI-V frames between addresses and end, in hex.
func bodies(sent [][]byte) (out []string) {
	for _, f := range sent {
		out = append(out, hex.EncodeToString(f[4:len(f)-1]))
	}
	return out
}

func wantFrames(t *testing.T, sent [][]byte, want ...string) {
	t.Helper()
	if got := bodies(sent); !slices.Equal(got, want) {
		t.Errorf("on the wire: %v\n        want: %v", got, want)
	}
}

func TestIC821HLearnsHowManyDigitsItSends(t *testing.T) {
	for _, short := range []bool{false, true} {
		bubble(t, map[bool]string{false: "five bytes", true: "four bytes"}[short], func(t *testing.T) {
			made, err := sim.NewRadio("ic-821h", clock.System())
			if err != nil {
				t.Fatal(err)
			}
			dev := made.(*sim.Icom)
			dev.ShortFrequencies(short)
			dev.FrontPanelSatellite(true)
			w := plug(t, dev)
			r := mustLookup(t, "icom-ic821h").New(w)
			down, up := Tuning{145_950_000, USB}, Tuning{435_140_000, LSB}
			if err := r.Prepare(within(t), down, up); err != nil {
				t.Fatal(err)
			}
			if tr := dev.Truth(); tr.Main != side(down) || tr.Sub != side(up) {
				t.Fatalf("the radio is at %+v", tr)
			}
			if hz, err := r.Tune(within(t), Downlink, 145_953_210); hz != 145_953_210 || err != nil {
				t.Errorf("Tune = %d, %v", hz, err)
			}
			st, err := r.Status(within(t))
			if want := (Status{Downlink: Tuning{145_953_210, USB}, Uplink: up}); err != nil || st != want {
				t.Errorf("Status = %+v, %v; want %+v", st, err, want)
			}
			_, err = r.Tune(within(t), Downlink, 437_800_000)
			if short && (err == nil || !strings.Contains(err.Error(), "cannot change bands")) {
				t.Errorf("a change of bands in eight digits = %v", err)
			}
			if got := dev.Truth().Main.FrequencyHz; got != 145_953_210 {
				t.Errorf("MAIN moved to %d", got)
			}
			if err := r.Halt(within(t)); err != nil {
				t.Errorf("Halt = %v", err)
			}
		})
	}
}

func TestIC9700DoesWithoutTheQuestionWhichBand(t *testing.T) {
	bubble(t, "refused", func(t *testing.T) {
		dev := sim.NewIC9700(clock.System())
		w := plug(t, dev)
		r := mustLookup(t, "icom-ic9700").New(older{w})
		if err := r.Prepare(within(t), Tuning{437_800_000, FM}, Tuning{145_990_000, FM}); err != nil {
			t.Fatal(err)
		}
		press(t, w, dev, "07d1") // an operator, whom nobody tells of
		if hz, err := r.Tune(within(t), Downlink, 437_805_000); hz != 437_805_000 || err != nil {
			t.Errorf("Tune = %d, %v", hz, err)
		}
		if hz, err := r.Tune(within(t), Uplink, 145_985_000); hz != 145_985_000 || err != nil {
			t.Errorf("Tune = %d, %v", hz, err)
		}
		if tr := dev.Truth(); tr.Main.FrequencyHz != 437_805_000 || tr.Sub.FrequencyHz != 145_985_000 {
			t.Errorf("the radio is at %+v", tr)
		}
	})
}

// An older firmware refuses to say which band is selected.
type older struct{ *testWire }

func (w older) Write(ctx context.Context, p []byte) error {
	if len(p) > 5 && p[4] == civSelect && p[5] == selWhich {
		w.toDriver <- slices.Concat(p, []byte{0xFE, 0xFE, 0xE0, 0xA2, 0xFA, 0xFD})
		return nil
	}
	return w.testWire.Write(ctx, p)
}

func TestACancelledCallSaysSo(t *testing.T) {
	for _, m := range Models() {
		bubble(t, m.Name, func(t *testing.T) {
			w := newTestWire()
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(20*time.Millisecond, cancel)
			start := time.Now()
			_, err := m.New(w).Status(ctx)
			took := time.Since(start)
			if m.Name == "yaesu-ft736r" { // has nothing to wait for
				return
			}
			if !errors.Is(err, context.Canceled) || took > 100*time.Millisecond {
				t.Errorf("Status = %v after %v, want a cancellation at once", err, took)
			}
		})
	}
}

func TestSilenceAndRefusalAreToldApart(t *testing.T) {
	for _, m := range Models() {
		bubble(t, m.Name, func(t *testing.T) {
			r := m.New(newTestWire())
			if _, err := r.Tune(within(t), Downlink, -1); !errors.Is(err, ErrUnsupported) || errors.Is(err, ErrSilent) {
				t.Errorf("Tune to -1 Hz = %v", err)
			}
			if err := r.SetMode(within(t), Downlink, "NOSUCH"); !errors.Is(err, ErrUnsupported) {
				t.Errorf("SetMode to NOSUCH = %v", err)
			}
			hz := m.Caps.Receive[0].MinHz
			if _, err := r.Tune(within(t), Downlink, hz); m.Caps.Readback && !errors.Is(err, ErrSilent) {
				t.Errorf("Tune of a radio that is off = %v", err)
			}
		})
	}
}

func TestPreparingTakesAtMostThreeSeconds(t *testing.T) {
	for _, m := range Models() {
		if m.Name == "hamlib-rigctld" {
			continue
		}
		bubble(t, m.Name, func(t *testing.T) {
			r, _, _ := plugModel(t, m.Name)
			down, up := Tuning{145_880_800, FM}, Tuning{}
			if m.Caps.Satellite || !strings.Contains("kenwood-ts790 yaesu-ft817 yaesu-ft818 yaesu-ft857 yaesu-ft897", m.Name) {
				up = Tuning{437_080_800, FM}
			}
			start := time.Now()
			if err := r.Prepare(within(t), down, up); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(start); took > 3*time.Second {
				t.Errorf("Prepare takes %v without the radio's own time", took)
			} else {
				t.Logf("Prepare takes %v without the radio's own time", took)
			}
		})
	}
}

func TestIC9700RepeatsWhatCameBackChanged(t *testing.T) {
	bubble(t, "changed echo", func(t *testing.T) {
		w := plug(t, sim.NewIC9700(clock.System()))
		wire := &changedEcho{testWire: w}
		r := mustLookup(t, "icom-ic9700").New(wire)
		if _, err := r.Status(within(t)); err != nil { // learns that there is an echo
			t.Fatal(err)
		}
		wire.next = true
		start := time.Now()
		hz, err := r.Tune(within(t), Downlink, 145_900_000)
		if took := time.Since(start); hz != 145_900_000 || err != nil || took > 200*time.Millisecond {
			t.Errorf("Tune = %d, %v after %v, want it repeated well before a deadline", hz, err, took)
		}
	})
}

// changedEcho is a bus on which the next frame meets another one.
type changedEcho struct {
	*testWire
	next bool
}

func (w *changedEcho) Write(ctx context.Context, p []byte) error {
	if !w.next {
		return w.testWire.Write(ctx, p)
	}
	w.next = false
	heard := slices.Clone(p)
	heard[4] ^= 0x40
	w.toDriver <- heard
	return nil
}
