// Package schedule keeps which pass is worked when: bookings, conflicts, what
// became of each pass, and what happens to one that was missed. It decides when
// a pass starts and leaves the doing to an Executor; it never moves anything.
package schedule

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/safety"
)

// A State is what has become of a scheduled pass.
type State string

// The states of the contract, section 6. The second line is terminal.
const (
	Proposed  State = "proposed"
	Committed State = "committed"
	Prepass   State = "prepass"
	Acquiring State = "acquiring"
	Tracking  State = "tracking"
	Postpass  State = "postpass"

	Completed State = "completed"
	Partial   State = "partial"
	Failed    State = "failed"
	Missed    State = "missed"
	Cancelled State = "cancelled"
	Stopped   State = "stopped"
	Preempted State = "preempted"
	Refused   State = "refused"
)

// Terminal reports whether the state never changes again.
func (s State) Terminal() bool {
	switch s {
	case Completed, Partial, Failed, Missed, Cancelled, Stopped, Preempted, Refused:
		return true
	}
	return false
}

// Active reports whether the pass is being worked right now.
func (s State) Active() bool {
	return s == Prepass || s == Acquiring || s == Tracking || s == Postpass
}

// Timing of a booking, station time.
const (
	// FreezeBefore is how long before AOS nothing automatic changes a pass.
	FreezeBefore = 10 * time.Minute
	// PrepassLead is when work on a pass begins before AOS: time for the longest
	// slew of a slow mount (450° at 6 °/s is 75 s) and to set up the radio.
	PrepassLead = 2 * time.Minute
	// Gap is kept between two passes for parking and slewing.
	Gap = 90 * time.Second
	// MinUseful is the shortest remainder of a pass worth starting late.
	MinUseful = 30 * time.Second
	// keepDone is how many finished passes the book remembers.
	keepDone = 500
)

// A Record is what was measured in a pass.
type Record struct {
	ErrorP50Deg  float64 `json:"error_p50_deg"`
	ErrorP99Deg  float64 `json:"error_p99_deg"`
	ErrorMaxDeg  float64 `json:"error_max_deg"`
	OffBeamS     float64 `json:"off_beam_s"`
	Samples      int     `json:"samples"`
	Ticks        int     `json:"ticks"`
	LateTicks    int     `json:"late_ticks"`
	DopplerMaxHz int64   `json:"doppler_max_hz"`
	TrackedS     float64 `json:"tracked_s"`
}

// An Entry is one scheduled pass.
type Entry struct {
	ID         string       `json:"scheduled_pass_id"`
	PassID     string       `json:"pass_id"`
	NoradID    int          `json:"norad_id"`
	Satellite  string       `json:"satellite"`
	AOS        time.Time    `json:"aos"`
	TCA        time.Time    `json:"tca"`
	LOS        time.Time    `json:"los"`
	MaxElDeg   float64      `json:"max_elevation_deg"`
	Priority   int          `json:"priority"` // 1 (highest) to 9
	State      State        `json:"state"`
	ReasonCode string       `json:"reason_code,omitempty"`
	Reason     string       `json:"reason,omitempty"`
	Since      time.Time    `json:"since"` // of the state
	Flags      []string     `json:"flags,omitempty"`
	CreatedBy  event.Author `json:"created_by"`
	CreatedAt  time.Time    `json:"created_at"`
	Displaced  []string     `json:"displaced,omitempty"` // bookings that gave way
	Plan       any          `json:"plan,omitempty"`      // the motion plan's verdict
	Record     *Record      `json:"record,omitempty"`
}

// A Store keeps the book across restarts; state.Dir is one.
type Store interface {
	Save(name string, v any) error
	Load(name string, v any) (note string, err error)
}

const fileName = "schedule.json"

type file struct {
	Version int     `json:"version"`
	Entries []Entry `json:"entries"`
}

// A Change tells of one step of one entry.
type Change struct {
	Entry Entry
	From  State // "" for a new entry
}

// A Book holds the scheduled passes. It is safe for concurrent use.
type Book struct {
	store  Store
	now    func() time.Time
	notify func(Change)

	mu      sync.Mutex
	err     error   // of the last write
	entries []Entry // by AOS
	wake    chan struct{}
	cancel  map[string]func(State, string, string) // running passes
}

