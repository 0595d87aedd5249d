// Package station is the only way to move anything: every command goes through
// Do, passes the gate twice, and ends at the one owner of its device. It keeps
// the order of the audit (the intent is durable before the first byte), the
// motion lease, the mode and the hold after a stop.
package station

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// A Verb is what a command would do.
type Verb string

// The verbs of Do. Stop has a method of its own: it never waits for anything.
const (
	VerbPoint    Verb = "point"
	VerbPark     Verb = "park"
	VerbTune     Verb = "tune"
	VerbSchedule Verb = "schedule"
	VerbCancel   Verb = "cancel"
	VerbResume   Verb = "resume"
	VerbMode     Verb = "mode"
	VerbReset    Verb = "reset"
	VerbWinding  Verb = "confirm-winding"
	VerbPass     Verb = "pass" // the scheduler works a pass
	VerbStop     Verb = "stop" // audit lines only
)

// A Trust is what is thought of the clock.
type Trust struct {
	Good  bool
	State string // synced, holdover, unsynced, unknown, simulated
	Why   string
}

// An Auditor writes one durable line; state.Audit is one.
type Auditor interface {
	Append(rec any) (seq uint64, err error)
}

// Orbits finds the orbit of a satellite and what the gate should know of it.
type Orbits interface {
	Orbit(noradID int) (*passes.Orbit, *safety.Orbit)
}

// Options are what a station is made of. Bus, Store, Audit, Clock and Orbits
// are needed.
type Options struct {
	Clock        *clock.Clock
	Site         unit.Site
	Rules        safety.Rules
	BeamwidthDeg float64
	Park         unit.AzEl       // true direction
	Rotator      *RotatorOptions // nil: none is configured
	Radio        *RadioOptions
	Store        Store
	Audit        Auditor
	Bus          *event.Bus
	Orbits       Orbits
	Trust        func() Trust
	Power        func() (low bool, why string)  // nil: not fitted
	Durable      func() error                   // nil: always
	Wind         func() (high bool, why string) // nil: not fitted
	BootID       string
	Simulated    bool
	ReadOnly     bool
	AgentBudget  Budget
	Log          hclog.Logger
}

const modeFile = "mode.json"

type modeState struct {
	Version int         `json:"version"`
	Mode    safety.Mode `json:"mode"`
	Why     string      `json:"why"`
	Held    bool        `json:"held"`
	HeldBy  string      `json:"held_by"`
	Since   time.Time   `json:"since"`
}

// A Station owns the devices and decides. It is safe for concurrent use.
type Station struct {
	o      Options
	log    hclog.Logger
	rot    *rotatorOwner
	rad    *radioOwner
	leases leases
	guards *guards
	queue  *queue

	mu       sync.Mutex
	mode     modeState
	winding  windingState
	hasWind  bool
	sunAt    time.Time
	sun      *unit.AzEl
	stopping func(state, code, reason string) // ends the pass that runs
	pass     *passView
	manual   *manual // the last one, under way or over
	told     map[toldKey]told
	diskErr  error
	observe  func(at time.Time, mech unit.AzEl)
	starting int  // moves about to begin
	saving   turn // orders the writes of state
	changed  func(thing string)
}

// New makes a station from its state on disk. It touches no hardware: Run
// does. note says what was repaired.
func New(o Options) (s *Station, note string, err error) {
	if err := o.Rules.Validate(); err != nil {
		return nil, "", fmt.Errorf("the mount's limits: %w", err)
	}
	if o.Log == nil {
		o.Log = hclog.NewNullLogger()
	}
	s = &Station{o: o, log: o.Log.Named("station"), queue: newQueue(), saving: newTurn(), changed: func(string) {}}
	s.leases.now = o.Clock.Now
	if s.guards, note, err = openGuards(o.Store, o.Clock.Now); err != nil {
		return nil, note, err
	}
	load := func(name string, v any) (found bool, err error) {
		n, err := o.Store.Load(name, v)
		if n != "" {
			note += n + "; "
		}
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		return err == nil, err
	}
	found, err := load(modeFile, &s.mode)
	if err != nil { // unknown mode: nothing moves until a person says so
		note += fmt.Sprintf("the mode could not be read (%v): standby; ", err)
		s.mode = modeState{Mode: safety.ModeStandby, Why: "its state could not be read"}
	} else if !found {
		s.mode = modeState{Mode: safety.ModeStandby, Why: "first start", Since: o.Clock.Now()}
		if o.Simulated {
			s.mode = modeState{Mode: safety.ModeRemote, Why: "simulated station", Since: o.Clock.Now()}
		}
	}
	if s.hasWind, err = load(windingFile, &s.winding); err != nil {
		note += fmt.Sprintf("the winding could not be read (%v); ", err)
		s.hasWind = false
	}
	if o.Rotator != nil {
		s.o.Park = s.reach(o.Park)
		s.rot = newRotatorOwner(*o.Rotator, o.Clock, &s.o.Rules, rotatorHooks{
			facts: s.facts, holds: s.leases.held, reading: s.reading, state: s.antennaState, fault: s.antennaFault, stood: s.stood, restore: s.restore,
		})
	}
	note += s.restoreFaults()
	if o.Radio != nil {
		s.rad = newRadioOwner(*o.Radio, o.Clock, s.facts)
	}
	return s, note, nil
}

