package radio

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/sim"
)

func TestFiveHzKeepsEveryDigit(t *testing.T) {
	tests := []struct {
		hz   int64
		want string // "": an error
	}{
		{435_103_000, "4351030001"},
		{145_800_120, "1458001201"},
		{145_800_129, "1458001201"}, // 10 Hz is all there is
		{999_999_990, "9999999901"},
		{1_000_000_000, ""},
		{1_296_000_000, ""},
		{2_400_100_000, ""},
		{-1, ""},
	}
	for _, tt := range tests {
		f, err := fiveHz(0x01, tt.hz)
		if got := hex.EncodeToString(f[:]); err == nil && got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("fiveHz(%d) = %s, %v; want %q", tt.hz, got, err, tt.want)
		}
	}
}

func FuzzParseFive(f *testing.F) {
	f.Add([]byte{0x14, 0x58, 0x00, 0x00, 0x08})
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, in []byte) {
		got, err := parseFive(in)
		if err != nil {
			return
		}
		again, err := fiveHz(in[4], got.FrequencyHz)
		if err != nil || !bytes.Equal(again[:], in) {
			t.Fatalf("% x reads %+v, which is % x, %v", in, got, again, err)
		}
	})
}

func TestFiveByteRadiosWriteWhatHamlibWrites(t *testing.T) {
	pass := func(down, up int64) func(Radio) error {
		return func(r Radio) error {
			return r.Prepare(bg(), Tuning{FrequencyHz: down}, Tuning{FrequencyHz: up})
		}
	}
	tests := []struct {
		model, file, cmd string
		setup, do        func(Radio) error
		want             string // "": Hamlib's bytes, without switching CAT off
	}{
		{"yaesu-ft847", "yaesu_ft847", "F 435103000", nil, tune(Downlink, 435_103_000), ""},
		{"yaesu-ft847", "yaesu_ft847", "F 437550000", nil, tune(Downlink, 437_550_000), ""},
		{"yaesu-ft847", "yaesu_ft847", "F 145800123", nil, tune(Downlink, 145_800_123), ""},
		{"yaesu-ft847", "yaesu_ft847", "M USB 0", nil, mode(USB), "0100000007 0000000003"},
		{"yaesu-ft847", "yaesu_ft847", "M FM 0", nil, mode(FM), "0800000007 0000000003"},
		{"yaesu-ft847", "yaesu_ft847", "I 435103000", pass(145_800_000, 435_000_000), tune(Uplink, 435_103_000), "4351030021 0000000023"},
		{"yaesu-ft736r", "yaesu_ft736r", "F 145800000", nil, tune(Downlink, 145_800_000), ""},
		{"yaesu-ft736r", "yaesu_ft736r", "F 435103000", nil, tune(Downlink, 435_103_000), ""},
		{"yaesu-ft736r", "yaesu_ft736r", "F 1296000000", nil, tune(Downlink, 1_296_000_000), ""},
		{"yaesu-ft736r", "yaesu_ft736r", "M FM 0", nil, mode(FM), ""},
		{"yaesu-ft736r", "yaesu_ft736r", "M USB 0", nil, mode(USB), ""},
		{"yaesu-ft736r", "yaesu_ft736r", "I 435103000", nil, pass(0, 435_103_000), ""},
		{"yaesu-ft817", "yaesu_ft817", "F 145800000", nil, tune(Downlink, 145_800_000), ""},
		{"yaesu-ft817", "yaesu_ft817", "F 145800123", nil, tune(Downlink, 145_800_123), ""},
		{"yaesu-ft817", "yaesu_ft817", "M PKTFM 0", nil, mode(FMD), "0c00000007 0000000003"},
		{"yaesu-ft817", "yaesu_ft817", "M PKTUSB 0", nil, mode(USBD), "0a00000007 0000000003"},
		{"yaesu-ft818", "yaesu_ft818", "F 145800000", nil, tune(Downlink, 145_800_000), ""},
		{"yaesu-ft857", "yaesu_ft857", "F 435103000", nil, tune(Downlink, 435_103_000), ""},
		{"yaesu-ft897", "yaesu_ft897", "F 435103000", nil, tune(Downlink, 435_103_000), ""},
		{"yaesu-ft897", "yaesu_ft897", "M CW 0", nil, mode(CW), "0200000007 0000000003"},
	}
	for _, tt := range tests {
		bubble(t, tt.model+"/"+tt.cmd, func(t *testing.T) {
			r, _, w := plugModel(t, tt.model)
			if tt.setup != nil {
				if err := tt.setup(r); err != nil {
					t.Fatal(err)
				}
			}
			w.takeSent()
			if err := tt.do(r); err != nil {
				t.Fatal(err)
			}
			// Whether it transmits is our question, and CAT on is once a session.
			got := without(frames(w.takeSent()), "00000000f7", "0000000000")
			want := strings.Fields(tt.want)
			if tt.want == "" {
				// Hamlib asks the FT-817 twice, and the FT-857 for tones' state.
				want = slices.Compact(without(frames(hamlibWrote(t, tt.file, tt.cmd, 1)), "0000000080", "8080808080", "0000000000", "00780000bb"))
			}
			if !slices.Equal(got, want) {
				t.Errorf("ours:   %v\nHamlib: %v", got, want)
			}
		})
	}
}

