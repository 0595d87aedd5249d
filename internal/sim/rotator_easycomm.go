package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// easycommDialect answers EasyComm as its document and Hamlib expect: both axes
// on one line for "AZ EL", one axis for one word, no answer to a set.
type easycommDialect struct {
	lineBuffer
	version int // 1: never answers; 2; 3: with registers and velocities
}

func newEasycomm(m *Mount, version int) *Controller {
	return newController(m, &easycommDialect{lineBuffer{ends: "\r\n"}, version})
}

// NewEasycomm1 is a controller that obeys and never answers.
func NewEasycomm1(m *Mount) *Controller { return newEasycomm(m, 1) }

// NewEasycomm2 is a controller that answers EasyComm II. SatNOGS firmware
// differs (a lone AZ means "go to 0", a stop is answered): see NewSatNOGS. K3NG
// ends an answer with the byte that ended the question.
func NewEasycomm2(m *Mount) *Controller { return newEasycomm(m, 2) }

// NewEasycomm3 adds velocities and the status and error registers.
func NewEasycomm3(m *Mount) *Controller { return newEasycomm(m, 3) }

func (d *easycommDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		var reply []string
		words := strings.Fields(line)
		if slices.Contains(words, "SA") && slices.Contains(words, "SE") && c.stopLost() {
			continue
		}
		for _, word := range words {
			if r := d.word(c, word); r != "" && d.version > 1 {
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
	fast := c.m.cfg
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
		c.m.TurnAzimuth(-fast.AzSpeedDps)
	case "MR":
		c.m.TurnAzimuth(fast.AzSpeedDps)
	case "MU":
		c.m.TurnElevation(fast.ElSpeedDps)
	case "MD":
		c.m.TurnElevation(-fast.ElSpeedDps)
	case "PARK", "RESET":
		c.point(0, 0)
	case "VE":
		return "VEsim"
	case "GS", "GE":
		if d.version == 3 {
			return word + strconv.Itoa(easycommRegister(c, word))
		}
	}
	key, value := word[:min(2, len(word))], word[min(2, len(word)):]
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return ""
	}
	switch key {
	case "AZ":
		c.pointAzimuth(number)
	case "EL":
		c.pointElevation(number)
	}
	if d.version == 3 { // velocities in thousandths of a degree per second
		switch key {
		case "VR":
			c.m.TurnAzimuth(number / 1000)
		case "VL":
			c.m.TurnAzimuth(-number / 1000)
		case "VU":
			c.m.TurnElevation(number / 1000)
		case "VD":
			c.m.TurnElevation(-number / 1000)
		}
	}
	return ""
}

// easycommRegister is the status (1 idle, 2 moving, 8 error) or the error
// register (2 jam) of the EasyComm III proposal.
func easycommRegister(c *Controller, key string) int {
	jam := c.fault == RotatorJam
	switch {
	case key == "GE" && jam:
		return 2
	case key == "GE":
		return 0
	case jam:
		return 8
	case c.m.Moving():
		return 2
	}
	return 1
}

// NewSatNOGS is a controller like SatNOGS rotator firmware v2.2: only the first
// word of a line counts, except that "AZ EL" is a query and a line that starts
// with SA SE a stop, which is answered. A lone AZ or EL sets the target to 0. No
// target is checked. A line after text that did not end in a line end is lost.
func NewSatNOGS(m *Mount) *Controller {
	return newController(m, &satnogsDialect{lineBuffer{ends: "\r\n"}})
}

type satnogsDialect struct{ lineBuffer }

func (d *satnogsDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		if r := d.line(c, line); r != "" {
			out = append(out, []byte(r+"\n"))
		}
	}
	return out
}

func (d *satnogsDialect) line(c *Controller, line string) string {
	position := func() string {
		at := c.reading()
		return fmt.Sprintf("AZ%.1f EL%.1f", at.AzDeg, at.ElDeg)
	}
	words := strings.Fields(line)
	if len(words) == 0 {
		return ""
	}
	first, second := words[0], ""
	if len(words) > 1 {
		second = words[1]
	}
	switch {
	case first == "AZ" && second == "EL":
		return position()
	case first == "SA" && second == "SE":
		c.stop()
		return position()
	case first == "RESET", first == "PARK":
		reply := position()
		c.point(0, 0)
		return reply
	case first == "VE":
		return "VESatNOGS-v2.2"
	case first == "GS":
		return fmt.Sprintf("GS%d", satnogsStatus(c))
	case first == "GE":
		if c.fault == RotatorJam {
			return "GE8"
		}
		return "GE1"
	case strings.HasPrefix(first, "IP"):
		return satnogsInput(c, first)
	case strings.HasPrefix(first, "AZ"):
		az, ok := leadingNumber(first[2:])
		el, _ := leadingNumber(strings.TrimPrefix(second, "EL"))
		if !ok || second == "" { // atof of nothing is 0
			c.pointAzimuth(az)
			return ""
		}
		c.point(az, el)
	case strings.HasPrefix(first, "EL"):
		el, _ := leadingNumber(first[2:])
		c.pointElevation(el)
	}
	return ""
}

func satnogsStatus(c *Controller) int {
	switch {
	case c.fault == RotatorJam:
		return 8
	case c.m.Moving():
		return 4 // measured: it says pointing, also on the way
	}
	return 1
}

func satnogsInput(c *Controller, word string) string {
	at, t := c.reading(), c.m.Truth()
	switch word {
	case "IP0":
		return "IP0,25"
	case "IP3":
		return fmt.Sprintf("IP3,%.2f", at.AzDeg)
	case "IP4":
		return fmt.Sprintf("IP4,%.2f", at.ElDeg)
	case "IP7":
		return fmt.Sprintf("IP7,%.2f", t.AzRateDps)
	case "IP8":
		return fmt.Sprintf("IP8,%.2f", t.ElRateDps)
	}
	return ""
}

// leadingNumber reads a number as C's atof does: as far as it goes, so a
// decimal comma cuts it.
func leadingNumber(s string) (float64, bool) {
	end := 0
	for end < len(s) && strings.IndexByte("+-.0123456789", s[end]) >= 0 {
		end++
	}
	v, err := strconv.ParseFloat(s[:end], 64)
	return v, err == nil
}
