package radio

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// keysIcom is an independent statement of what makes an Icom put out power or
// change its supply: PTT on, CW text, voice memory, tuner start, power switch,
// and everything else about the transmitter but three harmless frames.
func keysIcom(body []byte) bool {
	if len(body) == 0 {
		return false
	}
	switch body[0] {
	case 0x17, 0x18, 0x28:
		return true
	case 0x1C:
		return !bytes.Equal(body, []byte{0x1C, 0x00}) && // state?
			!bytes.Equal(body, []byte{0x1C, 0x03}) && // transmit frequency?
			!bytes.Equal(body, []byte{0x1C, 0x00, 0x00}) // receive
	}
	return false
}

func icomSpecs() map[string]icomSpec {
	specs := map[string]icomSpec{}
	for _, m := range Models() {
		if r, ok := m.New(newTestWire()).(*icom); ok {
			specs[m.Name] = r.icomSpec
		}
	}
	return specs
}

func TestNoIcomRequestOnTheListKeys(t *testing.T) {
	for name, s := range icomSpecs() {
		body := make([]byte, 3)
		for i := range 1 << 24 {
			body[0], body[1], body[2] = byte(i>>16), byte(i>>8), byte(i)
			for n := 1; n <= 3; n++ {
				if keysIcom(body[:n]) && s.allows(body[:n]) {
					t.Fatalf("%s: % x is on the list", name, body[:n])
				}
			}
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for range 1_000_000 {
			long := make([]byte, 1+rng.IntN(9))
			for i := range long {
				long[i] = byte(rng.IntN(256))
			}
			long[0] = []byte{0x17, 0x18, 0x1C, 0x28}[rng.IntN(4)]
			if keysIcom(long) && s.allows(long) {
				t.Fatalf("%s: % x is on the list", name, long)
			}
		}
	}
}

func TestCIVRefusesWhatIsNotOnTheList(t *testing.T) {
	for _, body := range [][]byte{{0x1C, 0x00, 0x01}, {0x17, 'C', 'Q'}, {0x28, 0x00, 0x01}, {0x1C, 0x01, 0x02}, {0x18, 0x00}, {0x18, 0x01}, {}, {0x05, 0xFE, 0xFE, 0, 0, 0}, {0x00, 0, 0, 0, 0, 0}} {
		w := newTestWire()
		r := mustLookup(t, "icom-ic9700").New(w).(*icom)
		_, readErr := r.wire.read(bg(), body...)
		if setErr := r.wire.set(bg(), body...); setErr == nil || readErr == nil {
			t.Errorf("% x: read %v, set %v; want errors", body, readErr, setErr)
		}
		if sent := w.takeSent(); len(sent) != 0 {
			t.Errorf("% x reached the wire as % x", body, sent)
		}
	}
}

func TestNoSemicolonCommandOnTheListsKeys(t *testing.T) {
	ts2000 := mustLookup(t, "ts-2000").New(newTestWire()).(*kenwood).kenwoodSpec
	ts790 := mustLookup(t, "ts-790").New(newTestWire()).(*kenwood).kenwoodSpec
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789;"
	for _, a := range letters {
		for _, b := range letters {
			for _, rest := range []string{"", "0", "1", "2", "3", "00", "01", "002", ";", " ", "00145800000", "1010000", "145800000"} {
				c := string(a) + string(b) + rest
				kenwoodKeys := !slices.Contains([]string{"FA", "FB", "IF", "MD", "SA", "ID", "RX"}, c[:2]) || strings.ContainsAny(c, "; ")
				if kenwoodKeys && (ts2000.allows(c) || ts790.allows(c)) {
					t.Errorf("Kenwood: %q is on the list", c)
				}
				yaesuKeys := c[:2] == "TX" && c != "TX" && c != "TX0" || strings.ContainsAny(c, "; ") ||
					!slices.Contains([]string{"FA", "FB", "MD", "FT", "OI", "AB", "ID", "TX"}, c[:2])
				if yaesuKeys && allowsFT991(c) {
					t.Errorf("FT-991: %q is on the list", c)
				}
			}
		}
	}
}

func TestNoFiveByteFrameOnTheListsKeys(t *testing.T) {
	lists := map[string]func(fiveFrame) bool{
		"ft-817":  allowsFT817,
		"ft-847":  mustLookup(t, "ft-847").New(newTestWire()).(*ft847).allows,
		"ft-736r": mustLookup(t, "ft-736r").New(newTestWire()).(*ft847).allows,
	}
	harmless := map[string][]byte{
		"ft-817":  {0x01, 0x03, 0x07, 0x88, 0xF7},
		"ft-847":  {0x00, 0x01, 0x03, 0x07, 0x11, 0x13, 0x17, 0x21, 0x23, 0x27, 0x4E, 0x88, 0xF7},
		"ft-736r": {0x00, 0x01, 0x07, 0x0E, 0x17, 0x1E, 0x27, 0x2E, 0x88},
	}
	rng := rand.New(rand.NewPCG(5, 8))
	for name, allows := range lists {
		for op := range 256 {
			for i := range 2000 {
				f := fiveFrame{4: byte(op)}
				if i > 0 {
					for j := range 4 {
						f[j] = byte(rng.IntN(256))
					}
				}
				if allows(f) && !slices.Contains(harmless[name], f[4]) {
					t.Fatalf("%s: % x is on the list", name, f)
				}
			}
		}
	}
}

// TestHostileCallsNeverKey calls every method of every model with hostile
// arguments against a device that answers with hostile bytes, and reads what
// went down the wire.
func TestHostileCallsNeverKey(t *testing.T) {
	for _, m := range Models() {
		t.Run(m.Name, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				var w *testWire
				calls := rapid.IntRange(1, 4).Draw(rt, "calls")
				inBubble(t, func() {
					w = newTestWire()
					r := m.New(hurried{w, rt})
					for range calls {
						hostileCall(rt, r, m.Caps)
					}
				})
				sent := w.takeSent()
				if m.Name == "yaesu-ft736r" { // byte by byte
					sent = slices.Collect(slices.Chunk(bytes.Join(sent, nil), 5))
				}
				for _, p := range sent {
					if keys(m.Name, p) {
						rt.Fatalf("% x (%q) went down the wire", p, p)
					}
				}
			})
		})
	}
}

