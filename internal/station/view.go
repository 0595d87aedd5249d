package station

import (
	"math"
	"time"

	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/track"
	"gsd-mcp/internal/unit"
)

// An AntennaView is what get_antenna tells.
type AntennaView struct {
	State      AntennaState `json:"state"`
	Since      time.Time    `json:"since"`
	Present    bool         `json:"present"`
	Why        string       `json:"why,omitempty"` // not present
	Commanded  *unit.AzEl   `json:"commanded,omitempty"`
	Measured   *unit.AzEl   `json:"measured,omitempty"` // true direction
	Mechanical *unit.AzEl   `json:"mechanical,omitempty"`
	AgeS       float64      `json:"age_s"` // of the measurement; -1: none
	Feedback   string       `json:"feedback"`
	AzOnly     bool         `json:"azimuth_only"` // the elevation is that of its tilt, whatever is asked for
	SetOnly    bool         `json:"set_only"`     // it cannot tell its position, and is not moved
	WindingOK  bool         `json:"winding_known"`
	Moving     bool         `json:"moving"`
	Fault      safety.Code  `json:"fault,omitempty"`
	FaultWhy   string       `json:"fault_why,omitempty"`
	Lease      *LeaseView   `json:"lease,omitempty"`
	Held       bool         `json:"held_after_stop"`
	HeldBy     string       `json:"held_by,omitempty"`
	Mode       safety.Mode  `json:"mode"`
	Pass       *PassStatus  `json:"pass,omitempty"`
	Simulated  bool         `json:"simulated"`
}

// A LeaseView says who may move the antenna.
type LeaseView struct {
	Holder string     `json:"holder"`
	Until  *time.Time `json:"until,omitempty"` // absent: while it moves
}

// A PassStatus is the pass that is being worked.
type PassStatus struct {
	ScheduledID  string     `json:"scheduled_pass_id"`
	PassID       string     `json:"pass_id"`
	NoradID      int        `json:"norad_id"`
	Satellite    string     `json:"satellite"`
	State        string     `json:"state"`
	AOS          time.Time  `json:"aos"`
	LOS          time.Time  `json:"los"`
	Progress     float64    `json:"progress"` // 0 at AOS, 1 at LOS
	Target       *unit.AzEl `json:"target,omitempty"`
	RangeKm      float64    `json:"range_km,omitempty"`
	RangeRateKmS float64    `json:"range_rate_km_s,omitempty"`
	DopplerHz    int64      `json:"doppler_hz"` // of the downlink
	ErrorDeg     *float64   `json:"pointing_error_deg,omitempty"`
}

func round(x float64, digits int) float64 {
	p := math.Pow10(digits)
	return math.Round(x*p) / p
}

func roundDir(d unit.AzEl) *unit.AzEl {
	return &unit.AzEl{AzDeg: round(d.AzDeg, 2), ElDeg: round(d.ElDeg, 2)}
}

// Antenna is the antenna as it is known now.
func (s *Station) Antenna() AntennaView {
	mode, _, held, by := s.Mode()
	v := AntennaView{State: AntennaUnknown, Mode: mode, Held: held, HeldBy: by, Simulated: s.o.Simulated, AgeS: -1, Feedback: "not_fitted", Why: "no rotator is configured"}
	v.Pass = s.Pass()
	if s.rot == nil {
		return v
	}
	r, age := s.rot.View()
	v.State, v.Since, v.Present, v.Why = r.state, r.since, r.present, r.why
	v.Moving, v.WindingOK, v.Fault, v.FaultWhy = r.moving, r.windingOK, r.fault, r.faultWhy
	if r.target != nil {
		v.Commanded = roundDir(*r.target)
	}
	v.Feedback, v.AzOnly, v.SetOnly = "none", s.azimuthOnly(), s.rot.setOnly()
	if r.measured {
		v.Measured, v.Mechanical = roundDir(s.o.Rules.True(r.mech)), roundDir(r.mech)
		v.AgeS = round(age.Seconds(), 2)
		v.Feedback = "measured"
		limit := s.o.Rules.FeedbackIdle
		if r.moving {
			limit = s.o.Rules.FeedbackMoving
		}
		switch {
		case r.suspect != "":
			v.Feedback = "suspect"
		case age > limit:
			v.Feedback = "stale"
		}
	}
	if l := s.leases.current(); l.Holder != "" && (l.Until.IsZero() || s.o.Clock.Now().Before(l.Until)) {
		v.Lease = &LeaseView{Holder: l.Who}
		if !l.Until.IsZero() {
			v.Lease.Until = &l.Until
		}
	}
	return v
}

