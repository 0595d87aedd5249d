package passes

import (
	"math"
	"time"

	"gsd-mcp/internal/elements"
)

// Shift is how much later (positive) a new element set puts a satellite at a
// place of its orbit than the old one, at the epoch of the new one: by that
// much its passes move. Over a quarter of the period it means only that the
// sets do not belong together.
func Shift(old, new elements.Set) (time.Duration, error) {
	a, err := New(old)
	if err != nil {
		return 0, err
	}
	b, err := New(new)
	if err != nil {
		return 0, err
	}
	na, ta, err := a.locate(new.Epoch)
	if err != nil {
		return 0, err
	}
	nb, tb, err := b.locate(new.Epoch)
	if err != nil {
		return 0, err
	}
	ra, va := na.state(ta)
	rb, _ := nb.state(tb)
	// The angle of the new place ahead of the old one, in the old plane.
	d := ra.norm()
	up := vec{ra.x / d, ra.y / d, ra.z / d}
	w := va.dot(up)
	along := vec{va.x - w*up.x, va.y - w*up.y, va.z - w*up.z}
	speed := along.norm()
	ahead := math.Atan2(rb.dot(along)/speed, rb.dot(up))
	return time.Duration(-ahead * d / speed * float64(time.Second)), nil
}
