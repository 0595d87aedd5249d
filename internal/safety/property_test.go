package safety

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/unit"
)

// The properties below measure the gate against an observer that shares no code
// with it: it turns a mechanical position into a vector on the sky, keeps its
// own mask and zones, and drives the mount in steps of 0.1°.
//
// What it may see beyond the rules: angleSlack everywhere; in a zone also the
// corner that a way may cut between two samples of the gate, 0.5° apart on
// either axis: at most half of that deep.
const (
	fineStepDeg   = 0.1
	slackSeen     = angleSlack + 0.01
	zoneCornerDeg = angleSlack + pathStepDeg/2 + 0.01
)

// skyOf is the true direction of a mechanical position, by vectors.
func skyOf(r *Rules, mech unit.AzEl) unit.AzEl {
	const rad = math.Pi / 180
	az, el := (mech.AzDeg+r.Offset.AzDeg)*rad, (mech.ElDeg+r.Offset.ElDeg)*rad
	north, east, up := math.Cos(el)*math.Cos(az), math.Cos(el)*math.Sin(az), math.Sin(el)
	return unit.AzEl{AzDeg: math.Atan2(east, north) / rad, ElDeg: math.Atan2(up, math.Hypot(north, east)) / rad}
}

// maskAt is the mask by linear search through its points.
func maskAt(h unit.Horizon, az float64) float64 {
	if el, flat := h.Flat(); flat {
		return el
	}
	p := h.Points()
	for az < p[0].AzDeg {
		az += 360
	}
	for az >= p[0].AzDeg+360 {
		az -= 360
	}
	p = append(p, unit.AzEl{AzDeg: p[0].AzDeg + 360, ElDeg: p[0].ElDeg})
	for i := 1; i < len(p); i++ {
		if az <= p[i].AzDeg {
			f := (az - p[i-1].AzDeg) / (p[i].AzDeg - p[i-1].AzDeg)
			return (1-f)*p[i-1].ElDeg + f*p[i].ElDeg
		}
	}
	panic("azimuth beyond the circle")
}

// inZone is how many degrees a true direction lies inside a zone's nearest edge.
func inZone(z Zone, d unit.AzEl) float64 {
	half := math.Mod(z.AzToDeg-z.AzFromDeg+720, 360) / 2
	off := math.Abs(math.Remainder(d.AzDeg-(z.AzFromDeg+half), 360))
	return min(half-off, d.ElDeg-z.ElMinDeg, z.ElMaxDeg-d.ElDeg)
}

// observe says what a mechanical position breaks, beyond what the observer may
// see; "" for nothing.
func observe(r *Rules, mech unit.AzEl, sun *unit.AzEl) string {
	t := r.Travel
	switch d := skyOf(r, mech); {
	case mech.AzDeg < t.AzMinDeg+r.MarginDeg-slackSeen, mech.AzDeg > t.AzMaxDeg-r.MarginDeg+slackSeen:
		return "azimuth travel"
	case mech.ElDeg < t.ElMinDeg+r.MarginDeg-slackSeen, mech.ElDeg > t.ElMaxDeg-r.MarginDeg+slackSeen:
		return "elevation travel"
	case d.ElDeg < maskAt(r.Horizon, d.AzDeg)-slackSeen:
		return "mask"
	case sun != nil && r.SunSeparationDeg > 0 && sun.ElDeg > 0 && unit.Separation(d, *sun) < r.SunSeparationDeg-0.05:
		return "sun"
	default:
		for _, z := range r.Zones {
			if inZone(z, d) > zoneCornerDeg {
				return "zone " + z.Name
			}
		}
	}
	return ""
}

