package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A Schema is a compiled JSON Schema, in the part of draft 2020-12 that tool
// arguments need. A keyword outside that part fails at the start, so nothing
// is ever silently unchecked.
type Schema struct {
	types          []string
	props          map[string]*Schema
	names          []string // of the properties, in the order of the source
	required       []string
	dependent      map[string][]string
	closed         bool    // additionalProperties: false
	extra          *Schema // additionalProperties: a schema
	items          *Schema
	enum           []json.RawMessage
	pattern        *regexp.Regexp
	dateTime       bool
	min, max       *float64
	exMin, exMax   *float64
	minLen, maxLen *int
	minItems       *int
	maxItems       *int
	unique         bool
	def            json.RawMessage
}

// A Violation is one rule that a value breaks.
type Violation struct {
	Path    string `json:"path"`    // JSON Pointer into the value, "" for the whole
	Rule    string `json:"rule"`    // the schema's keyword
	Message string `json:"message"` // what must hold, what was got, what is allowed
}

const (
	maxViolations  = 20
	maxSchemaDepth = 16
)

// CompileSchema reads a schema.
func CompileSchema(src json.RawMessage) (*Schema, error) {
	if !json.Valid(src) {
		return nil, fmt.Errorf("schema: not one JSON value")
	}
	if path, key, dup := twice(src); dup {
		return nil, fmt.Errorf("schema%s: has the key %q twice", path, key)
	}
	return compile(src, "", 0)
}

func compile(src json.RawMessage, path string, depth int) (*Schema, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("schema%s: nested more than %d deep", path, maxSchemaDepth)
	}
	m, err := split(src)
	if err != nil {
		return nil, fmt.Errorf("schema%s: %w", path, err)
	}
	s := &Schema{}
	for _, k := range m {
		if err := s.keyword(k.key, k.value, path, depth); err != nil {
			return nil, fmt.Errorf("schema%s/%s: %w", path, k.key, err)
		}
	}
	for _, name := range s.required {
		if s.props[name] == nil {
			return nil, fmt.Errorf("schema%s: requires %q, which is not among its properties", path, name)
		}
	}
	if s.def != nil {
		if _, vs := s.Validate(s.def); vs != nil {
			return nil, fmt.Errorf("schema%s/default: %s", path, vs[0].Message)
		}
	}
	return s, nil
}

func (s *Schema) keyword(key string, v json.RawMessage, path string, depth int) (err error) {
	switch key {
	case "type":
		if v[0] != '[' {
			s.types = make([]string, 1)
			err = json.Unmarshal(v, &s.types[0])
		} else {
			err = json.Unmarshal(v, &s.types)
		}
		for _, t := range s.types {
			switch t {
			case "object", "array", "string", "number", "integer", "boolean", "null":
			default:
				return fmt.Errorf("unknown type %q", t)
			}
		}
	case "properties":
		subs, err := split(v)
		if err != nil {
			return err
		}
		s.props = make(map[string]*Schema, len(subs))
		for _, p := range subs {
			if s.props[p.key], err = compile(p.value, path+"/properties/"+p.key, depth+1); err != nil {
				return err
			}
			s.names = append(s.names, p.key)
		}
	case "required":
		err = json.Unmarshal(v, &s.required)
	case "dependentRequired":
		err = json.Unmarshal(v, &s.dependent)
	case "additionalProperties":
		if v[0] == '{' {
			s.extra, err = compile(v, path+"/additionalProperties", depth+1)
			break
		}
		var open bool
		err = json.Unmarshal(v, &open)
		s.closed = !open
	case "items":
		s.items, err = compile(v, path+"/items", depth+1)
	case "enum":
		err = json.Unmarshal(v, &s.enum)
	case "const":
		s.enum = []json.RawMessage{v}
	case "pattern":
		var p string
		if err = json.Unmarshal(v, &p); err == nil {
			s.pattern, err = regexp.Compile(p)
		}
	case "format":
		if string(v) != `"date-time"` {
			return fmt.Errorf("only date-time is checked here, got %s", v)
		}
		s.dateTime = true
	case "minimum":
		err = json.Unmarshal(v, &s.min)
	case "maximum":
		err = json.Unmarshal(v, &s.max)
	case "exclusiveMinimum":
		err = json.Unmarshal(v, &s.exMin)
	case "exclusiveMaximum":
		err = json.Unmarshal(v, &s.exMax)
	case "minLength":
		err = json.Unmarshal(v, &s.minLen)
	case "maxLength":
		err = json.Unmarshal(v, &s.maxLen)
	case "minItems":
		err = json.Unmarshal(v, &s.minItems)
	case "maxItems":
		err = json.Unmarshal(v, &s.maxItems)
	case "uniqueItems":
		err = json.Unmarshal(v, &s.unique)
	case "default":
		s.def = v
	case "description", "title", "examples", "$schema", "$id", "$comment", "deprecated", "readOnly", "writeOnly":
		// for readers only
	default:
		return fmt.Errorf("this keyword is outside the supported part of JSON Schema")
	}
	return err
}

