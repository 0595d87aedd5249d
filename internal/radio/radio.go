// Package radio controls transceivers. It holds the interface, one file per
// protocol family and one table of models. A driver turns a tuning into bytes
// and a reply into a tuning; it must never open a port, keep time of day or
// judge whether a frequency may be used. Nothing in this package can key a
// transmitter: no driver has an encoder for PTT on, and every wire has a list
// of the requests that may leave, which a test searches for one that keys.
package radio

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// The modes that drivers know. A suffix -D is the radio's data mode: audio
// from the data jack or USB, microphone and speech processor out of the way.
const (
	LSB   Mode = "LSB"
	USB   Mode = "USB"
	AM    Mode = "AM"
	CW    Mode = "CW"
	CWR   Mode = "CW-R"
	RTTY  Mode = "RTTY"
	RTTYR Mode = "RTTY-R"
	FM    Mode = "FM"
	FMN   Mode = "FM-N"
	WFM   Mode = "WFM"
	DV    Mode = "DV"
	DD    Mode = "DD"
	LSBD  Mode = "LSB-D"
	USBD  Mode = "USB-D"
	FMD   Mode = "FM-D"
)

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

// A Move is something that an operator did at the radio itself, as the radio
// announced it. Announcements do not say which band they are about: read the
// status again.
type Move struct {
	FrequencyHz int64 // 0: not announced
	Mode        Mode  // "": not announced
}

// A Watcher is a Radio that notices an operator's hand on the dial. Moves
// returns what has been noticed since it was last asked, oldest first; at most
// the newest 16 are kept.
type Watcher interface {
	Moves() []Move
}

// A Link is the wire that a driver owns; see rotator.Link, which it equals.
type Link interface {
	Write(ctx context.Context, p []byte) error
	Read(ctx context.Context, p []byte) (int, error)
	Discard() error
}

// What a driver can say of a request that came to nothing. Each is wrapped
// with the numbers and the radio's name.
var (
	// ErrRefused: the radio answered that it will not.
	ErrRefused = errors.New("the radio refused it")
	// ErrTransmitting: the transmitter is keyed, and what was asked would move
	// bands or modes under a live carrier.
	ErrTransmitting = errors.New("the radio transmits; bring it to receive first")
	// ErrMismatch: the radio accepted a setting and then read back another.
	ErrMismatch = errors.New("the radio reads back something else; is an operator turning the dial, or is another program on the port?")
	// ErrSilent: no answer in time, the one of these that speaks of the wire.
	ErrSilent = errors.New("no answer")
	// ErrUnsupported: the model or its protocol cannot do it.
	ErrUnsupported = errors.New("this radio cannot do that")
)

// A Range is a span of frequencies in Hz, both ends included.
type Range struct{ MinHz, MaxHz int64 }

// Caps is what a model can do. Unknown counts as false.
type Caps struct {
	Readback    bool
	FullDuplex  bool // receives one band while it transmits on another
	Satellite   bool // has a satellite mode that takes a cross-band pair
	TuneWhileTX bool // the uplink follows Doppler while the transmitter is keyed
	StepHz      int64
	Receive     []Range // one per band; two frequencies in one range are on the same band
	Modes       []Mode
	MinInterval time.Duration // least time between two exchanges, real time
	Reply       time.Duration // deadline of one reply, real time
}

// band is the index of the receive range that holds hz, or -1.
func (c Caps) band(hz int64) int {
	return slices.IndexFunc(c.Receive, func(r Range) bool { return r.MinHz <= hz && hz <= r.MaxHz })
}

// nearest rounds hz to the radio's step.
func (c Caps) nearest(hz int64) int64 {
	if c.StepHz <= 1 {
		return hz
	}
	return (hz + c.StepHz/2) / c.StepHz * c.StepHz
}

// checkFrequency comes before any encoding: a frequency that does not fit
// would otherwise lose its leading digit on the wire and tune another band.
func (c Caps) checkFrequency(hz int64) error {
	if c.band(hz) >= 0 {
		return nil
	}
	return outside(fmt.Sprintf("frequency %s is outside what this radio receives (%s): choose one inside", formatHz(hz), formatRanges(c.Receive)))
}

func (c Caps) checkMode(m Mode) error {
	if slices.Contains(c.Modes, m) {
		return nil
	}
	return outside(fmt.Sprintf("mode %q is not one of this radio's: %s", printable(string(m)), joinModes(c.Modes)))
}

// outside is an ErrUnsupported with a sentence of its own.
type outside string

func (e outside) Error() string        { return string(e) }
func (e outside) Is(target error) bool { return target == ErrUnsupported }

// checkTuning checks what is not zero in a tuning; a mode alone is no tuning.
func (c Caps) checkTuning(t Tuning) error {
	if t == (Tuning{}) {
		return nil
	}
	if err := c.checkFrequency(t.FrequencyHz); err != nil {
		return err
	}
	if t.Mode == "" {
		return nil
	}
	return c.checkMode(t.Mode)
}

// A Model is one row of the table of radios.
type Model struct {
	Name    string // as in station.toml: icom-ic9700
	Aliases []string
	Title   string
	Baud    int
	Stop2   bool
	Caps    Caps
	New     func(Link) Radio
}
