package safety

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"gsd-mcp/internal/unit"
)

// pathStepDeg is how finely a path is checked: half the narrowest obstacle that
// we care about (a mast of 1° seen from the antenna).
const pathStepDeg = 0.5

// A Route is a proved way for the mount: every sampled direction on it is
// allowed. Positions are mechanical.
type Route struct {
	Waypoints []unit.AzEl   `json:"waypoints"` // the last one is the target
	Time      time.Duration `json:"-"`
}

// Target is where the route ends.
func (r Route) Target() unit.AzEl { return r.Waypoints[len(r.Waypoints)-1] }

// Route finds a way from a mechanical position to a true direction, or says why
// there is none. It tries every winding of the target, nearest first, and for
// each the direct way and then elevation-azimuth-elevation over the obstacles
// (hazards M-03 and M-34).
func (r *Rules) Route(from unit.AzEl, to unit.AzEl, sun *unit.AzEl) (Route, *Refusal) {
	if !to.Finite() {
		return Route{}, Refuse(AzimuthLimit, "give real numbers", "%v is not a direction", to)
	}
	cands := r.Mechanical(to, from)
	if len(cands) == 0 {
		return Route{}, r.outOfTravel(to)
	}
	if ref := r.InSky(upright(to), sun); ref != nil {
		return Route{}, ref
	}
	var first *Refusal
	for _, c := range cands {
		route, ref := r.RouteTo(from, c, sun)
		if ref == nil {
			return route, nil
		}
		if first == nil {
			first = ref
		}
	}
	return Route{}, first
}

// outOfTravel says which axis keeps a true direction out of reach.
func (r *Rules) outOfTravel(to unit.AzEl) *Refusal {
	mech := unit.AzEl{AzDeg: to.AzDeg - r.Offset.AzDeg, ElDeg: to.ElDeg - r.Offset.ElDeg}
	mid := unit.AzEl{AzDeg: (r.Travel.AzMinDeg + r.Travel.AzMaxDeg) / 2, ElDeg: mech.ElDeg}
	if ref := r.InTravel(mid); ref != nil { // elevation alone is out
		return ref
	}
	mech.AzDeg = unit.Nearest(mech.AzDeg, mid.AzDeg)
	if ref := r.InTravel(mech); ref != nil {
		return ref
	}
	return Refuse(AzimuthLimit, "choose another azimuth", "azimuth %.1f° is outside the mount's travel", to.AzDeg)
}

// RouteTo finds a way between two mechanical positions, the winding given.
func (r *Rules) RouteTo(from, to unit.AzEl, sun *unit.AzEl) (Route, *Refusal) {
	if ref := r.Allowed(to, sun); ref != nil {
		return Route{}, ref
	}
	direct := []unit.AzEl{to}
	ref := r.checkPath(from, direct, sun)
	if ref == nil {
		return Route{direct, r.SlewTime(from, to)}, nil
	}
	for _, el := range r.clearances(from, to) {
		w := []unit.AzEl{{AzDeg: from.AzDeg, ElDeg: el}, {AzDeg: to.AzDeg, ElDeg: el}, to}
		if r.checkPath(from, w, sun) == nil {
			t, p := time.Duration(0), from
			for _, q := range w {
				t += r.SlewTime(p, q)
				p = q
			}
			return Route{w, t}, nil
		}
	}
	return Route{}, ref
}

// clearances lists mechanical elevations worth trying for the azimuth leg,
// lowest first: level, well over the mask and each zone, then high. Well over: a
// mount that comes to rest anywhere in its deadband is over it still.
func (r *Rules) clearances(from, to unit.AzEl) []float64 {
	const well = 3 // degrees, or what the travel leaves
	lo := max(from.ElDeg, to.ElDeg)
	hi := min(r.Travel.ElMaxDeg-r.MarginDeg, 90)
	out := []float64{lo}
	over := func(top, by float64) {
		if el := top - r.Offset.ElDeg; el+by > lo && el < hi {
			out = append(out, min(el+by, hi))
		}
	}
	mask := r.Horizon.Min()
	for at := range r.leg(unit.AzEl{AzDeg: from.AzDeg, ElDeg: lo}, unit.AzEl{AzDeg: to.AzDeg, ElDeg: lo}) {
		mask = max(mask, r.Horizon.At(at.AzDeg+r.Offset.AzDeg))
	}
	over(mask, well)
	for _, z := range r.Zones {
		over(z.ElMaxDeg, well)
	}
	over(60, 0)
	over(85, 0)
	slices.Sort(out)
	return slices.Compact(out)
}

