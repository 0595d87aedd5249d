// Package sim is the simulated world for tests, the demo and `gsd-mcp sim`:
// mounts with mass and winding, radios, and the wires to them. Its devices
// answer the real protocols' bytes. It must never be part of a decision about
// real hardware.
package sim

import (
	"context"
	"io"
)

// A Device is a simulated controller. Run reads requests from wire and writes
// replies until ctx ends or the wire closes. The physics runs on the clock that
// the device was built with.
type Device interface {
	Run(ctx context.Context, wire io.ReadWriter) error
}
