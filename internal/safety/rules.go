package safety

import (
	"fmt"
	"math"
	"time"

	"gsd-mcp/internal/unit"
)

// angleSlack absorbs the rounding of a 0.1° wire format: a target on the mask
// or on the edge of a zone counts as outside of it.
const angleSlack = 0.06 // degrees

const (
	sunsetDeg   = -1.0 // the sun's centre below this, its disc is below the horizon, refraction included
	minZoneDeg  = 1.0  // the narrowest zone that a path checked each pathStepDeg cannot step over
	minSpeedDps = 0.1  // slower than any rotator; keeps times finite
	farAzDeg    = 360  // a reading further outside the travel than this
	farElDeg    = 90   // cannot be true
)

// A Travel is the mount's mechanical range in degrees. Azimuth is unwrapped:
// it may span more than a turn.
type Travel struct{ AzMinDeg, AzMaxDeg, ElMinDeg, ElMaxDeg float64 }

// A Zone is a part of the sky that the antenna must not enter, by true azimuth
// clockwise from AzFromDeg to AzToDeg, for a reason (mast, roof, path).
type Zone struct {
	Name               string
	AzFromDeg, AzToDeg float64
	ElMinDeg, ElMaxDeg float64
	Reason             string
}

// Contains reports whether a direction lies inside the zone. The sides and the
// top are drawn in by the slack of the wire format, so that a target on them
// is outside; the bottom is not, since it stands on a roof or on the ground. A
// direction that is not a number is inside.
func (z Zone) Contains(d unit.AzEl) bool {
	if e := upright(d).ElDeg; e <= z.ElMinDeg-angleSlack || e >= z.ElMaxDeg-angleSlack {
		return false // the quick answer for most of the sky
	}
	left, right, below, above := z.exits(d)
	return !(left <= 0 || right <= 0 || below <= 0 || above <= 0)
}

// exits is how many degrees a direction lies inside each edge of the zone;
// infinite towards the sides of a zone that goes all round.
func (z Zone) exits(d unit.AzEl) (left, right, below, above float64) {
	d = upright(d)
	left = unit.Norm360(d.AzDeg-z.AzFromDeg) - angleSlack
	right = z.spanDeg() - 2*angleSlack - left
	if z.spanDeg() >= 360 {
		left, right = math.Inf(1), math.Inf(1)
	}
	return left, right, d.ElDeg - (z.ElMinDeg - angleSlack), z.ElMaxDeg - angleSlack - d.ElDeg
}

// spanDeg is the zone's width in azimuth, 360 for the full circle.
func (z Zone) spanDeg() float64 {
	if z.AzToDeg-z.AzFromDeg >= 360 {
		return 360
	}
	return unit.Norm360(z.AzToDeg - z.AzFromDeg)
}

// upright gives the direction on the sky of a mount that may be over the top:
// a flipped one points at the opposite azimuth.
func upright(d unit.AzEl) unit.AzEl {
	el := d.ElDeg
	if !(-90 <= el && el <= 90) {
		el = unit.Norm360(el+90) - 90 // -90..270
	}
	if el > 90 {
		return unit.AzEl{AzDeg: unit.Norm360(d.AzDeg + 180), ElDeg: 180 - el}
	}
	return unit.AzEl{AzDeg: unit.Norm360(d.AzDeg), ElDeg: el}
}

// Rules is the fixed part of what the gate knows: the station's geometry and
// limits, from its configuration.
type Rules struct {
	Travel           Travel
	MarginDeg        float64   // kept free inside Travel on both axes
	Offset           unit.AzEl // true direction = mechanical direction + Offset
	Horizon          unit.Horizon
	Zones            []Zone
	AzSpeedDps       float64 // the mount's speeds, degrees per second
	ElSpeedDps       float64
	AccelDps2        float64
	SunSeparationDeg float64       // 0: the sun does not matter to this antenna
	FeedbackMoving   time.Duration // a reading older than this is stale while moving
	FeedbackIdle     time.Duration // and while idle
}

