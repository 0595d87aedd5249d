// Package track plans how a mount follows a pass and runs the tracking loop.
// It asks the station to move; it knows no driver and opens nothing.
package track

import (
	"fmt"
	"math"
	"sort"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// A Sight is where a satellite is as seen from the station at one instant.
type Sight struct {
	unit.AzEl
	RangeKm      float64
	RangeRateKmS float64 // positive: receding
}

// A Sky says where the satellite is at an instant.
type Sky func(t time.Time) (Sight, error)

// Limits of planning. planStep is the grid on which a pass is proved: the sky
// moves at most about 1° in it but near the zenith, where speed limits matter
// more. A pass longer than maxGrid steps gets a coarser grid.
const (
	planStep = time.Second
	maxGrid  = 4 * 3600
	simStep  = 100 * time.Millisecond // of the predicted follow
	maxPath  = 20000
	wildDeg  = 60 // azimuth from one sample to the next: more is not sampled well
)

// keyholeLoss is the fraction of a pass off the beam above which it is refused.
const keyholeLoss = 0.5

// Stats describes a pointing error over a pass, predicted or measured.
type Stats struct {
	P50Deg   float64 `json:"error_p50_deg"`
	P99Deg   float64 `json:"error_p99_deg"`
	MaxDeg   float64 `json:"error_max_deg"`
	OffBeamS float64 `json:"off_beam_s"` // time with an error over half the beamwidth
	Samples  int     `json:"samples"`
}

// A Plan is the proved motion of one pass: every setpoint is inside the limits,
// above the mask and outside of every zone. Positions are mechanical.
type Plan struct {
	Begin, End    time.Time     // tracked from, until
	Start, Finish unit.AzEl     // where the mount waits, where it ends
	Flipped       bool          // over the top: elevation above 90°
	PeakAzDps     float64       // fastest azimuth rate of the pass
	PreSlew       time.Duration // from the position planned from to Start
	Predicted     Stats

	sky   Sky
	rules *safety.Rules
	flat  bool // no elevation axis
	step  time.Duration
	az    []float64 // unwrapped mechanical azimuth at Begin + i*step
}

// Request is what Make needs to know.
type Request struct {
	Sky          Sky
	Rules        *safety.Rules
	From         unit.AzEl // mechanical position now
	Begin, End   time.Time
	BeamwidthDeg float64
	AzimuthOnly  bool                         // no elevation axis: mechanical elevation 0, whatever the satellite's
	Sun          func(t time.Time) *unit.AzEl // may be nil
}

// Make plans a pass: it tries each winding, straight and over the top, and
// returns the one with the least time off the beam, then the least travel to
// its start. The refusal names the first instant that fails.
func Make(q Request) (*Plan, *safety.Refusal) {
	if !q.Begin.Before(q.End) {
		return nil, safety.Refuse(safety.PassOver, "choose a later pass", "the pass ends at %s, before it begins", q.End.UTC().Format(time.TimeOnly))
	}
	step := planStep
	if n := q.End.Sub(q.Begin) / step; n > maxGrid {
		step = q.End.Sub(q.Begin) / maxGrid
	}
	sights, fastest, err := sample(q, step)
	if err == nil && fastest > wildDeg && step == planStep {
		// Through the zenith: between two samples it is not clear which way round
		// the azimuth went, so look more often.
		step = simStep
		sights, _, err = sample(q, step)
	}
	var path []Sight
	if err == nil {
		path, err = pathOf(q)
	}
	if err != nil {
		return nil, safety.Refuse(safety.SatelliteDecayed, "choose another satellite, or import newer elements", "the pass cannot be computed: %v", err)
	}
	var (
		best  *Plan
		first *safety.Refusal
	)
	for _, flip := range []bool{false, true} {
		for _, p := range windings(q, sights, step, flip) {
			if ref := p.prove(q, sights); ref != nil {
				if first == nil || first.Code == safety.AzimuthLimit {
					first = ref
				}
				continue
			}
			p.Predicted = p.predict(q, path)
			if best == nil || p.better(best) {
				best = p
			}
		}
	}
	if best == nil {
		if first == nil {
			lo, hi := span(sights)
			first = safety.Refuse(safety.AzimuthLimit, "choose another pass", "the pass needs azimuths %.0f°..%.0f° in one sweep, and the mount's travel %.0f°..%.0f° has no place for it",
				lo, hi, q.Rules.Travel.AzMinDeg, q.Rules.Travel.AzMaxDeg)
		}
		return nil, first
	}
	if dur := best.End.Sub(best.Begin).Seconds(); best.Predicted.OffBeamS > keyholeLoss*dur {
		ref := safety.Refuse(safety.Keyhole, "choose a pass with a lower maximum elevation", "the mount would be off the beam for %.0f s of %.0f s (azimuth rate up to %.1f °/s, the mount turns %.1f °/s)",
			best.Predicted.OffBeamS, dur, best.PeakAzDps, q.Rules.AzSpeedDps)
		if q.AzimuthOnly {
			ref.Why += fmt.Sprintf("; it has no elevation axis and stays at %.0f°", q.Rules.Offset.ElDeg)
		}
		return nil, ref
	}
	return best, nil
}

// sample looks at the satellite every step, azimuth unwrapped; fastest is the
// most that the azimuth changes from one look to the next.
func sample(q Request, step time.Duration) (out []unit.AzEl, fastest float64, err error) {
	n := int(q.End.Sub(q.Begin)/step) + 2
	out = make([]unit.AzEl, 0, n)
	prev := math.NaN()
	for i := range n {
		t := q.Begin.Add(time.Duration(i) * step)
		if t.After(q.End) {
			t = q.End
		}
		s, err := q.Sky(t)
		if err != nil {
			return nil, 0, err
		}
		if !s.Finite() {
			return nil, 0, fmt.Errorf("no direction at %s", t.UTC().Format(time.RFC3339))
		}
		az := s.AzDeg
		if i > 0 {
			az = unit.Nearest(az, prev)
			fastest = max(fastest, math.Abs(az-prev))
		}
		prev = az
		out = append(out, unit.AzEl{AzDeg: az, ElDeg: s.ElDeg})
	}
	return out, fastest, nil
}

// pathOf looks as often as the predicted follow needs it, once for all windings.
// Long passes are slow: fewer looks do.
func pathOf(q Request) ([]Sight, error) {
	step := pathStep(q)
	n := int(q.End.Sub(q.Begin)/step) + 1
	out := make([]Sight, n)
	for i := range out {
		s, err := q.Sky(q.Begin.Add(time.Duration(i) * step))
		if err != nil {
			return nil, err
		}
		out[i] = s
	}
	return out, nil
}

func pathStep(q Request) time.Duration {
	return simStep * max(1, q.End.Sub(q.Begin)/simStep/maxPath)
}

func span(s []unit.AzEl) (lo, hi float64) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, d := range s {
		lo, hi = min(lo, d.AzDeg), max(hi, d.AzDeg)
	}
	return lo, hi
}

