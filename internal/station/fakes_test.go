package station

import (
	"encoding/json"
	"io/fs"
	"sync"
	"testing"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// --- state in memory ---

type memStore struct {
	mu    sync.Mutex
	files map[string][]byte
	err   error
	wait  time.Duration // a slow disk
	world *world
}

func newMemStore() *memStore { return &memStore{files: map[string][]byte{}} }

func (s *memStore) Save(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.mu.Lock()
	wait := s.wait
	s.mu.Unlock()
	if wait > 0 {
		time.Sleep(wait)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	s.files[name] = b
	if s.world != nil {
		s.world.add(note{kind: "save", text: name + " " + string(b)})
	}
	return nil
}

func (s *memStore) Load(name string, v any) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[name]
	if !ok {
		return "", fs.ErrNotExist
	}
	return "", json.Unmarshal(b, v)
}

func (s *memStore) winding() (w windingState) {
	s.Load(windingFile, &w)
	return w
}

func (s *memStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

// --- orbits ---

// skies answers with the embedded elements.
type skies struct {
	clk *clock.Clock

	mu    sync.Mutex
	sets  map[int]elements.Set
	orbit map[int]*passes.Orbit
	age   float64 // added to every set's age, days
}

func newSkies(clk *clock.Clock) *skies {
	s := &skies{clk: clk, sets: map[int]elements.Set{}, orbit: map[int]*passes.Orbit{}}
	for _, e := range elements.Embedded() {
		s.sets[e.NoradID] = e
	}
	return s
}

// Orbit implements Orbits.
func (s *skies) Orbit(norad int) (*passes.Orbit, *safety.Orbit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set, ok := s.sets[norad]
	if !ok {
		return nil, nil
	}
	t := set.Trust(s.clk.Now())
	f := &safety.Orbit{NoradID: norad, AgeDays: t.AgeDays + s.age, MaxDays: 7}
	if s.orbit[norad] == nil {
		o, err := passes.New(set)
		if err != nil {
			f.Decayed = err.Error()
			return nil, f
		}
		s.orbit[norad] = o
	}
	return s.orbit[norad], f
}

// replace gives a satellite other elements.
func (s *skies) replace(norad int, change func(*elements.Set)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := s.sets[norad]
	change(&set)
	s.sets[norad] = set
	delete(s.orbit, norad)
}

// benchWorld is a station whose antenna has been read, outside of any bubble.
func benchWorld(b *testing.B) *Station {
	b.Helper()
	clk := clock.System()
	drv, err := rotator.Lookup("easycomm2")
	if err != nil {
		b.Fatal(err)
	}
	zones := []safety.Zone{{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMinDeg: 0, ElMaxDeg: 25, Reason: "mast"}, {Name: "roof", AzFromDeg: 300, AzToDeg: 350, ElMinDeg: 0, ElMaxDeg: 15, Reason: "roof"}}
	s, _, err := New(Options{Clock: clk, Site: greenwich, Store: newMemStore(), Bus: event.NewBus(event.Options{Station: "bench", Clock: clk}), Trust: func() Trust { return Trust{Good: true} }, Simulated: true,
		Rules: safety.Rules{Travel: safety.Travel{AzMaxDeg: 450, ElMaxDeg: 180}, AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 12, Zones: zones,
			FeedbackMoving: time.Hour, FeedbackIdle: time.Hour, SunSeparationDeg: 5},
		Rotator: &RotatorOptions{Driver: drv, Absolute: true}})
	if err != nil {
		b.Fatal(err)
	}
	s.rot.view = rotatorView{present: true, measured: true, windingOK: true, mech: unit.AzEl{AzDeg: 120, ElDeg: 40}}
	return s
}
