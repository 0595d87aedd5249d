package radio

import (
	"bufio"
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
)

// A scripted rigctld answers each request with the next of its answers.
type scripted struct{ answers map[string]string }

func (s scripted) Run(ctx context.Context, wire io.ReadWriter) error {
	lines := bufio.NewScanner(wire)
	for lines.Scan() {
		if _, err := io.WriteString(wire, s.answers[lines.Text()]); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func TestRigctldBelievesOnlyWhatItReadsBack(t *testing.T) {
	good := map[string]string{
		`+\chk_vfo`:    "ChkVFO: 0\n",
		"+t":           "get_ptt:\nPTT: 0\nRPRT 0\n",
		"+f":           "get_freq:\nFrequency: 145800000\nRPRT 0\n",
		"+m":           "get_mode:\nMode: FM\nPassband: 15000\nRPRT 0\n",
		"+F 145800000": "set_freq: 145800000\nRPRT 0\n",
		"+M FM 0":      "set_mode: FM 0\nRPRT 0\n",
	}
	tests := []struct {
		name   string
		change map[string]string
		want   string // "" works
	}{
		{"an honest server", nil, ""},
		{"a late answer in front", map[string]string{"+f": "Frequency: 437550000\nRPRT 0\nget_freq:\nFrequency: 145800000.000000\nRPRT 0\n"}, ""},
		{"no PTT behind it", map[string]string{"+t": "get_ptt:\nRPRT -11\n"}, ""},
		{"RPRT 0 and nothing done", map[string]string{"+f": "get_freq:\nFrequency: 400100000\nRPRT 0\n"}, "reads 400.100000 MHz"},
		{"mode ignored", map[string]string{"+m": "get_mode:\nMode: USB\nPassband: 2400\nRPRT 0\n"}, `reads "USB"`},
		{"refused by the radio", map[string]string{"+F 145800000": "set_freq: 145800000\nRPRT -9\n"}, "its radio refused"},
		{"radio behind it is silent", map[string]string{"+F 145800000": "set_freq: 145800000\nRPRT -5\n"}, "its radio does not answer"},
		{"wants VFO names", map[string]string{`+\chk_vfo`: "ChkVFO: 1\n"}, "start it without"},
		{"says nothing", map[string]string{`+\chk_vfo`: ""}, "is it a rigctld"},
		{"keyed", map[string]string{"+t": "get_ptt:\nPTT: 1\nRPRT 0\n"}, "the radio transmits"},
		{"a web server", map[string]string{`+\chk_vfo`: "HTTP/1.1 400 Bad Request\r\n\r\n"}, "is it a rigctld"},
		{"numbers that are none", map[string]string{"+f": "get_freq:\nFrequency: 1e99\nRPRT 0\n"}, "is no number"},
		{"a verdict that is none", map[string]string{"+f": "get_freq:\nFrequency: 145800000\nRPRT x\x1b[2J\n"}, "is not a verdict"},
	}
	for _, tt := range tests {
		bubble(t, tt.name, func(t *testing.T) {
			answers := maps.Clone(good)
			maps.Copy(answers, tt.change)
			w := plug(t, scripted{answers})
			err := mustLookup(t, "rigctld").New(w).Prepare(within(t), Tuning{145_800_000, FM}, Tuning{})
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Prepare = %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("control characters in %q", err)
			}
			if tt.want == "its radio refused" && !errors.Is(err, ErrRefused) {
				t.Errorf("%v is not a refusal", err)
			}
		})
	}
}

func TestRigctldRequestsAreThoseOfTheCaptures(t *testing.T) {
	captured := map[string]bool{}
	for _, c := range capturesVia(t, "net_rigctl", "rigctld -m 1 -P RIG") {
		captured[strings.TrimSuffix(c.Cmd, "\n")] = true
	}
	for _, line := range []string{"+f", "+m", "+t", "+F 145800000", "+T 0", `+\chk_vfo`} {
		if !allowsRigctld(line) || !captured[line] {
			t.Errorf("%q: allowed %v, captured %v", line, allowsRigctld(line), captured[line])
		}
	}
	for _, line := range []string{"+T 1", "T 1", "+T 2", "+T 3", `+\set_ptt 1`, "+b CQ", `+\send_morse CQ`, `+\halt`, "+F 1\n+T 1", "+F 145800000;T 1", "+M FM 0\nT 1", "+M T 1 0", "+w \\x00", "+G TUNE", "", "+"} {
		if allowsRigctld(line) {
			t.Errorf("%q may be sent", line)
		}
	}
}

func FuzzRigctldAnswer(f *testing.F) {
	f.Add("ChkVFO: 0\nget_ptt:\nPTT: 0\nRPRT 0\nget_freq:\nFrequency: 145800000\nRPRT 0\nget_mode:\nMode: FM\nRPRT 0\n")
	f.Add("\x00\n:\nRPRT\nRPRT 99999999999999999999\n")
	f.Fuzz(func(t *testing.T, in string) {
		w := newTestWire()
		w.toDriver <- []byte(in)
		r := mustLookup(t, "rigctld").New(impatient{w})
		st, err := r.Status(bg())
		if err == nil && st.Downlink.FrequencyHz < 0 {
			t.Fatalf("%q reads %+v", in, st)
		}
	})
}

// An impatient wire gives nothing that is not there yet.
type impatient struct{ *testWire }

func (w impatient) Read(ctx context.Context, p []byte) (int, error) {
	return hurried{testWire: w.testWire}.Read(ctx, p)
}
