package hub

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/unit"
)

// Bounds of what stations, or whoever writes to their topics, can make a
// ledger remember.
const (
	maxStations = 10_000
	maxEpochs   = 64     // of one stream
	maxSpans    = 20_000 // of one epoch: as many holes
	idsKept     = 1024   // of the newest numbers of one epoch, to tell a resend from a reused number
	maxSequence = 1 << 62
	reportSpans = maxMissing
)

var (
	epochName = regexp.MustCompile(`^[0-9A-Za-z]{1,32}$`)
	eventID   = regexp.MustCompile(`^[0-9A-Za-z._-]{1,64}$`)
)

// A ledger is the hub's account of what has come from each station: which
// numbers of which epoch, what the stations declared lost, and who is silent.
// It is not safe for concurrent use.
type ledger struct {
	// fromStart expects every epoch from number 1 on, or from where the station
	// declared that it begins; otherwise from the first number that came.
	fromStart bool
	// keep writes a line down before it counts; nil = memory only.
	keep     func(line string) error
	stations map[string]*stationLedger
	refused  uint64 // messages of stations beyond maxStations
}

type stationLedger struct {
	state     string // online, offline, silent; empty = not heard
	session   uint64 // of the last online
	since     time.Time
	verdict   string // of its own health
	simulated bool
	malformed uint64
	lastEvent time.Time // when the last event came
	streams   map[string]*streamLedger
}

// A streamLedger is one source: crit or info of a station.
type streamLedger struct {
	epochs     []*epochLedger // in the order in which they were first heard of
	current    *epochLedger   // the last one that was new with an event
	duplicates uint64
	faults     []string // sequence numbers that came with two ids
	faultCount uint64
}

type epochLedger struct {
	name     string
	from     uint64 // first number that is expected
	declared bool   // the station said where it begins
	previous string
	have     ranges
	lost     ranges // declared
	ids      map[uint64]string
}

func newLedger(fromStart bool) *ledger {
	return &ledger{fromStart: fromStart, stations: map[string]*stationLedger{}}
}

func (l *ledger) station(name string) *stationLedger {
	s := l.stations[name]
	if s == nil && len(l.stations) < maxStations {
		s = &stationLedger{streams: map[string]*streamLedger{}}
		l.stations[name] = s
	}
	return s
}

func (s *stationLedger) stream(name string) *streamLedger {
	if s.streams[name] == nil {
		s.streams[name] = &streamLedger{}
	}
	return s.streams[name]
}

func (s *streamLedger) epoch(name string) *epochLedger {
	for _, e := range s.epochs {
		if e.name == name {
			return e
		}
	}
	return nil
}

// open is the epoch of a name, new if need be; nil beyond maxEpochs. first is
// the number with which it was heard of.
func (l *ledger) open(s *streamLedger, name string, first uint64) *epochLedger {
	e := s.epoch(name)
	if e == nil && len(s.epochs) < maxEpochs {
		e = &epochLedger{name: name, from: first, ids: map[uint64]string{}}
		if l.fromStart {
			e.from = 1
		}
		s.epochs = append(s.epochs, e)
	}
	return e
}

// take accounts for one message. An error means that it could not be written
// down and does not count: it must not be acknowledged.
func (l *ledger) take(topic string, payload []byte, at time.Time) error {
	rest, ok := strings.CutPrefix(topic, "gsd/v1/")
	if !ok {
		return nil
	}
	name, what, _ := strings.Cut(rest, "/")
	if !stationID.MatchString(name) {
		return nil
	}
	s := l.station(name)
	if s == nil {
		l.refused++
		return nil
	}
	area, thing, _ := strings.Cut(what, "/")
	switch {
	case area == "events":
		return l.event(s, name, payload, at)
	case what == "availability":
		s.availability(payload, at)
	case area == "state" && thing == "health":
		var h struct {
			State struct{ Verdict string }
		}
		if json.Unmarshal(payload, &h) == nil {
			s.verdict = unit.Printable(h.State.Verdict, 12)
		}
	}
	return nil
}

// availability follows the sessions: the will of an old connection may come
// after the next one said online.
func (s *stationLedger) availability(payload []byte, at time.Time) {
	var a struct {
		State     string
		Session   uint64
		Reason    string
		Simulated bool
	}
	if json.Unmarshal(payload, &a) != nil {
		s.malformed++
		return
	}
	word := a.State
	switch {
	case word == "online":
		if a.Session < s.session {
			return
		}
		s.session = a.Session
	case word == "offline" && a.Session < s.session:
		return
	case word == "offline" && a.Reason != reasonShutdown:
		word = "silent" // the will: nobody said goodbye
	case word != "offline":
		s.malformed++
		return
	}
	if word != s.state {
		s.since = at
	}
	s.state, s.simulated = word, a.Simulated
}