// OnChange is told of things that changed (antenna, radio, health, schedule),
// for subscribers. It must not block. Call it before Run.
func (s *Station) OnChange(f func(thing string)) { s.changed = f }

// Run owns the devices until ctx ends; then it halts them and returns.
func (s *Station) Run(ctx context.Context) {
	var wg sync.WaitGroup
	if s.rot != nil {
		wg.Go(func() { s.rot.run(ctx) })
	}
	if s.rad != nil {
		wg.Go(func() { s.rad.run(ctx) })
	}
	qctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan struct{})
	go func() { defer close(done); s.queue.run(qctx) }()
	wg.Wait()
	cancel() // after the owners: their last words are written too
	<-done
}

// Clock is the station's clock.
func (s *Station) Clock() *clock.Clock { return s.o.Clock }

// Site is where the station stands.
func (s *Station) Site() unit.Site { return s.o.Site }

// Rules are the fixed limits of the gate.
func (s *Station) Rules() *safety.Rules { return &s.o.Rules }

// Simulated reports whether nothing here is real.
func (s *Station) Simulated() bool { return s.o.Simulated }

// Mode is the mode, why, and whether the station holds after a stop.
func (s *Station) Mode() (mode safety.Mode, why string, held bool, heldBy string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode.Mode, s.mode.Why, s.mode.Held, s.mode.HeldBy
}

// saveMode writes the mode as it is now: a write that waited for the disk cannot
// undo a newer one.
func (s *Station) saveMode() error {
	defer s.saving.take()()
	s.mu.Lock()
	m := s.mode
	s.mu.Unlock()
	return s.o.Store.Save(modeFile, m)
}

// facts is what is true now, for the gate.
func (s *Station) facts() safety.Facts {
	now := s.o.Clock.Now()
	s.mu.Lock()
	f := safety.Facts{Now: now, Mode: s.mode.Mode, ModeWhy: s.mode.Why, Held: s.mode.Held, HeldBy: s.mode.HeldBy,
		ReadOnly: s.o.ReadOnly, Durable: s.diskErr == nil}
	if s.diskErr != nil {
		f.WhyNot = s.diskErr.Error()
	}
	if s.o.Rules.SunSeparationDeg > 0 {
		if s.sun == nil || now.Sub(s.sunAt).Abs() > 30*time.Second { // it moves 0.13° in that time
			sun := passes.Sun(s.o.Site, now)
			s.sun, s.sunAt = &sun, now
		}
		f.Sun = s.sun
	}
	s.mu.Unlock()
	if s.o.Durable != nil && f.Durable {
		if err := s.o.Durable(); err != nil {
			f.Durable, f.WhyNot = false, err.Error()
		}
	}
	t := s.o.Trust()
	f.ClockGood, f.ClockWhy = t.Good, t.Why
	if s.o.Power != nil {
		f.PowerLow, f.PowerWhy = s.o.Power()
	}
	if s.o.Wind != nil {
		f.WindHigh, f.WindWhy = s.o.Wind()
	}
	f.Lease = s.leases.current()
	if s.rot != nil {
		v, age := s.rot.View()
		f.Rotator = safety.Device{Configured: true, Present: v.present, Why: v.why, Fault: v.fault, FaultWhy: v.faultWhy}
		f.Position, f.Measured, f.Age, f.Moving, f.WindingOK, f.Suspect = v.mech, v.measured, age, v.moving, v.windingOK, v.suspect
		f.SetOnly = s.rot.setOnly()
	}
	if s.rad != nil {
		v, _ := s.rad.View()
		f.Radio = safety.Device{Configured: true, Present: v.present, Why: v.why, Fault: v.fault, FaultWhy: v.faultWhy}
	}
	return f
}

// Facts is what the gate would decide on now, for dry runs and health.
func (s *Station) Facts() safety.Facts { return s.facts() }

// author is created_by of what a caller causes.
func author(c Caller) event.Author {
	return event.Author{Kind: c.Kind(), UID: c.UID, User: c.User, Client: c.Client, Session: c.Session, Request: c.Request, Trace: c.Trace}
}

