package event

import (
	"strings"
	"time"
)

// kind makes a Kind of its name: pass.aos is gsd.pass.aos.v1 on pass/aos.
func kind(name, stream, severity, says string) Kind {
	return Kind{
		Type:     "gsd." + name + ".v1",
		Topic:    strings.Replace(name, ".", "/", 1),
		Stream:   stream,
		Severity: severity,
		Schema:   "urn:gsd:schema:" + name + ":1.0",
		Says:     says,
	}
}

// All is one empty value of every kind of event, in the order of the
// documentation. Schemas, AsyncAPI and the tests go over it.
func All() []Data {
	return []Data{
		StationStarted{}, StationStopping{}, StationStopped{}, StationResumed{}, ModeChanged{},
		PassScheduled{}, PassCancelled{}, PassState{}, PassAOS{}, PassTCA{}, PassLOS{}, PassEnded{},
		AntennaState{}, AntennaMoved{}, AntennaFault{},
		RadioTuned{}, RadioFault{},
		ActuationRequested{}, ActuationDone{}, ActuationRefused{},
		HealthChanged{}, AlarmRaised{}, AlarmCleared{},
		ClockStepped{}, ElementsRefreshed{}, ElementsSuspect{},
		OutboxGap{}, OutboxQuarantined{}, OutboxPressure{},
	}
}

// StationStarted: the daemon is up and has sent stop to every device.
type StationStarted struct {
	Version       string `json:"version" doc:"version of the program"`
	Mode          string `json:"mode" doc:"standby, remote, local, maintenance or estop"`
	PreviousEnd   string `json:"previous_end" doc:"how the daemon ended before: clean, unclean or first"`
	StateNote     string `json:"state_note,omitempty" doc:"what was repaired in the state directory"`
	ConfigSHA256  string `json:"config_sha256,omitempty"`
	ElementsCount int    `json:"elements_count" doc:"satellites with elements"`
}

// Kind of the event.
func (StationStarted) Kind() Kind {
	return kind("station.started", Crit, Notice, "the station daemon started")
}

// StationStopping: the daemon is about to end.
type StationStopping struct {
	Reason string `json:"reason"`
}

// Kind of the event.
func (StationStopping) Kind() Kind {
	return kind("station.stopping", Crit, Notice, "the station daemon is ending")
}

// StationStopped: someone pressed stop; motion and transmission ended.
type StationStopped struct {
	Reason    string  `json:"reason,omitempty" doc:"as given by who stopped: untrusted text"`
	LatencyMs float64 `json:"latency_ms" doc:"from the request to the last stop byte on the wire"`
	Confirmed bool    `json:"confirmed" doc:"standstill was read back"`
	PassID    string  `json:"pass_id,omitempty" doc:"the pass that was stopped"`
	HeldUntil string  `json:"held_until" doc:"what lets the station move again: resume"`
}

// Kind of the event.
func (StationStopped) Kind() Kind {
	return kind("station.stopped", Crit, Warn, "someone stopped the station")
}

// StationResumed: an operator lets the station move again after a stop.
type StationResumed struct {
	StoppedForS float64 `json:"stopped_for_s"`
}

// Kind of the event.
func (StationResumed) Kind() Kind {
	return kind("station.resumed", Crit, Notice, "the station may move again")
}

// ModeChanged: standby, remote, local, maintenance or estop.
type ModeChanged struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
}

// Kind of the event.
func (ModeChanged) Kind() Kind {
	return kind("station.mode_changed", Crit, Notice, "the station changed its mode")
}

// A PassRef names a pass and its satellite.
type PassRef struct {
	PassID          string `json:"pass_id" doc:"catalogue number and TCA to the minute"`
	ScheduledPassID string `json:"scheduled_pass_id,omitempty"`
	NoradID         int    `json:"norad_id"`
	Satellite       string `json:"satellite" doc:"name from the element set: untrusted text"`
}

// PassScheduled: a pass was booked.
type PassScheduled struct {
	PassRef
	AOS             time.Time `json:"aos_time"`
	TCA             time.Time `json:"tca_time"`
	LOS             time.Time `json:"los_time"`
	MaxElevationDeg float64   `json:"max_elevation_deg"`
	Priority        int       `json:"priority" doc:"1 (highest) to 9"`
	Displaced       []string  `json:"displaced,omitempty" doc:"scheduled passes that gave way"`
}

