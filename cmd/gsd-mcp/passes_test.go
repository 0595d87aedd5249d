package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"gsd-mcp/internal/elements/catalogue"
	"gsd-mcp/internal/state"
)

const orbitsDir = "../../testdata/orbits"

// passesRun runs `gsd-mcp passes args...` without a configuration and gives its
// output, its notes and its exit code.
func passesRun(t *testing.T, args ...string) (out, notes string, code int) {
	t.Helper()
	t.Setenv("GSD_CONFIG", "")
	if os.Getenv("GSD_STATE_DIR") == "" {
		t.Setenv("GSD_STATE_DIR", t.TempDir())
	}
	var o, e bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(append([]string{"passes"}, args...))
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	cmd.SetIn(strings.NewReader(""))
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		var x *exitError
		if !errors.As(err, &x) {
			x = &exitError{exitUsage, err, ""}
		}
		code = x.code
		e.WriteString("error: " + x.Error() + "\nhint: " + x.hint + "\n")
	}
	return o.String(), e.String(), code
}

// londonDay are the arguments for the reference set over London on the first
// day of window W1.
func londonDay(more ...string) []string {
	return append([]string{"--elements", filepath.Join(orbitsDir, "tle", "all.3le"), "--lat", "51.5074", "--lon", "-0.1278", "--alt", "25",
		"--from", "2026-08-13T00:00:00Z", "--to", "2026-08-15"}, more...)
}

// passesDoc is what `passes --json` promises (contract, section 2).
type passesDoc struct {
	Station struct {
		LatitudeDeg  float64 `json:"latitude_deg"`
		LongitudeDeg float64 `json:"longitude_deg"`
		Simulated    bool    `json:"simulated"`
	} `json:"station"`
	Passes []struct {
		PassID          string    `json:"pass_id"`
		Satellite       string    `json:"satellite"`
		NoradID         int       `json:"norad_id"`
		ElementsAgeDays *float64  `json:"elements_age_days"`
		AOS             passEvent `json:"aos"`
		TCA             passEvent `json:"tca"`
		LOS             passEvent `json:"los"`
		MaxElevationDeg float64   `json:"max_elevation_deg"`
		DurationS       float64   `json:"duration_s"`
		InProgress      *bool     `json:"in_progress_at_start"`
		CutAtEnd        *bool     `json:"cut_at_end"`
		Warnings        []string  `json:"warnings"`
	} `json:"passes"`
	None []struct {
		NoradID int    `json:"norad_id"`
		Why     string `json:"why"`
	} `json:"none"`
}

type passEvent struct {
	Time         string   `json:"time"`
	AzimuthDeg   *float64 `json:"azimuth_deg"`
	ElevationDeg *float64 `json:"elevation_deg"`
}

// TestPassesAgreesWithSkyfieldFromTheShell is the bound of the first stage: no
// pass of the reference missed or invented, 99 % of AOS and LOS within 50 ms.
func TestPassesAgreesWithSkyfieldFromTheShell(t *testing.T) {
	out, notes, code := passesRun(t, londonDay("--json")...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, notes)
	}
	var doc passesDoc
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Errorf("more than one document on stdout: %v", err)
	}
	f, err := os.Open(filepath.Join(orbitsDir, "passes.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	col := map[string]int{}
	for i, name := range rows[0] {
		col[name] = i
	}
	want := map[string][]string{} // satellite and AOS second
	for _, r := range rows[1:] {
		if r[col["station"]] == "london" && r[col["window"]] == "W1" && r[col["mask_deg"]] == "0" && !strings.HasPrefix(r[0], "STARLINK") {
			want[r[0]+r[col["aos_utc"]][:16]] = r
		}
	}
	total, late := len(want), 0
	for _, p := range doc.Passes {
		if strings.HasPrefix(p.Satellite, "STARLINK") {
			continue
		}
		var r []string
		at, err := time.Parse("2006-01-02T15:04:05.000Z", p.AOS.Time)
		if err != nil {
			t.Fatalf("%s: AOS %q is not UTC to the millisecond", p.PassID, p.AOS.Time)
		}
		for _, d := range []time.Duration{0, -time.Second, time.Second} {
			if r = want[p.Satellite+at.Add(d).Format("2006-01-02T15:04")]; r != nil {
				delete(want, p.Satellite+at.Add(d).Format("2006-01-02T15:04"))
				break
			}
		}
		if r == nil {
			if p.MaxElevationDeg > 0.02 {
				t.Errorf("invented %s: %+v", p.PassID, p.AOS)
			}
			continue
		}
		for _, e := range []struct{ got, want string }{{p.AOS.Time, r[col["aos_utc"]]}, {p.LOS.Time, r[col["los_utc"]]}} {
			a, err1 := time.Parse(time.RFC3339Nano, e.got)
			b, err2 := time.Parse(time.RFC3339Nano, e.want)
			if err1 != nil || err2 != nil || a.Sub(b).Abs() > 50*time.Millisecond {
				late++
			}
		}
		if p.ElementsAgeDays == nil || p.InProgress == nil || p.CutAtEnd == nil || p.Warnings == nil || p.TCA.AzimuthDeg == nil || p.DurationS <= 0 {
			t.Errorf("%s lacks a field: %+v", p.PassID, p)
		}
	}
	for k, r := range want {
		if el, _ := strconv.ParseFloat(r[col["max_el_deg"]], 64); el > 0.02 {
			t.Errorf("missed %s", k)
		}
	}
	if total < 100 || late*100 > total*2 {
		t.Errorf("%d of %d edges off by over 50 ms", late, 2*total)
	}
	why := map[int]string{}
	for _, n := range doc.None {
		why[n.NoradID] = n.Why
	}
	if why[42738] != "never rises" || why[46129] == "" && len(why) < 3 {
		t.Errorf("none: %v", why)
	}
}

func TestPassesTableFitsEightyColumns(t *testing.T) {
	for _, args := range [][]string{londonDay(), londonDay("iss", "--plot"), londonDay("--mask", filepath.Join(orbitsDir, "horizon_mask.csv"), "iss", "--plot"), {}} {
		out, _, code := passesRun(t, args...)
		if code != 0 || len(out) < 50 {
			t.Fatalf("%v: exit %d, %q", args, code, out)
		}
		for _, line := range strings.Split(out, "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%v: %d columns: %q", args, n, line)
			}
		}
	}
}

