package rotator

import (
	"context"
	"fmt"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// Yaesu GS-232A and B, and the many controllers that speak like them (source:
// Yaesu GS-232A and GS-232B manuals; Hamlib models 601 to 603). Whole degrees,
// 0 to 450 counted from the counter-clockwise stop; on a 450° mount 0 and 360
// are one full turn apart. A command ends in one CR: with a second one, which
// Hamlib's GS-232B driver sends, K3NG answers an error.
//
// A controller acknowledges a command with CR or CR LF and refuses it with
// "?>". Some clones stay silent, so silence is taken for a yes where the row of
// the driver says so. Position is believed to come modulo 360 even in the
// overlap. The calibration commands (O, F, P, Z) are never sent.
func gs232Driver(name, title string, hamlib int) Driver {
	d := Driver{
		Name: name, Title: title, Baud: 9600, Hamlib: hamlib,
		Caps: Caps{
			Feedback: true, ResolutionDeg: 1,
			AzMinDeg: 0, AzMaxDeg: 450, ElMinDeg: 0, ElMaxDeg: 180,
			// The A/D converter is read every 100 ms; a C may take 400 ms.
			MinInterval: 100 * time.Millisecond, Reply: time.Second,
		},
		Allowed: "C2WS0123456789 \r",
	}
	d.New = func(l Link) Rotator { return &gs232{wire: newWire(d, l)} }
	return d
}

func gs232aDriver() Driver { return gs232Driver("gs232a", "Yaesu GS-232A and compatibles", 601) }

func gs232bDriver() Driver { return gs232Driver("gs232b", "Yaesu GS-232B and compatibles", 603) }

// gs232azDriver is for mounts without an elevation axis: some of their
// controllers do not answer C2.
func gs232azDriver() Driver {
	d := gs232Driver("gs232az", "GS-232 for an azimuth rotator", 0)
	d.Caps.AzimuthOnly = true
	d.Caps.ElMinDeg, d.Caps.ElMaxDeg = 0, 0
	d.Allowed = "CMS0123456789\r"
	d.New = func(l Link) Rotator { return &gs232{wire: newWire(d, l)} }
	return d
}

// k3ngDriver is the GS-232B mode of the K3NG firmware (2023.10.06, as run in an
// AVR simulator). It acknowledges every command, reports whole degrees cut off
// rather than rounded, modulo 360, answers but ignores moves for 5 s after
// power-up, and completes a cut W with digits of the one before: the reason why
// a cut write is followed by a stop.
func k3ngDriver() Driver {
	d := gs232Driver("k3ng", "K3NG rotator controller, GS-232B mode", 603)
	d.Caps.Settle = 7 * time.Second // bootloader, then 5 s in which moves are ignored
	d.New = func(l Link) Rotator { return &gs232{wire: newWire(d, l), mustAck: true} }
	return d
}

const (
	gs232Stop = "S\r"
	// gs232Ack is how long to wait for the answer to a command: no longer than
	// until the next command may be sent anyway.
	gs232Ack = 100 * time.Millisecond
)

type gs232 struct {
	wire
	mustAck bool // silence after a command is an error
}

func (g *gs232) Position(ctx context.Context) (unit.AzEl, error) {
	return g.position(ctx, func(ctx context.Context) (unit.AzEl, error) {
		query := "C2\r"
		if g.caps.AzimuthOnly {
			query = "C\r"
		}
		if err := g.send(ctx, query); err != nil {
			return unit.AzEl{}, err
		}
		for {
			line, err := g.line(ctx, "\r\n")
			if err != nil {
				return unit.AzEl{}, err
			}
			if line == strings.TrimSuffix(query, "\r") { // echo
				continue
			}
			return gs232Reply(line, g.caps.AzimuthOnly)
		}
	})
}

// gs232Reply reads "+0123+0045" (A) or "AZ=123  EL=045" (B), or of an azimuth
// rotator the first half, all of fixed width so that a lost digit is noticed.
// Decimals after three digits are a habit of clones.
func gs232Reply(line string, azimuthOnly bool) (at unit.AzEl, err error) {
	if strings.HasPrefix(line, "?") {
		return at, fmt.Errorf("%w: it answered %q", ErrRejected, unit.Printable(line, 20))
	}
	s := strings.TrimPrefix(strings.TrimSpace(line), ">") // a prompt
	keys := strings.HasPrefix(s, "AZ=")
	ok := true
	number := func(key string) (value float64) {
		before := s
		if keys {
			if s, ok = strings.CutPrefix(s, key); !ok {
				return 0
			}
			before = s
		} else if !strings.HasPrefix(s, "+") && !strings.HasPrefix(s, "-") {
			ok = false
			return 0
		}
		if value, s, ok = decimal(s); !ok {
			return 0
		}
		whole, _, point := strings.Cut(before[:len(before)-len(s)], ".")
		switch {
		case keys:
			ok = len(whole) == 3
		case point:
			ok = len(whole) == 4 // +123.4
		default:
			ok = len(whole) == 5 // +0123
		}
		return value
	}
	at.AzDeg = number("AZ=")
	if ok && !azimuthOnly {
		s = strings.TrimLeft(s, " ")
		at.ElDeg = number("EL=")
	}
	if !ok || s != "" {
		return unit.AzEl{}, badReply(line, "want +0aaa+0eee or AZ=aaa EL=eee")
	}
	return at, nil
}

func (g *gs232) Point(ctx context.Context, to unit.AzEl) error {
	if err := g.checkRange(to); err != nil {
		return err
	}
	what := fmt.Sprintf("point to %v", to)
	frame := fmt.Sprintf("W%03d %03d\r", whole(to.AzDeg), whole(to.ElDeg))
	if g.caps.AzimuthOnly {
		what, frame = fmt.Sprintf("turn to %.1f°", to.AzDeg), fmt.Sprintf("M%03d\r", whole(to.AzDeg))
	}
	if err := g.move(ctx, what, frame, g.Halt); err != nil {
		return err
	}
	if err := g.acknowledged(ctx); err != nil {
		g.unsure = true
		return fmt.Errorf("%s: %s: %w", g.name, what, err)
	}
	return nil
}

// acknowledged waits for the answer to a command. Where it need not come,
// silence is a yes.
func (g *gs232) acknowledged(ctx context.Context) error {
	patience := gs232Ack
	if g.mustAck {
		patience = g.caps.Reply
	}
	short, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for !strings.ContainsAny(string(g.in), "\r\n") {
		err := g.more(short)
		switch {
		case err == nil:
		case ctx.Err() != nil || !isTimeout(err):
			return err
		case strings.Contains(string(g.in), "?"):
			return g.refused()
		case g.mustAck:
			return fmt.Errorf("%w within %v: the move was not acknowledged and may have started or not (%w)", ErrNoReply, patience, err)
		default:
			return nil
		}
	}
	if strings.Contains(string(g.in), "?") {
		return g.refused()
	}
	return nil
}

func (g *gs232) refused() error {
	return fmt.Errorf("%w: it answered %q; compare its range and its calibration with the configuration", ErrRejected, unit.Printable(string(g.in), 20))
}

func (g *gs232) Halt(ctx context.Context) error {
	return g.halt(ctx, "\r", gs232Stop)
}
