package sim

import (
	"fmt"
	"strings"
)

// NewRC2800 is an M2 RC2800PX. A and E select an axis, with a number they set
// it; S stops the selected one; a number alone sets the selected one, as early
// firmware wants it. Everything is answered with the axis' status.
func NewRC2800(m *Mount) *Controller {
	return newController(m, &rc2800Dialect{lineBuffer: lineBuffer{ends: "\r"}, axis: "A"})
}

type rc2800Dialect struct {
	lineBuffer
	axis string
	lost bool // the stop before was lost
}

func (d *rc2800Dialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		out = append(out, []byte(d.command(c, line)+"\r"))
	}
	return out
}

func (d *rc2800Dialect) command(c *Controller, s string) string {
	if s == "S" {
		// One stop of the station is two here.
		if d.axis == "A" {
			d.lost = c.stopLost()
		}
		switch {
		case d.lost:
		case d.axis == "A":
			c.m.StopAzimuth()
		default:
			c.m.StopElevation()
		}
		return d.status(c)
	}
	if strings.HasPrefix(s, "A") || strings.HasPrefix(s, "E") {
		d.axis, s = s[:1], s[1:]
	}
	if s == "" {
		return d.status(c)
	}
	deg, ok := leadingNumber(s)
	switch {
	case !ok, d.axis == "A" && (deg < 0 || deg > 360), d.axis == "E" && (deg < 0 || deg > 180):
		ok = false
	case d.axis == "A":
		ok = c.pointAzimuth(deg)
	default:
		ok = c.pointElevation(deg)
	}
	if !ok {
		return d.axis + " ERR=02"
	}
	return d.status(c)
}

func (d *rc2800Dialect) status(c *Controller) string {
	at := c.reading()
	deg := at.AzDeg
	if d.axis == "E" {
		deg = at.ElDeg
	}
	state := "S"
	if c.m.Moving() {
		state = "M"
	}
	return fmt.Sprintf("%s=%.1f S=9 %s", d.axis, deg, state)
}
