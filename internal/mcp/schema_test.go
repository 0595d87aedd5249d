package mcp

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"
)

func compiled(t testing.TB, src string) *Schema {
	t.Helper()
	s, err := CompileSchema(json.RawMessage(src))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaRules(t *testing.T) {
	tests := []struct {
		name, schema, value string
		want                string // "" passes, else the first violation
	}{
		{"number", `{"type":"number"}`, `1.5`, ""},
		{"whole number with a fraction", `{"type":"integer"}`, `145000000.0`, ""},
		{"whole number with an exponent", `{"type":"integer"}`, `1.45e8`, ""},
		{"negative exponent that leaves a whole number", `{"type":"integer"}`, `1200e-2`, ""},
		{"negative exponent that does not", `{"type":"integer"}`, `1250e-2`, " type must be integer, got 1250e-2"},
		{"integer too long for Go", `{"type":"integer"}`, `9999999999999999999`, " type must be integer, got 9999999999999999999"},
		{"boolean is no number", `{"type":"number"}`, `true`, " type must be number, got true"},
		{"null is no number", `{"type":"number"}`, `null`, " type must be number, got null"},
		{"one of two types", `{"type":["number","null"]}`, `null`, ""},
		{"string for a number", `{"type":["number","null"]}`, `"10"`, ` type must be number or null, got the string "10"; send it without quotes`},
		{"at the maximum", `{"maximum":360}`, `360`, ""},
		{"just over", `{"maximum":360}`, `360.0000001`, " maximum must be <= 360, got 360.0000001"},
		{"just under", `{"minimum":-180,"maximum":180}`, `-180.5`, " minimum must be >= -180, got -180.5; allowed is -180 to 180"},
		{"half-open", `{"minimum":0,"exclusiveMaximum":360}`, `360`, " exclusiveMaximum must be < 360, got 360; allowed is 0 to below 360"},
		{"above zero", `{"exclusiveMinimum":0}`, `0`, " exclusiveMinimum must be > 0, got 0"},
		{"large limits are written out", `{"minimum":144000000,"maximum":146000000}`, `1`, " minimum must be >= 144000000, got 1; allowed is 144000000 to 146000000"},
		{"infinite", `{"type":"number"}`, `-1e400`, " type must be a number that 64 bits can hold, got -1e400"},
		{"enum", `{"enum":["FM","USB"]}`, `"fm"`, ` enum must be one of "FM", "USB", got the string "fm"`},
		{"enum of numbers", `{"enum":[1,2]}`, `2.0`, ""},
		{"const", `{"const":true}`, `false`, " enum must be one of true, got false"},
		{"characters and not bytes", `{"maxLength":3}`, `"äöü"`, ""},
		{"too long", `{"maxLength":3}`, `"abcd"`, " maxLength must have at most 3 characters, got 4"},
		{"too short", `{"minLength":1}`, `""`, " minLength must have at least 1 characters, got 0"},
		{"pattern", `{"pattern":"^[a-z]+$"}`, `"a\u202eb"`, ` pattern must match ^[a-z]+$, got the string "ab"`},
		{"time", `{"format":"date-time"}`, `"2026-11-30T03:14:05.123Z"`, ""},
		{"no time", `{"format":"date-time"}`, `"2026-11-30"`, ` format must be a time such as 2026-11-30T03:14:05Z, got the string "2026-11-30"`},
		{"items", `{"items":{"type":"integer"}}`, `[1,2,"x"]`, `/2 type must be integer, got the string "x"; send it without quotes`},
		{"too many items", `{"maxItems":1}`, `[1,2]`, " maxItems must have at most 1 items, got 2"},
		{"too few items", `{"minItems":1}`, `[]`, " minItems must have at least 1 items, got 0"},
		{"minus zero", `{"enum":[0]}`, `-0.0`, ""},
		{"large integers are told apart", `{"enum":[9007199254740993]}`, `9007199254740992`, " enum must be one of 9007199254740993, got 9007199254740992"},
		{"items twice", `{"uniqueItems":true}`, `[1,2,1.0]`, " uniqueItems must not hold the same item twice, got 1.0 at 0 and 2"},
		{"nested", `{"properties":{"a":{"properties":{"b/c":{"type":"string"}}}}}`, `{"a":{"b/c":1}}`, "/a/b~1c type must be string, got 1"},
		{"unknown key", `{"properties":{"a":{}},"additionalProperties":false}`, `{"A":1}`, ` additionalProperties has the unknown property "A"; known are a`},
		{"no keys at all", `{"additionalProperties":false}`, `{"a":1}`, ` additionalProperties has the unknown property "a"; it takes none`},
		{"keys of a map", `{"additionalProperties":{"type":"number"}}`, `{"x":"1"}`, `/x type must be number, got the string "1"; send it without quotes`},
		{"both or neither", `{"properties":{"a":{},"b":{}},"dependentRequired":{"a":["b"]}}`, `{"a":1}`, ` dependentRequired has "a" without "b": give both or neither`},
		{"key twice", `{"type":"object"}`, `{"a":1,"a":2}`, ` duplicate has the key "a" twice`},
		{"terminal escapes in a key", `{"additionalProperties":false}`, `{"\u001b[2J":1}`, ` additionalProperties has the unknown property "[2J"; it takes none`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, vs := compiled(t, tt.schema).Validate(json.RawMessage(tt.value))
			got := ""
			if len(vs) > 0 {
				got = vs[0].Path + " " + vs[0].Rule + " " + vs[0].Message
			}
			if got != tt.want {
				t.Errorf("%s against %s:\n got %q\nwant %q", tt.value, tt.schema, got, tt.want)
			}
		})
	}
}

