// Package elements reads orbital elements (TLE, 3LE, OMM) and says whether to
// trust them. It is pure: bytes in, sets and problems out; it must never fetch,
// open or log anything.
package elements

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// A Set is one mean element set for SGP4 (theory: Brouwer, units as in the
// CCSDS OMM). A Set that came out of this package is within range and finite.
type Set struct {
	NoradID        int       // catalogue number, 1 to 999 999 999
	Name           string    // untrusted text, printable, at most 64 runes; "" when the source had none
	ObjectID       string    // international designator, 1998-067A; may be ""
	Classification byte      // 'U', 'C', 'S' or 0
	Epoch          time.Time // UTC, exact to the source's digits
	MeanMotion     float64   // revolutions per day, over 0
	Eccentricity   float64   // 0 to below 1
	InclinationDeg float64   // 0 to 180
	RAANDeg        float64   // right ascension of the ascending node, 0 to 360
	ArgPerigeeDeg  float64   // 0 to 360
	MeanAnomalyDeg float64   // 0 to 360
	BStar          float64   // drag term, 1/Earth radii
	MeanMotionDot  float64   // half the first derivative as printed in a TLE, rev/day²
	MeanMotionDDot float64   // a sixth of the second derivative as printed, rev/day³
	ElementSetNo   int
	RevAtEpoch     int
	Source         string // file or URL it came from, for messages
}

// Limits of what SGP4 and a TLE can hold.
const (
	maxBStar      = 100  // 1/Earth radii; real ones stay below 1
	maxMeanMotion = 20.0 // rev/day; 17.1 would graze the ground
	firstYear     = 1957
	lastYear      = 2056 // two-digit years end here
)

const (
	earthRadiusKm = 6378.135 // WGS-72, as SGP4
	earthMu       = 398600.8 // km³/s², WGS-72
	dayS          = 86400.0  // seconds
	twoPi         = 2 * math.Pi
)

func checkMeanMotion(n float64) string {
	switch {
	case !(n > 0):
		return fmt.Sprintf("mean motion %g must be > 0", n)
	case !(n <= maxMeanMotion):
		return fmt.Sprintf("mean motion %g rev/day is over %g: no orbit is that fast", n, maxMeanMotion)
	}
	return ""
}

// Period is the time of one revolution.
func (s Set) Period() time.Duration {
	return time.Duration(dayS / s.MeanMotion * float64(time.Second))
}

// SemiMajorAxisKm is the mean distance from the Earth's centre (Kepler's third
// law with SGP4's constants; within 0.2 % of the Brouwer value).
func (s Set) SemiMajorAxisKm() float64 {
	n := s.MeanMotion * twoPi / dayS
	return math.Cbrt(earthMu / (n * n))
}

// PerigeeKm is the mean height of the lowest point over the equatorial radius.
func (s Set) PerigeeKm() float64 { return s.SemiMajorAxisKm()*(1-s.Eccentricity) - earthRadiusKm }

// ApogeeKm is the mean height of the highest point over the equatorial radius.
func (s Set) ApogeeKm() float64 { return s.SemiMajorAxisKm()*(1+s.Eccentricity) - earthRadiusKm }

// Label is the name for messages, or the catalogue number without one.
func (s Set) Label() string {
	if s.Name != "" {
		return s.Name
	}
	return strconv.Itoa(s.NoradID)
}

// Validate reports the first value that is out of range or not finite. Sets
// from Parse have passed it.
func (s Set) Validate() error {
	switch {
	case s.NoradID < 1 || s.NoradID > MaxNoradID:
		return fmt.Errorf("catalogue number %d is outside 1..%d", s.NoradID, MaxNoradID)
	case s.Epoch.Year() < firstYear || s.Epoch.Year() > lastYear:
		return fmt.Errorf("epoch %s is outside %d..%d", s.Epoch.Format(time.RFC3339), firstYear, lastYear)
	case checkMeanMotion(s.MeanMotion) != "":
		return fmt.Errorf("%s", checkMeanMotion(s.MeanMotion))
	case !(s.Eccentricity >= 0 && s.Eccentricity < 1):
		return fmt.Errorf("eccentricity %g is not in 0..1", s.Eccentricity)
	case !(s.InclinationDeg >= 0 && s.InclinationDeg <= 180):
		return fmt.Errorf("inclination %g is outside 0..180", s.InclinationDeg)
	case !(s.RAANDeg >= 0 && s.RAANDeg <= 360):
		return fmt.Errorf("right ascension of the node %g is outside 0..360", s.RAANDeg)
	case !(s.ArgPerigeeDeg >= 0 && s.ArgPerigeeDeg <= 360):
		return fmt.Errorf("argument of perigee %g is outside 0..360", s.ArgPerigeeDeg)
	case !(s.MeanAnomalyDeg >= 0 && s.MeanAnomalyDeg <= 360):
		return fmt.Errorf("mean anomaly %g is outside 0..360", s.MeanAnomalyDeg)
	case !(s.BStar >= -maxBStar && s.BStar <= maxBStar):
		return fmt.Errorf("drag term B* %g is outside -%d..%d", s.BStar, maxBStar, maxBStar)
	case math.IsNaN(s.MeanMotionDot) || math.IsInf(s.MeanMotionDot, 0):
		return fmt.Errorf("mean motion derivative is not a number")
	case math.IsNaN(s.MeanMotionDDot) || math.IsInf(s.MeanMotionDDot, 0):
		return fmt.Errorf("mean motion second derivative is not a number")
	}
	return nil
}

// TLE writes the set as two canonical 69-column lines with checksums. Angles
// keep four decimals and the epoch 1e-8 day, as a TLE does. A catalogue number
// over 339999 does not fit: its columns are 00000.
func (s Set) TLE() (l1, l2 string) {
	number, _ := formatNorad(s.NoradID)
	class := s.Classification
	if class == 0 {
		class = 'U'
	}
	start := time.Date(s.Epoch.Year(), time.January, 1, 0, 0, 0, 0, time.UTC)
	units := (int64(s.Epoch.Sub(start)) + 432_000) / 864_000 // of 1e-8 day, rounded
	dot := math.Max(-0.99999999, math.Min(0.99999999, s.MeanMotionDot))
	ndot := strings.Replace(fmt.Sprintf("%+.8f", dot), "0.", ".", 1)
	if ndot[0] == '+' {
		ndot = " " + ndot[1:]
	}
	l1 = fmt.Sprintf("1 %s%c %-8.8s %02d%03d.%08d %s %s %s 0 %4d", number, class, shortID(s.ObjectID),
		s.Epoch.Year()%100, units/100_000_000+1, units%100_000_000, ndot, formatExp(s.MeanMotionDDot), formatExp(s.BStar),
		s.ElementSetNo%10000)
	l2 = fmt.Sprintf("2 %s %8.4f %8.4f %07d %8.4f %8.4f %11.8f%5d", number, s.InclinationDeg, s.RAANDeg,
		min(int(math.Round(s.Eccentricity*1e7)), 9_999_999), s.ArgPerigeeDeg, s.MeanAnomalyDeg, s.MeanMotion, s.RevAtEpoch%100000)
	return l1 + strconv.Itoa(checksum(l1)), l2 + strconv.Itoa(checksum(l2))
}

// shortID turns 1998-067A into 98067A; what is no designator is left out.
func shortID(id string) string {
	if len(id) < 9 || id[4] != '-' {
		return ""
	}
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' {
			return ""
		}
	}
	return id[2:4] + id[5:]
}
