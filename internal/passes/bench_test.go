package passes

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// active are the first n low satellites of the whole catalogue's snapshot.
func active(t testing.TB, n int) []elements.Set {
	t.Helper()
	packed, err := os.ReadFile(filepath.Join(dataDir, "active_20260812.tle.gz"))
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var low []elements.Set
	for _, s := range elements.Parse("active", data).Sets {
		if s.Class() != elements.Other {
			low = append(low, s)
		}
	}
	return low[:min(n, len(low))]
}

func BenchmarkFindADayOfALowSatellite(b *testing.B) {
	sets := active(b, 500)
	from := time.Date(2026, 8, 12, 12, 0, 0, 0, time.UTC)
	opt := Options{From: from, To: from.Add(24 * time.Hour)}
	p := newSpot(unit.Site{LatDeg: 51.5074, LonDeg: -0.1278, AltM: 25})
	evals, found, i := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		o, err := New(sets[i%len(sets)])
		if err != nil {
			b.Fatal(err)
		}
		f := newFinder(o, p, opt)
		list, _, _ := f.find(b.Context(), opt)
		evals += f.evals
		found += len(list)
		i++
	}
	b.ReportMetric(float64(evals)/float64(b.N), "sgp4/op")
	b.ReportMetric(float64(found)/float64(b.N), "passes/op")
}

func BenchmarkLook(b *testing.B) {
	o, err := New(elements.Embedded()[0])
	if err != nil {
		b.Fatal(err)
	}
	site := unit.Site{LatDeg: 51.5, AltM: 25}
	at := o.set.Epoch.Add(time.Hour)
	b.ReportAllocs()
	for b.Loop() {
		at = at.Add(100 * time.Millisecond)
		if _, err := o.Look(site, at); err != nil {
			b.Fatal(err)
		}
	}
}

func TestAnEvaluationAllocatesNothing(t *testing.T) {
	o, err := New(elements.Embedded()[0])
	if err != nil {
		t.Fatal(err)
	}
	f := newFinder(o, newSpot(unit.Site{LatDeg: 51.5}), Options{})
	ts := 0.0
	if n := testing.AllocsPerRun(1000, func() { ts += 45; f.at(ts, exact); f.step(f.at(ts, rough)) }); n != 0 {
		t.Errorf("%v allocations per evaluation, want none", n)
	}
	site, at := unit.Site{LatDeg: 51.5}, o.set.Epoch
	if n := testing.AllocsPerRun(1000, func() { at = at.Add(time.Second); o.Look(site, at) }); n != 0 {
		t.Errorf("%v allocations per Look, want none", n)
	}
}