// Kind of the event.
func (PassScheduled) Kind() Kind {
	return kind("pass.scheduled", Info, Notice, "a pass was booked")
}

// PassCancelled: a booking was withdrawn.
type PassCancelled struct {
	PassRef
	Reason string `json:"reason,omitempty"`
}

// Kind of the event.
func (PassCancelled) Kind() Kind {
	return kind("pass.cancelled", Info, Notice, "a booked pass was cancelled")
}

// PassState: a scheduled pass went from one state to the next.
type PassState struct {
	PassRef
	From       string `json:"from"`
	To         string `json:"to"`
	ReasonCode string `json:"reason_code,omitempty"`
	Reason     string `json:"reason,omitempty"`
}

// Kind of the event.
func (PassState) Kind() Kind {
	return kind("pass.state_changed", Info, Notice, "a scheduled pass changed its state")
}

// A Look is where a satellite stands, seen from the station.
type Look struct {
	AzimuthDeg   float64 `json:"azimuth_deg" doc:"true north, 0..360"`
	ElevationDeg float64 `json:"elevation_deg"`
	RangeKm      float64 `json:"range_km"`
}

// PassAOS: the satellite rose above the station's horizon during a scheduled
// pass.
type PassAOS struct {
	PassRef
	Look
	PointingErrorDeg float64 `json:"pointing_error_deg" doc:"measured antenna against the satellite"`
}

// Kind of the event.
func (PassAOS) Kind() Kind { return kind("pass.aos", Crit, Notice, "acquisition of signal") }

// PassTCA: the satellite is closest.
type PassTCA struct {
	PassRef
	Look
	PointingErrorDeg float64 `json:"pointing_error_deg"`
	DopplerHz        float64 `json:"doppler_hz" doc:"of the downlink"`
}

// Kind of the event.
func (PassTCA) Kind() Kind { return kind("pass.tca", Info, Notice, "closest approach") }

// PassLOS: the satellite set.
type PassLOS struct {
	PassRef
	Look
}

// Kind of the event.
func (PassLOS) Kind() Kind { return kind("pass.los", Crit, Notice, "loss of signal") }

// PassEnded: a scheduled pass reached its terminal state.
type PassEnded struct {
	PassRef
	State               string  `json:"state" enum:"completed,partial,failed,missed,cancelled,stopped,preempted,refused"`
	ReasonCode          string  `json:"reason_code"`
	Reason              string  `json:"reason" doc:"one sentence"`
	TrackedS            float64 `json:"tracked_s"`
	PointingErrorP50Deg float64 `json:"pointing_error_p50_deg"`
	PointingErrorP99Deg float64 `json:"pointing_error_p99_deg"`
	PointingErrorMaxDeg float64 `json:"pointing_error_max_deg"`
	OffBeamS            float64 `json:"off_beam_s" doc:"time outside the beam while tracking"`
	DopplerMaxHz        float64 `json:"doppler_max_hz" doc:"largest downlink shift that was corrected"`
	MaxElevationDeg     float64 `json:"max_elevation_deg"`
}

// Kind of the event. A pass that was not what was booked is a warning.
func (e PassEnded) Kind() Kind {
	severity := Notice
	switch e.State {
	case "failed":
		severity = Error
	case "partial", "missed", "stopped", "preempted", "refused":
		severity = Warn
	}
	return kind("pass.ended", Crit, severity, "a scheduled pass ended, and how")
}

// AntennaState: the antenna went from one state to the next.
type AntennaState struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
}

// Kind of the event.
func (AntennaState) Kind() Kind {
	return kind("antenna.state_changed", Info, Notice, "the antenna changed its state")
}

// AntennaMoved: a move that was asked for has ended.
type AntennaMoved struct {
	CommandedAzimuthDeg   float64 `json:"commanded_azimuth_deg"`
	CommandedElevationDeg float64 `json:"commanded_elevation_deg"`
	MeasuredAzimuthDeg    float64 `json:"measured_azimuth_deg"`
	MeasuredElevationDeg  float64 `json:"measured_elevation_deg"`
	DurationS             float64 `json:"duration_s"`
	Outcome               string  `json:"outcome" enum:"arrived,stopped,timeout,superseded"`
}

