package event

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/state"
)

func open(t *testing.T, dir string) *state.Outbox {
	t.Helper()
	box, _, err := state.OpenOutbox(dir, state.OutboxOptions{KeepFree: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { box.Close() })
	return box
}

func recv(t *testing.T, c <-chan Event) Event {
	t.Helper()
	select {
	case e := <-c:
		return e
	case <-time.After(10 * time.Second):
		t.Fatal("no event within 10 s")
	}
	return Event{}
}

func TestCritEventIsInTheJournalWhenEmitReturns(t *testing.T) {
	box := open(t, t.TempDir())
	at := time.Date(2026, 11, 30, 14, 5, 12, 345678901, time.UTC)
	clk, err := clock.Simulated(at, time.Now().Add(time.Hour), 1) // an hour before its anchor
	if err != nil {
		t.Fatal(err)
	}
	bus := NewBus(Options{Station: "gs-01", Simulated: true, BootID: "b7e1c0de", Clock: clk, Crit: box.Crit, Info: box.Info,
		Uptime: func() time.Duration { return 83422917 * time.Millisecond }})
	who := Author{Kind: "agent", UID: 1004, User: "copilot", Client: "test", Session: "s1", Request: "7"}
	ev, err := bus.Emit(t.Context(), About{Subject: "pass/25544-20261130T1405Z", Correlation: "pass-25544-20261130T1405Z",
		Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", Author: &who},
		PassAOS{PassRef: PassRef{PassID: "25544-20261130T1405Z", NoradID: 25544, Satellite: "ISS <ZARYA>"}, Look: Look{AzimuthDeg: 213.4, ElevationDeg: 0.1}})
	if err != nil {
		t.Fatal(err)
	}
	recs, err := box.Crit.Read(0, 10)
	if err != nil || len(recs) != 1 || recs[0].Seq != 1 {
		t.Fatalf("journal has %v, %v; want record 1", recs, err)
	}
	var m map[string]any
	if err := json.Unmarshal(recs[0].Data, &m); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"specversion": "1.0", "source": "/gsd/gs-01/crit", "type": "gsd.pass.aos.v1", "subject": "pass/25544-20261130T1405Z",
		"datacontenttype": "application/json", "dataschema": "urn:gsd:schema:pass.aos:1.0",
		"sequence": "00000000000000000001", "epoch": box.Crit.Epoch(), "bootid": "b7e1c0de", "uptimems": "83422917",
		"timequality": "simulated", "severitytext": "INFO", "severitynumber": 9.0, "simulated": true,
		"correlationid": "pass-25544-20261130T1405Z", "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	}
	for k, v := range want {
		if m[k] != v {
			t.Errorf("%s = %v, want %v", k, m[k], v)
		}
	}
	for k := range m {
		if !regexp.MustCompile(`^[a-z0-9]{1,20}$`).MatchString(k) {
			t.Errorf("attribute %q is not a CloudEvents name", k)
		}
	}
	for _, k := range []string{"time", "recordedtime"} {
		if !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`).MatchString(fmt.Sprint(m[k])) {
			t.Errorf("%s = %v, want RFC 3339 in UTC to the millisecond", k, m[k])
		}
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`).MatchString(ev.ID) || m["id"] != ev.ID {
		t.Errorf("id = %v, Emit said %s; want the same UUIDv7", m["id"], ev.ID)
	}
	by := m["data"].(map[string]any)["created_by"].(map[string]any)
	if by["kind"] != "agent" || by["uid"] != 1004.0 || by["user"] != "copilot" {
		t.Errorf("created_by = %v, want the agent", by)
	}
	if !strings.Contains(string(recs[0].Data), "ISS <ZARYA>") {
		t.Errorf("the satellite's name was changed: %s", recs[0].Data)
	}
}

func TestInfoEventIsAcceptedAtOnceAndHandedOutWithItsNumber(t *testing.T) {
	box := open(t, t.TempDir())
	bus := NewBus(Options{Station: "gs-01", Crit: box.Crit, Info: box.Info})
	sub, end := bus.Subscribe(4)
	defer end()
	ev, err := bus.Emit(t.Context(), About{}, PassTCA{})
	if err != nil || ev.Sequence != "" {
		t.Fatalf("Emit = %q, %v; want acceptance without a number", ev.Sequence, err)
	}
	got := recv(t, sub)
	if got.ID != ev.ID || got.Sequence != "00000000000000000001" || got.Source != "/gsd/gs-01/info" {
		t.Errorf("handed out %+v, want id %s with sequence 1", got, ev.ID)
	}
}

// A full disk or a dead journal must become a refusal, not a lost event.
func TestCritEventThatCannotBeWrittenIsAnErrorAndReachesNobody(t *testing.T) {
	box := open(t, t.TempDir())
	bus := NewBus(Options{Station: "gs-01", Crit: box.Crit, Info: box.Info})
	sub, end := bus.Subscribe(4)
	defer end()
	box.Crit.Close()
	if _, err := bus.Emit(t.Context(), About{}, PassAOS{}); !errors.Is(err, state.ErrClosed) {
		t.Errorf("Emit on a closed journal = %v, want ErrClosed", err)
	}
	select {
	case e := <-sub:
		t.Errorf("subscriber got %s, which is in no journal", e.Type)
	default:
	}
	if _, failed := bus.Counts(); failed != 1 {
		t.Errorf("failed = %d, want 1", failed)
	}
}

func TestSlowSubscriberLosesEventsAndNobodyWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // a bubble ends with an error if anything waits
		bus := NewBus(Options{Station: "gs-01", Simulated: true})
		slow, endSlow := bus.Subscribe(2)
		fast, endFast := bus.Subscribe(100)
		for range 50 {
			if _, err := bus.Emit(t.Context(), About{}, PassAOS{}); err != nil {
				t.Fatal(err)
			}
		}
		endSlow()
		endFast()
		n := func(c <-chan Event) (n int) {
			for range c {
				n++
			}
			return n
		}
		if s, f := n(slow), n(fast); s != 2 || f != 50 {
			t.Errorf("slow subscriber got %d, fast one %d; want 2 and 50", s, f)
		}
		if dropped, _ := bus.Counts(); dropped != 48 {
			t.Errorf("dropped = %d, want 48", dropped)
		}
	})
}

