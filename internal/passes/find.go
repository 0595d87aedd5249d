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

// How far a node carries, in radians of the orbit: for looking around, 0.5 km;
// for the figures reported, decimetres. The series converge badly on the way
// to the perigee of an eccentric orbit.
const (
	roughReach = 0.4
	heoReach   = 0.13
	roundOrbit = 0.05 // greatest eccentricity for roughReach
	nearReach  = 0.005
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

// Steps while the satellite may be seen: 100 s in low orbit.
const (
	fineStep    = 0.11 // radians of the orbit
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
	n         node    // for looking around
	x         node    // for figures
	reach     float64 // seconds around a node for looking around
	nearS     float64 // and for highest points
	siteR     float64
	siteDir   vec
	footprint float64 // greatest central angle at which the satellite is up
	cosWidth  float64 // cosine of that with its margin
	motion    float64 // fastest motion of the satellite, rad/s
	drift     float64 // fastest motion of the site and the orbit's plane, rad/s
	fast      bool    // the satellite outruns the site
	linger    float64 // seconds for which a satellite just past may still come into view, when fast
	theta0    float64 // sidereal angle at mid
	mid       float64 // of the window, seconds since the epoch
	failed    bool    // SGP4 gave no position
	stays     []stay  // room for scan's answer, used again for the next orbit
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
	// Drag takes something off from the epoch to the end of the window, and a
	// negative drag term adds something; short-period terms are under 15 km; Moon
	// and Sun change an eccentricity.
	first, last := o.drag.axis(o.since(opt.From)), o.drag.axis(o.since(opt.To))
	a, axis := max(o.drag.km, first, last), min(o.drag.km, first, last)
	apogee := a*(1+s.Eccentricity)*1.005 + 30
	perigee := axis*(1-s.Eccentricity) - 20
	if s.MeanMotion < deepRevsPerDay {
		perigee = perigee*0.995 - 10
	}
	perigee = math.Max(perigee, lowestKm)
	f.footprint = math.Acos(math.Min(1, f.siteR*math.Cos(f.low)/apogee)) - f.low
	f.cosWidth = math.Cos(f.footprint + footprintMg)
	f.motion = 1.004 * math.Sqrt(mu*(2/perigee-1/math.Max(axis, perigee))) / perigee
	f.mid = o.since(opt.From.Add(opt.To.Sub(opt.From) / 2))
	f.theta0 = o.theta(f.mid)
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

// node is one that serves for ts.
func (f *finder) node(ts float64, g grade) *node {
	limit := f.reach
	switch g {
	case near:
		limit = f.nearS
	case exact:
		limit = exactReachS
	}
	if f.x.ok && math.Abs(ts-f.x.ts) <= limit {
		return &f.x
	}
	if f.n.ok && math.Abs(ts-f.n.ts) <= limit {
		return &f.n
	}
	n := &f.x
	if g == rough {
		// Searches go forward: a rough node lies ahead, and serves behind it too.
		n, ts = &f.n, ts+0.8*f.reach
	}
	*n = f.o.node(nearest(ts))
	f.evals++
	if !n.good() {
		f.failed = true
	}
	r := n.r.norm()
	w := math.Max(n.v.norm()/r, math.Sqrt(mu/r)/r)
	reach := roughReach
	if f.o.set.Eccentricity > roundOrbit {
		reach = heoReach
	}
	f.reach, f.nearS = reach/w, math.Max(exactReachS, nearReach/w)
	return n
}

// at evaluates with a node no farther away than the grade allows.
func (f *finder) at(ts float64, g grade) sample {
	n := f.node(ts, g)
	r, v := n.state(ts)
	pos, vel := fixed(r, v, f.theta0+spin*(ts-f.mid))
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
	width := f.footprint + footprintMg
	// How far the site lies off the plane of the orbit.
	sinOff := math.Min(1, math.Abs(f.siteDir.dot(h)/hn))
	cosOff := math.Sqrt(1 - sinOff*sinOff)
	skip := 0.0
	if cosOff < f.cosWidth {
		skip = (math.Asin(sinOff) - width) / f.drift
	}
	// The angle that the satellite has to go to be beside the site.
	x := f.siteDir.dot(s.pos) / r
	t := vec{(h.y*s.pos.z - h.z*s.pos.y) / hn / r, (h.z*s.pos.x - h.x*s.pos.z) / hn / r, (h.x*s.pos.y - h.y*s.pos.x) / hn / r}
	ahead := math.Atan2(f.siteDir.dot(t), x)
	if ahead < 0 {
		ahead += 2 * math.Pi
	}
	switch {
	case !f.fast:
		skip = math.Max(skip, (math.Acos(math.Max(-1, math.Min(1, x)))-width)/(f.motion+f.drift))
	case ahead < math.Pi || ahead < 2*math.Pi-halfWidth(width+f.drift*f.linger, cosOff): // or it stays behind the site
		// A time that forgets that the site moves is too long; one that lets it
		// move for that long is safe, and so on.
		long := ahead / f.motion
		for range 2 {
			safe := (ahead - halfWidth(width+f.drift*long, cosOff)) / f.motion
			if safe <= 0 {
				break
			}
			skip = math.Max(skip, safe)
			long = (ahead - halfWidth(width+f.drift*safe, cosOff)) / f.motion
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

// A stay is a time above the horizon.
type stay struct {
	rise, set       sample
	riseCut, setCut bool
	top             sample // highest
	nearest, nearKm float64
}

func (s *stay) offerTop(x sample) {
	if x.sin > s.top.sin {
		s.top = x
	}
}

func (s *stay) offerNear(x sample) {
	if x.rng < s.nearKm {
		s.nearest, s.nearKm = x.ts, x.rng
	}
}

func newStay(x sample, cut bool) *stay {
	return &stay{rise: x, riseCut: cut, top: x, nearest: x.ts, nearKm: x.rng}
}

// scan finds the stays between two instants. It gives up when ctx ends or SGP4
// fails.
func (f *finder) scan(ctx context.Context, from, to float64) []stay {
	stays := f.stays[:0]
	var open *stay
	finish := func(x sample, cut bool) {
		open.set, open.setCut = x, cut
		open.offerTop(x)
		open.offerNear(x)
		if open.set.ts > open.rise.ts && open.top.sin >= f.sinLow {
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
					open.offerTop(b)
				}
				if a.ts >= open.rise.ts {
					f.offerClosest(open, a, b)
				} else {
					f.offerClosest(open, open.rise, b)
				}
			}
		}
		cur = next
	}
	if open != nil && !f.failed { // after a failure the last sample is no place
		finish(cur, true)
	}
	return stays
}

// offerClosest looks for the least range between two samples of a stay.
func (f *finder) offerClosest(s *stay, a, b sample) {
	if !(a.away < 0 && b.away >= 0) {
		return
	}
	lo, hi, side := a, b, 0
	for range 40 {
		ts := lo.ts - lo.away*(hi.ts-lo.ts)/(hi.away-lo.away)
		if !(ts > lo.ts && ts < hi.ts) {
			break
		}
		x := f.at(ts, rough)
		if math.Abs(x.away) < 1e-4 || hi.ts-lo.ts < 1e-3 {
			// 1e-4 km/s is passed in 2 ms; the range is then right to micrometres.
			s.offerNear(f.at(ts, near))
			return
		}
		if x.away < 0 {
			if lo = x; side > 0 {
				hi.away /= 2
			}
			side = 1
		} else {
			if hi = x; side < 0 {
				lo.away /= 2
			}
			side = -1
		}
	}
}

// extremum finds the highest or lowest point between two samples whose rates
// have opposite signs. It is not worth an exact answer, and there is none,
// where it cannot matter: a peak well below the horizon, a dip well above it.
func (f *finder) extremum(a, b sample) (sample, bool) {
	const care = 0.02 // sine; far more than a rough sample is off
	peak := a.rate > 0
	if !peak && !f.in(a) && !f.in(b) {
		return sample{}, false
	}
	// First with rough samples, which cost no SGP4, to within a second or so.
	x := f.turn(a, b, rough, 0.3)
	if peak && !f.in(a) && !f.in(b) && x.sin < f.sinLow-care || !peak && x.sin > f.sinLow+care {
		return sample{}, false
	}
	lo, hi := f.at(x.ts-2, near), f.at(x.ts+2, near)
	if lo.rate*a.rate <= 0 || hi.rate*b.rate <= 0 {
		lo, hi = a, b
	}
	return f.turn(lo, hi, near, 1e-3), true
}

// turn finds where the rate vanishes between two samples in which it has
// opposite signs, to within a time in seconds.
func (f *finder) turn(lo, hi sample, g grade, within float64) sample {
	sign := lo.rate
	x := lo
	side := 0
	for range 40 {
		ts := lo.ts - lo.rate*(hi.ts-lo.ts)/(hi.rate-lo.rate)
		if !(ts > lo.ts && ts < hi.ts) {
			break
		}
		last := x.ts
		x = f.at(ts, g)
		if math.Abs(x.ts-last) < within || math.Abs(x.rate) < 1e-10 {
			break
		}
		// An end that stays twice must not stick: halve it (Illinois).
		if x.rate*sign > 0 {
			if lo = x; side > 0 {
				hi.rate /= 2
			}
			side = 1
		} else {
			if hi = x; side < 0 {
				lo.rate /= 2
			}
			side = -1
		}
	}
	return x
}

// crossing finds where the sine of the elevation goes through the horizon
// between two samples: upwards for sign 1, downwards for -1. The samples may be
// rough, so the root may lie a little outside; there may be none in a grazing
// pass.
func (f *finder) crossing(a, b sample, sign float64) (sample, bool) {
	const slack = 5 // seconds that a rough sample may be wrong by
	lo, hi := a.ts-slack, b.ts+slack
	ts := a.ts - (a.sin-f.sinLow)*(b.ts-a.ts)/(b.sin-a.sin)
	// Newton's method, kept between lo and hi; with rough samples, which cost no
	// SGP4, until it is near.
	for g, n := rough, 0; n < 60; n++ {
		x := f.at(ts, g)
		c := x.sin - f.sinLow
		if g == exact {
			if sign*c < 0 {
				lo = ts
			} else {
				hi = ts
			}
		}
		next := ts - c/x.rate
		if !(next >= lo && next <= hi) || sign*x.rate <= 0 {
			next = (lo + hi) / 2
			if g = exact; ts == next {
				return sample{}, false
			}
		}
		d := math.Abs(next - ts)
		if g == exact && d < 1e-7 {
			return x, math.Abs(c) < 1e-6
		}
		if d < 0.5 {
			g = exact
		}
		ts = next
	}
	return sample{}, false
}

// whole finds when the whole stay that a window cuts is highest, so that a pass
// keeps its name while it runs: at most a day to either side.
func (f *finder) whole(s stay) float64 {
	top, best := s.top.ts, s.top.sin
	if s.riseCut {
		if ts, v := f.climb(s.rise.ts, -1); v > best {
			top, best = ts, v
		}
	}
	if s.setCut {
		if ts, v := f.climb(s.set.ts, 1); v > best {
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
	if !(math.Abs(from) < maxSpanS && math.Abs(to) < maxSpanS) {
		return nil, WhyPropagation, nil
	}
	decay, decays := f.o.decayTime(to)
	if decays = decays && decay < to; decays {
		if decay <= from {
			return nil, WhyDecayed, nil
		}
		to = decay
	}
	stays := f.scan(ctx, from, to)
	f.stays = stays
	if err := ctx.Err(); err != nil {
		return nil, WhyFound, err
	}
	if f.failed && len(stays) == 0 {
		return nil, WhyPropagation, nil
	}
	if _, flat := f.horizon.Flat(); !flat {
		stays = f.underMask(stays)
	}
	if len(stays) == 0 {
		return nil, f.why(from, to, decays), nil
	}
	found := make([]Pass, 0, len(stays))
	lowest := math.Sin(opt.MinElevationDeg * rad)
	for _, s := range stays {
		if opt.MinElevationDeg > 0 && s.top.sin < lowest {
			continue
		}
		found = append(found, f.pass(s, opt, decays && s.set.ts >= to))
	}
	if len(found) == 0 {
		return nil, WhyBelowMinimum, nil
	}
	return found, WhyFound, nil
}

// why says why a window is empty.
func (f *finder) why(from, to float64, decays bool) Why {
	switch {
	case decays:
		return WhyDecayed
	case f.neverRises(from, to):
		return WhyNeverRises
	}
	return WhyNoPass
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
	named := s.top.ts
	if s.riseCut || s.setCut {
		named = f.whole(s)
	}
	p.ID = PassID(set.NoradID, f.o.at(named))
	p.MaxElDeg = p.TCA.ElDeg
	p.ElementsAgeDays = s.top.ts / 86400
	if t := set.Trust(p.TCA.Time); t.Why != "" {
		p.Warnings = append(p.Warnings, t.Why)
	}
	if opt.Warn != nil {
		if w := opt.Warn(set.NoradID); w != "" {
			p.Warnings = append(p.Warnings, w)
		}
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

func (f *finder) event(s sample) Event {
	e, n, u := f.p.components(s.pos)
	return Event{Time: f.o.at(s.ts), AzDeg: unit.Norm360(math.Atan2(e, n) * deg), ElDeg: math.Atan2(u, math.Hypot(e, n)) * deg, RangeKm: s.rng}
}
