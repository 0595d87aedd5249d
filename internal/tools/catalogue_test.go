package tools

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the published catalogue anew; the contract version must have been raised as the change needs")

// The published catalogue: what an operator's program gets from the list
// methods. Consumers of the contract hold on to it.
type catalogue struct {
	Version   string           `json:"contract_version"`
	Tools     []map[string]any `json:"tools"`
	Resources []map[string]any `json:"resources"`
	Templates []map[string]any `json:"resource_templates"`
	Prompts   []map[string]any `json:"prompts"`
}

// A bump is which part of a semantic version a change must raise.
type bump int

const (
	noBump bump = iota
	patch
	minor
	major
)

func (b bump) String() string { return [...]string{"no", "a PATCH", "a MINOR", "a MAJOR"}[b] }

// A difference is one change of the contract and what it must raise.
type difference struct {
	needs bump
	what  string
}

// compare lists what changed from one catalogue to the next. Removing a thing
// or asking more of a caller is MAJOR, as is answering less; adding is MINOR;
// wording is PATCH (contract, section 10).
func compare(old, new catalogue) []difference {
	var d differences
	d.things("tool", "name", old.Tools, new.Tools, d.tool)
	d.things("resource", "uri", old.Resources, new.Resources, d.resource)
	d.things("resource template", "uriTemplate", old.Templates, new.Templates, d.resource)
	d.things("prompt", "name", old.Prompts, new.Prompts, d.prompt)
	return d.all
}

type differences struct{ all []difference }

func (d *differences) say(needs bump, format string, args ...any) {
	d.all = append(d.all, difference{needs, fmt.Sprintf(format, args...)})
}

