package track

import (
	"context"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

func issPass(t testing.TB, minEl float64) (Sky, passes.Pass) {
	t.Helper()
	for _, s := range elements.Embedded() {
		if s.NoradID != 25544 {
			continue
		}
		o, err := passes.New(s)
		if err != nil {
			t.Fatal(err)
		}
		site := unit.Site{LatDeg: 51.4779, AltM: 46}
		found, _, err := passes.Find(context.Background(), o, site, passes.Options{From: s.Epoch, To: s.Epoch.Add(48 * time.Hour), MinElevationDeg: minEl})
		if err != nil || len(found) == 0 {
			t.Fatalf("passes: %v %v", found, err)
		}
		return func(at time.Time) (Sight, error) {
			l, err := o.Look(site, at)
			return Sight{AzEl: l.Pointing(), RangeKm: l.RangeKm, RangeRateKmS: l.RangeRateKmS}, err
		}, found[0]
	}
	t.Fatal("no elements of the ISS")
	return nil, passes.Pass{}
}

func g5500() *safety.Rules {
	return &safety.Rules{Travel: safety.Travel{AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 180}, AzSpeedDps: 6, ElSpeedDps: 3, AccelDps2: 12,
		FeedbackMoving: 2 * time.Second, FeedbackIdle: 10 * time.Second}
}

// One plan of one pass in low orbit: sampled, proved on every winding, straight
// and flipped, and followed by a simulated mount.
func BenchmarkMake(b *testing.B) {
	sky, p := issPass(b, 40)
	q := Request{Sky: sky, Rules: g5500(), From: unit.AzEl{AzDeg: 180, ElDeg: 80}, Begin: p.AOS.Time, End: p.LOS.Time, BeamwidthDeg: 30}
	b.ReportAllocs()
	for b.Loop() {
		if _, ref := Make(q); ref != nil {
			b.Fatal(ref)
		}
	}
}

// One tick of the tracking loop without its wait.
func BenchmarkFollowTick(b *testing.B) {
	sky, p := issPass(b, 40)
	plan, ref := Make(Request{Sky: sky, Rules: g5500(), From: unit.AzEl{AzDeg: 180, ElDeg: 80}, Begin: p.AOS.Time, End: p.LOS.Time, BeamwidthDeg: 30})
	if ref != nil {
		b.Fatal(ref)
	}
	m := &lastMover{}
	at := plan.Begin
	b.ReportAllocs()
	for b.Loop() {
		if err := plan.tick(at, m); err != nil {
			b.Fatal(err)
		}
		if at = at.Add(Period); !at.Before(plan.End) {
			at = plan.Begin
		}
	}
}

// lastMover keeps the newest setpoint.
type lastMover struct{ sp Setpoint }

func (m *lastMover) Set(sp Setpoint) error { m.sp = sp; return nil }
func (m *lastMover) Lead() time.Duration   { return 50 * time.Millisecond }