// Kind of the event.
func (AntennaMoved) Kind() Kind { return kind("antenna.moved", Info, Notice, "an antenna move ended") }

// AntennaFault: the rotator did not do what it was told.
type AntennaFault struct {
	Code  string `json:"code"`
	Fault string `json:"fault" doc:"what happened, with numbers"`
	Fix   string `json:"fix"`
}

// Kind of the event.
func (AntennaFault) Kind() Kind { return kind("antenna.fault", Crit, Error, "the rotator has a fault") }

// RadioTuned: the radio was set for a pass or by hand. Single Doppler steps
// are not events.
type RadioTuned struct {
	Radio         string `json:"radio"`
	Occasion      string `json:"occasion" doc:"pass_start, pass_end or manual"`
	PassID        string `json:"pass_id,omitempty"`
	DownlinkHz    int64  `json:"downlink_hz,omitempty"`
	UplinkHz      int64  `json:"uplink_hz,omitempty"`
	Mode          string `json:"mode,omitempty"`
	DopplerHz     int64  `json:"doppler_hz,omitempty" doc:"part of downlink_hz that is Doppler"`
	ReadBackEqual bool   `json:"read_back_equal" doc:"the radio confirmed the setting"`
}

// Kind of the event.
func (RadioTuned) Kind() Kind { return kind("radio.tuned", Info, Notice, "the radio was tuned") }

// RadioFault: the radio did not do what it was told.
type RadioFault struct {
	Radio string `json:"radio"`
	Code  string `json:"code"`
	Fault string `json:"fault"`
	Fix   string `json:"fix"`
}

// Kind of the event.
func (RadioFault) Kind() Kind { return kind("radio.fault", Crit, Error, "the radio has a fault") }

// ActuationRequested: a command passed the gate and goes to its device.
type ActuationRequested struct {
	CommandID string `json:"command_id"`
	Verb      string `json:"verb"`
	AuditSeq  uint64 `json:"audit_seq" doc:"number of the intent in the audit"`
}

// Kind of the event.
func (ActuationRequested) Kind() Kind {
	return kind("actuation.requested", Info, Notice, "a command was accepted")
}

// ActuationDone: what came of it.
type ActuationDone struct {
	CommandID string  `json:"command_id"`
	Verb      string  `json:"verb"`
	Outcome   string  `json:"outcome" doc:"done, failed, superseded or stopped"`
	Detail    string  `json:"detail,omitempty"`
	DurationS float64 `json:"duration_s"`
}

// Kind of the event.
func (ActuationDone) Kind() Kind {
	return kind("actuation.done", Info, Notice, "a command ended")
}

// ActuationRefused: the gate said no; nothing was sent to the hardware.
type ActuationRefused struct {
	CommandID string `json:"command_id,omitempty"`
	Verb      string `json:"verb"`
	Code      string `json:"code" doc:"refusal code of docs/refusals.md"`
	Why       string `json:"why"`
	Fix       string `json:"fix"`
}

// Kind of the event.
func (ActuationRefused) Kind() Kind {
	return kind("actuation.refused", Crit, Warn, "a command was refused, and why")
}

// HealthChanged: the station's verdict on itself changed.
type HealthChanged struct {
	From     string   `json:"from" enum:",well,degraded,unsafe,down"`
	To       string   `json:"to" enum:"well,degraded,unsafe,down"`
	Findings []string `json:"findings,omitempty" doc:"codes, worst first"`
}

// Kind of the event.
func (e HealthChanged) Kind() Kind {
	severity := Notice
	switch e.To {
	case "degraded":
		severity = Warn
	case "unsafe", "down":
		severity = Error
	}
	return kind("health.changed", Info, severity, "the verdict on the station's health changed")
}

// AlarmRaised: somebody should look.
type AlarmRaised struct {
	Code     string `json:"code"`
	Severity string `json:"severity" enum:"warning,critical"`
	Title    string `json:"title"`
	Cause    string `json:"cause"`
	NextStep string `json:"next_step"`
}

