// Package config reads station.toml: strict TOML, every mistake with its line
// and its fix. It must never write the file, print a secret, or touch a device.
package config

import (
	"strings"
	"time"
)

// Schema is the version of station.toml that this program reads.
const Schema = 1

// SimPort is the port of a simulated device.
const SimPort = "sim"

// Config is station.toml with every default filled in. Angles are degrees,
// azimuths clockwise from true north, times in the unit that the name says.
type Config struct {
	Version    int         `toml:"version"`
	Station    Station     `toml:"station"`
	Horizon    Horizon     `toml:"horizon"`
	KeepOut    []KeepOut   `toml:"keep_out"`
	Rotator    Rotator     `toml:"rotator"`
	Antenna    Antenna     `toml:"antenna"`
	Radio      []Radio     `toml:"radio"`
	Transmit   Transmit    `toml:"transmit"`
	Satellite  []Satellite `toml:"satellite"`
	Elements   Elements    `toml:"elements"`
	Clock      Clock       `toml:"clock"`
	Weather    Weather     `toml:"weather"`
	Schedule   Schedule    `toml:"schedule"`
	Hub        Hub         `toml:"hub"`
	Access     Access      `toml:"access"`
	MCP        MCP         `toml:"mcp"`
	Rotctl     Rotctl      `toml:"rotctl"`
	Trace      Trace       `toml:"trace"`
	Log        Log         `toml:"log"`
	Simulation Simulation  `toml:"simulation"`
}

// Station says what and where the station is.
type Station struct {
	ID           string  `toml:"id"` // [a-z0-9-]{1,32}; part of every topic and event
	Name         string  `toml:"name"`
	LatitudeDeg  float64 `toml:"latitude_deg"`  // north positive
	LongitudeDeg float64 `toml:"longitude_deg"` // east positive
	AltitudeM    float64 `toml:"altitude_m"`    // above the WGS-84 ellipsoid
	Callsign     string  `toml:"callsign"`
}

// Horizon is the least usable elevation: flat, or by azimuth.
type Horizon struct {
	ElevationDeg float64     `toml:"elevation_deg"`
	Points       [][]float64 `toml:"points"` // pairs of azimuth and elevation; empty: flat
}

// KeepOut is a part of the sky that the antenna must neither point into nor
// pass through. The azimuth runs clockwise from the first to the second value.
type KeepOut struct {
	Name         string     `toml:"name"`
	AzimuthDeg   [2]float64 `toml:"azimuth_deg"`
	ElevationDeg [2]float64 `toml:"elevation_deg"`
	Reason       string     `toml:"reason"`
}

// Rotator is the mount and the controller that turns it.
type Rotator struct {
	Profile            string  `toml:"profile"` // a file of hw/rotator; its values are the defaults of this table
	Driver             string  `toml:"driver"`  // protocol, a row of the table of rotator drivers
	Port               string  `toml:"port"`    // /dev/serial/by-id/..., or "sim"
	Baud               int     `toml:"baud"`    // 0: the driver's default
	OffsetAzimuthDeg   float64 `toml:"offset_azimuth_deg"`
	OffsetElevationDeg float64 `toml:"offset_elevation_deg"`
	AbsoluteAzimuth    bool    `toml:"absolute_azimuth"` // the controller reports the winding, not azimuth modulo a turn
	DeadbandDeg        float64 `toml:"deadband_deg"`
	MinIntervalMs      int     `toml:"min_interval_ms"` // between two moves
	SettleMs           int     `toml:"settle_ms"`       // deafness after the port is opened; 0: the driver's
	MovesOnOpen        bool    `toml:"moves_on_open"`   // opening the port may home the mount
	Park               Park    `toml:"park"`
	Limits             Limits  `toml:"limits"`
	Watch              Watch   `toml:"watch"`
}

// Park is where the antenna rests, as a true direction.
type Park struct {
	AzimuthDeg   float64 `toml:"azimuth_deg"`
	ElevationDeg float64 `toml:"elevation_deg"`
}

// Limits is the mount's travel in mechanical degrees and what its motors can
// do. Azimuth is unwrapped: 0..450 is a turn and a quarter.
type Limits struct {
	AzimuthMinDeg     float64 `toml:"azimuth_min_deg"`
	AzimuthMaxDeg     float64 `toml:"azimuth_max_deg"`
	ElevationMinDeg   float64 `toml:"elevation_min_deg"`
	ElevationMaxDeg   float64 `toml:"elevation_max_deg"`
	AzimuthSpeedDps   float64 `toml:"azimuth_speed_dps"`
	ElevationSpeedDps float64 `toml:"elevation_speed_dps"`
	AccelerationDps2  float64 `toml:"acceleration_dps2"`
	MarginDeg         float64 `toml:"margin_deg"`       // kept free inside the travel
	MaxTurns          float64 `toml:"max_turns"`        // winding from neutral, either way
	SpeedFactor       float64 `toml:"speed_factor"`     // share of the speeds that a pass may need
	UnknownWrapDeg    float64 `toml:"unknown_wrap_deg"` // longest move while the winding is unknown
	DutyOnS           int     `toml:"duty_on_s"`        // motor-on time per axis in duty_window_s; 0: unlimited
	DutyWindowS       int     `toml:"duty_window_s"`
}

