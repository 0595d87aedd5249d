package track

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

var noon = time.Date(2026, 8, 13, 12, 0, 0, 0, time.UTC)

// A flyby is a satellite on a straight line over a flat earth: its look angles
// are known without any orbit.
type flyby struct {
	headingDeg float64 // where it goes
	maxElDeg   float64 // at noon
	left       bool    // passes left of the station
	kmS        float64
}

const flybyKm = 500

func (f flyby) sky(t time.Time) (Sight, error) {
	along := f.kmS * t.Sub(noon).Seconds()
	across := flybyKm / math.Tan(f.maxElDeg*math.Pi/180)
	side := f.headingDeg + 90
	if f.left {
		side -= 180
	}
	h, s := f.headingDeg*math.Pi/180, side*math.Pi/180
	n := along*math.Cos(h) + across*math.Cos(s)
	e := along*math.Sin(h) + across*math.Sin(s)
	d := math.Hypot(n, e)
	r := math.Hypot(d, flybyKm)
	return Sight{AzEl: unit.AzEl{AzDeg: unit.Norm360(math.Atan2(e, n) * 180 / math.Pi), ElDeg: math.Atan2(flybyKm, d) * 180 / math.Pi},
		RangeKm: r, RangeRateKmS: f.kmS * along / r}, nil
}

// request is the pass of a flyby from 5° to 5° of elevation.
func (f flyby) request(r *safety.Rules, from unit.AzEl) Request {
	d := flybyKm / math.Tan(5*math.Pi/180)
	across := flybyKm / math.Tan(f.maxElDeg*math.Pi/180)
	half := time.Duration(math.Sqrt(max(0, d*d-across*across)) / f.kmS * float64(time.Second))
	return Request{Sky: f.sky, Rules: r, From: from, Begin: noon.Add(-half), End: noon.Add(half), BeamwidthDeg: 20}
}

func mount(azMin, azMax, elMax float64) *safety.Rules {
	r := g5500()
	r.Travel = safety.Travel{AzMinDeg: azMin, AzMaxDeg: azMax, ElMinDeg: 0, ElMaxDeg: elMax}
	return r
}

func TestWindingsOfAPass(t *testing.T) {
	east := flyby{headingDeg: 90, maxElDeg: 40, left: true, kmS: 7.5}   // W over N to E: 277° to 443°
	south := flyby{headingDeg: 90, maxElDeg: 40, left: false, kmS: 7.5} // W over S to E: 263° to 97°
	tests := []struct {
		name    string
		pass    flyby
		rules   *safety.Rules
		from    float64
		start   float64 // mechanical azimuth, about
		flipped bool
		code    safety.Code
	}{
		{"over north, 0..360, no flip", east, mount(0, 360, 90), 180, 0, false, safety.AzimuthLimit},
		{"over north, 0..360, flipped", east, mount(0, 360, 180), 180, 97, true, ""},
		{"over north, 0..450", east, mount(0, 450, 180), 180, 277, false, ""},
		{"over north, -180..180", east, mount(-180, 180, 90), 0, -83, false, ""},
		{"over south, -180..180, no flip", south, mount(-180, 180, 90), 0, 0, false, safety.AzimuthLimit},
		{"over south, 0..360", south, mount(0, 360, 90), 0, 263, false, ""},
		{"over north, -180..540, wound to the right", east, mount(-180, 540, 90), 500, 277, false, ""},
		{"over north, -180..540, wound to the left", east, mount(-180, 540, 90), -100, -83, false, ""},
		{"over south, -180..540, wound to the right", south, mount(-180, 540, 90), 500, 263, false, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p, ref := Make(tt.pass.request(tt.rules, unit.AzEl{AzDeg: tt.from, ElDeg: 45}))
			if tt.code != "" {
				if ref == nil || ref.Code != tt.code || ref.Why == "" || ref.Fix == "" {
					t.Fatalf("plan %+v, refusal %v; want %s", p, ref, tt.code)
				}
				return
			}
			if ref != nil {
				t.Fatal(ref)
			}
			if math.Abs(p.Start.AzDeg-tt.start) > 3 || p.Flipped != tt.flipped {
				t.Errorf("starts at %v, flipped %v; want %v, %v", p.Start, p.Flipped, tt.start, tt.flipped)
			}
			for i := p.Begin; i.Before(p.End); i = i.Add(time.Second) {
				m, s, err := p.At(i)
				if err != nil || tt.rules.Allowed(m, nil) != nil || unit.Separation(tt.rules.True(m), s.AzEl) > 0.01 {
					t.Fatalf("at %v: %v for %v, %v", i, m, s.AzEl, err)
				}
			}
		})
	}
}

