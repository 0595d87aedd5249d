package sim

import (
	"fmt"
	"strings"
)

// NewRotctld is Hamlib's rotctld as far as a client in the extended form sees
// it. What it does not know it does not answer, as Hamlib 4.5.4 does.
func NewRotctld(m *Mount) *Controller {
	return newController(m, &rotctldDialect{lineBuffer{ends: "\n"}})
}

type rotctldDialect struct{ lineBuffer }

func (d *rotctldDialect) receive(c *Controller, in []byte) (out [][]byte) {
	for _, line := range d.lines(in) {
		command, extended := strings.CutPrefix(strings.TrimRight(line, "\r"), "+")
		if r := d.command(c, command, extended); r != "" {
			out = append(out, []byte(r))
		}
	}
	return out
}

func (d *rotctldDialect) command(c *Controller, s string, extended bool) string {
	answer := func(name, fields, plain string, code int) string {
		switch {
		case extended:
			return fmt.Sprintf("%s\n%sRPRT %d\n", name, fields, code)
		case plain != "" && code == 0:
			return plain
		}
		return fmt.Sprintf("RPRT %d\n", code)
	}
	cfg := c.m.cfg
	word, args, _ := strings.Cut(s, " ")
	switch word {
	case "p", "\\get_pos":
		at := c.reading()
		return answer("get_pos:", fmt.Sprintf("Azimuth: %.2f\nElevation: %.2f\n", at.AzDeg, at.ElDeg),
			fmt.Sprintf("%.2f\n%.2f\n", at.AzDeg, at.ElDeg), 0)
	case "P", "\\set_pos":
		first, second, _ := strings.Cut(args, " ")
		az, okAz := leadingNumber(first)
		el, okEl := leadingNumber(second)
		code := -1
		if okAz && okEl && az >= cfg.AzMinDeg && az <= cfg.AzMaxDeg && el >= cfg.ElMinDeg && el <= cfg.ElMaxDeg && c.point(az, el) {
			code = 0
		}
		return answer("set_pos: "+args, "", "", code)
	case "S", "\\stop":
		c.stop()
		return answer("stop:", "", "", 0)
	case "K", "\\park":
		c.point(0, 0)
		return answer("park:", "", "", 0)
	case "\\dump_state":
		return answer("dump_state:", fmt.Sprintf("rotctld Protocol Ver: 1\nRotor Model: 1\nMinimum Azimuth: %f\nMaximum Azimuth: %f\n"+
			"Minimum Elevation: %f\nMaximum Elevation: %f\nSouth Zero: 0\nrot_type=AzEl\ndone\n",
			cfg.AzMinDeg, cfg.AzMaxDeg, cfg.ElMinDeg, cfg.ElMaxDeg),
			fmt.Sprintf("1\n1\nmin_az=%f\nmax_az=%f\nmin_el=%f\nmax_el=%f\nsouth_zero=0\nrot_type=AzEl\ndone\n",
				cfg.AzMinDeg, cfg.AzMaxDeg, cfg.ElMinDeg, cfg.ElMaxDeg), 0)
	}
	return ""
}