func TestPassesSaysWhyThereAreNone(t *testing.T) {
	tests := []struct {
		name string
		args []string
		want string
		code int
	}{
		{"unknown number", londonDay("99999"), "no pass of 99999 (99999): not in the elements", 0},
		{"unknown name", londonDay("sputnik"), `no satellite called "sputnik"`, exitUsage},
		{"never rises", londonDay("qzs"), "never rises", 0},
		{"too low", londonDay("iss", "--min-elevation", "89.9"), "below min elevation", 0},
		{"decayed", []string{"starlink-4189", "--elements", filepath.Join(orbitsDir, "tle", "all.3le"), "--lat", "0", "--lon", "0", "--from", "2026-09-01"}, "decayed", 0},
		{"old elements warn", []string{"hst", "--elements", filepath.Join(orbitsDir, "tle", "hst.tle"), "--lat", "0", "--lon", "0", "--from", "2026-10-01"}, "days old, limit", 0},
		{"past windows warn", londonDay("iss"), "the window is in the past", 0},
		{"SGP4 fails", []string{"--elements", filepath.Join(orbitsDir, "bad_tles", "33_vallado_negative_error.tle"), "--lat", "0", "--lon", "0"}, "cannot be propagated", 0},
		{"no elements", []string{"--elements", filepath.Join(orbitsDir, "bad_tles", "27_html_error.html"), "--lat", "0", "--lon", "0"}, "not orbital data (HTML)", exitUsage},
		{"no file", []string{"--elements", "missing.tle", "--lat", "0", "--lon", "0"}, "missing.tle", exitUsage},
		{"latitude", londonDay("--lat", "91"), "latitude 91° is outside", exitUsage},
		{"not a number", londonDay("--lat", "nan"), "latitude", exitUsage},
		{"one coordinate", []string{"--lat", "1"}, "lon", exitUsage},
		{"window backwards", londonDay("--to", "2026-08-01"), "not after its start", exitUsage},
		{"bad time", londonDay("--from", "yesterday"), `"yesterday" is not a time`, exitUsage},
		{"hours", []string{"--hours", "nan"}, "--hours NaN is outside", exitUsage},
		{"two formats", londonDay("--json", "--csv"), "none of the others", exitUsage},
		{"bad mask", londonDay("--mask", filepath.Join(orbitsDir, "sun.csv")), "mask", exitUsage},
		{"horizon", londonDay("--horizon", "nan"), "horizon", exitUsage},
		{"simulated site is told", []string{"iss", "--from", "2026-08-12"}, "site of the simulated station", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, notes, code := passesRun(t, tt.args...)
			if code != tt.code || !strings.Contains(notes, tt.want) {
				t.Errorf("exit %d, notes %q, want %d and %q", code, notes, tt.code, tt.want)
			}
			if code != 0 && out != "" {
				t.Errorf("wrote %q before it failed", out)
			}
		})
	}
}