// Over the top only when the straight way has no place, and as far as the mount
// goes. Near the zenith it would not help: the azimuth turns as fast.
func TestFlipsOnlyWhenItPays(t *testing.T) {
	slow := mount(0, 450, 180)
	slow.AzSpeedDps, slow.ElSpeedDps = 3, 2
	for _, maxEl := range []float64{30, 60, 88} {
		p, ref := Make(flyby{headingDeg: 20, maxElDeg: maxEl, kmS: 7.5}.request(slow, unit.AzEl{AzDeg: 200, ElDeg: 10}))
		if ref != nil {
			t.Fatal(ref)
		}
		if p.Flipped {
			t.Errorf("a pass of %v° is flipped", maxEl)
		}
		if (p.Predicted.OffBeamS > 0) != (maxEl > 80) {
			t.Errorf("a pass of %v° is said to be off the beam for %v s", maxEl, p.Predicted.OffBeamS)
		}
	}
	// Over north with 0..360: a mount that reaches 160° flips what stays above 20°.
	part := mount(0, 360, 160)
	q := flyby{headingDeg: 90, maxElDeg: 60, left: true, kmS: 7.5}.request(part, unit.AzEl{AzDeg: 200, ElDeg: 10})
	if p, ref := Make(q); ref == nil {
		t.Errorf("from 5° on: %+v, want a refusal", p)
	}
	q.Begin, q.End = noon.Add(-2*time.Minute), noon.Add(2*time.Minute)
	if p, ref := Make(q); ref != nil || !p.Flipped {
		t.Errorf("above 20°: %+v, %v; want it flipped", p, ref)
	}
}

func TestAKeyholeThatTakesHalfThePassIsRefused(t *testing.T) {
	r := mount(0, 450, 90)
	r.AzSpeedDps, r.ElSpeedDps = 0.2, 0.1
	q := flyby{headingDeg: 20, maxElDeg: 85, kmS: 7.5}.request(r, unit.AzEl{AzDeg: 200, ElDeg: 10})
	if _, ref := Make(q); ref == nil || ref.Code != safety.Keyhole {
		t.Errorf("refusal %v, want KEYHOLE", ref)
	}
}

// The refusal names the first instant that fails.
func TestARefusalNamesTheFirstInstantThatFails(t *testing.T) {
	r := mount(0, 450, 90)
	zone := safety.Zone{Name: "mast", AzFromDeg: 330, AzToDeg: 30, ElMinDeg: 0, ElMaxDeg: 80, Reason: "mast"}
	r.Zones = []safety.Zone{zone}
	q := flyby{headingDeg: 90, maxElDeg: 40, left: true, kmS: 7.5}.request(r, unit.AzEl{AzDeg: 200, ElDeg: 10})
	_, ref := Make(q)
	if ref == nil || ref.Code != safety.KeepOut {
		t.Fatalf("refusal %v, want KEEP_OUT", ref)
	}
	for at := q.Begin; ; at = at.Add(time.Second) {
		if s, _ := q.Sky(at); zone.Contains(s.AzEl) {
			if !strings.Contains(ref.Why, at.Format("15:04:05Z")) {
				t.Errorf("%q, want the instant %s", ref.Why, at.Format("15:04:05Z"))
			}
			return
		}
	}
}

