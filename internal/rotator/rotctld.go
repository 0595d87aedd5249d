package rotator

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// Hamlib's rotctld as a device: its text protocol over TCP in the extended form,
// where a reply begins with the command it answers and ends with RPRT and a
// code (source: rotctld(1); measured against Hamlib 4.5.4's dummy). The range
// comes from the server and is obeyed here too; a server that does not say it is
// refused. Clients that end do not stop the motion, and other clients may move
// the same mount.
func rotctldDriver() Driver {
	d := Driver{
		Name: "rotctld", Title: "Hamlib rotctld over TCP (port = \"tcp://host:4533\")",
		Caps: Caps{
			Feedback: true, Park: true, ResolutionDeg: 0.01,
			AzMinDeg: -180, AzMaxDeg: 540, ElMinDeg: -20, ElMaxDeg: 210,
			Reply: 2 * time.Second,
		},
		Allowed: "+PpSK\\dump_state0123456789.- \n",
	}
	d.New = func(l Link) Rotator { return &rotctld{wire: newWire(d, l)} }
	return d
}

type rotctld struct {
	wire
	known                      bool // the range below is the server's
	azMin, azMax, elMin, elMax float64
}

// exchange sends a command in the extended form and returns the lines of its
// answer between the name and the code.
func (r *rotctld) exchange(ctx context.Context, command, name string) ([]string, error) {
	if err := r.send(ctx, "+"+command+"\n"); err != nil {
		return nil, err
	}
	return r.answer(ctx, name)
}

func (r *rotctld) answer(ctx context.Context, name string) ([]string, error) {
	first, err := r.line(ctx, "\r\n")
	if err != nil {
		return nil, err
	}
	if first != name {
		return nil, badReply(first, "want the answer to "+name)
	}
	var fields []string
	for len(fields) < 20 {
		line, err := r.line(ctx, "\r\n")
		if err != nil {
			return nil, err
		}
		if code, ok := strings.CutPrefix(line, "RPRT "); ok {
			n, err := strconv.Atoi(code)
			if err != nil {
				return nil, badReply(line, "want RPRT and a number")
			}
			return fields, rprt(n)
		}
		fields = append(fields, line)
	}
	return nil, badReply(first, "an answer that does not end")
}

// rprt is what a result code of Hamlib means.
func rprt(n int) error {
	kind := ErrRejected
	text, ok := map[int]string{
		-1: "invalid argument or out of range", -2: "configuration", -4: "not implemented", -5: "its device does not answer",
		-6: "it has lost its device; it may have to be started again", -7: "internal error", -8: "its device answers nonsense",
		-9: "rejected by its device", -11: "not available", -17: "out of domain", -21: "limit exceeded", -22: "access denied",
	}[n]
	switch {
	case n == 0:
		return nil
	case n == -5 || n == -6 || n == -8:
		kind = ErrNoReply
	case !ok:
		text = "unknown code"
	}
	return fmt.Errorf("%w: RPRT %d, %s", kind, n, text)
}

func (r *rotctld) Position(ctx context.Context) (unit.AzEl, error) {
	return r.position(ctx, func(ctx context.Context) (at unit.AzEl, err error) {
		fields, err := r.exchange(ctx, "p", "get_pos:")
		if err != nil {
			return at, err
		}
		var okAz, okEl bool
		for _, f := range fields {
			key, value, _ := strings.Cut(f, ": ")
			v, rest, ok := decimal(value)
			switch ok = ok && rest == ""; key {
			case "Azimuth":
				at.AzDeg, okAz = v, ok
			case "Elevation":
				at.ElDeg, okEl = v, ok
			}
		}
		if !okAz || !okEl {
			return at, badReply(strings.Join(fields, " "), "want Azimuth and Elevation")
		}
		return at, nil
	})
}

// learn reads the range of the server's mount.
func (r *rotctld) learn(ctx context.Context) error {
	if r.known {
		return nil
	}
	if r.unsure {
		if err := r.silence(ctx); err != nil {
			return err
		}
	}
	fields, err := r.exchange(ctx, "\\dump_state", "dump_state:")
	if err != nil {
		return err
	}
	found := 0
	for _, f := range fields {
		key, value, _ := strings.Cut(f, ": ")
		limit, ok := map[string]*float64{
			"Minimum Azimuth": &r.azMin, "Maximum Azimuth": &r.azMax, "Minimum Elevation": &r.elMin, "Maximum Elevation": &r.elMax,
		}[key]
		if !ok {
			continue
		}
		if v, rest, ok := decimal(value); ok && rest == "" {
			*limit = v
			found++
		}
	}
	if found != 4 {
		return badReply(strings.Join(fields, " "), "the server does not say its range")
	}
	r.known = true
	return nil
}

func (r *rotctld) Point(ctx context.Context, to unit.AzEl) error {
	if err := r.checkRange(to); err != nil {
		return err
	}
	what := fmt.Sprintf("point to %v", to)
	err := r.command(ctx, what, func(ctx context.Context) error {
		if err := r.learn(ctx); err != nil {
			return fmt.Errorf("read the server's range: %w", err)
		}
		if !(r.azMin <= to.AzDeg && to.AzDeg <= r.azMax && r.elMin <= to.ElDeg && to.ElDeg <= r.elMax) {
			return fmt.Errorf("%w: the server's mount goes from %v° to %v° and from %v° to %v°", ErrRange, r.azMin, r.azMax, r.elMin, r.elMax)
		}
		args := hundredths(to.AzDeg) + " " + hundredths(to.ElDeg)
		_, err := r.exchange(ctx, "P "+args, "set_pos: "+args)
		return err
	})
	return err
}

// command runs an exchange that is not a reading, in the time of one reply,
// after a stop if half a command may be in the server.
func (r *rotctld) command(ctx context.Context, what string, do func(context.Context) error) error {
	if r.cut {
		if err := r.Halt(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", r.name, what, err)
		}
	}
	short, cancel := context.WithTimeout(ctx, r.caps.Reply)
	defer cancel()
	err := do(short)
	if err == nil {
		return nil
	}
	r.unsure = true
	if ctx.Err() == nil {
		err = r.timedOut(err)
	}
	return fmt.Errorf("%s: %s: %w", r.name, what, err)
}

func (r *rotctld) Park(ctx context.Context) error {
	return r.command(ctx, "park", func(ctx context.Context) error {
		_, err := r.exchange(ctx, "K", "park:")
		return err
	})
}

// Halt sends the stop. After a cut write it comes twice: a server that waits for
// a missing argument takes the next line for it.
func (r *rotctld) Halt(ctx context.Context) error {
	return r.halt(ctx, "\n+S\n", "+S\n")
}

// hundredths writes an angle with two decimals, rounded half away from zero.
func hundredths(deg float64) string {
	n := int64(math.Round(deg * 100))
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}
