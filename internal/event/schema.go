package event

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"time"
)

// A field is one JSON member of a Data type.
type field struct {
	name     string
	optional bool
	doc      string
	enum     []string
	index    []int
	typ      reflect.Type
}

// fields lists the members of a struct as encoding/json would write them;
// embedded structs are flattened.
func fields(t reflect.Type) []field {
	var out []field
	for _, f := range reflect.VisibleFields(t) {
		if f.Anonymous || !f.IsExported() {
			continue
		}
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		var enum []string
		if e, ok := f.Tag.Lookup("enum"); ok {
			enum = strings.Split(e, ",")
		}
		out = append(out, field{name, strings.Contains(opts, "omitempty"), f.Tag.Get("doc"), enum, f.Index, f.Type})
	}
	return out
}

// Schema is the JSON Schema (2020-12) of an event's data. Consumers ignore
// members they do not know: a minor version adds some.
func Schema(d Data) ([]byte, error) {
	k := d.Kind()
	s := object(reflect.TypeOf(d))
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["$id"] = k.Schema
	s["title"] = k.Type
	s["description"] = k.Says
	by := object(reflect.TypeFor[Author]())
	by["description"] = "who caused it; rule is the station itself"
	s["properties"].(map[string]any)["created_by"] = by
	s["required"] = append(s["required"].([]string), "created_by")
	data, err := json.MarshalIndent(s, "", "  ")
	return append(data, '\n'), err
}

func object(t reflect.Type) map[string]any {
	props := map[string]any{}
	required := []string{}
	for _, f := range fields(t) {
		p := schemaOf(f.typ)
		if f.doc != "" {
			p["description"] = f.doc
		}
		if f.enum != nil {
			p["enum"] = f.enum
		}
		props[f.name] = p
		if !f.optional {
			required = append(required, f.name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required}
}

func schemaOf(t reflect.Type) map[string]any {
	if t == reflect.TypeFor[time.Time]() {
		return map[string]any{"type": "string", "format": "date-time"}
	}
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64:
		return map[string]any{"type": "integer"}
	case reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	case reflect.Float64:
		return map[string]any{"type": []string{"number", "null"}} // null: not known
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	}
	return map[string]any{"type": "string"}
}

// encodeData writes an event's data. A number that is not one becomes null:
// an unknown pointing error must not cost the event that carries it.
func encodeData(d Data) ([]byte, error) {
	v := reflect.ValueOf(d)
	if v.Kind() != reflect.Struct {
		return encode(d)
	}
	var known map[string]any
	for _, f := range fields(v.Type()) {
		if f.typ.Kind() != reflect.Float64 {
			continue
		}
		if x := v.FieldByIndex(f.index).Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			known = map[string]any{}
			break
		}
	}
	if known == nil {
		return encode(d)
	}
	for _, f := range fields(v.Type()) {
		x := v.FieldByIndex(f.index)
		if f.optional && x.IsZero() {
			continue
		}
		known[f.name] = x.Interface()
		if y, ok := x.Interface().(float64); ok && (math.IsNaN(y) || math.IsInf(y, 0)) {
			known[f.name] = nil
		}
	}
	return encode(known)
}