func (l *ledger) event(s *stationLedger, name string, payload []byte, at time.Time) error {
	var e event.Event
	if json.Unmarshal(payload, &e) != nil {
		s.malformed++
		return nil
	}
	if e.Sequence == "" {
		return nil // a canary: part of no stream
	}
	stream, ok := strings.CutPrefix(e.Source, "/gsd/"+name+"/")
	seq, err := strconv.ParseUint(e.Sequence, 10, 64)
	if !ok || stream != event.Crit && stream != event.Info || err != nil || seq == 0 || seq > maxSequence ||
		!epochName.MatchString(e.Epoch) || !eventID.MatchString(e.ID) {
		s.malformed++
		return nil
	}
	lines := []string{fmt.Sprintf("e %s %s %s %d %s", name, stream, e.Epoch, seq, e.ID)}
	switch e.Type {
	case event.OutboxGap{}.Kind().Type:
		lines = append(lines, gapLine(name, e.Data)...)
	case event.OutboxQuarantined{}.Kind().Type:
		lines = append(lines, quarantineLine(name, e.Data)...)
	}
	for _, line := range lines {
		if err := l.apply(line, true); err != nil {
			return err
		}
	}
	s.lastEvent, s.simulated = at, e.Simulated
	return nil
}

// gapLine is what a declaration of lost events says, as lines of the ledger.
func gapLine(name string, data []byte) []string {
	var g event.OutboxGap
	if json.Unmarshal(data, &g) != nil || g.SourceName != "/gsd/"+name+"/"+g.StreamName {
		return nil
	}
	from, err1 := strconv.ParseUint(g.From, 10, 64)
	to, err2 := strconv.ParseUint(g.To, 10, 64)
	if err1 != nil || err2 != nil {
		return nil
	}
	if g.PreviousEpoch != "" {
		return []string{fmt.Sprintf("n %s %s %s %d %s", name, g.StreamName, g.EpochName, to+1, g.PreviousEpoch)}
	}
	return []string{fmt.Sprintf("g %s %s %s %d %d", name, g.StreamName, g.EpochName, from, to)}
}

func quarantineLine(name string, data []byte) []string {
	var q event.OutboxQuarantined
	if json.Unmarshal(data, &q) != nil || q.SourceName != "/gsd/"+name+"/"+q.StreamName {
		return nil
	}
	seq, err := strconv.ParseUint(q.Sequence, 10, 64)
	if err != nil {
		return nil
	}
	return []string{fmt.Sprintf("g %s %s %s %d %d", name, q.StreamName, q.EpochName, seq, seq)}
}

// apply accounts for one line, which is also what the file of the ledger has:
//
//	e STATION STREAM EPOCH SEQUENCE ID     an event came
//	g STATION STREAM EPOCH FROM TO         the station declared them lost
//	n STATION STREAM EPOCH FROM PREVIOUS   the epoch begins at FROM, after PREVIOUS
//	b STATION STREAM EPOCH FROM -          the first number that is expected
//	h STATION STREAM EPOCH FROM TO         they came
//	i STATION STREAM EPOCH SEQUENCE ID     the id with which it came
//	c STATION STREAM EPOCH 1 -             the current epoch
//
// A line that makes no sense counts as malformed. isNew lines are written down.
func (l *ledger) apply(line string, isNew bool) error {
	f := strings.Fields(line)
	if len(f) != 6 || !stationID.MatchString(f[1]) || f[2] != event.Crit && f[2] != event.Info || !epochName.MatchString(f[3]) {
		return nil
	}
	s := l.station(f[1])
	n, err := strconv.ParseUint(f[4], 10, 64)
	if s == nil || err != nil || n == 0 || n > maxSequence {
		return nil
	}
	var to uint64
	if f[0] == "g" || f[0] == "h" {
		if to, err = strconv.ParseUint(f[5], 10, 64); err != nil || to > maxSequence {
			return nil
		}
	}
	st := s.stream(f[2])
	known := st.epoch(f[3]) != nil
	e := l.open(st, f[3], n)
	if e == nil || len(e.have)+len(e.lost) >= maxSpans {
		s.malformed++
		return nil
	}
	if isNew && l.keep != nil && !(f[0] == "e" && e.ids[n] == f[5]) { // a resend changes nothing
		if err := l.keep(line); err != nil {
			if !known {
				st.epochs = st.epochs[:len(st.epochs)-1]
			}
			return err
		}
	}
	switch f[0] {
	case "e":
		st.came(e, n, f[5])
	case "h":
		if n <= to {
			e.have.add(n, to)
		}
	case "i":
		e.ids[n] = f[5]
	case "c":
		st.current = e
	case "g":
		if n == 1 { // from the beginning: the epoch's name is new, and declared so
			e.declared, e.from = true, min(e.from, to+1)
		}
		if n <= to {
			e.lost.add(n, to)
		}
	case "b":
		e.from = n
	case "n":
		e.from, e.declared, e.previous = n, true, f[5]
		if !epochName.MatchString(e.previous) || e.previous == e.name {
			e.previous = ""
			break
		}
		if l.fromStart && n > 1 {
			l.open(st, e.previous, 1) // the whole of it is expected
		}
	}
	return nil
}