// drive moves a mount through waypoints in small steps, each axis at its own
// speed until it has arrived, and calls see at each.
func drive(r *Rules, at unit.AzEl, way []unit.AzEl, see func(unit.AzEl) bool) {
	dt := fineStepDeg / max(r.AzSpeedDps, r.ElSpeedDps)
	turn := func(from, to, speed float64) float64 {
		return from + max(-speed*dt, min(speed*dt, to-from))
	}
	for _, w := range way {
		for at != w {
			at = unit.AzEl{AzDeg: turn(at.AzDeg, w.AzDeg, r.AzSpeedDps), ElDeg: turn(at.ElDeg, w.ElDeg, r.ElSpeedDps)}
			if !see(at) {
				return
			}
		}
	}
}

// anyRules draws a station that Validate accepts.
func anyRules(t *rapid.T) *Rules {
	r := station()
	r.Travel = rapid.SampledFrom([]Travel{{0, 360, 0, 90}, {0, 450, 0, 90}, {-180, 180, 0, 180}, {-180, 540, -20, 210}, {0, 360, 0, 180}, {10, 300, 5, 80}}).Draw(t, "travel")
	r.MarginDeg = rapid.SampledFrom([]float64{0, 1, 2}).Draw(t, "margin")
	r.Offset = rapid.SampledFrom([]unit.AzEl{{}, {AzDeg: 180}, {AzDeg: -3.7, ElDeg: 1.2}, {AzDeg: 90, ElDeg: -2}}).Draw(t, "offset")
	r.AzSpeedDps = rapid.Float64Range(0.5, 15).Draw(t, "azimuth speed")
	r.ElSpeedDps = rapid.Float64Range(0.5, 15).Draw(t, "elevation speed")
	r.Horizon = unit.FlatHorizon(rapid.Float64Range(-5, 15).Draw(t, "flat mask"))
	if n := rapid.IntRange(0, 9).Draw(t, "mask points"); n >= 3 {
		var p []unit.AzEl
		for i := range n { // one in each of n sectors: no gap over 180°
			lo := 360 * float64(i) / float64(n)
			p = append(p, unit.AzEl{AzDeg: lo + rapid.Float64Range(0, 180/float64(n)).Draw(t, "mask az"), ElDeg: rapid.Float64Range(-5, 40).Draw(t, "mask el")})
		}
		h, err := unit.NewHorizon(p)
		if err != nil {
			t.Fatal(err)
		}
		r.Horizon = h
	}
	r.Zones = nil
	for range rapid.IntRange(0, 4).Draw(t, "zones") {
		r.Zones = append(r.Zones, anyZone(t))
	}
	if rapid.Bool().Draw(t, "minds the sun") {
		r.SunSeparationDeg = rapid.Float64Range(1, 15).Draw(t, "sun separation")
	}
	if err := r.Validate(); err != nil {
		t.Fatal(err)
	}
	return r
}

func anyZone(t *rapid.T) Zone {
	z := Zone{Name: "z", Reason: "drawn"}
	z.AzFromDeg = rapid.Float64Range(0, 359).Draw(t, "zone from") // many cross north
	z.AzToDeg = math.Mod(z.AzFromDeg+rapid.Float64Range(1.01, 90).Draw(t, "zone width"), 360)
	z.ElMinDeg = rapid.Float64Range(-10, 60).Draw(t, "zone bottom")
	z.ElMaxDeg = min(90, z.ElMinDeg+rapid.Float64Range(1.01, 70).Draw(t, "zone height"))
	return z
}

func anySun(t *rapid.T) *unit.AzEl {
	return dir(rapid.Float64Range(0, 360).Draw(t, "sun az"), rapid.Float64Range(-10, 90).Draw(t, "sun el"))
}

func anyMech(t *rapid.T, r *Rules, beyond float64) unit.AzEl {
	return unit.AzEl{
		AzDeg: rapid.Float64Range(r.Travel.AzMinDeg-beyond, r.Travel.AzMaxDeg+beyond).Draw(t, "mechanical az"),
		ElDeg: rapid.Float64Range(r.Travel.ElMinDeg-beyond, r.Travel.ElMaxDeg+beyond).Draw(t, "mechanical el"),
	}
}

