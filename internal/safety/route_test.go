package safety

import (
	"math"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/unit"
)

// Hazard M-02: each limit, a tenth of a degree on either side of it, with and
// without an offset and for a mount whose zero is south.
func TestLimitsAreMechanical(t *testing.T) {
	for _, off := range []unit.AzEl{{}, {AzDeg: 7.5, ElDeg: -1.5}, {AzDeg: 180}, {AzDeg: -350, ElDeg: 3}} {
		r := station()
		r.Zones, r.Horizon, r.Offset = nil, unit.FlatHorizon(-20), off
		r.Travel = Travel{AzMinDeg: 0, AzMaxDeg: 300, ElMinDeg: 0, ElMaxDeg: 80}
		r.MarginDeg = 2
		tests := []struct {
			mech unit.AzEl
			want Code
		}{
			{unit.AzEl{AzDeg: 1.9, ElDeg: 40}, AzimuthLimit}, {unit.AzEl{AzDeg: 2, ElDeg: 40}, ""},
			{unit.AzEl{AzDeg: 2.1, ElDeg: 40}, ""},
			{unit.AzEl{AzDeg: 298.1, ElDeg: 40}, AzimuthLimit}, {unit.AzEl{AzDeg: 298, ElDeg: 40}, ""},
			{unit.AzEl{AzDeg: 297.9, ElDeg: 40}, ""},
			{unit.AzEl{AzDeg: 40, ElDeg: 1.9}, ElevationLimit}, {unit.AzEl{AzDeg: 40, ElDeg: 2}, ""},
			{unit.AzEl{AzDeg: 40, ElDeg: 2.1}, ""},
			{unit.AzEl{AzDeg: 40, ElDeg: 78.1}, ElevationLimit}, {unit.AzEl{AzDeg: 40, ElDeg: 78}, ""},
			{unit.AzEl{AzDeg: 40, ElDeg: 77.9}, ""},
		}
		for _, tt := range tests {
			if got := codeOf(r.Allowed(tt.mech, nil)); got != tt.want {
				t.Errorf("offset %v: Allowed(%v) = %q, want %q", off, tt.mech, got, tt.want)
			}
			// The same through the gate, by the true direction.
			d := unit.AzEl{AzDeg: tt.mech.AzDeg + off.AzDeg, ElDeg: tt.mech.ElDeg + off.ElDeg}
			f := well()
			f.Position = unit.AzEl{AzDeg: 150, ElDeg: 40}
			if got := codeOf(Decide(r, f, Request{Verb: VerbPoint, Target: &d})); got != tt.want {
				t.Errorf("offset %v: pointing to %v = %q, want %q", off, d, got, tt.want)
			}
		}
	}
}

func TestSouthCentredMountPointsSouthAtZero(t *testing.T) {
	r := station()
	r.Zones = nil
	r.Travel, r.MarginDeg, r.Offset = Travel{-180, 180, 0, 90}, 0, unit.AzEl{AzDeg: 180}
	route, ref := r.Route(unit.AzEl{AzDeg: 10, ElDeg: 30}, unit.AzEl{AzDeg: 180, ElDeg: 30}, nil)
	if ref != nil || math.Abs(route.Target().AzDeg) > 1e-9 {
		t.Fatalf("Route to true south = %v, %v; want mechanical azimuth 0", route, ref)
	}
	if route, ref = r.Route(unit.AzEl{AzDeg: -170, ElDeg: 30}, unit.AzEl{AzDeg: 0, ElDeg: 30}, nil); ref != nil || route.Target().AzDeg != -180 {
		t.Fatalf("Route to true north from mechanical -170 = %v, %v; want -180, the near end", route, ref)
	}
}

