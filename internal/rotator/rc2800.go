package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// M2 RC2800PX (source: its manual as Hamlib's models 1001 to 1003 use it). Each
// axis is asked, set and stopped by itself, 200 ms apart, and each command is
// answered with a status line that carries the position. Early firmware takes a
// set in three steps. Hamlib writes the azimuth with six decimals; whole
// degrees are what the manual has. Not tried on hardware.
func rc2800Driver() Driver {
	d := Driver{
		Name: "rc2800", Title: "M2 RC2800PX", Baud: 9600, Hamlib: 1001,
		Caps: Caps{
			Feedback: true, ResolutionDeg: 1,
			AzMinDeg: 0, AzMaxDeg: 360, ElMinDeg: 0, ElMaxDeg: 180,
			MinInterval: 200 * time.Millisecond,
			Reply:       2 * time.Second, // both axes
		},
		Allowed: "AES0123456789\r",
	}
	d.New = func(l Link) Rotator { return newRC2800(d, l, false) }
	return d
}

func rc2800EarlyDriver() Driver {
	d := rc2800Driver()
	d.Name, d.Title, d.Hamlib = "rc2800early", "M2 RC2800 with early firmware", 1003
	d.New = func(l Link) Rotator { return newRC2800(d, l, true) }
	return d
}

type rc2800 struct {
	wire
	early bool
}

func newRC2800(d Driver, l Link, early bool) *rc2800 {
	r := &rc2800{newWire(d, l), early}
	r.azFloor = -360 // seen: P=-359.9
	return r
}

func (r *rc2800) Position(ctx context.Context) (unit.AzEl, error) {
	return r.position(ctx, func(ctx context.Context) (at unit.AzEl, err error) {
		if at.AzDeg, err = r.axis(ctx, "A", "A\r"); err == nil {
			at.ElDeg, err = r.axis(ctx, "E", "E\r")
		}
		return at, err
	})
}

// axis sends a command for one axis and reads the position in the answer.
func (r *rc2800) axis(ctx context.Context, axis, command string) (float64, error) {
	if err := r.send(ctx, command); err != nil {
		return 0, err
	}
	for {
		line, err := r.line(ctx, "\r\n")
		if err != nil {
			return 0, err
		}
		// Not ours: an echo, or the end of a line that was cut by dropping the
		// input of a unit that talks all the time.
		if line == strings.TrimSuffix(command, "\r") || !strings.HasPrefix(line, axis) {
			continue
		}
		return rc2800Reply(axis, line)
	}
}

// rc2800Reply reads "A=98.1 S=9 M" or "A P=  98.1 S=9 MV".
func rc2800Reply(axis, line string) (float64, error) {
	rest, _ := strings.CutPrefix(line, axis)
	if code, ok := strings.CutPrefix(rest, " ERR="); ok {
		return 0, fmt.Errorf("%w: axis %s, error %s", ErrRejected, axis, unit.Printable(code, 10))
	}
	rest = strings.TrimPrefix(rest, " P")
	if value, ok := strings.CutPrefix(rest, "="); ok {
		if v, after, ok := decimal(strings.TrimLeft(value, " ")); ok && strings.HasPrefix(after, " S=") {
			return v, nil
		}
	}
	return 0, badReply(line, "want "+axis+"=n.n S=n")
}

func (r *rc2800) Point(ctx context.Context, to unit.AzEl) error {
	if err := r.checkRange(to); err != nil {
		return err
	}
	what := fmt.Sprintf("point to %v", to)
	if r.cut {
		if err := r.Halt(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", r.name, what, err)
		}
	}
	err := r.set(ctx, "A", whole(to.AzDeg))
	if err == nil {
		err = r.set(ctx, "E", whole(to.ElDeg))
	}
	if err != nil {
		r.unsure = true
		if ctx.Err() == nil {
			err = r.timedOut(err)
		}
		return fmt.Errorf("%s: %s: %w", r.name, what, err)
	}
	return nil
}

// set starts one axis.
func (r *rc2800) set(ctx context.Context, axis string, deg int) error {
	commands := []string{fmt.Sprintf("%s%d\r", axis, deg)}
	if r.early {
		commands = []string{axis + "\r", fmt.Sprintf("%d\r", deg), "\r"}
	}
	ctx, cancel := context.WithTimeout(ctx, r.caps.Reply)
	defer cancel()
	for _, c := range commands {
		if _, err := r.axis(ctx, axis, c); err != nil {
			return err
		}
	}
	return nil
}

// Halt stops the azimuth at once and the elevation 200 ms later, which is as
// fast as the controller can be told.
func (r *rc2800) Halt(ctx context.Context) error {
	if err := r.halt(ctx, "\r", "A\rS\r"); err != nil {
		return err
	}
	if err := r.send(ctx, "E\rS\r"); err != nil {
		return fmt.Errorf("%s: stop elevation: %w", r.name, err)
	}
	return nil
}
