package radio

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/sim"
)

// plugModel runs a model's driver on its simulated radio.
func plugModel(t testing.TB, name string) (Radio, sim.Radio, *testWire) {
	t.Helper()
	m := mustLookup(t, name)
	dev, err := sim.NewRadio(strings.Replace(m.Aliases[0], "ft-991", "ft-991a", 1), clock.System())
	if name == "yaesu-ft991a" {
		dev, err = sim.NewRadio("ft-991a", clock.System())
	}
	if err != nil {
		t.Fatal(err)
	}
	w := plug(t, dev)
	return m.New(w), dev, w
}

func text(sent [][]byte) (out []string) {
	for _, p := range sent {
		out = append(out, string(p))
	}
	return out
}

func wantText(t *testing.T, sent [][]byte, want ...string) {
	t.Helper()
	if got := text(sent); !slices.Equal(got, want) {
		t.Errorf("on the wire: %q\n        want: %q", got, want)
	}
}

func TestTS2000PreparesACrossBandPass(t *testing.T) {
	bubble(t, "inverting transponder", func(t *testing.T) {
		r, dev, w := plugModel(t, "kenwood-ts2000")
		down, up := Tuning{435_640_000, USB}, Tuning{145_950_000, LSB}
		if err := r.Prepare(within(t), down, up); err != nil {
			t.Fatal(err)
		}
		wantText(t, w.takeSent(), "IF;", "SA;", "SA1010000;ID;", "SA;", "FA00435640000;ID;", "FA;", "MD2;ID;", "MD;",
			"FB00145950000;ID;", "FB;", "SA1011000;ID;", "SA;", "MD1;ID;", "MD;", "SA1010000;ID;", "SA;", "FA;")
		tr := dev.Truth()
		if tr.Main != side(down) || tr.Sub != side(up) || !tr.Satellite || tr.SubSelected || tr.TransmitHz != up.FrequencyHz {
			t.Errorf("the radio is at %+v", tr)
		}
		st, err := r.Status(within(t))
		if want := (Status{Downlink: down, Uplink: up, Satellite: true}); err != nil || st != want {
			t.Errorf("Status = %+v, %v; want %+v", st, err, want)
		}
		w.takeSent()
		if hz, err := r.Tune(within(t), Uplink, 145_951_234); hz != 145_951_234 || err != nil {
			t.Errorf("Tune = %d, %v", hz, err)
		}
		wantText(t, w.takeSent(), "FB00145951234;ID;", "FB;")
		if err := r.SetMode(within(t), Uplink, CW); err != nil || dev.Truth().Sub.Mode != "CW" || dev.Truth().SubSelected {
			t.Errorf("SetMode = %v; the radio is at %+v", err, dev.Truth())
		}
	})
}

func TestKenwoodsWriteWhatHamlibWrites(t *testing.T) {
	tests := []struct {
		model, file, cmd string
		do               func(Radio) error
		hamlibs          []string // what only Hamlib sends
	}{
		{"kenwood-ts2000", "kenwood_ts2000", "F 435103000", tune(Downlink, 435_103_000), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "F 437550000", tune(Downlink, 437_550_000), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "F 1296000000", tune(Downlink, 1_296_000_000), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "F 145800123", tune(Downlink, 145_800_123), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "M USB 0", mode(USB), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "M CW 0", mode(CW), []string{"AI0;ID;"}},
		{"kenwood-ts2000", "kenwood_ts2000", "M LSB 0", mode(LSB), []string{"AI0;ID;"}},
		{"kenwood-ts790", "kenwood_ts790", "F 435103000", tune(Downlink, 435_103_000), nil},
		{"kenwood-ts790", "kenwood_ts790", "F 1296000000", tune(Downlink, 1_296_000_000), nil},
		{"kenwood-ts790", "kenwood_ts790", "M USB 0", mode(USB), nil},
		{"kenwood-ts790", "kenwood_ts790", "M LSB 0", mode(LSB), nil},
		{"yaesu-ft991a", "yaesu_ft991a", "F 145800123", tune(Downlink, 145_800_123), []string{"FA;", "AI0;AI;"}},
		{"yaesu-ft991a", "yaesu_ft991a", "F 435103000", tune(Downlink, 435_103_000), []string{"FA;", "AI0;AI;"}},
		{"yaesu-ft991a", "yaesu_ft991a", "I 435103000", tune(Uplink, 435_103_000), []string{"FT;", "IF;", "FB;", "AI0;AI;"}},
		{"yaesu-ft991a", "yaesu_ft991a", "M USB 0", mode(USB), []string{"NA0", "SH0", "AI0;AI;"}},
		{"yaesu-ft991a", "yaesu_ft991a", "M PKTFM 0", mode(FMD), []string{"NA0", "AI0;AI;"}},
		{"yaesu-ft991a", "yaesu_ft991a", "M PKTUSB 0", mode(USBD), []string{"NA0", "SH0", "AI0;AI;"}},
	}
	for _, tt := range tests {
		bubble(t, tt.model+"/"+tt.cmd, func(t *testing.T) {
			r, _, w := plugModel(t, tt.model)
			if err := tt.do(r); err != nil {
				t.Fatal(err)
			}
			// The read-back of a mode, the satellite switch and, on the FT-991, the name
			// and whether it transmits are our questions.
			got := without(text(w.takeSent()), "SA;", "MD;", "TX;", "ID;")
			want := without(text(hamlibWrote(t, tt.file, tt.cmd, 1)), tt.hamlibs...)
			if !slices.Equal(got, want) {
				t.Errorf("ours:   %q\nHamlib: %q", got, want)
			}
		})
	}
}

