package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// runSim runs `gsd-mcp sim args...` until the returned function is called,
// which gives the command's error. It returns once the device is ready.
func runSim(t *testing.T, args ...string) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	cmd := newRoot()
	cmd.SetArgs(append([]string{"sim"}, args...))
	cmd.SetOut(in)
	ended := make(chan error, 1)
	go func() { err := cmd.ExecuteContext(ctx); in.Close(); ended <- err }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready /") {
		cancel()
		t.Fatalf("first line %q, %v; command: %v", line, err, <-ended)
	}
	return func() error { cancel(); return <-ended }
}

func TestSimRotatorMakesItsLinkTellsTheTruthAndCleansUp(t *testing.T) {
	dir := t.TempDir()
	link, truth := filepath.Join(dir, "rotator"), filepath.Join(dir, "truth.jsonl")
	stop := runSim(t, "rotator", "--protocol", "easycomm2", "--link", link, "--truth", truth,
		"--sim-start", "2026-11-30T03:14:00Z", "--sim-rate", "20")
	port, err := os.OpenFile(link, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer port.Close()
	if _, err := port.WriteString("AZ90.0 EL30.0\n"); err != nil {
		t.Fatal(err)
	}
	var last rotatorTruth
	lines := 0
	for end := time.Now().Add(10 * time.Second); last.AzDeg != 90 || last.ElDeg != 30; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the last of %d lines of truth is %+v, want 90/30", lines, last)
		}
		b, err := os.ReadFile(truth)
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Split(strings.TrimSuffix(string(b), "\n"), "\n")
		lines = len(all)
		if all[lines-1] != "" {
			if err := json.Unmarshal([]byte(all[lines-1]), &last); err != nil {
				t.Fatalf("%q: %v", all[lines-1], err)
			}
		}
	}
	at, err := time.Parse(time.RFC3339, last.Time)
	start := time.Date(2026, 11, 30, 3, 14, 0, 0, time.UTC)
	if err != nil || at.Before(start.Add(15*time.Second)) || at.After(start.Add(5*time.Minute)) {
		t.Errorf("time %q of the arrival: %v; want at least 15 s after the start", last.Time, err)
	}
	if err := stop(); err != nil {
		t.Errorf("ended with %v", err)
	}
	if _, err := os.Lstat(link); !os.IsNotExist(err) {
		t.Errorf("the link is still there: %v", err)
	}
}

func TestSimRefusesWhatItCannotDo(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"rotator --protocol easycomm2 --link " + plain, "not a link"},
		{"rotator --protocol easycom2 --link " + plain, "choose one of easycomm"},
		{"rotator --protocol easycomm2 --fault toothache --link " + plain, "toothache"},
		{"rotator --protocol easycomm2 --sim-rate 21 --link " + plain, "1..20"},
		{"rotator --protocol easycomm2 --sim-rate NaN --link " + plain, "1..20"},
		{"rotator --protocol easycomm2 --sim-start yesterday --link " + plain, "--sim-start"},
		{"rotator --protocol easycomm2 --azimuth 451 --link " + plain, "0..450"},
		{"rotator --protocol easycomm2 --elevation NaN --link " + plain, "0..180"},
		{"rotator --protocol easycomm2", "link"},
		{"rotator --protocol easycomm2 --link /nowhere/rotator", "/nowhere"},
	} {
		cmd := newRoot()
		cmd.SetArgs(append([]string{"sim"}, strings.Fields(tt.args)...))
		cmd.SetOut(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("sim %s: %v, want an error about %q", tt.args, err, tt.want)
		}
	}
	if b, _ := os.ReadFile(plain); string(b) != "precious" {
		t.Error("a file was overwritten")
	}
}
