package elements

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"gsd-mcp/internal/unit"
)

// Shortest lines that hold every number SGP4 needs: B* ends in column 61 of
// line 1, the mean motion in column 63 of line 2. The checksum is column 69.
const (
	minLine1   = 61
	minLine2   = 63
	checkWidth = 69
	slowest    = 0.01 // rev/day; a period of 100 days lies outside the Earth's reach
	lastMotion = 16.6 // rev/day in the last day or two of a round orbit
	decayDays  = 14
)

// A tleLine is one line of a TLE source with its number.
type tleLine struct {
	text string
	no   int // from 1; 0 when there is none
}

// tle reads two-line elements. A name is any other text on the line before
// line 1. After a bad record it takes up again at the next line 1.
func (r *reader) tle(data []byte) {
	var name, first tleLine
	orphan := "" // number columns of a line 2 that came before its line 1
	seen := false
	drop := func() {
		if first.no > 0 && (orphan == "" || orphan != numberColumns(first.text)) {
			r.reject(first.no, 0, fixFetch, "line 1 of %s has no line 2", quoteNumber(first.text))
		}
		first, orphan = tleLine{}, ""
	}
	for no := 1; len(data) > 0; no++ {
		raw, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		text := strings.TrimRight(string(raw), " \t\r")
		switch {
		case strings.TrimSpace(text) == "":
		case isElementLine(text, '1'):
			seen = true
			hadOrphan := orphan
			drop()
			orphan = hadOrphan
			first = tleLine{text, no}
		case isElementLine(text, '2'):
			seen = true
			if first.no == 0 {
				orphan = numberColumns(text)
				r.reject(no, 0, "put line 1 first", "line 2 before line 1")
				break
			}
			r.record(name, first, tleLine{text, no})
			name, first, orphan = tleLine{}, tleLine{}, ""
		case strings.HasPrefix(text, "#"):
		default:
			drop()
			name = tleLine{text, no}
			continue
		}
		if first.no == 0 {
			name = tleLine{}
		}
	}
	drop()
	if !seen {
		r.notElements(name)
	}
}

func (r *reader) notElements(last tleLine) {
	if strings.Contains(strings.ToLower(last.text), "no gp data found") {
		r.reject(last.no, 0, fixKeep, "the server found nothing for this query")
		r.res.Format = ""
		return
	}
	r.res.Format = ""
	r.reject(max(last.no, 1), 0, fixKeep, "no orbital elements in this text; it ends with %q", unit.Printable(last.text, showMax))
}

