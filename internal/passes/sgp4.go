package passes

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	satellite "github.com/joshuaferrara/go-satellite"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// This file is the only one that touches go-satellite, and it works round what
// is wrong with v0.0.0-20220611180459-512638c64e5b (every figure measured):
//
//  1. It cuts the epoch to whole seconds: 4 km in low orbit, a degree overhead.
//     It is given an epoch that is a whole second (plus half a second, so that
//     no rounding can lose it); the exact epoch stays here, and every instant is
//     shifted by the difference. SGP4 knows no time but that since the epoch.
//  2. It takes whole seconds only. It is asked on its own grid, and the state is
//     carried to the instant by a Taylor series over at most half a second, good
//     to micrometres. Its Julian day rounds to 40 µs (0.3 m); the same rounding
//     is done here, so that the node's true time is known.
//  3. sgp4init has 128 where Vallado (AIAA 2006-6753) has 120: up to 3400 km off
//     below a perigee of 156 km. The constant only ever multiplies B*, so B* is
//     scaled by ((120-s)/(128-s))⁴.
//  4. It ends the process on text that is not a number and panics on short
//     lines. It sees only lines written below, from a validated Set.
//  5. Its error codes are lost on a copy, and positions come back anyway. The
//     code at the epoch is read from the Satellite; later states are checked
//     (state.check) and decay is looked for (Orbit.decay).
//  6. Its look angles use a spherical Earth (0.35° median, 90° worst) and its
//     LatLongDeg turns 190° into 170°: never called. See frame.go.
//  7. An inclination of exactly 180° divides by zero, and SGP4 itself blows up
//     on the way there: over 179.9° is refused. No satellite flies so.
//  8. Catalogue numbers must have five digits: it is told 00000.

// A propagator is one set inside go-satellite. It is immutable.
type propagator struct {
	sat              satellite.Satellite
	year, month, day int     // of the library's epoch
	second           int     // of that day
	jd               float64 // the library's epoch, rounded as it rounds
	turnS, turnC     float64 // sine and cosine of what states are turned back by
}

func newPropagator(s elements.Set) (propagator, error) {
	// Any epoch within half a second of the true one will do: SGP4 uses it for
	// the Moon, the Sun and the sidereal time of resonances only.
	e := s.Epoch.UTC().Round(time.Second)
	var p propagator
	p.year, p.month, p.day = e.Year(), int(e.Month()), e.Day()
	p.second = e.Hour()*3600 + e.Minute()*60 + e.Second()
	p.jd = satellite.JDay(p.year, p.month, p.day, e.Hour(), e.Minute(), e.Second())
	l1, l2, turn, err := libraryLines(s, e)
	if err != nil {
		return propagator{}, err
	}
	p.turnS, p.turnC = math.Sincos(turn)
	p.sat = satellite.TLEToSat(l1, l2, satellite.GravityWGS72)
	if p.sat.Error != 0 {
		return propagator{}, &Error{
			Kind: ErrPropagation, Satellite: s.Label(), At: s.Epoch,
			Detail: fmt.Sprintf("SGP4 error %d at the epoch (%s)", p.sat.Error, strings.ToLower(p.sat.ErrorStr)),
		}
	}
	return p, nil
}

// at is the state at second k after the library's epoch: kilometres, kilometres
// per second, TEME. The true time since the set's epoch is ts seconds.
func (p *propagator) at(k int) (ts float64, r, v vec) {
	second := p.second + k
	j := satellite.JDay(p.year, p.month, p.day, 0, 0, second)
	pos, vel := satellite.Propagate(p.sat, p.year, p.month, p.day, 0, 0, second)
	r, v = vec{pos.X, pos.Y, pos.Z}, vec{vel.X, vel.Y, vel.Z}
	if p.turnS != 0 {
		r, v = r.turned(p.turnS, p.turnC), v.turned(p.turnS, p.turnC)
	}
	return (j - p.jd) * 86400, r, v
}

