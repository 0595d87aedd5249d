package hub

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gsd-mcp/internal/event"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// eventOf is a message of a station.
func eventOf(station, stream, epoch string, seq uint64, id string, data event.Data) (topic string, payload []byte) {
	if data == nil {
		data = event.PassTCA{}
	}
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	e := event.Event{SpecVersion: "1.0", ID: id, Source: "/gsd/" + station + "/" + stream, Type: data.Kind().Type, Time: noon, RecordedTime: noon,
		Sequence: fmt.Sprintf("%020d", seq), Epoch: epoch, Data: raw}
	payload, err = json.Marshal(e)
	if err != nil {
		panic(err)
	}
	return "gsd/v1/" + station + "/events/" + e.Topic(), payload
}

func came(t testing.TB, l *ledger, stream, epoch string, numbers ...uint64) {
	t.Helper()
	for _, n := range numbers {
		topic, payload := eventOf("gs-01", stream, epoch, n, fmt.Sprintf("%s-%s-%d", stream, epoch, n), nil)
		if err := l.take(topic, payload, noon); err != nil {
			t.Fatal(err)
		}
	}
}

func declares(t testing.TB, l *ledger, seq uint64, epoch string, d event.Data) {
	t.Helper()
	topic, payload := eventOf("gs-01", "crit", epoch, seq, fmt.Sprintf("d-%d", seq), d)
	if err := l.take(topic, payload, noon); err != nil {
		t.Fatal(err)
	}
}

// streamOf is the report of one stream of gs-01.
func streamOf(t testing.TB, l *ledger, stream string) StreamReport {
	t.Helper()
	for _, s := range l.report(noon).Stations {
		for _, x := range s.Streams {
			if s.Station == "gs-01" && x.Stream == stream {
				return x
			}
		}
	}
	t.Fatalf("no stream %s of gs-01 in the report", stream)
	return StreamReport{}
}

func gap(stream, epoch string, from, to uint64, previous string) event.OutboxGap {
	return event.OutboxGap{StreamName: stream, SourceName: "/gsd/gs-01/" + stream, EpochName: epoch, From: fmt.Sprintf("%020d", from),
		To: fmt.Sprintf("%020d", to), Why: "test", PreviousEpoch: previous}
}

func TestHolesAreMissingUntilTheyComeOrAreDeclared(t *testing.T) {
	l := newLedger(false)
	came(t, l, "info", "aa", 5, 6, 9, 10, 14)
	if got := streamOf(t, l, "info"); got.Missing != 5 || !slices.Equal(got.MissingRanges, []string{"aa 7-8", "aa 11-13"}) || got.From != 5 || got.To != 14 {
		t.Fatalf("report %+v, want 7-8 and 11-13 missing of 5..14", got)
	}
	came(t, l, "info", "aa", 8, 7, 7)
	declares(t, l, 1, "cc", gap("info", "aa", 11, 12, ""))
	declares(t, l, 2, "cc", event.OutboxQuarantined{StreamName: "info", SourceName: "/gsd/gs-01/info", EpochName: "aa", Sequence: "00000000000000000013"})
	got := streamOf(t, l, "info")
	if got.Missing != 0 || got.DeclaredLost != 3 || got.Duplicates != 1 || len(got.Faults) != 0 {
		t.Errorf("report %+v, want nothing missing, 3 declared lost, 1 duplicate", got)
	}
	if r := l.report(noon); !r.Complete() {
		t.Errorf("%+v is not complete", r)
	}
}

func TestFromTheStartEverythingIsExpected(t *testing.T) {
	l := newLedger(true)
	came(t, l, "info", "aa", 4)
	if got := streamOf(t, l, "info"); got.Missing != 3 {
		t.Errorf("%d missing, want 1..3", got.Missing)
	}
}

func TestANumberUsedTwiceIsAFaultAndAResendIsNot(t *testing.T) {
	l := newLedger(false)
	came(t, l, "crit", "aa", 1, 2, 2, 2)
	topic, payload := eventOf("gs-01", "crit", "aa", 2, "another", nil)
	l.take(topic, payload, noon)
	got, r := streamOf(t, l, "crit"), l.report(noon)
	if got.Duplicates != 2 || len(got.Faults) != 1 || r.Faults != 1 || r.Complete() || !strings.Contains(strings.Join(r.Findings, "\n"), "another") {
		t.Errorf("report %+v, findings %q; want 2 duplicates and 1 fault that names both ids", got, r.Findings)
	}
}

