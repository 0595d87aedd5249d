// Package rotator drives antenna rotators. It holds the interface, one file
// per protocol and one table of drivers. A driver turns a direction into bytes
// and a reply into a direction; it must never open a port, keep time of day,
// judge safety or retry a move on its own.
package rotator

import (
	"context"
	"time"

	"gsd-mcp/internal/unit"
)

// A Rotator turns an antenna. It is driven by one goroutine at a time. Angles
// are the controller's own (mechanical) degrees.
type Rotator interface {
	// Position reads where the antenna is now, from the hardware.
	Position(ctx context.Context) (unit.AzEl, error)
	// Point starts a move and returns once the controller has accepted it (or,
	// for protocols without an acknowledgement, once the bytes are written).
	Point(ctx context.Context, to unit.AzEl) error
	// Halt stops both axes. It must work in every state, moving or not, also
	// when an earlier exchange was cut off in the middle. It writes first and
	// waits for nothing before it has written.
	Halt(ctx context.Context) error
}

// A Parker has a stow position of its own.
type Parker interface {
	Park(ctx context.Context) error
}

// A StatusReader has registers that say more than a position.
type StatusReader interface {
	// Status reads them from the hardware.
	Status(ctx context.Context) (Status, error)
}

// Status is what a controller says of itself.
type Status struct {
	Moving bool   // it says that a motor runs
	Fault  string // its own error in words, "" = none
	Raw    string // the registers as read, printable
}

// A Pacer can be told how much time to leave between two exchanges.
type Pacer interface {
	Pace(gap time.Duration)
}

// A Link is the wire that a driver owns. The deadline of ctx bounds each call
// and its cancellation ends it at once; a call that ran out of time returns an
// error for which errors.Is(err, os.ErrDeadlineExceeded) or ctx.Err() holds.
type Link interface {
	// Write sends p whole, in one write call.
	Write(ctx context.Context, p []byte) error
	// Read returns at least one byte, or an error.
	Read(ctx context.Context, p []byte) (int, error)
	// Discard drops what has been received and not yet read.
	Discard() error
}

// Caps is what a protocol and its controller can do. Unknown counts as false.
type Caps struct {
	Feedback      bool          // Position reads the hardware (not an echo of the command)
	Winding       bool          // Position tells which turn the azimuth is on; false: it may be modulo 360
	Park          bool          // the Rotator is also a Parker
	Status        bool          // the Rotator is also a StatusReader
	AzimuthOnly   bool          // no elevation axis: Position gives elevation 0, Point ignores it
	MovesOnOpen   bool          // opening the port can make the antenna move (homing)
	ResolutionDeg float64       // of the wire format
	AzMinDeg      float64       // the wire's range; the mount's own limits are configuration
	AzMaxDeg      float64       //
	ElMinDeg      float64       //
	ElMaxDeg      float64       //
	MinInterval   time.Duration // least time between two exchanges, real time
	Reply         time.Duration // deadline of one reply, real time
	Settle        time.Duration // deafness after the port is opened
}

// A Driver is one row of the table of drivers.
type Driver struct {
	Name  string // as in station.toml: easycomm2
	Title string
	Baud  int // default line rate, 8N1 unless Stop2; 0: not a serial line
	Stop2 bool
	Caps  Caps
	// Allowed are the bytes that the driver may ever send. Everything else,
	// above all what calibrates a controller, is refused on the way out.
	Allowed string
	Hamlib  int // the model that speaks the same protocol, rotctl -m; 0 = none
	New     func(Link) Rotator
}