// windings makes one unproved plan for every turn of the cable that keeps the
// whole pass inside the azimuth travel.
func windings(q Request, sights []unit.AzEl, step time.Duration, flip bool) []*Plan {
	t := q.Rules.Travel
	shift, lo, hi := -q.Rules.Offset.AzDeg, 0.0, 0.0
	if flip {
		if t.ElMaxDeg <= 90 || q.AzimuthOnly { // the mount cannot go over the top; how far it must, prove tells
			return nil
		}
		shift += 180
	}
	lo, hi = span(sights)
	lo, hi = lo+shift, hi+shift
	var out []*Plan
	for k := math.Ceil((t.AzMinDeg + q.Rules.MarginDeg - lo) / 360); hi+360*k <= t.AzMaxDeg-q.Rules.MarginDeg; k++ {
		p := &Plan{Begin: q.Begin, End: q.End, Flipped: flip, sky: q.Sky, rules: q.Rules, flat: q.AzimuthOnly, step: step}
		p.az = make([]float64, len(sights))
		for i, d := range sights {
			p.az[i] = d.AzDeg + shift + 360*k
			if i > 0 {
				p.PeakAzDps = max(p.PeakAzDps, math.Abs(p.az[i]-p.az[i-1])/step.Seconds())
			}
		}
		p.Start = unit.AzEl{AzDeg: p.az[0], ElDeg: p.elevation(sights[0].ElDeg)}
		last := len(sights) - 1
		p.Finish = unit.AzEl{AzDeg: p.az[last], ElDeg: p.elevation(sights[last].ElDeg)}
		p.PreSlew = q.Rules.SlewTime(q.From, p.Start)
		out = append(out, p)
	}
	return out
}

func (p *Plan) elevation(el float64) float64 {
	if p.flat {
		return 0
	}
	if p.Flipped {
		el = 180 - el
	}
	return el - p.rules.Offset.ElDeg
}