// A disk that lost its tail goes on under a new name; what is missing before it
// is missing still.
func TestANewEpochIsDeclaredByItsGap(t *testing.T) {
	for _, first := range []string{"declaration first", "events first"} {
		t.Run(first, func(t *testing.T) {
			l := newLedger(false)
			came(t, l, "info", "aa", 1, 2, 4)
			if first == "events first" {
				came(t, l, "info", "bb", 7, 8)
				if got := streamOf(t, l, "info"); len(got.Undeclared) != 1 {
					t.Errorf("report %+v, want bb undeclared", got)
				}
			}
			declares(t, l, 1, "cc", gap("info", "bb", 1, 5, "aa"))
			if first != "events first" {
				came(t, l, "info", "bb", 7, 8)
			}
			got := streamOf(t, l, "info")
			if !slices.Equal(got.MissingRanges, []string{"aa 3", "aa 5", "bb 6"}) || len(got.Undeclared) != 0 || got.Epoch != "bb" || got.Epochs != 2 {
				t.Errorf("report %+v, want 3 and 5 of aa and 6 of bb missing, and bb current", got)
			}
			var ack map[string]streamAck
			json.Unmarshal(l.stations["gs-01"].ack(), &ack)
			if want := (streamAck{"bb", "2", []string{"3", "5", "6"}}); !cmp.Equal(ack["info"], want) {
				t.Errorf("confirmation %+v, want %+v", ack["info"], want)
			}
			came(t, l, "info", "aa", 3, 5)
			came(t, l, "info", "bb", 6)
			json.Unmarshal(l.stations["gs-01"].ack(), &ack)
			if want := (streamAck{"bb", "8", []string{}}); !cmp.Equal(ack["info"], want) {
				t.Errorf("confirmation %+v, want %+v", ack["info"], want)
			}
		})
	}
}

func TestALateWillDoesNotHideAStation(t *testing.T) {
	l := newLedger(false)
	say := func(s string) string {
		l.take("gsd/v1/gs-01/availability", []byte(s), noon)
		return l.report(noon).Stations[0].State
	}
	for _, tt := range []struct{ message, want string }{
		{`{"state":"online","session":4}`, "online"},
		{`{"state":"offline","session":3}`, "online"}, // the will of an old connection
		{`{"state":"online","session":3}`, "online"},
		{`{"state":"offline","session":4}`, "silent"},
		{`{"state":"online","session":5}`, "online"},
		{`{"state":"offline","session":5,"reason":"shutdown"}`, "offline"},
		{`{"state":"dancing","session":6}`, "offline"},
		{`not json`, "offline"},
	} {
		if got := say(tt.message); got != tt.want {
			t.Errorf("after %s the station is %s, want %s", tt.message, got, tt.want)
		}
	}
}

// Whoever may write to a station's topics can confuse that station's account
// and nothing else.
func TestNonsenseIsCountedAndNothingElse(t *testing.T) {
	l := newLedger(true)
	came(t, l, "crit", "aa", 1)
	_, foreign := eventOf("gs-02", "crit", "aa", 9, "x", nil)
	_, space := eventOf("gs-01", "crit", "aa", 2, "a b", nil)
	_, newline := eventOf("gs-01", "crit", "a\nb", 2, "x", nil)
	_, huge := eventOf("gs-01", "crit", "aa", 1<<63, "x", nil)
	for _, payload := range [][]byte{[]byte("{"), []byte("null x"), foreign, space, newline, huge} {
		l.take("gsd/v1/gs-01/events/pass/tca", payload, noon)
	}
	l.take("gsd/v1/GS 9/events/pass/tca", foreign, noon)
	l.take("other/gs-09", foreign, noon)
	r := l.report(noon)
	if len(r.Stations) != 1 || r.Stations[0].Malformed != 6 || r.Missing != 0 {
		t.Errorf("report %+v, want one station, 6 malformed and nothing missing", r)
	}
	for range maxEpochs + 10 {
		came(t, l, "info", fmt.Sprintf("e%d", len(l.stations["gs-01"].streams["crit"].epochs)+int(l.stations["gs-01"].malformed)), 1)
		l.stations["gs-01"].malformed++
	}
	if n := len(l.stations["gs-01"].streams["info"].epochs); n > maxEpochs {
		t.Errorf("%d epochs are remembered, want at most %d", n, maxEpochs)
	}
}

