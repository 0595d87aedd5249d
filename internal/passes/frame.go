package passes

import (
	"math"
	"time"

	"gsd-mcp/internal/unit"
)

const (
	rad = math.Pi / 180
	deg = 180 / math.Pi
)

type vec struct{ x, y, z float64 }

func (a vec) dot(b vec) float64 { return a.x*b.x + a.y*b.y + a.z*b.z }
func (a vec) norm() float64     { return math.Sqrt(a.dot(a)) }
func (a vec) sub(b vec) vec     { return vec{a.x - b.x, a.y - b.y, a.z - b.z} }

// turned is the vector turned about the Earth's axis by minus the angle.
func (a vec) turned(sin, cos float64) vec {
	return vec{cos*a.x + sin*a.y, cos*a.y - sin*a.x, a.z}
}

// WGS-84.
const (
	equatorKm  = 6378.137
	flattening = 1 / 298.257223563
	polarKm    = equatorKm * (1 - flattening)
)

var j2000 = time.Date(2000, time.January, 1, 12, 0, 0, 0, time.UTC)

// days2000 counts days since J2000. UT1 is taken as UTC: it differs by less
// than 0.9 s, which moves a look angle by less than 0.06°, usually 0.003°.
func days2000(t time.Time) float64 {
	// Through Unix seconds: a Duration ends after 292 years.
	s := t.Unix() - j2000.Unix()
	return (float64(s) + float64(t.Nanosecond())*1e-9) / 86400
}

// spin is the rate of GMST in radians per second.
const spin = (876600*3600 + 8640184.812866) / 36525 / 86400 * 2 * math.Pi / 86400

// gmst is Greenwich mean sidereal time (IAU 1982) in radians; it turns TEME
// into the Earth-fixed frame (polar motion left out, 0.00001°).
func gmst(days float64) float64 {
	t := days / 36525
	s := 67310.54841 + t*((876600*3600+8640184.812866)+t*(0.093104-6.2e-6*t))
	return math.Mod(s, 86400) * (2 * math.Pi / 86400)
}

// A spot is a site ready for look angles: its Earth-fixed place and its
// horizon's axes.
type spot struct {
	at              vec
	east, north, up vec
}

func newSpot(s unit.Site) spot {
	sf, cf := math.Sincos(s.LatDeg * rad)
	sl, cl := math.Sincos(s.LonDeg * rad)
	const e2 = flattening * (2 - flattening)
	n := equatorKm / math.Sqrt(1-e2*sf*sf)
	h := s.AltM / 1000
	return spot{
		at:    vec{(n + h) * cf * cl, (n + h) * cf * sl, (n*(1-e2) + h) * sf},
		east:  vec{-sl, cl, 0},
		north: vec{-sf * cl, -sf * sl, cf},
		up:    vec{cf * cl, cf * sl, sf},
	}
}

// components are the parts of the way from the spot to an Earth-fixed place
// along its axes: east, north, up.
func (p *spot) components(place vec) (e, n, u float64) {
	d := place.sub(p.at)
	return d.dot(p.east), d.dot(p.north), d.dot(p.up)
}

// fixed turns a TEME position and velocity into the Earth-fixed frame, where
// the velocity is that seen by somebody on the ground.
func fixed(r, v vec, theta float64) (vec, vec) {
	s, c := math.Sincos(theta)
	p := vec{c*r.x + s*r.y, -s*r.x + c*r.y, r.z}
	w := vec{c*v.x + s*v.y + spin*p.y, -s*v.x + c*v.y - spin*p.x, v.z}
	return p, w
}

// altitudeKm is the height over the WGS-84 ellipsoid, good to 20 m below
// 2000 km (the ellipsoid's radius at the geocentric latitude).
func altitudeKm(r vec) float64 {
	d := r.norm()
	s := r.z / d
	c2 := 1 - s*s
	return d - polarKm*equatorKm/math.Sqrt(polarKm*polarKm*c2+equatorKm*equatorKm*s*s)
}

// Refraction is how much higher than its true place something appears, in
// degrees, for a true elevation in degrees (Saemundsson 1986; 10 °C, 1010
// hPa; within 0.1' over 15°, a few minutes of arc at the horizon). Below -1°
// nothing is seen, and the value at -1° stays.
func Refraction(elDeg float64) float64 {
	h := math.Max(elDeg, -1)
	if h > 89.9 {
		return 0
	}
	return math.Max(0, 1.02/math.Tan((h+10.3/(h+5.11))*rad)/60)
}
