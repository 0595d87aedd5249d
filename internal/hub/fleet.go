package hub

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// A FleetReport is what a Consumer knows of every station.
type FleetReport struct {
	Time      time.Time       `json:"time"`
	Connected bool            `json:"connected"`
	Reason    string          `json:"reason,omitempty"` // why it is not connected: a word of docs/hub.md
	Detail    string          `json:"detail,omitempty"`
	Stations  []StationReport `json:"stations"`
	Missing   uint64          `json:"missing"` // events that neither came nor were declared lost
	Faults    uint64          `json:"faults"`  // numbers that were used for two events
	Silent    int             `json:"silent"`  // stations whose will the broker has sent
	// Findings say in words what somebody should look at, worst first.
	Findings []string `json:"findings"`
}

// Complete reports whether every event that was expected is there or declared
// lost, and no number was used twice.
func (r FleetReport) Complete() bool { return r.Missing == 0 && r.Faults == 0 }

// A StationReport is one station's part of the report.
type StationReport struct {
	Station   string         `json:"station"`
	State     string         `json:"state"` // online, offline (it said so), silent (its will came) or unknown
	Session   uint64         `json:"session"`
	Since     *time.Time     `json:"since,omitempty"` // when the state was heard, computer's time
	Verdict   string         `json:"verdict"`         // of its own health; empty = not heard
	Simulated bool           `json:"simulated"`
	LastEvent *time.Time     `json:"last_event,omitempty"` // when it came
	Malformed uint64         `json:"malformed"`            // messages that are no events of this station
	Streams   []StreamReport `json:"streams"`
}

// A StreamReport is one stream of a station: crit or info.
type StreamReport struct {
	Stream        string   `json:"stream"`
	Epoch         string   `json:"epoch"`  // the current one
	Epochs        int      `json:"epochs"` // how many there were
	From          uint64   `json:"from,string"`
	To            uint64   `json:"to,string"`
	Events        uint64   `json:"events"`
	Missing       uint64   `json:"missing"`
	MissingRanges []string `json:"missing_ranges"` // EPOCH FROM-TO, at most 32
	DeclaredLost  uint64   `json:"declared_lost"`
	Duplicates    uint64   `json:"duplicates"`
	Faults        []string `json:"faults"`
	// Undeclared epochs began without a word of the station: its outbox was
	// removed, and what had not been delivered is not known.
	Undeclared []string `json:"undeclared_epochs"`
}

func (l *ledger) report(now time.Time) FleetReport {
	r := FleetReport{Time: now.UTC(), Stations: []StationReport{}, Findings: []string{}}
	var faults, gaps, silent, odd []string
	for _, name := range slices.Sorted(maps.Keys(l.stations)) {
		s := l.stations[name]
		sr := StationReport{Station: name, State: s.state, Session: s.session, Since: when(s.since), Verdict: s.verdict, Simulated: s.simulated,
			LastEvent: when(s.lastEvent), Malformed: s.malformed, Streams: []StreamReport{}}
		switch s.state {
		case "":
			sr.State = "unknown"
		case "silent":
			r.Silent++
			silent = append(silent, fmt.Sprintf("%s: silent since %s: the connection ended without a word", name, s.since.UTC().Format(time.RFC3339)))
		}
		if s.malformed > 0 {
			odd = append(odd, fmt.Sprintf("%s: %d messages are no events of this station: look at who may write to its topics", name, s.malformed))
		}
		for _, stream := range slices.Sorted(maps.Keys(s.streams)) {
			x := s.streams[stream].report(stream)
			r.Missing += x.Missing
			r.Faults += s.streams[stream].faultCount
			for _, f := range x.Faults {
				faults = append(faults, fmt.Sprintf("%s %s: %s: a fault of the station's disk", name, stream, f))
			}
			if x.Missing > 0 {
				gaps = append(gaps, fmt.Sprintf("%s %s: %d events are missing: %s", name, stream, x.Missing, list(x.MissingRanges, 6)))
			}
			for _, e := range x.Undeclared {
				odd = append(odd, fmt.Sprintf("%s %s: epoch %s began without a declaration: its outbox was removed, and what it still held is not known", name, stream, e))
			}
			sr.Streams = append(sr.Streams, x)
		}
		r.Stations = append(r.Stations, sr)
	}
	if l.refused > 0 {
		odd = append(odd, fmt.Sprintf("%d messages of stations beyond the first %d were not counted", l.refused, maxStations))
	}
	r.Findings = slices.Concat(r.Findings, faults, gaps, silent, odd)
	return r
}

func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// list joins the first n words and says how many more there are.
func list(words []string, n int) string {
	out := ""
	for i, w := range words {
		if i == n {
			return out + fmt.Sprintf(" and %d more", len(words)-n)
		}
		if i > 0 {
			out += ", "
		}
		out += w
	}
	return out
}

func (st *streamLedger) report(name string) StreamReport {
	r := StreamReport{Stream: name, Epochs: len(st.epochs), MissingRanges: []string{}, Duplicates: st.duplicates, Faults: append([]string{}, st.faults...), Undeclared: []string{}}
	current := st.current
	if current == nil && len(st.epochs) > 0 {
		current = st.epochs[len(st.epochs)-1]
	}
	if current != nil {
		r.Epoch, r.From, r.To = current.name, current.from, st.top(current)
	}
	for i, e := range st.epochs {
		r.Events += e.have.count()
		r.DeclaredLost += e.lost.count()
		for _, h := range st.missing(e) {
			r.Missing += h.count()
			if len(r.MissingRanges) < reportSpans {
				r.MissingRanges = append(r.MissingRanges, e.name+" "+h.String())
			}
		}
		if i > 0 && !e.declared && !st.isPrevious(e) {
			r.Undeclared = append(r.Undeclared, e.name)
		}
	}
	return r
}

// isPrevious reports whether a later epoch names e as the one before it.
func (st *streamLedger) isPrevious(e *epochLedger) bool {
	return slices.ContainsFunc(st.epochs, func(x *epochLedger) bool { return x.previous == e.name })
}