// Validate reports the first rule that makes no sense.
func (r *Rules) Validate() error {
	t := r.Travel
	switch {
	case !(t.AzMinDeg < t.AzMaxDeg) || !(t.AzMaxDeg-t.AzMinDeg <= 1440):
		return fmt.Errorf("azimuth travel %v°..%v° is not a range", t.AzMinDeg, t.AzMaxDeg)
	case !(t.ElMinDeg < t.ElMaxDeg) || !(t.ElMinDeg >= -90 && t.ElMaxDeg <= 210):
		return fmt.Errorf("elevation travel %v°..%v° is not a range", t.ElMinDeg, t.ElMaxDeg)
	case !(r.MarginDeg >= 0) || !(2*r.MarginDeg < t.AzMaxDeg-t.AzMinDeg) || !(2*r.MarginDeg < t.ElMaxDeg-t.ElMinDeg):
		return fmt.Errorf("margin %v° leaves no travel", r.MarginDeg)
	case !(r.AzSpeedDps >= minSpeedDps && r.AzSpeedDps <= 90) || !(r.ElSpeedDps >= minSpeedDps && r.ElSpeedDps <= 90):
		return fmt.Errorf("mount speeds %v and %v °/s must be %v to 90", r.AzSpeedDps, r.ElSpeedDps, minSpeedDps)
	case !(r.AccelDps2 > 0 && r.AccelDps2 <= 360):
		return fmt.Errorf("mount acceleration %v °/s² must be over 0 and at most 360", r.AccelDps2)
	case !(r.SunSeparationDeg >= 0 && r.SunSeparationDeg <= 90):
		return fmt.Errorf("sun separation %v° is outside 0..90", r.SunSeparationDeg)
	case !(math.Abs(r.Offset.AzDeg) <= 360) || !(math.Abs(r.Offset.ElDeg) <= 90):
		return fmt.Errorf("offset %v is outside -360..360 in azimuth or -90..90 in elevation", r.Offset)
	case !(r.Horizon.Min() >= -90 && r.Horizon.Min() <= 90):
		return fmt.Errorf("horizon of %v° is outside -90..90", r.Horizon.Min())
	}
	for _, z := range r.Zones {
		if err := z.validate(); err != nil {
			return fmt.Errorf("keep-out zone %q: %w", z.Name, err)
		}
	}
	return nil
}

// validate refuses a zone that cannot be meant, or that a sampled path could
// step over.
func (z Zone) validate() error {
	switch {
	case !(z.AzFromDeg >= -360 && z.AzFromDeg <= 360) || !(z.AzToDeg >= -360 && z.AzToDeg <= 720):
		return fmt.Errorf("azimuth %v°..%v° is outside 0..360", z.AzFromDeg, z.AzToDeg)
	case !(z.ElMinDeg >= -90 && z.ElMaxDeg <= 90):
		return fmt.Errorf("elevation %v°..%v° is outside -90..90", z.ElMinDeg, z.ElMaxDeg)
	case !(z.spanDeg() >= minZoneDeg-1e-9):
		return fmt.Errorf("azimuth %v°..%v° is less than %v° wide: widen it", z.AzFromDeg, z.AzToDeg, minZoneDeg)
	case !(z.ElMaxDeg-z.ElMinDeg >= minZoneDeg-1e-9):
		return fmt.Errorf("elevation %v°..%v° is less than %v° high: widen it", z.ElMinDeg, z.ElMaxDeg, minZoneDeg)
	}
	return nil
}

// True is the direction on the sky of a mechanical position.
func (r *Rules) True(mech unit.AzEl) unit.AzEl {
	return upright(unit.AzEl{AzDeg: mech.AzDeg + r.Offset.AzDeg, ElDeg: mech.ElDeg + r.Offset.ElDeg})
}

// InTravel reports the first mechanical limit that a position breaks.
func (r *Rules) InTravel(mech unit.AzEl) *Refusal {
	t, m := r.Travel, r.MarginDeg
	if !(t.AzMinDeg+m-angleSlack <= mech.AzDeg && mech.AzDeg <= t.AzMaxDeg-m+angleSlack) { // NaN is refused too
		return r.azimuthLimit(mech)
	}
	if !(t.ElMinDeg+m-angleSlack <= mech.ElDeg && mech.ElDeg <= t.ElMaxDeg-m+angleSlack) {
		return r.elevationLimit(mech)
	}
	return nil
}