func anyTarget(t *rapid.T) unit.AzEl {
	return unit.AzEl{AzDeg: rapid.Float64Range(0, 360).Draw(t, "target az"), ElDeg: rapid.Float64Range(-10, 95).Draw(t, "target el")}
}

// allowedStart draws a place where the antenna may stand.
func allowedStart(t *rapid.T, r *Rules, sun *unit.AzEl) unit.AzEl {
	for range 20 {
		if p := anyMech(t, r, 0); r.Allowed(p, sun) == nil {
			return p
		}
	}
	t.Skip("nowhere to stand")
	return unit.AzEl{}
}

// Invariant I1: whatever the gate allows, the antenna never sees a place that
// is forbidden, on no winding, from no allowed state.
func TestPropertyAllowedMovesStayAllowed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, sun := anyRules(t), anySun(t)
		f := well()
		f.Sun, f.Position = sun, allowedStart(t, r, sun)
		q := Request{Verb: VerbPoint}
		switch rapid.IntRange(0, 2).Draw(t, "kind of move") {
		case 0:
			to := anyTarget(t)
			q.Target = &to
		case 1:
			to := anyMech(t, r, 0)
			q.Mech = &to
		case 2:
			to := anyMech(t, r, 0)
			q = Request{Verb: VerbTrack, Mech: &to, Orbit: freshOrbit()}
		}
		route, ref := Way(r, f, q)
		if ref != nil {
			if ref.Nearest != nil {
				if again := Decide(r, f, Request{Verb: VerbPoint, Target: ref.Nearest}); again != nil {
					t.Fatalf("nearest allowed %v is itself refused: %v", *ref.Nearest, again)
				}
			}
			return
		}
		drive(r, f.Position, route.Waypoints, func(at unit.AzEl) bool {
			if broken := observe(r, at, sun); broken != "" {
				t.Fatalf("from %v by %v: at mechanical %v (%v on the sky) it breaks: %s", f.Position, route.Waypoints, at, skyOf(r, at), broken)
			}
			return true
		})
		if end := route.Target(); q.Target != nil && unit.Separation(skyOf(r, end), *q.Target) > 1e-6 {
			t.Fatalf("route to %v ends at %v", *q.Target, skyOf(r, end))
		}
	})
}

// An antenna that stands where it may is never told that nothing is allowed.
func TestPropertyARefusedTargetHasANearestOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, sun := anyRules(t), anySun(t)
		f := well()
		f.Sun, f.Position = sun, allowedStart(t, r, sun)
		to := anyTarget(t)
		ref := Decide(r, f, Request{Verb: VerbPoint, Target: &to})
		if ref == nil {
			return
		}
		// Standing over the top or within a tenth of an edge, its own place may have no way back to itself.
		d := r.True(f.Position)
		if here := Decide(r, f, Request{Verb: VerbPoint, Target: dir(math.Round(d.AzDeg*10)/10, math.Ceil(d.ElDeg*10)/10)}); ref.Nearest == nil && here == nil {
			t.Fatalf("pointing to %v from %v: %v, and nothing allowed was found, yet it may stay", to, f.Position, ref)
		}
	})
}

// One more obstacle never opens a way: a step refused without it is refused
// with it, and a route found with it is clear without it.
func TestPropertyAnotherZoneOpensNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r, sun := anyRules(t), anySun(t)
		from, to := allowedStart(t, r, sun), anyMech(t, r, 0)
		more := *r
		more.Zones = append(append([]Zone(nil), r.Zones...), anyZone(t))
		if more.Allowed(from, sun) != nil {
			t.Skip("the new zone stands on the antenna")
		}
		f := well()
		f.Sun, f.Position = sun, from
		q := Request{Verb: VerbTrack, Mech: &to, Orbit: freshOrbit()}
		if was, is := Decide(r, f, q), Decide(&more, f, q); was != nil && is == nil {
			t.Fatalf("step %v to %v: refused (%v), and allowed with another zone", from, to, was)
		}
		if r.Allowed(to, sun) != nil && more.Allowed(to, sun) == nil {
			t.Fatalf("another zone opens %v", to)
		}
		if route, ref := more.RouteTo(from, to, sun); ref == nil {
			if blocked := r.checkPath(from, route.Waypoints, sun); blocked != nil {
				t.Fatalf("route %v with another zone is blocked without it: %v", route.Waypoints, blocked)
			}
		}
	})
}

