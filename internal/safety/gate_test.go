package safety

import (
	"math"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/unit"
)

var noon = time.Date(2026, 8, 12, 12, 0, 0, 0, time.UTC)

// station is a plain station: 0..450 by 0..90, a mask of 5°, a mast.
func station() *Rules {
	return &Rules{
		Travel:     Travel{AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 90},
		MarginDeg:  1,
		Horizon:    unit.FlatHorizon(5),
		Zones:      []Zone{{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMinDeg: 0, ElMaxDeg: 40, Reason: "the mast"}},
		AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 6,
		FeedbackMoving: 2 * time.Second, FeedbackIdle: 10 * time.Second,
	}
}

// well is a station with nothing wrong, its antenna at az 90, el 30.
func well() Facts {
	return Facts{
		Now: noon, Mode: ModeRemote, Durable: true, ClockGood: true,
		Rotator: Device{Configured: true, Present: true}, Radio: Device{Configured: true, Present: true},
		Position: unit.AzEl{AzDeg: 90, ElDeg: 30}, Measured: true, Age: time.Second, WindingOK: true,
	}
}

func dir(az, el float64) *unit.AzEl { return &unit.AzEl{AzDeg: az, ElDeg: el} }

func freshOrbit() *Orbit { return &Orbit{NoradID: 25544, AgeDays: 1, MaxDays: 3} }

func point(az, el float64) Request {
	return Request{Verb: VerbPoint, Holder: "s1", Rank: RankOperator, Target: dir(az, el)}
}

func track(az, el float64) Request {
	return Request{Verb: VerbTrack, Holder: "scheduler", Rank: RankScheduler, Mech: dir(az, el), Orbit: freshOrbit()}
}

func TestGateAllowsAWellStation(t *testing.T) {
	for _, q := range []Request{
		point(100, 40), track(91, 31),
		{Verb: VerbPark, Target: dir(0, 80)},
		{Verb: VerbPrePoint, Mech: dir(20, 10), Orbit: freshOrbit()},
		{Verb: VerbTune}, {Verb: VerbSchedule},
	} {
		if ref := Decide(station(), well(), q); ref != nil {
			t.Errorf("Decide(%s) = %v, want allowed", q.Verb, ref)
		}
	}
}

