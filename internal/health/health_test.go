package health

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"golang.org/x/sys/unix"

	"gsd-mcp/internal/clock"
)

// tree unpacks a computer's files into a folder.
func tree(t *testing.T, name string) string {
	t.Helper()
	a, err := txtar.ParseFile(filepath.Join("testdata", name+".txtar"))
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := txtar.Write(a, root); err != nil {
		t.Fatal(err)
	}
	return root
}

func codes(findings []Finding) string {
	var s []string
	for _, f := range findings {
		s = append(s, f.Code)
	}
	return strings.Join(s, " ")
}

func TestBoards(t *testing.T) {
	tests := []struct {
		name    string
		codes   string
		verdict Verdict
		low     bool
		power   string
	}{
		{"pi4-well", "", VerdictWell, false, Measured},
		{"pi4-undervoltage", "UNDER_VOLTAGE THROTTLED", VerdictUnsafe, true, Measured},
		{"pi3-was-low", "UNDER_VOLTAGE_PAST", VerdictDegraded, false, Measured},
		{"pi4-alarm-only", "UNDER_VOLTAGE", VerdictUnsafe, true, Measured},
		{"pi4-sensor-silent", "POWER_UNREADABLE HEAT_UNREADABLE CARD_UNREADABLE", VerdictUnsafe, true, Suspect},
		{"pi4-hot-and-failing", "THROTTLED HOT CARD_ERRORS", VerdictUnsafe, false, Measured},
		{"pc", "", VerdictWell, false, NotFitted},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := ReadBoard(tree(t, tt.name))
			got := b.Findings()
			if codes(got) != tt.codes || Assess(got) != tt.verdict {
				t.Errorf("findings %q, verdict %s; want %q, %s (board %+v)", codes(got), Assess(got), tt.codes, tt.verdict, b)
			}
			if why, low := b.Power.Low(); low != tt.low || low && why == "" || b.Power.Presence != tt.power {
				t.Errorf("Low = %q, %v, presence %s; want %v, %s", why, low, b.Power.Presence, tt.low, tt.power)
			}
			for _, f := range got {
				if f.Title == "" || f.Cause == "" || f.NextStep == "" {
					t.Errorf("%s does not say everything: %+v", f.Code, f)
				}
			}
		})
	}
}

func TestTheBoardNamesItsModelAndTheWorstDisk(t *testing.T) {
	if got := ReadBoard(tree(t, "pi4-well")).Model; got != "Raspberry Pi 4 Model B Rev 1.4" {
		t.Errorf("model %q", got)
	}
	if c := ReadBoard(tree(t, "pi4-hot-and-failing")).Card; c.Errors != 17 || c.Device != "mmcblk0p3" {
		t.Errorf("card %+v, want 17 errors on mmcblk0p3", c)
	}
}

func TestThisComputerCanBeRead(t *testing.T) {
	for _, f := range ReadBoard("/").Findings() {
		t.Logf("%s: %s", f.Code, f.Cause)
	}
}

func TestDisk(t *testing.T) {
	dir := t.TempDir()
	d := ReadDisk(dir)
	if _, ok := d.Durable(); !ok || d.TotalBytes <= 0 || d.FreeBytes < 0 {
		t.Errorf("a good directory reads %+v", d)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".probe-*")); len(left) > 0 {
		t.Errorf("the probe left %v", left)
	}
	if d := ReadDisk(filepath.Join(dir, "missing")); codes(d.Findings()) != "STATE_NOT_WRITABLE" {
		t.Errorf("a missing directory: %+v", d)
	}
	// sysfs takes no new files, whoever asks: the probe must say so.
	if d := ReadDisk("/sys"); codes(d.Findings()) == "" {
		t.Errorf("/sys can be written: %+v", d)
	}
}

