package passes

import (
	"encoding/csv"
	"math"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

const dataDir = "../../testdata/orbits"

// A row is one line of a reference table, by column name.
type row map[string]string

func (r row) num(t testing.TB, key string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(r[key], 64)
	if err != nil {
		t.Fatalf("column %s of %v: %v", key, r, err)
	}
	return x
}

func (r row) when(t testing.TB, key string) time.Time {
	t.Helper()
	x, err := time.Parse(time.RFC3339Nano, r[key])
	if err != nil {
		t.Fatalf("column %s of %v: %v", key, r, err)
	}
	return x
}

func (r row) site(t testing.TB) unit.Site {
	return unit.Site{LatDeg: r.num(t, "lat_deg"), LonDeg: r.num(t, "lon_deg"), AltM: r.num(t, "alt_m")}
}

func table(t testing.TB, name string) []row {
	t.Helper()
	f, err := os.Open(filepath.Join(dataDir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	rows := make([]row, 0, len(records))
	for _, rec := range records[1:] {
		r := row{}
		for i, k := range records[0] {
			r[k] = rec[i]
		}
		rows = append(rows, r)
	}
	return rows
}

// reference are the 33 satellites by name.
func reference(t testing.TB) map[string]*Orbit {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dataDir, "tle", "all.3le"))
	if err != nil {
		t.Fatal(err)
	}
	orbits := map[string]*Orbit{}
	for _, s := range elements.Parse("all.3le", data).Sets {
		o, err := New(s)
		if err != nil {
			t.Fatal(err)
		}
		orbits[s.Name] = o
	}
	if len(orbits) != 33 {
		t.Fatalf("%d satellites, want 33", len(orbits))
	}
	return orbits
}

// decays are the two satellites of decay.csv: first instant below 100 km.
func decays(t testing.TB) map[string]time.Time {
	d := map[string]time.Time{}
	for _, r := range table(t, "decay.csv") {
		d[r["satellite"]] = r.when(t, "first_alt_below_100km_utc")
	}
	return d
}

func quantile(x []float64, q float64) float64 {
	s := append([]float64(nil), x...)
	sort.Float64s(s)
	if len(s) == 0 {
		return math.NaN()
	}
	return s[min(len(s)-1, int(q*float64(len(s))))]
}

func TestLookAnglesAgreeWithSkyfield(t *testing.T) {
	orbits, decayed := reference(t), decays(t)
	var off, ranges, rates []float64
	for _, r := range table(t, "lookangles.csv") {
		o, at := orbits[r["satellite"]], r.when(t, "utc")
		got, err := o.Look(r.site(t), at)
		if d, ok := decayed[r["satellite"]]; ok && !at.Before(d) {
			if err == nil {
				t.Errorf("%s at %s: a look angle after the decay", r["satellite"], r["utc"])
			}
			continue
		}
		if err != nil {
			t.Errorf("%s at %s: %v", r["satellite"], r["utc"], err)
			continue
		}
		d := unit.Separation(got.Pointing(), unit.AzEl{AzDeg: r.num(t, "az_deg"), ElDeg: r.num(t, "el_deg")})
		if d > 0.0001 {
			t.Errorf("%s %s at %s: %.6f° off (%+v)", r["satellite"], r["station"], r["utc"], d, got)
		}
		off = append(off, d)
		ranges = append(ranges, math.Abs(got.RangeKm-r.num(t, "range_km")))
		rates = append(rates, math.Abs(got.RangeRateKmS-r.num(t, "range_rate_kms")))
	}
	t.Logf("%d rows: direction median %.2g° worst %.2g°, range worst %.2g km, range rate worst %.2g km/s",
		len(off), quantile(off, 0.5), quantile(off, 1), quantile(ranges, 1), quantile(rates, 1))
	if m := quantile(off, 0.5); !(m <= 2e-6) {
		t.Errorf("median %.2g°, want at most 2e-6", m)
	}
	if m := quantile(ranges, 1); !(m <= 0.03) {
		t.Errorf("worst range error %.2g km", m)
	}
	if m := quantile(rates, 1); !(m <= 1e-5) {
		t.Errorf("worst range rate error %.2g km/s", m)
	}
}

func TestAllOfValladosCases(t *testing.T) {
	sets := map[string]elements.Set{}
	for _, r := range table(t, "sgp4_ver_cases.csv") {
		// Vallado renumbered some lines without new checksums.
		text := r["line1"][:68] + "\n" + r["line2"][:68] + "\n"
		res := elements.Parse("case "+r["case"], []byte(text))
		if len(res.Sets) != 1 {
			t.Fatalf("case %s: %v", r["case"], res.Problems)
		}
		sets[r["case"]] = res.Sets[0]
	}
	var worst, worstV float64
	states, errors := 0, 0
	for _, r := range table(t, "sgp4_ver.csv") {
		set, ts := sets[r["case"]], r.num(t, "tsince_min")*60
		o, err := New(set)
		if r["error"] != "0" {
			errors++
			if err == nil {
				_, _, err = o.locate(o.at(ts))
			}
			if err == nil {
				t.Errorf("case %s at %s min: no error, want SGP4 error %s", r["case"], r["tsince_min"], r["error"])
			}
			continue
		}
		if err != nil {
			t.Errorf("case %s: %v", r["case"], err)
			continue
		}
		states++
		n := o.node(nearest(ts))
		p, v := n.state(ts)
		d := p.sub(vec{r.num(t, "x_km"), r.num(t, "y_km"), r.num(t, "z_km")}).norm()
		dv := v.sub(vec{r.num(t, "vx_kms"), r.num(t, "vy_kms"), r.num(t, "vz_kms")}).norm()
		worst, worstV = math.Max(worst, d), math.Max(worstV, dv)
		if !(d <= 0.03) {
			t.Errorf("case %s (%s) at %s min: %.6f km off", r["case"], r["satnum"], r["tsince_min"], d)
		}
	}
	t.Logf("%d states, worst %.3g km and %.3g km/s; %d errors", states, worst, worstV, errors)
	if states != 666 || errors != 8 {
		t.Errorf("%d states and %d errors, want 666 and 8", states, errors)
	}
}

func TestDecayIsFoundToTheSecond(t *testing.T) {
	orbits := reference(t)
	for name, want := range decays(t) {
		o := orbits[name]
		at, found := o.decayTime(o.since(want.Add(20 * 24 * time.Hour)))
		if !found {
			t.Errorf("%s: no decay found, want %s", name, want)
			continue
		}
		// The reference looked every 5 s.
		if late := want.Sub(o.at(at)).Seconds(); !(late >= -1 && late <= 6) {
			t.Errorf("%s: decay at %s, want %s", name, o.at(at), want)
		}
	}
	for name, o := range orbits {
		if _, ok := decays(t)[name]; ok {
			continue
		}
		if at, found := o.decayTime(200 * 86400); found && name != "PODSAT" {
			t.Errorf("%s: decays at %s", name, o.at(at))
		}
	}
}

func TestSunAgreesWithPyEphem(t *testing.T) {
	var off []float64
	for _, r := range table(t, "sun.csv") {
		got := Sun(r.site(t), r.when(t, "utc"))
		off = append(off, unit.Separation(got, unit.AzEl{AzDeg: r.num(t, "sun_az_deg"), ElDeg: r.num(t, "sun_el_deg")}))
	}
	t.Logf("%d rows: median %.4f°, worst %.4f°", len(off), quantile(off, 0.5), quantile(off, 1))
	if len(off) != 216 || !(quantile(off, 1) <= 0.02) {
		t.Errorf("%d rows, worst %.4f°, want 216 and at most 0.02°", len(off), quantile(off, 1))
	}
}