// Each code has a case that trips it and the nearest one that does not.
func TestGateCodes(t *testing.T) {
	nan := math.NaN()
	sunny := func(r *Rules) { r.SunSeparationDeg = 5 }
	tests := []struct {
		name  string
		code  Code // "" for the neighbour that is allowed
		rules func(*Rules)
		facts func(*Facts)
		q     Request
	}{
		{"azimuth over the end", AzimuthLimit, func(r *Rules) { r.Travel.AzMaxDeg = 300 }, nil, point(299.2, 30)},
		{"azimuth at the margin", "", func(r *Rules) { r.Travel.AzMaxDeg = 300 }, nil, point(299, 30)},
		{"azimuth is not a number", AzimuthLimit, nil, nil, point(nan, 30)},
		{"azimuth is infinite", AzimuthLimit, nil, nil, point(math.Inf(1), 30)},
		{"elevation is not a number", AzimuthLimit, nil, nil, point(90, nan)},
		{"tracking to not a number", AzimuthLimit, nil, nil, track(nan, 30)},
		{"huge azimuth is taken round the circle", "", nil, nil, point(360e6+100, 40)},
		{"elevation over the top", ElevationLimit, nil, nil, point(90, 89.2)},
		{"elevation at the margin", "", nil, nil, point(90, 89)},
		{"below the mask", ElevationBelowMask, nil, nil, point(90, 4.9)},
		{"on the mask", "", nil, nil, point(90, 5)},
		{"in the mast", KeepOut, nil, nil, point(180, 39.9)},
		{"on top of the mast", "", nil, nil, point(180, 40)},
		{"beside the mast", "", nil, nil, point(170, 20)},
		{"a step through the mast", KeepOut, nil, func(f *Facts) { f.Position = *dir(165, 20) }, track(195, 20)},
		{"a step beside the mast", "", nil, func(f *Facts) { f.Position = *dir(165, 20) }, track(168, 20)},
		{"at the sun", Sun, sunny, func(f *Facts) { f.Sun = dir(100, 40) }, point(100, 44.9)},
		{"beside the sun", "", sunny, func(f *Facts) { f.Sun = dir(100, 40) }, point(100, 45.1)},
		{"the sun does not matter", "", nil, func(f *Facts) { f.Sun = dir(100, 40) }, point(100, 44)},
		{"the sun is down", "", func(r *Rules) { r.SunSeparationDeg = 7 }, func(f *Facts) { f.Sun = dir(100, -1.1) }, point(100, 5)},
		{"the sun is up by a hair", Sun, func(r *Rules) { r.SunSeparationDeg = 6 }, func(f *Facts) { f.Sun = dir(100, -0.9) }, point(100, 5)},
		{"where the sun is is not known", Sun, sunny, nil, point(100, 40)},
		{"the sun's place is not a number", Sun, sunny, func(f *Facts) { f.Sun = dir(nan, nan) }, point(100, 40)},
		{"winding not known", WrapUnknown, nil, func(f *Facts) { f.WindingOK = false }, point(100, 40)},
		{"power low", PowerLow, nil, func(f *Facts) { f.PowerLow = true }, point(100, 40)},
		{"power low: tuning is no motion", "", nil, func(f *Facts) { f.PowerLow = true }, Request{Verb: VerbTune}},
		{"wind", Wind, nil, func(f *Facts) { f.WindHigh, f.WindWhy = true, "22 m/s" }, track(91, 31)},
		{"wind: parking is what it asks for", "", nil, func(f *Facts) { f.WindHigh = true }, Request{Verb: VerbPark, Target: dir(0, 80)}},
		{"wind: tuning is no motion", "", nil, func(f *Facts) { f.WindHigh = true }, Request{Verb: VerbTune}},
		{"clock not trusted", ClockUntrusted, nil, func(f *Facts) { f.ClockGood = false }, track(91, 31)},
		{"clock not trusted: by hand", "", nil, func(f *Facts) { f.ClockGood = false }, point(91, 31)},
		{"elements old", ElementsTooOld, nil, nil, withOrbit(Orbit{AgeDays: 3.01, MaxDays: 3})},
		{"elements almost old", "", nil, nil, withOrbit(Orbit{AgeDays: 2.99, MaxDays: 3})},
		{"elements of no age", ElementsTooOld, nil, nil, withOrbit(Orbit{AgeDays: nan, MaxDays: 3})},
		{"elements without a limit", ElementsTooOld, nil, nil, withOrbit(Orbit{AgeDays: 1, MaxDays: nan})},
		{"elements from the future", ElementsSuspect, nil, nil, withOrbit(Orbit{AgeDays: -3.01, MaxDays: 3})},
		{"elements from tomorrow", "", nil, nil, withOrbit(Orbit{AgeDays: -1, MaxDays: 3})},
		{"elements suspect", ElementsSuspect, nil, nil, withOrbit(Orbit{AgeDays: 1, MaxDays: 3, Suspect: "B* jumped"})},
		{"no elements", SatelliteUnknown, nil, nil, Request{Verb: VerbTrack, Mech: dir(91, 31)}},
		{"decayed", SatelliteDecayed, nil, nil, withOrbit(Orbit{AgeDays: 1, MaxDays: 3, Decayed: "radius below the Earth's"})},
		{"no reading", FeedbackStale, nil, func(f *Facts) { f.Measured = false }, point(100, 40)},
		{"old reading, idle", FeedbackStale, nil, func(f *Facts) { f.Age = 10*time.Second + 1 }, point(100, 40)},
		{"fresh enough, idle", "", nil, func(f *Facts) { f.Age = 10 * time.Second }, point(100, 40)},
		{"old reading, moving", FeedbackStale, nil, func(f *Facts) { f.Age, f.Moving = 2*time.Second+1, true }, point(100, 40)},
		{"fresh enough, moving", "", nil, func(f *Facts) { f.Age, f.Moving = 2*time.Second, true }, point(100, 40)},
		{"reading from the future", FeedbackStale, nil, func(f *Facts) { f.Age = -1 }, point(100, 40)},
		{"reading suspect", FeedbackSuspect, nil, func(f *Facts) { f.Suspect = "jumped by 90°" }, point(100, 40)},
		{"reading not a number", FeedbackSuspect, nil, func(f *Facts) { f.Position.AzDeg = nan }, point(100, 40)},
		{"reading infinite", FeedbackSuspect, nil, func(f *Facts) { f.Position.ElDeg = math.Inf(-1) }, point(100, 40)},
		{"reading out of this world", FeedbackSuspect, nil, func(f *Facts) { f.Position.AzDeg = 8388 }, point(100, 40)},
		{"stalled", Stalled, nil, func(f *Facts) { f.Rotator.Fault = Stalled }, point(100, 40)},
		{"suspect, latched", FeedbackSuspect, nil, func(f *Facts) { f.Rotator.Fault = FeedbackSuspect }, point(100, 40)},
		{"other fault", DeviceFault, nil, func(f *Facts) { f.Rotator.Fault = "MOTOR_HOT" }, point(100, 40)},
		{"no rotator", DeviceAbsent, nil, func(f *Facts) { f.Rotator.Configured = false }, point(100, 40)},
		{"rotator silent", DeviceAbsent, nil, func(f *Facts) { f.Rotator.Present = false }, point(100, 40)},
		{"radio fault does not stop the antenna", "", nil, func(f *Facts) { f.Radio = Device{} }, point(100, 40)},
		{"no radio", DeviceAbsent, nil, func(f *Facts) { f.Radio.Configured = false }, Request{Verb: VerbTune}},
		{"radio fault", DeviceFault, nil, func(f *Facts) { f.Radio.Fault = DeviceFault }, Request{Verb: VerbTune}},
		{"somebody else moves it", LeaseHeld, nil, lease("s2", RankOperator, noon.Add(time.Minute)), point(100, 40)},
		{"the lease has ended", "", nil, lease("s2", RankOperator, noon), point(100, 40)},
		{"the lease has no end", LeaseHeld, nil, lease("s2", RankOperator, time.Time{}), point(100, 40)},
		{"its own lease", "", nil, lease("s1", RankOperator, noon.Add(time.Minute)), point(100, 40)},
		{"over the scheduler", "", nil, lease("scheduler", RankScheduler, noon.Add(time.Minute)), point(100, 40)},
		{"a running move after an operator took over", LeaseHeld, nil, lease("s2", RankOperator, noon.Add(time.Minute)),
			Request{Verb: VerbPoint, Holder: "s1", Rank: RankAgent, Already: true, Target: dir(100, 40)}},
		{"local", ModeLocal, nil, func(f *Facts) { f.Mode = ModeOnSite }, point(100, 40)},
		{"local: bookings go on", "", nil, func(f *Facts) { f.Mode = ModeOnSite }, Request{Verb: VerbSchedule}},
		{"maintenance", ModeMaintenance, nil, func(f *Facts) { f.Mode = ModeMaint }, point(100, 40)},
		{"standby", Standby, nil, func(f *Facts) { f.Mode = ModeStandby }, point(100, 40)},
		{"a mode from nowhere", Standby, nil, func(f *Facts) { f.Mode = "REMOTE" }, point(100, 40)},
		{"emergency stop", EStop, nil, func(f *Facts) { f.Mode = ModeEStop }, point(100, 40)},
		{"emergency stop: no bookings", EStop, nil, func(f *Facts) { f.Mode = ModeEStop }, Request{Verb: VerbSchedule}},
		{"held after a stop", HeldAfterStop, nil, func(f *Facts) { f.Held = true }, point(100, 40)},
		{"held: no tuning either", HeldAfterStop, nil, func(f *Facts) { f.Held = true }, Request{Verb: VerbTune}},
		{"read-only", ReadOnly, nil, func(f *Facts) { f.ReadOnly = true }, Request{Verb: VerbSchedule}},
		{"nothing can be written down", StateNotDurable, nil, func(f *Facts) { f.Durable = false }, point(100, 40)},
		{"a verb that the gate does not know", NotPermitted, nil, nil, Request{Verb: "jog", Target: dir(100, 40)}},
		{"no verb", NotPermitted, nil, nil, Request{Target: dir(100, 40)}},
		{"no direction", AzimuthLimit, nil, nil, Request{Verb: VerbPoint}},
		{"limits that make no sense", DeviceAbsent, func(r *Rules) { r.AzSpeedDps = 0 }, nil, point(100, 40)},
		{"a mask that is not a number", DeviceAbsent, func(r *Rules) { r.Horizon = unit.FlatHorizon(nan) }, nil, point(100, 40)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, f := station(), well()
			if tt.rules != nil {
				tt.rules(r)
			}
			if tt.facts != nil {
				tt.facts(&f)
			}
			ref := Decide(r, f, tt.q)
			if got := codeOf(ref); got != tt.code {
				t.Fatalf("Decide = %v, want code %q", ref, tt.code)
			}
			if ref != nil && (strings.TrimSpace(ref.Why) == "" || strings.TrimSpace(ref.Fix) == "") {
				t.Errorf("refusal %+v has no Why or no Fix", ref)
			}
			if _, again := Way(r, f, tt.q); codeOf(again) != tt.code && tt.q.Verb.Moves() {
				t.Errorf("Way = %v, Decide said %q", again, tt.code)
			}
		})
	}
}

