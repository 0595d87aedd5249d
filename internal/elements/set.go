// Package elements reads orbital elements (TLE, 3LE, OMM) and says whether to
// trust them. It is pure: bytes in, sets and problems out; it must never fetch,
// open or log anything.
package elements

import "time"

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
