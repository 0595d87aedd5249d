package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// The commands as a shell sees them: testdata/script, one story a file.
func TestScripts(t *testing.T) {
	bin := filepath.Dir(program(t))
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
			e.Setenv("TMPDIR", e.WorkDir)
			e.Setenv("SSH_CONNECTION", "nobody may pretend here")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exits N COMMAND...: the command ends with exit code N.
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) < 2 {
					ts.Fatalf("usage: exits code command [args...]")
				}
				want, err := strconv.Atoi(args[0])
				ts.Check(err)
				got := exitDone
				if err := ts.Exec(args[1], args[2:]...); err != nil {
					e, ok := err.(*exec.ExitError)
					if !ok {
						ts.Fatalf("%v", err)
					}
					got = e.ExitCode()
				}
				if got != want {
					ts.Fatalf("%s ended with exit code %d, want %d", args[1], got, want)
				}
			},
			// onedocument FILE: the file (or stdout) is one JSON document.
			"onedocument": func(ts *testscript.TestScript, neg bool, args []string) {
				if neg || len(args) != 1 {
					ts.Fatalf("usage: onedocument file")
				}
				text := ts.ReadFile(args[0])
				if err := oneDocument(text); err != nil {
					ts.Fatalf("%s: %v in %q", args[0], err, text)
				}
			},
		},
	})
}

// oneDocument reports why a text is not exactly one JSON document.
func oneDocument(text string) error {
	d := json.NewDecoder(strings.NewReader(text))
	var v any
	if err := d.Decode(&v); err != nil {
		return err
	}
	if d.More() {
		return fmt.Errorf("more than one document")
	}
	return nil
}

// Every client command prints exactly one JSON document on stdout with --json,
// whatever its end, and ends with the exit code that scripts go by.
func TestEveryClientCommandPrintsOneDocument(t *testing.T) {
	p := newPost(t, "").serve()
	p.measured()
	const pass = "25544-20260813T0833Z"
	run := func(code int, want string, args ...string) string {
		t.Helper()
		out, notes, got := p.cli(append(args, "--json")...)
		if got != code {
			t.Errorf("%v: exit code %d, want %d: %s%s", args, got, code, out, notes)
		}
		if err := oneDocument(out); err != nil {
			t.Errorf("%v: %v in %q", args, err, out)
		}
		if !strings.Contains(out, want) {
			t.Errorf("%v: %q is not in %s", args, want, out)
		}
		if code != exitDone && code != exitFailed && notes == "" && args[0] != "health" && args[0] != "antenna" && args[0] != "call" {
			t.Errorf("%v: nothing on stderr", args)
		}
		return out
	}
	run(exitDone, `"verdict":"well"`, "health")
	run(exitDone, `"point_antenna"`, "tools")
	run(exitDone, `"measured"`, "antenna", "show")
	run(exitDone, `"allowed":true`, "antenna", "check", "200", "45")
	run(exitRefused, `"KEEP_OUT"`, "antenna", "check", "180", "20")
	run(exitDone, `"positioned"`, "antenna", "point", "100", "80")
	run(exitRefused, `"refused":true`, "antenna", "point", "180", "20")
	run(exitUsage, `"error"`, "antenna", "point", "400", "20")
	run(exitUsage, `"hint"`, "antenna", "point", "north", "20")
	run(exitDone, `"parked"`, "antenna", "park")
	run(exitDone, `"unwrapped_azimuth_deg"`, "antenna", "confirm-winding")
	run(exitDone, `"transmitter":"inhibited"`, "radio", "show")
	run(exitDone, `"frequency_hz":145900000`, "radio", "tune", "145900000", "--mode", "FM")
	run(exitUsage, `"error"`, "radio", "tune", "5")
	booked := run(exitDone, `"committed"`, "schedule", "add", pass)
	var e struct {
		ID string `json:"scheduled_pass_id"`
	}
	if err := json.Unmarshal([]byte(booked), &e); err != nil {
		t.Fatal(err)
	}
	run(exitDone, e.ID, "schedule", "list")
	run(exitDone, `"plan"`, "schedule", "show", e.ID)
	run(exitUsage, `resource not found`, "schedule", "show", "none")
	run(exitDone, `"cancelled"`, "schedule", "cancel", e.ID, "--reason", "a test")
	run(exitRefused, `"PASS_OVER"`, "schedule", "cancel", e.ID)
	run(exitRefused, `"PASS_UNKNOWN"`, "schedule", "add", "25544-20260813T0900Z")
	run(exitUsage, `pass id`, "schedule", "add", "not-a-pass")
	run(exitDone, `"structuredContent"`, "call", "predict_passes", "norad_id=25544", "hours=12")
	run(exitRefused, `"isError":true`, "call", "predict_passes", "norad_id=5")
	run(exitUsage, `allowed is 1 to 72`, "call", "predict_passes", "norad_id=25544", "hours=200")
	run(exitUsage, `unknown tool`, "call", "launch")
	run(exitUsage, `key=value`, "call", "predict_passes", "norad_id")
	run(exitDone, `"satellites"`, "elements", "list")
	run(exitDone, `"norad_id":25544`, "elements", "show", "ISS")
	run(exitUsage, `no satellite`, "elements", "show", "nope")
	run(exitUsage, `no usable orbital elements`, "elements", "import", p.file("page.txt", page))
	run(exitFailed, `no sources; list them`, "elements", "refresh")
	run(exitDone, `"gsd.pass.cancelled.v1"`, "events")
	run(exitFailed, `no hub`, "hub", "status")
	run(exitDone, `"sent":true`, "stop")
	run(exitRefused, `"HELD_AFTER_STOP"`, "antenna", "point", "100", "80")
	run(1, `"HELD_AFTER_STOP"`, "health")
	run(exitDone, `"resumed"`, "resume")
	run(exitDone, `"reset"`, "reset")
	run(exitDone, `"maintenance"`, "mode", "maintenance", "--reason", "a test")
	run(exitRefused, `"MODE_MAINTENANCE"`, "antenna", "point", "110", "80")
	run(exitDone, `"remote"`, "mode", "remote")
	p.end(t)
	run(exitUnreachable, `"error"`, "health")
	run(exitUnreachable, `station not reachable`, "antenna", "show")
	run(exitUnreachable, `"hint"`, "tools")
}