// isElementLine tells an element line from a name that happens to begin with
// a digit: a blank, then five number columns.
func isElementLine(s string, digit byte) bool {
	if len(s) < 7 || s[0] != digit || s[1] != ' ' {
		return false
	}
	digits := 0
	for i := 2; i < 7; i++ {
		c := s[i]
		switch {
		case c >= '0' && c <= '9':
			digits++
		case c == ' ' && digits == 0:
		case i == 2 && (c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z'):
		default:
			return false
		}
	}
	return digits > 0 && (len(s) == 7 || len(s) > 16 || s[7] == ' ')
}

func numberColumns(s string) string {
	if len(s) < 7 {
		return ""
	}
	return s[2:7]
}

func quoteNumber(s string) string { return strings.TrimLeft(numberColumns(s), " 0") }

// record turns the lines of one satellite into a Set, or says why not.
func (r *reader) record(name, l1, l2 tleLine) {
	p := &tleFields{r: r}
	p.set.Name = tleName(name.text)
	p.set.Source = r.source
	if !p.shape(l1, 1, minLine1, separators1[:]) || !p.shape(l2, 2, minLine2, separators2[:]) {
		return
	}
	if !p.checksums(l1, l2) {
		return
	}
	n1, err := parseNorad(l1.text[2:7])
	if err != nil {
		r.reject(l1.no, 3, fixFetch, "line 1: %v", err)
		return
	}
	n2, err := parseNorad(l2.text[2:7])
	if err != nil {
		r.reject(l2.no, 3, fixFetch, "line 2: %v", err)
		return
	}
	if n1 != n2 {
		r.reject(l2.no, 3, "the lines are of two satellites: "+fixFetch, "line 1 is for %d but line 2 is for %d", n1, n2)
		return
	}
	p.set.NoradID = n1
	p.line1(l1)
	if !p.failed {
		p.line2(l2)
	}
	if p.failed {
		return
	}
	if !hasChecksum(l1.text) || !hasChecksum(l2.text) {
		r.warn(l1.no, checkWidth, "prefer a source with checksums", "checksum absent: damage in transit would not be seen")
	}
	if p.set.ObjectID == "" {
		r.warn(l1.no, 10, "prefer a source with designators", "no international designator: the object cannot be checked against another catalogue")
	}
	p.decay(l2)
	r.res.Sets = append(r.res.Sets, p.set)
}

func tleName(s string) string {
	s = strings.TrimSpace(s)
	if rest, ok := strings.CutPrefix(s, "0 "); ok {
		s = rest
	}
	return unit.Printable(s, nameMax)
}

// separators1 and separators2 say what must stand in a column (from 0): a
// deleted blank shifts numbers without changing the checksum.
var (
	separators1 = [...]sep{{1, ' '}, {8, ' '}, {17, ' '}, {23, '.'}, {32, ' '}, {34, '.'}, {43, ' '}, {52, ' '}}
	separators2 = [...]sep{{1, ' '}, {7, ' '}, {11, '.'}, {16, ' '}, {20, '.'}, {25, ' '}, {33, ' '}, {37, '.'}, {42, ' '}, {46, '.'}, {51, ' '}, {54, '.'}}
)

type sep struct {
	index int
	want  byte
}

type tleFields struct {
	r      *reader
	set    Set
	failed bool
}

// shape checks the characters, length, columns and checksum of a line.
func (p *tleFields) shape(l tleLine, which, least int, seps []sep) bool {
	column := 0
	for i, c := range l.text {
		column++
		if c >= utf8.RuneSelf {
			if c == utf8.RuneError {
				p.r.reject(l.no, column, "copy the lines as plain text", "byte 0x%02X in line %d, column %d is not ASCII", l.text[i], which, column)
			} else {
				p.r.reject(l.no, column, "copy the lines as plain text", "non-ASCII character U+%04X in line %d, column %d", c, which, column)
			}
			return false
		}
		if c < ' ' || c == 0x7f {
			p.r.reject(l.no, column, "copy the lines as plain text", "control character U+%04X in line %d, column %d", c, which, column)
			return false
		}
	}
	if len(l.text) < least {
		cut := "B* cut"
		if which == 2 {
			cut = "mean motion cut"
		}
		p.r.reject(l.no, len(l.text), fixFetch, "line %d has %d columns, needs at least %d (%s)", which, len(l.text), least, cut)
		return false
	}
	for _, s := range seps {
		got := l.text[s.index]
		if got == s.want || s.want == '.' && got == ' ' {
			continue
		}
		// A letter inside a number is better called that than a shift.
		if s.want == '.' && (got < '0' || got > '9') {
			continue
		}
		p.r.reject(l.no, s.index+1, fixFetch, "line %d, column %d is %q, expected %q: its numbers are not in their columns", which, s.index+1, got, s.want)
		return false
	}
	return true
}

// checksums rejects a record whose checksum is wrong. An orbit that SGP4
// cannot start from is the exception: it can move nothing, so it is kept to be
// reported as what it is, with the checksum in the same warning.
func (p *tleFields) checksums(l1, l2 tleLine) bool {
	wrong, no := "", 0
	for i, l := range []tleLine{l1, l2} {
		if !hasChecksum(l.text) || wrong != "" {
			continue
		}
		if got, want := l.text[68], byte('0'+checksum(l.text)); got != want {
			wrong, no = fmt.Sprintf("line %d checksum: got %c, expected %c", i+1, got, want), l.no
		}
	}
	n, err := parseDecimal(strings.TrimSpace(l2.text[52:63]), false)
	if err == nil && n > 0 && n < slowest {
		what := fmt.Sprintf("mean motion %g rev/day is slower than any Earth satellite: SGP4 fails at the epoch, no passes are listed", n)
		if wrong != "" {
			what += " (" + wrong + ")"
		}
		p.r.warn(l2.no, 53, fixFetch, "%s", what)
		return true
	}
	if wrong != "" {
		p.r.reject(no, checkWidth, fixFetch, "%s", wrong)
		return false
	}
	return true
}

// decay warns of a satellite whose mean motion reaches that of the last
// revolutions within two weeks.
func (p *tleFields) decay(l tleLine) {
	growth := 2 * p.set.MeanMotionDot // rev/day per day; the line prints half of it
	if left := lastMotion - p.set.MeanMotion; p.set.MeanMotion > leoRevsPerDay && left < decayDays*growth {
		p.r.warn(l.no, 53, "use elements of the same day", "the orbit decays within about %.0f days of its epoch: passes after that are refused", math.Ceil(max(left, 0)/growth))
	}
}

func hasChecksum(s string) bool { return len(s) >= checkWidth && s[68] != ' ' }

// checksum adds the digits of the first 68 columns, a minus counting one.
func checksum(s string) int {
	n := 0
	for i := range 68 {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			n += int(c - '0')
		case c == '-':
			n++
		}
	}
	return n % 10
}

func (p *tleFields) line1(l tleLine) {
	s := l.text
	p.set.Classification = s[7]
	if s[7] == ' ' {
		p.set.Classification = 0
	}
	p.set.ObjectID = objectID(s[9:17])
	p.epoch(l)
	p.set.MeanMotionDot = p.decimal(l, "mean motion derivative", 33, 43)
	p.set.MeanMotionDDot = p.exponent(l, "mean motion second derivative", 44, 52)
	p.set.BStar = p.exponent(l, "B*", 53, 61)
	if !(p.set.BStar >= -maxBStar && p.set.BStar <= maxBStar) {
		p.fail(l, 53, "B* %g is outside -%d..%d", p.set.BStar, maxBStar, maxBStar)
	}
	if len(s) > 62 {
		if t := s[62]; t != '0' && t != ' ' && t != '2' {
			p.fail(l, 62, "ephemeris type %c is not supported: %s", t, whyType(string(t)))
		}
	}
	if len(s) > 64 {
		p.set.ElementSetNo = looseInt(s[64:min(len(s), 68)])
	}
}

