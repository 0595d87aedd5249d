package sim

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"gsd-mcp/internal/clock"
)

// An asciiRadio is a simulated radio whose commands are letters and digits
// ended by a semicolon: Kenwood and the newer Yaesu.
type asciiRadio struct {
	radioCore
	buf      []byte
	vfo      [2]asciiVFO
	satCtl   [7]byte
	tx       byte // FR and FT or split
	rx       byte
	auto     bool // announces what an operator does
	bands    [][2]int64
	digits   int
	obey     func(c string) string // the model's answer, "" for none
	settings int
}

type asciiVFO struct {
	hz   int64
	mode byte
}

func newASCII(clk *clock.Clock, bands [][2]int64, digits int) *asciiRadio {
	return &asciiRadio{radioCore: newRadioCore(clk), bands: bands, digits: digits, satCtl: [7]byte([]byte("0000000")),
		vfo: [2]asciiVFO{{145_800_000, '4'}, {435_100_000, '4'}}}
}

// Run answers requests on wire; see Device.
func (r *asciiRadio) Run(ctx context.Context, wire io.ReadWriter) error {
	return r.serve(ctx, wire, r.hear)
}

// Truth tells what the radio is doing.
func (r *asciiRadio) Truth() RadioTruth {
	r.mu.Lock()
	defer r.mu.Unlock()
	t := r.truth
	t.Time = r.clk.Now()
	name := map[byte]string{'1': "LSB", '2': "USB", '3': "CW", '4': "FM", '5': "AM", '6': "RTTY", '7': "CW-R", '8': "LSB-D", '9': "RTTY-R", 'A': "FM-D", 'B': "FM-N", 'C': "USB-D"}
	t.Main = RadioSide{r.vfo[0].hz, name[r.vfo[0].mode]}
	t.Sub = RadioSide{r.vfo[1].hz, name[r.vfo[1].mode]}
	t.Satellite = r.satCtl[0] == '1'
	t.Split = r.tx != r.rx
	t.SubSelected = r.control() == 1
	t.TransmitHz = r.vfo[r.transmitter()].hz
	return t
}

// control is which VFO MD and the dial are about.
func (r *asciiRadio) control() int {
	if r.satCtl[0] == '1' {
		return int(r.satCtl[3] - '0')
	}
	return int(r.rx)
}

func (r *asciiRadio) transmitter() int {
	if r.satCtl[0] == '1' {
		return 1
	}
	return int(r.tx)
}

// Dial is an operator who turns the dial of what is in control.
func (r *asciiRadio) Dial(hz int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.turn(hz)
}

func (r *asciiRadio) turn(hz int64) {
	if !r.mayTune(hz) {
		return
	}
	r.vfo[r.control()].hz = hz
	if r.auto {
		r.say([]byte(fmt.Sprintf("F%c%0*d;", 'A'+r.control(), r.digits, hz)))
	}
}

// SetAuto switches auto information on or off: the radio announces what an
// operator does.
func (r *asciiRadio) SetAuto(on bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.auto = on
}

func (r *asciiRadio) mayTune(hz int64) bool {
	for _, b := range r.bands {
		if b[0] <= hz && hz <= b[1] {
			return true
		}
	}
	return false
}

func (r *asciiRadio) hear(p []byte) (out [][]byte) {
	r.buf = append(r.buf, p...)
	for {
		end := bytes.IndexByte(r.buf, ';')
		if end < 0 {
			if len(r.buf) > 4096 {
				r.buf = nil
			}
			return out
		}
		c := strings.TrimLeft(string(r.buf[:end]), "\r\n")
		r.buf = r.buf[end+1:]
		r.truth.Requests++
		answer := ""
		switch {
		case r.fault == RadioNAK:
			answer = "?;"
		case r.fault == RadioCollision && r.truth.Requests%5 == 0:
			answer = "E;"
		default:
			answer = r.obey(c)
		}
		if r.auto && r.fault == RadioForeign { // somebody plays with the dial all the time
			answer = fmt.Sprintf("FB%0*d;", r.digits, r.vfo[1].hz) + answer
		}
		if answer != "" {
			out = append(out, []byte(answer))
		}
	}
}

