package config

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gsd-mcp/hw"
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
	// The example has every key, so also those that nothing obeys yet.
	if len(warnings) != 1 || !strings.HasPrefix(warnings[0].What, "accepted, but not obeyed") {
		t.Errorf("warnings: %v, want the one about keys that nothing obeys", warnings)
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
	c.Satellite = nil // not the profiles' business
	if diff := cmp.Diff(&c, short, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("the profiles sim and Simulated() disagree (-Simulated +profiles):\n%s", diff)
	}
}

func TestEveryProfileIsAValidStation(t *testing.T) {
	for _, kind := range []string{hw.RotatorKind, hw.RadioKind} {
		for _, name := range hw.Names(kind) {
			t.Run(kind+"/"+name, func(t *testing.T) {
				text := fmt.Sprintf("version = 1\n[station]\nid = \"gs-1\"\nlatitude_deg = 51.5\nlongitude_deg = -0.1\n[%s]\nprofile = %q\n", kind, name)
				p, err := hw.Find(kind, name)
				if err != nil {
					t.Fatal(err)
				}
				if !strings.Contains(string(p.Text()), "\nport = ") { // a server's is known beforehand
					text += "port = \"/dev/serial/by-id/x\"\n"
				}
				c, warnings, err := Parse(name, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if len(warnings) > 0 {
					t.Errorf("warnings: %v", warnings)
				}
				if kind == hw.RotatorKind && c.Rotator.Driver == "" || kind == hw.RadioKind && c.Radio[0].Driver == "" {
					t.Error("the profile names no driver")
				}
			})
		}
	}
}

func TestTheFileOverridesTheProfileKeyByKey(t *testing.T) {
	c, _, err := Parse("f", []byte(`version = 1
station = { id = "gs-1", latitude_deg = 51.5, longitude_deg = -0.1 }
[rotator]
profile = "sim"
port = "/dev/serial/by-id/x"
baud = 0
park.elevation_deg = 45
[rotator.limits]
azimuth_max_deg = 400
[radio]
profile = "sim"
baud = 4800
role = "downlink"
[[radio]]
profile = "sim"
role = "uplink"
`))
	if err != nil {
		t.Fatal(err)
	}
	got := []any{
		c.Rotator.Port, c.Rotator.Baud, c.Rotator.Driver, c.Rotator.Park, c.Rotator.Limits.AzimuthMaxDeg,
		c.Rotator.Limits.ElevationMaxDeg, c.Rotator.Limits.MaxTurns, c.Radio[0].Baud, c.Radio[1].Baud,
	}
	want := []any{"/dev/serial/by-id/x", 0, "easycomm2", Park{90, 45}, 400.0, 180.0, 1.25, 4800, 115200}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if c.Simulated() {
		t.Error("a station with one real port counts as simulated")
	}
	if r, ok := c.RadioFor("uplink"); !ok || r.Role != "uplink" {
		t.Errorf("RadioFor(uplink) = %+v, %v", r, ok)
	}
	if _, ok := c.Overrides(25544); ok {
		t.Error("there are overrides for a satellite that is not listed")
	}
}

func TestADishMindsTheSunUnlessToldOtherwise(t *testing.T) {
	base := "version = 1\nstation = { id = \"gs-1\", latitude_deg = 51.5, longitude_deg = -0.1 }\n[antenna]\nkind = \"dish\"\n"
	for text, want := range map[string]float64{base: 5, base + "sun_separation_deg = 0\n": 0, base + "sun_separation_deg = 8\n": 8} {
		c, _, err := Parse("f", []byte(text))
		if err != nil || c.Antenna.SunSeparationDeg != want {
			t.Errorf("%q: %v, %v; want %v", text, c.Antenna.SunSeparationDeg, err, want)
		}
	}
}

// canary is a secret that must never come out.
const canary = "CANARY.0123456789.canary"

func TestSecretsAreNeverShown(t *testing.T) {
	c := Simulated()
	c.Access.ApprovalPINHash = canary
	c.Hub.Broker = "ssl://gs:" + canary + "@hub.example.org:8883" // as built in code: Parse refuses it
	c.Elements.Sources = []string{"https://ann:" + canary + "@example.org/x"}
	text, err := c.TOML()
	if err != nil {
		t.Fatal(err)
	}
	inJSON, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	pointer, err := json.Marshal(&c)
	if err != nil {
		t.Fatal(err)
	}
	bad := c.Validate()
	if bad == nil {
		t.Fatal("passwords in addresses are accepted")
	}
	for _, s := range []string{string(text), string(inJSON), string(pointer), fmt.Sprint(c), fmt.Sprintf("%+v", &c), fmt.Sprintf("%#v", c), bad.Error()} {
		if strings.Contains(s, canary) {
			t.Errorf("the secret is in %s", s)
		}
	}
	if !strings.Contains(string(inJSON), `"approval_pin_hash":"(set, not shown)"`) || !strings.Contains(string(inJSON), `"azimuth_deg":[170,190]`) {
		t.Errorf("JSON does not look right: %s", inJSON)
	}
	if c.Access.ApprovalPINHash != canary || !strings.Contains(c.Elements.Sources[0], canary) {
		t.Error("Redacted changed the original")
	}
}

func TestThePasswordComesFromItsFile(t *testing.T) {
	env := func(k string) string { return map[string]string{"GSD_HUB_PASSWORD": "from the environment"}[k] }
	path := filepath.Join(t.TempDir(), "secret")
	write := func(s string) {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := (Hub{}).Password(env); got != "from the environment" || err != nil {
		t.Errorf("without a file: %q, %v", got, err)
	}
	h := Hub{PasswordFile: path}
	if _, err := h.Password(env); err == nil {
		t.Error("a missing file gives a password")
	}
	for text, want := range map[string]string{"hunter2\n": "hunter2", "hunter2": "hunter2", " a b \r\nsecond line": " a b "} {
		write(text)
		if got, err := h.Password(env); got != want || err != nil {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "\nsecond", strings.Repeat("x", maxSecret+1)} {
		write(text)
		if got, err := h.Password(env); err == nil || strings.Contains(err.Error(), "xxx") {
			t.Errorf("%.20q: %q, %v; want an error", text, got, err)
		}
	}
}

func TestPaths(t *testing.T) {
	env := map[string]string{}
	getenv := func(k string) string { return env[k] }
	if got, want := Paths(getenv), (Locations{Config: DefaultConfig, StateDir: DefaultStateDir, Socket: DefaultSocket}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	env["GSD_CONFIG"], env["GSD_STATE_DIR"], env["GSD_SOCKET"] = "/c", "/s", "/k"
	if got, want := Paths(getenv, "/flag", "", ""), (Locations{"/flag", "/s", "/k", true, true, true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestTheMaskFollowsTheFile(t *testing.T) {
	c := Simulated()
	m, err := c.Mask()
	if err != nil || m.At(123) != 5 {
		t.Errorf("flat: %v, %v", m.At(123), err)
	}
	c.Horizon.Points = [][]float64{{0, 5}, {90, 15}, {180, 5}, {270, 5}}
	if m, err = c.Mask(); err != nil || m.At(45) != 10 {
		t.Errorf("points: %v, %v", m.At(45), err)
	}
	if got := c.Site(); got.LatDeg != 51.5074 || got.LonDeg != -0.1278 || got.AltM != 25 {
		t.Errorf("site %+v", got)
	}
}

func TestTheManualShowsTheExample(t *testing.T) {
	const path = "../../docs/configuration.md"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(doc), "```toml\n")
	if len(blocks) != 3 {
		t.Fatalf("%s has %d TOML blocks, want the smallest station and the example", path, len(blocks)-1)
	}
	small, _, _ := strings.Cut(blocks[1], "```\n")
	if _, _, err := Parse(path, []byte(small)); err != nil {
		t.Errorf("the smallest station in %s: %v", path, err)
	}
	if *update {
		text := strings.Join(blocks[:2], "```toml\n") + "```toml\n" + string(Example()) + "```\n"
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if full, _, _ := strings.Cut(blocks[2], "```\n"); full != string(Example()) {
		t.Errorf("%s does not show the example; refresh it with: go test ./internal/config -update", path)
	}
}
