package main

import (
	"testing"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/unit"
)

// A simulated mount starts where it is parked, in degrees of its own; outside
// of its travel there is no mount.
func TestASimulatedMountStartsParkedInItsOwnFrame(t *testing.T) {
	tests := []struct {
		name         string
		park         config.Park
		offset       unit.AzEl
		azMin, azMax float64
		want         unit.AzEl
	}{
		{"as it is", config.Park{AzimuthDeg: 180, ElevationDeg: 80}, unit.AzEl{}, 0, 450, unit.AzEl{AzDeg: 180, ElDeg: 80}},
		{"stop at south", config.Park{AzimuthDeg: 350, ElevationDeg: 80}, unit.AzEl{}, -180, 180, unit.AzEl{AzDeg: -10, ElDeg: 80}},
		{"counts from south", config.Park{AzimuthDeg: 90, ElevationDeg: 80}, unit.AzEl{AzDeg: 180}, 0, 360, unit.AzEl{AzDeg: 270, ElDeg: 80}},
		{"fixed tilt", config.Park{AzimuthDeg: 180, ElevationDeg: 15}, unit.AzEl{ElDeg: 15}, 0, 360, unit.AzEl{AzDeg: 180}},
		{"two turns", config.Park{AzimuthDeg: 270, ElevationDeg: 90}, unit.AzEl{}, -180, 540, unit.AzEl{AzDeg: 270, ElDeg: 90}},
		{"rounded past the end", config.Park{AzimuthDeg: 180, ElevationDeg: 90.05}, unit.AzEl{}, 0, 360, unit.AzEl{AzDeg: 180, ElDeg: 90}},
	}
	for _, tt := range tests {
		c := config.Rotator{Park: tt.park, OffsetAzimuthDeg: tt.offset.AzDeg, OffsetElevationDeg: tt.offset.ElDeg,
			Limits: config.Limits{AzimuthMinDeg: tt.azMin, AzimuthMaxDeg: tt.azMax, ElevationMaxDeg: 90}}
		if got := parked(c); got != tt.want {
			t.Errorf("%s: parked = %v, want %v", tt.name, got, tt.want)
		}
	}
}
