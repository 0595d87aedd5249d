package event

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite docs/schemas and docs/asyncapi.yaml")

const docs = "../../docs"

// golden compares a generated file with the one in the repository.
func golden(t *testing.T, name string, want []byte) {
	t.Helper()
	path := filepath.Join(docs, name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("docs/%s is not what the event types say (%v): run go test ./internal/event -update and read the difference; "+
			"an added field needs a new minor version of its schema", name, err)
	}
}

func TestSchemasInDocsAreThoseOfTheTypes(t *testing.T) {
	want := map[string]bool{}
	for _, d := range All() {
		s, err := Schema(d)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(d.Kind().Schema, "urn:gsd:schema:")
		name, _, _ = strings.Cut(name, ":")
		golden(t, "schemas/"+name+".json", s)
		want[name+".json"] = true
	}
	files, err := os.ReadDir(filepath.Join(docs, "schemas"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("docs/schemas/%s belongs to no event", f.Name())
		}
	}
}

// Every float has to say what it counts: a number without a unit has killed
// spacecraft.
func TestNumbersCarryTheirUnits(t *testing.T) {
	units := []string{"_deg", "_s", "_ms", "_km", "_hz", "_days"}
	for _, d := range All() {
		for _, f := range fields(reflect.TypeOf(d)) {
			ok := f.typ.Kind() != reflect.Float64
			for _, u := range units {
				ok = ok || strings.HasSuffix(f.name, u)
			}
			if !ok {
				t.Errorf("%s: %s is a number without a unit", d.Kind().Type, f.name)
			}
			if f.name == "" || strings.ToLower(f.name) != f.name {
				t.Errorf("%s: field name %q", d.Kind().Type, f.name)
			}
		}
	}
}

func TestUnknownNumberBecomesNullAndCostsNoEvent(t *testing.T) {
	bus := NewBus(Options{Station: "gs-01", Simulated: true})
	aos := PassAOS{PassRef: PassRef{PassID: "p", NoradID: 5}, Look: Look{AzimuthDeg: 10, RangeKm: math.Inf(1)}, PointingErrorDeg: math.NaN()}
	ev, err := bus.Emit(t.Context(), About{}, aos)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(ev.Data, &m); err != nil {
		t.Fatal(err)
	}
	if m["pointing_error_deg"] != nil || m["range_km"] != nil || m["azimuth_deg"] != 10.0 || m["norad_id"] != 5.0 {
		t.Errorf("data = %v, want null for what is unknown and the rest as it was", m)
	}
	if _, ok := m["scheduled_pass_id"]; ok {
		t.Errorf("an empty optional member was written: %v", m)
	}
}

// What encoding/json writes and what the schema says must be the same members.
func TestSchemaNamesEveryMemberThatIsWritten(t *testing.T) {
	for _, d := range All() {
		filled := reflect.New(reflect.TypeOf(d)).Elem()
		fill(filled)
		raw, err := encodeData(filled.Interface().(Data))
		if err != nil {
			t.Fatal(err)
		}
		var members map[string]any
		if err := json.Unmarshal(raw, &members); err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, f := range fields(reflect.TypeOf(d)) {
			names[f.name] = true
		}
		if len(names) != len(members) {
			t.Errorf("%T: schema has %d members, JSON %d", d, len(names), len(members))
		}
		for m := range members {
			if !names[m] {
				t.Errorf("%T writes %s, which its schema does not name", d, m)
			}
		}
	}
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(1, 0)))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Uint64:
		v.SetUint(1)
	case reflect.Float64:
		v.SetFloat(1)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	}
}
