package tools

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
)

// units are the endings of a number's name that say what it counts.
var unitName = regexp.MustCompile(`_(deg|hz|s|ms|km|km_s|days|dps|min|m)$|^hours$`)

// countsNothing are numbers that have no unit.
var countsNothing = []string{"norad_id", "limit", "priority", "total", "progress"}

// eachNumber calls f with the name of every property of a schema that is a
// number.
func eachNumber(t *testing.T, schema json.RawMessage, f func(name string)) {
	t.Helper()
	var s struct {
		Properties map[string]json.RawMessage
		Items      json.RawMessage
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		t.Fatal(err)
	}
	if s.Items != nil {
		eachNumber(t, s.Items, f)
	}
	for name, p := range s.Properties {
		var kind struct{ Type any }
		if err := json.Unmarshal(p, &kind); err != nil {
			t.Fatal(err)
		}
		if kind.Type == "number" || kind.Type == "integer" {
			f(name)
		}
		eachNumber(t, p, f)
	}
}

func TestEveryToolIsDescribedForAModel(t *testing.T) {
	name := regexp.MustCompile(`^[a-z][a-z0-9_]{2,40}$`)
	when := regexp.MustCompile(`\b([Uu]se (it|this)|Read it|Ask it)\b`)
	whenNot := regexp.MustCompile(`\b[Dd]o not use (it|this)\b`)
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		list := s.tools()
		if len(list) < 16 {
			t.Fatalf("only %d tools", len(list))
		}
		for _, x := range list {
			if !name.MatchString(x.Name) {
				t.Errorf("%s is not a name that every client takes", x.Name)
			}
			if x.Title == "" || x.Title == x.Name {
				t.Errorf("%s has the title %q", x.Name, x.Title)
			}
			if !when.MatchString(x.Description) || !whenNot.MatchString(x.Description) {
				t.Errorf("the description of %s does not say when to use it and when not: %s", x.Name, x.Description)
			}
			if n := len(x.Description); n > 600 {
				t.Errorf("the description of %s has %d characters", x.Name, n)
			}
			for _, hint := range []string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
				if _, ok := x.Annotations[hint]; !ok {
					t.Errorf("%s does not say %s", x.Name, hint)
				}
			}
			if x.OutputSchema == nil {
				t.Errorf("%s has no output schema", x.Name)
			}
			for _, schema := range []json.RawMessage{x.InputSchema, x.OutputSchema} {
				if _, err := mcp.CompileSchema(schema); err != nil {
					t.Errorf("%s: %v", x.Name, err)
				}
				eachNumber(t, schema, func(p string) {
					if !unitName.MatchString(p) && !slices.Contains(countsNothing, p) {
						t.Errorf("%s: the number %s has no unit in its name", x.Name, p)
					}
				})
			}
			checkExamples(t, x)
		}
	})
}

// checkExamples: what the catalogue shows as an example is valid.
func checkExamples(t *testing.T, x listedTool) {
	t.Helper()
	var s struct {
		Properties map[string]any
		Examples   []json.RawMessage
	}
	if err := json.Unmarshal(x.InputSchema, &s); err != nil {
		t.Fatal(err)
	}
	in, err := mcp.CompileSchema(x.InputSchema)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.Examples {
		if _, broken := in.Validate(e); broken != nil {
			t.Errorf("%s: the example %s is invalid: %v", x.Name, e, broken)
		}
	}
	var required struct{ Required []string }
	if err := json.Unmarshal(x.InputSchema, &required); err != nil {
		t.Fatal(err)
	}
	if len(required.Required) > 0 && len(s.Examples) == 0 {
		t.Errorf("%s needs arguments and shows no example", x.Name)
	}
}

// What each kind of tool says of itself (hints only; the station decides).
func TestAnnotationsTellReadersFromMovers(t *testing.T) {
	reads := map[string]bool{}
	for _, n := range []string{"get_station_health", "get_antenna", "get_radio", "list_events", "find_satellites", "get_satellite", "predict_passes",
		"list_visible_satellites", "check_pointing", "list_scheduled_passes"} {
		reads[n] = true
	}
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		for _, x := range s.tools() {
			if got := x.Annotations["readOnlyHint"]; got != reads[x.Name] {
				t.Errorf("%s: readOnlyHint %v", x.Name, got)
			}
			if got := x.Annotations["destructiveHint"]; got != (x.Name == "cancel_scheduled_pass") {
				t.Errorf("%s: destructiveHint %v", x.Name, got)
			}
			if !x.Annotations["idempotentHint"] || x.Annotations["openWorldHint"] {
				t.Errorf("%s: %v", x.Name, x.Annotations)
			}
		}
	})
}