// Hazard M-05: the windings that a direction has on each kind of mount.
func TestWindings(t *testing.T) {
	tests := []struct {
		name     string
		lo, hi   float64
		at, from float64 // true azimuth; mechanical azimuth now
		want     []float64
	}{
		{"plain, north from the west", 0, 360, 0, 350, []float64{360, 0}},
		{"plain, north from the east", 0, 360, 0, 10, []float64{0, 360}},
		{"plain, no overlap", 0, 360, 359, 1, []float64{359}},
		{"overlap goes on over north", 0, 450, 20, 350, []float64{380, 20}},
		{"overlap, nearer the short way", 0, 450, 20, 100, []float64{20, 380}},
		{"overlap ends", 0, 450, 91, 440, []float64{91}},
		{"south stop", -180, 180, 190, 170, []float64{-170}},
		{"south stop, both ends", -180, 180, 180, 170, []float64{180, -180}},
		{"two turns", -180, 540, 10, 360, []float64{370, 10}},
		{"two turns, three ways to the end", -180, 540, 180, -170, []float64{-180, 180, 540}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := station()
			r.Travel, r.MarginDeg, r.Zones = Travel{tt.lo, tt.hi, 0, 90}, 0, nil
			got := r.Mechanical(unit.AzEl{AzDeg: tt.at, ElDeg: 30}, unit.AzEl{AzDeg: tt.from, ElDeg: 30})
			if len(got) != len(tt.want) {
				t.Fatalf("Mechanical = %v, want azimuths %v", got, tt.want)
			}
			for i := range got {
				if math.Abs(got[i].AzDeg-tt.want[i]) > 1e-9 {
					t.Fatalf("Mechanical = %v, want azimuths %v", got, tt.want)
				}
			}
		})
	}
}

// A mast on the near winding: the far one is taken, the long way round.
func TestRouteTakesAnotherWinding(t *testing.T) {
	r := station()
	r.Zones = []Zone{{Name: "tower", AzFromDeg: 10, AzToDeg: 14, ElMinDeg: 0, ElMaxDeg: 90, Reason: "the tower"}}
	route, ref := r.Route(unit.AzEl{AzDeg: 20, ElDeg: 20}, unit.AzEl{AzDeg: 5, ElDeg: 20}, nil)
	if ref != nil || math.Abs(route.Target().AzDeg-365) > 1e-9 {
		t.Fatalf("Route = %v, %v; want the winding at 365°", route, ref)
	}
	r.Travel.AzMaxDeg = 360
	if _, ref = r.Route(unit.AzEl{AzDeg: 20, ElDeg: 20}, unit.AzEl{AzDeg: 5, ElDeg: 20}, nil); codeOf(ref) != KeepOut || !strings.Contains(ref.Why, "tower") {
		t.Fatalf("without the overlap: %v, want KEEP_OUT naming the tower", ref)
	}
}

// Hazards M-03 and M-34: a mast on the diagonal is cleared by raising first,
// then turning, then lowering.
func TestRouteRaisesFirst(t *testing.T) {
	r := station()
	from, to := unit.AzEl{AzDeg: 150, ElDeg: 10}, unit.AzEl{AzDeg: 210, ElDeg: 20}
	route, ref := r.Route(from, to, nil)
	if ref != nil || len(route.Waypoints) != 3 {
		t.Fatalf("Route = %v, %v; want three waypoints", route, ref)
	}
	w := route.Waypoints
	if w[0].AzDeg != from.AzDeg || w[0].ElDeg < 40 || w[1] != (unit.AzEl{AzDeg: 210, ElDeg: w[0].ElDeg}) || w[2] != to {
		t.Errorf("waypoints %v: want up over 40°, across, down", w)
	}
	if direct := r.SlewTime(from, to); route.Time <= direct {
		t.Errorf("the detour takes %v, no longer than the straight way (%v)", route.Time, direct)
	}
}

