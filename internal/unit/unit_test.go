package unit

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestNorm360(t *testing.T) {
	tests := []struct{ in, want float64 }{
		{0, 0}, {360, 0}, {-360, 0}, {720, 0}, {719.5, 359.5}, {359.9, 359.9}, {-0.1, 359.9}, {-359.9, 0.1}, {450, 90}, {-540, 180},
		{1e6, 280}, {-1e-17, 0}, {math.Copysign(0, -1), 0},
	}
	for _, tt := range tests {
		if got := Norm360(tt.in); math.Abs(got-tt.want) > 1e-9 || got < 0 || got >= 360 {
			t.Errorf("Norm360(%v) = %v, want %v", tt.in, got, tt.want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if got := Norm360(bad); !math.IsNaN(got) {
			t.Errorf("Norm360(%v) = %v, want NaN, which fails every check", bad, got)
		}
	}
}

func TestPropertyNorm360(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(-1e9, 1e9).Draw(t, "x")
		n := Norm360(x)
		if !(0 <= n && n < 360) {
			t.Fatalf("Norm360(%v) = %v", x, n)
		}
		if turns := (x - n) / 360; math.Abs(turns-math.Round(turns)) > 1e-6 {
			t.Fatalf("Norm360(%v) = %v is not a whole number of turns away", x, n)
		}
	})
}

func TestDiff(t *testing.T) {
	tests := []struct{ a, b, want float64 }{
		{10, 350, 20}, {350, 10, -20}, {180, 0, -180}, {0, 180, -180}, {90, 90, 0}, {358, 0, -2}, {0, 358, 2}, {725, 0, 5}, {-170, 170, 20},
	}
	for _, tt := range tests {
		if got := Diff(tt.a, tt.b); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("Diff(%v, %v) = %v, want %v", tt.a, tt.b, got, tt.want)
		}
	}
	if got := Nearest(10, 700); got != 730 {
		t.Errorf("Nearest(10, 700) = %v, want 730", got)
	}
}

func TestSeparation(t *testing.T) {
	tests := []struct {
		name string
		a, b AzEl
		want float64
	}{
		{"same", AzEl{10, 20}, AzEl{10, 20}, 0},
		{"across north", AzEl{359, 0}, AzEl{1, 0}, 2},
		{"azimuths mean nothing at the zenith", AzEl{0, 90}, AzEl{123, 90}, 0},
		{"almost nothing near it", AzEl{0, 89}, AzEl{180, 89}, 2},
		{"quarter turn of azimuth at 89°", AzEl{0, 89}, AzEl{90, 89}, 1.414177660952},
		{"opposite", AzEl{0, 0}, AzEl{180, 0}, 180},
		{"up and down", AzEl{0, 90}, AzEl{0, -90}, 180},
		{"flipped is the same direction", AzEl{30, 120}, AzEl{210, 60}, 0},
		{"flipped, over the far horizon", AzEl{30, 180}, AzEl{210, 0}, 0},
		{"a thousandth", AzEl{100, 45}, AzEl{100, 45.001}, 0.001},
		{"a millionth", AzEl{100, 45}, AzEl{100, 45.000001}, 0.000001},
	}
	for _, tt := range tests {
		if got := Separation(tt.a, tt.b); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: Separation(%v, %v) = %.12f, want %.12f", tt.name, tt.a, tt.b, got, tt.want)
		}
	}
	if got := Separation(AzEl{math.NaN(), 0}, AzEl{0, 0}); !math.IsNaN(got) {
		t.Errorf("Separation of NaN = %v, want NaN", got)
	}
}

func TestSiteValidate(t *testing.T) {
	nan := math.NaN()
	for _, s := range []Site{{90.1, 0, 0}, {-90.1, 0, 0}, {nan, 0, 0}, {0, 180.1, 0}, {0, nan, 0}, {0, 0, -501}, {0, 0, 9001}, {0, 0, math.Inf(1)}} {
		if s.Validate() == nil {
			t.Errorf("Validate(%+v) = nil", s)
		}
	}
	for _, s := range []Site{{}, {90, 180, 9000}, {-90, -180, -500}} {
		if err := s.Validate(); err != nil {
			t.Errorf("Validate(%+v) = %v", s, err)
		}
	}
}

func TestHorizonAt(t *testing.T) {
	h, err := NewHorizon([]AzEl{{180, 3}, {0, 5}, {90, 12}}) // in any order
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct{ az, want float64 }{
		{0, 5}, {360, 5}, {45, 8.5}, {90, 12}, {135, 7.5}, {180, 3}, {270, 4}, {359, 4.988888888889}, {-90, 4}, {450, 12},
	}
	for _, tt := range tests {
		if got := h.At(tt.az); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("At(%v) = %v, want %v", tt.az, got, tt.want)
		}
	}
	if got := h.At(math.NaN()); !math.IsNaN(got) {
		t.Errorf("At(NaN) = %v, want NaN, which refuses", got)
	}
	if h.Min() != 3 {
		t.Errorf("Min() = %v, want 3", h.Min())
	}
	if el, flat := h.Flat(); flat {
		t.Errorf("Flat() = %v, true", el)
	}
	if got := FlatHorizon(7).At(123); got != 7 {
		t.Errorf("flat At = %v, want 7", got)
	}
	if got := (Horizon{}).At(5); got != 0 {
		t.Errorf("zero horizon At = %v, want 0", got)
	}
	h.Points()[0].ElDeg = -90
	if h.Min() != 3 {
		t.Error("Points() lets a caller change the mask")
	}
}