// Every tool is called on a live station so that it succeeds, and every answer
// has the short text, the same as JSON, and structured content that its output
// schema allows.
func TestEveryAnswerKeepsItsOutputSchema(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		list := s.tools()
		called := map[string]bool{}
		check := func(tool, args string) answer {
			t.Helper()
			called[tool] = true
			a := s.call(tool, args)
			if len(a.Content) != 2 || a.text() == "" || len(a.text()) > 2000 {
				t.Errorf("%s %s: content %v, want a short text and the JSON", tool, args, a.Content)
				return a
			}
			if a.Content[1].Text != string(a.Data) {
				t.Errorf("%s %s: the second text is not the structured content", tool, args)
			}
			out, err := mcp.CompileSchema(list[tool].OutputSchema)
			if err != nil {
				t.Fatal(err)
			}
			if _, broken := out.Validate(a.Data); broken != nil {
				t.Errorf("%s %s: %v in %s", tool, args, broken, a.Data)
			}
			undeclared(t, tool, list[tool].OutputSchema, a.Data)
			return a
		}
		check("get_station_health", `{}`)
		check("get_antenna", `{}`)
		check("get_radio", `{}`)
		check("find_satellites", `{"query":"iss"}`)
		check("find_satellites", `{"query":"no such thing"}`)
		check("get_satellite", `{"norad_id":25544}`)
		check("get_satellite", `{"norad_id":7530}`)
		check("predict_passes", `{"norad_id":25544}`)
		check("predict_passes", `{"norad_id":25544,"hours":1,"min_elevation_deg":89}`)
		check("list_visible_satellites", `{}`)
		check("check_pointing", `{"azimuth_deg":200,"elevation_deg":45}`)
		check("check_pointing", `{"azimuth_deg":180,"elevation_deg":20}`)
		check("check_pointing", `{"pass_id":"25544-20260813T0833Z"}`)
		check("list_scheduled_passes", `{}`)
		booked := check("schedule_pass", `{"pass_id":"25544-20260813T0833Z"}`)
		check("schedule_pass", `{"pass_id":"25544-20260813T0833Z"}`) // repeated
		check("list_scheduled_passes", `{}`)
		check("get_station_health", `{}`) // with a next pass
		check("tune_radio", `{"frequency_hz":145900000,"mode":"USB"}`)
		check("point_antenna", `{"azimuth_deg":100,"elevation_deg":70}`)
		check("get_antenna", `{}`) // on its way
		time.Sleep(time.Minute)
		check("park_antenna", `{}`)
		time.Sleep(time.Minute)
		var e struct {
			ID string `json:"scheduled_pass_id"`
		}
		booked.into(t, &e)
		check("cancel_scheduled_pass", fmt.Sprintf(`{"scheduled_pass_id":%q,"reason":"not needed"}`, e.ID))
		check("stop_station", `{}`)
		check("get_station_health", `{}`) // held
		check("list_events", `{}`)
		for name := range list {
			if !called[name] {
				t.Errorf("%s was not called here: add it", name)
			}
		}
	})
}

// undeclared complains of members of an answer that its schema does not name:
// a reader of the schema would not know them.
func undeclared(t *testing.T, tool string, schema, data json.RawMessage) {
	t.Helper()
	var s struct{ Properties map[string]any }
	var d map[string]any
	if json.Unmarshal(schema, &s) != nil || json.Unmarshal(data, &d) != nil {
		t.Fatalf("%s: not objects", tool)
	}
	for k := range d {
		if _, ok := s.Properties[k]; !ok {
			t.Errorf("%s answers with %q, which its output schema does not name", tool, k)
		}
	}
}

// A refusal is a result for the model: isError, a sentence, the same as JSON,
// and no structured content, which clients would hold against the schema.
func TestRefusalsTeachTheWayOut(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		tests := []struct {
			code       safety.Code
			tool, args string
		}{
			{"KEEP_OUT", "point_antenna", `{"azimuth_deg":180,"elevation_deg":20}`},
			{"ELEVATION_BELOW_MASK", "point_antenna", `{"azimuth_deg":90,"elevation_deg":3}`},
			{"ELEVATION_LIMIT", "point_antenna", `{"azimuth_deg":90,"elevation_deg":-45}`},
			{"STATE_CHANGED", "point_antenna", `{"azimuth_deg":90,"elevation_deg":45,"expect_state":"tracking"}`},
			{"SATELLITE_UNKNOWN", "predict_passes", `{"norad_id":999999999}`},
			{"SATELLITE_UNKNOWN", "get_satellite", `{"norad_id":999999999}`},
			{"SATELLITE_UNKNOWN", "schedule_pass", `{"pass_id":"999999999-20260813T1146Z"}`},
			{"PASS_UNKNOWN", "schedule_pass", `{"pass_id":"25544-20260813T1126Z"}`},
			{"PASS_UNKNOWN", "schedule_pass", `{"norad_id":25544,"aos":"2026-08-13T11:20:00Z"}`},
			{"KEEP_OUT", "schedule_pass", `{"pass_id":"25544-20260813T1146Z"}`},
			{"PASS_OVER", "schedule_pass", `{"pass_id":"39444-20260813T0632Z"}`},
			{"PASS_UNKNOWN", "cancel_scheduled_pass", `{"scheduled_pass_id":"sp-none"}`},
		}
		time.Sleep(time.Hour) // AO-73 has been and gone
		for _, tt := range tests {
			s.refusal(tt.code, tt.tool, tt.args)
		}
	})
}
