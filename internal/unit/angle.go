// Package unit holds the quantities that the other packages share: directions,
// sites, horizons and text from outside. It is pure: it must never read a
// clock, a file or a port.
package unit

import (
	"fmt"
	"math"
)

// AzEl is a direction in the sky in degrees. Azimuth runs clockwise from true
// north, elevation upwards from the horizontal.
type AzEl struct {
	AzDeg float64 `json:"azimuth_deg"`
	ElDeg float64 `json:"elevation_deg"`
}

// String gives both angles to a tenth of a degree.
func (a AzEl) String() string { return fmt.Sprintf("az %.1f° el %.1f°", a.AzDeg, a.ElDeg) }

// Finite reports whether both angles are real numbers.
func (a AzEl) Finite() bool { return finite(a.AzDeg) && finite(a.ElDeg) }

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Norm360 brings an azimuth into [0, 360).
func Norm360(deg float64) float64 {
	switch { // Mod is slow, and most azimuths are at most a turn away
	case 0 <= deg && deg < 360:
		return deg
	case 360 <= deg && deg < 720:
		return deg - 360
	}
	d := math.Mod(deg, 360)
	if d < 0 {
		d += 360
	}
	if d >= 360 { // -1e-17 + 360 rounds to 360
		return 0
	}
	return d
}

// Diff is the signed shortest way from azimuth b to azimuth a, in [-180, 180).
func Diff(a, b float64) float64 {
	return Norm360(a-b+180) - 180
}

// Separation is the angle on the sky between two directions in degrees, 0 to
// 180. It is right near the zenith, where azimuths mean little, and for
// elevations over 90° (a flipped mount).
func Separation(a, b AzEl) float64 {
	const rad = math.Pi / 180
	ax, ay, az := vec(a)
	bx, by, bz := vec(b)
	// atan2 of cross and dot keeps its accuracy for tiny angles; acos does not.
	cx, cy, cz := ay*bz-az*by, az*bx-ax*bz, ax*by-ay*bx
	return math.Atan2(math.Sqrt(cx*cx+cy*cy+cz*cz), ax*bx+ay*by+az*bz) / rad
}

func vec(a AzEl) (x, y, z float64) {
	const rad = math.Pi / 180
	se, ce := math.Sincos(a.ElDeg * rad)
	sa, ca := math.Sincos(a.AzDeg * rad)
	return ce * ca, ce * sa, se
}

// Nearest returns the azimuth equal to az modulo 360° that lies nearest to ref.
func Nearest(az, ref float64) float64 { return ref + Diff(az, ref) }

// A Site is a place on the WGS-84 ellipsoid.
type Site struct {
	LatDeg float64 `json:"latitude_deg"`  // -90 to 90, north positive
	LonDeg float64 `json:"longitude_deg"` // -180 to 180, east positive
	AltM   float64 `json:"altitude_m"`    // above the ellipsoid, -500 to 9000
}

// Validate reports the first coordinate that is out of range.
func (s Site) Validate() error {
	switch {
	case !(s.LatDeg >= -90 && s.LatDeg <= 90):
		return fmt.Errorf("latitude %v° is outside -90..90", s.LatDeg)
	case !(s.LonDeg >= -180 && s.LonDeg <= 180):
		return fmt.Errorf("longitude %v° is outside -180..180 (east is positive)", s.LonDeg)
	case !(s.AltM >= -500 && s.AltM <= 9000):
		return fmt.Errorf("altitude %v m is outside -500..9000", s.AltM)
	}
	return nil
}