func (d *differences) things(kind, key string, old, new []map[string]any, each func(name string, old, new map[string]any)) {
	by := func(list []map[string]any) map[string]map[string]any {
		m := map[string]map[string]any{}
		for _, x := range list {
			m[fmt.Sprint(x[key])] = x
		}
		return m
	}
	was, is := by(old), by(new)
	for _, n := range slices.Sorted(maps.Keys(was)) {
		if x, ok := is[n]; ok {
			each(kind+" "+n, was[n], x)
		} else {
			d.say(major, "%s %s is gone", kind, n)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(is)) {
		if _, ok := was[n]; !ok {
			d.say(minor, "%s %s is new", kind, n)
		}
	}
}

// words reports members that only people and models read.
func (d *differences) words(where string, old, new map[string]any, keys ...string) {
	for _, k := range keys {
		if !reflect.DeepEqual(old[k], new[k]) {
			d.say(patch, "%s: other %s", where, k)
		}
	}
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }

func (d *differences) tool(where string, old, new map[string]any) {
	d.words(where, old, new, "title", "description")
	d.schema(where+": input", object(old["inputSchema"]), object(new["inputSchema"]), true)
	d.schema(where+": output", object(old["outputSchema"]), object(new["outputSchema"]), false)
	was, is := object(old["annotations"]), object(new["annotations"])
	for _, k := range slices.Sorted(maps.Keys(was)) {
		harmless := k == "readOnlyHint" || k == "idempotentHint" // true is the promise
		switch {
		case was[k] == is[k]:
		case was[k] == harmless:
			d.say(major, "%s: %s is withdrawn", where, k)
		default:
			d.say(minor, "%s: %s is promised", where, k)
		}
	}
}

func (d *differences) resource(where string, old, new map[string]any) {
	d.words(where, old, new, "name", "title", "description")
	if old["mimeType"] != new["mimeType"] {
		d.say(major, "%s: other mimeType", where)
	}
}

func (d *differences) prompt(where string, old, new map[string]any) {
	d.words(where, old, new, "title", "description")
	args := func(v any) map[string]map[string]any {
		m := map[string]map[string]any{}
		list, _ := v.([]any)
		for _, x := range list {
			m[fmt.Sprint(object(x)["name"])] = object(x)
		}
		return m
	}
	was, is := args(old["arguments"]), args(new["arguments"])
	for n, a := range was {
		b, ok := is[n]
		if !ok {
			d.say(major, "%s: argument %s is gone", where, n)
			continue
		}
		d.words(where+": argument "+n, a, b, "title", "description")
		d.need(where+": argument "+n, a["required"] == true, b["required"] == true, true)
	}
	for n, b := range is {
		if _, ok := was[n]; !ok {
			d.say(minor, "%s: argument %s is new", where, n)
			d.need(where+": argument "+n, false, b["required"] == true, true)
		}
	}
}

// need compares whether a member must be there. Of an input that is asked of
// the caller; of an output it is promised to it.
func (d *differences) need(where string, was, is, input bool) {
	switch {
	case was == is:
	case is == input:
		d.say(major, "%s: %v", where, map[bool]string{true: "is required now", false: "is no longer promised"}[input])
	default:
		d.say(minor, "%s: %v", where, map[bool]string{true: "is no longer required", false: "is promised now"}[input])
	}
}

// schema compares two schemas. A bound or value is narrowed when fewer values
// pass: MAJOR for an input, MINOR for an output, and the other way round when it
// is widened.
func (d *differences) schema(where string, old, new map[string]any, input bool) {
	narrower, wider := major, minor
	if !input {
		narrower, wider = minor, major
	}
	d.words(where, old, new, "description", "examples", "title")
	was, is := types(old), types(new)
	if !slices.Equal(was, is) {
		switch {
		case contains(is, was):
			d.say(wider, "%s: type %v was %v", where, is, was)
		case contains(was, is):
			d.say(narrower, "%s: type %v was %v", where, is, was)
		default:
			d.say(major, "%s: type %v was %v", where, is, was)
		}
	}
	for _, b := range []struct {
		key  string
		sign float64 // +1: a greater value is narrower
	}{{"minimum", 1}, {"exclusiveMinimum", 1}, {"minLength", 1}, {"minItems", 1}, {"maximum", -1}, {"exclusiveMaximum", -1}, {"maxLength", -1}, {"maxItems", -1}} {
		x, had := old[b.key].(float64)
		y, has := new[b.key].(float64)
		switch {
		case had == has && x == y:
		case !had || has && b.sign*(y-x) > 0:
			d.say(narrower, "%s: %s is %v, was %v", where, b.key, new[b.key], old[b.key])
		default:
			d.say(wider, "%s: %s is %v, was %v", where, b.key, new[b.key], old[b.key])
		}
	}
	d.enum(where, old["enum"], new["enum"], narrower, wider)
	for _, k := range []string{"pattern", "format", "default", "additionalProperties", "uniqueItems", "dependentRequired", "const"} {
		if !reflect.DeepEqual(old[k], new[k]) {
			d.say(major, "%s: %s is %v, was %v", where, k, new[k], old[k])
		}
	}
	d.properties(where, old, new, input)
	if a, b := object(old["items"]), object(new["items"]); a != nil || b != nil {
		d.schema(where+"[]", a, b, input)
	}
}

func (d *differences) enum(where string, old, new any, narrower, wider bump) {
	was, had := old.([]any)
	is, has := new.([]any)
	switch {
	case !had && !has:
	case !had:
		d.say(narrower, "%s: only %v now", where, is)
	case !has:
		d.say(wider, "%s: no longer only %v", where, was)
	default:
		for _, v := range was {
			if !slices.Contains(is, v) {
				d.say(narrower, "%s: %v is gone", where, v)
			}
		}
		for _, v := range is {
			if !slices.Contains(was, v) {
				d.say(wider, "%s: %v is new", where, v)
			}
		}
	}
}

func (d *differences) properties(where string, old, new map[string]any, input bool) {
	was, is := object(old["properties"]), object(new["properties"])
	required := func(s map[string]any, n string) bool {
		list, _ := s["required"].([]any)
		return slices.Contains(list, any(n))
	}
	for _, n := range slices.Sorted(maps.Keys(was)) {
		p := where + "." + n
		if is[n] == nil {
			d.say(major, "%s is gone", p)
			continue
		}
		d.schema(p, object(was[n]), object(is[n]), input)
		d.need(p, required(old, n), required(new, n), input)
	}
	for _, n := range slices.Sorted(maps.Keys(is)) {
		if p := where + "." + n; was[n] == nil {
			d.say(minor, "%s is new", p)
			if input {
				d.need(p, false, required(new, n), true)
			}
		}
	}
}

// types is the set of types that a schema lets through; integer is part of
// number.
func types(s map[string]any) []string {
	var out []string
	switch v := s["type"].(type) {
	case string:
		out = []string{v}
	case []any:
		for _, x := range v {
			out = append(out, fmt.Sprint(x))
		}
	}
	slices.Sort(out)
	return out
}

func contains(all, some []string) bool {
	for _, s := range some {
		if !slices.Contains(all, s) && !(s == "integer" && slices.Contains(all, "number")) {
			return false
		}
	}
	return true
}

// raised is which part of a version was raised from one to the next: the
// greatest one, when the smaller ones began anew.
func raised(old, new string) (bump, error) {
	a, err1 := numbers(old)
	b, err2 := numbers(new)
	switch {
	case err1 != nil || err2 != nil:
		return noBump, fmt.Errorf("versions %q and %q: want three numbers", old, new)
	case a == b:
		return noBump, nil
	case b == [3]int{a[0] + 1, 0, 0}:
		return major, nil
	case b == [3]int{a[0], a[1] + 1, 0}:
		return minor, nil
	case b == [3]int{a[0], a[1], a[2] + 1}:
		return patch, nil
	}
	return noBump, fmt.Errorf("version %s does not follow %s", new, old)
}

func numbers(version string) (n [3]int, err error) {
	parts := strings.Split(version, ".")
	if len(parts) != 3 {
		return n, fmt.Errorf("%q is no version", version)
	}
	for i, p := range parts {
		if n[i], err = strconv.Atoi(p); err != nil {
			return n, err
		}
	}
	return n, nil
}

// worst is the greatest bump that some differences need.
func worst(list []difference) bump {
	w := noBump
	for _, d := range list {
		w = max(w, d.needs)
	}
	return w
}

// catalogue collects the catalogue as a session sees it.
func (s *session) catalogue() catalogue {
	s.t.Helper()
	var c catalogue
	get := func(method, key string, to *[]map[string]any) map[string]any {
		r := s.ask(legacy, method, "{}")
		var m map[string]json.RawMessage
		if r.Error != nil || json.Unmarshal(r.Result, &m) != nil || json.Unmarshal(m[key], to) != nil || m["nextCursor"] != nil {
			s.t.Fatalf("%s: %s", method, r.raw)
		}
		var meta map[string]any
		if m["_meta"] != nil {
			if err := json.Unmarshal(m["_meta"], &meta); err != nil {
				s.t.Fatal(err)
			}
		}
		return meta
	}
	meta := get("tools/list", "tools", &c.Tools)
	c.Version = fmt.Sprint(meta["gsd-mcp/contractVersion"])
	get("resources/list", "resources", &c.Resources)
	get("resources/templates/list", "resourceTemplates", &c.Templates)
	get("prompts/list", "prompts", &c.Prompts)
	return c
}

// The published catalogue changes on purpose only, and with the version that
// the change needs.
func TestTheCatalogueIsThePublishedOne(t *testing.T) {
	golden := filepath.Join("..", "mcp", "testdata", "catalogue.json")
	var now catalogue
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		now = s.catalogue()
	})
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(now); err != nil {
		t.Fatal(err)
	}
	published, err := os.ReadFile(golden)
	if err != nil && !(*update && os.IsNotExist(err)) {
		t.Fatal(err)
	}
	if err == nil {
		var old catalogue
		if err := json.Unmarshal(published, &old); err != nil {
			t.Fatal(err)
		}
		diffs := compare(old, now)
		got, err := raised(old.Version, now.Version)
		if err != nil {
			t.Fatal(err)
		}
		if need := worst(diffs); got < need {
			for _, d := range diffs {
				t.Logf("%s change: %s", d.needs, d.what)
			}
			t.Fatalf("the catalogue needs %s version after %s: raise ContractVersion in tools.go, then run this test with -update", need, old.Version)
		}
	}
	if bytes.Equal(published, text.Bytes()) {
		return
	}
	if !*update {
		t.Fatalf("the catalogue is not the published one: if that is meant, run go test ./internal/tools -run Catalogue -update and review %s", golden)
	}
	if err := os.WriteFile(golden, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestCompareKnowsWhatBreaksAConsumer(t *testing.T) {
	const base = `{"tools":[{"name":"point","title":"T","description":"D",
		"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},
		"inputSchema":{"type":"object","properties":{"az_deg":{"type":"number","minimum":0,"maximum":360},"mode":{"type":"string","enum":["FM","USB"],"default":"FM"},"n":{"type":"integer"}},"required":["az_deg"],"additionalProperties":false},
		"outputSchema":{"type":"object","properties":{"id":{"type":"string"},"list":{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"}}}}},"required":["id"]}}],
		"resources":[{"uri":"station://health","name":"health","mimeType":"application/json"}],
		"resource_templates":[{"uriTemplate":"station://p/{id}","name":"p"}],
		"prompts":[{"name":"brief","arguments":[{"name":"x","required":true},{"name":"y"}]}]}`
	tests := []struct {
		name, from, to string
		want           bump
	}{
		{"nothing", "", "", noBump},
		{"a description", `"D"`, `"E"`, patch},
		{"a title", `"title":"T"`, `"title":"U"`, patch},
		{"an example", `"required":["az_deg"],`, `"required":["az_deg"],"examples":[{"az_deg":1}],`, patch},
		{"a tool gone", `"name":"point"`, `"name":"turn"`, major},
		{"a property gone", `,"n":{"type":"integer"}`, ``, major},
		{"a property new", `"n":{"type":"integer"}`, `"n":{"type":"integer"},"m":{"type":"integer"}`, minor},
		{"a property new and required", `"n":{"type":"integer"}},"required":["az_deg"]`, `"n":{"type":"integer"},"m":{"type":"integer"}},"required":["az_deg","m"]`, major},
		{"a property required", `"required":["az_deg"]`, `"required":["az_deg","n"]`, major},
		{"a property no longer required", `"required":["az_deg"]`, `"required":[]`, minor},
		{"a lower maximum", `"maximum":360`, `"maximum":359`, major},
		{"a higher maximum", `"maximum":360`, `"maximum":361`, minor},
		{"no maximum", `,"maximum":360`, ``, minor},
		{"a higher minimum", `"minimum":0`, `"minimum":1`, major},
		{"a minimum of nothing", `"minimum":0,`, ``, minor},
		{"a new bound", `"n":{"type":"integer"`, `"n":{"type":"integer","maximum":9`, major},
		{"a value gone", `["FM","USB"]`, `["FM"]`, major},
		{"a value new", `["FM","USB"]`, `["FM","USB","CW"]`, minor},
		{"an integer that may be a number", `"n":{"type":"integer"}`, `"n":{"type":"number"}`, minor},
		{"a number that must be an integer", `"az_deg":{"type":"number"`, `"az_deg":{"type":"integer"`, major},
		{"another type", `"n":{"type":"integer"}`, `"n":{"type":"string"}`, major},
		{"another default", `"default":"FM"`, `"default":"USB"`, major},
		{"an open schema", `"additionalProperties":false`, `"additionalProperties":true`, major},
		{"an answer's member gone", `"id":{"type":"string"},`, ``, major},
		{"an answer's member new", `"id":{"type":"string"},`, `"id":{"type":"string"},"at":{"type":"string"},`, minor},
		{"an answer's member new and promised", `"id":{"type":"string"},`, `"id":{"type":"string"},"at":{"type":"string"},`, minor},
		{"an answer's member no longer promised", `"required":["id"]`, `"required":[]`, major},
		{"an answer's member that may be more", `"a":{"type":"number"}`, `"a":{"type":["number","null"]}`, major},
		{"an answer's member that is less", `"a":{"type":"number"}`, `"a":{"type":"integer"}`, minor},
		{"a promise of harmlessness withdrawn", `"destructiveHint":false`, `"destructiveHint":true`, major},
		{"idempotence withdrawn", `"idempotentHint":true`, `"idempotentHint":false`, major},
		{"a promise given", `"readOnlyHint":false`, `"readOnlyHint":true`, minor},
		{"a resource gone", `station://health`, `station://state`, major},
		{"a resource of another type", `application/json`, `text/plain`, major},
		{"a template gone", `station://p/{id}`, `station://q/{id}`, major},
		{"a prompt's argument required", `{"name":"y"}`, `{"name":"y","required":true}`, major},
		{"a prompt's argument no longer required", `{"name":"x","required":true}`, `{"name":"x"}`, minor},
		{"a prompt's argument gone", `,{"name":"y"}`, ``, major},
		{"a prompt's argument new", `{"name":"y"}`, `{"name":"y"},{"name":"z"}`, minor},
		{"a prompt's argument new and required", `{"name":"y"}`, `{"name":"y"},{"name":"z","required":true}`, major},
	}
	decode := func(t *testing.T, s string) (c catalogue) {
		if err := json.Unmarshal([]byte(s), &c); err != nil {
			t.Fatalf("%v in %s", err, s)
		}
		return c
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.from != "" && strings.Count(base, tt.from) != 1 {
				t.Fatalf("%q is %d times in the base", tt.from, strings.Count(base, tt.from))
			}
			changed := base
			if tt.from != "" {
				changed = strings.Replace(base, tt.from, tt.to, 1)
			}
			got := compare(decode(t, base), decode(t, changed))
			if worst(got) != tt.want {
				t.Errorf("needs %s version, want %s: %v", worst(got), tt.want, got)
			}
		})
	}
}

func TestVersionsAreRaisedOneStepAtATime(t *testing.T) {
	tests := []struct {
		old, new string
		want     bump
		err      bool
	}{
		{"1.0.0", "1.0.0", noBump, false},
		{"1.0.0", "1.0.1", patch, false},
		{"1.0.4", "1.1.0", minor, false},
		{"1.2.3", "2.0.0", major, false},
		{"1.2.3", "1.3.3", noBump, true},
		{"1.2.3", "1.2.2", noBump, true},
		{"1.2.3", "3.0.0", noBump, true},
		{"1.2", "1.3", noBump, true},
		{"1.2.x", "1.2.3", noBump, true},
	}
	for _, tt := range tests {
		got, err := raised(tt.old, tt.new)
		if got != tt.want || (err != nil) != tt.err {
			t.Errorf("raised(%s, %s) = %v, %v; want %v", tt.old, tt.new, got, err, tt.want)
		}
	}
}
