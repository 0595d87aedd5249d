package mcp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// A member is one key of a JSON object with its value as it was sent.
type member struct {
	key   string
	value json.RawMessage
}

// An object is a JSON object in the order in which it was sent. Keys are
// compared exactly: encoding/json fills struct fields whatever the case, and a
// server that moves hardware must not read "Elevation" where a strict reader
// sees nothing.
type object []member

// get returns the value of a key.
func (o object) get(key string) (json.RawMessage, bool) {
	for _, m := range o {
		if m.key == key {
			return m.value, true
		}
	}
	return nil, false
}

// str returns the value of a key that is a string; ok is false when it is
// absent or anything else.
func (o object) str(key string) (s string, ok bool) {
	v, _ := o.get(key)
	return text(v)
}

// obj returns the value of a key that is an object. An absent key is an empty
// object.
func (o object) obj(key string) (object, error) {
	v, ok := o.get(key)
	if !ok {
		return nil, nil
	}
	sub, err := split(v)
	if err != nil {
		return nil, fmt.Errorf("%s %w", key, err)
	}
	return sub, nil
}

// write appends one member to a JSON text.
func (o object) write(b *bytes.Buffer, i int) {
	key, _ := json.Marshal(o[i].key) // a string always encodes
	b.Write(key)
	b.WriteByte(':')
	b.Write(o[i].value)
}

// split takes an object apart, one level deep. raw must be valid JSON. Two
// readers that disagree about the value of a key are a safety bug, so a key
// that comes twice is an error; all members are returned with it.
func split(raw json.RawMessage) (object, error) {
	i := skipSpace(raw, 0)
	if i >= len(raw) || raw[i] != '{' {
		return nil, fmt.Errorf("must be object, got %s", kindOf(raw))
	}
	var o object
	var keys keySet
	var err error
	for i++; ; {
		i = skipSpace(raw, i)
		switch raw[i] {
		case '}':
			return o, err
		case ',':
			i++
			continue
		}
		end := skipString(raw, i)
		key, _ := text(raw[i:end])
		if !keys.add(key) && err == nil {
			err = fmt.Errorf("has the key %s twice", quote(key))
		}
		i = skipSpace(raw, skipSpace(raw, end)+1)
		end = skipValue(raw, i)
		o = append(o, member{key, raw[i:end:end]})
		i = end
	}
}

// twice returns the JSON Pointer of the first object, at any depth, that has a
// key twice, and the key. raw must be valid JSON. It is one pass with a stack,
// because a line of a million brackets must not cost a million passes.
func twice(raw json.RawMessage) (path, key string, found bool) {
	type frame struct {
		keys  keySet
		key   string
		array bool
		n     int
	}
	var stack []*frame
	wantKey := false
	for i := 0; i < len(raw); {
		switch raw[i] {
		case '{', '[':
			stack = append(stack, &frame{array: raw[i] == '['})
			wantKey = raw[i] == '{'
			i++
		case '}', ']':
			stack = stack[:len(stack)-1]
			i++
		case ',':
			f := stack[len(stack)-1]
			f.n++
			wantKey = !f.array
			i++
		case '"':
			end := skipString(raw, i)
			if wantKey {
				f := stack[len(stack)-1]
				f.key, _ = text(raw[i:end])
				if !f.keys.add(f.key) {
					var b strings.Builder
					for _, up := range stack[:len(stack)-1] {
						if up.array {
							fmt.Fprintf(&b, "/%d", up.n)
						} else {
							b.WriteString(pointer(up.key))
						}
					}
					return b.String(), f.key, true
				}
				wantKey = false
			}
			i = end
		default:
			i++
		}
	}
	return "", "", false
}

// A keySet notices a key that comes twice; small ones need no map.
type keySet struct {
	few  []string
	many map[string]struct{}
}

func (k *keySet) add(key string) bool {
	if k.many == nil {
		for _, x := range k.few {
			if x == key {
				return false
			}
		}
		if k.few = append(k.few, key); len(k.few) > 16 {
			k.many = make(map[string]struct{}, 64)
			for _, x := range k.few {
				k.many[x] = struct{}{}
			}
		}
		return true
	}
	if _, dup := k.many[key]; dup {
		return false
	}
	k.many[key] = struct{}{}
	return true
}

// pointer is one step of a JSON Pointer (RFC 6901). Keys are text from outside.
func pointer(key string) string {
	key = strings.ReplaceAll(printable(key, maxShown), "~", "~0")
	return "/" + strings.ReplaceAll(key, "/", "~1")
}

// text decodes a JSON string; ok is false for anything else.
func text(raw json.RawMessage) (s string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	for _, c := range raw {
		if c == '\\' {
			return s, json.Unmarshal(raw, &s) == nil
		}
	}
	return string(raw[1 : len(raw)-1]), true
}

// strMap decodes an object whose values are all strings.
func strMap(o object) (map[string]string, error) {
	m := make(map[string]string, len(o))
	for _, e := range o {
		s, ok := text(e.value)
		if !ok {
			return nil, fmt.Errorf("%s must be string, got %s", printable(e.key, maxShown), kindOf(e.value))
		}
		m[e.key] = s
	}
	return m, nil
}

// The skip functions walk over valid JSON.

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

func skipString(b []byte, i int) int {
	for i++; b[i] != '"'; i++ {
		if b[i] == '\\' {
			i++
		}
	}
	return i + 1
}

func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipString(b, i)
			if depth == 0 {
				return i
			}
		case '{', '[':
			depth++
			i++
		case '}', ']':
			if depth == 0 {
				return i // the end of the object around a number or a literal
			}
			i++
			if depth--; depth == 0 {
				return i
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
			i++
		default:
			i++
		}
	}
	return i
}
