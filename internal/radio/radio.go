// Package radio controls transceivers. It holds the interface, one file per
// protocol family and one table of models. Nothing in this package can key a
// transmitter yet: no driver has an encoder for PTT.
package radio

import (
	"context"
	"time"
)

// A Path is one direction of a satellite link as seen from the station.
type Path string

// The two paths.
const (
	Downlink Path = "downlink" // the station receives
	Uplink   Path = "uplink"   // the station would transmit
)

// A Mode is an emission type: FM, USB, LSB, CW, AM, DV ...
type Mode string

// A Tuning is what one receiver or transmitter is set to.
type Tuning struct {
	FrequencyHz int64 `json:"frequency_hz"`
	Mode        Mode  `json:"mode,omitempty"`
}

// A Status is what the radio says of itself, read from the hardware.
type Status struct {
	Downlink     Tuning `json:"downlink"`
	Uplink       Tuning `json:"uplink,omitzero"`
	Satellite    bool   `json:"satellite_mode"`
	Transmitting bool   `json:"transmitting"`
}

// A Radio is driven by one goroutine at a time.
type Radio interface {
	// Status reads frequency and mode of both paths, satellite mode and whether
	// the transmitter is keyed. It changes nothing that an operator can see.
	Status(ctx context.Context) (Status, error)
	// Prepare brings the radio into the state for a pass: satellite mode for a
	// cross-band pair, then frequency and mode of each path that is not zero,
	// all read back. It refuses while the radio transmits.
	Prepare(ctx context.Context, down, up Tuning) error
	// Tune sets the frequency of one path and reads it back. It returns the
	// frequency the radio now has, in Hz.
	Tune(ctx context.Context, path Path, frequencyHz int64) (int64, error)
	// SetMode sets the mode of one path and reads it back.
	SetMode(ctx context.Context, path Path, mode Mode) error
	// Halt brings the radio to rest: it receives. It works in every state.
	Halt(ctx context.Context) error
}

// A Link is the wire that a driver owns; see rotator.Link, which it equals.
type Link interface {
	Write(ctx context.Context, p []byte) error
	Read(ctx context.Context, p []byte) (int, error)
	Discard() error
}

// A Range is a span of frequencies in Hz, both ends included.
type Range struct{ MinHz, MaxHz int64 }

// Caps is what a model can do. Unknown counts as false.
type Caps struct {
	Readback    bool
	FullDuplex  bool // receives one band while it transmits on another
	StepHz      int64
	Receive     []Range
	Modes       []Mode
	MinInterval time.Duration // least time between two exchanges, real time
	Reply       time.Duration // deadline of one reply, real time
}

// A Model is one row of the table of radios.
type Model struct {
	Name  string // as in station.toml: icom-ic9700
	Title string
	Baud  int
	Stop2 bool
	Caps  Caps
	New   func(Link) Radio
}
