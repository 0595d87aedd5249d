package passes

import (
	"fmt"
	"math"

	"gsd-mcp/internal/elements"
)

// decayKm is the geodetic altitude under which no orbit goes on.
const decayKm = 100

// A decay is how far an orbit has been walked from its epoch in search of the
// first altitude below decayKm. Nothing after that instant may be believed:
// days later SGP4 brings the satellite back, far out and without an error.
type decay struct {
	until float64 // seconds since the epoch; walked and found in orbit
	found bool
	at    float64 // the first instant below decayKm, when found
}

// decayedBy reports decay at or before ts.
func (o *Orbit) decayedBy(ts float64) error {
	at, found := o.decayTime(ts)
	if !found || at > ts {
		return nil
	}
	when := o.at(at)
	return &Error{
		Kind: ErrDecayed, Satellite: o.set.Label(), At: when,
		Detail: fmt.Sprintf("below %d km from %s on", decayKm, when.Format("2006-01-02 15:04Z")),
	}
}

// decayTime walks on to ts and returns the first instant below decayKm found
// so far.
func (o *Orbit) decayTime(ts float64) (at float64, found bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := &o.walked
	if !w.found && ts > w.until {
		o.walk(w, ts)
	}
	return w.at, w.found
}

// safePerigeeKm is an osculating perigee height that cannot reach decayKm
// within a stride: drag lowers it by a few km per revolution at most, the
// oblateness hides up to 21 km, and short-period terms 20 km.
const safePerigeeKm = 180

// walk looks for decay between w.until and ts. Orbits that have nothing to
// fear cost a handful of evaluations; a low perigee is followed closely.
func (o *Orbit) walk(w *decay, ts float64) {
	period := o.set.Period().Seconds()
	for w.until < ts {
		n := o.node(nearest(w.until))
		perigee := osculatingPerigeeKm(n.r, n.v)
		if perigee > safePerigeeKm {
			w.until += o.stride(w.until, perigee, period)
			continue
		}
		// One revolution in steps, fine ones where it is low.
		end := w.until + period
		coarse := period / 40
		for t := w.until; t < end; {
			m := o.node(nearest(t))
			alt := altitudeKm(m.r)
			if !m.good() || alt < decayKm {
				w.found, w.at = true, o.firstBelow(math.Max(0, t-coarse), t)
				return
			}
			if t > ts {
				w.until = t
				return
			}
			// A satellite falls at most 3 km in a second, and that only far out.
			if t += coarse; alt < decayKm+alarmKm {
				t -= 0.9 * coarse
			}
		}
		w.until = end
	}
}

// alarmKm over decayKm is where walk looks closely: the ellipsoid and the
// orbit's shape take less than this between two coarse steps of a low orbit.
const alarmKm = 60

// Strides of walk in seconds, longest first.
var strides = [...]float64{30 * 86400, 7 * 86400, 2 * 86400, 86400 / 2, 2 * 3600}

// lunisolarFall bounds what Moon and Sun take off the perigee of a high orbit,
// in km/s (a Molniya loses a few km a day at worst).
const lunisolarFall = 20.0 / 86400

// stride is how far one may go from t, where the perigee is safe: twice what
// SGP4's drag takes off the semi-major axis must fit into the margin.
func (o *Orbit) stride(t, perigee, period float64) float64 {
	margin := perigee - safePerigeeKm
	for _, s := range strides {
		fall := 2 * math.Abs(o.drag.axis(t)-o.drag.axis(t+s))
		if period > 225*60 {
			fall += lunisolarFall * s
		}
		if fall < margin {
			return s
		}
	}
	return strides[len(strides)-1]
}

// A dragTerm is SGP4's secular change of the semi-major axis (Spacetrack
// Report 3): a = km * (1 - c1 t - d2 t² - d3 t³ - d4 t⁴)², t in minutes.
type dragTerm struct{ km, c1, d2, d3, d4 float64 }

func newDragTerm(s elements.Set) dragTerm {
	b := brouwer(s)
	e, sfour := s.Eccentricity, 78.0
	if perigee := b.perigeeKm(e); perigee < 156 {
		sfour = dragHeight(perigee)
	}
	q := math.Pow((120-sfour)/radiusKm, 4)
	sfour = sfour/radiusKm + 1
	tsi := 1 / (b.a - sfour)
	eta := b.a * e * tsi
	eta2, eeta, psi := eta*eta, e*eta, math.Abs(1-eta*eta)
	ci := math.Cos(s.InclinationDeg * rad)
	c2 := q * math.Pow(tsi, 4) / math.Pow(psi, 3.5) * b.no * (b.a*(1+1.5*eta2+eeta*(4+eta2)) +
		0.375*j2*tsi/psi*(3*ci*ci-1)*(8+3*eta2*(8+eta2)))
	d := dragTerm{km: b.a * radiusKm, c1: s.BStar * c2}
	if b.perigeeKm(e) < 220 || 2*math.Pi/b.no >= 225 {
		return d
	}
	d.d2 = 4 * b.a * tsi * d.c1 * d.c1
	t := d.d2 * tsi * d.c1 / 3
	d.d3 = (17*b.a + sfour) * t
	d.d4 = 0.5 * t * b.a * tsi * (221*b.a + 31*sfour) * d.c1
	return d
}

// axis is the semi-major axis in km at ts seconds after the epoch.
func (d dragTerm) axis(ts float64) float64 {
	t := ts / 60
	f := 1 - t*(d.c1+t*(d.d2+t*(d.d3+t*d.d4)))
	return d.km * f * f
}

// firstBelow bisects the first instant that is no longer in orbit.
func (o *Orbit) firstBelow(low, high float64) float64 {
	for high-low > 0.5 {
		mid := (low + high) / 2
		m := o.node(nearest(mid))
		if !m.good() || altitudeKm(m.r) < decayKm {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// osculatingPerigeeKm is the perigee height of the ellipse through a state;
// -radiusKm when there is none.
func osculatingPerigeeKm(r, v vec) float64 {
	d := r.norm()
	energy := v.dot(v)/2 - mu/d
	if !(energy < 0) {
		return -radiusKm
	}
	a := -mu / (2 * energy)
	h := vec{r.y*v.z - r.z*v.y, r.z*v.x - r.x*v.z, r.x*v.y - r.y*v.x}
	e := math.Sqrt(math.Max(0, 1-h.dot(h)/(mu*a)))
	return a*(1-e) - radiusKm
}
