package config

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

var update = flag.Bool("update", false, "rewrite the expected messages")

const mistakesFile = "testdata/mistakes.txtar"

// verdict is what `config check` would say of a file.
func verdict(name string, data []byte) string {
	var b strings.Builder
	_, warnings, err := Parse(name, data)
	if err != nil {
		b.WriteString(err.Error() + "\n")
	}
	for _, w := range warnings {
		b.WriteString("warning: " + w.String() + "\n")
	}
	if b.Len() == 0 {
		return "fine\n"
	}
	return b.String()
}

func TestOneMistakeEach(t *testing.T) {
	a, err := txtar.ParseFile(mistakesFile)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(a.Files); i += 2 {
		in, want := a.Files[i], &a.Files[i+1]
		t.Run(strings.TrimSuffix(in.Name, ".toml"), func(t *testing.T) {
			got := verdict("station.toml", in.Data)
			if *update {
				want.Data = []byte(got)
				return
			}
			if diff := cmp.Diff(string(want.Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for _, word := range []string{"struct", "reflect", "float64", "int64", "config.", "toml:", "hunter2", "\x1b"} {
				if strings.Contains(strings.ReplaceAll(got, "station.toml:", ""), word) {
					t.Errorf("the message says %q: %s", word, got)
				}
			}
		})
	}
	if *update {
		if err := os.WriteFile(mistakesFile, txtar.Format(a), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEveryRangeIsChecked sets every number of a valid configuration to values
// that no key can have.
func TestEveryRangeIsChecked(t *testing.T) {
	var visit func(v reflect.Value, path string, c *Config)
	visit = func(v reflect.Value, path string, c *Config) {
		try := func(set func(), name string) {
			old := reflect.New(v.Type()).Elem()
			old.Set(v)
			set()
			if err := c.Validate(); err == nil {
				t.Errorf("%s = %s is accepted", path, name)
			}
			v.Set(old)
		}
		switch v.Kind() {
		case reflect.Float64:
			for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300} {
				try(func() { v.SetFloat(f) }, fmt.Sprint(f))
			}
		case reflect.Int, reflect.Int64:
			for _, n := range []int64{math.MinInt64, math.MaxInt64, -1 << 40} {
				try(func() { v.SetInt(n) }, "a huge number")
			}
		case reflect.Struct:
			if v.Type() == timeType {
				return
			}
			for i := range v.NumField() {
				visit(v.Field(i), join(path, tag(v.Type().Field(i))), c)
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				visit(v.Index(i), path+"[]", c)
			}
		}
	}
	c := Simulated()
	c.Horizon.Points = nil
	c.Transmit.BandsHz = [][2]int64{{435e6, 438e6}}
	c.Satellite = []Satellite{{NoradID: 25544, DownlinkHz: 145_800_000, UplinkHz: 145_990_000, ToneHz: 67, Priority: 5}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	visit(reflect.ValueOf(&c).Elem(), "", &c)
}

// The gate is the judge: what this package lets through as a park position, the
// gate must allow, and nothing that the gate allows may be refused here.
func TestTheGateAllowsExactlyTheParkPositionsThatAreValid(t *testing.T) {
	valid, refused := 0, 0
	rapid.Check(t, func(r *rapid.T) {
		c := Simulated()
		c.Rotator.Driver = "satnogs" // its wire goes from -180 to 540 degrees
		c.KeepOut = append(c.KeepOut, KeepOut{Name: "north", Reason: "a roof", AzimuthDeg: [2]float64{350, 10}, ElevationDeg: [2]float64{-5, 20}})
		c.Horizon.Points = [][]float64{{0, 5}, {90, 30}, {180, 2}, {270, 5}}
		l := &c.Rotator.Limits
		l.AzimuthMinDeg = rapid.OneOf(rapid.SampledFrom([]float64{-180, 0}), rapid.Float64Range(-180, 0)).Draw(r, "az min")
		l.AzimuthMaxDeg = l.AzimuthMinDeg + rapid.OneOf(rapid.SampledFrom([]float64{360, 450}), rapid.Float64Range(20, 540)).Draw(r, "travel")
		l.MarginDeg = rapid.Float64Range(0, 5).Draw(r, "margin")
		c.Rotator.OffsetAzimuthDeg = rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-180, 180)).Draw(r, "offset")
		c.Rotator.Park.AzimuthDeg = rapid.SampledFrom([]float64{0, 5, 90, 170, 175, 180, 190, 270, 352, 360}).Draw(r, "park az")
		c.Rotator.Park.ElevationDeg = rapid.OneOf(rapid.SampledFrom([]float64{45, 60, 80}), rapid.Float64Range(-10, 90)).Draw(r, "park el")
		mask, err := c.Mask()
		if err != nil {
			r.Fatal(err)
		}
		rules := safety.Rules{
			Travel:    safety.Travel{AzMinDeg: l.AzimuthMinDeg, AzMaxDeg: l.AzimuthMaxDeg, ElMinDeg: l.ElevationMinDeg, ElMaxDeg: l.ElevationMaxDeg},
			MarginDeg: l.MarginDeg,
			Offset:    unit.AzEl{AzDeg: c.Rotator.OffsetAzimuthDeg},
			Horizon:   mask, AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 6,
		}
		for _, z := range c.KeepOut {
			rules.Zones = append(rules.Zones, safety.Zone{Name: z.Name, AzFromDeg: z.AzimuthDeg[0], AzToDeg: z.AzimuthDeg[1], ElMinDeg: z.ElevationDeg[0], ElMaxDeg: z.ElevationDeg[1]})
		}
		park := unit.AzEl{AzDeg: c.Rotator.Park.AzimuthDeg, ElDeg: c.Rotator.Park.ElevationDeg}
		allowed := len(rules.Mechanical(park, park)) > 0 && rules.InSky(park, nil) == nil
		if err := c.Validate(); (err == nil) != allowed {
			r.Fatalf("park %v: the gate allows it: %v, Validate: %v", park, allowed, err)
		}
		if allowed {
			valid++
		} else {
			refused++
		}
	})
	if valid == 0 || refused == 0 {
		t.Errorf("%d valid and %d refused positions: the draw shows nothing", valid, refused)
	}
}

func TestAHugeFileOfMistakesIsAnsweredSoonAndShortly(t *testing.T) {
	data := bytes.Repeat([]byte("[[keep_out]]\nx=1\n"), maxFile/17)
	start := time.Now()
	_, _, err := Parse("f", data)
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	var e *Error
	if !errors.As(err, &e) || len(e.Problems) != maxProblems+1 {
		t.Errorf("%.200v: want %d problems and a word about the rest", err, maxProblems)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "station.toml")
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "does not exist") || !isNoConfig(err) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Load(dir); err == nil || isNoConfig(err) {
		t.Errorf("a directory: %v", err)
	}
	text := []byte("\xef\xbb\xbfversion = 1\r\n[station]\r\nid = \"gs-1\"\r\nlatitude_deg = 51.5\r\nlongitude_deg = -0.1\r\n")
	if err := os.WriteFile(path, text, 0o644); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path); err != nil || c.Station.ID != "gs-1" {
		t.Errorf("a file from Windows: %v", err)
	}
	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Errorf("a file that everybody may write: %v", err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Repeat([]byte("#"), maxFile+1), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "not a station.toml") {
		t.Errorf("a huge file: %v", err)
	}
}

func isNoConfig(err error) bool { return errors.Is(err, ErrNoConfig) }

func FuzzParseNeverPanicsAndNeverLetsNonsenseThrough(f *testing.F) {
	a, err := txtar.ParseFile(mistakesFile)
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range a.Files {
		if strings.HasSuffix(file.Name, ".toml") {
			f.Add(file.Data)
		}
	}
	f.Add(Example())
	f.Add([]byte("[radio"))
	f.Add([]byte("[ radio ] # x\n[radio]\n[[radio]]"))
	f.Add([]byte("radio = [{port=\"sim\"}]"))
	f.Add([]byte("\"radio\".x = 1\n['radio']\n"))
	goTypes := regexp.MustCompile(`\b(struct|reflect|float64|int64)\b|toml: `)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, _, err := Parse("f", data)
		if err == nil {
			if err := c.Validate(); err != nil {
				t.Fatalf("Parse accepts what Validate refuses: %v", err)
			}
			if _, err := c.Mask(); err != nil {
				t.Fatalf("Parse accepts a horizon that Mask refuses: %v", err)
			}
			return
		}
		e, ok := err.(*Error)
		if !ok || len(e.Problems) == 0 {
			t.Fatalf("%T %v is no *Error with problems", err, err)
		}
		for _, p := range e.Problems {
			if p.What == "" || p.Fix == "" {
				t.Errorf("a problem says too little: %+v", p)
			}
			if p.Line > bytes.Count(data, []byte("\n"))+1 || p.Line > 0 && p.Column < 1 {
				t.Errorf("the file has no place like %s", p)
			}
			if m := goTypes.FindString(p.What + p.Fix); m != "" && !bytes.Contains(data, []byte(strings.TrimSpace(m))) {
				t.Errorf("the message says %q: %s", m, p)
			}
		}
	})
}
