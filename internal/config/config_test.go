package config

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// uncomment turns the lines of the example that a station fills in into real
// ones: they begin with # and a key, prose with # and a blank.
func uncomment(text string) string {
	return regexp.MustCompile(`(?m)^#(\[|[a-z])`).ReplaceAllString(text, "$1")
}

func site(c Config) Config {
	c.Station.ID, c.Station.LatitudeDeg, c.Station.LongitudeDeg = "gs-1", 51.5, -0.1
	return c
}

func TestTheExampleSaysTheDefaults(t *testing.T) {
	text := strings.Replace(string(Example()), "[station]\n", "[station]\nid = \"gs-1\"\nlatitude_deg = 51.5\nlongitude_deg = -0.1\n", 1)
	got, warnings, err := Parse("example.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) > 0 {
		t.Errorf("warnings: %v", warnings)
	}
	want := site(Default())
	if diff := cmp.Diff(&want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the example and Default disagree (-Default +example):\n%s", diff)
	}
}

func TestTheExampleHasEveryKeyWithAComment(t *testing.T) {
	w := newWalk("example.toml", []byte(uncomment(string(Example()))))
	w.run(reflect.TypeFor[Config]())
	if len(w.problems) > 0 {
		t.Fatal(w.err(0))
	}
	var visit func(reflect.Type, string)
	visit = func(ty reflect.Type, path string) {
		for i := range ty.NumField() {
			f := ty.Field(i)
			at := join(path, tag(f))
			if isTables(f.Type) {
				at += "[1]"
				visit(f.Type.Elem(), at)
			} else if isTable(f.Type) && f.Type.Kind() == reflect.Struct {
				visit(f.Type, at)
			}
			if _, ok := w.marks[at]; !ok {
				t.Errorf("%s is missing from the example", at)
			}
		}
	}
	visit(reflect.TypeFor[Config](), "")
}

func TestTheUncommentedExampleIsValid(t *testing.T) {
	text := strings.ReplaceAll(uncomment(string(Example())), "rate = 1 ", "rate = 1 #")
	text = regexp.MustCompile(`(?m)^(start|anchor) = .*$`).ReplaceAllString(text, "")
	c, _, err := Parse("example.toml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if !c.HasRotator() || !c.HasRadio() || c.Simulated() {
		t.Errorf("HasRotator %v, HasRadio %v, Simulated %v; want true, true, false", c.HasRotator(), c.HasRadio(), c.Simulated())
	}
}

func TestTheSimulatedStationIsValidAndIsItsProfiles(t *testing.T) {
	c := Simulated()
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if !c.Simulated() {
		t.Error("Simulated() = false")
	}
	text, err := c.TOML()
	if err != nil {
		t.Fatal(err)
	}
	back, _, err := Parse("sim.toml", text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&c, back, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("config show does not read back:\n%s", diff)
	}
	short, _, err := Parse("sim.toml", []byte(`version = 1
[station]
id = "sim-london"
name = "Simulated station, London"
latitude_deg = 51.5074
longitude_deg = -0.1278
altitude_m = 25
[[keep_out]]
name = "mast"
azimuth_deg = [170, 190]
elevation_deg = [0, 35]
reason = "the lattice mast of the neighbouring station"
[rotator]
profile = "sim"
[radio]
profile = "sim"
[elements]
sources = []
`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&c, short, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the profiles sim and Simulated() disagree (-Simulated +profiles):\n%s", diff)
	}
}