func codeOf(ref *Refusal) Code {
	if ref == nil {
		return ""
	}
	return ref.Code
}

func withOrbit(o Orbit) Request {
	q := track(91, 31)
	q.Orbit = &o
	return q
}

func lease(holder string, rank Rank, until time.Time) func(*Facts) {
	return func(f *Facts) { f.Lease = Lease{Holder: holder, Who: "somebody", Rank: rank, Until: until} }
}

// Everything is wrong at once: the reasons come one after another, the gravest
// and most general first, as each is put right.
func TestGateOrderOfReasons(t *testing.T) {
	r := station()
	r.SunSeparationDeg = 5
	f := Facts{Now: noon, ReadOnly: true, Mode: ModeEStop, Held: true, WindHigh: true, PowerLow: true, Position: *dir(math.NaN(), 0), Age: time.Hour,
		Rotator: Device{Fault: Stalled}, Suspect: "frozen"}
	lease("s2", RankOperator, time.Time{})(&f)
	q := track(math.NaN(), 3)
	q.Orbit = nil
	steps := []struct {
		code Code
		fix  func()
	}{
		{ReadOnly, func() { f.ReadOnly = false }},
		{EStop, func() { f.Mode = ModeOnSite }},
		{StateNotDurable, func() { f.Durable = true }},
		{ModeLocal, func() { f.Mode = ModeMaint }},
		{ModeMaintenance, func() { f.Mode = ModeStandby }},
		{Standby, func() { f.Mode = ModeRemote }},
		{HeldAfterStop, func() { f.Held = false }},
		{Wind, func() { f.WindHigh = false }},
		{PowerLow, func() { f.PowerLow = false }},
		{DeviceAbsent, func() { f.Rotator.Configured = true }},
		{Stalled, func() { f.Rotator.Fault = "" }},
		{DeviceAbsent, func() { f.Rotator.Present = true }},
		{LeaseHeld, func() { f.Lease = Lease{} }},
		{ClockUntrusted, func() { f.ClockGood = true }},
		{SatelliteUnknown, func() { q.Orbit = &Orbit{AgeDays: 99, MaxDays: 3, Suspect: "x", Decayed: "y"} }},
		{SatelliteDecayed, func() { q.Orbit.Decayed = "" }},
		{ElementsSuspect, func() { q.Orbit.Suspect = "" }},
		{ElementsTooOld, func() { q.Orbit.AgeDays = 1 }},
		{FeedbackStale, func() { f.Measured = true }},
		{FeedbackSuspect, func() { f.Suspect = "" }},
		{FeedbackStale, func() { f.Age = time.Second }},
		{WrapUnknown, func() { f.WindingOK = true }},
		{FeedbackSuspect, func() { f.Position = *dir(90, 30) }},
		{Sun, func() { f.Sun = dir(200, 20) }},
		{AzimuthLimit, func() { q.Mech.AzDeg = 91 }},
		{ElevationBelowMask, func() { q.Mech.ElDeg = 31 }},
	}
	for i, s := range steps {
		ref := Decide(r, f, q)
		if codeOf(ref) != s.code {
			t.Fatalf("step %d: Decide = %v, want %s", i, ref, s.code)
		}
		s.fix()
	}
	if ref := Decide(r, f, q); ref != nil {
		t.Fatalf("with everything put right, Decide = %v", ref)
	}
}

