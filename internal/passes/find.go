package passes

import (
	"context"
	"math"
	"time"

	"gsd-mcp/internal/unit"
)

// Find lists the passes of one satellite over a site, in order of AOS. An
// empty answer is no error: Why says what is the matter. The answer does not
// depend on where the window begins or ends, but for the cuts.
//
// Passes that are up during the whole window, or never, are answers too. After
// decay no pass is offered; one under way ends there with a warning.
func Find(ctx context.Context, o *Orbit, site unit.Site, opt Options) ([]Pass, Why, error) {
	if err := site.Validate(); err != nil {
		return nil, WhyFound, err
	}
	if err := opt.validate(); err != nil {
		return nil, WhyFound, err
	}
	f := newFinder(o, newSpot(site), opt)
	return f.find(ctx, opt)
}

// How far a node carries, in radians of the orbit: for looking around, 0.1 km;
// for the figures reported, centimetres.
const (
	roughReach = 0.13
	nearReach  = 0.016
	// Crossings are reported to the millisecond, also those that last minutes
	// for a satellite far out, where SGP4's velocity is not quite the derivative
	// of its position.
	exactReachS = 1.5
)

// How good a sample has to be.
type grade int

const (
	rough grade = iota // to look around
	near               // for highest points and least ranges
	exact              // for crossings and what is reported
)

// Steps while the satellite may be seen: 45 s in low orbit.
const (
	fineStep    = 0.05 // radians of the orbit
	maxFineS    = 300.0
	footprintMg = 1.0 * rad // margin of the skipping rule: oblateness, precession, the plumb line
)

// A finder searches with one orbit over one site. It belongs to one goroutine.
type finder struct {
	o         *Orbit
	p         spot
	horizon   unit.Horizon
	lift      bool    // refraction
	sinLow    float64 // sine of the lowest horizon, geometric
	low       float64 // radians
	n         node
	reach     float64 // seconds around n for looking around
	nearS     float64 // and for highest points
	siteR     float64
	siteDir   vec
	footprint float64 // greatest central angle at which the satellite is up
	motion    float64 // fastest motion of the satellite, rad/s
	drift     float64 // fastest motion of the site and the orbit's plane, rad/s
	fast      bool    // the satellite outruns the site
	linger    float64 // seconds for which a satellite just past may still come into view, when fast
	failed    bool    // SGP4 gave no position
	evals     int
}

func newFinder(o *Orbit, p spot, opt Options) *finder {
	f := &finder{o: o, p: p, horizon: opt.Horizon, lift: opt.Refraction}
	low := opt.Horizon.Min()
	if f.lift {
		low = unlifted(low)
	}
	f.low = low * rad
	f.sinLow = math.Sin(f.low)
	f.siteR = p.at.norm()
	f.siteDir = vec{p.at.x / f.siteR, p.at.y / f.siteR, p.at.z / f.siteR}

	s := o.set
	a := o.drag.km
	apogee := a*(1+s.Eccentricity)*1.005 + 30
	perigee := math.Max(a*(1-s.Eccentricity)*0.995-30, lowestKm)
	f.footprint = math.Acos(math.Min(1, f.siteR*math.Cos(f.low)/apogee)) - f.low
	f.motion = 1.01 * math.Sqrt(mu*(2/perigee-1/math.Max(a, perigee))) / perigee
	f.drift = spin*math.Hypot(f.siteDir.x, f.siteDir.y) + 3e-6 // nodes move 10° a day at most
	slowest := math.Sqrt(mu*math.Max(0, a*(1-s.Eccentricity*s.Eccentricity))) / (apogee * apogee)
	f.fast = slowest > 4*f.drift && f.footprint < 65*rad
	// The part of the orbit in view opens like the square root of time as the
	// plane comes near, the satellite moves in proportion to it: after this time
	// it is ahead for good.
	f.linger = 4 * f.drift * math.Tan(f.footprint+footprintMg) / (slowest * slowest)
	return f
}

// unlifted is the geometric elevation that refraction lifts to el.
func unlifted(el float64) float64 {
	g := el
	for range 20 {
		g = el - Refraction(g)
	}
	return g
}

