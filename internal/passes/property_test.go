package passes

import (
	"math"
	"sort"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// drawSet makes up an orbit that stays up: low, medium or eccentric.
func drawSet(t *rapid.T) elements.Set {
	perigee := rapid.Float64Range(300, 3000).Draw(t, "perigee km")
	ecc := rapid.SampledFrom([]float64{0, 0.0005, 0.01, 0.1, 0.3, 0.7}).Draw(t, "eccentricity")
	a := (perigee + radiusKm) / (1 - ecc)
	return elements.Set{
		NoradID: 12345, Name: "TEST", Epoch: time.Date(2026, 8, 12, 3, 4, 5, 678901234, time.UTC),
		MeanMotion:   86400 / (2 * math.Pi) * math.Sqrt(mu/(a*a*a)),
		Eccentricity: ecc, InclinationDeg: rapid.Float64Range(0, 175).Draw(t, "inclination"),
		RAANDeg: rapid.Float64Range(0, 360).Draw(t, "node"), ArgPerigeeDeg: rapid.Float64Range(0, 360).Draw(t, "perigee argument"),
		MeanAnomalyDeg: rapid.Float64Range(0, 360).Draw(t, "anomaly"), BStar: rapid.SampledFrom([]float64{0, 1e-5, 1e-4}).Draw(t, "B*"),
	}
}

func drawSite(t *rapid.T) unit.Site {
	return unit.Site{
		LatDeg: rapid.Float64Range(-90, 90).Draw(t, "latitude"),
		LonDeg: rapid.Float64Range(-180, 180).Draw(t, "longitude"),
		AltM:   rapid.Float64Range(-400, 5000).Draw(t, "altitude"),
	}
}

func drawHorizon(t *rapid.T) unit.Horizon {
	if rapid.Bool().Draw(t, "flat") {
		return unit.FlatHorizon(rapid.SampledFrom([]float64{-2, 0, 5, 10, 40}).Draw(t, "horizon"))
	}
	var points []unit.AzEl
	for az := 0.0; az < 360; az += 60 {
		points = append(points, unit.AzEl{AzDeg: az, ElDeg: rapid.Float64Range(0, 25).Draw(t, "mask")})
	}
	h, err := unit.NewHorizon(points)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestEveryPassIsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, site, horizon := drawSet(t), drawSite(t), drawHorizon(t)
		o, err := New(set)
		if err != nil {
			t.Fatal(err)
		}
		refract := rapid.Bool().Draw(t, "refraction")
		from := set.Epoch.Add(time.Duration(rapid.Int64Range(-48, 72).Draw(t, "from h")) * time.Hour)
		to := from.Add(24 * time.Hour)
		found, why, err := Find(t.Context(), o, site, Options{From: from, To: to, Horizon: horizon, Refraction: refract})
		if err != nil || (why == WhyFound) != (len(found) > 0) {
			t.Fatalf("%d passes, why %q, error %v", len(found), why, err)
		}
		over := func(e Event) float64 {
			el := e.ElDeg
			if refract {
				el += Refraction(el)
			}
			return el - horizon.At(e.AzDeg)
		}
		last := from
		for _, p := range found {
			if p.AOS.Time.Before(last) || p.LOS.Time.After(to) {
				t.Fatalf("%s overlaps the one before it, or the window: %+v", p.ID, p)
			}
			last = p.LOS.Time
			if !(p.AOS.Time.Before(p.LOS.Time) && !p.TCA.Time.Before(p.AOS.Time) && !p.TCA.Time.After(p.LOS.Time)) {
				t.Fatalf("%s: not AOS < TCA < LOS: %+v", p.ID, p)
			}
			if p.Closest.Before(p.AOS.Time.Add(-time.Microsecond)) || p.Closest.After(p.LOS.Time.Add(time.Microsecond)) {
				t.Fatalf("%s: closest outside the pass: %+v", p.ID, p)
			}
			// A near-vertical mask edge in azimuth moves fast overhead.
			if !p.InProgressAtStart && math.Abs(over(p.AOS)) > 0.002 {
				t.Fatalf("%s: AOS %.5f° over the horizon: %+v", p.ID, over(p.AOS), p)
			}
			if !p.CutAtEnd && math.Abs(over(p.LOS)) > 0.002 {
				t.Fatalf("%s: LOS %.5f° over the horizon: %+v", p.ID, over(p.LOS), p)
			}
			if p.InProgressAtStart != p.AOS.Time.Equal(from) {
				t.Fatalf("%s: in progress %v, AOS %s, window from %s", p.ID, p.InProgressAtStart, p.AOS.Time, from)
			}
			l, err := o.Look(site, p.TCA.Time)
			if err != nil || math.Abs(l.ElDeg-p.MaxElDeg) > 5e-4 {
				t.Fatalf("%s: Look at TCA gives %+v, %v", p.ID, l, err)
			}
		}
		if _, flat := horizon.Flat(); flat {
			agreeWithGrid(t, o, site, from, to, found, over)
		}
	})
}