// Pass is the pass that is being worked, or nil.
func (s *Station) Pass() *PassStatus {
	s.mu.Lock()
	p := s.pass
	var c passView
	if p != nil {
		c = *p
	}
	s.mu.Unlock()
	if p == nil {
		return nil
	}
	now := s.o.Clock.Now()
	st := &PassStatus{ScheduledID: c.ScheduledID, PassID: c.PassID, NoradID: c.NoradID, Satellite: c.Satellite, State: c.state, AOS: c.AOS, LOS: c.LOS}
	st.Progress = round(max(0, min(1, now.Sub(c.AOS).Seconds()/c.LOS.Sub(c.AOS).Seconds())), 4)
	if c.plan != nil {
		if _, sight, err := c.plan.At(now); err == nil {
			st.Target = roundDir(unit.AzEl{AzDeg: unit.Norm360(sight.AzDeg), ElDeg: sight.ElDeg})
			st.RangeKm, st.RangeRateKmS = round(sight.RangeKm, 1), round(sight.RangeRateKmS, 4)
			if c.Downlink.FrequencyHz > 0 {
				st.DopplerHz = track.Received(c.Downlink.FrequencyHz, sight.RangeRateKmS) - c.Downlink.FrequencyHz
			}
		}
	}
	if c.measured {
		e := round(c.errorDeg, 3)
		st.ErrorDeg = &e
	}
	return st
}

// A RadioView is what get_radio tells.
type RadioView struct {
	Configured bool                 `json:"configured"`
	Present    bool                 `json:"present"`
	Why        string               `json:"why,omitempty"`
	Model      string               `json:"model,omitempty"`
	Status     *radio.Status        `json:"measured,omitempty"`
	Commanded  map[radio.Path]int64 `json:"commanded_hz,omitempty"`
	AgeS       float64              `json:"age_s"` // of the reading; -1: none
	Transmit   string               `json:"transmitter"`
	Simulated  bool                 `json:"simulated"`
}

// Radio is the radio as it is known now.
func (s *Station) Radio() RadioView {
	v := RadioView{AgeS: -1, Transmit: "inhibited", Simulated: s.o.Simulated, Why: "no radio is configured"}
	if s.rad == nil {
		return v
	}
	r, age := s.rad.View()
	v.Configured, v.Present, v.Why, v.Model = true, r.present, r.why, s.o.Radio.Model.Name
	if len(r.asked) > 0 {
		v.Commanded = r.asked
	}
	if r.measured {
		v.Status, v.AgeS = &r.status, round(age.Seconds(), 2)
		if r.status.Transmitting {
			v.Transmit = "keyed"
		}
	}
	return v
}

// azimuthOnly reports whether the mount has no elevation axis: the driver has
// none, or the limits leave none of it on a controller for two axes.
func (s *Station) azimuthOnly() bool {
	if s.o.Rotator == nil {
		return false
	}
	t, m := s.o.Rules.Travel, s.o.Rules.MarginDeg
	return s.o.Rotator.Driver.Caps.AzimuthOnly || t.ElMinDeg+m >= -noTravelDeg && t.ElMaxDeg-m <= noTravelDeg
}

// noTravelDeg is an elevation, either way from 0, that is no travel of an axis.
const noTravelDeg = 0.5

// reach is the direction that the mount can have of a true one: a mount without
// an elevation axis ignores the elevation and keeps its tilt, which is the offset
// of a controller that always reports elevation 0.
func (s *Station) reach(d unit.AzEl) unit.AzEl {
	if s.azimuthOnly() {
		d.ElDeg = s.o.Rules.Offset.ElDeg
	}
	return d
}

// CheckPointing is the dry run of a move to a true direction: nil, or the
// refusal with the nearest direction that would be allowed. Who asks does not
// matter: it is the geometry and the station's state that answer.
func (s *Station) CheckPointing(target unit.AzEl) *safety.Refusal {
	f := s.facts()
	f.Lease = safety.Lease{}
	target = s.reach(target)
	return safety.Decide(&s.o.Rules, f, safety.Request{Verb: safety.VerbPoint, Rank: safety.RankOperator, Target: &target})
}

// Condition is what health looks at beside the devices.
type Condition struct {
	DiskErr error
	Dropped int // writes that did not fit the queue
	Trust   Trust
	Facts   safety.Facts
}

// Condition gathers what health looks at.
func (s *Station) Condition() Condition {
	s.mu.Lock()
	d := s.diskErr
	s.mu.Unlock()
	return Condition{DiskErr: d, Dropped: s.queue.drops(), Trust: s.o.Trust(), Facts: s.facts()}
}

// ParkPosition is the configured park position, true direction.
func (s *Station) ParkPosition() unit.AzEl { return s.o.Park }

// RadioModel is the configured radio's name, or "".
func (s *Station) RadioModel() string {
	if s.o.Radio == nil {
		return ""
	}
	return s.o.Radio.Model.Name
}
