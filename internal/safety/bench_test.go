package safety

import (
	"testing"

	"gsd-mcp/internal/unit"
)

func benchRules(b *testing.B) *Rules {
	h, err := unit.NewHorizon([]unit.AzEl{{AzDeg: 0, ElDeg: 5}, {AzDeg: 60, ElDeg: 9}, {AzDeg: 90, ElDeg: 12}, {AzDeg: 180, ElDeg: 3}, {AzDeg: 270, ElDeg: 6}})
	if err != nil {
		b.Fatal(err)
	}
	return &Rules{Travel: Travel{0, 450, 0, 90}, MarginDeg: 1, Horizon: h, AzSpeedDps: 6, ElSpeedDps: 2.7, AccelDps2: 6,
		Zones: []Zone{{"mast", 40, 48, -5, 90, "x"}, {"roof", 220, 300, -5, 35, "x"}, {"w", 130, 133, -5, 90, "x"}}}
}

func BenchmarkNearestAllowedWalledIn(b *testing.B) {
	r := benchRules(b)
	for b.Loop() {
		r.NearestAllowed(unit.AzEl{AzDeg: 90, ElDeg: 20}, unit.AzEl{AzDeg: 200, ElDeg: 30}, nil)
	}
}

func BenchmarkRoute(b *testing.B) {
	r := benchRules(b)
	for b.Loop() {
		r.Route(unit.AzEl{AzDeg: 200, ElDeg: 20}, unit.AzEl{AzDeg: 310, ElDeg: 20}, nil)
	}
}