// Hazard M-03: peaks of the mask narrower than the sampling, anywhere.
func TestNarrowMaskPeakBlocksTheWay(t *testing.T) {
	for az := 100.0; az < 101; az += 0.07 {
		for _, width := range []float64{0.05, 0.3, 1} {
			for _, off := range []float64{0, 180, 33.3} {
				h, err := unit.NewHorizon([]unit.AzEl{{AzDeg: 0, ElDeg: 3}, {AzDeg: az - width, ElDeg: 3}, {AzDeg: az, ElDeg: 60}, {AzDeg: az + width, ElDeg: 3}, {AzDeg: 240, ElDeg: 3}})
				if err != nil {
					t.Fatal(err)
				}
				r := station()
				r.Zones, r.Horizon, r.Offset = nil, h, unit.AzEl{AzDeg: off}
				r.Travel = Travel{-360, 720, 0, 90}
				for _, way := range [][2]float64{{80, 120}, {120, 80}} {
					for _, el := range [][2]float64{{10, 10}, {10, 40}, {50, 20}} {
						f := well()
						f.Position = unit.AzEl{AzDeg: way[0] - off, ElDeg: el[0]}
						if ref := Decide(r, f, track(way[1]-off, el[1])); codeOf(ref) != ElevationBelowMask {
							t.Fatalf("peak of 60° at %.2f±%.2f, offset %v, from az %v el %v to az %v el %v: %v, want ELEVATION_BELOW_MASK", az, width, off, way[0], el[0], way[1], el[1], ref)
						}
					}
				}
				route, ref := r.RouteTo(unit.AzEl{AzDeg: 80 - off, ElDeg: 10}, unit.AzEl{AzDeg: 120 - off, ElDeg: 10}, nil)
				if ref != nil || route.Waypoints[0].ElDeg < 60-angleSlack {
					t.Fatalf("peak of 60° at %.2f±%.2f, offset %v: route %v, %v; want one over the peak", az, width, off, route, ref)
				}
			}
		}
	}
}

// The narrowest zone that the configuration may hold is seen at any phase of
// the sampling, at any ratio of the axes' speeds.
func TestNarrowZoneBlocksTheWay(t *testing.T) {
	for from := 140.0; from < 141; from += 0.05 {
		for _, el := range []float64{0.1, 1, 3, 30} {
			r := station()
			r.ElSpeedDps = el
			r.Zones = []Zone{{Name: "mast", AzFromDeg: 150, AzToDeg: 151, ElMinDeg: 0, ElMaxDeg: 90, Reason: "x"}}
			if err := r.Validate(); err != nil {
				t.Fatal(err)
			}
			f := well()
			f.Position = unit.AzEl{AzDeg: from, ElDeg: 20}
			if ref := Decide(r, f, track(from+25, 40)); codeOf(ref) != KeepOut {
				t.Fatalf("from az %.2f past a zone at 150..151, elevation speed %v: %v, want KEEP_OUT", from, el, ref)
			}
		}
	}
}

// Over the top, the sky is that of the opposite azimuth.
func TestOverTheTopSeesTheOtherSide(t *testing.T) {
	r := station()
	r.Travel.ElMaxDeg = 180
	f := well()
	f.Position = unit.AzEl{AzDeg: 10, ElDeg: 100}
	tests := []struct {
		to   unit.AzEl
		want Code
	}{
		{unit.AzEl{AzDeg: 10, ElDeg: 130}, ""},
		{unit.AzEl{AzDeg: 10, ElDeg: 139}, ""},
		{unit.AzEl{AzDeg: 10, ElDeg: 141}, KeepOut}, // true az 190-360+180 = 190: the edge
		{unit.AzEl{AzDeg: 60, ElDeg: 174}, ""},
		{unit.AzEl{AzDeg: 60, ElDeg: 176}, ElevationBelowMask},
	}
	tests[2].to.AzDeg = 5 // true az 185, inside the mast
	for _, tt := range tests {
		f.Position.AzDeg = tt.to.AzDeg
		if got := codeOf(Decide(r, f, track(tt.to.AzDeg, tt.to.ElDeg))); got != tt.want {
			t.Errorf("tracking to mechanical %v = %q, want %q", tt.to, got, tt.want)
		}
	}
}

