package elements

import (
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// A place is where a value stands in a source.
type place struct{ line, column int }

// A value is one field of an OMM record, as text.
type value struct {
	text string
	at   place
}

// An ommRecord collects the fields of one OMM, whatever its notation. Keys are
// those of CCSDS 502.0-B.
type ommRecord struct {
	at     place // where the record begins
	fields map[string]value
}

func newRecord(at place) *ommRecord {
	return &ommRecord{at: at, fields: make(map[string]value, 24)}
}

// put keeps a field; a second value for the same key is told by the caller.
func (o *ommRecord) put(key, text string, at place) (fresh bool) {
	if _, twice := o.fields[key]; twice {
		return false
	}
	if len(o.fields) < 200 { // a real record has under 40
		o.fields[key] = value{text, at}
	}
	return true
}

// required are the fields without which SGP4 cannot start.
var required = [...]string{"NORAD_CAT_ID", "EPOCH", "MEAN_MOTION", "ECCENTRICITY", "INCLINATION",
	"RA_OF_ASC_NODE", "ARG_OF_PERICENTER", "MEAN_ANOMALY"}

// fixed are the fields whose other values mean other frames or theories.
var fixed = [...]struct {
	key  string
	want []string
}{
	{"CENTER_NAME", []string{"EARTH"}},
	{"REF_FRAME", []string{"TEME"}},
	{"TIME_SYSTEM", []string{"UTC"}},
	{"MEAN_ELEMENT_THEORY", []string{"SGP4", "SGP/SGP4"}},
	{"EPHEMERIS_TYPE", []string{"0", "2"}},
}

// finish checks a record and adds its Set to the result.
func (r *reader) finish(o *ommRecord, index int) {
	c := &ommChecker{r: r, o: o}
	c.who = fmt.Sprintf("record %d", index)
	if v := c.text("OBJECT_NAME"); v != "" {
		c.set.Name = unit.Printable(v, nameMax)
		c.who += " (" + c.set.Name + ")"
	} else if v := c.text("NORAD_CAT_ID"); v != "" {
		c.who += " (" + unit.Printable(v, 12) + ")"
	}
	for _, key := range required {
		if c.text(key) == "" {
			c.failAt(o.at, "%s has no %s", c.who, key)
			return
		}
	}
	for _, f := range fixed {
		c.fixed(f.key, f.want)
	}
	c.set.Source = r.source
	c.set.ObjectID = unit.Printable(c.text("OBJECT_ID"), 16)
	if v := c.text("CLASSIFICATION_TYPE"); len(v) == 1 && v[0] >= 'A' && v[0] <= 'Z' {
		c.set.Classification = v[0]
	}
	n, err := parseDigits(c.text("NORAD_CAT_ID"))
	if err != nil || n < 1 {
		c.fail("NORAD_CAT_ID", "is not a number in 1..%d", MaxNoradID)
	}
	c.set.NoradID = n
	if c.set.Epoch, err = parseEpoch(c.text("EPOCH")); err != nil {
		c.fail("EPOCH", "%v", err)
	}
	c.set.MeanMotion = c.number("MEAN_MOTION")
	c.set.Eccentricity = c.number("ECCENTRICITY")
	c.set.InclinationDeg = c.number("INCLINATION")
	c.set.RAANDeg = c.number("RA_OF_ASC_NODE")
	c.set.ArgPerigeeDeg = c.number("ARG_OF_PERICENTER")
	c.set.MeanAnomalyDeg = c.number("MEAN_ANOMALY")
	c.set.BStar = c.number("BSTAR")
	c.set.MeanMotionDot = c.number("MEAN_MOTION_DOT")
	c.set.MeanMotionDDot = c.number("MEAN_MOTION_DDOT")
	c.set.ElementSetNo = looseInt(c.text("ELEMENT_SET_NO"))
	c.set.RevAtEpoch = looseInt(c.text("REV_AT_EPOCH"))
	if c.failed {
		return
	}
	if err := c.set.Validate(); err != nil {
		c.failAt(c.blame(err), "%s: %v", c.who, err)
		return
	}
	if c.text("BSTAR") == "" {
		r.warn(o.at.line, o.at.column, "prefer a source with BSTAR", "%s has no BSTAR: drag is taken as 0", c.who)
	}
	r.res.Sets = append(r.res.Sets, c.set)
}

type ommChecker struct {
	r      *reader
	o      *ommRecord
	who    string
	set    Set
	failed bool
}

func (c *ommChecker) text(key string) string { return strings.TrimSpace(c.o.fields[key].text) }

// failAt rejects the record once.
func (c *ommChecker) failAt(at place, what string, args ...any) {
	if !c.failed {
		c.r.reject(at.line, at.column, fixFetch, what, args...)
	}
	c.failed = true
}

func (c *ommChecker) fail(key, what string, args ...any) {
	v := c.o.fields[key]
	c.failAt(v.at, "%s: %s %q %s", c.who, key, unit.Printable(v.text, showMax), fmt.Sprintf(what, args...))
}

func (c *ommChecker) fixed(key string, want []string) {
	got := c.text(key)
	if got == "" {
		return
	}
	for _, w := range want {
		if strings.EqualFold(got, w) {
			return
		}
	}
	if key == "EPHEMERIS_TYPE" {
		c.fail(key, "is not supported: %s", whyType(got))
		return
	}
	c.fail(key, "is not supported: only %s is", want[0])
}

func (c *ommChecker) number(key string) float64 {
	t := c.text(key)
	if t == "" {
		return 0
	}
	x, err := parseDecimal(t, true)
	if err != nil {
		c.fail(key, "is not a number")
	}
	return x
}

// blame finds the field that a Validate error is about.
func (c *ommChecker) blame(err error) place {
	for word, key := range map[string]string{
		"mean motion ": "MEAN_MOTION", "eccentricity": "ECCENTRICITY", "inclination": "INCLINATION", "right ascension": "RA_OF_ASC_NODE",
		"argument of perigee": "ARG_OF_PERICENTER", "mean anomaly": "MEAN_ANOMALY", "B*": "BSTAR", "epoch": "EPOCH",
	} {
		if strings.HasPrefix(err.Error(), word) {
			return c.o.fields[key].at
		}
	}
	return c.o.at
}

// parseEpoch reads an OMM epoch: calendar or day-of-year date, T or a blank,
// any number of decimals (those beyond a nanosecond are cut), optional Z.
func parseEpoch(s string) (time.Time, error) {
	s = strings.TrimSuffix(s, "Z")
	date, clock, ok := strings.Cut(s, "T")
	if !ok {
		date, clock, ok = strings.Cut(s, " ")
	}
	if !ok {
		return time.Time{}, fmt.Errorf("is not a date and time like 2026-08-11T03:35:03.190272")
	}
	clock, frac, _ := strings.Cut(clock, ".")
	nanos, err := parseDigits((frac + "000000000")[:9])
	if err != nil {
		return time.Time{}, fmt.Errorf("has a fraction of a second that is not a number")
	}
	layout := "2006-01-02T15:04:05"
	if len(date) == len("2006-002") {
		layout = "2006-002T15:04:05"
	}
	leap := strings.HasSuffix(clock, ":60")
	if leap {
		clock = strings.TrimSuffix(clock, "60") + "59"
	}
	t, err := time.ParseInLocation(layout, date+"T"+clock, time.UTC)
	if err != nil {
		return time.Time{}, fmt.Errorf("is not a date and time like 2026-08-11T03:35:03.190272")
	}
	if leap {
		t = t.Add(time.Second)
	}
	return t.Add(time.Duration(nanos)), nil
}

// lineIndex turns byte offsets into lines and columns, for offsets that never
// go back.
type lineIndex struct {
	data   []byte
	offset int
	at     place
}

func newLineIndex(data []byte) *lineIndex { return &lineIndex{data: data, at: place{1, 1}} }

func (x *lineIndex) place(offset int) place {
	for x.offset < offset && x.offset < len(x.data) {
		switch c := x.data[x.offset]; {
		case c == '\n':
			x.at.line++
			x.at.column = 1
		case c&0xC0 != 0x80: // count characters, not their continuation bytes
			x.at.column++
		}
		x.offset++
	}
	return x.at
}
