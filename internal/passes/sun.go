package passes

import (
	"math"
	"time"

	"gsd-mcp/internal/unit"
)

// sunVector is the apparent direction of the Sun in the frame of date (close
// enough to TEME) and its distance in km: the low-precision formulae of the
// Astronomical Almanac, 0.01° from 1950 to 2050.
func sunVector(days float64) (dir vec, distanceKm float64) {
	mean := 280.460 + 0.9856474*days
	anomaly := (357.528 + 0.9856003*days) * rad
	lambda := (mean + 1.915*math.Sin(anomaly) + 0.020*math.Sin(2*anomaly)) * rad
	eps := (23.439 - 0.0000004*days) * rad
	sl, cl := math.Sincos(lambda)
	se, ce := math.Sincos(eps)
	au := 1.00014 - 0.01671*math.Cos(anomaly) - 0.00014*math.Cos(2*anomaly)
	return vec{cl, ce * sl, se * sl}, au * 149597870.7
}

// Sun is where the centre of the Sun stands at t as seen from site, without
// refraction; within 0.02°.
func Sun(site unit.Site, t time.Time) unit.AzEl {
	d := days2000(t)
	dir, _ := sunVector(d)
	p, _ := fixed(dir, vec{}, gmst(d))
	s := newSpot(site)
	e, n, u := p.dot(s.east), p.dot(s.north), p.dot(s.up)
	return unit.AzEl{AzDeg: unit.Norm360(math.Atan2(e, n) * deg), ElDeg: math.Atan2(u, math.Hypot(e, n)) * deg}
}

// Sunlit reports whether the satellite sees at least half of the Sun's disc.
func (o *Orbit) Sunlit(t time.Time) (bool, error) {
	n, ts, err := o.locate(t)
	if err != nil {
		return false, err
	}
	r, _ := n.state(ts)
	return sunlit(r, o.days+ts/86400), nil
}

// sunlit compares directions at the satellite: the Sun's centre is hidden when
// it is nearer to the Earth's centre than the Earth's limb (a round Earth; the
// moment is right within seconds).
func sunlit(r vec, days float64) bool {
	dir, au := sunVector(days)
	toSun := vec{dir.x*au - r.x, dir.y*au - r.y, dir.z*au - r.z}
	d := r.norm()
	limb := math.Asin(math.Min(1, equatorKm/d))
	c := -toSun.dot(r) / (toSun.norm() * d)
	return math.Acos(math.Max(-1, math.Min(1, c))) > limb
}