func whyType(t string) string {
	if t == "4" {
		return "SGP4-XP elements need another theory, SGP4 would put them in the wrong place"
	}
	return "only SGP4 elements (0) can be used"
}

func (p *tleFields) line2(l tleLine) {
	s := l.text
	p.set.InclinationDeg = p.angle(l, "inclination", 8, 16, 180)
	p.set.RAANDeg = p.angle(l, "right ascension of the node", 17, 25, 360)
	ecc, err := parseDigits(strings.ReplaceAll(s[26:33], " ", "0"))
	if err != nil {
		p.fail(l, 26, "eccentricity %q is not seven digits", s[26:33])
	}
	p.set.Eccentricity = float64(ecc) / 1e7
	p.set.ArgPerigeeDeg = p.angle(l, "argument of perigee", 34, 42, 360)
	p.set.MeanAnomalyDeg = p.angle(l, "mean anomaly", 43, 51, 360)
	p.set.MeanMotion = p.decimal(l, "mean motion", 52, 63)
	if !p.failed {
		if what := checkMeanMotion(p.set.MeanMotion); what != "" {
			p.fail(l, 52, "%s", what)
		}
	}
	if len(s) > 63 {
		p.set.RevAtEpoch = looseInt(s[63:min(len(s), 68)])
	}
}

// epoch reads year and day of the year exactly: 1e-8 day is 864 µs. Day 366 of
// a common year rolls over, as CelesTrak has sent it.
func (p *tleFields) epoch(l tleLine) {
	s := strings.ReplaceAll(l.text[18:32], " ", "0")
	yy, err1 := parseDigits(s[0:2])
	day, err2 := parseDigits(s[2:5])
	frac, err3 := parseDigits(s[6:14])
	if err1 != nil || err2 != nil || err3 != nil || s[5] != '.' {
		p.fail(l, 18, "epoch %q is not a number", l.text[18:32])
		return
	}
	if day < 1 || day > 366 {
		p.fail(l, 20, "day of year %d is not in 1..366", day)
		return
	}
	year := 2000 + yy
	if yy >= 57 {
		year = 1900 + yy
	}
	p.set.Epoch = time.Date(year, time.January, day, 0, 0, 0, 0, time.UTC).Add(time.Duration(frac) * 864 * time.Microsecond)
}

// fail rejects the record at a column counted from 0; only the first failure
// of a record is told.
func (p *tleFields) fail(l tleLine, index int, what string, args ...any) {
	if !p.failed {
		p.r.reject(l.no, index+1, fixFetch, "%s", fmt.Sprintf(what, args...))
	}
	p.failed = true
}

func (p *tleFields) decimal(l tleLine, name string, from, to int) float64 {
	field := l.text[from:to]
	t := strings.TrimSpace(field)
	if len(t) > 1 && (t[0] == '+' || t[0] == '-') {
		t = t[:1] + strings.TrimLeft(t[1:], " ")
	}
	x, err := parseDecimal(t, false)
	if err != nil {
		p.fail(l, from, "%s %q is not a number", name, field)
	}
	return x
}

func (p *tleFields) exponent(l tleLine, name string, from, to int) float64 {
	x, err := parseExp(l.text[from:to])
	if err != nil {
		p.fail(l, from, "%s %q is not a number", name, l.text[from:to])
	}
	return x
}

func (p *tleFields) angle(l tleLine, name string, from, to int, limit float64) float64 {
	x := p.decimal(l, name, from, to)
	if !(x >= 0 && x <= limit) {
		p.fail(l, from, "%s %s is outside 0..%g", name, strings.TrimSpace(l.text[from:to]), limit)
	}
	return x
}

// looseInt reads the counters at the end of a line, which SGP4 does not use:
// what is not a number is 0.
func looseInt(s string) int {
	n, err := parseDigits(strings.ReplaceAll(strings.TrimSpace(s), " ", "0"))
	if err != nil {
		return 0
	}
	return n
}

// objectID turns 98067A into 1998-067A; anything else stays as it is.
func objectID(s string) string {
	s = strings.TrimSpace(s)
	if len(s) < 6 {
		return unit.Printable(s, 16)
	}
	yy, err1 := parseDigits(s[0:2])
	_, err2 := parseDigits(s[2:5])
	if err1 != nil || err2 != nil {
		return unit.Printable(s, 16)
	}
	century := "20"
	if yy >= 57 {
		century = "19"
	}
	return unit.Printable(century+s[0:2]+"-"+strings.ReplaceAll(s[2:], " ", ""), 16)
}