// SAFETY rule 11: from where it must not be, the antenna may only come out.
func TestRecoveryMovesOutOnly(t *testing.T) {
	tests := []struct {
		name     string
		from, to unit.AzEl
		want     Code // "" for allowed
	}{
		{"below the mask: up", unit.AzEl{AzDeg: 90, ElDeg: 2}, unit.AzEl{AzDeg: 90, ElDeg: 20}, ""},
		{"below the mask: slanting up", unit.AzEl{AzDeg: 90, ElDeg: 2}, unit.AzEl{AzDeg: 100, ElDeg: 20}, ""},
		{"below the mask: into the mast", unit.AzEl{AzDeg: 165, ElDeg: 2}, unit.AzEl{AzDeg: 195, ElDeg: 6}, KeepOut},
		{"outside the azimuth travel: back in", unit.AzEl{AzDeg: 455, ElDeg: 30}, unit.AzEl{AzDeg: 400, ElDeg: 30}, ""},
		{"outside the azimuth travel: the other end through the mast's side", unit.AzEl{AzDeg: -170, ElDeg: 30}, unit.AzEl{AzDeg: 20, ElDeg: 30}, ""},
		{"outside the azimuth travel: through the mast", unit.AzEl{AzDeg: -200, ElDeg: 30}, unit.AzEl{AzDeg: 20, ElDeg: 30}, KeepOut},
		{"above the elevation travel: down", unit.AzEl{AzDeg: 90, ElDeg: 94}, unit.AzEl{AzDeg: 90, ElDeg: 80}, ""},
		{"in the mast: out by the near side", unit.AzEl{AzDeg: 174, ElDeg: 20}, unit.AzEl{AzDeg: 150, ElDeg: 20}, ""},
		{"in the mast: through to the far side", unit.AzEl{AzDeg: 174, ElDeg: 20}, unit.AzEl{AzDeg: 210, ElDeg: 20}, KeepOut},
		{"in the mast: out and back in", unit.AzEl{AzDeg: 189, ElDeg: 20}, unit.AzEl{AzDeg: 175 + 360, ElDeg: 45}, AzimuthLimit},
		{"in the mast: over its top", unit.AzEl{AzDeg: 180, ElDeg: 38}, unit.AzEl{AzDeg: 180, ElDeg: 60}, ""},
		{"low in the mast: over its top", unit.AzEl{AzDeg: 180, ElDeg: 6}, unit.AzEl{AzDeg: 180, ElDeg: 60}, ""},
		{"in the mast: deeper", unit.AzEl{AzDeg: 180, ElDeg: 38}, unit.AzEl{AzDeg: 185, ElDeg: 6}, KeepOut},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := well()
			f.Position = tt.from
			if ref := Decide(station(), f, track(tt.to.AzDeg, tt.to.ElDeg)); codeOf(ref) != tt.want {
				t.Errorf("from %v to %v: %v, want %q", tt.from, tt.to, ref, tt.want)
			}
		})
	}
}

// What is near is found: the mask straight above, the nearer side of a mast,
// the end of the travel, the sun's edge.
func TestNearestAllowedIsNear(t *testing.T) {
	sun := func(r *Rules, f *Facts) { r.SunSeparationDeg, f.Sun = 10, dir(100, 45) }
	tests := []struct {
		name   string
		set    func(*Rules, *Facts)
		want   unit.AzEl
		within float64 // degrees from what was asked
	}{
		{"below the mask", nil, unit.AzEl{AzDeg: 90, ElDeg: -30}, 35.05},
		{"in the mast", nil, unit.AzEl{AzDeg: 172, ElDeg: 20}, 2.1},
		{"in the mast near its top", nil, unit.AzEl{AzDeg: 180, ElDeg: 37}, 3.1},
		{"over the top", nil, unit.AzEl{AzDeg: 90, ElDeg: 90}, 1.1},
		{"past the end of the travel", func(r *Rules, _ *Facts) { r.Travel.AzMaxDeg = 300 }, unit.AzEl{AzDeg: 305, ElDeg: 6}, 6.1},
		{"at the sun", sun, unit.AzEl{AzDeg: 100, ElDeg: 45}, 11.5},
		{"beside the sun", func(r *Rules, f *Facts) { sun(r, f); f.Position.ElDeg = 70 }, unit.AzEl{AzDeg: 100, ElDeg: 50}, 8},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, f := station(), well()
			if tt.set != nil {
				tt.set(r, &f)
			}
			ref := Decide(r, f, Request{Verb: VerbPoint, Target: &tt.want})
			if ref == nil || ref.Nearest == nil {
				t.Fatalf("pointing to %v: %+v, want a refusal with the nearest direction", tt.want, ref)
			}
			if off := unit.Separation(*ref.Nearest, tt.want); off > tt.within {
				t.Errorf("nearest to %v is %v, %.1f° away, want at most %.1f°", tt.want, *ref.Nearest, off, tt.within)
			}
			if again := Decide(r, f, Request{Verb: VerbPoint, Target: ref.Nearest}); again != nil {
				t.Errorf("nearest to %v is %v, itself refused: %v", tt.want, *ref.Nearest, again)
			}
		})
	}
}