// inBubble runs f in fake time and brings its panics, with which rapid steers,
// back to the caller.
func inBubble(t *testing.T, f func()) {
	var p any
	synctest.Test(t, func(*testing.T) {
		defer func() { p = recover() }()
		f()
	})
	if p != nil {
		panic(p)
	}
}

// keys reports whether a write could put a radio of that family on the air.
func keys(name string, p []byte) bool {
	switch {
	case strings.HasPrefix(name, "icom-"):
		return len(p) < 6 || p[0] != 0xFE || p[1] != 0xFE || p[len(p)-1] != 0xFD ||
			slices.ContainsFunc(p[2:len(p)-1], isFraming) || keysIcom(p[4:len(p)-1])
	}
	switch {
	case strings.HasPrefix(name, "kenwood-"):
		return !asciiHarmless(p, "ID", "IF", "FA", "FB", "MD", "SA", "RX")
	case strings.HasPrefix(name, "yaesu-ft991"):
		return !asciiHarmless(p, "ID", "FA", "FB", "MD0", "FT", "OI", "AB", "TX;", "TX0;")
	case strings.HasPrefix(name, "yaesu-ft8"), strings.HasPrefix(name, "yaesu-ft736"):
		// Whole frames, or single bytes of the FT-736R that the caller has joined.
		return len(p) != 5 || p[4] == 0x08 || p[4] == 0x0F || p[4] == 0xBC
	case name == "hamlib-rigctld":
		line, ok := strings.CutSuffix(string(p), "\n")
		rest, set := strings.CutPrefix(line, "+F ")
		mode, setMode := strings.CutPrefix(line, "+M ")
		return !ok || !slices.Contains([]string{"+f", "+m", "+t", "+T 0", `+\chk_vfo`}, line) &&
			!(set && strings.Trim(rest, "0123456789") == "") &&
			!(setMode && strings.Trim(mode, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == " 0")
	}
	return true // a family without a rule here is a mistake
}

// asciiHarmless reports whether every command in a write begins with one of
// the names (one that ends with a semicolon is a whole command) and goes on
// with digits only.
func asciiHarmless(p []byte, names ...string) bool {
	for _, c := range strings.SplitAfter(string(p), ";") {
		if c == "" {
			continue
		}
		if !slices.ContainsFunc(names, func(n string) bool {
			rest, ok := strings.CutPrefix(c, n)
			return ok && (rest == "" || strings.Trim(rest, "0123456789ABCDEF") == ";")
		}) {
			return false
		}
	}
	return len(p) > 0 && p[len(p)-1] == ';'
}

func hostileCall(rt *rapid.T, r Radio, c Caps) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	hz := rapid.OneOf(
		rapid.Int64(),
		rapid.Int64Range(c.Receive[0].MinHz, c.Receive[len(c.Receive)-1].MaxHz),
		rapid.SampledFrom([]int64{0, -1, math.MaxInt64, math.MinInt64, 145_808_080, 80_808_080, 1_280_808_080}))
	modes := rapid.OneOf(
		rapid.Map(rapid.SampledFrom(c.Modes), func(m Mode) string { return string(m) }),
		rapid.String(),
		rapid.SampledFrom([]string{"TX", "TX;", "FM;TX;", "\x1c\x00\x01", "\xfe\xfe\xa2\xe0\x1c\x00\x01\xfd"}))
	path := rapid.OneOf(rapid.SampledFrom([]string{"downlink", "uplink"}), rapid.String())
	switch rapid.IntRange(0, 5).Draw(rt, "method") {
	case 0:
		_, _ = r.Status(ctx)
	case 1:
		_ = r.Prepare(ctx, Tuning{hz.Draw(rt, "down"), Mode(modes.Draw(rt, "mode"))}, Tuning{hz.Draw(rt, "up"), Mode(modes.Draw(rt, "mode"))})
	case 2:
		_, _ = r.Tune(ctx, Path(path.Draw(rt, "path")), hz.Draw(rt, "hz"))
	case 3:
		_ = r.SetMode(ctx, Path(path.Draw(rt, "path")), Mode(modes.Draw(rt, "mode")))
	case 4:
		_ = r.Halt(ctx)
	case 5:
		if w, ok := r.(Watcher); ok {
			w.Moves()
		}
	}
}

