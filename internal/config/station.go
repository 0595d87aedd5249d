package config

import (
	"fmt"
	"strings"

	"gsd-mcp/internal/unit"
)

// Site is where the station stands.
func (c *Config) Site() unit.Site {
	return unit.Site{LatDeg: c.Station.LatitudeDeg, LonDeg: c.Station.LongitudeDeg, AltM: c.Station.AltitudeM}
}

// Mask is the horizon mask. Its error names the point that is wrong.
func (c *Config) Mask() (unit.Horizon, error) {
	h := c.Horizon
	if len(h.Points) == 0 {
		if !(h.ElevationDeg >= -5 && h.ElevationDeg <= 90) {
			return unit.Horizon{}, fmt.Errorf("horizon elevation %v° is outside -5..90", h.ElevationDeg)
		}
		return unit.FlatHorizon(h.ElevationDeg), nil
	}
	points := make([]unit.AzEl, len(h.Points))
	for i, p := range h.Points {
		if len(p) != 2 {
			return unit.Horizon{}, fmt.Errorf("horizon point %d has %d numbers, want an azimuth and an elevation", i+1, len(p))
		}
		points[i] = unit.AzEl{AzDeg: p[0], ElDeg: p[1]}
	}
	return unit.NewHorizon(points)
}

// HasRotator reports whether a rotator is configured.
func (c *Config) HasRotator() bool { return c.Rotator.Driver != "" }

// HasRadio reports whether any radio is configured.
func (c *Config) HasRadio() bool { return len(c.Radio) > 0 }

// Simulated reports whether no port of the configuration is real hardware:
// each is simulated or a pseudo-terminal. Only such a station may make up time.
func (c *Config) Simulated() bool {
	if c.HasRotator() && !simulatedPort(c.Rotator.Port) {
		return false
	}
	for _, r := range c.Radio {
		if !simulatedPort(r.Port) {
			return false
		}
	}
	return c.HasRotator() || c.HasRadio()
}

func simulatedPort(port string) bool {
	return port == SimPort || strings.HasPrefix(port, "/dev/pts/")
}

// RadioFor returns the radio that serves a path, "downlink" or "uplink".
func (c *Config) RadioFor(path string) (Radio, bool) {
	for _, r := range c.Radio {
		if r.Role == "both" || r.Role == path {
			return r, true
		}
	}
	return Radio{}, false
}

// Overrides returns what the configuration says of a satellite, if anything.
func (c *Config) Overrides(noradID int) (Satellite, bool) {
	for _, s := range c.Satellite {
		if s.NoradID == noradID {
			return s, true
		}
	}
	return Satellite{}, false
}
