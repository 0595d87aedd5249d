package sim

import (
	"math"
	"slices"
)

// spidDialect is a SPID controller: frames of 13 bytes that begin with W. It
// counts bytes, as real ones do: a byte too many or too few misaligns it until
// a W comes at the right place.
type spidDialect struct {
	steps     int // per degree
	azOnly    bool
	answerSet bool // MD-01
	fine      bool // hundredths: raw digits, replies that begin with X
	part      []byte
}

// NewRot1Prog is a SPID Rot1Prog: azimuth in whole degrees.
func NewRot1Prog(m *Mount) *Controller {
	return newController(m, &spidDialect{steps: 1, azOnly: true})
}

// NewRot2Prog is a SPID Rot2Prog with half degrees.
func NewRot2Prog(m *Mount) *Controller {
	return newController(m, &spidDialect{steps: 2})
}

// NewMD01 is a SPID MD-01 in Rot2 mode with tenths of a degree. It answers a set.
func NewMD01(m *Mount) *Controller {
	return newController(m, &spidDialect{steps: 10, answerSet: true})
}

// NewMD01Fine is a SPID MD-01 with the commands for hundredths of a degree.
func NewMD01Fine(m *Mount) *Controller {
	return newController(m, &spidDialect{steps: 100, answerSet: true, fine: true})
}

const spidFrame = 13

func (d *spidDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, b := range in {
		if len(d.part) == 0 && b != 'W' {
			continue
		}
		if d.part = append(d.part, b); len(d.part) < spidFrame {
			continue
		}
		f := d.part
		d.part = nil
		switch f[11] {
		case 0x0f:
			c.stop()
			out = append(out, d.position(c))
		case 0x1f, 0x6f:
			if d.fine == (f[11] == 0x6f) {
				out = append(out, d.position(c))
			}
		case 0x2f, 0x5f:
			if d.fine != (f[11] == 0x5f) {
				continue
			}
			if d.set(c, f) && d.answerSet {
				out = append(out, d.position(c))
			}
		}
	}
	return out
}

// set does a set; the resolution in it is ignored.
func (d *spidDialect) set(c *Controller, f []byte) bool {
	angle := func(b []byte, steps int) (deg float64, ok bool) {
		n := 0
		for _, digit := range b {
			if !d.fine {
				if digit < '0' || digit > '9' {
					return 0, false
				}
				digit -= '0'
			}
			n = 10*n + int(digit)
		}
		return float64(n)/float64(steps) - 360, true
	}
	if d.azOnly {
		az, ok := angle(f[1:4], 1)
		return ok && c.pointAzimuth(az)
	}
	az, okAz := angle(f[1:5], d.steps)
	el, okEl := angle(f[6:10], d.steps)
	return okAz && okEl && c.point(az, el)
}

func (d *spidDialect) position(c *Controller) []byte {
	at := c.reading()
	if d.fine {
		raw := func(deg float64) []byte {
			n := int(math.Round((deg + 360) * 100))
			return []byte{byte(n / 1000), byte(n / 100 % 10), byte(n / 10 % 10), byte(n % 10)}
		}
		return slices.Concat([]byte{'X'}, raw(at.AzDeg), []byte{100}, raw(at.ElDeg), []byte{100, ' '})
	}
	digits := func(deg float64) []byte { // in tenths, on the step of the encoder
		step := math.Round(deg*float64(d.steps)) / float64(d.steps)
		n := int(math.Round((step + 360) * 10))
		n = min(max(n, 0), 9999)
		return []byte{byte(n / 1000), byte(n / 100 % 10), byte(n / 10 % 10), byte(n % 10)}
	}
	out := append([]byte{'W'}, digits(at.AzDeg)...)
	if d.azOnly {
		return append(out[:4], ' ')
	}
	out = append(append(out, byte(d.steps)), digits(at.ElDeg)...)
	return append(out, byte(d.steps), ' ')
}