func TestPassesCSVAndCalendarAgreeWithJSON(t *testing.T) {
	out, _, _ := passesRun(t, londonDay("--csv")...)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	if err != nil || len(rows) < 100 || len(rows[0]) != len(csvHeading) {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	out, _, _ = passesRun(t, londonDay("iss", "--csv")...)
	if rows, err = csv.NewReader(strings.NewReader(out)).ReadAll(); err != nil || len(rows) != 13 {
		t.Fatalf("%d rows, %v, want 13", len(rows), err)
	}
	if rows[1][0] != "25544-20260813T0521Z" || rows[1][3] != "2026-08-13T05:17:56.698Z" {
		t.Errorf("first row %v", rows[1])
	}
	if el, _ := strconv.ParseFloat(rows[1][8], 64); math.Abs(el-3.951) > 0.001 {
		t.Errorf("highest elevation %v, want 3.951", el)
	}
	ics, _, _ := passesRun(t, londonDay("iss", "--ics")...)
	if n := strings.Count(ics, "BEGIN:VEVENT"); n != 12 {
		t.Errorf("%d events in the calendar, want 12", n)
	}
	if !strings.HasPrefix(ics, "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n") || !strings.HasSuffix(ics, "END:VCALENDAR\r\n") || !strings.Contains(ics, "UID:25544-20260813T0521Z@gsd-mcp\r\n") || !strings.Contains(ics, "SUMMARY:ISS (ZARYA)\\, max 4°\r\n") {
		t.Errorf("calendar:\n%.600s", ics)
	}
	for _, line := range strings.Split(ics, "\r\n") {
		if len(line) > 75 || strings.Contains(line, "\n") {
			t.Errorf("calendar line of %d octets: %q", len(line), line)
		}
	}
}

func TestPassesReadsEveryFormatAlike(t *testing.T) {
	var first string
	for _, name := range []string{"gp.json", "gp.csv", "gp.xml", "gp.kvn", "spacetrack_strings.json"} {
		out, notes, code := passesRun(t, "--elements", filepath.Join(orbitsDir, "omm", name), "--lat", "51.5074", "--lon", "-0.1278", "--from", "2026-08-13", "--csv")
		if code != 0 || strings.Count(out, "\n") < 30 {
			t.Fatalf("%s: exit %d, %s, %d rows", name, code, notes, strings.Count(out, "\n"))
		}
		if first == "" {
			first = out
		}
		if out != first {
			t.Errorf("%s gives other passes than the first format", name)
		}
	}
	if !strings.Contains(first, "\n123456789-") {
		t.Error("the satellite with a number of nine digits has no pass")
	}
}

func TestPassesDrawsTheSky(t *testing.T) {
	file := filepath.Join(t.TempDir(), "sky.svg")
	out, notes, code := passesRun(t, londonDay("iss", "--plot", "--mask", filepath.Join(orbitsDir, "horizon_mask.csv"), "--svg", file)...)
	if code != 0 || !strings.Contains(notes, "wrote "+file) {
		t.Fatalf("exit %d: %s", code, notes)
	}
	for _, want := range []string{" N\n", "S", "W", "E", "rise", "set", "●", "05:21:00", "☼", "25544-20260813T0521Z", "Sun at azimuth"} {
		if !strings.Contains(out, want) {
			t.Errorf("the plot has no %q:\n%s", want, out)
		}
	}
	// The pass rises in the south and sets in the east: its end is right of and
	// above its beginning.
	_, plot, _ := strings.Cut(out, " N\n")
	where := func(text string) (row, col int) {
		before, _, ok := strings.Cut(plot, text)
		if !ok {
			return -1, -1
		}
		return strings.Count(before, "\n"), utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	}
	riseRow, riseCol := where("rise")
	setRow, setCol := where("set")
	if setRow < 0 || riseRow < 0 || setRow >= riseRow || setCol <= riseCol {
		t.Errorf("rise at row %d column %d, set at row %d column %d", riseRow, riseCol, setRow, setCol)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(bytes.NewReader(data))
	elements := map[string]int{}
	for {
		tok, err := dec.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("the drawing is no XML: %v", err)
		}
		if s, ok := tok.(xml.StartElement); ok {
			elements[s.Name.Local]++
		}
	}
	if elements["path"] < 3 || elements["circle"] < 6 || elements["text"] < 10 || elements["script"] > 0 {
		t.Errorf("the drawing has %v", elements)
	}
}

func TestPassesUsesTheStationsOwnElements(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("GSD_STATE_DIR", dir)
	d, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := catalogue.Open(catalogue.Options{Store: d, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(orbitsDir, "omm", "gp.json"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Import(t.Context(), "gp.json", data); err != nil {
		t.Fatal(err)
	}
	// The daemon holds its lock meanwhile.
	out, notes, code := passesRun(t, "123456789", "--from", "2026-08-13", "--csv")
	if code != 0 || !strings.Contains(out, "\n123456789-2026081") {
		t.Errorf("exit %d, %s\n%s", code, notes, out)
	}
	d.Close()
	if err := os.WriteFile(filepath.Join(dir, catalogue.FileName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, notes, code = passesRun(t, "25544", "--from", "2026-08-13", "--csv")
	if code != 0 || !strings.Contains(notes, "cannot be used") || !strings.Contains(out, "\n25544-2026081") {
		t.Errorf("with a torn catalogue: exit %d, %s\n%s", code, notes, out)
	}
}
