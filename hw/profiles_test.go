package hw_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"gsd-mcp/hw"
	"gsd-mcp/internal/config"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// station is the whole configuration of a station at a real place with a flat
// mask of 5° that is built from one profile, as a person would write it.
func station(t *testing.T, p hw.Profile) *config.Config {
	t.Helper()
	text := fmt.Sprintf("version = 1\n[station]\nid = \"gs-1\"\nlatitude_deg = 51.5\nlongitude_deg = -0.1\n[horizon]\nelevation_deg = 5\n[%s]\nprofile = %q\n", p.Kind, p.Name)
	if !strings.Contains(string(p.Text()), "\nport = ") {
		text += "port = \"/dev/serial/by-id/x\"\n"
	}
	c, warnings, err := config.Parse("station.toml", []byte(text))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("%s: %v, warnings %v", p.Name, err, warnings)
	}
	return c
}

// each runs f for every profile of a kind.
func each(t *testing.T, kind string, f func(t *testing.T, p hw.Profile)) {
	for _, name := range hw.Names(kind) {
		t.Run(name, func(t *testing.T) {
			p, err := hw.Find(kind, name)
			if err != nil {
				t.Fatal(err)
			}
			f(t, p)
		})
	}
}

func driver(t *testing.T, c *config.Config) rotator.Driver {
	t.Helper()
	d, err := rotator.Lookup(c.Rotator.Driver)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// simulated reports whether a profile is no hardware: its values are made up.
func simulated(p hw.Profile) bool { return p.Name == "sim" }

func TestARotatorProfileAsksForNothingThatItsDriverCannotSay(t *testing.T) {
	const slack = 0.11 // a tenth of a degree, for an axis that is not there
	each(t, hw.RotatorKind, func(t *testing.T, p hw.Profile) {
		c := station(t, p)
		d, r, l := driver(t, c), c.Rotator, c.Rotator.Limits
		// Limits are mechanical: the offset is added to what the wire says, so
		// it does not widen what the wire can carry.
		if !(d.Caps.AzMinDeg <= l.AzimuthMinDeg && l.AzimuthMaxDeg <= d.Caps.AzMaxDeg) {
			t.Errorf("azimuth %v..%v is outside the wire's %v..%v of %s", l.AzimuthMinDeg, l.AzimuthMaxDeg, d.Caps.AzMinDeg, d.Caps.AzMaxDeg, d.Name)
		}
		elMin, elMax := l.ElevationMinDeg, l.ElevationMaxDeg
		if d.Caps.AzimuthOnly { // no axis, no stops: what counts is what may be asked for
			elMin, elMax = elMin+l.MarginDeg+slack, elMax-l.MarginDeg-slack
		}
		if !(d.Caps.ElMinDeg <= elMin && elMax <= d.Caps.ElMaxDeg) {
			t.Errorf("elevation %v..%v is outside the wire's %v..%v of %s", elMin, elMax, d.Caps.ElMinDeg, d.Caps.ElMaxDeg, d.Name)
		}
		if !(l.MarginDeg >= 0.1) {
			t.Errorf("a margin of %v° lets a coasting mount meet its stop", l.MarginDeg)
		}
		if !(r.DeadbandDeg >= d.Caps.ResolutionDeg) {
			t.Errorf("a deadband of %v° is below the wire's resolution of %v°", r.DeadbandDeg, d.Caps.ResolutionDeg)
		}
		if d.Caps.MovesOnOpen && !r.MovesOnOpen {
			t.Error("opening the port can move this mount, and the profile does not say so")
		}
		if !simulated(p) && r.AbsoluteAzimuth != d.Caps.Winding {
			t.Errorf("absolute_azimuth is %v, and %s tells the winding: %v", r.AbsoluteAzimuth, d.Name, d.Caps.Winding)
		}
		if r.Baud != d.Baud && !strings.Contains(p.Title, "MD-01") {
			t.Errorf("baud %d, %s has %d", r.Baud, d.Name, d.Baud)
		}
		if !simulated(p) && !strings.Contains(string(p.Text()), "\nduty_on_s = ") {
			t.Error("the profile says nothing of the duty of its motors")
		}
	})
}

func TestTheGateLetsEveryProfileParkAndComeBack(t *testing.T) {
	each(t, hw.RotatorKind, func(t *testing.T, p hw.Profile) {
		c := station(t, p)
		r, l := c.Rotator, c.Rotator.Limits
		rules := safety.Rules{
			Travel:    safety.Travel{AzMinDeg: l.AzimuthMinDeg, AzMaxDeg: l.AzimuthMaxDeg, ElMinDeg: l.ElevationMinDeg, ElMaxDeg: l.ElevationMaxDeg},
			MarginDeg: l.MarginDeg, Offset: unit.AzEl{AzDeg: r.OffsetAzimuthDeg, ElDeg: r.OffsetElevationDeg}, Horizon: unit.FlatHorizon(5),
			AzSpeedDps: l.AzimuthSpeedDps, ElSpeedDps: l.ElevationSpeedDps, AccelDps2: l.AccelerationDps2,
		}
		if err := rules.Validate(); err != nil {
			t.Fatal(err)
		}
		// From both ends of the azimuth, at the lowest elevation that is allowed.
		low := math.Max(l.ElevationMinDeg+l.MarginDeg, 5-r.OffsetElevationDeg)
		for _, az := range []float64{l.AzimuthMinDeg + l.MarginDeg, l.AzimuthMaxDeg - l.MarginDeg} {
			from := unit.AzEl{AzDeg: az, ElDeg: low}
			park := unit.AzEl{AzDeg: r.Park.AzimuthDeg, ElDeg: r.Park.ElevationDeg}
			route, ref := rules.Route(from, park, nil)
			if ref != nil {
				t.Fatalf("park %v from %v: %v", park, from, ref)
			}
			if ref := rules.Allowed(route.Target(), nil); ref != nil {
				t.Errorf("the park position %v is not allowed: %v", route.Target(), ref)
			}
			if _, ref := rules.RouteTo(route.Target(), from, nil); ref != nil {
				t.Errorf("from park %v back to %v: %v", route.Target(), from, ref)
			}
		}
	})
}

func TestARadioProfileFitsItsModel(t *testing.T) {
	each(t, hw.RadioKind, func(t *testing.T, p hw.Profile) {
		c := station(t, p)
		r := c.Radio[0]
		m, err := radio.Lookup(r.Driver)
		if err != nil {
			t.Fatal(err)
		}
		if r.Baud != m.Baud {
			t.Errorf("baud %d, the model has %d", r.Baud, m.Baud)
		}
		if simulated(p) {
			return
		}
		for _, key := range []string{"role", "keying_line"} {
			if !strings.Contains(string(p.Text()), "\n"+key+" = ") {
				t.Errorf("the profile does not say its %s", key)
			}
		}
		// What each station has to look at before the port is opened.
		confirm := strings.ToLower(strings.Join(p.Confirm, "\n"))
		if !regexp.MustCompile(`keying|keys|ptt`).MatchString(confirm) {
			t.Error("nothing in confirm tells what may key this radio when the port is opened")
		}
		if strings.HasPrefix(m.Name, "icom-") && (!strings.Contains(confirm, "ci-v transceive off") || !strings.Contains(confirm, "ci-v address")) {
			t.Error("an Icom's confirm lacks CI-V transceive or the address")
		}
		if strings.Contains(strings.Join(p.Confirm, " "), "USB SEND") != strings.Contains(string(p.Text()), "over USB") && strings.HasPrefix(m.Name, "icom-") {
			t.Error("an Icom over USB keys by USB SEND: confirm must say so, and only there")
		}
	})
}

func TestEveryDriverAndModelHasAProfile(t *testing.T) {
	has := map[string]bool{}
	each(t, hw.RotatorKind, func(t *testing.T, p hw.Profile) { has["rotator "+station(t, p).Rotator.Driver] = true })
	each(t, hw.RadioKind, func(t *testing.T, p hw.Profile) {
		driver := station(t, p).Radio[0].Driver
		has["radio "+driver] = true
		if !simulated(p) && p.Name != driver {
			t.Errorf("the profile of %s is called %s", driver, p.Name)
		}
	})
	for _, d := range rotator.Drivers() {
		if !has["rotator "+d.Name] {
			t.Errorf("no profile for the rotator driver %s", d.Name)
		}
	}
	for _, m := range radio.Models() {
		if !has["radio "+m.Name] {
			t.Errorf("no profile for the radio %s", m.Name)
		}
	}
}

// A source is what README.md says that one looks like.
var source = regexp.MustCompile(`\b(manual|Hamlib|firmware|protocol|measured|calculated|likewise|choice:|confirm on site)|\bissues? \d+`)

// A setting with digits in its value, and what stands behind it.
var number = regexp.MustCompile(`^([a-z0-9_]+) = (-?\d[\d.]*|\{[^}]*\d[^}]*\}) *(# .*)?$`)

func TestEveryNumberSaysWhereItComesFrom(t *testing.T) {
	for _, kind := range []string{hw.RotatorKind, hw.RadioKind} {
		each(t, kind, func(t *testing.T, p hw.Profile) {
			if simulated(p) {
				return
			}
			_, settings, ok := strings.Cut(string(p.Text()), "[settings]\n")
			if !ok {
				t.Fatal("the profile has no [settings]")
			}
			for line := range strings.Lines(settings) {
				m := number.FindStringSubmatch(strings.TrimRight(line, "\n"))
				if m == nil {
					if regexp.MustCompile(`^[a-z0-9_]+ = [-{\d]`).MatchString(line) {
						t.Errorf("this line is not understood: %s", line)
					}
					continue
				}
				key, comment := m[1], m[3]
				listed := strings.Contains(strings.Join(p.Confirm, " "), key)
				if !source.MatchString(comment) && !listed {
					t.Errorf("%s has no source: neither a comment with one (README.md) nor its name in confirm", strings.TrimSpace(line))
				}
			}
		})
	}
}

func TestAValueWithoutSourceIsFound(t *testing.T) {
	for line, want := range map[string]bool{
		"baud = 9600  # Hamlib":                     true,
		"baud = 9600  # issue 12 of x":              true,
		"baud = 9600  # fast":                       false,
		"baud = 9600":                               false,
		"park = { azimuth_deg = 1 }  # choice: why": true,
	} {
		m := number.FindStringSubmatch(line)
		if m == nil || source.MatchString(m[3]) != want {
			t.Errorf("%s: %q, want a source: %v", line, m, want)
		}
	}
}

// The diff in README.md is the driver as it is, not as it once was.
func TestTheReadmeShowsTheSmallestDriver(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, diff, ok := strings.Cut(string(readme), "```diff\n")
	diff, _, end := strings.Cut(diff, "```\n")
	if !ok || !end {
		t.Fatal("README.md has no diff")
	}
	added := map[string]string{}
	var file string
	for line := range strings.Lines(diff) {
		if name, ok := strings.CutPrefix(line, "+++ b/"); ok {
			file = strings.TrimSpace(name)
		} else if rest, ok := strings.CutPrefix(line, "+"); ok && file != "" {
			added[file] += rest
		}
	}
	if len(added) != 3 {
		t.Errorf("the diff touches %d files, want 3", len(added))
	}
	for file, want := range added {
		text, err := os.ReadFile(filepath.Join("..", file))
		if err != nil {
			t.Error(err)
		} else if file == "internal/rotator/table.go" && !strings.Contains(string(text), want) || file != "internal/rotator/table.go" && string(text) != want {
			t.Errorf("README.md shows another %s than there is:\n%s", file, want)
		}
	}
}

// README.md names every profile, in full or by the end of its name.
func TestTheReadmeNamesEveryRotatorProfile(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(readme), "## Which profile")
	table, _, _ = strings.Cut(table, "\n## ")
	named := map[string]bool{"sim": true}
	var stem string
	for _, m := range regexp.MustCompile("`([a-z0-9-]+)`").FindAllStringSubmatch(table, -1) {
		name := m[1]
		if strings.HasPrefix(name, "-") {
			name = stem + name
		} else if i := strings.LastIndex(name, "-"); i > 0 {
			stem = name[:i]
		}
		named[name] = true
	}
	for _, name := range hw.Names(hw.RotatorKind) {
		if !named[name] {
			t.Errorf("README.md does not name the profile %s", name)
		}
		delete(named, name)
	}
	for name := range named {
		if _, err := hw.Radio(name); err != nil {
			t.Errorf("README.md names %s, which is no profile", name)
		}
	}
}