// checkPath drives both axes at their own speeds from one position through
// waypoints and reports the first direction that is not allowed. A path that
// begins inside a forbidden region may leave it but not go deeper into it, nor
// enter another one, nor come back (recovery: inward moves only).
func (r *Rules) checkPath(from unit.AzEl, way []unit.AzEl, sun *unit.AzEl) *Refusal {
	if ref := r.plausible(from); ref != nil {
		return ref
	}
	var was, is []float64 // breaches of the last sample and of this one; nil once all is well
	if r.Allowed(from, sun) != nil {
		was = r.breaches(nil, from, sun)
	}
	p := from
	for _, q := range way {
		for at := range r.leg(p, q) {
			ref := r.Allowed(at, sun)
			if ref == nil {
				was = nil
				continue
			}
			if was != nil {
				is = r.breaches(is[:0], at, sun)
				i := worse(was, is)
				if i < 0 {
					was, is = is, was
					continue
				}
				ref = r.breach(i, at, sun)
				ref.Fix = "the antenna stands where it must not be: choose a direction straight out of there, or move it by hand at the station"
			}
			ref.Why = fmt.Sprintf("the way from %v to %v is blocked: %s", r.True(from), r.True(q), ref.Why)
			return ref
		}
		p = q
	}
	return nil
}

// Clear reports what blocks the way from a mechanical position through
// waypoints, nil for nothing. The owner of a moving antenna asks it about what
// is left of its route, from where it has really got to.
func (r *Rules) Clear(from unit.AzEl, way []unit.AzEl, sun *unit.AzEl) *Refusal {
	if !from.Finite() || slices.ContainsFunc(way, func(p unit.AzEl) bool { return !p.Finite() }) {
		return Refuse(FeedbackSuspect, "read get_antenna", "the way from %v holds no directions", from)
	}
	return r.checkPath(from, way, sun)
}

// Ahead is where the mount is on its way from p to q after a time, both axes at
// their own speeds: a target for a controller that, should nothing follow it,
// still lies on the way that was proved (hazard M-21).
func (r *Rules) Ahead(p, q unit.AzEl, after time.Duration) unit.AzEl {
	turn := func(from, to, speed float64) float64 {
		far := speed * after.Seconds()
		if math.Abs(to-from) <= far {
			return to
		}
		return from + math.Copysign(far, to-from)
	}
	return unit.AzEl{AzDeg: turn(p.AzDeg, q.AzDeg, r.AzSpeedDps), ElDeg: turn(p.ElDeg, q.ElDeg, r.ElSpeedDps)}
}

// worse is the first rule that is broken by more than it was, or -1.
func worse(was, is []float64) int {
	const rounding = 1e-6 // degrees
	for i := range is {
		if !(is[i] <= max(0, was[i]+rounding)) {
			return i
		}
	}
	return -1
}

// plausible refuses to plan from a position that no mount can be in.
func (r *Rules) plausible(p unit.AzEl) *Refusal {
	t := r.Travel
	if t.AzMinDeg-farAzDeg <= p.AzDeg && p.AzDeg <= t.AzMaxDeg+farAzDeg && t.ElMinDeg-farElDeg <= p.ElDeg && p.ElDeg <= t.ElMaxDeg+farElDeg {
		return nil
	}
	return Refuse(FeedbackSuspect, "look at the mount and its controller, then read get_antenna",
		"a mechanical position of %v cannot be true for a mount of azimuth %.0f°..%.0f°, elevation %.0f°..%.0f°", p, t.AzMinDeg, t.AzMaxDeg, t.ElMinDeg, t.ElMaxDeg)
}

// leg samples the way between two positions with both axes at their own
// speeds, the quicker one arriving early. No axis turns by more than
// pathStepDeg between two samples, and every point of the horizon mask that the
// way passes is one: between those the mask and the way are straight lines, so
// that the narrowest peak is seen. The last sample is q.
func (r *Rules) leg(p, q unit.AzEl) iter.Seq[unit.AzEl] {
	da, de := q.AzDeg-p.AzDeg, q.ElDeg-p.ElDeg
	ta, te := math.Abs(da)/r.AzSpeedDps, math.Abs(de)/r.ElSpeedDps
	var times []float64
	// First both axes turn, then only the one with the longer way to go.
	for _, part := range [2][2]float64{{0, min(ta, te)}, {min(ta, te), max(ta, te)}} {
		turnA := math.Abs(da) * (frac(part[1], ta) - frac(part[0], ta))
		turnE := math.Abs(de) * (frac(part[1], te) - frac(part[0], te))
		n := int(math.Ceil(max(turnA, turnE) / pathStepDeg))
		for i := 1; i <= n; i++ {
			times = append(times, part[0]+(part[1]-part[0])*float64(i)/float64(n))
		}
	}
	if regular := len(times); da != 0 {
		for _, m := range r.Horizon.Points() {
			// Each half turn: over the top, the mount looks the other way.
			az := m.AzDeg - r.Offset.AzDeg
			for az = p.AzDeg + math.Mod(az-p.AzDeg, 180) - math.Copysign(180, da); (q.AzDeg-az)*da > 0; az += math.Copysign(180, da) {
				if (az-p.AzDeg)*da > 0 {
					times = append(times, (az-p.AzDeg)/da*ta)
				}
			}
		}
		if len(times) > regular {
			slices.Sort(times)
		}
	}
	return func(yield func(unit.AzEl) bool) {
		for _, t := range times {
			if !yield(unit.AzEl{AzDeg: p.AzDeg + da*frac(t, ta), ElDeg: p.ElDeg + de*frac(t, te)}) {
				return
			}
		}
	}
}