// libraryLines writes the two lines that the library parses. Only the columns
// that it reads matter. States must be turned back by turn radians about the
// Earth's axis: a resonance depends on how the orbit stands over the turning
// Earth at the epoch, so the node moves with the sidereal time when the epoch
// is rounded (else 0.001° in three weeks for a Molniya).
func libraryLines(s elements.Set, e time.Time) (l1, l2 string, turn float64, err error) {
	if err := s.Validate(); err != nil {
		return "", "", 0, fmt.Errorf("elements of %s: %w", s.Label(), err)
	}
	midnight := time.Date(e.Year(), e.Month(), e.Day(), 0, 0, 0, 0, time.UTC)
	day := (e.Sub(midnight).Seconds() + 0.5) / 86400
	if s.InclinationDeg > 179.9 {
		return "", "", 0, &Error{
			Kind: ErrPropagation, Satellite: s.Label(), At: s.Epoch,
			Detail: fmt.Sprintf("SGP4 divides by zero at an inclination of 180°, this is %g°", s.InclinationDeg),
		}
	}
	bstar := s.BStar * dragScale(s)
	node := fixed8(s.RAANDeg)
	if s.MeanMotion < deepRevsPerDay {
		late := e.Sub(s.Epoch).Seconds()
		node = fixed8(unit.Norm360(s.RAANDeg + late*spin*deg))
		got, _ := strconv.ParseFloat(strings.TrimSpace(node), 64)
		turn = unit.Diff(got, s.RAANDeg) * rad
	}
	l1 = "1 00000U 00000A   " + digits(e.Year()%100, 2) + digits(e.YearDay(), 3) + strconv.FormatFloat(day, 'f', 8, 64)[1:] +
		"  .00000000  00000+0 " + assumedPoint(bstar) + " 0  000"
	l2 = "2 00000 " + fixed8(s.InclinationDeg) + " " + node + " " + digits(min(int(math.Round(s.Eccentricity*1e7)), 9_999_999), 7) + " " +
		fixed8(s.ArgPerigeeDeg) + " " + fixed8(s.MeanAnomalyDeg) + " " + right(strconv.FormatFloat(s.MeanMotion, 'f', 8, 64), 11) + "   00"
	if len(l1) != 68 || len(l2) != 68 {
		return "", "", 0, fmt.Errorf("elements of %s do not fit the columns of SGP4: %q %q", s.Label(), l1, l2)
	}
	return l1, l2, turn, nil
}

// deepRevsPerDay is where SGP4 begins to reckon with Moon, Sun and resonances:
// a period of 225 minutes.
const deepRevsPerDay = 6.4

// fixed8 writes an angle with as many decimals as fit eight columns.
func fixed8(deg float64) string {
	decimals := 4
	if deg < 99.99999 {
		decimals = 5
	}
	return right(strconv.FormatFloat(deg, 'f', decimals, 64), 8)
}

// right fills with blanks in front up to a width.
func right(s string, width int) string { return "           "[:max(0, width-len(s))] + s }

// digits writes a number with leading zeros.
func digits(n, width int) string {
	s := strconv.Itoa(n)
	return "0000000"[:max(0, width-len(s))] + s
}

// assumedPoint writes B* in its eight columns. The library puts a point behind
// the sign column, so a positive number gains a sixth digit there, which the
// scaled B* of a low perigee needs: 7.31970e-5 is "731970-5".
func assumedPoint(x float64) string {
	sign, digits, shift := "", 5, 0
	if x < 0 {
		sign, digits, shift, x = "-", 4, 1, -x
	}
	s := strconv.FormatFloat(x, 'e', digits, 64) // d.dddde±xx
	mantissa, power, _ := strings.Cut(s, "e")
	e, _ := strconv.Atoi(power)
	if e += shift; x == 0 || e < -9 {
		return "000000+0"
	}
	power = strconv.Itoa(e)
	if e >= 0 {
		power = "+" + power
	}
	return sign + strings.Replace(mantissa, ".", "", 1) + power
}

// dragScale is the factor that undoes fault 3: 1 for a perigee over 156 km.
func dragScale(s elements.Set) float64 {
	perigee := brouwer(s).perigeeKm(s.Eccentricity)
	if !(perigee < 156) {
		return 1
	}
	h := dragHeight(perigee)
	return math.Pow((120-h)/(128-h), 4)
}

// dragHeight is where SGP4's atmosphere begins for a perigee below 156 km.
func dragHeight(perigeeKm float64) float64 {
	if perigeeKm < 98 {
		return 20
	}
	return perigeeKm - 78
}

// A brouwerOrbit is mean motion (rad/min) and semi-major axis (Earth radii) as
// sgp4init works with them.
type brouwerOrbit struct{ no, a float64 }

func (b brouwerOrbit) perigeeKm(e float64) float64 { return (b.a*(1-e) - 1) * radiusKm }

// brouwer undoes Kozai's mean motion, which a TLE holds (Spacetrack Report 3).
func brouwer(s elements.Set) brouwerOrbit {
	no := s.MeanMotion * 2 * math.Pi / 1440
	ci := math.Cos(s.InclinationDeg * rad)
	e2 := 1 - s.Eccentricity*s.Eccentricity
	ak := math.Pow(xke/no, 2.0/3)
	d1 := 0.75 * j2 * (3*ci*ci - 1) / (math.Sqrt(e2) * e2)
	d := d1 / (ak * ak)
	a := ak * (1 - d*d - d*(1.0/3+134*d*d/81))
	d = d1 / (a * a)
	no /= 1 + d
	return brouwerOrbit{no, math.Pow(xke/no, 2.0/3)}
}

// WGS-72, the gravity model of SGP4's elements.
const (
	radiusKm = 6378.135
	mu       = 398600.8 // km³/s²
	j2       = 0.001082616
)

// xke is 60/√(radius³/mu): Earth radii, minutes.
var xke = 60 / math.Sqrt(radiusKm*radiusKm*radiusKm/mu)