func TestRulesThatMakeNoSense(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	zone := func(z Zone) func(*Rules) { return func(r *Rules) { r.Zones = []Zone{z} } }
	bad := map[string]func(*Rules){
		"azimuth travel backwards":   func(r *Rules) { r.Travel.AzMinDeg, r.Travel.AzMaxDeg = 10, 10 },
		"azimuth travel of NaN":      func(r *Rules) { r.Travel.AzMinDeg = nan },
		"azimuth travel endless":     func(r *Rules) { r.Travel.AzMaxDeg = inf },
		"azimuth travel both ways":   func(r *Rules) { r.Travel.AzMinDeg, r.Travel.AzMaxDeg = -inf, inf },
		"elevation travel backwards": func(r *Rules) { r.Travel.ElMaxDeg = -1 },
		"elevation travel of NaN":    func(r *Rules) { r.Travel.ElMaxDeg = nan },
		"elevation travel too far":   func(r *Rules) { r.Travel.ElMaxDeg = 211 },
		"margin of NaN":              func(r *Rules) { r.MarginDeg = nan },
		"margin below nought":        func(r *Rules) { r.MarginDeg = -0.1 },
		"margin takes it all":        func(r *Rules) { r.MarginDeg = 45 },
		"standing azimuth":           func(r *Rules) { r.AzSpeedDps = 0 },
		"creeping elevation":         func(r *Rules) { r.ElSpeedDps = 0.09 },
		"elevation speed of NaN":     func(r *Rules) { r.ElSpeedDps = nan },
		"no acceleration":            func(r *Rules) { r.AccelDps2 = 0 },
		"sun separation of NaN":      func(r *Rules) { r.SunSeparationDeg = nan },
		"sun separation below":       func(r *Rules) { r.SunSeparationDeg = -1 },
		"offset of NaN":              func(r *Rules) { r.Offset.ElDeg = nan },
		"offset too large":           func(r *Rules) { r.Offset.AzDeg = 360.1 },
		"mask of NaN":                func(r *Rules) { r.Horizon = unit.FlatHorizon(nan) },
		"mask over the top":          func(r *Rules) { r.Horizon = unit.FlatHorizon(90.1) },
		"zone of no width":           zone(Zone{AzFromDeg: 90, AzToDeg: 90, ElMinDeg: 0, ElMaxDeg: 30}),
		"zone too thin":              zone(Zone{AzFromDeg: 359.6, AzToDeg: 0.5, ElMinDeg: 0, ElMaxDeg: 30}),
		"zone too low":               zone(Zone{AzFromDeg: 90, AzToDeg: 95, ElMinDeg: 0, ElMaxDeg: 0.9}),
		"zone upside down":           zone(Zone{AzFromDeg: 90, AzToDeg: 95, ElMinDeg: 30, ElMaxDeg: 0}),
		"zone of NaN":                zone(Zone{AzFromDeg: nan, AzToDeg: 95, ElMinDeg: 0, ElMaxDeg: 30}),
		"zone without a top":         zone(Zone{AzFromDeg: 90, AzToDeg: 95, ElMinDeg: 0, ElMaxDeg: inf}),
	}
	for name, set := range bad {
		r := station()
		set(r)
		if err := r.Validate(); err == nil {
			t.Errorf("%s: Validate = nil", name)
		}
	}
	good := map[string]func(*Rules){
		"as it is":                 func(*Rules) {},
		"zone across north":        zone(Zone{AzFromDeg: 350, AzToDeg: 10, ElMinDeg: 0, ElMaxDeg: 30}),
		"zone of the whole circle": zone(Zone{AzFromDeg: 0, AzToDeg: 360, ElMinDeg: -90, ElMaxDeg: 3}),
		"south centre":             func(r *Rules) { r.Travel = Travel{-180, 180, 0, 180}; r.Offset.AzDeg = 180 },
	}
	for name, set := range good {
		r := station()
		set(r)
		if err := r.Validate(); err != nil {
			t.Errorf("%s: Validate = %v", name, err)
		}
	}
}

