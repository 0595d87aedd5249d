package config

import "slices"

// Versions lists the MCP revisions that the program can speak, newest first.
func Versions() []string {
	return []string{"2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"}
}

// Default is a station with nothing fitted and nowhere to stand: every value
// that `gsd-mcp config example` writes out, with its reason beside it there. It
// is not a valid configuration until it has a station id and a site.
func Default() Config {
	return Config{
		Version: Schema,
		Horizon: Horizon{ElevationDeg: 5},
		Rotator: defaultRotator(),
		Antenna: Antenna{Kind: "yagi", BeamwidthDeg: 30},
		Transmit: Transmit{
			MinElevationDeg: 5,
			MaxOverS:        120,
			DutyPercent:     30,
			DutyWindowS:     600,
			IdentifyEveryS:  600,
		},
		Elements: Elements{
			Sources:  []string{"https://celestrak.org/NORAD/elements/gp.php?GROUP=amateur&FORMAT=json"},
			RefreshH: 12,
			MaxAge:   MaxAge{LEOLowDays: 3, LEODays: 7, OtherDays: 14},
		},
		Clock: Clock{MaxErrorMs: 5000, WarnErrorMs: 1500, StepMs: 200},
		Weather: Weather{
			Source: "none", WindWarnMps: 15, WindStowMps: 20, WindClearMps: 12, ClearAfterS: 600, StaleS: 60,
		},
		Schedule: Schedule{PrepassLeadS: 120, ParkAfterS: 900, MinElevationDeg: 10, MinDurationS: 60, HorizonH: 48, KeepDays: 90},
		Hub:      Hub{Confirmation: true, QuotaMiB: 64, ReserveMiB: 256},
		Access: Access{
			Budgets: Budgets{BookingsPerHour: 30, MovesPerHour: 60, TransmitsPerHour: 6, ReadsPerSecond: 20, InFlight: 4},
		},
		MCP:        MCP{Versions: Versions()},
		Trace:      Trace{MaxMB: 50},
		Log:        Log{Level: "info", Format: "text"},
		Simulation: Simulation{Rate: 1},
	}
}

func defaultRotator() Rotator {
	return Rotator{
		DeadbandDeg:   1,
		MinIntervalMs: 1000,
		Park:          Park{AzimuthDeg: 180, ElevationDeg: 80},
		Limits: Limits{
			AzimuthMinDeg: 0, AzimuthMaxDeg: 360, ElevationMinDeg: 0, ElevationMaxDeg: 90,
			AzimuthSpeedDps: 3, ElevationSpeedDps: 2, AccelerationDps2: 3,
			MarginDeg: 2, MaxTurns: 1.25, SpeedFactor: 0.8, UnknownWrapDeg: 30,
			DutyOnS: 300, DutyWindowS: 600,
		},
		Watch: Watch{
			StallDeg: 1, StallS: 3, StartS: 1, WrongWayDeg: 3, OvershootDeg: 5, UncommandedDeg: 3, JumpFactor: 1.5,
			StaleMovingS: 2, StaleIdleS: 10, StopS: 2, StopRetryMs: 500, TrackErrorDeg: 10, TrackErrorS: 5,
			ReversalPauseMs: 1000, MaxReversalsPerMin: 6, MaxStartsPerMin: 20,
		},
	}
}

// defaultRadio and defaultSatellite are what an entry of the list starts from.
func defaultRadio() Radio         { return Radio{Role: "both", KeyingLine: "none"} }
func defaultSatellite() Satellite { return Satellite{Priority: 5} }

// Simulated is the station that runs without a configuration: a mount that
// winds a turn and a quarter, a radio, a mast in the way, all of it made up, at
// a real place.
func Simulated() Config {
	c := Default()
	c.Station = Station{
		ID: "sim-london", Name: "Simulated station, London",
		LatitudeDeg: 51.5074, LongitudeDeg: -0.1278, AltitudeM: 25,
	}
	c.KeepOut = []KeepOut{{
		Name: "mast", AzimuthDeg: [2]float64{170, 190}, ElevationDeg: [2]float64{0, 35},
		Reason: "the lattice mast of the neighbouring station",
	}}
	c.Rotator.Profile = SimPort
	c.Rotator.Driver, c.Rotator.Port, c.Rotator.Baud = "easycomm2", SimPort, 9600
	c.Rotator.Limits.AzimuthMaxDeg, c.Rotator.Limits.ElevationMaxDeg = 450, 180
	c.Rotator.Limits.AzimuthSpeedDps, c.Rotator.Limits.ElevationSpeedDps, c.Rotator.Limits.AccelerationDps2 = 6, 2.7, 6
	c.Rotator.Limits.DutyOnS = 0
	c.Rotator.DeadbandDeg, c.Rotator.MinIntervalMs, c.Rotator.AbsoluteAzimuth = 0.2, 0, true
	c.Rotator.Park = Park{AzimuthDeg: 90, ElevationDeg: 90}
	r := defaultRadio()
	r.Profile, r.Driver, r.Port, r.Baud = SimPort, "icom-ic9700", SimPort, 115200
	c.Radio = []Radio{r}
	c.Satellite = simulatedSatellites()
	c.Elements.Sources = nil // the embedded elements: a simulated station needs no network
	return c
}

// simulatedSatellites are well-known downlinks of the embedded elements.
func simulatedSatellites() []Satellite {
	return []Satellite{
		{NoradID: 25544, Name: "ISS", DownlinkHz: 145_800_000, Mode: "FM", Priority: 5},
		{NoradID: 27607, Name: "SO-50", DownlinkHz: 436_795_000, Mode: "FM", Priority: 5},
		{NoradID: 39444, Name: "AO-73", DownlinkHz: 145_935_000, Mode: "USB", Priority: 5},
		{NoradID: 24278, Name: "FO-29", DownlinkHz: 435_850_000, Mode: "USB", Priority: 5},
		{NoradID: 44909, Name: "RS-44", DownlinkHz: 435_640_000, Mode: "USB", Priority: 5},
		{NoradID: 7530, Name: "AO-7", DownlinkHz: 145_950_000, Mode: "USB", Priority: 5},
	}
}

// clone copies c so that changing the copy's lists does not change c.
func (c *Config) clone() *Config {
	d := *c
	d.Horizon.Points = slices.Clone(c.Horizon.Points)
	for i, p := range d.Horizon.Points {
		d.Horizon.Points[i] = slices.Clone(p)
	}
	d.KeepOut = slices.Clone(c.KeepOut)
	d.Radio = slices.Clone(c.Radio)
	d.Satellite = slices.Clone(c.Satellite)
	d.Transmit.BandsHz = slices.Clone(c.Transmit.BandsHz)
	d.Elements.Sources = slices.Clone(c.Elements.Sources)
	return &d
}