// The file says the same as the memory, whatever came in whatever order.
func TestTheAccountSurvivesItsFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := newLedger(rapid.Bool().Draw(t, "from start"))
		var written []string
		l.keep = func(line string) error { written = append(written, line); return nil }
		for range rapid.IntRange(0, 60).Draw(t, "messages") {
			stream := rapid.SampledFrom([]string{"crit", "info"}).Draw(t, "stream")
			epoch := rapid.SampledFrom([]string{"aa", "bb", "cc"}).Draw(t, "epoch")
			n := rapid.Uint64Range(1, 12).Draw(t, "number")
			switch rapid.IntRange(0, 7).Draw(t, "kind") {
			case 0:
				topic, p := eventOf("gs-01", "crit", "zz", n, fmt.Sprintf("z%d", n), gap(stream, epoch, n, n+2, ""))
				l.take(topic, p, noon)
			case 1:
				topic, p := eventOf("gs-01", "crit", "zz", n, fmt.Sprintf("z%d", n), gap(stream, epoch, 1, n, rapid.SampledFrom([]string{"aa", "bb"}).Draw(t, "previous")))
				l.take(topic, p, noon)
			default:
				topic, p := eventOf("gs-01", stream, epoch, n, fmt.Sprintf("%s%d", epoch, n), nil)
				l.take(topic, p, noon)
			}
		}
		want := forgetful(l.report(noon))
		read := func(lines []string) FleetReport {
			m := newLedger(l.fromStart)
			for _, line := range lines {
				m.apply(line, false)
			}
			return forgetful(m.report(noon))
		}
		if d := cmp.Diff(want, read(written)); d != "" {
			t.Errorf("read back line by line (-want +got):\n%s", d)
		}
		if d := cmp.Diff(want, read(l.lines())); d != "" {
			t.Errorf("read back made small (-want +got):\n%s", d)
		}
	})
}

// forgetful is a report without what the file does not keep.
func forgetful(r FleetReport) FleetReport {
	for i := range r.Stations {
		r.Stations[i].LastEvent = nil
		for k := range r.Stations[i].Streams {
			r.Stations[i].Streams[k].Duplicates = 0
		}
	}
	return r
}

func TestWhatCannotBeWrittenDownDoesNotCount(t *testing.T) {
	l := newLedger(false)
	full := errors.New("no space left")
	l.keep = func(string) error { return full }
	topic, payload := eventOf("gs-01", "crit", "aa", 1, "x", nil)
	if err := l.take(topic, payload, noon); !errors.Is(err, full) {
		t.Fatalf("take = %v, want the error of the disk", err)
	}
	l.keep = nil
	if r := l.report(noon); len(r.Stations[0].Streams) > 0 && r.Stations[0].Streams[0].Events != 0 {
		t.Errorf("report %+v counts an event that comes again", r)
	}
	came(t, l, "crit", "aa", 1)
	if got := streamOf(t, l, "crit"); got.Events != 1 || got.Duplicates != 0 {
		t.Errorf("report %+v, want 1 event and no duplicate", got)
	}
}

func TestRangesAreASet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r ranges
		want := map[uint64]bool{}
		for range rapid.IntRange(0, 40).Draw(t, "adds") {
			from := rapid.Uint64Range(1, 60).Draw(t, "from")
			to := from + rapid.Uint64Range(0, 5).Draw(t, "more")
			r.add(from, to)
			for n := from; n <= to; n++ {
				want[n] = true
			}
		}
		for i, s := range r {
			if s.from > s.to || i > 0 && r[i-1].to+1 >= s.from {
				t.Fatalf("%v is not in order, or touches", r)
			}
		}
		from := rapid.Uint64Range(1, 70).Draw(t, "first")
		to := rapid.Uint64Range(1, 70).Draw(t, "last")
		holes := map[uint64]bool{}
		for _, h := range r.without(from, to) {
			for n := h.from; n <= h.to; n++ {
				holes[n] = true
			}
		}
		for n := uint64(1); n <= 70; n++ {
			if r.has(n) != want[n] {
				t.Fatalf("%v has %d = %v, want %v", r, n, r.has(n), want[n])
			}
			if inside := from <= n && n <= to; holes[n] != (inside && !want[n]) {
				t.Fatalf("%v without %d..%d: %d is a hole = %v", r, from, to, n, holes[n])
			}
		}
		if r.count() != uint64(len(want)) {
			t.Fatalf("%v counts %d, want %d", r, r.count(), len(want))
		}
	})
}
