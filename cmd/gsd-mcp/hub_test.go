package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/hub"
	"gsd-mcp/internal/hub/hubtest"
)

// A station, its broker and the hub's own check, each a process of its own.
func TestTheHubProvesWhatTheStationSent(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{})
	p := newPost(t, onSimulators+mannedBy("operator")+fmt.Sprintf("[hub]\nbroker = %q\n", b.URL)).serve()
	account := filepath.Join(p.dir, "account")
	verify := func(code int, args ...string) (r hub.FleetReport) {
		t.Helper()
		out, notes, got := command(t, append([]string{"hub", "verify", "--broker", b.URL, "--once", "--settle", "300ms", "--file", account, "--json"}, args...)...)
		if got != code {
			t.Fatalf("hub verify: exit code %d, want %d\n%s%s", got, code, out, notes)
		}
		if err := json.Unmarshal([]byte(out), &r); err != nil {
			t.Fatalf("hub verify: %v in %q", err, out)
		}
		return r
	}
	waits := func() bool {
		var s hub.Status
		p.asks(&s, exitDone, "hub", "status")
		return s.Outbox.Crit.Pending+s.Outbox.Info.Pending > 0
	}
	eventuallyTrue(t, "a session with the broker", soon, func() bool { return p.health().Hub.Hub.State == "connected" })
	if r := verify(exitDone); len(r.Stations) != 1 || r.Stations[0].State != "online" || r.Stations[0].Station != "gs-02" {
		t.Fatalf("report %+v, want gs-02 online", r)
	}

	p.measured()
	p.cli("antenna", "point", "100", "80") // nobody listens meanwhile
	eventuallyTrue(t, "an empty outbox", soon, func() bool { return !waits() })
	r := verify(exitDone)
	var events uint64
	for _, s := range r.Stations[0].Streams {
		events += s.Events
	}
	if events == 0 || len(r.Findings) != 0 {
		t.Fatalf("report %+v, want events and no findings", r)
	}

	out, notes, code := p.cli("hub", "replay", "--stream", "info", "--from", "2", "--to", "3")
	if code != exitDone || !strings.Contains(out, "info 2 to 3") {
		t.Fatalf("hub replay: exit code %d: %s%s", code, out, notes)
	}
	var twice uint64
	eventuallyTrue(t, "what was asked for again", soon, func() bool {
		for _, s := range verify(exitDone).Stations[0].Streams {
			twice += s.Duplicates // of one run: the file does not keep it
		}
		return twice == 2
	})
	for _, args := range [][]string{{"--from", "999999"}, {"--from", "0"}, {"--from", "x"}, {"--stream", "other", "--from", "1"}, {"--from", "3", "--to", "1"}, {}} {
		if out, _, code := p.cli(append([]string{"hub", "replay"}, args...)...); code != exitUsage {
			t.Errorf("hub replay %v: exit code %d, want %d: %s", args, code, exitUsage, out)
		}
	}

	p.cmd.Process.Kill()
	p.cmd.Wait()
	eventuallyTrue(t, "silence", soon, func() bool { return verify(exitDone).Silent == 1 })

	// An account that has lost its beginning proves nothing, and says so.
	account = filepath.Join(p.dir, "another")
	if _, notes, code := command(t, "hub", "verify", "--broker", b.URL, "--forget"); code != exitDone || !strings.Contains(notes, "gsd-hub-verify") {
		t.Fatalf("--forget: exit code %d, %s", code, notes)
	}
	verify(exitDone) // a new session
	p.serve()
	eventuallyTrue(t, "an empty outbox", soon, func() bool { return p.health().Hub.Hub.State == "connected" && !waits() })
	if r := verify(exitFailed, "--from-start"); r.Missing == 0 || r.Complete() {
		t.Errorf("report %+v, want the beginning missing", r)
	}
	p.end(t)
	if out, notes, code := command(t, "hub", "verify", "--broker", "mqtt://127.0.0.1:1", "--once", "--timeout", "300ms", "--json"); code != exitUnreachable || oneDocument(out) != nil || !strings.Contains(notes, "connection_refused") {
		t.Errorf("no broker: exit code %d: %s%s", code, out, notes)
	}
	if out, notes, code := command(t, "hub", "verify", "--broker", "http://x"); code != exitUsage || strings.Contains(notes, "[hub]") {
		t.Errorf("no address: exit code %d: %s%s", code, out, notes)
	}
}

// An event is on the screen at once, because the daemon announces it: without,
// it would come with the next look, eventsLook later.
func TestEventsFollowsWhatHappens(t *testing.T) {
	p := newPost(t, onSimulators+mannedBy("operator")).serve()
	p.measured()
	cmd := exec.CommandContext(t.Context(), program(t), "events", "--follow", "--json", "--socket", p.socket)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	got := make(chan shownEvent, 100)
	go func() {
		defer close(got)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var e shownEvent
			if json.Unmarshal(lines.Bytes(), &e) == nil {
				got <- e
			}
		}
	}()
	seen := map[string]int{}
	await := func(typ string, within time.Duration) {
		t.Helper()
		late := time.After(within)
		for {
			select {
			case e, ok := <-got:
				if !ok {
					t.Fatalf("events ended before %s came", typ)
				}
				if seen[e.ID]++; seen[e.ID] > 1 {
					t.Errorf("event %s %s was shown twice", e.Type, e.ID)
				}
				if e.Type == typ {
					return
				}
			case <-late:
				t.Fatalf("no %s within %v", typ, within)
			}
		}
	}
	await("gsd.station.started.v1", soon)
	if _, notes, code := p.cli("antenna", "check", "100", "80"); code != exitDone {
		t.Fatalf("antenna check: %s", notes)
	}
	time.Sleep(time.Second) // so that the last look is over, and the next far away
	start := time.Now()
	if _, notes, code := p.cli("stop"); code != exitDone {
		t.Fatalf("stop: exit code %d: %s", code, notes)
	}
	await("gsd.station.stopped.v1", eventsLook/2)
	t.Logf("shown %v after the command began", time.Since(start).Round(time.Millisecond))
}