// Kind of the event.
func (e AlarmRaised) Kind() Kind {
	severity := Warn
	if e.Severity == "critical" {
		severity = Error
	}
	return kind("alarm.raised", Crit, severity, "an alarm was raised")
}

// AlarmCleared: what the alarm was about is over.
type AlarmCleared struct {
	Code    string  `json:"code"`
	Title   string  `json:"title"`
	RaisedS float64 `json:"raised_for_s"`
}

// Kind of the event.
func (AlarmCleared) Kind() Kind { return kind("alarm.cleared", Crit, Notice, "an alarm is over") }

// ClockStepped: the time of day moved against the monotonic clock.
type ClockStepped struct {
	StepS   float64   `json:"step_s" doc:"positive = forward"`
	Before  time.Time `json:"before"`
	After   time.Time `json:"after"`
	Quality string    `json:"quality" doc:"synced, holdover, unsynced or simulated, after the step"`
}

// Kind of the event.
func (ClockStepped) Kind() Kind { return kind("clock.stepped", Info, Warn, "the time of day stepped") }

// ElementsRefreshed: orbital elements were read anew.
type ElementsRefreshed struct {
	Origin       string  `json:"origin" doc:"file or address they came from, without credentials"`
	Satellites   int     `json:"satellites"`
	Updated      int     `json:"updated"`
	Rejected     int     `json:"rejected"`
	NewestAgeD   float64 `json:"newest_age_days"`
	FirstProblem string  `json:"first_problem,omitempty"`
}

// Kind of the event.
func (ElementsRefreshed) Kind() Kind {
	return kind("elements.refreshed", Info, Notice, "orbital elements were refreshed")
}

// ElementsSuspect: a new element set contradicts the one before, which is
// kept.
type ElementsSuspect struct {
	NoradID   int     `json:"norad_id"`
	Satellite string  `json:"satellite" doc:"untrusted text"`
	Why       string  `json:"why"`
	ShiftS    float64 `json:"shift_s" doc:"along the orbit, predicted time against the old set"`
}

// Kind of the event.
func (ElementsSuspect) Kind() Kind {
	return kind("elements.suspect", Info, Warn, "an element set was not believed")
}

// OutboxGap: events that will never come. In a new epoch it declares the
// numbers before its first one, which previous_epoch had.
type OutboxGap struct {
	StreamName    string `json:"stream" enum:"crit,info"`
	SourceName    string `json:"source" doc:"source attribute of the missing events"`
	EpochName     string `json:"epoch"`
	From          string `json:"from" doc:"first missing sequence, 20 digits"`
	To            string `json:"to" doc:"last missing sequence; less than from = none is missing, only the epoch is new"`
	Why           string `json:"why"`
	PreviousEpoch string `json:"previous_epoch,omitempty"`
}

// Kind of the event.
func (OutboxGap) Kind() Kind { return kind("outbox.gap", Crit, Error, "events were lost, and which") }

// OutboxQuarantined: the broker does not take this one event; it is kept at
// the station.
type OutboxQuarantined struct {
	StreamName string `json:"stream" enum:"crit,info"`
	SourceName string `json:"source"`
	EpochName  string `json:"epoch"`
	Sequence   string `json:"sequence"`
	EventID    string `json:"event_id"`
	EventType  string `json:"event_type"`
	Bytes      int    `json:"bytes"`
	Why        string `json:"why"`
}

// Kind of the event.
func (OutboxQuarantined) Kind() Kind {
	return kind("outbox.quarantined", Crit, Error, "the broker refuses an event; it was put aside")
}

// OutboxPressure: a journal has trouble with space.
type OutboxPressure struct {
	StreamName string `json:"stream" enum:"crit,info"`
	Condition  string `json:"condition" enum:"disk_full,nearly_full,recovered,journal_dead"`
}

// Kind of the event.
func (e OutboxPressure) Kind() Kind {
	severity := Error
	if e.Condition == "recovered" {
		severity = Notice
	}
	return kind("outbox.pressure", Crit, severity, "the outbox has trouble with space")
}
