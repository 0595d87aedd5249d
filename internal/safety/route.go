package safety

import (
	"fmt"
	"math"
	"sort"
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

// clearances lists mechanical elevations worth trying for the azimuth leg: just
// over each obstacle, then high.
func (r *Rules) clearances(from, to unit.AzEl) []float64 {
	var out []float64
	lo := max(from.ElDeg, to.ElDeg)
	top := r.Travel.ElMaxDeg - r.MarginDeg
	add := func(trueEl float64) {
		if el := trueEl - r.Offset.ElDeg; el >= lo && el <= min(top, 90) {
			out = append(out, el)
		}
	}
	add(lo + r.Offset.ElDeg)
	for _, z := range r.Zones {
		add(z.ElMaxDeg + 1)
	}
	for _, p := range r.Horizon.Points() {
		add(p.ElDeg + 1)
	}
	add(60)
	add(85)
	sort.Float64s(out)
	return out
}

// checkPath drives both axes at their own speeds from one position through
// waypoints and reports the first direction that is not allowed. A path that
// begins inside a forbidden region may leave it, at once and never again
// (recovery: inward moves only).
func (r *Rules) checkPath(from unit.AzEl, way []unit.AzEl, sun *unit.AzEl) *Refusal {
	out := r.Allowed(from, sun) != nil // started where it must not be
	p := from
	for _, q := range way {
		da, de := q.AzDeg-p.AzDeg, q.ElDeg-p.ElDeg
		ta, te := math.Abs(da)/r.AzSpeedDps, math.Abs(de)/r.ElSpeedDps
		total := max(ta, te)
		n := int(math.Ceil(max(math.Abs(da), math.Abs(de)) / pathStepDeg))
		// The slower axis moves evenly over the leg; the other one arrives early.
		n = max(n, int(math.Ceil(total*max(r.AzSpeedDps, r.ElSpeedDps)/pathStepDeg)))
		for i := 1; i <= n; i++ {
			t := total * float64(i) / float64(n)
			at := unit.AzEl{AzDeg: p.AzDeg + da*frac(t, ta), ElDeg: p.ElDeg + de*frac(t, te)}
			ref := r.Allowed(at, sun)
			if ref == nil {
				out = false
				continue
			}
			if out {
				continue
			}
			ref.Why = fmt.Sprintf("the way from %v to %v is blocked: %s", r.True(from), r.True(q), ref.Why)
			return ref
		}
		p = q
	}
	return nil
}

func frac(t, of float64) float64 {
	if of <= 0 {
		return 1
	}
	return min(1, t/of)
}

// NearestAllowed is the true direction closest to want that the mount may be
// sent to from a mechanical position, or nil. The answer is itself allowed:
// Route accepts it.
func (r *Rules) NearestAllowed(from, want unit.AzEl, sun *unit.AzEl) *unit.AzEl {
	if !want.Finite() {
		return nil
	}
	want.AzDeg = unit.Norm360(want.AzDeg)
	var cands []unit.AzEl
	add := func(az, el float64) {
		az = math.Round(unit.Norm360(az)*10) / 10
		el = math.Round(el*10) / 10
		d := unit.AzEl{AzDeg: unit.Norm360(az), ElDeg: el}
		if r.InSky(d, sun) == nil && len(r.Mechanical(d, from)) > 0 {
			cands = append(cands, d)
		}
	}
	el := max(want.ElDeg, r.Travel.ElMinDeg+r.MarginDeg+r.Offset.ElDeg)
	el = min(el, r.Travel.ElMaxDeg-r.MarginDeg+r.Offset.ElDeg, 90)
	add(want.AzDeg, el)
	add(want.AzDeg, max(el, math.Ceil(r.Horizon.At(want.AzDeg)*10)/10))
	for _, z := range r.Zones {
		add(want.AzDeg, z.ElMaxDeg)
		add(want.AzDeg, z.ElMinDeg-0.1)
		add(z.AzFromDeg, el)
		add(z.AzToDeg, el)
	}
	for az := 0.0; az < 360; az += 2 {
		for e := 0.0; e <= 90; e++ {
			add(az, e)
		}
	}
	sort.SliceStable(cands, func(i, j int) bool {
		return unit.Separation(cands[i], want) < unit.Separation(cands[j], want)
	})
	for i, c := range cands {
		if i == 400 { // a wall of blocked paths: nothing near is reachable
			break
		}
		if _, ref := r.Route(from, c, sun); ref == nil {
			return &c
		}
	}
	return nil
}