// Watch is what the station expects of a mount under way; see hazards M-12 to
// M-18 and M-31 in docs/safety.md.
type Watch struct {
	StallDeg           float64 `toml:"stall_deg"` // less than this in stall_s, after start_s, is a stall
	StallS             int     `toml:"stall_s"`
	StartS             int     `toml:"start_s"`
	WrongWayDeg        float64 `toml:"wrong_way_deg"`
	OvershootDeg       float64 `toml:"overshoot_deg"`
	UncommandedDeg     float64 `toml:"uncommanded_deg"`
	JumpFactor         float64 `toml:"jump_factor"` // of top speed × time: a faster reading is not believed
	StaleMovingS       int     `toml:"stale_moving_s"`
	StaleIdleS         int     `toml:"stale_idle_s"`
	StopS              int     `toml:"stop_s"` // still within this time of a stop, beside the mount's own stopping time
	StopRetryMs        int     `toml:"stop_retry_ms"`
	TrackErrorDeg      float64 `toml:"track_error_deg"` // off target by this for track_error_s halts a pass
	TrackErrorS        int     `toml:"track_error_s"`
	ReversalPauseMs    int     `toml:"reversal_pause_ms"`
	MaxReversalsPerMin int     `toml:"max_reversals_per_min"`
	MaxStartsPerMin    int     `toml:"max_starts_per_min"`
}

// Antenna is what the rotator carries.
type Antenna struct {
	Kind             string  `toml:"kind"` // yagi or dish
	BeamwidthDeg     float64 `toml:"beamwidth_deg"`
	SunSeparationDeg float64 `toml:"sun_separation_deg"` // 0: off
}

// Radio is one transceiver or receiver under control.
type Radio struct {
	Profile    string `toml:"profile"` // a file of hw/radio; its values are the defaults of this table
	Driver     string `toml:"driver"`  // a row of the table of radios
	Port       string `toml:"port"`
	Baud       int    `toml:"baud"`        // 0: the driver's default
	Role       string `toml:"role"`        // both, downlink or uplink
	Address    int    `toml:"address"`     // CI-V address; 0: the factory's
	KeyingLine string `toml:"keying_line"` // none, rts or dtr: a line that keys the transmitter
}

// Transmit is what a person at the station allows. Nothing here is enough to
// transmit: each pass needs a person's grant, too.
type Transmit struct {
	Enabled         bool       `toml:"enabled"`
	Country         string     `toml:"country"`  // ISO 3166 code; narrows the band table
	BandsHz         [][2]int64 `toml:"bands_hz"` // the licence: pairs of lowest and highest emission
	PowerW          float64    `toml:"power_w"`
	GainDBi         float64    `toml:"gain_dbi"`
	FeedLossDB      float64    `toml:"feed_loss_db"`
	MaxEIRPW        float64    `toml:"max_eirp_w"` // 0: no cap beside the power
	MinElevationDeg float64    `toml:"min_elevation_deg"`
	MaxOverS        int        `toml:"max_over_s"`
	DutyPercent     float64    `toml:"duty_percent"` // of duty_window_s
	DutyWindowS     int        `toml:"duty_window_s"`
	IdentifyEveryS  int        `toml:"identify_every_s"`
	TwoPerson       bool       `toml:"two_person"` // nobody approves what they proposed
}

// Satellite overrides what the data base says of one satellite.
type Satellite struct {
	NoradID    int     `toml:"norad_id"`
	Name       string  `toml:"name"`
	DownlinkHz int64   `toml:"downlink_hz"` // at the satellite; 0: none
	UplinkHz   int64   `toml:"uplink_hz"`   // at the satellite; 0: none
	Mode       string  `toml:"mode"`
	UplinkMode string  `toml:"uplink_mode"` // empty: as mode
	ToneHz     float64 `toml:"tone_hz"`     // CTCSS on the uplink; 0: none
	Priority   int     `toml:"priority"`    // 1 (highest) to 9
	TrimHz     int64   `toml:"trim_hz"`     // added to the downlink: the oscillators' error
}

// Elements says where orbital elements come from and how old they may be.
type Elements struct {
	Sources  []string `toml:"sources"` // https URLs; each is asked for itself
	Files    []string `toml:"files"`   // read at start and when they change
	RefreshH float64  `toml:"refresh_h"`
	MaxAge   MaxAge   `toml:"max_age"`
}