func frac(t, of float64) float64 {
	if of <= 0 {
		return 1
	}
	return min(1, t/of)
}

// How much NearestAllowed may try. The gate is asked by the owner of a device,
// who must not be kept from a stop: 3 ms were measured on an amd64 server.
const (
	nearestGridDeg = 3 // of the search over the whole sky
	nearestTries   = 8 // routes to candidates beside the target, and again over the sky
	nearestHalves  = 4 // halvings between the candidate and what was wanted
)

// NearestAllowed is the true direction closest to want, as far as a bounded
// search finds it, that the mount may be sent to from a mechanical position,
// or nil. The answer is itself allowed: Route accepts it.
func (r *Rules) NearestAllowed(from, want unit.AzEl, sun *unit.AzEl) *unit.AzEl {
	if !want.Finite() || r.plausible(from) != nil {
		return nil
	}
	want.AzDeg = unit.Norm360(want.AzDeg)
	top := min(r.Travel.ElMaxDeg-r.MarginDeg+r.Offset.ElDeg, 90)
	el := min(max(want.ElDeg, r.Travel.ElMinDeg+r.MarginDeg+r.Offset.ElDeg), top)
	near := []unit.AzEl{
		{AzDeg: want.AzDeg, ElDeg: el},
		{AzDeg: want.AzDeg, ElDeg: max(el, r.Horizon.At(want.AzDeg))},
	}
	for _, az := range [2]float64{r.Travel.AzMinDeg + r.MarginDeg, r.Travel.AzMaxDeg - r.MarginDeg} {
		near = append(near, unit.AzEl{AzDeg: az + r.Offset.AzDeg, ElDeg: el})
	}
	for _, z := range r.Zones {
		near = append(near,
			unit.AzEl{AzDeg: want.AzDeg, ElDeg: z.ElMaxDeg}, unit.AzEl{AzDeg: want.AzDeg, ElDeg: z.ElMinDeg - 0.1},
			unit.AzEl{AzDeg: z.AzFromDeg, ElDeg: el}, unit.AzEl{AzDeg: z.AzToDeg, ElDeg: el})
	}
	first := r.firstReachable(near, from, want, sun)
	if first != nil && unit.Separation(*first, want) <= nearestGridDeg {
		return first
	}
	var sky []unit.AzEl
	for az := 0.0; az < 360; az += nearestGridDeg {
		for e := math.Ceil(r.Horizon.At(az)); e <= top; e += nearestGridDeg {
			sky = append(sky, unit.AzEl{AzDeg: az, ElDeg: e})
		}
	}
	if c := r.firstReachable(sky, from, want, sun); c != nil {
		c = r.closer(*c, from, want, sun)
		if first == nil || unit.Separation(*c, want) < unit.Separation(*first, want) {
			return c
		}
	}
	if first == nil { // walls on all sides: stay, if it may stand where it is
		return r.firstReachable([]unit.AzEl{r.True(from)}, from, want, sun)
	}
	return first
}

// firstReachable tries the directions that the sky and the travel allow,
// nearest to want first and then thinning out, and returns the first one with
// a way to it, rounded to 0.1°.
func (r *Rules) firstReachable(cands []unit.AzEl, from, want unit.AzEl, sun *unit.AzEl) *unit.AzEl {
	type scored struct {
		unit.AzEl
		off float64
	}
	var ok []scored
	for _, c := range cands {
		// Upwards: a direction on the mask stays on it.
		c = unit.AzEl{AzDeg: unit.Norm360(math.Round(c.AzDeg*10) / 10), ElDeg: math.Ceil(c.ElDeg*10-1e-6) / 10}
		if r.InSky(c, sun) == nil && len(r.Mechanical(c, from)) > 0 {
			ok = append(ok, scored{c, unit.Separation(c, want)})
		}
	}
	slices.SortStableFunc(ok, func(a, b scored) int { return cmp.Compare(a.off, b.off) })
	for try, i := 0, 0; try < nearestTries && i < len(ok); try++ {
		if _, ref := r.Route(from, ok[i].AzEl, sun); ref == nil {
			return &ok[i].AzEl
		}
		// One after the other at first; what is left of the sky in long strides.
		i += 1 + max(0, try-nearestTries/3)*len(ok)/(nearestTries*nearestTries/4)
	}
	return nil
}

// closer moves an allowed direction towards want as far as it stays allowed.
func (r *Rules) closer(c, from, want unit.AzEl, sun *unit.AzEl) *unit.AzEl {
	step := unit.AzEl{AzDeg: unit.Diff(want.AzDeg, c.AzDeg), ElDeg: want.ElDeg - c.ElDeg}
	for range nearestHalves {
		step.AzDeg, step.ElDeg = step.AzDeg/2, step.ElDeg/2
		at := unit.AzEl{AzDeg: c.AzDeg + step.AzDeg, ElDeg: c.ElDeg + step.ElDeg}
		if n := r.firstReachable([]unit.AzEl{at}, from, want, sun); n != nil {
			c = *n
		}
	}
	return &c
}
