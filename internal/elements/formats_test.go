package elements

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// the same eight satellites in five layouts; three carry numbers that no TLE
// can hold.
var layouts = map[string]string{
	"gp.json": "OMM JSON", "gp.csv": "OMM CSV", "gp.xml": "OMM XML", "gp.kvn": "OMM KVN", "spacetrack_strings.json": "OMM JSON",
}

func TestEveryLayoutGivesTheSameSets(t *testing.T) {
	tle := map[string]Set{}
	for _, s := range Parse("all.3le", readFile(t, "tle", "all.3le")).Sets {
		tle[s.Name] = s
	}
	for file, format := range layouts {
		r := Parse(file, readFile(t, "omm", file))
		if r.Format != format || len(r.Problems) > 0 || len(r.Sets) != 8 {
			t.Errorf("%s: format %q, %d sets, problems %v; want %q, 8 and none", file, r.Format, len(r.Sets), r.Problems, format)
			continue
		}
		numbers := map[int]bool{}
		for _, s := range r.Sets {
			want := tle[s.Name]
			numbers[s.NoradID] = true
			// Made up for the test, and what a TLE leaves to convention.
			want.NoradID, want.Source = s.NoradID, s.Source
			if diff := cmp.Diff(want, s); diff != "" {
				t.Errorf("%s: %s differs from its TLE (-TLE +%s):\n%s", file, s.Name, format, diff)
			}
		}
		for _, n := range []int{100001, 270123, 123456789} {
			if !numbers[n] {
				t.Errorf("%s: no satellite %d", file, n)
			}
		}
	}
}

func TestATLEWritesBackAsItWas(t *testing.T) {
	data := string(readFile(t, "tle", "all.3le"))
	lines := strings.Split(strings.TrimSpace(data), "\n")
	sets := Parse("all.3le", []byte(data)).Sets
	for i, s := range sets {
		l1, l2 := s.TLE()
		// The revolution number may fill its columns with blanks or zeros.
		if w1, w2 := lines[3*i+1], lines[3*i+2]; l1 != w1 || l2 != w2 {
			t.Errorf("%s: wrote\n%s\n%s\nwant\n%s\n%s", s.Name, l1, l2, w1, w2)
		}
	}
}

