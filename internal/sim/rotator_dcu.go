package sim

import (
	"fmt"
	"math"
	"strings"

	"gsd-mcp/internal/unit"
)

// dcuDialect is a controller of the Hy-Gain DCU-1 family.
type dcuDialect struct {
	lineBuffer
	answer   string // format of a bearing; "" = it cannot tell
	decimals bool   // RT-21
	version  bool   // a semicolon while idle brings its version
	prepared float64
}

func newDCU(m *Mount, d dcuDialect) *Controller {
	d.lineBuffer = lineBuffer{ends: ";"}
	return newController(m, &d)
}

// NewDCU1 is a Hy-Gain DCU-1, which cannot tell its position.
func NewDCU1(m *Mount) *Controller { return newDCU(m, dcuDialect{}) }

// NewRotorEZ is an Idiom Press Rotor-EZ.
func NewRotorEZ(m *Mount) *Controller {
	return newDCU(m, dcuDialect{answer: ";%03.0f", version: true})
}

// NewERC is a DF9GR ERC.
func NewERC(m *Mount) *Controller { return newDCU(m, dcuDialect{answer: "%03.0f;"}) }

// NewYRC1 is a Hy-Gain YRC-1, or DCU-2 or DCU-3.
func NewYRC1(m *Mount) *Controller { return newDCU(m, dcuDialect{answer: ";%03.0f"}) }

// NewRT21 is a Green Heron RT-21.
func NewRT21(m *Mount) *Controller {
	return newDCU(m, dcuDialect{answer: "%5.1f;", decimals: true})
}

func (d *dcuDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, s := range d.lines(in) {
		if r := d.command(c, s); r != "" {
			out = append(out, []byte(r))
		}
	}
	return out
}

func (d *dcuDialect) command(c *Controller, s string) string {
	switch s {
	case "": // a lone semicolon is a stop
		idle := !c.m.Moving()
		c.stop()
		if d.version && idle {
			return "Rotor-EZ 1.4s\r"
		}
		return ""
	case "AS1":
		c.stop()
		return ""
	case "AM1":
		c.pointAzimuth(d.prepared)
		return ""
	case "AI1", "BI1":
		if d.answer == "" || d.decimals != (s == "BI1") {
			return ""
		}
		az := unit.Norm360(c.reading().AzDeg)
		if !d.decimals {
			az = math.Mod(math.Round(az), 360)
		}
		return fmt.Sprintf(d.answer, az)
	}
	if bearing, ok := strings.CutPrefix(s, "AP1"); ok {
		now := strings.HasSuffix(bearing, "\r")
		az, ok := leadingNumber(strings.TrimSuffix(bearing, "\r"))
		if ok && az >= 0 && az <= 360 {
			if d.prepared = az; now {
				c.pointAzimuth(az)
			}
		}
	}
	return ""
}
