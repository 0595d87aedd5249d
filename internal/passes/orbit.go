// Package passes says where a satellite is and when it can be heard: SGP4 at
// any instant, look angles on the WGS-84 ellipsoid, Doppler, the Sun, and the
// passes over a site. It is pure: it must never read a clock, a file or a port.
//
// The numbers agree with Skyfield to 0.0005° (UT1 = UTC, no polar motion);
// docs/orbits.md says what that means for a real satellite.
package passes

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// Kinds of error; test with errors.Is.
var (
	// ErrDecayed: the satellite is below 100 km at that time, or was before.
	ErrDecayed = errors.New("satellite has decayed")
	// ErrPropagation: SGP4 gives no position from these elements.
	ErrPropagation = errors.New("the elements cannot be propagated")
)

// An Error says for which satellite and when there is no position.
type Error struct {
	Kind      error // ErrDecayed or ErrPropagation
	Satellite string
	At        time.Time // when it decayed or failed
	Detail    string
}

// Error is a sentence for operators.
func (e *Error) Error() string {
	return fmt.Sprintf("%s: %v: %s", e.Satellite, e.Kind, e.Detail)
}

// Unwrap gives the kind.
func (e *Error) Unwrap() error { return e.Kind }

// A Look is where a satellite stands in the sky of a site.
type Look struct {
	AzDeg        float64 // 0 to 360, clockwise from true north
	ElDeg        float64 // geometric, without refraction
	RangeKm      float64
	RangeRateKmS float64 // positive: receding
}

// Pointing is the direction alone.
func (l Look) Pointing() unit.AzEl { return unit.AzEl{AzDeg: l.AzDeg, ElDeg: l.ElDeg} }

// An Orbit is a satellite's path from one element set. It is safe for
// concurrent use.
type Orbit struct {
	set  elements.Set
	days float64 // the epoch, days since J2000
	prop propagator
	drag dragTerm

	mu     sync.Mutex
	last   node  // the node of the latest Look
	walked decay // how far the search for decay has come
}

// New prepares an orbit. The error is ErrPropagation when SGP4 fails at the
// epoch, or says which element is out of range.
func New(set elements.Set) (*Orbit, error) {
	p, err := newPropagator(set)
	if err != nil {
		return nil, err
	}
	o := &Orbit{set: set, days: days2000(set.Epoch), prop: p, drag: newDragTerm(set)}
	if n := o.node(0); !n.good() {
		return nil, &Error{Kind: ErrPropagation, Satellite: set.Label(), At: set.Epoch, Detail: "no position at the epoch"}
	}
	return o, nil
}

// Set is the element set that the orbit was made from.
func (o *Orbit) Set() elements.Set { return o.set }

// since is t in seconds after the epoch; at is the inverse.
func (o *Orbit) since(t time.Time) float64 {
	s := t.Unix() - o.set.Epoch.Unix()
	return float64(s) + float64(t.Nanosecond()-o.set.Epoch.Nanosecond())*1e-9
}

func (o *Orbit) at(ts float64) time.Time {
	whole := math.Floor(ts)
	return time.Unix(o.set.Epoch.Unix()+int64(whole), int64(o.set.Epoch.Nanosecond())+int64(math.Round((ts-whole)*1e9))).UTC()
}

// theta is the sidereal angle at ts.
func (o *Orbit) theta(ts float64) float64 { return gmst(o.days + ts/86400) }

// A node is an exact SGP4 state with what carries it to nearby instants: the
// f and g series of two bodies to the fifth order (Bate, Mueller, White 1971,
// section 5.5), and the oblateness to the second.
type node struct {
	k       int
	ts      float64
	r, v    vec
	u, p, q float64 // mu/r³, r·v/r², v²/r²-u
	flat    vec     // acceleration of the oblateness, km/s²
	ok      bool    // false: not evaluated yet
}

// node evaluates SGP4 at whole second k of the library's grid.
func (o *Orbit) node(k int) node {
	n := node{k: k, ok: true}
	n.ts, n.r, n.v = o.prop.at(k)
	r2 := n.r.dot(n.r)
	n.u = mu / (r2 * math.Sqrt(r2))
	n.p = n.r.dot(n.v) / r2
	n.q = n.v.dot(n.v)/r2 - n.u
	c := -1.5 * j2 * radiusKm * radiusKm / r2 * n.u
	z := 5 * n.r.z * n.r.z / r2
	n.flat = vec{c * (1 - z) * n.r.x, c * (1 - z) * n.r.y, c * (3 - z) * n.r.z}
	return n
}