func TestDiskFindings(t *testing.T) {
	good := Disk{Path: "/s", FreeBytes: 1 << 30, TotalBytes: 1 << 32, FreeInodes: 1e6, Writable: true}
	tests := []struct {
		name    string
		change  func(*Disk)
		codes   string
		verdict Verdict
	}{
		{"good", func(d *Disk) {}, "", VerdictWell},
		{"at 50 MB", func(d *Disk) { d.FreeBytes = 50 << 20 }, "", VerdictWell},
		{"under 50 MB", func(d *Disk) { d.FreeBytes = 50<<20 - 1 }, "DISK_LOW", VerdictDegraded},
		{"full", func(d *Disk) { d.FreeBytes = 0 }, "DISK_FULL", VerdictUnsafe},
		{"no inodes", func(d *Disk) { d.FreeInodes = 0 }, "INODES_LOW", VerdictDegraded},
		{"inodes uncounted", func(d *Disk) { d.FreeInodes = -1 }, "", VerdictWell},
		{"read-only", func(d *Disk) { d.ReadOnly = true }, "STATE_READ_ONLY", VerdictUnsafe},
		{"write fails", func(d *Disk) { d.Writable, d.Why = false, "input/output error" }, "STATE_NOT_WRITABLE", VerdictUnsafe},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := good
			tt.change(&d)
			if got := d.Findings(); codes(got) != tt.codes || Assess(got) != tt.verdict {
				t.Errorf("%+v: %q, %s; want %q, %s", d, codes(got), Assess(got), tt.codes, tt.verdict)
			}
		})
	}
}

func TestStatfsNumbers(t *testing.T) {
	var d Disk
	fill(&d, &unix.Statfs_t{Bsize: 4096, Blocks: 1000, Bavail: 10, Files: 0, Flags: unix.ST_RDONLY})
	want := Disk{FreeBytes: 40960, TotalBytes: 4096000, FreeInodes: -1, ReadOnly: true}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Error(diff)
	}
}

func TestAssessIsTheWorst(t *testing.T) {
	tests := []struct {
		severities []string
		want       Verdict
		exit       int
	}{
		{nil, VerdictWell, 0},
		{[]string{Info, Info}, VerdictWell, 0},
		{[]string{Info, Warning}, VerdictDegraded, 1},
		{[]string{Warning, Unsafe, Info}, VerdictUnsafe, 2},
		{[]string{Down, Unsafe}, VerdictDown, 2},
		{[]string{"no such severity"}, VerdictUnsafe, 2},
	}
	for _, tt := range tests {
		var f []Finding
		for _, s := range tt.severities {
			f = append(f, Finding{Severity: s})
		}
		if got := Assess(f); got != tt.want || got.ExitCode() != tt.exit {
			t.Errorf("Assess(%v) = %s (exit %d), want %s (%d)", tt.severities, got, got.ExitCode(), tt.want, tt.exit)
		}
	}
}

func TestMemoryAgesFindingsAndSortsThem(t *testing.T) {
	t0 := time.Date(2026, 11, 30, 3, 0, 0, 0, time.UTC)
	var m Memory
	m.Stamp([]Finding{{Code: "HOT", Severity: Warning}}, t0)
	got := m.Stamp([]Finding{{Code: "DISK_LOW", Severity: Warning}, {Code: "HOT", Severity: Warning}, {Code: "UNDER_VOLTAGE", Severity: Unsafe}}, t0.Add(90*time.Second))
	if codes(got) != "UNDER_VOLTAGE HOT DISK_LOW" {
		t.Fatalf("order %q", codes(got))
	}
	if got[1].AgeS != 90 || !got[1].Since.Equal(t0) || got[2].AgeS != 0 {
		t.Errorf("ages %+v", got)
	}
	m.Stamp(nil, t0.Add(2*time.Minute))
	if got := m.Stamp([]Finding{{Code: "HOT", Severity: Warning}}, t0.Add(3*time.Minute)); got[0].AgeS != 0 {
		t.Errorf("a finding that went away and came back is %v s old, want 0", got[0].AgeS)
	}
	// A clock that steps back must not make a finding older than it is, or younger than nothing.
	if got := m.Stamp([]Finding{{Code: "HOT", Severity: Warning}}, t0); got[0].AgeS != 0 {
		t.Errorf("after a step back the age is %v", got[0].AgeS)
	}
	early := t0.Add(-time.Hour)
	if got := m.Stamp([]Finding{{Code: "HOT", Severity: Warning, Since: early}}, t0); got[0].AgeS != 3600 {
		t.Errorf("a finding that knows its start is %v s old, want 3600", got[0].AgeS)
	}
}

