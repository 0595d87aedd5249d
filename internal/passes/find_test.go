package passes

import (
	"context"
	"math"
	"testing"
	"time"

	"gsd-mcp/internal/unit"
)

// A wanted is one search of windows.csv with its passes of passes.csv.
type wanted struct {
	window row
	passes []row
}

func windows(t testing.TB) []*wanted {
	t.Helper()
	key := func(r row) string {
		return r["satellite"] + "|" + r["station"] + "|" + r["window"] + "|" + r["mask_deg"]
	}
	var list []*wanted
	byKey := map[string]*wanted{}
	for _, r := range table(t, "windows.csv") {
		w := &wanted{window: r}
		list = append(list, w)
		byKey[key(r)] = w
	}
	for _, r := range table(t, "passes.csv") {
		w := byKey[key(r)]
		if w == nil {
			t.Fatalf("pass %v has no window", r)
		}
		w.passes = append(w.passes, r)
	}
	return list
}

// sites are the stations of lookangles.csv by name.
func sites(t testing.TB) map[string]unit.Site {
	m := map[string]unit.Site{}
	for _, name := range []string{"lookangles.csv", "passes.csv"} {
		for _, r := range table(t, name) {
			m[r["station"]] = r.site(t)
		}
	}
	return m
}

const grazing = 0.02 // degrees from the mask within which a pass may come or go

func TestPassesAgreeWithSkyfield(t *testing.T) {
	orbits, decayed, places := reference(t), decays(t), sites(t)
	var edge, top, closest, apart []float64
	searched, missed, invented := 0, 0, 0
	for _, w := range windows(t) {
		name := w.window["satellite"]
		if _, ok := decayed[name]; ok {
			continue
		}
		mask := w.window.num(t, "mask_deg")
		site, ok := places[w.window["station"]]
		if !ok {
			t.Fatalf("no site for %s", w.window["station"])
		}
		got, why, err := Find(t.Context(), orbits[name], site, Options{
			From: w.window.when(t, "window_start"), To: w.window.when(t, "window_stop"), Horizon: unit.FlatHorizon(mask),
		})
		if err != nil {
			t.Fatal(err)
		}
		searched++
		if (why == WhyFound) != (len(got) > 0) {
			t.Errorf("%s: %d passes and why %q", name, len(got), why)
		}
		i, j := 0, 0
		for i < len(got) || j < len(w.passes) {
			switch {
			case j == len(w.passes) || i < len(got) && got[i].LOS.Time.Before(w.passes[j].when(t, "aos_utc")):
				if got[i].MaxElDeg-mask > grazing {
					invented++
					t.Errorf("%s %s %s mask %g: invented %+v", name, w.window["station"], w.window["window"], mask, got[i])
				}
				i++
			case i == len(got) || w.passes[j].when(t, "los_utc").Before(got[i].AOS.Time):
				if w.passes[j].num(t, "max_el_deg")-mask > grazing {
					missed++
					t.Errorf("%s %s %s mask %g: missed %v", name, w.window["station"], w.window["window"], mask, w.passes[j])
				}
				j++
			default:
				e, p, c := comparePass(t, got[i], w.passes[j])
				edge, top, closest = append(edge, e...), append(top, p), append(closest, c)
				apart = append(apart, elevationsApart(t, orbits[name], site, got[i], w.passes[j])...)
				i, j = i+1, j+1
			}
		}
	}
	t.Logf("%d windows, %d passes: edges median %.2g s, 99%% %.2g s, worst %.2g s; TCA 99%% %.2g s worst %.2g s; closest worst %.2g s; reference elevation at our edges off by 99%% %.2g° worst %.2g°",
		searched, len(top), quantile(edge, 0.5), quantile(edge, 0.99), quantile(edge, 1), quantile(top, 0.99), quantile(top, 1), quantile(closest, 1), quantile(apart, 0.99), quantile(apart, 1))
	if m := quantile(apart, 1); !(m <= 0.001) {
		t.Errorf("at a reported AOS or LOS the reference elevation is %.5f° off the threshold, want at most 0.001°", m)
	}
	if missed+invented > 0 {
		t.Errorf("%d missed, %d invented", missed, invented)
	}
	if m := quantile(edge, 0.5); !(m <= 0.001) {
		t.Errorf("median AOS/LOS error %.4f s, want at most 1 ms", m)
	}
	if m := quantile(edge, 0.99); !(m <= 0.020) {
		t.Errorf("99%% AOS/LOS error %.4f s, want at most 20 ms", m)
	}
}

// elevationsApart is how far the reference's elevation is off the threshold at
// our AOS and LOS: at the reference's instants it is the threshold, and the
// elevation moves alike.
func elevationsApart(t *testing.T, o *Orbit, site unit.Site, got Pass, want row) []float64 {
	t.Helper()
	var apart []float64
	for _, e := range []struct {
		at  Event
		key string
		cut bool
	}{{got.AOS, "aos_utc", got.InProgressAtStart}, {got.LOS, "los_utc", got.CutAtEnd}} {
		if e.cut {
			continue
		}
		l, err := o.Look(site, want.when(t, e.key))
		if err != nil {
			t.Fatal(err)
		}
		apart = append(apart, math.Abs(l.ElDeg-e.at.ElDeg))
	}
	return apart
}