// hurried answers each write at once: with a plausible answer, a refusal, or
// bytes that mean nothing.
type hurried struct {
	*testWire
	rt *rapid.T
}

func (h hurried) Write(ctx context.Context, p []byte) error {
	if err := h.testWire.Write(ctx, p); err != nil {
		return err
	}
	<-h.toDevice
	var answer []byte
	switch rapid.IntRange(0, 5).Draw(h.rt, "answer") {
	case 0:
		answer = rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(h.rt, "noise")
	case 1:
		if len(p) > 5 && p[0] == 0xFE { // CI-V: the request's command and any data
			answer = append(append([]byte{0xFE, 0xFE, 0xE0, p[2]}, p[4:len(p)-1]...), rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(h.rt, "data")...)
			answer = append(answer, 0xFD)
		} else if p[0] == '+' {
			answer = rapid.SampledFrom([][]byte{[]byte("ChkVFO: 0\n"), []byte("get_ptt:\nPTT: 0\nRPRT 0\n"), []byte("get_ptt:\nPTT: 1\nRPRT 0\n"), []byte("set_freq: 1\nRPRT 0\n"),
				[]byte("get_freq:\nFrequency: 145800000\nRPRT 0\n"), []byte("set_mode: FM 0\nRPRT 0\n"), []byte("RPRT -1\n")}).Draw(h.rt, "rprt")
		} else if len(p) <= 5 && p[len(p)-1] != ';' { // five bytes
			answer = rapid.SampledFrom([][]byte{{0x00}, {0xF0}, {0xFF}, {0x80}, {0x0A}, {0x14, 0x58, 0x00, 0x00, 0x08}, {0x08, 0x08, 0x08, 0x08, 0x08}}).Draw(h.rt, "five")
		} else {
			commands := strings.Split(strings.TrimSuffix(string(p), ";"), ";")
			name := strings.TrimRight(commands[len(commands)-1], "123456789")
			answer = []byte(name + rapid.SampledFrom([]string{"019", "007", "0570", "0670", "00145800000", "145800000", "0", "1", "4", "1010000", "00145800000    +0000000000140000080",
				"001435103000+000000400000"}).Draw(h.rt, "text") + ";")
		}
	default:
		answer = rapid.SampledFrom([][]byte{
			{0xFE, 0xFE, 0xE0, p[min(2, len(p)-1)], 0xFB, 0xFD}, {0xFE, 0xFE, 0xE0, p[min(2, len(p)-1)], 0xFA, 0xFD}, {0xFC}, []byte("?;"), {0}, {0xF0},
		}).Draw(h.rt, "verdict")
	}
	if len(answer) > 0 {
		h.toDriver <- answer
	}
	return nil
}

// Read does not wait: what has not been answered will not be.
func (h hurried) Read(ctx context.Context, p []byte) (int, error) {
	if len(h.toDriver) == 0 && len(h.rest) == 0 {
		return 0, os.ErrDeadlineExceeded
	}
	return h.testWire.Read(ctx, p)
}