func TestSimulatedSemicolonRadiosAnswerLikeTheCaptured(t *testing.T) {
	tests := []struct {
		file, model string
		skip        func(c capture, written string) bool
		least       int
	}{
		{"kenwood_ts2000", "ts-2000", func(capture, string) bool { return false }, 150},
		// No answer to RX, which replay would wait for; a command that set VFO B is
		// not among the captures.
		{"kenwood_ts790", "ts-790", func(c capture, q string) bool { return q == "RX;" || c.Cmd == "l STRENGTH" }, 50},
		// The captured device lets VFO A be tuned while it transmits, and
		// always says 0 to EX032 and FM of VFO B.
		{"yaesu_ft991a", "ft-991a", func(c capture, q string) bool {
			return strings.HasPrefix(q, "TX1") || c.Cmd == "t" || strings.HasPrefix(q, "EX032") ||
				q == "OI;" && (c.Cmd == "x" || c.Cmd == "k")
		}, 60},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			dev, err := sim.NewRadio(tt.model, clock.System())
			if err != nil {
				t.Fatal(err)
			}
			w := plug(t, dev)
			n := 0
			for _, c := range captures(t, tt.file) {
				if tt.model == "ft-991a" && c.Cmd == "F 1296000000" { // the command before this is not among the captures
					w.toDevice <- []byte("FA437550000;")
				}
				for _, e := range c.Exchanges {
					if tt.skip(c, unhex(t, e[0])) {
						continue
					}
					replay(t, w, c.Cmd, e)
					n++
				}
			}
			if n < tt.least {
				t.Errorf("only %d exchanges replayed", n)
			}
		})
	}
}

func TestSemicolonRadiosSurviveFaults(t *testing.T) {
	for _, model := range []string{"kenwood-ts2000", "kenwood-ts790", "yaesu-ft991a"} {
		for fault, want := range map[sim.RadioFault]string{
			sim.RadioHealthy:   "",
			sim.RadioCollision: "", // E; now and then
			sim.RadioMute:      "no answer",
			sim.RadioSlow:      "no answer",
			sim.RadioNAK:       "refused",
			sim.RadioFloat32:   "reads 437.100992 MHz",
		} {
			bubble(t, model+"/"+string(fault), func(t *testing.T) {
				r, dev, _ := plugModel(t, model)
				if _, err := r.Tune(within(t), Downlink, 145_900_000); err != nil {
					t.Fatal(err)
				}
				dev.SetFault(fault)
				const hz = 437_101_001
				start := time.Now()
				got, err := r.Tune(within(t), Downlink, hz)
				if want == "" && (err != nil || got != hz) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("Tune = %d, %v; want %q", got, err, want)
				}
				if took := time.Since(start); took > 3*time.Second {
					t.Errorf("Tune took %v", took)
				}
				dev.SetFault(sim.RadioHealthy)
				time.Sleep(4 * sim.RadioSlowness)
				if got, err := r.Tune(within(t), Downlink, hz+1000); err != nil || got != hz+1000 {
					t.Errorf("after the fault: Tune = %d, %v", got, err)
				}
			})
		}
	}
}

func TestSemicolonRadiosHalt(t *testing.T) {
	for _, model := range []string{"kenwood-ts2000", "kenwood-ts790", "yaesu-ft991a"} {
		bubble(t, model, func(t *testing.T) {
			r, dev, w := plugModel(t, model)
			key := map[bool]string{true: "TX1;", false: "TX;"}[model == "yaesu-ft991a"]
			w.toDevice <- []byte(key)
			for !dev.Truth().Transmitting {
				time.Sleep(time.Millisecond)
			}
			if err := r.Prepare(within(t), Tuning{145_800_000, FM}, Tuning{}); !errors.Is(err, ErrTransmitting) {
				t.Errorf("Prepare = %v, want %v", err, ErrTransmitting)
			}
			if err := r.Halt(within(t)); err != nil || dev.Truth().Transmitting {
				t.Errorf("Halt = %v, transmitting %v", err, dev.Truth().Transmitting)
			}
			dev.SetFault(sim.RadioMicPTT)
			if err := r.Halt(within(t)); err == nil || !strings.Contains(err.Error(), "still transmits") {
				t.Errorf("Halt of a keyed microphone = %v", err)
			}
			if n := dev.Truth().KeyRequests; n != 1 {
				t.Errorf("%d requests keyed the radio, want only the test's own", n)
			}
		})
	}
}