// From where it must not be, the antenna only comes out: no mask, no limit and
// no zone is broken by more than at any time before.
func TestPropertyRecoveryOnlyComesOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRules(t)
		f := well()
		f.Position, f.Sun = anyMech(t, r, 30), dir(0, -30)
		if r.Allowed(f.Position, nil) == nil {
			t.Skip("starts well")
		}
		to := anyMech(t, r, 0)
		route, ref := Way(r, f, Request{Verb: VerbPark, Mech: &to})
		if ref != nil {
			return
		}
		depth := func(at unit.AzEl) []float64 {
			d, tr, m := skyOf(r, at), r.Travel, r.MarginDeg
			out := []float64{
				max(tr.AzMinDeg+m-at.AzDeg, at.AzDeg-(tr.AzMaxDeg-m)), max(tr.ElMinDeg+m-at.ElDeg, at.ElDeg-(tr.ElMaxDeg-m)),
				maskAt(r.Horizon, d.AzDeg) - d.ElDeg,
			}
			for _, z := range r.Zones {
				in := inZone(z, d)
				if in > -slackSeen && z.ElMinDeg <= maskAt(r.Horizon, d.AzDeg) { // no way out through the floor
					roofless := z
					roofless.ElMinDeg = -1000
					in = inZone(roofless, d)
				}
				out = append(out, in)
			}
			return out
		}
		least := depth(f.Position)
		drive(r, f.Position, route.Waypoints, func(at unit.AzEl) bool {
			for i, now := range depth(at) {
				if now > max(0, least[i])+zoneCornerDeg {
					t.Fatalf("from %v by %v: at %v rule %d is broken by %.2f°, after %.2f°", f.Position, route.Waypoints, at, i, now, least[i])
				}
				least[i] = min(least[i], now)
			}
			return true
		})
	})
}

// anyNumber draws numbers as they come off a bad wire.
func anyNumber(t *rapid.T, label string) float64 {
	if rapid.IntRange(0, 3).Draw(t, label+"?") > 0 {
		return rapid.Float64Range(-400, 800).Draw(t, label)
	}
	return rapid.OneOf(rapid.SampledFrom([]float64{math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 1e17}), rapid.Float64()).Draw(t, label)
}

func anyDir(t *rapid.T, label string) *unit.AzEl {
	if rapid.IntRange(0, 3).Draw(t, label+" given") == 0 {
		return nil
	}
	return dir(anyNumber(t, label+" az"), anyNumber(t, label+" el"))
}

