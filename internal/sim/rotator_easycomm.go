package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// NewEasycomm2 is a controller that answers EasyComm II as its document and
// Hamlib's model 202 expect: both axes on one line for "AZ EL", one axis for
// one word, no answer to a set. SatNOGS firmware differs (a lone AZ means "go to
// 0", a stop is answered): see NewSatNOGS. K3NG ends an answer with the byte that
// ended the question.
func NewEasycomm2(m *Mount) *Controller {
	return newController(m, &easycommDialect{lineBuffer: lineBuffer{ends: "\r\n"}})
}

type easycommDialect struct {
	lineBuffer
}

func (d *easycommDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		var reply []string
		words := strings.Fields(line)
		if slices.Contains(words, "SA") && slices.Contains(words, "SE") && c.stopLost() {
			continue
		}
		for _, word := range words {
			if r := d.word(c, word); r != "" {
				reply = append(reply, r)
			}
		}
		if len(reply) > 0 {
			out = append(out, []byte(strings.Join(reply, " ")+"\n"))
		}
	}
	return out
}

// word does one command and returns its answer, if it has one.
func (d *easycommDialect) word(c *Controller, word string) string {
	switch word {
	case "AZ":
		return fmt.Sprintf("AZ%.1f", c.reading().AzDeg)
	case "EL":
		return fmt.Sprintf("EL%.1f", c.reading().ElDeg)
	case "SA":
		if c.fault != RotatorSwallowStop {
			c.m.StopAzimuth()
		}
	case "SE":
		if c.fault != RotatorSwallowStop {
			c.m.StopElevation()
		}
	case "ML":
		c.m.TurnAzimuth(-c.m.cfg.AzSpeedDps)
	case "MR":
		c.m.TurnAzimuth(c.m.cfg.AzSpeedDps)
	case "MU":
		c.m.TurnElevation(c.m.cfg.ElSpeedDps)
	case "MD":
		c.m.TurnElevation(-c.m.cfg.ElSpeedDps)
	case "PARK", "RESET":
		c.point(0, 0)
	case "VE":
		return "VEsim"
	}
	if s, ok := strings.CutPrefix(word, "AZ"); ok {
		if deg, err := strconv.ParseFloat(s, 64); err == nil {
			c.pointAzimuth(deg)
		}
	} else if s, ok := strings.CutPrefix(word, "EL"); ok {
		if deg, err := strconv.ParseFloat(s, 64); err == nil {
			c.pointElevation(deg)
		}
	}
	return ""
}