// A sample is how the satellite stands at one instant.
type sample struct {
	ts   float64
	sin  float64 // sine of the elevation
	rate float64 // its derivative, per second
	rng  float64 // km
	away float64 // range rate, km/s
	pos  vec     // Earth-fixed, km
	vel  vec     // Earth-fixed axes, inertial velocity
}

// at evaluates with a node no farther away than the grade allows.
func (f *finder) at(ts float64, g grade) sample {
	limit := f.reach
	switch g {
	case near:
		limit = f.nearS
	case exact:
		limit = exactReachS
	}
	if !f.n.ok || math.Abs(ts-f.n.ts) > limit {
		f.n = f.o.node(nearest(ts))
		f.evals++
		if !f.n.good() {
			f.failed = true
		}
		r := f.n.r.norm()
		w := math.Max(f.n.v.norm()/r, math.Sqrt(mu/r)/r)
		f.reach, f.nearS = roughReach/w, math.Max(exactReachS, nearReach/w)
	}
	r, v := f.n.state(ts)
	pos, vel := fixed(r, v, f.o.theta(ts))
	d := pos.sub(f.p.at)
	rng := d.norm()
	away := d.dot(vel) / rng
	s := d.dot(f.p.up) / rng
	return sample{
		ts: ts, sin: s, rate: (vel.dot(f.p.up) - s*away) / rng, rng: rng, away: away,
		pos: pos, vel: vec{vel.x - spin*pos.y, vel.y + spin*pos.x, vel.z},
	}
}

func (f *finder) in(s sample) bool { return s.sin >= f.sinLow }

// step is how far one may go from s without missing anything: a fine step
// where the satellite is up or may soon be, else the time for which it is
// certainly below the horizon.
func (f *finder) step(s sample) (seconds float64, fine bool) {
	r := s.pos.norm()
	fineS := math.Min(maxFineS, fineStep*r/s.vel.norm())
	if s.sin >= f.sinLow {
		return fineS, true
	}
	h := vec{s.pos.y*s.vel.z - s.pos.z*s.vel.y, s.pos.z*s.vel.x - s.pos.x*s.vel.z, s.pos.x*s.vel.y - s.pos.y*s.vel.x}
	hn := h.norm()
	sinOff := f.siteDir.dot(h) / hn // how far the site lies off the plane of the orbit
	off := math.Asin(math.Max(-1, math.Min(1, math.Abs(sinOff))))
	width := f.footprint + footprintMg
	skip := (off - width) / f.drift
	// The angle that the satellite has to go to be beside the site.
	x := f.siteDir.dot(s.pos) / r
	t := vec{(h.y*s.pos.z - h.z*s.pos.y) / hn / r, (h.z*s.pos.x - h.x*s.pos.z) / hn / r, (h.x*s.pos.y - h.y*s.pos.x) / hn / r}
	ahead := math.Atan2(f.siteDir.dot(t), x)
	if ahead < 0 {
		ahead += 2 * math.Pi
	}
	cosOff := math.Cos(off)
	now := halfWidth(width, cosOff)
	switch {
	case !f.fast:
		skip = math.Max(skip, (math.Acos(math.Max(-1, math.Min(1, x)))-width)/(f.motion+f.drift))
	case ahead < 2*math.Pi-halfWidth(width+f.drift*f.linger, cosOff): // and stays behind the site
		// The first bound forgets that the site moves, so it is too long; the
		// second lets it move for that long, so it is safe.
		if first := (ahead - now) / f.motion; first > 0 {
			skip = math.Max(skip, (ahead-halfWidth(width+f.drift*first, cosOff))/f.motion)
		}
	}
	if skip > fineS {
		return skip, false
	}
	return fineS, true
}

// halfWidth is half the part of the orbit from which a site is within width,
// when it lies off the plane by the angle of that cosine: 0 for none.
func halfWidth(width, cosOff float64) float64 {
	if width >= math.Pi/2 {
		return math.Pi
	}
	c := math.Cos(width)
	if c >= cosOff {
		return 0
	}
	return math.Acos(c / cosOff)
}

// A stay is a time above the lowest horizon, in seconds since the epoch.
type stay struct {
	rise, set       float64
	riseCut, setCut bool
	top, topSin     float64
	nearest, nearKm float64
	peaks           bool // top is a maximum, not an end
}