// Open reads the book from its store. notify is called for every change, in
// order, outside of the book's lock being needed by it: it must not call back
// into the book. The note says what was repaired.
func Open(store Store, now func() time.Time, notify func(Change)) (b *Book, note string, err error) {
	b = &Book{store: store, now: now, notify: notify, wake: make(chan struct{}, 1), cancel: map[string]func(State, string, string){}}
	var f file
	note, err = store.Load(fileName, &f)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, note, fmt.Errorf("read the schedule: %w", err)
	}
	b.entries = f.Entries
	b.sort()
	return b, note, nil
}

func (b *Book) sort() {
	sort.SliceStable(b.entries, func(i, j int) bool { return b.entries[i].AOS.Before(b.entries[j].AOS) })
}

func (b *Book) save() error {
	done := 0
	for i := len(b.entries) - 1; i >= 0; i-- { // newest are kept
		if b.entries[i].State.Terminal() {
			if done++; done > keepDone {
				b.entries = slices.Delete(b.entries, i, i+1)
			}
		}
	}
	b.err = b.store.Save(fileName, file{1, b.entries})
	return b.err
}

// Err is why the book could not be written when it last changed, or nil. What
// the book says is true all the same, but a restart would not know it.
func (b *Book) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err != nil {
		return fmt.Errorf("write the schedule: %w", b.err)
	}
	return nil
}

func (b *Book) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// NewID makes an id for a booking of a pass.
func NewID(passID string) string {
	var r [3]byte
	rand.Read(r[:])
	return "sp-" + passID + "-" + hex.EncodeToString(r[:])
}

// Add books a pass: e needs everything but ID, State, Since and CreatedAt. A
// booking of a better priority (a smaller number) displaces worse ones that are
// not frozen; any other overlap is refused with what stands in the way.
func (b *Book) Add(e Entry) (Entry, *safety.Refusal, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if !now.Before(e.LOS) {
		return Entry{}, safety.Refuse(safety.PassOver, "choose a later pass", "the pass ended at %s", e.LOS.UTC().Format(time.RFC3339)), nil
	}
	if !e.AOS.Before(e.LOS) {
		return Entry{}, nil, fmt.Errorf("book the pass: it ends at %s, not after its start at %s", e.LOS.UTC().Format(time.RFC3339), e.AOS.UTC().Format(time.RFC3339))
	}
	before := slices.Clone(b.entries)
	clash := b.clashes(e.AOS, e.LOS)
	for _, i := range clash {
		c := b.entries[i]
		if c.PassID == e.PassID {
			ref := safety.Refuse(safety.ScheduleConflict, "nothing needs to be done; to change it, cancel it first", "pass %s is already scheduled as %s", e.PassID, c.ID)
			ref.Extra = map[string]any{"scheduled_pass_id": c.ID}
			return Entry{}, ref, nil
		}
		if e.Priority >= c.Priority || c.State.Active() || c.AOS.Sub(now) < FreezeBefore {
			ref := safety.Refuse(safety.ScheduleConflict, "choose another pass, or ask for a higher priority", "the antenna is booked for satellite %d (%s, priority %d) from %s to %s, and %.0f s are needed between two passes",
				c.NoradID, c.ID, c.Priority, c.AOS.UTC().Format("15:04:05Z"), c.LOS.UTC().Format("15:04:05Z"), Gap.Seconds())
			ref.Extra = map[string]any{"conflicts_with": c.ID, "free_from": c.LOS.Add(Gap).UTC().Format(time.RFC3339)}
			return Entry{}, ref, nil
		}
	}
	e.ID, e.State, e.Since, e.CreatedAt = NewID(e.PassID), Committed, now, now
	var changes []Change
	for _, i := range clash {
		c := &b.entries[i]
		e.Displaced = append(e.Displaced, c.ID)
		changes = append(changes, b.set(c, Preempted, "SCHEDULE_CONFLICT", fmt.Sprintf("a pass of satellite %d with priority %d took its place", e.NoradID, e.Priority)))
	}
	b.entries = append(b.entries, e)
	b.sort()
	if err := b.save(); err != nil {
		b.entries = before
		return Entry{}, nil, fmt.Errorf("book the pass: %w", err)
	}
	for _, c := range changes {
		b.notify(c)
	}
	b.notify(Change{Entry: e})
	b.poke()
	return e, nil, nil
}

// clashes lists the open entries that leave less than Gap to an interval.
func (b *Book) clashes(aos, los time.Time) []int {
	var out []int
	for i, e := range b.entries {
		if !e.State.Terminal() && e.AOS.Before(los.Add(Gap)) && aos.Before(e.LOS.Add(Gap)) {
			out = append(out, i)
		}
	}
	return out
}