func TestZoneEdges(t *testing.T) {
	north := Zone{AzFromDeg: 350, AzToDeg: 10, ElMinDeg: 10, ElMaxDeg: 30}
	all := Zone{AzFromDeg: 0, AzToDeg: 360, ElMinDeg: 10, ElMaxDeg: 30}
	tests := []struct {
		z      Zone
		az, el float64
		in     bool
	}{
		{north, 350, 20, false}, {north, 350.1, 20, true}, {north, 0, 20, true}, {north, 360, 20, true}, {north, -5, 20, true},
		{north, 9.9, 20, true}, {north, 10, 20, false}, {north, 180, 20, false},
		{north, 0, 9.9, false}, {north, 0, 10, true}, {north, 0, 29.9, true}, {north, 0, 30, false},
		{north, 180, 160, true}, {north, 0, 160, false}, // over the top
		{all, 0, 20, true}, {all, 359.99, 20, true}, {all, 180, 20, true}, {all, 180, 31, false},
		{all, math.NaN(), 20, true}, {north, 0, math.NaN(), true}, // doubt is inside
	}
	for _, tt := range tests {
		if got := tt.z.Contains(unit.AzEl{AzDeg: tt.az, ElDeg: tt.el}); got != tt.in {
			t.Errorf("zone %v..%v contains az %v el %v: %v, want %v", tt.z.AzFromDeg, tt.z.AzToDeg, tt.az, tt.el, got, tt.in)
		}
	}
}

func TestInSkyRefusesWhatIsNoDirection(t *testing.T) {
	for _, d := range []unit.AzEl{{AzDeg: math.NaN(), ElDeg: 45}, {AzDeg: 10, ElDeg: math.NaN()}, {AzDeg: math.Inf(1), ElDeg: 45}, {AzDeg: 10, ElDeg: math.Inf(1)}} {
		if station().InSky(d, nil) == nil {
			t.Errorf("InSky(%v) is allowed", d)
		}
	}
}

// Hazard M-21: when the host dies, the last target that the controller has lies
// on the way that was proved, not beside it.
func TestAheadStaysOnTheProvedWay(t *testing.T) {
	r := station()
	from, to := unit.AzEl{AzDeg: 150, ElDeg: 12}, unit.AzEl{AzDeg: 210, ElDeg: 60}
	tests := []struct {
		after time.Duration
		want  unit.AzEl
	}{
		{0, from},
		{time.Second, unit.AzEl{AzDeg: 156, ElDeg: 15}},
		{10 * time.Second, unit.AzEl{AzDeg: 210, ElDeg: 42}},
		{time.Minute, to},
	}
	for _, tt := range tests {
		if got := r.Ahead(from, to, tt.after); got != tt.want {
			t.Errorf("Ahead(%v) = %v, want %v", tt.after, got, tt.want)
		}
	}
	if got := r.Ahead(to, from, time.Second); got != (unit.AzEl{AzDeg: 204, ElDeg: 57}) {
		t.Errorf("back after 1 s: %v", got)
	}
}

func TestClearSeesWhatIsLeftOfARoute(t *testing.T) {
	r := station()
	left := []unit.AzEl{{AzDeg: 210, ElDeg: 45}, {AzDeg: 210, ElDeg: 20}}
	if ref := r.Clear(unit.AzEl{AzDeg: 150, ElDeg: 45}, left, nil); ref != nil {
		t.Errorf("over the mast: %v", ref)
	}
	if ref := r.Clear(unit.AzEl{AzDeg: 150, ElDeg: 30}, left[1:], nil); codeOf(ref) != KeepOut {
		t.Errorf("through the mast: %v, want KEEP_OUT", ref)
	}
	for _, bad := range []unit.AzEl{{AzDeg: math.NaN(), ElDeg: 45}, {AzDeg: 150, ElDeg: math.Inf(1)}} {
		if r.Clear(bad, left, nil) == nil || r.Clear(left[0], []unit.AzEl{bad}, nil) == nil {
			t.Errorf("a way with %v is clear", bad)
		}
	}
}