// open returns the path of the first object in the schema that would let an
// unknown key through, or ok.
func (s *Schema) open(path string) (where string, open bool) {
	if len(s.types) == 1 && s.types[0] == "object" && !s.closed && s.extra == nil {
		return path, true
	}
	for _, name := range s.names {
		if where, open = s.props[name].open(path + "/" + name); open {
			return where, true
		}
	}
	for _, sub := range []*Schema{s.items, s.extra} {
		if sub != nil {
			if where, open = sub.open(path + "/*"); open {
				return where, true
			}
		}
	}
	return "", false
}

// Validate checks a value, which must be valid JSON, and returns it with the
// defaults of absent properties filled in, and every violation (at most 20) in
// the order of the value. 145000000.0 is an integer in JSON Schema and is
// rewritten so that Go reads it as one.
func (s *Schema) Validate(value json.RawMessage) (json.RawMessage, []Violation) {
	var c checker
	out := c.check(s, value, "")
	return out, c.found
}

// A checker collects violations.
type checker struct{ found []Violation }

func (c *checker) bad(path, rule, format string, a ...any) {
	if len(c.found) < maxViolations {
		c.found = append(c.found, Violation{path, rule, fmt.Sprintf(format, a...)})
	}
}

func (c *checker) check(s *Schema, raw json.RawMessage, path string) json.RawMessage {
	kind := kindOf(raw)
	if len(s.types) > 0 && !typeOK(s.types, kind) {
		hint := ""
		if kind == "string" && (typeOK(s.types, "integer")) {
			hint = "; send it without quotes"
		}
		c.bad(path, "type", "must be %s, got %s%s", strings.Join(s.types, " or "), got(raw), hint)
		return raw
	}
	if s.enum != nil && !oneOf(s.enum, raw) {
		rule, list := "enum", make([]string, len(s.enum))
		for i, e := range s.enum {
			list[i] = string(e)
		}
		c.bad(path, rule, "must be one of %s, got %s", strings.Join(list, ", "), got(raw))
	}
	switch kind {
	case "number", "integer":
		return c.number(s, raw, path, kind)
	case "string":
		c.str(s, raw, path)
	case "array":
		return c.array(s, raw, path)
	case "object":
		return c.object(s, raw, path)
	}
	return raw
}

func (c *checker) number(s *Schema, raw json.RawMessage, path, kind string) json.RawMessage {
	if kind == "integer" {
		raw, _ = integer(raw)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(f, 0) {
		c.bad(path, "type", "must be a number that 64 bits can hold, got %s", got(raw))
		return raw
	}
	// Written so that a NaN would fail every one.
	switch {
	case s.min != nil && !(f >= *s.min):
		c.bad(path, "minimum", "must be >= %v, got %s%s", show(*s.min), got(raw), s.allowed())
	case s.max != nil && !(f <= *s.max):
		c.bad(path, "maximum", "must be <= %v, got %s%s", show(*s.max), got(raw), s.allowed())
	case s.exMin != nil && !(f > *s.exMin):
		c.bad(path, "exclusiveMinimum", "must be > %v, got %s%s", show(*s.exMin), got(raw), s.allowed())
	case s.exMax != nil && !(f < *s.exMax):
		c.bad(path, "exclusiveMaximum", "must be < %v, got %s%s", show(*s.exMax), got(raw), s.allowed())
	}
	return raw
}

// allowed names the range when it has two ends; one end is in the rule itself.
func (s *Schema) allowed() string {
	var lo, hi string
	switch {
	case s.min != nil:
		lo = show(*s.min)
	case s.exMin != nil:
		lo = "above " + show(*s.exMin)
	}
	switch {
	case s.max != nil:
		hi = show(*s.max)
	case s.exMax != nil:
		hi = "below " + show(*s.exMax)
	}
	if lo == "" || hi == "" {
		return ""
	}
	return "; allowed is " + lo + " to " + hi
}

// show writes a limit as a person would: 145800000, not 1.458e+08.
func show(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

func (c *checker) str(s *Schema, raw json.RawMessage, path string) {
	str, _ := text(raw)
	n := utf8.RuneCountInString(str)
	if s.minLen != nil && n < *s.minLen {
		c.bad(path, "minLength", "must have at least %d characters, got %d", *s.minLen, n)
	}
	if s.maxLen != nil && n > *s.maxLen {
		c.bad(path, "maxLength", "must have at most %d characters, got %d", *s.maxLen, n)
		return // a long text need not be matched
	}
	if s.pattern != nil && !s.pattern.MatchString(str) {
		c.bad(path, "pattern", "must match %s, got %s", s.pattern, got(raw))
	}
	if s.dateTime {
		if _, err := time.Parse(time.RFC3339Nano, str); err != nil {
			c.bad(path, "format", "must be a time such as 2026-11-30T03:14:05Z, got %s", got(raw))
		}
	}
}

func (c *checker) array(s *Schema, raw json.RawMessage, path string) json.RawMessage {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		c.bad(path, "type", "must be array, got %s", got(raw))
		return raw
	}
	if s.minItems != nil && len(items) < *s.minItems {
		c.bad(path, "minItems", "must have at least %d items, got %d", *s.minItems, len(items))
	}
	if s.maxItems != nil && len(items) > *s.maxItems {
		c.bad(path, "maxItems", "must have at most %d items, got %d", *s.maxItems, len(items))
		return raw
	}
	if s.unique {
		seen := make(map[string]int, len(items))
		for i, it := range items {
			k := canonical(it)
			if j, dup := seen[k]; dup {
				c.bad(path, "uniqueItems", "must not hold the same item twice, got %s at %d and %d", got(it), j, i)
				break
			}
			seen[k] = i
		}
	}
	if s.items == nil {
		return raw
	}
	changed := false
	for i, it := range items {
		if w := c.check(s.items, it, path+"/"+strconv.Itoa(i)); !bytes.Equal(w, it) {
			items[i], changed = w, true
		}
	}
	if !changed {
		return raw
	}
	return join('[', ']', len(items), func(b *bytes.Buffer, i int) { b.Write(items[i]) })
}

func (c *checker) object(s *Schema, raw json.RawMessage, path string) json.RawMessage {
	m, err := split(raw)
	if err != nil {
		c.bad(path, "duplicate", "%v", err)
		return raw
	}
	for _, name := range s.required {
		if _, ok := m.get(name); !ok {
			c.bad(path, "required", "is missing the required property %q", name)
		}
	}
	changed := false
	for i, e := range m {
		if len(c.found) >= maxViolations {
			return raw
		}
		p := s.props[e.key]
		if p == nil {
			p = s.extra
		}
		if p == nil {
			if s.closed {
				c.bad(path, "additionalProperties", "has the unknown property %s%s", quote(e.key), s.known())
			}
			continue
		}
		if w := c.check(p, e.value, path+pointer(e.key)); !bytes.Equal(w, e.value) {
			m[i].value, changed = w, true
		}
		for _, other := range s.dependent[e.key] {
			if _, ok := m.get(other); !ok {
				c.bad(path, "dependentRequired", "has %q without %q: give both or neither", e.key, other)
			}
		}
	}
	for _, name := range s.names {
		if def := s.props[name].def; def != nil {
			if _, ok := m.get(name); !ok {
				m, changed = append(m, member{name, def}), true
			}
		}
	}
	if !changed {
		return raw
	}
	return join('{', '}', len(m), m.write)
}

func (s *Schema) known() string {
	if len(s.names) == 0 {
		return "; it takes none"
	}
	return "; known are " + strings.Join(s.names, ", ")
}

func join(open, end byte, n int, item func(b *bytes.Buffer, i int)) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte(open)
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		item(&b, i)
	}
	b.WriteByte(end)
	return b.Bytes()
}