func TestSchemaFillsDefaultsAndRewritesIntegers(t *testing.T) {
	s := compiled(t, `{"type":"object","properties":{"b":{"default":"x"},"hz":{"type":"integer"},"list":{"items":{"properties":{"n":{"default":1}}}}}}`)
	for in, want := range map[string]string{
		`{}`:                           `{"b":"x"}`,
		`{"b":"y","hz":1}`:             `{"b":"y","hz":1}`,
		` { "hz" : 1.450e3 , "b":1 } `: `{"hz":1450,"b":1}`,
		`{"b":"","list":[{},{"n":2}]}`: `{"b":"","list":[{"n":1},{"n":2}]}`,
		`{"hz":-0.0,"b":0}`:            `{"hz":0,"b":0}`,
	} {
		got, vs := s.Validate(json.RawMessage(strings.TrimSpace(in)))
		if string(got) != want || vs != nil {
			t.Errorf("%s became %s, %v; want %s", in, got, vs, want)
		}
	}
}

func TestSchemaErrorsAreFoundAtTheStart(t *testing.T) {
	for _, src := range []string{`{`, `[]`, `true`, `{"type":"float"}`, `{"oneOf":[]}`, `{"$ref":"#"}`, `{"format":"email"}`, `{"pattern":"("}`,
		`{"required":["a"]}`, `{"properties":{"a":{"typo":1}}}`, `{"minimum":"0"}`, `{"type":"object","type":"array"}`,
		`{"properties":{"a":{"type":"integer","default":"x"}}}`, strings.Repeat(`{"items":`, 40) + `{}` + strings.Repeat(`}`, 40)} {
		if _, err := CompileSchema(json.RawMessage(src)); err == nil {
			t.Errorf("CompileSchema accepts %s", src)
		}
	}
}

func TestViolationsAreCapped(t *testing.T) {
	s := compiled(t, `{"properties":{"list":{"items":{"type":"string"}}},"additionalProperties":false}`)
	_, vs := s.Validate(json.RawMessage(`{"list":[` + strings.Repeat("1,", 1000) + `1],"x":1}`))
	if len(vs) != maxViolations {
		t.Errorf("got %d violations, want %d", len(vs), maxViolations)
	}
}