func TestFT991AsksForTheNameBeforeAnythingThatKeysAKenwood(t *testing.T) {
	bubble(t, "on a TS-2000", func(t *testing.T) {
		dev, err := sim.NewRadio("ts-2000", clock.System())
		if err != nil {
			t.Fatal(err)
		}
		w := plug(t, dev)
		r := mustLookup(t, "yaesu-ft991a").New(w)
		_, statusErr := r.Status(within(t))
		_, tuneErr := r.Tune(within(t), Downlink, 145_800_000)
		for _, err := range []error{statusErr, tuneErr, r.Halt(within(t)), r.Prepare(within(t), Tuning{145_800_000, FM}, Tuning{}), r.SetMode(within(t), Uplink, FM)} {
			if err == nil || !strings.Contains(err.Error(), `calls itself "019"`) {
				t.Errorf("got %v, want an error that names the radio", err)
			}
		}
		if tr := dev.Truth(); tr.KeyRequests != 0 {
			t.Errorf("the TS-2000 was keyed %d times", tr.KeyRequests)
		}
	})
	bubble(t, "another radio plugged in", func(t *testing.T) {
		r, dev, w := plugModel(t, "yaesu-ft991a")
		if _, err := r.Status(within(t)); err != nil {
			t.Fatal(err)
		}
		dev.SetFault(sim.RadioMute)
		if _, err := r.Status(within(t)); err == nil {
			t.Fatal("Status of a mute radio = nil")
		}
		w.takeSent()
		_, _ = r.Status(within(t))
		if sent := text(w.takeSent()); sent[0] != "ID;" {
			t.Errorf("after silence the driver sends %q first", sent[0])
		}
	})
}

func TestFT991PreparesSplitWithoutMovingTheReceiver(t *testing.T) {
	bubble(t, "split", func(t *testing.T) {
		r, dev, _ := plugModel(t, "yaesu-ft991a")
		down, up := Tuning{437_800_000, FM}, Tuning{145_990_000, FMN}
		if err := r.Prepare(within(t), down, up); err != nil {
			t.Fatal(err)
		}
		tr := dev.Truth()
		if tr.Main != side(down) || tr.Sub != side(up) || !tr.Split || tr.TransmitHz != up.FrequencyHz {
			t.Errorf("the radio is at %+v", tr)
		}
		st, err := r.Status(within(t))
		if want := (Status{Downlink: down, Uplink: up}); err != nil || st != want {
			t.Errorf("Status = %+v, %v; want %+v", st, err, want)
		}
		if err := r.SetMode(within(t), Uplink, USB); err != nil {
			t.Fatal(err)
		}
		if tr := dev.Truth(); tr.Main != side(down) || tr.Sub != (sim.RadioSide{FrequencyHz: up.FrequencyHz, Mode: "USB"}) {
			t.Errorf("the radio is at %+v", tr)
		}
	})
}

func TestTS790ServesOnePath(t *testing.T) {
	bubble(t, "one path", func(t *testing.T) {
		r, _, w := plugModel(t, "kenwood-ts790")
		if err := r.Prepare(within(t), Tuning{145_800_000, FM}, Tuning{435_100_000, FM}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Prepare of both paths = %v", err)
		}
		if err := r.Prepare(within(t), Tuning{}, Tuning{435_100_000, FM}); err != nil {
			t.Fatal(err)
		}
		w.takeSent()
		if _, err := r.Tune(within(t), Downlink, 145_800_000); !errors.Is(err, ErrUnsupported) || len(w.takeSent()) != 0 {
			t.Errorf("Tune of the other path = %v", err)
		}
		st, err := r.Status(within(t))
		if want := (Status{Uplink: Tuning{435_100_000, FM}}); err != nil || st != want {
			t.Errorf("Status = %+v, %v; want %+v", st, err, want)
		}
	})
}

func TestKenwoodSeesAnnouncements(t *testing.T) {
	bubble(t, "auto information", func(t *testing.T) {
		r, dev, _ := plugModel(t, "kenwood-ts2000")
		dev.(interface{ SetAuto(bool) }).SetAuto(true)
		dev.Dial(145_812_000)
		time.Sleep(time.Millisecond)
		st, err := r.Status(within(t))
		if err != nil || st.Downlink.FrequencyHz != 145_812_000 {
			t.Fatalf("Status = %+v, %v", st, err)
		}
		if got, want := r.(Watcher).Moves(), []Move{{FrequencyHz: 145_812_000}}; !slices.Equal(got, want) {
			t.Errorf("Moves = %v, want %v", got, want)
		}
		dev.SetFault(sim.RadioForeign) // an announcement before every answer
		if hz, err := r.Tune(within(t), Downlink, 145_900_000); hz != 145_900_000 || err != nil {
			t.Errorf("Tune = %d, %v", hz, err)
		}
	})
}