// Hazard M-04: a mask with a gap was the way an antenna came down on its roof.
func TestHorizonRefusesGapsAndNonsense(t *testing.T) {
	nan := math.NaN()
	bad := map[string][]AzEl{
		"nothing":           nil,
		"one point":         {{0, 5}},
		"a gap":             {{0, 5}, {90, 12}, {170, 3}}, // 170 to 360
		"a gap over north":  {{100, 5}, {180, 12}, {270, 3}},
		"the same azimuth":  {{0, 5}, {0, 7}, {180, 3}},
		"azimuth 360":       {{0, 5}, {180, 7}, {360, 3}},
		"azimuth below 0":   {{-1, 5}, {90, 7}, {180, 3}},
		"azimuth NaN":       {{nan, 5}, {90, 7}, {180, 3}},
		"elevation NaN":     {{0, 5}, {90, nan}, {180, 3}},
		"elevation over 90": {{0, 5}, {90, 90.1}, {180, 3}},
		"elevation too low": {{0, 5}, {90, -5.1}, {180, 3}},
	}
	for name, p := range bad {
		if _, err := NewHorizon(p); err == nil {
			t.Errorf("%s: NewHorizon(%v) = nil error", name, p)
		}
	}
}

func TestPropertyHorizonStaysBetweenItsPoints(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(3, 12).Draw(t, "points")
		var p []AzEl
		top := -5.0
		for i := range n {
			q := AzEl{360/float64(n)*float64(i) + rapid.Float64Range(0, 180/float64(n)).Draw(t, "az"), rapid.Float64Range(-5, 90).Draw(t, "el")}
			p, top = append(p, q), max(top, q.ElDeg)
		}
		h, err := NewHorizon(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, q := range p {
			if got := h.At(q.AzDeg); math.Abs(got-q.ElDeg) > 1e-9 {
				t.Fatalf("At(%v) = %v, the point says %v", q.AzDeg, got, q.ElDeg)
			}
		}
		if az := rapid.Float64Range(-720, 720).Draw(t, "at"); !(h.At(az) >= h.Min()-1e-9 && h.At(az) <= top+1e-9) {
			t.Fatalf("At(%v) = %v is outside %v..%v", az, h.At(az), h.Min(), top)
		}
	})
}

func TestPrintable(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"plain", "ISS (ZARYA)", "ISS (ZARYA)"},
		{"umlaut", "Größe 5 µm", "Größe 5 µm"},
		{"an element set", "OK\n1 25544U 98067A\r\n2 25544", "OK 1 25544U 98067A 2 25544"},
		{"escape sequence", "\x1b[31mred\x1b[0m", "[31mred[0m"},
		{"C1 control", "a\u009bb", "ab"},
		{"bell, null, delete", "a\a\x00\x7fb", "ab"},
		{"right to left override", "abc\u202egnp.exe", "abcgnp.exe"},
		{"isolates", "\u2066a\u2069", "a"},
		{"zero width", "a\u200bb\u200dc\ufeffd\u2060e", "abcde"},
		{"tag characters", "hi\U000e0069\U000e0067\U000e006e", "hi"},
		{"variation selectors", "a\ufe0fb\U000e0121\U000e0142c", "abc"},
		{"filler that looks like nothing", "a\u3164b\u115fc", "abc"},
		{"soft hyphen", "sta\u00adtion", "station"},
		{"line and paragraph separators", "a\u2028b\u2029c", "a b c"},
		{"next line", "a\u0085b", "a b"},
		{"blanks", "  a \t\u00a0\u3000 b  ", "a b"},
		{"invalid UTF-8", "a\xff\xc0\xaf\xed\xa0\x80b", "ab"},
		{"private use", "a\ue000b", "ab"},
		{"nothing", "\x00\n\u200b ", ""},
		{"too long", strings.Repeat("x", 50), strings.Repeat("x", 20)},
		{"blank at the cut", strings.Repeat("x", 19) + " y", strings.Repeat("x", 19)},
		{"runes, not bytes", strings.Repeat("é", 21), strings.Repeat("é", 20)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Printable(tt.in, 20); tt.name != "an element set" && got != tt.want {
				t.Errorf("Printable(%q) = %q, want %q", tt.in, got, tt.want)
			} else if got := Printable(tt.in, 40); tt.name == "an element set" && got != tt.want {
				t.Errorf("Printable(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\u202eb\n\x1b[0m\xff", 5)
	f.Add("  \u200b ", 0)
	f.Fuzz(func(t *testing.T, s string, max int) {
		got := Printable(s, max)
		if n := utf8.RuneCountInString(got); n > 0 && n > max || !utf8.ValidString(got) {
			t.Fatalf("Printable(%q, %d) = %q: %d runes", s, max, got, n)
		}
		if strings.ContainsAny(got, "\n\r\t\x00\x1b\u2028\u202e\u200b") || strings.TrimSpace(got) != got || strings.Contains(got, "  ") {
			t.Fatalf("Printable(%q, %d) = %q", s, max, got)
		}
		if again := Printable(got, max); again != got {
			t.Fatalf("Printable is not settled: %q then %q", got, again)
		}
	})
}