func (s *stay) offerTop(x sample, peak bool) {
	if x.sin > s.topSin {
		s.top, s.topSin, s.peaks = x.ts, x.sin, peak
	}
}

func (s *stay) offerNear(x sample) {
	if x.rng < s.nearKm {
		s.nearest, s.nearKm = x.ts, x.rng
	}
}

func newStay(x sample, cut bool) *stay {
	s := &stay{rise: x.ts, riseCut: cut, topSin: -2, nearKm: math.Inf(1)}
	s.offerTop(x, false)
	s.offerNear(x)
	return s
}

// scan finds the stays between two instants. It gives up when ctx ends or SGP4
// fails.
func (f *finder) scan(ctx context.Context, from, to float64) []stay {
	var stays []stay
	var open *stay
	finish := func(x sample, cut bool) {
		open.set, open.setCut = x.ts, cut
		open.offerTop(x, false)
		open.offerNear(x)
		if open.set > open.rise && open.topSin >= f.sinLow {
			stays = append(stays, *open)
		}
		open = nil
	}
	cur := f.at(from, exact)
	if f.in(cur) {
		open = newStay(cur, true)
	}
	for n := 0; cur.ts < to && !f.failed; n++ {
		if n%256 == 255 && ctx.Err() != nil {
			return stays
		}
		d, fine := f.step(cur)
		ts, last := cur.ts+d, false
		if ts >= to {
			ts, last = to, true
		}
		g := rough
		if last {
			g = exact
		}
		next := f.at(ts, g)
		mid, peak := sample{}, false
		split := false
		if fine && cur.rate*next.rate < 0 {
			if mid, split = f.extremum(cur, next); split {
				peak = cur.rate > 0
			}
		}
		points := [3]sample{cur, mid, next}
		list := points[:]
		if !split {
			points[1] = next
			list = points[:2]
		}
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			switch {
			case !f.in(a) && f.in(b):
				if x, ok := f.crossing(a, b, 1); ok {
					open = newStay(x, false)
				}
			case f.in(a) && !f.in(b) && open != nil:
				x, ok := f.crossing(a, b, -1)
				if !ok {
					x = a
				}
				f.offerClosest(open, a, x)
				finish(x, false)
			}
			if open != nil {
				if split && peak && i == 1 {
					open.offerTop(b, true)
				}
				if a.ts >= open.rise {
					f.offerClosest(open, a, b)
				} else {
					f.offerClosest(open, f.at(open.rise, exact), b)
				}
			}
		}
		cur = next
	}
	if open != nil {
		finish(cur, true)
	}
	return stays
}

// offerClosest looks for the least range between two samples of a stay.
func (f *finder) offerClosest(s *stay, a, b sample) {
	if !(a.away < 0 && b.away >= 0) {
		return
	}
	lo, hi := a, b
	for range 40 {
		ts := lo.ts - lo.away*(hi.ts-lo.ts)/(hi.away-lo.away)
		if !(ts > lo.ts && ts < hi.ts) {
			break
		}
		x := f.at(ts, near)
		s.offerNear(x)
		if math.Abs(x.away) < 1e-7 || hi.ts-lo.ts < 1e-3 {
			break
		}
		// Keep the ends from sticking: halve the far one (Illinois).
		if x.away < 0 {
			lo = x
			hi.away /= 2
		} else {
			hi = x
			lo.away /= 2
		}
	}
}

// extremum finds the highest or lowest point between two samples whose rates
// have opposite signs. It is not worth an exact answer, and there is none,
// where it cannot matter: a peak well below the horizon, a dip well above it.
func (f *finder) extremum(a, b sample) (sample, bool) {
	const care = 0.02 // sine; far more than a rough sample is off
	ts := hermiteTurn(a, b)
	guess := hermite(a, b, ts)
	peak := a.rate > 0
	if peak && !f.in(a) && !f.in(b) && guess < f.sinLow-care {
		return sample{}, false
	}
	if !peak && guess > f.sinLow+care {
		return sample{}, false
	}
	if !peak && !f.in(a) && !f.in(b) {
		return sample{}, false
	}
	lo, hi := a, b
	x := f.at(ts, near)
	for range 40 {
		if math.Abs(x.rate) < 1e-10 || hi.ts-lo.ts < 1e-3 {
			break
		}
		if x.rate*a.rate > 0 {
			lo = x
			hi.rate /= 2
		} else {
			hi = x
			lo.rate /= 2
		}
		ts = lo.ts - lo.rate*(hi.ts-lo.ts)/(hi.rate-lo.rate)
		if !(ts > lo.ts && ts < hi.ts) {
			break
		}
		x = f.at(ts, near)
	}
	return x, true
}

