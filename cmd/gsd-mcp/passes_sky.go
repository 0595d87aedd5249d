package main

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/unit"
)

// A skyTrack is one pass as it is drawn: a disc with the zenith in the middle,
// north up, east to the right, the horizon as its edge.
type skyTrack struct {
	pass    passes.Pass
	horizon unit.Horizon
	points  []unit.AzEl // along the pass, evenly in time
	marks   []skyMark
	sun     unit.AzEl // at TCA
	sunlit  bool      // the satellite, at TCA
	zone    *time.Location
	zoneTag string
}

// A skyMark is an instant written beside the track.
type skyMark struct {
	at   unit.AzEl
	text string
}

// trackPoints is how many points a track has: one every other second in low
// orbit.
const trackPoints = 400

// tickSteps are the intervals of the times along a track; the smallest with at
// most maxTicks of them is taken.
var tickSteps = [...]time.Duration{
	30 * time.Second, time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 4 * time.Hour, 12 * time.Hour, 24 * time.Hour,
}

const maxTicks = 7

func newSkyTrack(s *passSearch, p passes.Pass) (*skyTrack, error) {
	i := slices.IndexFunc(s.sets, func(e elements.Set) bool { return e.NoradID == p.NoradID })
	if i < 0 {
		return nil, fmt.Errorf("draw %s: its elements are gone", p.ID)
	}
	o, err := passes.New(s.sets[i])
	if err != nil {
		return nil, fmt.Errorf("draw the pass: %w", err)
	}
	t := &skyTrack{pass: p, horizon: s.options.Horizon, sun: passes.Sun(s.site, p.TCA.Time), zone: s.zone, zoneTag: "UTC"}
	if s.zone != time.UTC {
		t.zoneTag, _ = p.TCA.Time.In(s.zone).Zone()
	}
	if t.sunlit, err = o.Sunlit(p.TCA.Time); err != nil {
		return nil, fmt.Errorf("draw the pass: %w", err)
	}
	for i := range trackPoints + 1 {
		at := p.AOS.Time.Add(p.Duration() * time.Duration(i) / trackPoints)
		l, err := o.Look(s.site, at)
		if err != nil {
			break // it decays during this pass
		}
		t.points = append(t.points, l.Pointing())
	}
	step := tickSteps[len(tickSteps)-1]
	for _, d := range tickSteps {
		if p.Duration()/d <= maxTicks {
			step = d
			break
		}
	}
	layout := "15:04"
	if step < time.Minute {
		layout = time.TimeOnly
	}
	// Not right beside the words at its ends.
	gap := p.Duration() / 16
	for at := p.AOS.Time.Truncate(step).Add(step); at.Before(p.LOS.Time.Add(-gap)); at = at.Add(step) {
		if at.Before(p.AOS.Time.Add(gap)) {
			continue
		}
		if l, err := o.Look(s.site, at); err == nil {
			t.marks = append(t.marks, skyMark{l.Pointing(), at.In(s.zone).Format(layout)})
		}
	}
	return t, nil
}

// legend says in words what is drawn.
func (t *skyTrack) legend() []string {
	clock := func(e passes.Event) string { return e.Time.In(t.zone).Round(time.Second).Format(time.TimeOnly) }
	p := t.pass
	light := "in the Earth's shadow"
	if t.sunlit {
		light = "in sunlight"
	}
	sun := fmt.Sprintf("Sun below the horizon (%.0f°)", t.sun.ElDeg)
	if t.sun.ElDeg > 0 {
		sun = fmt.Sprintf("Sun at azimuth %.0f°, elevation %.0f°", degrees360(t.sun.AzDeg), t.sun.ElDeg)
	}
	return []string{
		fmt.Sprintf("%s, %s %s, %s", p.Satellite, p.TCA.Time.In(t.zone).Format(time.DateOnly), t.zoneTag, p.ID),
		fmt.Sprintf("rises %s at %.0f°, highest %.0f° at %s, sets %s at %.0f°", clock(p.AOS), degrees360(p.AOS.AzDeg), p.MaxElDeg, clock(p.TCA), clock(p.LOS), degrees360(p.LOS.AzDeg)),
		fmt.Sprintf("%s; satellite %s when highest", sun, light),
	}
}

// disc is where a direction lies, in units of the disc's radius, x to the
// east and y to the north.
func disc(d unit.AzEl) (x, y float64) {
	s, c := math.Sincos(d.AzDeg * math.Pi / 180)
	r := (90 - d.ElDeg) / 90
	return r * s, r * c
}