// A schema of another author must accept and refuse the same values.
func TestSchemaAgreesWithAnotherImplementation(t *testing.T) {
	const src = `{"type":"object","properties":{
		"azimuth_deg":{"type":"number","minimum":0,"maximum":360},
		"n":{"type":"integer","exclusiveMinimum":-3,"exclusiveMaximum":1e6},
		"mode":{"enum":["FM","USB",1,null]},
		"name":{"type":"string","minLength":1,"maxLength":5,"pattern":"^[a-zä]*$"},
		"list":{"type":"array","items":{"type":["integer","null"]},"minItems":1,"maxItems":3,"uniqueItems":true},
		"map":{"type":"object","additionalProperties":{"type":"boolean"}}},
		"required":["azimuth_deg"],"dependentRequired":{"n":["mode"]},"additionalProperties":false}`
	ours := compiled(t, src)
	var other jsonschema.Schema
	if err := json.Unmarshal([]byte(src), &other); err != nil {
		t.Fatal(err)
	}
	theirs, err := other.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	scalar := rapid.OneOf(
		rapid.Map(rapid.Float64Range(-400, 400), func(f float64) any { return f + 0 }),
		rapid.Map(rapid.IntRange(-5, 400), func(i int) any { return i }),
		rapid.Map(rapid.StringMatching(`[a-zäFMUSB]{0,6}`), func(s string) any { return s }),
		rapid.SampledFrom([]any{nil, true, false, "FM", "USB", 360, 0, -3, 1e6, 1e300, []any{}, map[string]any{}}))
	value := rapid.OneOf(scalar,
		rapid.Map(rapid.SliceOfN(scalar, 0, 4), func(l []any) any { return l }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b"}), scalar, 0, 2), func(m map[string]any) any { return m }))
	accepted := 0
	rapid.Check(t, func(t *rapid.T) {
		v := map[string]any{"azimuth_deg": rapid.Float64Range(-10, 370).Draw(t, "azimuth") + 0} // + 0: we send -0 on as 0
		for _, k := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n", "mode", "name", "list", "map", "Mode", "azimuth_deg"}), 0, 3, rapid.ID).Draw(t, "keys") {
			v[k] = value.Draw(t, k)
		}
		raw, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		out, vs := ours.Validate(raw)
		want := theirs.Validate(plain)
		if (vs == nil) != (want == nil) {
			t.Fatalf("%s: ours %v, theirs %v", raw, vs, want)
		}
		if vs == nil {
			accepted++
			var back any
			if err := json.Unmarshal(out, &back); err != nil || canonical(out) != canonical(raw) {
				t.Fatalf("%s became %s", raw, out)
			}
		}
	})
	if accepted == 0 {
		t.Error("no value was accepted: the comparison says nothing")
	}
}

func TestIntegerIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(-999999999999999999, 999999999999999999).Draw(t, "n")
		e := rapid.IntRange(0, 4).Draw(t, "e")
		plain := strconv.FormatInt(n, 10)
		for _, form := range []string{plain, plain + ".0", plain + strings.Repeat("0", e) + "e-" + strconv.Itoa(e), plain + ".000e0"} {
			if got, ok := integer(json.RawMessage(form)); !ok || string(got) != plain {
				t.Fatalf("%s became %s, %v; want %s", form, got, ok, plain)
			}
		}
	})
}

func FuzzValidate(f *testing.F) {
	s := compiled(f, `{"type":"object","properties":{
		"x":{"type":"number","minimum":0,"maximum":360},"n":{"type":"integer","default":3},
		"name":{"type":"string","pattern":"^[a-z]+$","maxLength":5},"t":{"type":"string","format":"date-time"},
		"list":{"type":"array","items":{"type":"integer"},"uniqueItems":true,"maxItems":4}},"additionalProperties":false}`)
	for _, seed := range []string{`{}`, `{"x":1e999999999}`, `{"n":145e6}`, `{"list":[1,1.0]}`, `{"name":"\ud800"}`, `{"x":1,"x":2}`, `{"t":"2026-11-30T03:14:05Z"}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !json.Valid(raw) || len(raw) == 0 {
			return
		}
		if raw = raw[skipSpace(raw, 0):]; len(raw) == 0 {
			return
		}
		out, vs := s.Validate(raw)
		if vs != nil {
			return
		}
		// What passes must hold in the eyes of a handler, which uses encoding/json.
		var v struct {
			X    *float64
			N    int64
			Name string
			List []int64
		}
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%s passed as %s, which encoding/json refuses: %v", raw, out, err)
		}
		if v.X != nil && !(*v.X >= 0 && *v.X <= 360) || len(v.Name) > 5 || len(v.List) > 4 {
			t.Fatalf("%s passed as %+v", raw, v)
		}
	})
}