// frequency serves FA and FB.
func (r *asciiRadio) frequency(c string, keyed bool) string {
	v := &r.vfo[c[1]-'A']
	if len(c) == 2 {
		return fmt.Sprintf("%s%0*d;", c, r.digits, v.hz)
	}
	var hz int64
	for _, d := range c[2:] {
		if d < '0' || d > '9' {
			return "?;"
		}
		hz = hz*10 + int64(d-'0')
	}
	if hz = r.kept(hz); len(c) != 2+r.digits || !r.mayTune(hz) || keyed {
		return "?;"
	}
	if r.fault == RadioSatLost {
		r.satCtl[0] = '0'
	}
	v.hz = hz
	if r.settings++; r.fault == RadioDial && r.settings%4 == 0 {
		r.turn(hz + 2000)
	}
	return ""
}

// newTS2000 makes a Kenwood TS-2000. In satellite mode FA is the downlink and
// FB the uplink, and FR and FT are refused.
func newTS2000(clk *clock.Clock) *asciiRadio {
	r := newASCII(clk, [][2]int64{{30e3, 60e6}, {118e6, 174e6}, {220e6, 512e6}, {1240e6, 1300e6}}, 11)
	tone, toneOn := "08", "0"
	r.obey = func(c string) string {
		sat := r.satCtl[0] == '1'
		switch {
		case c == "ID":
			return "ID019;"
		case c == "IF":
			return r.kenwoodIF()
		case c == "AI":
			return "AI" + map[bool]string{false: "0", true: "2"}[r.auto] + ";"
		case c == "AI0", c == "AI2":
			r.auto = c == "AI2"
			return ""
		case len(c) >= 2 && (c[:2] == "FA" || c[:2] == "FB"):
			return r.frequency(c, false)
		case c == "MD":
			return "MD" + string(r.vfo[r.control()].mode) + ";"
		case len(c) == 3 && c[:2] == "MD":
			if strings.ContainsAny(c[2:], "12345679DE") { // the captured device takes D and E, which a TS-2000 does not have
				r.vfo[r.control()].mode = c[2]
				return ""
			}
		case c == "SA":
			return "SA" + string(r.satCtl[:]) + ";"
		case len(c) == 9 && c[:2] == "SA" && strings.Trim(c[2:], "01") == "":
			r.satCtl = [7]byte([]byte(c[2:]))
			return ""
		case len(c) == 3 && c[:2] == "FR" && !sat && (c[2] == '0' || c[2] == '1'):
			r.rx, r.tx = c[2]-'0', c[2]-'0'
			return ""
		case len(c) == 3 && c[:2] == "FT" && !sat && (c[2] == '0' || c[2] == '1'):
			r.tx = c[2] - '0'
			return ""
		case c == "TX", c == "TX0", c == "TX1":
			if r.truth.Transmitting {
				return "?;"
			}
			r.key()
			return ""
		case c == "RX":
			r.unkey()
			return "RX0;"
		case strings.HasPrefix(c, "KY"), strings.HasPrefix(c, "PB"), strings.HasPrefix(c, "AC"):
			r.key()
			return ""
		case len(c) == 4 && c[:2] == "TN":
			tone = c[2:]
			return ""
		case c == "TN":
			return "TN" + tone + ";"
		case c == "TO0", c == "TO1":
			toneOn = c[2:]
			return ""
		case c == "TO":
			return "TO" + toneOn + ";"
		case c == "SM0":
			return "SM00010;"
		case c == "PC":
			return "PC050;"
		case c == "TY":
			return "TYK 00;"
		}
		return "?;"
	}
	return r
}

func (r *asciiRadio) kenwoodIF() string {
	flags := [2]byte{'0', '0'}
	if r.truth.Transmitting {
		flags[0] = '1'
	}
	if r.tx != r.rx {
		flags[1] = '1'
	}
	v := r.vfo[r.control()]
	return fmt.Sprintf("IF%011d0000+0000000000%c%c%d0%c0080;", v.hz, flags[0], v.mode, r.rx, flags[1])
}