func TestWhatCannotBeComputedIsRefused(t *testing.T) {
	q := flyby{headingDeg: 90, maxElDeg: 40, kmS: 7.5}.request(g5500(), unit.AzEl{AzDeg: 180})
	for name, sky := range map[string]Sky{
		"error": func(time.Time) (Sight, error) { return Sight{}, errors.New("decayed") },
		"NaN":   func(time.Time) (Sight, error) { return Sight{AzEl: unit.AzEl{AzDeg: math.NaN()}}, nil },
	} {
		q.Sky = sky
		if _, ref := Make(q); ref == nil {
			t.Errorf("%s: no refusal", name)
		}
	}
	q.End = q.Begin
	if _, ref := Make(q); ref == nil || ref.Code != safety.PassOver {
		t.Errorf("a pass without length: %v", ref)
	}
}

// Whatever the pass and the mount: a plan stays on its satellite and inside the
// rules, and the mount never has to turn back by a turn.
func TestPropertyPlanIsContinuousAndAllowed(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		f := flyby{headingDeg: rapid.Float64Range(0, 360).Draw(rt, "heading"), maxElDeg: rapid.Float64Range(8, 89.8).Draw(rt, "max el"),
			left: rapid.Bool().Draw(rt, "left"), kmS: 7.5}
		travel := rapid.SampledFrom([][2]float64{{0, 360}, {0, 450}, {-180, 180}, {-180, 540}}).Draw(rt, "travel")
		r := mount(travel[0], travel[1], rapid.SampledFrom([]float64{90, 180}).Draw(rt, "el max"))
		r.Offset = unit.AzEl{AzDeg: rapid.SampledFrom([]float64{0, 180, -7}).Draw(rt, "offset")}
		r.MarginDeg = rapid.SampledFrom([]float64{0, 2}).Draw(rt, "margin")
		from := unit.AzEl{AzDeg: rapid.Float64Range(travel[0], travel[1]).Draw(rt, "from"), ElDeg: 45}
		p, ref := Make(f.request(r, from))
		if ref != nil {
			if travel[1]-travel[0] > 400 && ref.Code == safety.AzimuthLimit && travel[0] < 0 {
				rt.Fatalf("two turns of travel have no place for it: %v", ref)
			}
			return
		}
		prev, _, _ := p.At(p.Begin)
		for at := p.Begin; !at.After(p.End); at = at.Add(50 * time.Millisecond) {
			m, s, err := p.At(at)
			if err != nil {
				rt.Fatal(err)
			}
			if off := unit.Separation(r.True(m), s.AzEl); off > 0.01 {
				rt.Fatalf("%.2f° off at %v", off, at)
			}
			if d := math.Abs(m.AzDeg - prev.AzDeg); d > 45 {
				rt.Fatalf("the azimuth jumps by %.1f° from %v to %v at %v", d, prev, m, at)
			}
			prev = m
		}
		for at := p.Begin; !at.After(p.End); at = at.Add(time.Second) {
			m, _, _ := p.At(at)
			if ref := r.Allowed(m, nil); ref != nil {
				rt.Fatalf("at %v: %v", at, ref)
			}
		}
	})
}

func TestRecorder(t *testing.T) {
	r := NewRecorder(20)
	if got := r.Stats(); got != (Stats{}) {
		t.Errorf("nothing recorded: %+v", got)
	}
	for i := range 100 {
		r.Add(float64(i)/10, time.Second) // 0 to 9.9°
	}
	r.Add(math.NaN(), time.Second) // off the beam, whatever it is
	r.Add(11, 2*time.Second)
	got := r.Stats()
	if got.Samples != 102 || got.OffBeamS != 3 || got.MaxDeg != 11 || math.Abs(got.P50Deg-5) > 0.2 {
		t.Errorf("%+v", got)
	}
	if s := fmt.Sprint(got.P99Deg); s == "NaN" {
		t.Error("a NaN is shown")
	}
}
