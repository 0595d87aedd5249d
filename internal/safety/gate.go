package safety

import (
	"fmt"
	"time"

	"gsd-mcp/internal/unit"
)

// A Mode is the station's mode of work. Local, maintenance and remote exclude
// each other.
type Mode string

// The modes of the contract, section 6.
const (
	ModeStandby Mode = "standby" // first start: nothing moves
	ModeRemote  Mode = "remote"
	ModeOnSite  Mode = "local"
	ModeMaint   Mode = "maintenance"
	ModeEStop   Mode = "estop" // latched
)

// A Verb is what a request would do.
type Verb string

// The verbs that the gate knows. Stop is not among them: it is never refused.
const (
	VerbPoint    Verb = "point"    // a manual move
	VerbPark     Verb = "park"     // to the configured park position
	VerbPrePoint Verb = "prepoint" // to where a pass begins
	VerbTrack    Verb = "track"    // one setpoint of a pass
	VerbTune     Verb = "tune"     // a receiver
	VerbSchedule Verb = "schedule" // writes, moves nothing
)

// Moves reports whether the verb turns the antenna.
func (v Verb) Moves() bool {
	return v == VerbPoint || v == VerbPark || v == VerbPrePoint || v == VerbTrack
}

// Predicted reports whether the verb points by prediction, and so needs a
// clock and elements that can be trusted.
func (v Verb) Predicted() bool { return v == VerbPrePoint || v == VerbTrack }

// A Rank orders those who may hold the motion lease; a higher one takes it.
type Rank int

// Ranks of the contract, section 4: stop over operator over scheduler over agent.
const (
	RankAgent Rank = iota
	RankScheduler
	RankOperator
	RankSafety // the station itself, when it stows
)

// A Lease is the right to move the antenna.
type Lease struct {
	Holder string // session id, or "scheduler"; "" when free
	Who    string // for people
	Rank   Rank
	Until  time.Time // station time; zero: while the holder lives
}

// A Device is what the gate knows of one device.
type Device struct {
	Configured bool
	Present    bool   // its port is open and it answers
	Why        string // when not present
	Fault      Code   // latched; "" when well
	FaultWhy   string
}

// Facts is what is true now. The zero value refuses everything.
type Facts struct {
	Now      time.Time
	Mode     Mode
	ModeWhy  string // owner and reason of the mode
	Held     bool   // after a stop, until resume
	HeldBy   string
	ReadOnly bool
	Durable  bool // intents can be written
	WhyNot   string

	ClockGood bool
	ClockWhy  string
	WindHigh  bool // or its sensor is silent
	WindWhy   string
	PowerLow  bool
	PowerWhy  string

	Rotator   Device
	Radio     Device
	Position  unit.AzEl // mechanical, unwrapped
	SetOnly   bool      // the rotator's controller cannot tell its position
	Measured  bool      // a position has been read since the port was opened
	Age       time.Duration
	Moving    bool
	WindingOK bool // the unwrapped azimuth is known
	Suspect   string
	Lease     Lease
	Sun       *unit.AzEl
}

// An Orbit is what the gate knows of the elements that a request points by.
type Orbit struct {
	NoradID int
	AgeDays float64
	MaxDays float64
	Suspect string // why they contradict earlier ones, or ""
	Decayed string
}

// A Request is what somebody wants done.
type Request struct {
	Verb    Verb
	Holder  string     // session id, or "scheduler"
	Rank    Rank       //
	Target  *unit.AzEl // true direction; for VerbTrack see Mech
	Mech    *unit.AzEl // mechanical position, the winding chosen: pre-point and track
	Orbit   *Orbit
	Already bool // the holder's own motion goes on: only a higher rank ends it
}

// Decide says whether a request may go on: nil, or the first rule against it.
// It is asked on admission and again by the device's owner on fresh facts.
func Decide(r *Rules, f Facts, q Request) *Refusal {
	_, ref := Way(r, f, q)
	return ref
}

// Way is the proved route of a request that Decide allows, or the refusal. A
// request that moves nothing has no route.
func Way(r *Rules, f Facts, q Request) (Route, *Refusal) {
	if ref := decideAround(r, f, q); ref != nil || !q.Verb.Moves() {
		return Route{}, ref
	}
	return way(r, f, q)
}