// decideHolds is the claim of FuzzDecide: no facts and no request make the
// gate panic or hang; a refusal has a code, a reason, a way out and a JSON form;
// an allowed motion has a clear way, watched in small steps.
func decideHolds(t *rapid.T) {
	r := anyRules(t)
	if rapid.IntRange(0, 4).Draw(t, "spoil the rules") == 0 {
		n := anyNumber(t, "bad rule")
		switch rapid.IntRange(0, 6).Draw(t, "which rule") {
		case 0:
			r.Travel.AzMinDeg = n
		case 1:
			r.Travel.ElMaxDeg = n
		case 2:
			r.MarginDeg = n
		case 3:
			r.Offset.AzDeg = n
		case 4:
			r.AzSpeedDps = n
		case 5:
			r.Horizon = unit.FlatHorizon(n)
		case 6:
			r.Zones = append(r.Zones, Zone{AzFromDeg: n, AzToDeg: 40, ElMaxDeg: 40})
		}
	}
	f := well()
	f.Sun = anyDir(t, "sun")
	f.Position = allowedOrNot(t, r)
	f.Age = time.Duration(rapid.Int64().Draw(t, "age"))
	if rapid.Bool().Draw(t, "fresh") {
		f.Age = time.Second
	}
	f.Moving = rapid.Bool().Draw(t, "moving")
	if rapid.IntRange(0, 3).Draw(t, "trouble") == 0 {
		f.Mode = rapid.SampledFrom([]Mode{"", ModeStandby, ModeRemote, ModeOnSite, ModeMaint, ModeEStop, "x"}).Draw(t, "mode")
		f.Durable, f.Held, f.WindingOK = rapid.Bool().Draw(t, "durable"), rapid.Bool().Draw(t, "held"), rapid.Bool().Draw(t, "winding")
		f.Lease = Lease{Holder: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "lease"), Rank: Rank(rapid.IntRange(-1, 4).Draw(t, "rank"))}
	}
	q := Request{
		Verb:   rapid.SampledFrom([]Verb{VerbPoint, VerbPoint, VerbTrack, VerbTrack, VerbPark, VerbPrePoint, VerbTune, VerbSchedule, "", "x\x00"}).Draw(t, "verb"),
		Holder: rapid.SampledFrom([]string{"", "a"}).Draw(t, "holder"), Rank: Rank(rapid.IntRange(0, 2).Draw(t, "rank")),
		Target: anyDir(t, "target"), Mech: anyDir(t, "mech"), Already: rapid.Bool().Draw(t, "already"),
	}
	if rapid.IntRange(0, 3).Draw(t, "orbit") > 0 {
		q.Orbit = &Orbit{AgeDays: anyNumber(t, "age days"), MaxDays: rapid.SampledFrom([]float64{3, 500, math.NaN(), math.Inf(1)}).Draw(t, "max days")}
	}
	route, ref := Way(r, f, q)
	if ref != nil {
		if ref.Code == "" || ref.Why == "" || ref.Fix == "" {
			t.Fatalf("refusal without code, reason or way out: %+v", ref)
		}
		if !known(ref.Code) {
			t.Fatalf("code %q is not in Codes()", ref.Code)
		}
		if b, err := json.Marshal(ref); err != nil || !json.Valid(b) {
			t.Fatalf("refusal %+v has no JSON form: %v", ref, err)
		}
		if ref.Nearest != nil && !ref.Nearest.Finite() {
			t.Fatalf("nearest allowed is %v", *ref.Nearest)
		}
		return
	}
	if !q.Verb.Moves() {
		return
	}
	if r.Allowed(f.Position, f.Sun) != nil {
		return // recovery has its own property
	}
	drive(r, f.Position, route.Waypoints, func(at unit.AzEl) bool {
		if broken := observe(r, at, f.Sun); broken != "" {
			t.Fatalf("from %v by %v: at %v it breaks: %s", f.Position, route.Waypoints, at, broken)
		}
		return true
	})
}

func allowedOrNot(t *rapid.T, r *Rules) unit.AzEl {
	if rapid.IntRange(0, 5).Draw(t, "position") == 0 {
		return unit.AzEl{AzDeg: anyNumber(t, "position az"), ElDeg: anyNumber(t, "position el")}
	}
	return unit.AzEl{AzDeg: rapid.Float64Range(0, 360).Draw(t, "position az"), ElDeg: rapid.Float64Range(0, 90).Draw(t, "position el")}
}

func known(c Code) bool {
	for _, i := range Codes() {
		if i.Code == c {
			return true
		}
	}
	return false
}

func TestPropertyDecideHolds(t *testing.T) { rapid.Check(t, decideHolds) }

func FuzzDecide(f *testing.F) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var b []byte
		for range 400 {
			b = binary.LittleEndian.AppendUint64(b, rnd.Uint64())
		}
		f.Add(b)
	}
	f.Fuzz(rapid.MakeFuzz(decideHolds))
}