// newTS790 makes a Kenwood TS-790: no satellite mode on the wire, no answer to
// RX, and FN where the TS-2000 has FR and FT.
func newTS790(clk *clock.Clock) *asciiRadio {
	r := newASCII(clk, vhfBands(), 11)
	r.obey = func(c string) string {
		switch {
		case c == "ID":
			return "ID007;"
		case c == "IF":
			return r.kenwoodIF()
		case c == "AI0", c == "AI1":
			r.auto = c == "AI1"
			return ""
		case len(c) >= 2 && (c[:2] == "FA" || c[:2] == "FB"):
			return r.frequency(c, false)
		case len(c) == 3 && c[:2] == "MD" && strings.ContainsAny(c[2:], "1234DE"):
			r.vfo[r.control()].mode = c[2]
			return ""
		case c == "MD":
			return "MD" + string(r.vfo[r.control()].mode) + ";"
		case len(c) == 3 && c[:2] == "FN" && c[2] <= '1' && c[2] >= '0':
			r.rx, r.tx = c[2]-'0', c[2]-'0'
			return ""
		case c == "TX":
			r.key()
			return ""
		case c == "RX":
			r.unkey()
			return ""
		case c == "SM":
			return "SM00010;"
		case c == "TY":
			return "TYK 00;"
		}
		return "?;"
	}
	return r
}

// newFT991 makes a Yaesu FT-991A: VFO A and B with split, and VFO A that cannot
// be retuned while it transmits.
func newFT991(clk *clock.Clock) *asciiRadio {
	r := newASCII(clk, [][2]int64{{30e3, 56e6}, {76e6, 164e6}, {420e6, 470e6}}, 9)
	registers := map[string]string{"EX032": "0", "SH0": "16", "NA0": "0", "PS": "1", "CT0": "0", "CN00": "012", "SM0": "120", "PC": "050", "RM5": "045", "RM6": "045"}
	who := byte('1')
	r.obey = func(c string) string {
		switch {
		case c == "ID":
			return "ID0670;"
		case c == "AI":
			return "AI" + map[bool]string{false: "0", true: "1"}[r.auto] + ";"
		case c == "AI0", c == "AI1":
			r.auto = c == "AI1"
			return ""
		case len(c) >= 2 && (c[:2] == "FA" || c[:2] == "FB"):
			return r.frequency(c, r.truth.Transmitting && c[1] == 'A')
		case c == "MD0":
			return "MD0" + string(r.vfo[0].mode) + ";"
		case len(c) == 4 && c[:3] == "MD0" && strings.ContainsAny(c[3:], "123456789ABCDE"):
			r.vfo[0].mode = c[3]
			return ""
		case c == "FT":
			return "FT" + string('0'+r.tx) + ";"
		case c == "FT2", c == "FT3":
			r.tx = c[2] - '2'
			return ""
		case c == "IF":
			return ft991Status("IF", r.vfo[0])
		case c == "OI":
			return ft991Status("OI", r.vfo[1])
		case c == "TX":
			switch {
			case r.fault == RadioMicPTT:
				return "TX2;"
			case r.truth.Transmitting:
				return "TX" + string(who) + ";"
			}
			return "TX0;"
		case c == "TX1", c == "TX2":
			r.key()
			return ""
		case c == "TX0":
			r.unkey()
			return ""
		case strings.HasPrefix(c, "KY"), strings.HasPrefix(c, "PB"), strings.HasPrefix(c, "AC"):
			r.key()
			return ""
		case c == "AB":
			r.vfo[1] = r.vfo[0]
			return ""
		case c == "SV":
			r.vfo[0], r.vfo[1] = r.vfo[1], r.vfo[0]
			return ""
		}
		for name, value := range registers {
			switch {
			case c == name:
				return name + value + ";"
			case strings.HasPrefix(c, name) && len(c) == len(name)+len(value) && name != "PS":
				registers[name] = c[len(name):]
				return ""
			}
		}
		return "?;"
	}
	return r
}

func ft991Status(name string, v asciiVFO) string {
	return fmt.Sprintf("%s001%09d+000000%c00000;", name, v.hz, v.mode)
}
