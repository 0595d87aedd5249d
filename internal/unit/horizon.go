package unit

import (
	"fmt"
	"sort"
)

// A Horizon gives the least usable elevation for every azimuth: flat, or
// linear between points round the full circle. The zero value is flat at 0°.
type Horizon struct {
	flat   float64
	points []AzEl // sorted by azimuth, at least two; nil when flat
}

// FlatHorizon is the same elevation in degrees all round.
func FlatHorizon(elDeg float64) Horizon { return Horizon{flat: elDeg} }

// NewHorizon builds a mask from points of azimuth [0, 360) and elevation
// [-5, 90]. It refuses doubles and gaps of more than 180°, which are typing
// errors more often than not (hazard M-04).
func NewHorizon(points []AzEl) (Horizon, error) {
	if len(points) < 2 {
		return Horizon{}, fmt.Errorf("a horizon needs at least two points, got %d; for a flat one give its elevation", len(points))
	}
	p := append([]AzEl(nil), points...)
	sort.Slice(p, func(i, j int) bool { return p[i].AzDeg < p[j].AzDeg })
	for i, q := range p {
		if !(q.AzDeg >= 0 && q.AzDeg < 360) {
			return Horizon{}, fmt.Errorf("horizon point azimuth %v° is outside 0..360", q.AzDeg)
		}
		if !(q.ElDeg >= -5 && q.ElDeg <= 90) {
			return Horizon{}, fmt.Errorf("horizon at azimuth %v°: elevation %v° is outside -5..90", q.AzDeg, q.ElDeg)
		}
		next := p[(i+1)%len(p)]
		gap := Norm360(next.AzDeg - q.AzDeg)
		if gap == 0 {
			return Horizon{}, fmt.Errorf("horizon has two points at azimuth %v°", q.AzDeg)
		}
		if gap > 180 {
			return Horizon{}, fmt.Errorf("horizon has no point between azimuth %v° and %v°: cover the full circle", q.AzDeg, next.AzDeg)
		}
	}
	return Horizon{points: p}, nil
}

// At is the least usable elevation in degrees at an azimuth in degrees.
func (h Horizon) At(azDeg float64) float64 {
	if h.points == nil {
		return h.flat
	}
	az := Norm360(azDeg)
	i := sort.Search(len(h.points), func(i int) bool { return h.points[i].AzDeg > az })
	a := h.points[(i+len(h.points)-1)%len(h.points)]
	b := h.points[i%len(h.points)]
	span := Norm360(b.AzDeg - a.AzDeg)
	return a.ElDeg + (b.ElDeg-a.ElDeg)*Norm360(az-a.AzDeg)/span
}

// Flat reports whether the horizon is the same all round, and its elevation.
func (h Horizon) Flat() (elDeg float64, ok bool) { return h.flat, h.points == nil }

// Points returns the points of a horizon that is not flat, by azimuth.
func (h Horizon) Points() []AzEl { return append([]AzEl(nil), h.points...) }

// Min is the lowest elevation of the horizon in degrees.
func (h Horizon) Min() float64 {
	if h.points == nil {
		return h.flat
	}
	m := h.points[0].ElDeg
	for _, p := range h.points {
		m = min(m, p.ElDeg)
	}
	return m
}