// kindOf names the JSON type of a value; a number without a fraction that Go
// can hold is an integer.
func kindOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "nothing"
	}
	switch raw[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if _, ok := integer(raw); ok {
		return "integer"
	}
	return "number"
}

// integer rewrites a number without a fraction in plain digits, at most 18 of
// them: 1.45e8 is 145000000. It works on the text, so that 1e999999999 costs
// nothing.
func integer(raw json.RawMessage) (json.RawMessage, bool) {
	s, neg := strings.CutPrefix(string(raw), "-")
	mantissa, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		n, err := strconv.Atoi(s[i+1:])
		if err != nil {
			return raw, false
		}
		mantissa, exp = s[:i], n
	}
	whole, frac, _ := strings.Cut(mantissa, ".")
	frac = strings.TrimRight(frac, "0")
	digits := strings.TrimLeft(whole+frac, "0")
	if digits == "" {
		return json.RawMessage("0"), true
	}
	if exp -= len(frac); exp < 0 && frac == "" { // 1200e-2: zeros may pay for the exponent
		cut := strings.TrimRight(digits, "0")
		exp += len(digits) - len(cut)
		digits = cut
	}
	if exp < 0 || exp > 18 || len(digits)+exp > 18 {
		return raw, false
	}
	digits += strings.Repeat("0", exp)
	if neg {
		digits = "-" + digits
	}
	return json.RawMessage(digits), true
}

func typeOK(types []string, kind string) bool {
	for _, t := range types {
		if t == kind || t == "number" && kind == "integer" {
			return true
		}
	}
	return false
}

// got shows a value in an error message: numbers and short texts as they are,
// the rest by type. Texts are foreign and stay quoted and short.
func got(raw json.RawMessage) string {
	switch kind := kindOf(raw); kind {
	case "number", "integer", "boolean":
		return printable(string(raw), 32)
	case "string":
		s, _ := text(raw)
		return "the string " + strconv.Quote(printable(s, 32))
	default:
		return kind
	}
}

func oneOf(list []json.RawMessage, raw json.RawMessage) bool {
	want := canonical(raw)
	for _, e := range list {
		if canonical(e) == want {
			return true
		}
	}
	return false
}

// canonical is the same text for values that are equal in JSON Schema.
func canonical(raw json.RawMessage) string {
	if n, ok := integer(raw); ok && kindOf(raw) == "integer" { // exact, and -0 is 0
		return string(n)
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