// decideAround asks everything but the way itself.
func decideAround(r *Rules, f Facts, q Request) *Refusal {
	if ref := decideStation(f, q); ref != nil {
		return ref
	}
	switch {
	case q.Verb == VerbTune:
		return decideDevice("radio", f.Radio)
	case q.Verb == VerbSchedule:
		return nil
	case !q.Verb.Moves():
		return Refuse(NotPermitted, "use one of the documented commands", "the safety gate knows no request %q", unit.Printable(string(q.Verb), 32))
	}
	if err := r.Validate(); err != nil {
		return Refuse(DeviceAbsent, "correct station.toml, then run: gsd-mcp config check", "the rotator's limits make no sense: %v", err)
	}
	if ref := decideDevice("rotator", f.Rotator); ref != nil {
		return ref
	}
	if ref := LeaseFree(f.Lease, f.Now, q.Holder, q.Rank); ref != nil {
		return ref
	}
	if q.Verb.Predicted() {
		if ref := PredictionGood(f, q.Orbit); ref != nil {
			return ref
		}
	}
	if ref := decideFeedback(r, f); ref != nil {
		return ref
	}
	if r.SunSeparationDeg > 0 && f.Sun == nil {
		return Refuse(Sun, "check the clock, then read get_station_health", "this antenna must stay %.1f° away from the sun, and where the sun is is not known", r.SunSeparationDeg)
	}
	return nil
}

func way(r *Rules, f Facts, q Request) (Route, *Refusal) {
	switch {
	case q.Verb == VerbTrack && q.Mech != nil:
		// A setpoint of a pass that was proved whole: the step itself is checked,
		// not a detour, since the antenna must stay on the satellite.
		if ref := r.Allowed(*q.Mech, f.Sun); ref != nil {
			return Route{}, ref
		}
		if ref := r.checkPath(f.Position, []unit.AzEl{*q.Mech}, f.Sun); ref != nil {
			return Route{}, ref
		}
		return Route{[]unit.AzEl{*q.Mech}, r.SlewTime(f.Position, *q.Mech)}, nil
	case q.Mech != nil:
		return r.RouteTo(f.Position, *q.Mech, f.Sun)
	case q.Target != nil:
		route, ref := r.Route(f.Position, *q.Target, f.Sun)
		if ref != nil && q.Verb == VerbPoint && !q.Already { // a running move is stopped, not explained
			ref.Nearest = r.NearestAllowed(f.Position, *q.Target, f.Sun)
		}
		return route, ref
	}
	return Route{}, Refuse(AzimuthLimit, "give a direction", "the request names no direction")
}