func TestJSONIsTheContract(t *testing.T) {
	r := Report{Verdict: VerdictDegraded, Findings: []Finding{{Code: "HOT", Severity: Warning, Title: "t", Cause: "c", NextStep: "n", Since: time.Unix(0, 0).UTC(), AgeS: 1.5}}}
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"verdict":"degraded","findings":[{"code":"HOT","severity":"warning","title":"t","cause":"c","next_step":"n","since":"1970-01-01T00:00:00Z","age_s":1.5}]}`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	if b, _ := json.Marshal(Report{Verdict: VerdictWell}); string(b) != `{"verdict":"well","findings":[]}` {
		t.Errorf("empty: %s", b)
	}
}

func TestClockFindings(t *testing.T) {
	tests := []struct {
		trust clock.Trust
		want  string
	}{
		{clock.Trust{State: clock.Synced, Good: true}, ""},
		{clock.Trust{State: clock.SimulatedNow, Good: true}, ""},
		{clock.Trust{State: clock.Holdover, Good: true, Warn: true}, "CLOCK_DRIFTING"},
		{clock.Trust{State: clock.Unsynced, Warn: true}, "CLOCK_UNTRUSTED"},
		{clock.Trust{State: clock.Unknown}, "CLOCK_UNTRUSTED"},
		{clock.Trust{State: clock.Unsynced, Good: true, Warn: true, OverrideBy: "ann"}, "CLOCK_OVERRIDDEN"},
	}
	for _, tt := range tests {
		if got := codes(ClockFindings(tt.trust)); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.trust, got, tt.want)
		}
	}
}

func TestWind(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	tests := []struct {
		text string
		mps  float64
		bad  string // must be in the error; empty: good
	}{
		{`{"time":"2026-11-30T11:59:50Z","wind_mps":7.5}`, 7.5, ""},
		{`{"time":"2026-11-30T12:59:50+01:00","wind_mps":0,"station":"roof"}`, 0, ""},
		{`{"time":"2026-11-30T12:00:06Z","wind_mps":1}`, 0, "ahead"},
		{`{"wind_mps":1}`, 0, "it is not"},
		{`{"time":"2026-11-30T12:00:00Z"}`, 0, "it is not"},
		{`{"time":"2026-11-30T12:00:00Z","wind_mps":"7"}`, 0, "it is not"},
		{`{"time":"2026-11-30T12:00:00Z","wind_mps":-1}`, 0, "no wind"},
		{`{"time":"2026-11-30T12:00:00Z","wind_mps":1e9}`, 0, "no wind"},
		{``, 0, "it is not"},
		{`{"time":"2026-11-30T12:00:00Z","wind_mps":7.5`, 0, "it is not"},
		{strings.Repeat(" ", 5000), 0, "more than"},
	}
	for _, tt := range tests {
		path := filepath.Join(t.TempDir(), "wind.json")
		if err := os.WriteFile(path, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		w, err := ReadWind(path, now)
		switch {
		case tt.bad == "" && (err != nil || w.WindMps != tt.mps):
			t.Errorf("%q: %v, %v; want %v", tt.text, w, err, tt.mps)
		case tt.bad != "" && (err == nil || !strings.Contains(err.Error(), tt.bad)):
			t.Errorf("%q: %v, want an error with %q", tt.text, err, tt.bad)
		}
	}
	if _, err := ReadWind(filepath.Join(t.TempDir(), "none"), now); err == nil {
		t.Error("a missing file was read")
	}
}

func FuzzSmallFilesNeverPanic(f *testing.F) {
	for _, s := range []string{"0", "50005", "0x50005\n", "-1", "99999999999999999999", "nan", "\x00", ""} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, s string) {
		root := t.TempDir()
		for _, p := range []string{"sys/class/thermal/thermal_zone0/temp", "sys/fs/ext4/x/errors_count", "sys/devices/platform/soc/soc:firmware/get_throttled", "sys/class/hwmon/hwmon0/in0_lcrit_alarm"} {
			path := filepath.Join(root, p)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(root, "sys/class/hwmon/hwmon0/name"), []byte("rpi_volt\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		b := ReadBoard(root)
		if b.Card.Errors < 0 || math.IsNaN(b.Heat.TempC) {
			t.Errorf("%q gave %+v", s, b)
		}
		if w, err := parseWind([]byte(s), now); err == nil && !(w.WindMps >= 0 && w.WindMps <= maxWindMps) {
			t.Errorf("%q is a wind of %v", s, w.WindMps)
		}
	})
}
