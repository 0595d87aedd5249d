package passes

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// FuzzOrbit feeds whatever parses to SGP4 and the finder: go-satellite must
// never end the process, and no answer may be anything but numbers.
func FuzzOrbit(f *testing.F) {
	for _, pattern := range []string{"tle/*.tle", "bad_tles/*"} {
		files, err := filepath.Glob(filepath.Join(dataDir, pattern))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data, int32(3600))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, after int32) {
		for _, s := range elements.Parse("fuzz", data).Sets {
			usable(t, s, time.Duration(after)*time.Second)
		}
	})
}

// FuzzElements does the same with numbers that no text would give.
func FuzzElements(f *testing.F) {
	f.Add(15.5, 0.001, 51.6, 10.0, 20.0, 30.0, 1e-4, int32(3600))
	f.Add(1e-9, 0.99, 179.95, 360.0, 0.0, 0.0, -50.0, int32(-1))
	f.Fuzz(func(t *testing.T, n, e, i, node, perigee, anomaly, bstar float64, after int32) {
		s := elements.Set{
			NoradID: 1, Epoch: time.Date(2026, 8, 12, 3, 4, 5, 6, time.UTC), MeanMotion: n, Eccentricity: e, InclinationDeg: i,
			RAANDeg: node, ArgPerigeeDeg: perigee, MeanAnomalyDeg: anomaly, BStar: bstar,
		}
		if s.Validate() != nil {
			if _, err := New(s); err == nil {
				t.Fatalf("New took %+v", s)
			}
			return
		}
		usable(t, s, time.Duration(after)*time.Second)
	})
}

func usable(t *testing.T, s elements.Set, after time.Duration) {
	t.Helper()
	o, err := New(s)
	if err != nil {
		return
	}
	site := unit.Site{LatDeg: 51.5, LonDeg: -0.1, AltM: 25}
	at := s.Epoch.Add(after % (400 * 24 * time.Hour))
	if l, err := o.Look(site, at); err == nil {
		if !l.Pointing().Finite() || !(l.ElDeg >= -90 && l.ElDeg <= 90 && l.RangeKm > 0 && l.RangeKm < 2e6) {
			t.Fatalf("%+v at %s: %+v", s, at, l)
		}
	}
	found, _, err := Find(t.Context(), o, site, Options{From: at, To: at.Add(12 * time.Hour)})
	if err != nil {
		t.Fatalf("%+v at %s: %v", s, at, err)
	}
	for _, p := range found {
		if !(p.MaxElDeg >= -0.01 && p.MaxElDeg <= 90) || p.LOS.Time.Before(p.AOS.Time) {
			t.Fatalf("%+v at %s: %+v", s, at, p)
		}
	}
}

func FuzzPassID(f *testing.F) {
	f.Add("25544-20261130T0320Z")
	f.Fuzz(func(t *testing.T, id string) {
		n, tca, err := ParseID(id)
		if err != nil {
			return
		}
		if again, at, err := ParseID(PassID(n, tca)); err != nil || again != n || !at.Equal(tca) {
			t.Fatalf("%q is %d at %s, which is %q", id, n, tca, PassID(n, tca))
		}
	})
}