func decideStation(f Facts, q Request) *Refusal {
	switch {
	case f.ReadOnly:
		return Refuse(ReadOnly, "use a station or a session that may write", "this station is read-only: it answers questions and stops, nothing else")
	case f.Mode == ModeEStop:
		return Refuse(EStop, "let a supervisor look at the station and run: gsd-mcp reset", "the emergency stop is latched%s", because(f.ModeWhy))
	case !f.Durable:
		return Refuse(StateNotDurable, "free disk space or replace the card, then read get_station_health", "the intent could not be written down%s", because(f.WhyNot))
	case q.Verb == VerbSchedule:
		return nil
	case f.Mode == ModeOnSite:
		return Refuse(ModeLocal, "ask the person at the station to run: gsd-mcp mode remote", "the station is under local control%s", because(f.ModeWhy))
	case f.Mode == ModeMaint:
		return Refuse(ModeMaintenance, "wait until its owner ends it", "the station is in maintenance%s", because(f.ModeWhy))
	case f.Mode != ModeRemote: // standby, and anything unknown
		return Refuse(Standby, "a supervisor runs: gsd-mcp mode remote", "the station is in standby%s", because(f.ModeWhy))
	case f.Held:
		return Refuse(HeldAfterStop, "an operator makes sure that all is safe and runs: gsd-mcp resume", "the station was stopped%s and holds", because(f.HeldBy))
	case f.WindHigh && q.Verb.Moves() && q.Verb != VerbPark: // parking is what the wind asks for
		return Refuse(Wind, "wait until the wind has been below its limit, then read get_station_health", "the wind forbids motion%s", because(f.WindWhy))
	case f.PowerLow && q.Verb.Moves():
		return Refuse(PowerLow, "check the power supply, then read get_station_health", "the supply voltage is too low for new motion%s", because(f.PowerWhy))
	}
	return nil
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func decideDevice(name string, d Device) *Refusal {
	switch {
	case !d.Configured:
		return Refuse(DeviceAbsent, "add ["+name+"] to station.toml", "no %s is configured", name)
	case d.Fault != "":
		code := DeviceFault
		if d.Fault == Stalled || d.Fault == FeedbackSuspect {
			code = d.Fault
		}
		return Refuse(code, "look at the "+name+", then an operator runs: gsd-mcp reset "+string(d.Fault), "the %s has the latched fault %s: %s", name, d.Fault, d.FaultWhy)
	case !d.Present:
		return Refuse(DeviceAbsent, "check its cable, power and port, then read get_station_health", "the %s does not answer%s", name, because(d.Why))
	}
	return nil
}

// LeaseFree says whether a holder of a rank may have the lease: nil, or who has
// it. A lease that ran out and was not cleared yet is free.
func LeaseFree(l Lease, now time.Time, holder string, rank Rank) *Refusal {
	if l.Holder == "" || l.Holder == holder || rank > l.Rank {
		return nil
	}
	if !l.Until.IsZero() && !now.Before(l.Until) {
		return nil
	}
	ref := Refuse(LeaseHeld, "wait until the lease ends, or ask its holder", "%s is moving the antenna", l.Who)
	if !l.Until.IsZero() {
		ref.Why = fmt.Sprintf("%s has just moved the antenna and keeps it until %s", l.Who, l.Until.UTC().Format("15:04:05Z"))
		ref.Extra = map[string]any{"retry_after_s": max(1, int(l.Until.Sub(now).Seconds()+0.5))}
	}
	return ref
}

// PredictionGood says whether pointing by prediction is allowed: the clock and
// the elements can be trusted.
func PredictionGood(f Facts, o *Orbit) *Refusal {
	if !f.ClockGood {
		return Refuse(ClockUntrusted, "check the network and: chronyc tracking; an operator can point by hand meanwhile", "the station does not trust its clock%s", because(f.ClockWhy))
	}
	switch {
	case o == nil:
		return Refuse(SatelliteUnknown, "import its elements", "no elements of the satellite are known")
	case o.Decayed != "":
		return Refuse(SatelliteDecayed, "choose another satellite", "satellite %d: %s", o.NoradID, o.Decayed)
	case o.Suspect != "":
		return Refuse(ElementsSuspect, "compare sources, then import the right set", "the elements of satellite %d are suspect: %s", o.NoradID, o.Suspect)
	case !(o.AgeDays <= o.MaxDays):
		ref := Refuse(ElementsTooOld, "run: gsd-mcp elements refresh, or import a newer file", "the elements of satellite %d are %.1f days old, the limit for its orbit is %.0f days", o.NoradID, o.AgeDays, o.MaxDays)
		ref.Limits = map[string]any{"max_age_days": o.MaxDays}
		return ref
	case !(o.AgeDays >= -o.MaxDays):
		return Refuse(ElementsSuspect, "check the clock, then import newer elements", "the elements of satellite %d are for %.1f days from now", o.NoradID, -o.AgeDays)
	}
	return nil
}

func decideFeedback(r *Rules, f Facts) *Refusal {
	limit := r.FeedbackIdle
	if f.Moving {
		limit = r.FeedbackMoving
	}
	switch {
	case f.SetOnly:
		return Refuse(FeedbackStale, "use a controller with position feedback; the stop works all the same", "this controller cannot tell its position, and an antenna that nobody sees is not moved")
	case !f.Measured:
		return Refuse(FeedbackStale, "check the rotator, then read get_antenna", "no position has been read from the rotator yet")
	case f.Suspect != "":
		return Refuse(FeedbackSuspect, "look at the mount, then an operator runs: gsd-mcp reset FEEDBACK_SUSPECT", "the position readings cannot be true: %s", f.Suspect)
	case f.Age < 0:
		return Refuse(FeedbackStale, "read get_antenna", "the last position reading is dated %.1f s ahead of now", -f.Age.Seconds())
	case !(f.Age <= limit):
		return Refuse(FeedbackStale, "check the rotator's cable and power, then read get_antenna", "the last position reading is %.1f s old, the limit is %.1f s", f.Age.Seconds(), limit.Seconds())
	case !f.WindingOK:
		return Refuse(WrapUnknown, "let a person look at the cables at the mast and run: gsd-mcp antenna confirm-winding", "the cable winding is not known since the last restart")
	}
	return r.plausible(f.Position)
}