func (r *Rules) azimuthLimit(mech unit.AzEl) *Refusal {
	t, m := r.Travel, r.MarginDeg
	return &Refusal{Code: AzimuthLimit,
		Why:    fmt.Sprintf("mechanical azimuth %.1f° is outside %.1f°..%.1f° (travel %.1f°..%.1f°, margin %.1f°)", mech.AzDeg, t.AzMinDeg+m, t.AzMaxDeg-m, t.AzMinDeg, t.AzMaxDeg, m),
		Fix:    "choose a direction inside the mount's travel, or correct [rotator.limits] in station.toml",
		Limits: map[string]any{"azimuth_min_deg": t.AzMinDeg + m, "azimuth_max_deg": t.AzMaxDeg - m}}
}

func (r *Rules) elevationLimit(mech unit.AzEl) *Refusal {
	t, m := r.Travel, r.MarginDeg
	return &Refusal{Code: ElevationLimit,
		Why:    fmt.Sprintf("mechanical elevation %.1f° is outside %.1f°..%.1f° (travel %.1f°..%.1f°, margin %.1f°)", mech.ElDeg, t.ElMinDeg+m, t.ElMaxDeg-m, t.ElMinDeg, t.ElMaxDeg, m),
		Fix:    "choose an elevation inside the mount's travel, or correct [rotator.limits] in station.toml",
		Limits: map[string]any{"elevation_min_deg": t.ElMinDeg + m, "elevation_max_deg": t.ElMaxDeg - m}}
}

// InSky reports the first rule of the sky (mask, zone, sun) that a true
// direction breaks. sun is where the sun is, nil when it is not known or does
// not matter.
func (r *Rules) InSky(d unit.AzEl, sun *unit.AzEl) *Refusal {
	if !d.Finite() {
		return Refuse(AzimuthLimit, "give real numbers", "%v is not a direction", d)
	}
	if !(d.ElDeg >= r.Horizon.At(d.AzDeg)-angleSlack) {
		return r.belowMask(d)
	}
	for _, z := range r.Zones {
		if z.Contains(d) {
			return z.keepOut(d)
		}
	}
	if r.sunMatters(sun) && !(unit.Separation(d, *sun) >= r.SunSeparationDeg) {
		return r.tooNearSun(d, *sun)
	}
	return nil
}

// sunMatters reports whether the sun is up, or may be, for an antenna that must
// keep away from it.
func (r *Rules) sunMatters(sun *unit.AzEl) bool {
	return sun != nil && r.SunSeparationDeg > 0 && !(sun.ElDeg <= sunsetDeg)
}

func (r *Rules) belowMask(d unit.AzEl) *Refusal {
	m := r.Horizon.At(d.AzDeg)
	return &Refusal{Code: ElevationBelowMask,
		Why:    fmt.Sprintf("elevation %.1f° is below the horizon mask of %.1f° at azimuth %.1f°", d.ElDeg, m, d.AzDeg),
		Fix:    fmt.Sprintf("ask for an elevation of at least %.1f° at this azimuth", m),
		Limits: map[string]any{"elevation_min_deg": m}}
}

func (z Zone) keepOut(d unit.AzEl) *Refusal {
	return &Refusal{Code: KeepOut,
		Why:    fmt.Sprintf("%v is inside the keep-out zone %q (azimuth %.0f°..%.0f°, elevation %.0f°..%.0f°: %s)", d, z.Name, z.AzFromDeg, z.AzToDeg, z.ElMinDeg, z.ElMaxDeg, z.Reason),
		Fix:    "choose a direction outside the zone",
		Limits: map[string]any{"zone": z.Name, "azimuth_deg": [2]float64{z.AzFromDeg, z.AzToDeg}, "elevation_deg": [2]float64{z.ElMinDeg, z.ElMaxDeg}}}
}

func (r *Rules) tooNearSun(d, sun unit.AzEl) *Refusal {
	return &Refusal{Code: Sun,
		Why:    fmt.Sprintf("%v is %.1f° from the sun, the limit is %.1f°", d, unit.Separation(d, sun), r.SunSeparationDeg),
		Fix:    "wait until the sun has moved, or choose another direction",
		Limits: map[string]any{"sun_separation_deg": r.SunSeparationDeg}}
}