// agreeWithGrid compares the passes with the plainest finder there is: look
// every 20 s.
func agreeWithGrid(t *rapid.T, o *Orbit, site unit.Site, from, to time.Time, found []Pass, over func(Event) float64) {
	const step = 20 * time.Second
	for at := from; at.Before(to); at = at.Add(step) {
		l, err := o.Look(site, at)
		if err != nil {
			t.Fatal(err)
		}
		i := sort.Search(len(found), func(i int) bool { return !found[i].LOS.Time.Before(at) })
		in := i < len(found) && !found[i].AOS.Time.After(at)
		if c := over(Event{AzDeg: l.AzDeg, ElDeg: l.ElDeg}); math.Abs(c) > 0.02 && (c > 0) != in {
			t.Fatalf("at %s it stands %.3f° over the horizon, in a pass: %v", at, c, in)
		}
	}
}

func TestTheWindowsStartChangesNothingInside(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		set, site, horizon := drawSet(t), drawSite(t), drawHorizon(t)
		o, err := New(set)
		if err != nil {
			t.Fatal(err)
		}
		from := set.Epoch.Add(3 * time.Hour)
		to := from.Add(36 * time.Hour)
		shift := time.Duration(rapid.Int64Range(1, int64(12*time.Hour)).Draw(t, "shift ns"))
		find := func(from, to time.Time) []Pass {
			found, _, err := Find(t.Context(), o, site, Options{From: from, To: to, Horizon: horizon})
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		all, part := find(from, to), find(from.Add(shift), to.Add(-shift/2))
		for len(all) > 0 && all[0].LOS.Time.Before(from.Add(shift+10*time.Millisecond)) {
			all = all[1:]
		}
		for i, p := range part {
			if p.CutAtEnd {
				break
			}
			if p.LOS.Time.Before(from.Add(shift + 10*time.Millisecond)) {
				continue
			}
			// Grazing passes may come or go with the last digit.
			for len(all) > 0 && all[0].LOS.Time.Before(p.AOS.Time) && all[0].Duration() < 30*time.Second {
				all = all[1:]
			}
			if len(all) == 0 {
				t.Fatalf("pass %d of the shifted window is new: %+v", i, p)
			}
			q := all[0]
			all = all[1:]
			if moved(o, site, p.LOS, q.LOS) {
				t.Fatalf("%s: LOS moved from %s to %s", p.ID, q.LOS.Time, p.LOS.Time)
			}
			if p.InProgressAtStart {
				if p.ID != q.ID && !q.InProgressAtStart && q.Duration() < 12*time.Hour {
					if _, flat := horizon.Flat(); flat && p.TCA.Time.Sub(q.TCA.Time).Abs() > time.Second {
						_, a, _ := ParseID(p.ID)
						if a.Sub(q.TCA.Time.Truncate(time.Minute)).Abs() > time.Minute {
							t.Fatalf("the pass in progress is called %s, as a whole %s", p.ID, q.ID)
						}
					}
				}
				continue
			}
			if moved(o, site, p.AOS, q.AOS) {
				t.Fatalf("%s: AOS moved from %s to %s", p.ID, q.AOS.Time, p.AOS.Time)
			}
			if d := math.Abs(p.MaxElDeg - q.MaxElDeg); d > 0.001 {
				t.Fatalf("%s: highest elevation moved by %v°", p.ID, d)
			}
		}
	})
}

// moved tells two crossings apart: over a millisecond and, since a satellite
// far out takes minutes for a degree, over 0.00001°.
func moved(o *Orbit, site unit.Site, a, b Event) bool {
	if a.Time.Sub(b.Time).Abs() <= time.Millisecond {
		return false
	}
	la, err1 := o.Look(site, a.Time)
	lb, err2 := o.Look(site, b.Time)
	return err1 != nil || err2 != nil || math.Abs(la.ElDeg-lb.ElDeg) > 1e-5
}

func TestPassIDsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		norad := rapid.IntRange(1, elements.MaxNoradID).Draw(t, "number")
		tca := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "tca"), 0).UTC()
		got, at, err := ParseID(PassID(norad, tca))
		if err != nil || got != norad || !at.Equal(tca.Truncate(time.Minute)) {
			t.Fatalf("%s gives %d %s %v", PassID(norad, tca), got, at, err)
		}
	})
	for _, bad := range []string{"", "-", "25544", "25544-", "x-20261130T0320Z", "25544-20261130T032Z", "-1-20261130T0320Z", "+5-20261130T0320Z", "0-20261130T0320Z", "25544-20261330T0320Z"} {
		if n, at, err := ParseID(bad); err == nil {
			t.Errorf("ParseID(%q) = %d, %s, want an error", bad, n, at)
		}
	}
}
