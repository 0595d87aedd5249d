// Package safety decides what the station refuses. Everything here is a pure
// function of facts and a request: no clock, no port, no logger, so that it can
// be tabled, fuzzed and asked twice. It must never move anything.
package safety

import (
	"encoding/json"
	"fmt"

	"gsd-mcp/internal/unit"
)

// A Code names a reason for refusal. Codes are stable: operators write them on
// the wall and scripts match on them. Never reuse one for a new meaning.
type Code string

// The refusal codes of the contract, section 7.
const (
	AzimuthLimit        Code = "AZIMUTH_LIMIT"
	ElevationLimit      Code = "ELEVATION_LIMIT"
	ElevationBelowMask  Code = "ELEVATION_BELOW_MASK"
	KeepOut             Code = "KEEP_OUT"
	Sun                 Code = "SUN"
	WrapUnknown         Code = "WRAP_UNKNOWN"
	WrapBudget          Code = "WRAP_BUDGET"
	SlewRate            Code = "SLEW_RATE"
	Keyhole             Code = "KEYHOLE"
	Wind                Code = "WIND"
	PowerLow            Code = "POWER_LOW"
	ClockUntrusted      Code = "CLOCK_UNTRUSTED"
	ElementsTooOld      Code = "ELEMENTS_TOO_OLD"
	ElementsSuspect     Code = "ELEMENTS_SUSPECT"
	SatelliteUnknown    Code = "SATELLITE_UNKNOWN"
	SatelliteDecayed    Code = "SATELLITE_DECAYED"
	PassUnknown         Code = "PASS_UNKNOWN"
	PassOver            Code = "PASS_OVER"
	FeedbackStale       Code = "FEEDBACK_STALE"
	FeedbackSuspect     Code = "FEEDBACK_SUSPECT"
	Stalled             Code = "STALLED"
	DeviceAbsent        Code = "DEVICE_ABSENT"
	DeviceFault         Code = "DEVICE_FAULT"
	LeaseHeld           Code = "LEASE_HELD"
	ModeLocal           Code = "MODE_LOCAL"
	ModeMaintenance     Code = "MODE_MAINTENANCE"
	EStop               Code = "ESTOP"
	Standby             Code = "STANDBY"
	HeldAfterStop       Code = "HELD_AFTER_STOP"
	RateLimited         Code = "RATE_LIMITED"
	IdempotencyMismatch Code = "IDEMPOTENCY_MISMATCH"
	ReadOnly            Code = "READ_ONLY"
	NotPermitted        Code = "NOT_PERMITTED"
	ApprovalNeeded      Code = "APPROVAL_NEEDED"
	ApprovalExpired     Code = "APPROVAL_EXPIRED"
	ApprovalMismatch    Code = "APPROVAL_MISMATCH"
	TxDisabled          Code = "TX_DISABLED"
	TxBand              Code = "TX_BAND"
	TxOffTarget         Code = "TX_OFF_TARGET"
	TxUnconfirmed       Code = "TX_UNCONFIRMED"
	TxDuty              Code = "TX_DUTY"
	TxTimeout           Code = "TX_TIMEOUT"
	StateNotDurable     Code = "STATE_NOT_DURABLE"
	ScheduleConflict    Code = "SCHEDULE_CONFLICT"
	FrozenWindow        Code = "FROZEN_WINDOW"
	PassDrifted         Code = "PASS_DRIFTED"
	// StateChanged: the caller's expect_state no longer holds (hazard A-07).
	StateChanged Code = "STATE_CHANGED"
)

// A Refusal says why the station will not do something, and what would make it
// willing. It is an answer, not a fault: nothing was sent to the hardware.
type Refusal struct {
	Code    Code           // stable
	Why     string         // one sentence, with the numbers
	Fix     string         // the next step, in the imperative
	Limits  map[string]any // the rule's numbers, keys with units; may be nil
	Nearest *unit.AzEl     // the nearest direction that would be allowed, true azimuth; nil when none was sought
	Extra   map[string]any // alternatives, times: shown beside the rest
}

// Refuse builds a refusal; why may hold verbs for args.
func Refuse(code Code, fix, why string, args ...any) *Refusal {
	return &Refusal{Code: code, Fix: fix, Why: fmt.Sprintf(why, args...)}
}

// Error implements error.
func (r *Refusal) Error() string { return fmt.Sprintf("refused %s: %s (%s)", r.Code, r.Why, r.Fix) }

// Sentence is the refusal for a person or a model: why, what to do, and what
// would be allowed.
func (r *Refusal) Sentence() string {
	s := fmt.Sprintf("Refused (%s): %s. To go on: %s.", r.Code, r.Why, r.Fix)
	if r.Nearest != nil {
		s += fmt.Sprintf(" Nearest allowed: azimuth %.1f°, elevation %.1f°.", r.Nearest.AzDeg, r.Nearest.ElDeg)
	}
	return s
}

// MarshalJSON gives the form of the contract, section 4.
func (r *Refusal) MarshalJSON() ([]byte, error) {
	m := map[string]any{"refused": true, "code": r.Code, "why": r.Why, "fix": r.Fix}
	if len(r.Limits) > 0 {
		m["limits"] = r.Limits
	}
	if r.Nearest != nil {
		m["nearest_allowed"] = r.Nearest
	}
	for k, v := range r.Extra {
		if _, taken := m[k]; !taken {
			m[k] = v
		}
	}
	b, err := json.Marshal(m)
	if err != nil { // a number that JSON cannot hold must not hide the refusal
		b, err = json.Marshal(map[string]any{"refused": true, "code": r.Code, "why": r.Why, "fix": r.Fix})
	}
	return b, err
}
