package radio

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func FuzzNextFrame(f *testing.F) {
	for _, s := range []string{
		"\xfe\xfe\xe0\xa2\x03\x00\x00\x80\x45\x01\xfd", "\xfe\xe0\xa2\xfb\xfd", "\xfe\xfe\xfe\xfe\xe0\xa2\xfa\xfd",
		"\xfe\xfe\xe0\xa2\x03\x00\xfc", "\xfc", "\xe0\xa2\xfb\xfd\xfe\xfe\xe0\xa2\xfb\xfd", "\xfe\xfe\xe0\xa2\x03\xfe\xfe\xe0\xa2\xfb\xfd", "\xfe\xfe\xfd",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		b := in
		for range len(in) + 1 {
			frame, rest, jammed := nextFrame(b)
			if len(rest) > len(b) {
				t.Fatalf("% x: grew from %d to %d bytes", in, len(b), len(rest))
			}
			if frame != nil && (len(frame) < 3 || len(frame) > civLongest || slices.ContainsFunc(frame, isFraming)) {
				t.Fatalf("% x: frame % x", in, frame)
			}
			if frame == nil && !jammed {
				if len(rest) > civLongest+2 {
					t.Fatalf("% x: keeps %d bytes", in, len(rest))
				}
				return
			}
			b = rest
		}
		t.Fatalf("% x: never ends", in)
	})
}

func isFraming(b byte) bool { return b >= civJam && b != 0xFF }

func FuzzNextMessage(f *testing.F) {
	for _, s := range []string{"FA00145800000;", "?;E;O;", "\xff\x00IF00145800000    +0000000000140000080;", ";;;", "FA0014580000"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		b := in
		for range len(in) + 1 {
			msg, rest, ok := nextMessage(b)
			if !ok {
				if len(rest) > asciiLongest {
					t.Fatalf("%q: keeps %d bytes", in, len(rest))
				}
				return
			}
			if msg == "" || len(msg) > asciiLongest || strings.ContainsFunc(msg, func(r rune) bool { return r < ' ' || r > '~' || r == ';' }) {
				t.Fatalf("%q: message %q", in, msg)
			}
			_, _ = parseKenwoodIF(msg)
			if _, moved := kenwoodMove(msg); moved && len(msg) < 3 {
				t.Fatalf("%q is a move", msg)
			}
			b = rest
		}
		t.Fatalf("%q: never ends", in)
	})
}

func FuzzDecodeBCD(f *testing.F) {
	f.Add([]byte{0x00, 0x00, 0x80, 0x45, 0x01})
	f.Add([]byte{0xFF, 0xFF, 0xFF, 0xFF, 0xFF})
	f.Add([]byte{0x00, 0x30, 0x10, 0x35})
	f.Fuzz(func(t *testing.T, in []byte) {
		hz, err := decodeBCD(in)
		if err != nil {
			return
		}
		again, err := encodeBCD(hz, len(in))
		if err != nil || !bytes.Equal(again, in) {
			t.Fatalf("% x is %d Hz, which is % x, %v", in, hz, again, err)
		}
	})
}

func TestBCDKeepsEveryDigit(t *testing.T) {
	for hz, want := range map[int64]string{
		145_800_000:   "\x00\x00\x80\x45\x01",
		435_103_000:   "\x00\x30\x10\x35\x04",
		437_550_000:   "\x00\x00\x55\x37\x04",
		1_296_000_000: "\x00\x00\x00\x96\x12",
		2_400_100_000: "\x00\x00\x10\x00\x24",
		145_800_123:   "\x23\x01\x80\x45\x01",
	} {
		if got, err := encodeBCD(hz, 5); err != nil || string(got) != want {
			t.Errorf("encodeBCD(%d) = % x, %v; want % x", hz, got, err, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		hz, n := rapid.Int64().Draw(t, "hz"), rapid.IntRange(4, 6).Draw(t, "bytes")
		b, err := encodeBCD(hz, n)
		if err != nil {
			return
		}
		if got, err := decodeBCD(b); err != nil || got != hz {
			t.Fatalf("encodeBCD(%d, %d) = % x, which is %d, %v", hz, n, b, got, err)
		}
	})
	for _, hz := range []int64{-1, 10_000_000_000, 1 << 62} {
		if b, err := encodeBCD(hz, 5); err == nil {
			t.Errorf("encodeBCD(%d) = % x, want an error", hz, b)
		}
	}
}

func TestLookupSuggests(t *testing.T) {
	for _, name := range []string{"icom-ic9700", "ic-9700", "IC-9700"} {
		if m, err := Lookup(name); err != nil || m.Name != "icom-ic9700" {
			t.Errorf("Lookup(%q) = %q, %v", name, m.Name, err)
		}
	}
	if _, err := Lookup("icom-ic970"); err == nil || !strings.Contains(err.Error(), "did you mean icom-ic9700?") {
		t.Errorf("Lookup(icom-ic970) = %v, want a suggestion", err)
	}
	if _, err := Lookup("\x1b[31mxyzzy"); err == nil || errors.Is(err, ErrRefused) || strings.Contains(err.Error(), "\x1b") {
		t.Errorf("Lookup of a control sequence = %v", err)
	}
}