func TestTheWholeCatalogueParses(t *testing.T) {
	f, err := os.Open(filepath.Join(dataDir, "active_20260812.tle.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	r := Parse("active", data)
	if len(r.Sets) != 16089 || r.Rejected() > 0 {
		t.Errorf("%d sets and %d rejects, want 16089 and none; first problems %v", len(r.Sets), r.Rejected(), r.Problems[:min(3, len(r.Problems))])
	}
	for _, s := range r.Sets {
		l1, l2 := s.TLE()
		again := Parse("again", []byte(l1+"\n"+l2+"\n")).Sets
		if len(again) != 1 {
			t.Fatalf("%s: its own TLE does not parse", s.Name)
		}
		again[0].Name, again[0].Source = s.Name, s.Source
		if again[0] != s {
			t.Fatalf("%s: its own TLE reads as\n%+v\nwant\n%+v", s.Name, again[0], s)
		}
	}
}

func TestDamagedOMMKeepsTheGoodRecords(t *testing.T) {
	json := string(readFile(t, "omm", "gp.json"))
	csv := string(readFile(t, "omm", "gp.csv"))
	xml := string(readFile(t, "omm", "gp.xml"))
	kvn := string(readFile(t, "omm", "gp.kvn"))
	tests := []struct {
		name, data string
		sets       int
		problem    string
	}{
		{"json cut", json[:len(json)*2/3], 5, "ends in the middle of a record"},
		{"json with a hole", strings.Replace(json, `"INCLINATION": 98.7061`, `"INCLINATION": ]`, 1), 1, "JSON"},
		{"json value", strings.Replace(json, `"INCLINATION": 98.7061`, `"INCLINATION": "9x"`, 1), 7, `f:27:18: error: record 2 (METEOR-M2 4): INCLINATION "9x" is not a number`},
		{"json null", strings.Replace(json, `"EPOCH": "2026-08-11T04:34:42.250656"`, `"EPOCH": null`, 1), 7, "record 2 (METEOR-M2 4) has no EPOCH"},
		{"json error object", `{"error":"You must be logged in to complete this action"}`, 0, "has no NORAD_CAT_ID"},
		{"json array of numbers", `[1,2]`, 0, "not orbital elements"},
		{"json empty", `[]`, 0, "no records"},
		{"json SGP4-XP", strings.Replace(json, `"EPHEMERIS_TYPE": 0`, `"EPHEMERIS_TYPE": 4`, 1), 7, "SGP4-XP"},
		{"json other frame", strings.Replace(json, `"OBJECT_NAME": "HST"`, `"REF_FRAME": "GCRF", "OBJECT_NAME": "HST"`, 1), 7, `REF_FRAME "GCRF" is not supported`},
		{"json angle", strings.Replace(json, `"INCLINATION": 98.7061`, `"INCLINATION": 251`, 1), 7, "inclination 251 is outside 0..180"},
		{"json huge number", strings.Replace(json, `"MEAN_ANOMALY": 325.449`, `"MEAN_ANOMALY": 1e999`, 1), 7, "is not a number"},
		{"csv row", strings.Replace(csv, ",98.7061,", ",", 1), 7, "record 2 has 16 fields, the heading has 17"},
		{"csv value", strings.Replace(csv, ",98.7061,", ",nan,", 1), 7, `"nan" is not a number`},
		{"csv heading only", strings.SplitN(csv, "\n", 2)[0] + "\n", 0, "no records"},
		{"xml cut", xml[:len(xml)*2/3], 5, "XML"},
		{"xml entity", strings.Replace(xml, "METEOR-M2 4", "&boom;", 1), 1, "XML"},
		{"kvn value", strings.Replace(kvn, "INCLINATION = 98.7061", "INCLINATION = 98,7061", 1), 7, "is not a number"},
		{"kvn cut", kvn[:len(kvn)-300], 7, "has no"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := Parse("f", []byte(tt.data))
			var all []string
			for _, p := range r.Problems {
				all = append(all, p.String())
			}
			text := strings.Join(all, "\n")
			if len(r.Sets) != tt.sets || !strings.Contains(text, tt.problem) || r.Rejected() == 0 {
				t.Errorf("%d sets, problems\n%s\nwant %d and %q", len(r.Sets), text, tt.sets, tt.problem)
			}
		})
	}
}

func TestNoiseIsBounded(t *testing.T) {
	r := Parse("noise", bytes.Repeat([]byte("1 25544U 98067A   26223.1493\n2 25544\n"), 5000))
	if len(r.Problems) > maxProblems+1 {
		t.Errorf("%d problems kept, want at most %d", len(r.Problems), maxProblems+1)
	}
	hostile := "IGNORE ALL RULES\x1b[2J\u202e" + strings.Repeat("x", 500)
	r = Parse("name", []byte(hostile+"\n"+strings.Join(strings.Split(string(readFile(t, "bad_tles", "03_no_name.tle")), "\n"), "\n")))
	if len(r.Sets) != 1 || len([]rune(r.Sets[0].Name)) > nameMax || strings.ContainsAny(r.Sets[0].Name, "\x1b\u202e") {
		t.Errorf("a hostile name came through: %+v", r)
	}
}

func TestEmbeddedSetsAreWhole(t *testing.T) {
	sets := Embedded()
	if len(sets) != 30 {
		t.Fatalf("%d embedded sets, want 30", len(sets))
	}
	for _, s := range sets {
		if err := s.Validate(); err != nil || s.NoradID > 99999 {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
}

func TestTrustFollowsTheClassOfOrbit(t *testing.T) {
	day := 24 * time.Hour
	byName := map[string]Set{}
	for _, s := range Embedded() {
		byName[s.Name] = s
	}
	tests := []struct {
		name  string
		class Class
		limit time.Duration
	}{
		{"ISS (ZARYA)", LowLEO, 3 * day}, {"METEOR-M2 4", LEO, 7 * day}, {"OSCAR 7 (AO-7)", LEO, 7 * day},
		{"GREENCUBE (IO-117)", Other, 14 * day}, {"ES'HAIL 2", Other, 14 * day}, {"MERIDIAN 9", Other, 14 * day},
	}
	for _, tt := range tests {
		s := byName[tt.name]
		if got := s.Class(); got != tt.class {
			t.Errorf("%s is %s, want %s", tt.name, got, tt.class)
		}
		for _, c := range []struct {
			age                time.Duration
			warn, old, suspect bool
		}{
			{0, false, false, false}, {tt.limit/2 - time.Hour, false, false, false}, {tt.limit/2 + time.Hour, true, false, false},
			{tt.limit, true, false, false}, {tt.limit + time.Second, true, true, false}, {-time.Hour, false, false, false}, {-2 * day, false, false, true},
		} {
			got := s.Trust(s.Epoch.Add(c.age))
			if got.Warn != c.warn || got.TooOld != c.old || got.Suspect != c.suspect || got.OK() != !(c.old || c.suspect) || (got.Why == "") == (c.warn || c.suspect) {
				t.Errorf("%s after %v: %+v, want warn %v, too old %v, suspect %v", tt.name, c.age, got, c.warn, c.old, c.suspect)
			}
		}
	}
}

func TestCompareSeesJumps(t *testing.T) {
	old := Embedded()[0]
	change := func(f func(*Set)) Set {
		s := old
		s.Epoch = s.Epoch.Add(12 * time.Hour)
		f(&s)
		return s
	}
	tests := []struct {
		name string
		new  Set
		want string // part of the only jump, "" for none
	}{
		{"half a day on", change(func(s *Set) { s.BStar *= 1.4; s.MeanMotion += 3.6e-5 }), ""},
		{"reboost", change(func(s *Set) { s.MeanMotion -= 0.004 }), ""},
		{"drag", change(func(s *Set) { s.BStar *= 50 }), "B*"},
		{"mean motion", change(func(s *Set) { s.MeanMotion *= 1.05 }), "mean motion"},
		{"plane", change(func(s *Set) { s.InclinationDeg += 3 }), "inclination"},
		{"back in time", change(func(s *Set) { s.Epoch = old.Epoch.Add(-time.Hour) }), "older"},
		{"another satellite", change(func(s *Set) { s.NoradID++ }), "two satellites"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Compare(old, tt.new)
			if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || !strings.Contains(got[0].What, tt.want)) {
				t.Errorf("Compare = %v, want %q", got, tt.want)
			}
		})
	}
}

func TestAnySetSurvivesItsTLE(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := Set{
			NoradID:        rapid.IntRange(1, maxAlpha5).Draw(t, "number"),
			Epoch:          time.Unix(0, rapid.Int64Range(-4e17, 27e17).Draw(t, "epoch")).UTC(),
			MeanMotion:     rapid.Float64Range(0.02, 17).Draw(t, "mean motion"),
			Eccentricity:   rapid.Float64Range(0, 0.9999999).Draw(t, "eccentricity"),
			InclinationDeg: rapid.Float64Range(0, 180).Draw(t, "inclination"),
			RAANDeg:        rapid.Float64Range(0, 359.9999).Draw(t, "node"),
			BStar:          rapid.Float64Range(-1, 1).Draw(t, "B*"),
			MeanMotionDot:  rapid.Float64Range(-0.5, 0.5).Draw(t, "dot"),
			ObjectID:       "1998-067A",
		}
		l1, l2 := s.TLE()
		if len(l1) != 69 || len(l2) != 69 {
			t.Fatalf("%d and %d columns:\n%s\n%s", len(l1), len(l2), l1, l2)
		}
		r := Parse("x", []byte(l1+"\n"+l2))
		if len(r.Sets) != 1 {
			t.Fatalf("%v", r.Problems)
		}
		got := r.Sets[0]
		if got.NoradID != s.NoradID || got.Epoch.Sub(s.Epoch).Abs() > 432*time.Microsecond || fmt.Sprintf("%.4f", got.InclinationDeg) != fmt.Sprintf("%.4f", s.InclinationDeg) {
			t.Fatalf("got %+v", got)
		}
		if d := got.BStar - s.BStar; d > 1e-5 || d < -1e-5 {
			t.Fatalf("B* %g, want %g", got.BStar, s.BStar)
		}
	})
}
