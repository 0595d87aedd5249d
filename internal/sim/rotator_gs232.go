package sim

import (
	"fmt"
	"math"
	"strings"

	"gsd-mcp/internal/unit"
)

// gs232Dialect is a Yaesu GS-232A or B, or K3NG's firmware in its B mode. A
// command ends in CR and is answered by CR, with data by CR LF, and "?>" when it
// is refused. Positions are whole degrees modulo 360.
type gs232Dialect struct {
	lineBuffer
	b    bool // answers as a B
	k3ng bool // CR LF after everything, whole degrees cut off, bugs
	az   bool // no elevation axis

	last [2]string // digits of the W before, which K3NG puts into a cut one
}

// NewGS232A is a Yaesu GS-232A.
func NewGS232A(m *Mount) *Controller {
	return newController(m, &gs232Dialect{lineBuffer: lineBuffer{ends: "\r"}})
}

// NewGS232B is a Yaesu GS-232B.
func NewGS232B(m *Mount) *Controller {
	return newController(m, &gs232Dialect{lineBuffer: lineBuffer{ends: "\r"}, b: true})
}

// NewGS232Az is a GS-232A on a rotator without elevation, which does not answer
// C2.
func NewGS232Az(m *Mount) *Controller {
	return newController(m, &gs232Dialect{lineBuffer: lineBuffer{ends: "\r"}, az: true})
}

// NewK3NG is K3NG firmware in its GS-232B mode, with the bugs that were
// measured: a cut W is completed with digits of the one before and moves.
func NewK3NG(m *Mount) *Controller {
	return newController(m, &gs232Dialect{lineBuffer: lineBuffer{ends: "\r"}, b: true, k3ng: true, last: [2]string{"000", "000"}})
}

const gs232No = "?>\r\n"

func (d *gs232Dialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		out = append(out, []byte(d.command(c, strings.ToUpper(strings.TrimLeft(line, "\n")))))
	}
	return out
}

func (d *gs232Dialect) command(c *Controller, s string) string {
	yes := "\r"
	if d.k3ng {
		yes = "\r\n"
	}
	fast := c.m.cfg
	switch s {
	case "C2":
		if d.az {
			return gs232No
		}
		return d.azimuth(c) + d.elevation(c) + "\r\n"
	case "C":
		return d.azimuth(c) + "\r\n"
	case "B":
		return strings.TrimLeft(d.elevation(c), " ") + "\r\n"
	case "S":
		c.stop()
		return yes
	case "A":
		c.m.StopAzimuth()
		return yes
	case "E":
		c.m.StopElevation()
		return yes
	case "R":
		c.m.TurnAzimuth(fast.AzSpeedDps)
		return yes
	case "L":
		c.m.TurnAzimuth(-fast.AzSpeedDps)
		return yes
	case "U":
		c.m.TurnElevation(fast.ElSpeedDps)
		return yes
	case "D":
		c.m.TurnElevation(-fast.ElSpeedDps)
		return yes
	case "X1", "X2", "X3", "X4":
		return yes
	}
	accepted := false
	switch {
	case strings.HasPrefix(s, "W") && !d.az:
		accepted = d.point(c, s[1:])
	case strings.HasPrefix(s, "M"):
		if az, ok := threeDigits(s[1:], 450); ok {
			accepted = c.pointAzimuth(az)
		}
	}
	if accepted {
		return yes
	}
	return gs232No
}

// point does W. Azimuth 0 to 450 is counted from the counter-clockwise stop.
func (d *gs232Dialect) point(c *Controller, s string) bool {
	if (d.k3ng || c.fault == RotatorHalfCommands) && len(s) < 7 {
		whole := d.last[0] + " " + d.last[1]
		s += whole[len(s):]
	}
	if len(s) != 7 || s[3] != ' ' && !d.k3ng {
		return false
	}
	az, okAz := threeDigits(s[:3], 450)
	el, okEl := threeDigits(s[4:], 180)
	if !okAz || !okEl {
		return false
	}
	d.last = [2]string{s[:3], s[4:]}
	return c.point(az, el)
}

// threeDigits reads a fixed-width number up to limit.
func threeDigits(s string, limit float64) (float64, bool) {
	if len(s) != 3 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	v, _ := leadingNumber(s)
	return v, v <= limit
}

func (d *gs232Dialect) round(deg float64) int {
	if d.k3ng {
		return int(math.Floor(deg + 1e-9))
	}
	return int(math.Round(deg))
}

func (d *gs232Dialect) azimuth(c *Controller) string {
	az := d.round(unit.Norm360(c.reading().AzDeg)) % 360
	if d.b {
		return fmt.Sprintf("AZ=%03d", az)
	}
	return fmt.Sprintf("+%04d", az)
}

func (d *gs232Dialect) elevation(c *Controller) string {
	el := d.round(max(0, c.reading().ElDeg))
	switch {
	case d.k3ng:
		return fmt.Sprintf("EL=%03d", el)
	case d.b:
		return fmt.Sprintf("  EL=%03d", el)
	}
	return fmt.Sprintf("+%04d", el)
}
