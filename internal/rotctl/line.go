package rotctl

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"gsd-mcp/internal/unit"
)

// maxLine bounds a line, its end included. The longest command has 30 bytes.
const maxLine = 256

// A verb is what a line asks for.
type verb int

const (
	nothing verb = iota // a blank line or a comment
	getPos
	setPos
	stop
	park
	getInfo
	getStatus
	dumpCaps
	dumpState
	quit
	refused // known to Hamlib and not offered: code says how
	wrong   // not understood: code says how
	foreign // not this protocol at all: the connection is closed
)

// Answers of Hamlib's rig.h, RPRT -n.
const (
	ok             = 0
	invalid        = -1
	notImplemented = -4
	ioError        = -6
	rejected       = -9
	notAvailable   = -11
	limitExceeded  = -21
	accessDenied   = -22
)

// A command is one row of what rotctld understands.
type command struct {
	short byte
	long  string
	args  int
	verb  verb
	code  int // of refused
}

// commands are those of rotctl(1). What turns the antenna without a target,
// resets or configures it, or sends raw bytes is refused: nothing of it could
// pass the gate.
var commands = [...]command{
	{'P', "set_pos", 2, setPos, 0},
	{'p', "get_pos", 0, getPos, 0},
	{'S', "stop", 0, stop, 0},
	{'K', "park", 0, park, 0},
	{'_', "get_info", 0, getInfo, 0},
	{'s', "get_status", 0, getStatus, 0},
	{'1', "dump_caps", 0, dumpCaps, 0},
	{0, "dump_state", 0, dumpState, 0},
	{'q', "quit", 0, quit, 0},
	{'Q', "exit", 0, quit, 0},
	{'M', "move", 2, refused, notAvailable},
	{'R', "reset", 1, refused, notAvailable},
	{'C', "set_conf", 2, refused, notAvailable},
	{'V', "set_level", 2, refused, notAvailable},
	{'v', "get_level", 1, refused, notAvailable},
	{'U', "set_func", 2, refused, notAvailable},
	{'u', "get_func", 1, refused, notAvailable},
	{'X', "set_parm", 2, refused, notAvailable},
	{'x', "get_parm", 1, refused, notAvailable},
}

// A request is one parsed line.
type request struct {
	verb verb
	code int    // of refused and wrong
	sep  string // between the fields of an extended answer; "" is the default form
	echo string // first field of an extended answer
	at   unit.AzEl
}

// parse understands a whole line, its end removed. It never acts on a part of
// one.
func parse(line []byte) request {
	line = bytes.TrimRight(line, "\r")
	if isForeign(line) {
		return request{verb: foreign}
	}
	text := strings.Trim(string(line), " \t")
	if text == "" || text[0] == '#' {
		return request{verb: nothing}
	}
	var r request
	if c := text[0]; isPunct(c) && c != '\\' && c != '_' {
		if r.sep = string(c); c == '+' {
			r.sep = "\n"
		}
		text = text[1:]
	}
	long := strings.HasPrefix(text, `\`)
	text = strings.TrimPrefix(text, `\`)
	if text == "" || text[0] == ' ' || text[0] == '\t' {
		r.verb, r.code = wrong, invalid
		return r
	}
	words := strings.FieldsFunc(text, func(c rune) bool { return c == ' ' || c == '\t' })
	i := slices.IndexFunc(commands[:], func(c command) bool {
		return c.long == words[0] || !long && len(words[0]) == 1 && c.short == words[0][0]
	})
	if i < 0 {
		r.verb, r.code = wrong, notImplemented
		return r
	}
	c := commands[i]
	r.verb, r.code = c.verb, c.code
	r.echo = c.long + ":"
	if len(words) > 1 {
		r.echo += " " + unit.Printable(strings.Join(words[1:], " "), maxLine)
	}
	if c.verb != refused && len(words) != 1+c.args {
		r.verb, r.code = wrong, invalid
		return r
	}
	if c.verb == setPos {
		at, good := direction(words[1], words[2])
		if !good {
			r.verb, r.code = wrong, invalid
		}
		r.at = at
	}
	return r
}

func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && !('0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z')
}

// isForeign recognises what a browser, a TLS client or a program for another
// port sends. None of it may be taken for commands, nor what follows it.
func isForeign(line []byte) bool {
	for _, c := range line {
		if c < ' ' && c != '\t' && c != '\r' || c == 0x7f {
			return true
		}
	}
	word, rest, more := bytes.Cut(line, []byte(" "))
	switch string(word) {
	case "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI":
		return more && len(rest) > 0
	}
	return bytes.Contains(line, []byte("HTTP/"))
}

// number is a plain decimal. Hamlib also takes nan, inf, 0x10 and 1e2. The comma
// is that of a client which writes numbers in its user's language.
var number = regexp.MustCompile(`^[+-]?[0-9]{1,4}(([.,])[0-9]{1,10})?$`)

// Bounds of what can be meant; the station's own limits are the gate's.
const (
	azMinDeg, azMaxDeg = -180, 450
	elMinDeg, elMaxDeg = -90, 180
)

// direction reads azimuth and elevation. They come from one program, so a point
// in one and a comma in the other is not understood.
func direction(az, el string) (d unit.AzEl, good bool) {
	mark := ""
	read := func(s string, lo, hi float64) float64 {
		m := number.FindStringSubmatch(s)
		if m == nil || mark != "" && m[2] != "" && m[2] != mark {
			good = false
			return 0
		}
		if m[2] != "" {
			mark = m[2]
		}
		v, err := strconv.ParseFloat(strings.Replace(s, ",", ".", 1), 64)
		if err != nil || !(lo <= v && v <= hi) {
			good = false
		}
		return v
	}
	good = true
	d = unit.AzEl{AzDeg: read(az, azMinDeg, azMaxDeg), ElDeg: read(el, elMinDeg, elMaxDeg)}
	return d, good
}