func TestManyEmittersGetContiguousNumbersInHandOutOrder(t *testing.T) {
	box := open(t, t.TempDir())
	bus := NewBus(Options{Station: "gs-01", Crit: box.Crit, Info: box.Info})
	sub, end := bus.Subscribe(1000)
	defer end()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 10 {
				if _, err := bus.Emit(context.Background(), About{}, AlarmRaised{Code: "X"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 200 {
		if e := recv(t, sub); e.Sequence != fmt.Sprintf("%020d", i+1) {
			t.Fatalf("event %d handed out has sequence %s", i+1, e.Sequence)
		}
	}
}

func TestRecentSurvivesARestart(t *testing.T) {
	dir := t.TempDir()
	box := open(t, dir)
	bus := NewBus(Options{Station: "gs-01", Crit: box.Crit, Info: box.Info})
	var ids []string
	for range 3 {
		ev, err := bus.Emit(t.Context(), About{}, PassAOS{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, ev.ID)
	}
	box.Close()
	box = open(t, dir)
	bus = NewBus(Options{Station: "gs-01", Crit: box.Crit, Info: box.Info})
	var got []string
	for _, e := range bus.Recent(10) {
		got = append(got, e.ID)
	}
	if !slices.Equal(got, ids) {
		t.Errorf("recent after a restart = %v, want %v", got, ids)
	}
}

func TestStateIsPublishedOnChangeOnly(t *testing.T) {
	bus := NewBus(Options{Station: "gs-01", Simulated: true})
	changed, end := bus.WatchStates()
	defer end()
	type pos struct {
		AzimuthDeg float64 `json:"azimuth_deg"`
	}
	bus.SetState("rotator", pos{10})
	<-changed
	v := bus.States()["rotator"]
	bus.SetState("rotator", pos{10})
	if again := bus.States()["rotator"]; again.Version != v.Version {
		t.Errorf("the same value made version %d of %d", again.Version, v.Version)
	}
	select {
	case <-changed:
		t.Error("the same value woke the watcher")
	default:
	}
	bus.SetState("rotator", pos{11})
	<-changed
	var got struct {
		Station   string `json:"station"`
		Simulated bool   `json:"simulated"`
		State     pos    `json:"state"`
	}
	if err := json.Unmarshal(bus.States()["rotator"].JSON, &got); err != nil || got.State.AzimuthDeg != 11 || !got.Simulated || got.Station != "gs-01" {
		t.Errorf("state = %+v, %v; want gs-01, simulated, 11", got, err)
	}
}

func TestKindsAreConsistent(t *testing.T) {
	seen := map[string]bool{}
	crit := []string{"pass/aos", "pass/los", "pass/ended", "actuation/refused", "alarm/raised", "station/stopped", "station/mode_changed", "outbox/gap", "outbox/quarantined"}
	for _, d := range All() {
		k := d.Kind()
		if seen[k.Type] {
			t.Errorf("%s is there twice", k.Type)
		}
		seen[k.Type] = true
		if k.Stream != Crit && k.Stream != Info {
			t.Errorf("%s has stream %q", k.Type, k.Stream)
		}
		if got := topicOf(k.Type); got != k.Topic || strings.Count(got, "/") != 1 {
			t.Errorf("%s: topic %q, by the rule %q", k.Type, k.Topic, got)
		}
		if slices.Contains(crit, k.Topic) && k.Stream != Crit {
			t.Errorf("%s is in %s, want crit", k.Type, k.Stream)
		}
		if k.Says == "" || !strings.HasPrefix(k.Schema, "urn:gsd:schema:") {
			t.Errorf("%+v is incomplete", k)
		}
	}
}