// state is position and velocity at ts, near the node.
func (n *node) state(ts float64) (r, v vec) {
	d := ts - n.ts
	u, p, q := n.u, n.p, n.q
	f2, f3 := -u/2, u*p/2
	f4, f5 := u*(3*q-15*p*p+u)/24, u*p*(7*p*p-3*q-u)/8
	g3, g4, g5 := -u/6, u*p/4, u*(9*q-45*p*p+u)/120
	f := 1 + d*d*(f2+d*(f3+d*(f4+d*f5)))
	g := d * (1 + d*d*(g3+d*(g4+d*g5)))
	fv := d * (2*f2 + d*(3*f3+d*(4*f4+d*5*f5)))
	gv := 1 + d*d*(3*g3+d*(4*g4+d*5*g5))
	h := d * d / 2
	r = vec{f*n.r.x + g*n.v.x + h*n.flat.x, f*n.r.y + g*n.v.y + h*n.flat.y, f*n.r.z + g*n.v.z + h*n.flat.z}
	v = vec{fv*n.r.x + gv*n.v.x + d*n.flat.x, fv*n.r.y + gv*n.v.y + d*n.flat.y, fv*n.r.z + gv*n.v.z + d*n.flat.z}
	return r, v
}

// Sane distances from the Earth's centre in km: no lower than the poles, no
// higher than the Moon and back.
const (
	lowestKm  = 6356
	highestKm = 1e6
)

// good reports whether the state can be that of a satellite. SGP4's own error
// codes are lost in go-satellite.
func (n *node) good() bool {
	d := n.r.norm()
	return lowestKm <= d && d <= highestKm && n.v.norm() <= 20
}

// nearest is the grid second nearest to ts.
func nearest(ts float64) int { return int(math.Round(ts)) }

// look evaluates the state at ts as seen from p.
func (o *Orbit) look(n *node, p *spot, ts float64) Look {
	r, v := n.state(ts)
	return lookFrom(p, r, v, o.theta(ts))
}

func lookFrom(p *spot, r, v vec, theta float64) Look {
	r, v = fixed(r, v, theta)
	d := r.sub(p.at)
	e, n, u := d.dot(p.east), d.dot(p.north), d.dot(p.up)
	rng := d.norm()
	return Look{
		AzDeg:        unit.Norm360(math.Atan2(e, n) * deg),
		ElDeg:        math.Atan2(u, math.Hypot(e, n)) * deg,
		RangeKm:      rng,
		RangeRateKmS: d.dot(v) / rng,
	}
}

// Look is where the satellite stands at t as seen from site. It fails with
// ErrDecayed from the first instant below 100 km on, and with ErrPropagation
// where SGP4 gives no position.
func (o *Orbit) Look(site unit.Site, t time.Time) (Look, error) {
	if err := site.Validate(); err != nil {
		return Look{}, err
	}
	n, ts, err := o.locate(t)
	if err != nil {
		return Look{}, err
	}
	p := newSpot(site)
	return o.look(&n, &p, ts), nil
}

// locate finds the checked node for t.
func (o *Orbit) locate(t time.Time) (node, float64, error) {
	ts := o.since(t)
	if !(math.Abs(ts) < maxSpanS) {
		return node{}, 0, &Error{Kind: ErrPropagation, Satellite: o.set.Label(), At: t, Detail: "more than ten years from the epoch"}
	}
	if err := o.decayedBy(ts); err != nil {
		return node{}, 0, err
	}
	k := nearest(ts)
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.last.ok || o.last.k != k {
		o.last = o.node(k)
	}
	if !o.last.good() {
		return node{}, 0, &Error{Kind: ErrPropagation, Satellite: o.set.Label(), At: t, Detail: "SGP4 puts it at " + distance(o.last.r)}
	}
	return o.last, ts, nil
}

// maxSpanS is how far from its epoch an orbit is evaluated at all: SGP4 means
// nothing there, and a resonant orbit costs milliseconds.
const maxSpanS = 10 * 366 * 86400.0

func distance(r vec) string {
	return fmt.Sprintf("%.0f km from the Earth's centre", r.norm())
}

// A Subpoint is the place under a satellite and its height.
type Subpoint struct {
	LatDeg, LonDeg float64 // geocentric latitude turned geodetic, east positive
	AltKm          float64 // over the ellipsoid
}

// Subpoint is the place on the Earth that the satellite stands over.
func (o *Orbit) Subpoint(t time.Time) (Subpoint, error) {
	n, ts, err := o.locate(t)
	if err != nil {
		return Subpoint{}, err
	}
	r, v := n.state(ts)
	r, _ = fixed(r, v, o.theta(ts))
	const e2 = flattening * (2 - flattening)
	p := math.Hypot(r.x, r.y)
	lat := math.Atan2(r.z, p*(1-e2))
	c := 0.0
	for range 5 { // converges to micrometres for anything in orbit
		s := math.Sin(lat)
		c = equatorKm / math.Sqrt(1-e2*s*s)
		lat = math.Atan2(r.z+c*e2*s, p)
	}
	sl, cl := math.Sincos(lat)
	alt := p*cl + r.z*sl - equatorKm*math.Sqrt(1-e2*sl*sl)
	return Subpoint{lat * deg, unit.Diff(math.Atan2(r.y, r.x)*deg, 0), alt}, nil
}

const lightKmS = 299792.458

// Doppler is the shift in Hz of a signal of frequencyHz that the satellite
// sends, as received: negative while it recedes. First order in v/c; the
// second adds 3 Hz at 10 GHz.
func Doppler(frequencyHz, rangeRateKmS float64) float64 {
	return -frequencyHz * rangeRateKmS / lightKmS
}