// MaxAge is the age in days at which elements are refused, by orbit class. Half
// of it warns.
type MaxAge struct {
	LEOLowDays float64 `toml:"leo_low_days"` // below 450 km
	LEODays    float64 `toml:"leo_days"`
	OtherDays  float64 `toml:"other_days"`
}

// Clock says how wrong the time of day may be.
type Clock struct {
	MaxErrorMs  int `toml:"max_error_ms"`
	WarnErrorMs int `toml:"warn_error_ms"`
	StepMs      int `toml:"step_ms"`
}

// Weather is the wind sensor, if one is fitted.
type Weather struct {
	Source       string  `toml:"source"` // none, or file
	File         string  `toml:"file"`
	WindWarnMps  float64 `toml:"wind_warn_mps"`
	WindStowMps  float64 `toml:"wind_stow_mps"`
	WindClearMps float64 `toml:"wind_clear_mps"`
	ClearAfterS  int     `toml:"clear_after_s"`
	StaleS       int     `toml:"stale_s"`
}

// Schedule says how passes are run.
type Schedule struct {
	PrepassLeadS    int     `toml:"prepass_lead_s"`
	ParkAfterS      int     `toml:"park_after_s"` // idle time before the antenna is parked; 0: never
	MinElevationDeg float64 `toml:"min_elevation_deg"`
	MinDurationS    int     `toml:"min_duration_s"`
	HorizonH        float64 `toml:"horizon_h"` // how far ahead recurring rules book
	KeepDays        int     `toml:"keep_days"` // how long ended passes stay listed
}

// Hub is the MQTT broker that events go to.
type Hub struct {
	Broker       string `toml:"broker"` // ssl://host:8883 or tcp://host:1883; empty: no hub
	Username     string `toml:"username"`
	PasswordFile string `toml:"password_file"`
	CAFile       string `toml:"ca_file"`
	CertFile     string `toml:"cert_file"`
	KeyFile      string `toml:"key_file"`
	Confirmation bool   `toml:"confirmation"`
	QuotaMiB     int    `toml:"quota_mib"`   // of each stream of the outbox
	ReserveMiB   int    `toml:"reserve_mib"` // of the disk that the outbox leaves free
}

// Access says who may do what. Principals are uid:1000, user:ann, group:ops.
type Access struct {
	Observer        []string       `toml:"observer"`
	Operator        []string       `toml:"operator"`
	Supervisor      []string       `toml:"supervisor"`
	Agents          []string       `toml:"agents"`  // never people, whatever their role
	NoStop          []string       `toml:"no_stop"` // may not even stop
	ReadOnly        bool           `toml:"read_only"`
	ApprovalPINHash string         `toml:"approval_pin_hash"` // a secret: never shown
	Budgets         Budgets        `toml:"budgets"`
	ContractMajor   map[string]int `toml:"contract_major"` // major version of the tool contract by principal
}

// Budgets bounds what one uid may ask for. Those by the hour bind agents only.
type Budgets struct {
	BookingsPerHour  int `toml:"bookings_per_hour"`
	MovesPerHour     int `toml:"moves_per_hour"`
	TransmitsPerHour int `toml:"transmits_per_hour"`
	ReadsPerSecond   int `toml:"reads_per_second"`
	InFlight         int `toml:"in_flight"`
}

// MCP lists the protocol revisions that are offered, newest first.
type MCP struct {
	Versions []string `toml:"versions"`
}

// Rotctl is the server for programs that speak Hamlib's rotctld protocol.
type Rotctl struct {
	Listen    string `toml:"listen"`    // a loopback address and port, or the path of a socket; empty: off
	Principal string `toml:"principal"` // user:ann or uid:1000: who every client of the TCP port is
}

// Unix reports whether Listen is a socket in the file system, where the kernel
// tells who connects.
func (r Rotctl) Unix() bool { return strings.HasPrefix(r.Listen, "/") }

// Trace is the OTLP/JSON file of traces.
type Trace struct {
	File  string `toml:"file"` // empty: none
	MaxMB int    `toml:"max_mb"`
}

// Log is the daemon's own log on stderr.
type Log struct {
	Level  string `toml:"level"`  // trace, debug, info, warn or error
	Format string `toml:"format"` // text or json
}

// Simulation makes up the time. It is refused where real hardware is configured.
type Simulation struct {
	Start  time.Time `toml:"start,omitempty"`  // station time at anchor; zero: the newest embedded elements' epoch
	Rate   float64   `toml:"rate"`             // 1 to 20; 0: 1 for stdio, 20 for demo
	Anchor time.Time `toml:"anchor,omitempty"` // the real instant at which start holds; zero: program start
}