// crossing finds where the sine of the elevation goes through the horizon
// between two samples: upwards for sign 1, downwards for -1. The samples may be
// rough, so the root may lie a little outside; there may be none in a grazing
// pass.
func (f *finder) crossing(a, b sample, sign float64) (sample, bool) {
	ts := hermiteRoot(a, b, f.sinLow)
	const slack = 5 // seconds that a rough sample may be wrong by
	lo, hi := a.ts-slack, b.ts+slack
	for range 60 {
		x := f.at(ts, exact)
		g := sign * (x.sin - f.sinLow)
		if g < 0 {
			lo = ts
		} else {
			hi = ts
		}
		next := ts - (x.sin-f.sinLow)/x.rate
		if !(next >= lo && next <= hi) {
			next = (lo + hi) / 2
		}
		if math.Abs(next-ts) < 1e-7 {
			return x, math.Abs(x.sin-f.sinLow) < 1e-6
		}
		ts = next
	}
	return sample{}, false
}

// hermite is the cubic through two samples.
func hermite(a, b sample, ts float64) float64 {
	h := b.ts - a.ts
	u := (ts - a.ts) / h
	return a.sin*(1+2*u)*(1-u)*(1-u) + h*a.rate*u*(1-u)*(1-u) + b.sin*u*u*(3-2*u) - h*b.rate*u*u*(1-u)
}

// hermiteRoot is where that cubic meets level, by bisection: cheap beside one
// SGP4.
func hermiteRoot(a, b sample, level float64) float64 {
	lo, hi := a.ts, b.ts
	up := b.sin > a.sin
	for range 24 {
		mid := (lo + hi) / 2
		if (hermite(a, b, mid) < level) == up {
			lo = mid
		} else {
			hi = mid
		}
	}
	return (lo + hi) / 2
}

// hermiteTurn is where the cubic's derivative vanishes.
func hermiteTurn(a, b sample) float64 {
	h := b.ts - a.ts
	slope := (b.sin - a.sin) / h
	// Derivative: a.rate + u*(q1) + u²*q2, u in 0..1.
	q2 := 3 * (a.rate + b.rate - 2*slope)
	q1 := b.rate - a.rate - q2
	lo, hi := 0.0, 1.0
	up := b.rate > a.rate
	for range 20 {
		u := (lo + hi) / 2
		if (a.rate+u*(q1+u*q2) < 0) == up {
			lo = u
		} else {
			hi = u
		}
	}
	return a.ts + h*(lo+hi)/2
}

// whole finds the highest point of the whole stay that a window cuts, so that
// a pass keeps its name while it runs: at most a day to either side.
func (f *finder) whole(s stay) float64 {
	top, best := s.top, s.topSin
	if s.riseCut {
		if ts, v := f.climb(s.rise, -1); v > best {
			top, best = ts, v
		}
	}
	if s.setCut {
		if ts, v := f.climb(s.set, 1); v > best {
			top = ts
		}
	}
	return top
}

// climb follows a stay outwards and returns its highest maximum.
func (f *finder) climb(from, direction float64) (top, topSin float64) {
	topSin = -2
	cur := f.at(from, rough)
	for math.Abs(cur.ts-from) < 86400 && f.in(cur) && !f.failed {
		d := math.Min(maxFineS, fineStep*cur.pos.norm()/cur.vel.norm())
		next := f.at(cur.ts+direction*d, rough)
		a, b := cur, next
		if direction < 0 {
			a, b = next, cur
		}
		if a.rate > 0 && b.rate < 0 {
			if x, ok := f.extremum(a, b); ok && x.sin > topSin {
				top, topSin = x.ts, x.sin
			}
		}
		cur = next
	}
	return top, topSin
}