// came accounts for an event: new, a duplicate, or a number that was used twice.
func (st *streamLedger) came(e *epochLedger, n uint64, id string) {
	if e.have.has(n) {
		switch first := e.ids[n]; {
		case first == "" || first == id:
			st.duplicates++
		default:
			st.faultCount++
			if len(st.faults) < reportSpans {
				st.faults = append(st.faults, fmt.Sprintf("epoch %s number %d came as %s and as %s", e.name, n, first, id))
			}
		}
		return
	}
	st.grows(e)
	e.have.add(n, n)
	e.ids[n] = id
	if len(e.ids) >= 2*idsKept {
		numbers := slices.Sorted(maps.Keys(e.ids))
		for _, old := range numbers[:len(numbers)-idsKept] {
			delete(e.ids, old)
		}
	}
}

// grows makes an epoch the current one with its first event, unless that is a
// late one of an epoch that has ended.
func (st *streamLedger) grows(e *epochLedger) {
	if st.current == nil || len(e.have) == 0 && !slices.Contains(st.chain(st.current), e) {
		st.current = e
	}
}

// top is the highest number that an epoch is known to have: one that came, was
// declared lost, or is the last before the epoch that follows.
func (st *streamLedger) top(e *epochLedger) (n uint64) {
	for _, x := range st.epochs {
		if x.previous == e.name {
			n = max(n, x.from-1)
		}
	}
	for _, r := range []ranges{e.have, e.lost} {
		if len(r) > 0 {
			n = max(n, r[len(r)-1].to)
		}
	}
	return n
}

// missing is what neither came nor was declared lost.
func (st *streamLedger) missing(e *epochLedger) (holes []span) {
	top := st.top(e)
	if e.from > top {
		return nil
	}
	for _, h := range e.have.without(e.from, top) {
		holes = append(holes, e.lost.without(h.from, h.to)...)
	}
	return holes
}

// chain is the epoch and those that the station declared to come before it,
// oldest first. Numbers go on from one to the next.
func (st *streamLedger) chain(e *epochLedger) []*epochLedger {
	out := []*epochLedger{e}
	for len(out) <= maxEpochs && out[0].previous != "" {
		p := st.epoch(out[0].previous)
		if p == nil || slices.Contains(out, p) {
			break
		}
		out = slices.Insert(out, 0, p)
	}
	return out
}

// ack is the confirmation for a station: nil when nothing has come from it.
func (s *stationLedger) ack() []byte {
	out := map[string]streamAck{}
	for name, st := range s.streams {
		e := st.current
		if e == nil || len(e.have) == 0 {
			continue
		}
		a := streamAck{Epoch: e.name, Missing: []string{}}
		upto := st.top(e)
		for _, link := range st.chain(e) {
			for _, h := range st.missing(link) {
				upto = min(upto, h.from-1)
				if len(a.Missing) < maxMissing {
					a.Missing = append(a.Missing, h.String())
				}
			}
		}
		a.UpTo = strconv.FormatUint(upto, 10)
		out[name] = a
	}
	if len(out) == 0 {
		return nil
	}
	b, _ := json.Marshal(out) // strings: cannot fail
	return b
}

// lines are the ledger as a small file would have it; see apply.
func (l *ledger) lines() (out []string) {
	for _, name := range slices.Sorted(maps.Keys(l.stations)) {
		for _, stream := range slices.Sorted(maps.Keys(l.stations[name].streams)) {
			epochs := l.stations[name].streams[stream].epochs
			add := func(kind string, e *epochLedger, n uint64, last any) {
				out = append(out, fmt.Sprintf("%s %s %s %s %d %v", kind, name, stream, e.name, n, last))
			}
			for _, e := range epochs {
				add("b", e, e.from, "-")
			}
			for _, e := range epochs {
				for _, r := range e.have {
					add("h", e, r.from, r.to)
				}
				for _, r := range e.lost {
					add("g", e, r.from, r.to)
				}
				for _, n := range slices.Sorted(maps.Keys(e.ids)) {
					add("i", e, n, e.ids[n])
				}
				if e.declared { // after the losses, which may move it
					add("n", e, e.from, cmp.Or(e.previous, "-"))
				}
			}
			if e := l.stations[name].streams[stream].current; e != nil {
				add("c", e, 1, "-")
			}
		}
	}
	return out
}
