package sim

import (
	"strings"
	"testing"

	"gsd-mcp/internal/clock"
)

func TestRadioNamesAndFaults(t *testing.T) {
	for _, name := range RadioModels() {
		for _, written := range []string{name, strings.ToUpper(name), strings.ReplaceAll(name, "-", "")} {
			if _, err := NewRadio(written, clock.System()); err != nil {
				t.Errorf("NewRadio(%q) = %v", written, err)
			}
		}
	}
	if _, err := NewRadio("ic-9000\x1b[2J", clock.System()); err == nil || !strings.Contains(err.Error(), "choose one of ic-9700") || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("NewRadio of an unknown model = %v", err)
	}
	for _, f := range RadioFaults() {
		if got, err := ParseRadioFault(string(f)); got != f || err != nil {
			t.Errorf("ParseRadioFault(%q) = %q, %v", f, got, err)
		}
	}
	if _, err := ParseRadioFault("sulking"); err == nil || !strings.Contains(err.Error(), "choose one of mute") {
		t.Errorf("ParseRadioFault(sulking) = %v", err)
	}
}

// hearers are all models, with their ears out.
func hearers(t testing.TB) map[string]func([]byte) [][]byte {
	t.Helper()
	out := map[string]func([]byte) [][]byte{}
	for _, name := range RadioModels() {
		r, err := NewRadio(name, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		switch r := r.(type) {
		case *Icom:
			out[name] = r.hear
		case *asciiRadio:
			out[name] = r.hear
		case *fiveByteRadio:
			out[name] = r.hear
		default:
			t.Fatalf("%s is a %T", name, r)
		}
	}
	return out
}

func FuzzRadiosHear(f *testing.F) {
	for _, s := range []string{
		"\xfe\xfe\xa2\xe0\x03\xfd", "\xfe\xfe\xa2\xe0\x25\x00\x00\x00\x80\x45\x01\xfd", "\xfe\xfe\xa2\xe0\x26\x00\x05\x00\x01\xfd", "\xfe\xfe\xa2\xe0\x07\xd2\x01\xfd",
		"FA00145800000;ID;", "SA1010000;", "MD04;OI;AB;", "FA;FB;FC;F;;?;", "\x14\x58\x00\x00\x01\x00\x00\x00\x00\x03", "\xff\xff\xff\xff\x01\x00\x54\x00\x00\xbb",
	} {
		f.Add([]byte(s))
	}
	models := hearers(f)
	names := RadioModels()
	f.Fuzz(func(t *testing.T, in []byte) {
		for _, name := range names {
			total := 0
			for _, answer := range models[name](in) {
				total += len(answer)
			}
			if total > 64*(len(in)+64) {
				t.Fatalf("%s answers %d bytes to %d", name, total, len(in))
			}
		}
	})
}

// A radio must not be tuned by what it refuses.
func TestRefusedRadioRequestsChangeNothing(t *testing.T) {
	requests := map[string][]string{
		"ic-9700": {"\xfe\xfe\xa2\xe0\x05\x00\x00\x10\x35\x04\xfd", "\xfe\xfe\xa2\xe0\x05\x00\x00\x10\x00\x24\xfd", "\xfe\xfe\xa2\xe0\x05\x51\x51\x65\x50\x93\xfd",
			"\xfe\xfe\xa2\xe0\x06\x33\x01\xfd", "\xfe\xfe\x94\xe0\x05\x00\x00\x90\x45\x01\xfd"},
		"ts-2000": {"FA02400100000;", "FA-0000000001;", "FA1;", "MD8;", "SA2000000;"},
		"ft-991a": {"FA1296000000;", "FA-00000001;", "MD0Z;"},
		"ft-847":  {"\x14\x58\x00\x00\x01"}, // CAT is off
		"ft-817":  {"\x29\x60\x00\x00\x01", "\xaa\x00\x00\x00\x01"},
	}
	for name, list := range requests {
		r, err := NewRadio(name, clock.System())
		if err != nil {
			t.Fatal(err)
		}
		before := r.Truth()
		for _, q := range list {
			hearOne(t, r, q)
			after := r.Truth()
			before.Time, before.Requests = after.Time, after.Requests
			if after != before {
				t.Errorf("%s: %q moved the radio from %+v to %+v", name, q, before, after)
			}
		}
	}
}

func hearOne(t *testing.T, r Radio, q string) {
	t.Helper()
	switch r := r.(type) {
	case *Icom:
		r.hear([]byte(q))
	case *asciiRadio:
		r.hear([]byte(q))
	case *fiveByteRadio:
		r.hear([]byte(q))
	}
}
