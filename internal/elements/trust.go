package elements

import (
	"fmt"
	"math"
	"time"
)

// A Class groups orbits by how fast their elements age.
type Class int

const (
	// Other orbits: medium, high, eccentric, geostationary. Trusted for 14 days.
	Other Class = iota
	// LEO is a period under 128 minutes (11.25 revolutions a day). Trusted for
	// 7 days.
	LEO
	// LowLEO is a LEO with its perigee below 450 km, where the air's density
	// decides. Trusted for 3 days.
	LowLEO
)

var classNames = [...]string{"other", "LEO", "LEO below 450 km"}

// String is the class in words.
func (c Class) String() string {
	if c < 0 || int(c) >= len(classNames) {
		return fmt.Sprintf("class(%d)", int(c))
	}
	return classNames[c]
}

const (
	leoRevsPerDay = 11.25 // the usual boundary of low Earth orbit
	lowPerigeeKm  = 450   // hazard S-03
)

// MaxAge is how old the elements of a class may be before the station refuses
// to point with them (hazard S-03). It warns at half of it.
func (c Class) MaxAge() time.Duration {
	const day = 24 * time.Hour
	switch c {
	case LowLEO:
		return 3 * day
	case LEO:
		return 7 * day
	}
	return 14 * day
}

// Class of the set's orbit.
func (s Set) Class() Class {
	switch {
	case !(s.MeanMotion >= leoRevsPerDay):
		return Other
	case s.PerigeeKm() < lowPerigeeKm:
		return LowLEO
	}
	return LEO
}

// futureSlack is how far an epoch may lie ahead: sets are published with the
// epoch of the next node crossing.
const futureSlack = 24 * time.Hour

// A Trust is the verdict on a set at one time.
type Trust struct {
	AgeDays   float64 `json:"age_days"`   // negative for an epoch in the future
	Class     string  `json:"class"`      // see Class
	LimitDays float64 `json:"limit_days"` // older than this must not move an antenna
	Warn      bool    `json:"warn"`       // over half the limit
	TooOld    bool    `json:"too_old"`    // over the limit: ELEMENTS_TOO_OLD
	Suspect   bool    `json:"suspect"`    // epoch in the future: ELEMENTS_SUSPECT
	Why       string  `json:"why"`        // a sentence, "" when all is well
}

// OK reports whether the elements may point an antenna.
func (t Trust) OK() bool { return !t.TooOld && !t.Suspect }

// Trust judges the age of the set at a time.
func (s Set) Trust(now time.Time) Trust {
	class := s.Class()
	age := now.Sub(s.Epoch)
	limit := class.MaxAge()
	t := Trust{
		AgeDays:   age.Hours() / 24,
		Class:     class.String(),
		LimitDays: limit.Hours() / 24,
		Warn:      age > limit/2,
		TooOld:    age > limit,
		Suspect:   age < -futureSlack,
	}
	switch {
	case t.Suspect:
		t.Why = fmt.Sprintf("the elements' epoch is %.1f days in the future", -t.AgeDays)
	case t.TooOld:
		t.Why = fmt.Sprintf("the elements are %.1f days old, limit %.0f for %s", t.AgeDays, t.LimitDays, t.Class)
	case t.Warn:
		t.Why = fmt.Sprintf("the elements are %.1f days old, of at most %.0f for %s", t.AgeDays, t.LimitDays, t.Class)
	}
	return t
}

// Thresholds of Compare (hazard S-04). They are far outside what a month of an
// active Sun does to B* and what a station-keeping burn does to the rest of a
// LEO that an amateur or weather station follows; a burn that trips them is
// worth a look, and the next set after it agrees again.
const (
	maxBStarRatio   = 10.0 // between two sets, for B* that matters
	minBStar        = 1e-4 // below this the ratio means nothing
	maxMotionJump   = 0.01 // relative, beyond the drift that the old set predicts
	maxPlaneJumpDeg = 1.0  // inclination
)

// A Jump is one way in which a new set disagrees with the one before it.
type Jump struct {
	What string // a sentence with the numbers
}

// Compare looks for jumps from an old set to a new one of the same satellite.
// None means that the new set may replace the old one. The shift of the next
// pass needs an orbit and is checked by passes.Shift.
func Compare(old, new Set) []Jump {
	var jumps []Jump
	say := func(format string, args ...any) { jumps = append(jumps, Jump{fmt.Sprintf(format, args...)}) }
	if old.NoradID != new.NoradID {
		say("the sets are of two satellites, %d and %d", old.NoradID, new.NoradID)
		return jumps
	}
	if new.Epoch.Before(old.Epoch) {
		say("the new epoch %s is older than %s", new.Epoch.Format(time.DateTime), old.Epoch.Format(time.DateTime))
	}
	a, b := math.Abs(old.BStar), math.Abs(new.BStar)
	if max(a, b) > minBStar {
		if ratio := max(a, b) / max(min(a, b), minBStar/maxBStarRatio); ratio > maxBStarRatio {
			say("B* went from %.3g to %.3g", old.BStar, new.BStar)
		} else if old.BStar*new.BStar < 0 && min(a, b) > minBStar {
			say("B* changed its sign, from %.3g to %.3g", old.BStar, new.BStar)
		}
	}
	days := new.Epoch.Sub(old.Epoch).Hours() / 24
	drift := 2 * old.MeanMotionDot * days // the TLE prints half of it
	jump := math.Abs(new.MeanMotion-old.MeanMotion-drift) / old.MeanMotion
	if !(jump <= maxMotionJump+math.Abs(drift)/old.MeanMotion) {
		say("mean motion went from %.5f to %.5f rev/day in %.1f days", old.MeanMotion, new.MeanMotion, days)
	}
	if d := math.Abs(new.InclinationDeg - old.InclinationDeg); !(d <= maxPlaneJumpDeg) {
		say("inclination went from %.3f° to %.3f°", old.InclinationDeg, new.InclinationDeg)
	}
	return jumps
}
