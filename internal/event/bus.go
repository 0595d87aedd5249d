package event

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/state"
)

const (
	recentKept = 512 // events kept in memory for Recent
	// declareWait bounds how long a journal waits until another has taken the
	// news of what it lost: a few flushes of a slow card.
	declareWait = 30 * time.Second
)

// Options are what a Bus needs.
type Options struct {
	Station    string // [a-z0-9-]{1,32}
	Simulated  bool
	BootID     string               // BootID() when empty
	Clock      *clock.Clock         // station time
	Crit, Info *state.Journal       // nil = memory only
	Quality    func() string        // synced, holdover, unsynced; nil = "simulated" or "unsynced"
	Uptime     func() time.Duration // since boot; nil = the computer's
	Log        hclog.Logger         // nil = none
}

// A Bus takes events in and hands them out. It is safe for concurrent use.
type Bus struct {
	o Options

	mu      sync.Mutex
	subs    map[*subscriber]struct{}
	recent  []Event
	memory  map[string]uint64 // sequence numbers of streams without a journal
	epoch   string            // theirs
	states  map[string]State
	watch   map[chan struct{}]struct{}
	dropped uint64
	failed  uint64
}

type subscriber struct {
	c       chan Event
	dropped uint64
}

// A State is the last value of a thing that has a retained topic.
type State struct {
	JSON    json.RawMessage // what is published
	Version uint64          // grows with each change

	value []byte
}

// About says what an event is about and who caused it. The zero value is the
// station itself, now.
type About struct {
	Subject     string    // pass/25544-20261130T1405Z
	Correlation string    // the same for all events of one pass or one command
	Trace       string    // W3C traceparent
	Author      *Author   // nil = the station
	Time        time.Time // when it happened, station time; zero = now
}