// Free reports whether the antenna is free for an interval.
func (b *Book) Free(aos, los time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.clashes(aos, los)) == 0
}

func (b *Book) set(e *Entry, s State, code, reason string) Change {
	from := e.State
	e.State, e.ReasonCode, e.Reason, e.Since = s, code, reason, b.now()
	return Change{Entry: *e, From: from}
}

// find gives the index of an entry by its id, or -1.
func (b *Book) find(id string) int {
	return slices.IndexFunc(b.entries, func(e Entry) bool { return e.ID == id })
}

// Move brings an entry into a state. Terminal states never change: a second
// move of a finished pass is an error. mod may add to the entry; nil does not.
func (b *Book) Move(id string, s State, code, reason string, mod func(*Entry)) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := b.find(id)
	if i < 0 {
		return fmt.Errorf("no scheduled pass %q", id)
	}
	e := &b.entries[i]
	if e.State.Terminal() {
		return fmt.Errorf("scheduled pass %s is %s already and cannot become %s", id, e.State, s)
	}
	if e.State == s {
		return nil
	}
	if mod != nil {
		mod(e)
	}
	c := b.set(e, s, code, reason)
	err := b.save()
	b.notify(c)
	if s.Terminal() {
		b.poke()
	}
	return err
}

// Cancel ends an entry that has not finished. A pass that is being worked is
// told to stop and becomes cancelled when it has. automatic callers (agents,
// rules) may not cancel within FreezeBefore of AOS what they do not own.
func (b *Book) Cancel(id, reason string, by event.Author) (Entry, *safety.Refusal, error) {
	b.mu.Lock()
	i := b.find(id)
	if i < 0 {
		b.mu.Unlock()
		return Entry{}, safety.Refuse(safety.PassUnknown, "read list_scheduled_passes for the ids", "there is no scheduled pass %q", id), nil
	}
	e := &b.entries[i]
	if e.State.Terminal() {
		ref := safety.Refuse(safety.PassOver, "nothing needs to be done", "scheduled pass %s is %s already", id, e.State)
		b.mu.Unlock()
		return Entry{}, ref, nil
	}
	if left := e.AOS.Sub(b.now()); by.Kind != "person" && left < FreezeBefore {
		b.mu.Unlock()
		return Entry{}, safety.Refuse(safety.FrozenWindow, "ask an operator to cancel it", "the pass starts in %s and nothing automatic changes a pass within %.0f minutes of AOS", max(left, 0).Round(time.Second), FreezeBefore.Minutes()), nil
	}
	who := by.User
	if who == "" {
		who = fmt.Sprintf("%s %d", by.Kind, by.UID)
	}
	why := "cancelled by " + who
	if reason != "" {
		why += ": " + reason
	}
	if stop := b.cancel[id]; stop != nil {
		out := *e
		b.mu.Unlock()
		stop(Cancelled, "CANCELLED", why)
		return out, nil, nil
	}
	defer b.mu.Unlock()
	before := slices.Clone(b.entries)
	c := b.set(e, Cancelled, "CANCELLED", why)
	if err := b.save(); err != nil {
		b.entries = before
		return Entry{}, nil, fmt.Errorf("cancel the pass: %w", err)
	}
	b.notify(c)
	b.poke()
	return c.Entry, nil, nil
}

// Get gives one entry.
func (b *Book) Get(id string) (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := b.find(id); i >= 0 {
		return b.entries[i], true
	}
	return Entry{}, false
}

// List gives the entries whose pass touches an interval, by AOS. Zero times
// leave that side open.
func (b *Book) List(from, to time.Time) []Entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Entry
	for _, e := range b.entries {
		if (from.IsZero() || !e.LOS.Before(from)) && (to.IsZero() || !e.AOS.After(to)) {
			out = append(out, e)
		}
	}
	return out
}

// Next gives the first entry that is not finished.
func (b *Book) Next() (Entry, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.entries {
		if !e.State.Terminal() {
			return e, true
		}
	}
	return Entry{}, false
}

// Describe is one line for people.
func (e Entry) Describe() string {
	s := fmt.Sprintf("%s %s %s–%s max %.0f° %s", e.ID, e.Satellite, e.AOS.UTC().Format("2006-01-02 15:04:05Z"), e.LOS.UTC().Format("15:04:05Z"), e.MaxElDeg, e.State)
	if e.Reason != "" {
		s += ": " + strings.TrimSuffix(e.Reason, ".")
	}
	return s
}