// frames cuts a stream into frames of five bytes, in hex.
func frames(sent [][]byte) (out []string) {
	for all := range slices.Chunk(bytes.Join(sent, nil), 5) {
		out = append(out, hex.EncodeToString(all))
	}
	return out
}

func TestSimulatedFiveByteRadiosAnswerLikeTheCaptured(t *testing.T) {
	tests := []struct {
		file, model string
		least       int
	}{
		{"yaesu_ft847", "ft-847", 20},
		{"yaesu_ft817", "ft-817", 80},
		{"yaesu_ft818", "ft-818", 80},
		{"yaesu_ft857", "ft-857", 60},
		{"yaesu_ft897", "ft-897", 50},
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
				switch c.Cmd {
				case "F 1296000000", "F 2400100000", "F -1": // they take any frequency whose digits fit,
					continue
				case "T 1", "T 0", "t": // tune while they transmit, and never say F0
					continue
				case "I 145990000", "F 435250000": // the capture that set this mode is missing
					if tt.model == "ft-857" {
						continue
					}
				}
				if tt.model == "ft-847" { // the opening that was cut out of each capture
					w.toDevice <- []byte{0, 0, 0, 0, 0}
				}
				for _, e := range c.Exchanges {
					if c.Cmd == "F 435105000" && e[0] == "00000000f7" { // keyed, see above
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

func TestFT847PreparesACrossBandPass(t *testing.T) {
	for _, model := range []string{"yaesu-ft847", "yaesu-ft736r"} {
		bubble(t, model, func(t *testing.T) {
			r, dev, _ := plugModel(t, model)
			down, up := Tuning{435_640_000, USB}, Tuning{145_950_000, LSB}
			if err := r.Prepare(within(t), down, up); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Tune(within(t), Uplink, 145_951_230); err != nil {
				t.Fatal(err)
			}
			up.FrequencyHz = 145_951_230
			time.Sleep(time.Second) // the last bytes of an unacknowledged setting
			tr := dev.Truth()
			if tr.Main != side(down) || tr.Sub != side(up) || !tr.Satellite || tr.TransmitHz != up.FrequencyHz {
				t.Errorf("the radio is at %+v", tr)
			}
			st, err := r.Status(within(t))
			if want := (Status{Downlink: down, Uplink: up, Satellite: true}); err != nil || st != want {
				t.Errorf("Status = %+v, %v; want %+v", st, err, want)
			}
			if _, err := r.Tune(within(t), Downlink, 1_296_000_000); model == "yaesu-ft847" && err == nil {
				t.Error("1296 MHz was taken by an FT-847")
			}
			if err := r.SetMode(within(t), Downlink, CW); err != nil {
				t.Errorf("SetMode = %v", err)
			}
		})
	}
}

func TestFiveByteRadiosSurviveFaults(t *testing.T) {
	for _, model := range []string{"yaesu-ft847", "yaesu-ft817", "yaesu-ft857"} {
		for fault, want := range map[sim.RadioFault]string{
			sim.RadioHealthy: "",
			sim.RadioAckLost: "",
			sim.RadioMute:    "no answer",
			sim.RadioSlow:    "no answer",
			sim.RadioNAK:     "reads", // does nothing and says nothing of it
			sim.RadioFloat32: "reads 437.100990 MHz",
			sim.RadioDial:    "", // three settings are left in peace
		} {
			bubble(t, model+"/"+string(fault), func(t *testing.T) {
				r, dev, _ := plugModel(t, model)
				if _, err := r.Tune(within(t), Downlink, 145_900_000); err != nil {
					t.Fatal(err)
				}
				dev.SetFault(fault)
				const hz = 437_101_000
				got, err := r.Tune(within(t), Downlink, hz)
				if want == "" && (err != nil || got != hz) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
					t.Errorf("Tune = %d, %v; want %q", got, err, want)
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

func TestFiveByteRadiosHalt(t *testing.T) {
	for _, model := range []string{"yaesu-ft847", "yaesu-ft736r", "yaesu-ft817", "yaesu-ft897"} {
		bubble(t, model, func(t *testing.T) {
			r, dev, w := plugModel(t, model)
			w.toDevice <- []byte{0, 0, 0, 0, 0}
			w.toDevice <- []byte{0, 0, 0, 0, 8}
			for !dev.Truth().Transmitting {
				time.Sleep(time.Millisecond)
			}
			w.Discard()
			if err := r.Prepare(within(t), Tuning{145_800_000, FM}, Tuning{}); model != "yaesu-ft736r" && !errors.Is(err, ErrTransmitting) {
				t.Errorf("Prepare = %v, want %v", err, ErrTransmitting)
			}
			// Halt must work when an earlier exchange was cut off in a frame.
			w.toDevice <- []byte{0x43, 0x75}
			if err := r.Halt(within(t)); err != nil || dev.Truth().Transmitting {
				t.Errorf("Halt = %v, transmitting %v", err, dev.Truth().Transmitting)
			}
			if n := dev.Truth().KeyRequests; n != 1 {
				t.Errorf("%d requests keyed the radio, want only the test's own", n)
			}
		})
	}
}

// TestLostBytesKeyNothing loses bytes on the wire at every phase while
// frequencies and modes full of the byte 08 are set.
func TestLostBytesKeyNothing(t *testing.T) {
	for _, model := range []string{"yaesu-ft847", "yaesu-ft736r", "yaesu-ft817", "yaesu-ft857"} {
		bubble(t, model, func(t *testing.T) {
			for phase := range 11 {
				r, dev, w := plugModel(t, model)
				w.toDevice <- make([]byte, phase) // shifts which bytes are lost
				time.Sleep(time.Second)
				dev.SetFault(sim.RadioLostByte)
				for i := range int64(40) {
					ctx, cancel := context.WithTimeout(bg(), 3*time.Second)
					_, _ = r.Tune(ctx, Downlink, 430_808_080+i%4*8_080)
					_ = r.SetMode(ctx, Downlink, FM)
					_, _ = r.Tune(ctx, Downlink, 145_080_800)
					_ = r.SetMode(ctx, Downlink, USB)
					if i%8 == 0 {
						_ = r.Prepare(ctx, Tuning{145_808_080, FM}, Tuning{})
						_, _ = r.Status(ctx)
					}
					cancel()
				}
				if tr := dev.Truth(); tr.KeyRequests != 0 {
					t.Fatalf("phase %d: lost bytes keyed the radio %d times in %d requests", phase, tr.KeyRequests, tr.Requests)
				}
			}
		})
	}
}

func TestFT817ServesOnePath(t *testing.T) {
	bubble(t, "one path", func(t *testing.T) {
		r, dev, _ := plugModel(t, "yaesu-ft818")
		if err := r.Prepare(within(t), Tuning{145_800_000, FM}, Tuning{435_100_000, FM}); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Prepare of both paths = %v", err)
		}
		up := Tuning{435_100_000, FMN}
		if err := r.Prepare(within(t), Tuning{}, up); err != nil {
			t.Fatal(err)
		}
		st, err := r.Status(within(t))
		if want := (Status{Uplink: up}); err != nil || st != want || dev.Truth().Main != side(up) {
			t.Errorf("Status = %+v, %v; want %+v; the radio is at %+v", st, err, want, dev.Truth())
		}
		if _, err := r.Tune(within(t), Downlink, 145_800_000); !errors.Is(err, ErrUnsupported) {
			t.Errorf("Tune of the other path = %v", err)
		}
	})
}