// comparePass checks one pass and returns the errors in seconds of its edges,
// TCA and closest approach.
func comparePass(t *testing.T, got Pass, want row) (edges []float64, top, closest float64) {
	t.Helper()
	if got.InProgressAtStart != (want["aos_clip"] != "") || got.CutAtEnd != (want["los_clip"] != "") {
		t.Errorf("%s: cuts %v %v, want %q %q", got.ID, got.InProgressAtStart, got.CutAtEnd, want["aos_clip"], want["los_clip"])
	}
	lag := func(at time.Time, key string) float64 { return math.Abs(at.Sub(want.when(t, key)).Seconds()) }
	for _, e := range []struct {
		at  Event
		key string
		cut bool
	}{{got.AOS, "aos", got.InProgressAtStart}, {got.LOS, "los", got.CutAtEnd}} {
		if e.cut {
			if !(lag(e.at.Time, e.key+"_utc") <= 1e-3) {
				t.Errorf("%s: cut %s at %s, want %s", got.ID, e.key, e.at.Time, want[e.key+"_utc"])
			}
			continue
		}
		edges = append(edges, lag(e.at.Time, e.key+"_utc"))
		if d := math.Abs(e.at.ElDeg - want.num(t, "mask_deg")); !(d <= 0.001) {
			t.Errorf("%s: elevation at %s %.5f°, want the mask %s°", got.ID, e.key, e.at.ElDeg, want["mask_deg"])
		}
	}
	if d := math.Abs(got.MaxElDeg - want.num(t, "max_el_deg")); !(d <= 0.001) {
		t.Errorf("%s: highest elevation %.5f°, want %s°", got.ID, got.MaxElDeg, want["max_el_deg"])
	}
	return edges, lag(got.TCA.Time, "max_utc"), lag(got.Closest, "closest_utc")
}

func TestMaskedPassesAgreeWithSkyfield(t *testing.T) {
	orbits, decayed := reference(t), decays(t)
	var points []unit.AzEl
	for _, r := range table(t, "horizon_mask.csv") {
		points = append(points, unit.AzEl{AzDeg: r.num(t, "az_deg"), ElDeg: r.num(t, "min_el_deg")})
	}
	horizon, err := unit.NewHorizon(points)
	if err != nil {
		t.Fatal(err)
	}
	type key struct{ sat, station, start, stop string }
	var order []key
	want := map[key][]row{}
	for _, r := range table(t, "mask_passes.csv") {
		k := key{r["satellite"], r["station"], r["window_start"], r["window_stop"]}
		if want[k] == nil {
			order = append(order, k)
		}
		want[k] = append(want[k], r)
	}
	var edges []float64
	for _, k := range order {
		if _, ok := decayed[k.sat]; ok {
			continue
		}
		rows := want[k]
		got, _, err := Find(t.Context(), orbits[k.sat], rows[0].site(t), Options{
			From: rows[0].when(t, "window_start"), To: rows[0].when(t, "window_stop"), Horizon: horizon,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(rows) {
			t.Errorf("%v: %d segments, want %d", k, len(got), len(rows))
			continue
		}
		for i, r := range rows {
			if r["rise_clip"] == "" {
				edges = append(edges, math.Abs(got[i].AOS.Time.Sub(r.when(t, "rise_utc")).Seconds()))
			}
			if r["set_clip"] == "" {
				edges = append(edges, math.Abs(got[i].LOS.Time.Sub(r.when(t, "set_utc")).Seconds()))
			}
			// The reference looked every second: overhead that hides 0.002°.
			if d := math.Abs(got[i].MaxElDeg - r.num(t, "max_el_deg")); !(d <= 0.005) {
				t.Errorf("%s: highest elevation %.4f°, want %s°", got[i].ID, got[i].MaxElDeg, r["max_el_deg"])
			}
		}
	}
	t.Logf("%d edges: median %.2g s, worst %.2g s", len(edges), quantile(edges, 0.5), quantile(edges, 1))
	if !(quantile(edges, 0.99) <= 0.020) {
		t.Errorf("99%% edge error %.3f s, want at most 20 ms", quantile(edges, 0.99))
	}
}

func TestNoPassIsOfferedAfterDecay(t *testing.T) {
	orbits := reference(t)
	site := unit.Site{LatDeg: 51.5074, LonDeg: -0.1278, AltM: 25}
	for name, end := range decays(t) {
		found, _, err := Find(t.Context(), orbits[name], site, Options{From: end.Add(-48 * time.Hour), To: end.Add(240 * time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Errorf("%s: no pass in its last days", name)
		}
		for _, p := range found {
			if p.LOS.Time.After(end.Add(time.Second)) {
				t.Errorf("%s: pass until %s, decay at %s", name, p.LOS.Time, end)
			}
		}
		_, why, err := Find(t.Context(), orbits[name], site, Options{From: end.Add(time.Hour), To: end.Add(1000 * time.Hour)})
		if err != nil || why != WhyDecayed {
			t.Errorf("%s after its decay: why %q, error %v, want %q", name, why, err, WhyDecayed)
		}
	}
}

func TestACancelledSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o := reference(t)["ISS (ZARYA)"]
	_, _, err := Find(ctx, o, unit.Site{}, Options{From: o.set.Epoch, To: o.set.Epoch.Add(time.Hour)})
	if err == nil {
		t.Error("no error from a cancelled search")
	}
}

func TestWarningsReachEveryPass(t *testing.T) {
	o := reference(t)["ISS (ZARYA)"]
	from := o.set.Epoch.Add(48 * time.Hour)
	found, _, err := Find(t.Context(), o, unit.Site{LatDeg: 51.5}, Options{
		From: from, To: from.Add(24 * time.Hour), Now: from.Add(100 * time.Hour),
		Warn: func(norad int) string { return "held " + o.set.Name },
	})
	if err != nil || len(found) == 0 {
		t.Fatal(found, err)
	}
	for _, p := range found {
		if len(p.Warnings) != 3 || p.Warnings[0] == "" || p.Warnings[1] != "held ISS (ZARYA)" || p.Warnings[2] != "the pass is over" {
			t.Errorf("%s: warnings %q, want age, held and over", p.ID, p.Warnings)
		}
	}
}