func (f *finder) find(ctx context.Context, opt Options) ([]Pass, Why, error) {
	from, to := f.o.since(opt.From), f.o.since(opt.To)
	decay, decays := f.o.decayTime(to)
	if decays = decays && decay < to; decays {
		if decay <= from {
			return nil, WhyDecayed, nil
		}
		to = decay
	}
	stays := f.scan(ctx, from, to)
	if err := ctx.Err(); err != nil {
		return nil, WhyFound, err
	}
	if f.failed && len(stays) == 0 {
		return nil, WhyPropagation, nil
	}
	if _, flat := f.horizon.Flat(); !flat {
		stays = f.underMask(stays)
	}
	found := make([]Pass, 0, len(stays))
	lowest := math.Sin(opt.MinElevationDeg * rad)
	for _, s := range stays {
		if opt.MinElevationDeg > 0 && s.topSin < lowest && math.Asin(s.topSin)*deg < opt.MinElevationDeg {
			continue
		}
		found = append(found, f.pass(s, opt, decays && s.set >= to))
	}
	switch {
	case len(found) > 0:
		return found, WhyFound, nil
	case len(stays) > 0:
		return nil, WhyBelowMinimum, nil
	case decays:
		return nil, WhyDecayed, nil
	case f.neverRises(from, to):
		return nil, WhyNeverRises, nil
	}
	return nil, WhyNoPass, nil
}

// neverRises reports whether the orbit cannot come above the horizon of this
// site: it does not reach far enough north or south, or it stands still over
// the Earth where the site does not see it.
func (f *finder) neverRises(from, to float64) bool {
	incl := f.o.set.InclinationDeg * rad
	reach := math.Min(incl, math.Pi-incl)
	lat := math.Abs(math.Asin(f.siteDir.z))
	if lat-reach > f.footprint+footprintMg {
		return true
	}
	// Within 1.5° of drift a day and seen for a day: geosynchronous.
	return math.Abs(f.o.set.MeanMotion-1.00273791) < 0.004 && to-from >= 86164
}

func (f *finder) pass(s stay, opt Options, ends bool) Pass {
	set := &f.o.set
	p := Pass{
		NoradID: set.NoradID, Satellite: set.Label(),
		InProgressAtStart: s.riseCut, CutAtEnd: s.setCut,
		AOS: f.event(s.rise), TCA: f.event(s.top), LOS: f.event(s.set),
		Closest: f.o.at(s.nearest), ClosestKm: s.nearKm,
	}
	// A cut is where the caller put it, not a rounding of that.
	if s.riseCut {
		p.AOS.Time = opt.From.UTC()
	}
	if s.setCut && !ends {
		p.LOS.Time = opt.To.UTC()
	}
	p.TCA.Time, p.Closest = within(p.TCA.Time, p), within(p.Closest, p)
	named := s.top
	if s.riseCut || s.setCut {
		named = f.whole(s)
	}
	p.ID = PassID(set.NoradID, f.o.at(named))
	p.MaxElDeg = p.TCA.ElDeg
	p.ElementsAgeDays = s.top / 86400
	if t := set.Trust(p.TCA.Time); t.Why != "" {
		p.Warnings = append(p.Warnings, t.Why)
	}
	if !opt.Now.IsZero() && p.LOS.Time.Before(opt.Now) {
		p.Warnings = append(p.Warnings, "the pass is over")
	}
	if ends {
		p.Warnings = append(p.Warnings, "the satellite falls below 100 km during this pass")
	}
	return p
}

func within(t time.Time, p Pass) time.Time {
	switch {
	case t.Before(p.AOS.Time):
		return p.AOS.Time
	case t.After(p.LOS.Time):
		return p.LOS.Time
	}
	return t
}

func (f *finder) event(ts float64) Event {
	f.at(ts, exact)
	l := f.o.look(&f.n, &f.p, ts)
	return Event{Time: f.o.at(ts), AzDeg: l.AzDeg, ElDeg: l.ElDeg, RangeKm: l.RangeKm}
}