// Allowed reports the first rule that a mechanical position breaks.
func (r *Rules) Allowed(mech unit.AzEl, sun *unit.AzEl) *Refusal {
	if !mech.Finite() {
		return Refuse(AzimuthLimit, "give real numbers", "position %v is not a direction", mech)
	}
	if ref := r.InTravel(mech); ref != nil {
		return ref
	}
	return r.InSky(r.True(mech), sun)
}

// breaches appends by how many degrees a mechanical position breaks each rule,
// in a fixed order; 0 or less is no breach. All of them are 0 or less where
// Allowed returns nil. For a zone it is the way to the nearest edge through
// which the antenna may leave.
func (r *Rules) breaches(to []float64, mech unit.AzEl, sun *unit.AzEl) []float64 {
	t, m := r.Travel, r.MarginDeg-angleSlack
	d := r.True(mech)
	mask := r.Horizon.At(d.AzDeg)
	to = append(to,
		max(t.AzMinDeg+m-mech.AzDeg, mech.AzDeg-(t.AzMaxDeg-m)),
		max(t.ElMinDeg+m-mech.ElDeg, mech.ElDeg-(t.ElMaxDeg-m)),
		mask-angleSlack-d.ElDeg)
	if r.sunMatters(sun) {
		to = append(to, r.SunSeparationDeg-unit.Separation(d, *sun))
	} else {
		to = append(to, 0)
	}
	for _, z := range r.Zones {
		left, right, below, above := z.exits(d)
		deep := min(left, right, above)
		if z.ElMinDeg > mask || deep <= 0 { // else below the zone there is only ground
			deep = min(deep, below)
		} else if below <= 0 {
			deep = below
		}
		to = append(to, deep)
	}
	return to
}

// breach is the refusal for the i-th of breaches.
func (r *Rules) breach(i int, mech unit.AzEl, sun *unit.AzEl) *Refusal {
	d := r.True(mech)
	switch i {
	case 0:
		return r.azimuthLimit(mech)
	case 1:
		return r.elevationLimit(mech)
	case 2:
		return r.belowMask(d)
	case 3:
		return r.tooNearSun(d, *sun)
	}
	return r.Zones[i-4].keepOut(d)
}

// Mechanical lists the mechanical positions that point at a true direction
// without tilting over the top, inside the travel, nearest to from first.
func (r *Rules) Mechanical(d unit.AzEl, from unit.AzEl) []unit.AzEl {
	// Normalised first: adding turns to a huge azimuth would add nothing.
	az, el := unit.Norm360(d.AzDeg-r.Offset.AzDeg), d.ElDeg-r.Offset.ElDeg
	var out []unit.AzEl
	t, m := r.Travel, r.MarginDeg
	first := math.Ceil((t.AzMinDeg + m - angleSlack - az) / 360)
	for k := first; ; k++ {
		p := unit.AzEl{AzDeg: az + 360*k, ElDeg: el}
		if !(p.AzDeg <= t.AzMaxDeg-m+angleSlack) {
			break
		}
		if r.InTravel(p) == nil {
			out = append(out, p)
		}
	}
	for i := range out { // few entries: at most five
		for j := i; j > 0 && r.SlewTime(from, out[j]) < r.SlewTime(from, out[j-1]); j-- {
			out[j], out[j-1] = out[j-1], out[j]
		}
	}
	return out
}

// SlewTime is how long the mount needs between two mechanical positions with
// both axes at work, acceleration included.
func (r *Rules) SlewTime(a, b unit.AzEl) time.Duration {
	s := max(axisTime(math.Abs(b.AzDeg-a.AzDeg), r.AzSpeedDps, r.AccelDps2), axisTime(math.Abs(b.ElDeg-a.ElDeg), r.ElSpeedDps, r.AccelDps2))
	return time.Duration(s * float64(time.Second))
}

// axisTime is a trapezoidal profile: seconds for d degrees at top speed v and
// acceleration a.
func axisTime(d, v, a float64) float64 {
	if d <= v*v/a {
		return 2 * math.Sqrt(d/a)
	}
	return d/v + v/a
}