// The exit codes tell who may not from what may not.
func TestARoleDecidesTheExitCode(t *testing.T) {
	tests := []struct {
		name, access string
		args         []string
		code         int
		says         string
	}{
		{"an observer reads", mannedBy("observer"), []string{"antenna", "show"}, exitDone, ""},
		{"an observer moves nothing", mannedBy("observer"), []string{"antenna", "point", "100", "80"}, exitNotAllowed, "NOT_PERMITTED"},
		{"an observer books nothing", mannedBy("observer"), []string{"schedule", "add", "25544-20260813T0833Z"}, exitNotAllowed, "[access]"},
		{"an observer resumes nothing", mannedBy("observer"), []string{"resume"}, exitNotAllowed, "NOT_PERMITTED"},
		{"an observer stops", mannedBy("observer"), []string{"stop"}, exitDone, ""},
		{"an operator sets no mode", mannedBy("operator"), []string{"mode", "local"}, exitNotAllowed, "supervisor"},
		{"an operator is refused by the gate", mannedBy("operator"), []string{"antenna", "point", "100", "1"}, exitRefused, "ELEVATION"},
		{"an agent resumes nothing", mannedBy("operator") + agentsHere(), []string{"resume"}, exitNotAllowed, "agent"},
		{"an agent sets no mode", mannedBy("operator") + agentsHere(), []string{"mode", "local"}, exitNotAllowed, "agent"},
		{"a stranger reads nothing", strangersOnly, []string{"antenna", "show"}, exitNotAllowed, "[access]"},
		{"a stranger stops nothing", strangersOnly, []string{"stop"}, exitNotAllowed, "[access]"},
		{"a read-only station moves nothing", mannedBy("operator") + "read_only = true\n", []string{"antenna", "point", "100", "80"}, exitNotAllowed, "READ_ONLY"},
	}
	posts := map[string]*post{}
	for _, tt := range tests {
		p := posts[tt.access]
		if p == nil {
			p = newPost(t, onSimulators+tt.access).serve()
			posts[tt.access] = p
			if tt.access != strangersOnly {
				p.measured()
			}
		}
		t.Run(tt.name, func(t *testing.T) {
			_, notes, code := p.with(t).cli(tt.args...)
			if code != tt.code || !strings.Contains(notes, tt.says) {
				t.Errorf("%v: exit code %d, want %d; stderr %q, want %q in it", tt.args, code, tt.code, notes, tt.says)
			}
		})
	}
}

// strangersOnly gives a role to nobody who can run this test.
const strangersOnly = "[access]\noperator = [\"uid:4294967000\"]\n"

// agentsHere makes whoever runs the test an agent.
func agentsHere() string { return fmt.Sprintf("agents = [\"uid:%d\"]\n", os.Getuid()) }

// The demo prints one document, works its pass to the end, loses no event, and
// leaves nothing behind; it needs no network.
// It runs alone: what turns on a busy computer is another test's matter.
func TestTheDemoIsOneDocumentAndLeavesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("half a minute of tracking")
	}
	tmp, home := t.TempDir(), t.TempDir()
	cmd := exec.CommandContext(t.Context(), program(t), "demo", "--json")
	cmd.Dir = home
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "HOME="+home, "XDG_RUNTIME_DIR="+tmp,
		"http_proxy=http://127.0.0.1:9", "https_proxy=http://127.0.0.1:9", "all_proxy=socks5://127.0.0.1:9", "GSD_CONFIG=/nowhere/station.toml")
	begun := time.Now()
	out, notes, code := finish(t, cmd)
	if took := time.Since(begun); code != exitDone || took > time.Minute {
		t.Fatalf("exit code %d after %v: %s", code, took, notes)
	}
	if err := oneDocument(out); err != nil {
		t.Fatal(err)
	}
	var d struct {
		State     string
		Missing   *int `json:"events_missing"`
		Simulated bool
		Events    []struct{ Type string }
		Refused   struct{ Code string }
		Track     []any
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatal(err)
	}
	if d.State != "completed" || d.Missing == nil || *d.Missing != 0 || !d.Simulated || len(d.Events) < 10 || d.Refused.Code == "" || len(d.Track) < 10 {
		t.Errorf("state %s, %v events missing of %d, %d positions, refused %q", d.State, d.Missing, len(d.Events), len(d.Track), d.Refused.Code)
	}
	for _, dir := range []string{tmp, home} {
		left, err := os.ReadDir(dir)
		if err != nil || len(left) > 0 {
			t.Errorf("%s holds %v (%v)", dir, left, err)
		}
	}
}