func TestNothingKnownRefusesEveryMotion(t *testing.T) {
	for _, r := range []*Rules{{}, station()} {
		for _, v := range []Verb{VerbPoint, VerbPark, VerbPrePoint, VerbTrack, VerbTune, VerbSchedule, "", "stow"} {
			for _, q := range []Request{{Verb: v}, {Verb: v, Target: &unit.AzEl{}, Mech: &unit.AzEl{}, Orbit: &Orbit{}, Already: true, Rank: RankOperator}} {
				if ref := Decide(r, Facts{}, q); ref == nil {
					t.Errorf("Decide(%q) with no facts is allowed", v)
				}
			}
		}
	}
}

func TestRanksTakeTheLeaseInOrder(t *testing.T) {
	for holder := RankAgent; holder <= RankOperator; holder++ {
		for asks := RankAgent; asks <= RankOperator; asks++ {
			f := well()
			f.Lease = Lease{Holder: "a", Who: "a", Rank: holder, Until: noon.Add(90 * time.Second)}
			ref := Decide(station(), f, Request{Verb: VerbPoint, Holder: "b", Rank: asks, Target: dir(100, 40)})
			if allowed := ref == nil; allowed != (asks > holder) {
				t.Errorf("rank %d asks while rank %d holds: %v", asks, holder, ref)
			}
			if ref != nil && ref.Extra["retry_after_s"] != 90 {
				t.Errorf("retry_after_s = %v, want 90", ref.Extra["retry_after_s"])
			}
		}
	}
}