// prove checks every instant of the pass against the gate's rules.
func (p *Plan) prove(q Request, sights []unit.AzEl) *safety.Refusal {
	for i, d := range sights {
		t := p.Begin.Add(time.Duration(i) * p.step)
		var sun *unit.AzEl
		if q.Sun != nil {
			sun = q.Sun(t)
		}
		if ref := q.Rules.Allowed(unit.AzEl{AzDeg: p.az[i], ElDeg: p.elevation(d.ElDeg)}, sun); ref != nil {
			ref.Why = fmt.Sprintf("at %s %s", t.UTC().Format("15:04:05Z"), ref.Why)
			ref.Fix = "choose another pass, or a part of the sky without the obstacle"
			return ref
		}
	}
	return nil
}

// predict lets a mount with the configured speed and acceleration follow the
// pass and measures how far it lags.
func (p *Plan) predict(q Request, path []Sight) Stats {
	rec := Recorder{beam: q.BeamwidthDeg, errs: make([]float64, 0, len(path))}
	at, va, ve := p.Start, 0.0, 0.0
	step := pathStep(q)
	dt := step.Seconds()
	for i, s := range path {
		want := p.mechanical(p.Begin.Add(time.Duration(i)*step), s)
		at.AzDeg, va = chase(at.AzDeg, va, want.AzDeg, q.Rules.AzSpeedDps, q.Rules.AccelDps2, dt)
		at.ElDeg, ve = chase(at.ElDeg, ve, want.ElDeg, q.Rules.ElSpeedDps, q.Rules.AccelDps2, dt)
		rec.add(unit.Separation(p.rules.True(at), s.AzEl), dt)
	}
	return rec.Stats()
}

// chase moves one axis for dt seconds towards a target with bounded speed and
// acceleration, braking in time.
func chase(x, v, target, vmax, a, dt float64) (float64, float64) {
	d := target - x
	want := math.Copysign(min(vmax, math.Abs(d)/dt, math.Sqrt(2*a*math.Abs(d))), d)
	v += max(-a*dt, min(a*dt, want-v))
	return x + v*dt, v
}

func (p *Plan) better(o *Plan) bool {
	if d := p.Predicted.OffBeamS - o.Predicted.OffBeamS; math.Abs(d) > 1 {
		return d < 0
	}
	if p.Flipped != o.Flipped { // straight unless it costs
		return o.Flipped
	}
	return p.PreSlew < o.PreSlew
}

// mechanical turns a sight into the mount's position on the planned winding.
func (p *Plan) mechanical(t time.Time, s Sight) unit.AzEl {
	x := float64(t.Sub(p.Begin)) / float64(p.step)
	i := max(0, min(int(x), len(p.az)-2))
	f := max(0, min(1, x-float64(i)))
	ref := p.az[i] + f*(p.az[i+1]-p.az[i])
	az := s.AzDeg - p.rules.Offset.AzDeg
	if p.Flipped {
		az += 180
	}
	return unit.AzEl{AzDeg: unit.Nearest(az, ref), ElDeg: p.elevation(s.ElDeg)}
}

// At is the setpoint for an instant and what the satellite then looks like.
// Instants before Begin and after End give those ends.
func (p *Plan) At(t time.Time) (unit.AzEl, Sight, error) {
	if t.Before(p.Begin) {
		t = p.Begin
	}
	if t.After(p.End) {
		t = p.End
	}
	s, err := p.sky(t)
	if err != nil {
		return unit.AzEl{}, Sight{}, err
	}
	return p.mechanical(t, s), s, nil
}

// A Recorder gathers pointing errors.
type Recorder struct {
	beam float64
	errs []float64
	off  float64
}

// NewRecorder counts time off the beam against half of beamwidthDeg.
func NewRecorder(beamwidthDeg float64) *Recorder { return &Recorder{beam: beamwidthDeg} }

func (r *Recorder) add(errDeg, seconds float64) {
	r.errs = append(r.errs, errDeg)
	if r.beam > 0 && !(errDeg <= r.beam/2) {
		r.off += seconds
	}
}

// Add records one error in degrees that held for d.
func (r *Recorder) Add(errDeg float64, d time.Duration) { r.add(errDeg, d.Seconds()) }

// Stats sums up what was recorded.
func (r *Recorder) Stats() Stats {
	if len(r.errs) == 0 {
		return Stats{}
	}
	s := append([]float64(nil), r.errs...)
	sort.Float64s(s)
	at := func(q float64) float64 { return round3(s[int(q*float64(len(s)-1))]) }
	return Stats{P50Deg: at(0.5), P99Deg: at(0.99), MaxDeg: at(1), OffBeamS: math.Round(r.off*10) / 10, Samples: len(s)}
}

func round3(x float64) float64 { return math.Round(x*1000) / 1000 }