// NewBus makes a bus and declares at once what the journals lost before.
func NewBus(o Options) *Bus {
	if o.BootID == "" {
		o.BootID = BootID()
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Uptime == nil {
		o.Uptime = sinceBoot
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	if o.Quality == nil {
		quality := "unsynced"
		if o.Simulated {
			quality = "simulated"
		}
		o.Quality = func() string { return quality }
	}
	id := make([]byte, 4)
	rand.Read(id)
	b := &Bus{o: o, subs: map[*subscriber]struct{}{}, memory: map[string]uint64{}, epoch: hex.EncodeToString(id),
		states: map[string]State{}, watch: map[chan struct{}]struct{}{}}
	b.remember()
	for stream, j := range map[string]*state.Journal{Crit: o.Crit, Info: o.Info} {
		if j == nil {
			continue
		}
		j.OnPressure(func(what string) { b.pressure(stream, what) })
		j.DeclareGaps(func(g state.Gap) error { return b.gap(stream, g) })
	}
	return b
}

// Station is the station's id.
func (b *Bus) Station() string { return b.o.Station }

// Simulated reports whether the station is a simulated one.
func (b *Bus) Simulated() bool { return b.o.Simulated }

// gap declares lost records; it returns nil once that is durable in crit.
func (b *Bus) gap(stream string, g state.Gap) error {
	ctx, cancel := context.WithTimeout(context.Background(), declareWait)
	defer cancel()
	_, err := b.Emit(ctx, About{Subject: "outbox/" + stream}, OutboxGap{
		StreamName: stream, SourceName: b.source(stream), EpochName: g.Epoch, From: padded(g.From), To: padded(g.To),
		Why: g.Why, PreviousEpoch: g.Previous})
	if err != nil {
		b.o.Log.Error("lost events could not be declared yet", "stream", stream, "from", g.From, "to", g.To, "error", err)
	}
	return err
}

// pressure tells of a journal without room. It runs on the journal's own
// goroutine, so the event goes out without waiting.
func (b *Bus) pressure(stream, what string) {
	b.o.Log.Warn("outbox", "stream", stream, "condition", what)
	if what == "journal_dead" && stream == Crit {
		return // nothing can be written any more; health says it
	}
	d := OutboxPressure{StreamName: stream, Condition: what}
	ev, err := b.prepare(About{Subject: "outbox/" + stream}, d)
	if err != nil {
		return
	}
	if err := b.submit(ev, d.Kind()); err != nil {
		b.o.Log.Error("outbox condition could not be recorded", "stream", stream, "condition", what, "error", err)
	}
}

func padded(n uint64) string { return fmt.Sprintf("%020d", n) }

func (b *Bus) source(stream string) string { return "/gsd/" + b.o.Station + "/" + stream }

// prepare makes everything of an event but its place in the journal.
func (b *Bus) prepare(about About, d Data) (Event, error) {
	k := d.Kind()
	raw, err := encodeData(d)
	if err != nil {
		return Event{}, fmt.Errorf("event %s: %w", k.Type, err)
	}
	by := Station()
	if about.Author != nil {
		by = *about.Author
	}
	if raw, err = withAuthor(raw, by); err != nil {
		return Event{}, fmt.Errorf("event %s: %w", k.Type, err)
	}
	now := stamp(b.o.Clock.Now())
	at := now
	if !about.Time.IsZero() {
		at = stamp(about.Time)
	}
	return Event{
		SpecVersion: "1.0", ID: newID(now), Source: b.source(k.Stream), Type: k.Type, Subject: about.Subject,
		Time: at, RecordedTime: now, DataContentType: "application/json", DataSchema: k.Schema,
		BootID: b.o.BootID, UptimeMs: strconv.FormatInt(b.o.Uptime().Milliseconds(), 10), TimeQuality: b.o.Quality(),
		SeverityText: k.Severity, SeverityNumber: SeverityNumber(k.Severity), Simulated: b.o.Simulated,
		CorrelationID: about.Correlation, TraceParent: about.Trace, Data: raw,
	}, nil
}

// stamp is UTC to the millisecond, as the events show it.
func stamp(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }

// Emit records an event and hands it out. For crit it returns once the event
// is on the disk; an error means that the event did not happen as far as the
// hub will ever know, so what it announces must be refused. For info it
// returns once the event is accepted, still without its sequence number.
func (b *Bus) Emit(ctx context.Context, about About, d Data) (Event, error) {
	k := d.Kind()
	ev, err := b.prepare(about, d)
	if err != nil {
		return Event{}, err
	}
	j := b.journal(k.Stream)
	if j == nil {
		return b.inMemory(ev, k.Stream), nil
	}
	if k.Stream != Crit {
		if err := b.submit(ev, k); err != nil {
			return Event{}, fmt.Errorf("event %s: %w", k.Type, err)
		}
		return ev, nil
	}
	var built Event // written on the journal's goroutine before Append returns
	_, err = j.AppendThen(ctx, func(seq uint64, epoch string) ([]byte, error) {
		built = placed(ev, seq, epoch)
		return encode(built)
	}, func() { b.handOut(built) })
	if err != nil {
		b.count(&b.failed)
		return Event{}, fmt.Errorf("event %s: %w", k.Type, err)
	}
	return built, nil
}

func (b *Bus) journal(stream string) *state.Journal {
	if stream == Crit {
		return b.o.Crit
	}
	return b.o.Info
}

// submit gives an event to its journal without waiting; it is handed out when
// it has its number, or without one if the journal fails.
func (b *Bus) submit(ev Event, k Kind) error {
	var built Event
	err := b.journal(k.Stream).Submit(func(seq uint64, epoch string) ([]byte, error) {
		built = placed(ev, seq, epoch)
		return encode(built)
	}, func(_ uint64, err error) {
		if err != nil {
			b.count(&b.failed)
			b.o.Log.Error("event was not recorded", "type", k.Type, "id", ev.ID, "error", err)
			built = ev
		}
		b.handOut(built)
	})
	if err != nil {
		b.count(&b.failed)
	}
	return err
}

func (b *Bus) inMemory(ev Event, stream string) Event {
	b.mu.Lock()
	b.memory[stream]++
	ev = placed(ev, b.memory[stream], b.epoch)
	b.deliver(ev)
	b.mu.Unlock()
	return ev
}

func (b *Bus) count(n *uint64) {
	b.mu.Lock()
	*n++
	b.mu.Unlock()
}

func placed(ev Event, seq uint64, epoch string) Event {
	ev.Sequence, ev.Epoch = padded(seq), epoch
	return ev
}

// encode is the line of a journal and the payload of a message: JSON without
// the escapes that only HTML needs.
func encode(v any) ([]byte, error) {
	var w bytes.Buffer
	e := json.NewEncoder(&w)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(w.Bytes(), []byte{'\n'}), nil
}

func (b *Bus) handOut(ev Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deliver(ev)
}

// deliver gives the event to everyone who has room; call with mu held.
func (b *Bus) deliver(ev Event) {
	if len(b.recent) >= 2*recentKept {
		b.recent = append([]Event(nil), b.recent[len(b.recent)-recentKept:]...)
	}
	b.recent = append(b.recent, ev)
	for s := range b.subs {
		select {
		case s.c <- ev:
		default:
			s.dropped++
			b.dropped++
		}
	}
}

// Subscribe returns a channel that holds up to n events, and its end. Emit
// never waits for a subscriber: events that find the channel full are dropped
// for it and counted. The channel is closed by the returned function.
func (b *Bus) Subscribe(n int) (<-chan Event, func()) {
	s := &subscriber{c: make(chan Event, max(n, 1))}
	b.mu.Lock()
	b.subs[s] = struct{}{}
	b.mu.Unlock()
	return s.c, sync.OnceFunc(func() {
		b.mu.Lock()
		delete(b.subs, s)
		b.mu.Unlock()
		close(s.c)
	})
}

// Recent returns the newest n events, oldest first. After a start it begins
// with what the journals still hold.
func (b *Bus) Recent(n int) []Event {
	b.mu.Lock()
	defer b.mu.Unlock()
	n = min(max(n, 0), len(b.recent))
	return append([]Event(nil), b.recent[len(b.recent)-n:]...)
}

// remember fills Recent from the journals.
func (b *Bus) remember() {
	var all []Event
	for _, j := range []*state.Journal{b.o.Crit, b.o.Info} {
		if j == nil {
			continue
		}
		from := uint64(0)
		if last := j.Last(); last > recentKept {
			from = last - recentKept
		}
		recs, err := j.Read(from, recentKept)
		if err != nil {
			b.o.Log.Warn("recent events could not be read back", "error", err)
		}
		for _, r := range recs {
			var ev Event
			if json.Unmarshal(r.Data, &ev) == nil {
				all = append(all, ev)
			}
		}
	}
	slices.SortStableFunc(all, func(x, y Event) int { return x.RecordedTime.Compare(y.RecordedTime) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.recent = append(all[max(0, len(all)-recentKept):], b.recent...)
}

// Counts says how many events subscribers were too slow for, and how many no
// journal took, since the start.
func (b *Bus) Counts() (dropped, failed uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped, b.failed
}

// thingState is the payload of a retained topic.
type thingState struct {
	Station   string          `json:"station"`
	Thing     string          `json:"thing"`
	Time      time.Time       `json:"time"`
	Simulated bool            `json:"simulated"`
	State     json.RawMessage `json:"state"`
}

// SetState keeps v as the last value of a thing (rotator, radio, health,
// next-pass: [a-z0-9-]) for its retained topic. An equal value changes nothing.
func (b *Bus) SetState(thing string, v any) {
	raw, err := encode(v)
	if err != nil {
		b.o.Log.Error("state cannot be encoded", "thing", thing, "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	old := b.states[thing]
	if bytes.Equal(old.value, raw) {
		return
	}
	payload, err := encode(thingState{b.o.Station, thing, stamp(b.o.Clock.Now()), b.o.Simulated, raw})
	if err != nil {
		return // raw was encoded a moment ago
	}
	b.states[thing] = State{JSON: payload, Version: old.Version + 1, value: raw}
	for c := range b.watch {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// States returns the last value of every thing.
func (b *Bus) States() map[string]State {
	b.mu.Lock()
	defer b.mu.Unlock()
	return maps.Clone(b.states)
}

// WatchStates delivers a value after states changed, until the returned
// function is called.
func (b *Bus) WatchStates() (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	b.mu.Lock()
	b.watch[c] = struct{}{}
	b.mu.Unlock()
	return c, func() {
		b.mu.Lock()
		delete(b.watch, c)
		b.mu.Unlock()
	}
}

// Now is the station's time of day.
func (b *Bus) Now() time.Time { return b.o.Clock.Now() }