// Author is created_by of what a caller causes.
func (c Caller) Author() event.Author { return author(c) }

// emit records an event without waiting for a disk: from owners and loops.
func (s *Station) emit(about event.About, d event.Data) {
	about.Time = s.o.Clock.Now()
	s.queue.put(func() {
		if _, err := s.o.Bus.Emit(context.Background(), about, d); err != nil {
			s.disk(err)
		}
	})
}

// disk notes that something could not be written: nothing is actuated until a
// later write goes well.
func (s *Station) disk(err error) {
	s.mu.Lock()
	was := s.diskErr
	s.diskErr = err
	s.mu.Unlock()
	if (was == nil) != (err == nil) {
		s.changed("health")
		if err != nil {
			s.log.Error("state could not be written", "error", err)
		}
	}
}

// ProbeDisk tries to write and clears an earlier error of the disk when that
// works. Call it now and then.
func (s *Station) ProbeDisk(probe func() error) {
	s.disk(probe())
}

type auditRecord struct {
	What    string          `json:"what"` // intent, result, refused, stop
	Command string          `json:"command_id"`
	Verb    Verb            `json:"verb"`
	By      event.Author    `json:"created_by"`
	Role    string          `json:"role"`
	Args    any             `json:"args,omitempty"`
	Code    safety.Code     `json:"code,omitempty"`
	Outcome string          `json:"outcome,omitempty"`
	Detail  string          `json:"detail,omitempty"`
	Intent  uint64          `json:"intent_seq,omitempty"`
	Station safety.Mode     `json:"mode"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// intent writes the audit line that must be durable before the first byte.
func (s *Station) intent(c Command) (uint64, *safety.Refusal) {
	mode, _, _, _ := s.Mode()
	seq, err := s.o.Audit.Append(auditRecord{What: "intent", Command: c.ID, Verb: c.Verb, By: author(c.Caller), Role: c.Caller.Role.String(), Args: c.Args, Station: mode})
	if err != nil {
		s.disk(err)
		return 0, safety.Refuse(safety.StateNotDurable, "free disk space or replace the card, then read get_station_health", "the intent could not be written down: %v", err)
	}
	return seq, nil
}

// result writes what came of a command, off the caller's way.
func (s *Station) result(c Command, seq uint64, outcome, detail string, took time.Duration) {
	mode, _, _, _ := s.Mode()
	rec := auditRecord{What: "result", Command: c.ID, Verb: c.Verb, By: author(c.Caller), Role: c.Caller.Role.String(), Outcome: outcome, Detail: detail, Intent: seq, Station: mode}
	s.queue.put(func() {
		if _, err := s.o.Audit.Append(rec); err != nil {
			s.disk(err)
		}
	})
	by := author(c.Caller)
	s.emit(event.About{Subject: "command/" + c.ID, Correlation: c.ID, Trace: c.Caller.Trace, Author: &by},
		event.ActuationDone{CommandID: c.ID, Verb: string(c.Verb), Outcome: outcome, Detail: detail, DurationS: took.Seconds()})
}

// refused writes and publishes a refusal.
func (s *Station) refused(c Command, ref *safety.Refusal) {
	if c.Stream {
		var now bool
		if ref, now = s.tell(c.Caller.UID, ref); !now {
			return
		}
	}
	mode, _, _, _ := s.Mode()
	rec := auditRecord{What: "refused", Command: c.ID, Verb: c.Verb, By: author(c.Caller), Role: c.Caller.Role.String(), Args: c.Args, Code: ref.Code, Detail: ref.Why, Station: mode}
	s.queue.put(func() {
		if _, err := s.o.Audit.Append(rec); err != nil {
			s.disk(err)
		}
	})
	by := author(c.Caller)
	s.emit(event.About{Subject: "command/" + c.ID, Correlation: c.ID, Trace: c.Caller.Trace, Author: &by},
		event.ActuationRefused{CommandID: c.ID, Verb: string(c.Verb), Code: string(ref.Code), Why: ref.Why, Fix: ref.Fix})
}

func newCommandID() string {
	var b [8]byte
	rand.Read(b[:])
	return "cmd-" + hex.EncodeToString(b[:])
}

// --- hooks of the rotator's owner: none may block ---

func (s *Station) reading(at time.Time, mech unit.AzEl) {
	s.mu.Lock()
	f := s.observe
	s.mu.Unlock()
	if f != nil {
		f(at, mech)
	}
	s.remark(mech)
	s.changed("antenna")
}

func (s *Station) antennaState(from, to AntennaState, why string) {
	s.emit(event.About{Subject: "antenna"}, event.AntennaState{From: string(from), To: string(to), Reason: why})
	s.changed("antenna")
}
