// Package catalogue keeps the station's orbital elements: on disk, from files
// and from HTTP sources. New elements replace old ones only when they can be
// believed. It must never lose good elements to a bad source, and never ask a
// source more often than it allows.
package catalogue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"gsd-mcp/internal/elements"
)

// A Store keeps values durably, all or nothing. *state.Dir is one.
type Store interface {
	Save(name string, v any) error
	Load(name string, v any) (note string, err error)
}

// Names under which the catalogue saves.
const (
	setsName    = "elements.json"
	sourcesName = "element-sources.json"
)

// Options of a catalogue.
type Options struct {
	Store   Store            // nil: nothing is kept
	Client  *http.Client     // nil: no refresh
	Now     func() time.Time // the station's time of day
	Sources []string         // URLs, each asked for itself
	// Interval between two requests to one source; under MinInterval counts as
	// MinInterval.
	Interval  time.Duration
	UserAgent string
	// Base are sets to begin with that are not saved: the embedded snapshot.
	Base []elements.Set
	// Shift is how far a new set moves its satellite along the orbit compared
	// with the old one, at the new epoch; nil: not checked. See passes.Shift.
	Shift func(old, new elements.Set) (time.Duration, error)
	// Changed, when not nil, is called after sets have changed, with their
	// catalogue numbers.
	Changed func(noradIDs []int)
}

// A Held set is one that disagrees with the set in use (hazard S-04). It takes
// its place when a later set agrees with it.
type Held struct {
	Set  elements.Set
	Why  []string
	Seen time.Time
}

// A snapshot is what readers see; it is never changed.
type snapshot struct {
	sets  []elements.Set // by catalogue number
	byID  map[int]int
	names []string // lower case, beside sets
	held  map[int]Held
}

// A Catalogue answers by number and name. It is safe for concurrent use;
// readers never wait for a refresh.
type Catalogue struct {
	o       Options
	current atomic.Pointer[snapshot]
	status  atomic.Pointer[[]SourceStatus]
	writer  chan struct{} // a token: who holds it may change and save sets
	asking  chan struct{} // a token: who holds it may ask sources
}

// saved is the file of sets.
type saved struct {
	Sets []elements.Set `json:"sets"`
	Held map[int]Held   `json:"held,omitempty"`
}

// Open reads the catalogue from the store. A note says what had to be
// repaired. A store without elements is not an error.
func Open(o Options) (c *Catalogue, note string, err error) {
	if o.Now == nil {
		return nil, "", errors.New("element catalogue: no clock")
	}
	o.Interval = max(o.Interval, MinInterval)
	c = &Catalogue{o: o, writer: make(chan struct{}, 1), asking: make(chan struct{}, 1)}
	var s saved
	var sources []SourceStatus
	note = join(load(o.Store, setsName, &s), load(o.Store, sourcesName, &sources))
	newest := map[int]elements.Set{}
	for _, set := range slices.Concat(o.Base, s.Sets) {
		// What was saved was valid; what the disk gives back may not be.
		if set.Validate() != nil {
			continue
		}
		if old, ok := newest[set.NoradID]; !ok || set.Epoch.After(old.Epoch) {
			newest[set.NoradID] = set
		}
	}
	c.publish(newest, s.Held)
	c.setSources(sources)
	return c, note, nil
}

// load reads a value, or leaves it empty and says why: elements can be fetched
// again, and a station without them still stops and parks.
func load(s Store, name string, v any) (note string) {
	if s == nil {
		return ""
	}
	note, err := s.Load(name, v)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		note = join(note, fmt.Sprintf("%s begins empty: %v", name, err))
	}
	return note
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// publish makes a snapshot and shows it to readers.
func (c *Catalogue) publish(sets map[int]elements.Set, held map[int]Held) {
	s := &snapshot{sets: make([]elements.Set, 0, len(sets)), byID: make(map[int]int, len(sets)), held: held}
	for _, set := range sets {
		s.sets = append(s.sets, set)
	}
	slices.SortFunc(s.sets, func(a, b elements.Set) int { return cmp.Compare(a.NoradID, b.NoradID) })
	s.names = make([]string, len(s.sets))
	for i, set := range s.sets {
		s.byID[set.NoradID] = i
		s.names[i] = strings.ToLower(set.Name)
	}
	c.current.Store(s)
}

// Get returns the set of a satellite.
func (c *Catalogue) Get(noradID int) (elements.Set, bool) {
	s := c.current.Load()
	i, ok := s.byID[noradID]
	if !ok {
		return elements.Set{}, false
	}
	return s.sets[i], true
}

// Held returns the newer set of a satellite that is not believed yet.
func (c *Catalogue) Held(noradID int) (Held, bool) {
	h, ok := c.current.Load().held[noradID]
	return h, ok
}

// All returns every set, by catalogue number. The caller may keep the slice.
func (c *Catalogue) All() []elements.Set { return slices.Clone(c.current.Load().sets) }

// Find returns up to limit sets that a query means, best first: the number
// itself, the name itself, names that begin with it or have a word that does,
// names that hold it, numbers that begin with it.
func (c *Catalogue) Find(query string, limit int) []elements.Set {
	q := strings.ToLower(strings.TrimSpace(query))
	if q == "" || limit <= 0 {
		return nil
	}
	s := c.current.Load()
	type hit struct{ rank, i int }
	var hits []hit
	for i, name := range s.names {
		number := strconv.Itoa(s.sets[i].NoradID)
		rank := -1
		switch at := strings.Index(name, q); {
		case number == q:
			rank = 0
		case name == q:
			rank = 1
		case at == 0:
			rank = 2
		case at > 0 && !wordByte(name[at-1]):
			rank = 3
		case at > 0:
			rank = 4
		case strings.HasPrefix(number, q):
			rank = 5
		}
		if rank >= 0 {
			hits = append(hits, hit{rank, i})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(a.rank, b.rank) })
	out := make([]elements.Set, 0, min(limit, len(hits)))
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, s.sets[h.i])
	}
	return out
}

func wordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= '0' && b <= '9' || b >= 0x80
}

// A Report is what one source or file brought.
type Report struct {
	Source    string
	Format    string
	Read      int // usable sets
	New       int // satellites not known before
	Updated   int
	Unchanged int // the same epoch
	Older     int // older than the set in use, which stays
	Held      int // disagree with the set in use, which stays
	Problems  []elements.Problem
}

// String sums the report up in one sentence.
func (r Report) String() string {
	text := fmt.Sprintf("%s: %d sets: %d new, %d updated, %d unchanged", r.Source, r.Read, r.New, r.Updated, r.Unchanged)
	if r.Older > 0 {
		text += fmt.Sprintf(", %d older than those in use", r.Older)
	}
	if r.Held > 0 {
		text += fmt.Sprintf(", %d held back because they jump", r.Held)
	}
	if len(r.Problems) > 0 {
		text += fmt.Sprintf("; %d problems", len(r.Problems))
	}
	return text
}

// ErrNoElements means that a source gave nothing that can be used. What the
// catalogue had stays.
var ErrNoElements = errors.New("no usable orbital elements")

// Import takes the sets of a file or a body into the catalogue and saves it.
// Data without a single usable set is ErrNoElements and changes nothing.
func (c *Catalogue) Import(ctx context.Context, source string, data []byte) (Report, error) {
	r := elements.Parse(source, data)
	report := Report{Source: source, Format: r.Format, Read: len(r.Sets), Problems: r.Problems}
	if len(r.Sets) == 0 {
		why := "it is empty"
		if len(r.Problems) > 0 {
			why = r.Problems[0].String()
		}
		return report, fmt.Errorf("import elements: %w: %s", ErrNoElements, why)
	}
	report, err := c.merge(ctx, report, r.Sets)
	if err != nil {
		return report, fmt.Errorf("import elements: %w", err)
	}
	return report, nil
}

// take waits for a token.
func take(ctx context.Context, token chan struct{}) error {
	select {
	case token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// merge takes new sets in, saves, and only then shows them.
func (c *Catalogue) merge(ctx context.Context, report Report, sets []elements.Set) (Report, error) {
	if err := take(ctx, c.writer); err != nil {
		return report, err
	}
	defer func() { <-c.writer }()
	old := c.current.Load()
	next := make(map[int]elements.Set, len(old.sets))
	for _, s := range old.sets {
		next[s.NoradID] = s
	}
	held := make(map[int]Held, len(old.held))
	for k, v := range old.held {
		held[k] = v
	}
	var changed []int
	for _, s := range sets {
		switch c.judge(s, next, held) {
		case isNew:
			report.New++
		case updated:
			report.Updated++
		case unchanged:
			report.Unchanged++
			continue
		case older:
			report.Older++
			continue
		case heldBack:
			report.Held++
			continue
		}
		next[s.NoradID] = s
		delete(held, s.NoradID)
		changed = append(changed, s.NoradID)
	}
	if c.o.Store != nil && len(changed)+report.Held > 0 {
		file := saved{Held: held, Sets: make([]elements.Set, 0, len(next))}
		for _, s := range next {
			file.Sets = append(file.Sets, s)
		}
		slices.SortFunc(file.Sets, func(a, b elements.Set) int { return cmp.Compare(a.NoradID, b.NoradID) })
		if err := c.o.Store.Save(setsName, file); err != nil {
			return report, fmt.Errorf("save the element catalogue: %w", err)
		}
	}
	c.publish(next, held)
	if len(changed) > 0 && c.o.Changed != nil {
		slices.Sort(changed)
		c.o.Changed(slices.Compact(changed))
	}
	return report, nil
}

type verdict int

const (
	isNew verdict = iota
	updated
	unchanged
	older
	heldBack
)

// maxShift is how far along its orbit a new set may move a satellite against
// the old one (hazard S-04).
const maxShift = 60 * time.Second

// judge says what to do with a new set, and notes one that is held back.
func (c *Catalogue) judge(s elements.Set, sets map[int]elements.Set, held map[int]Held) verdict {
	now, ok := sets[s.NoradID]
	if !ok {
		return isNew
	}
	switch {
	case s.Epoch.Equal(now.Epoch):
		return unchanged
	case s.Epoch.Before(now.Epoch):
		return older
	}
	why := c.jumps(now, s)
	if len(why) == 0 {
		return updated
	}
	// Nothing worth holding on to, or a manoeuvre that a second set confirms.
	if !now.Trust(s.Epoch).OK() {
		return updated
	}
	if h, ok := held[s.NoradID]; ok && s.Epoch.After(h.Set.Epoch) && len(c.jumps(h.Set, s)) == 0 {
		return updated
	}
	held[s.NoradID] = Held{Set: s, Why: why, Seen: c.o.Now()}
	return heldBack
}

// jumps lists how a set disagrees with the one before it, and with the clock.
func (c *Catalogue) jumps(before, after elements.Set) []string {
	var why []string
	for _, j := range elements.Compare(before, after) {
		why = append(why, j.What)
	}
	if t := after.Trust(c.o.Now()); t.Suspect {
		why = append(why, t.Why)
	}
	if c.o.Shift != nil && len(why) == 0 {
		d, err := c.o.Shift(before, after)
		switch {
		case err != nil:
			why = append(why, err.Error())
		case d.Abs() > maxShift:
			why = append(why, fmt.Sprintf("the satellite moves by %.0f s along its orbit, more than %.0f", d.Seconds(), maxShift.Seconds()))
		}
	}
	return why
}
