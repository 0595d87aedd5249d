package rotator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"gsd-mcp/internal/unit"
)

// Errors to ask for with errors.Is.
var (
	// ErrNoReply: the controller did not answer in time. It may still be moving.
	ErrNoReply = errors.New("no reply")
	// ErrBadReply: what came back is not an answer in the controller's protocol.
	ErrBadReply = errors.New("bad reply")
	// ErrRange: the protocol cannot express the direction. Nothing was sent.
	ErrRange = errors.New("direction outside the protocol's range")
	// ErrRejected: the controller said no.
	ErrRejected = errors.New("the controller refused the command")
	// ErrNoFeedback: the protocol cannot tell a position; one can only be
	// estimated from what was commanded.
	ErrNoFeedback = errors.New("this controller cannot tell its position")
)

// No controller known turns further than these (SPID, the widest), so a
// reading outside them is damage.
const (
	readAzMin, readAzMax = -180, 540
	readElMin, readElMax = -20, 210
)

const (
	// quietFor is how long a line must be silent before replies can be matched
	// to requests again; the slowest talker known pauses under 50 ms in a reply.
	quietFor = 100 * time.Millisecond
	// quietBound is how long to wait for that silence.
	quietBound = time.Second
	// agreeDeg is how far two readings taken one after the other may differ:
	// the fastest mount known (13.3°/s) moves 2.7° in 200 ms.
	agreeDeg = 3
	// lineMax bounds a reply; the longest known is a banner of 40 bytes.
	lineMax = 128
)

// A wire is the discipline that all drivers share: whole frames of allowed
// bytes, spaced; replies that arrived after their own request; and mistrust
// after anything that went wrong.
type wire struct {
	name    string // for errors
	link    Link
	allowed string
	caps    Caps

	azFloor float64 // no reading is below

	written time.Time // end of the last write
	cut     bool      // the controller may hold half a command of ours
	unsure  bool      // replies cannot be matched to requests
	in      []byte    // received and not yet taken
}

func newWire(d Driver, link Link) wire {
	return wire{name: d.Name, link: link, allowed: d.Allowed, caps: d.Caps, azFloor: readAzMin, unsure: true}
}

// write sends one frame in one call.
func (w *wire) write(ctx context.Context, frame string) error {
	for i := range len(frame) {
		if strings.IndexByte(w.allowed, frame[i]) < 0 {
			panic(fmt.Sprintf("rotator: %s: byte %#x of %q is not in the dialect", w.name, frame[i], frame))
		}
	}
	err := w.link.Write(ctx, []byte(frame))
	w.written = time.Now()
	if err != nil {
		w.cut, w.unsure = true, true
	}
	return err
}

// Pace sets the least time between two exchanges. Only a simulated station
// may: its time runs faster than the wire's.
func (w *wire) Pace(gap time.Duration) { w.caps.MinInterval = gap }

// send waits until the line may be used again, drops what has been received,
// which can only answer something older, and sends a frame.
func (w *wire) send(ctx context.Context, frame string) error {
	if wait := w.caps.MinInterval - time.Since(w.written); wait > 0 {
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return ctx.Err()
		case <-t.C:
		}
	}
	w.in = w.in[:0]
	if err := w.link.Discard(); err != nil {
		return err
	}
	return w.write(ctx, frame)
}

// halt writes a stop before anything else. If the controller may hold half a
// command, lead ends that first, so that the stop is a command of its own.
func (w *wire) halt(ctx context.Context, lead, frame string) error {
	if w.cut {
		frame = lead + frame
	}
	w.unsure = true // some controllers answer a stop, some do not
	if err := w.write(ctx, frame); err != nil {
		return fmt.Errorf("%s: stop: %w", w.name, err)
	}
	w.cut = false
	return nil
}

// more reads at least one byte into w.in.
func (w *wire) more(ctx context.Context) error {
	var buf [256]byte
	n, err := w.link.Read(ctx, buf[:])
	if err != nil {
		return err
	}
	w.in = append(w.in, buf[:n]...)
	return nil
}

// line takes one line that ends in one of the bytes of ends, without its end.
// Empty lines are skipped.
func (w *wire) line(ctx context.Context, ends string) (string, error) {
	for {
		if i := bytes.IndexAny(w.in, ends); i >= 0 {
			l := string(w.in[:i])
			w.in = w.in[i+1:]
			if l != "" {
				return l, nil
			}
			continue
		}
		if len(w.in) > lineMax {
			return "", badReply(string(w.in[:lineMax]), "a line that does not end")
		}
		if err := w.more(ctx); err != nil {
			return "", err
		}
	}
}

// silence reads and drops until the line has been silent for quietFor.
func (w *wire) silence(ctx context.Context) error {
	for end := time.Now().Add(quietBound); ; {
		short, cancel := context.WithTimeout(ctx, quietFor)
		err := w.more(short)
		cancel()
		w.in = w.in[:0]
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case isTimeout(err):
			return nil
		case err != nil:
			return err
		case time.Now().After(end):
			return fmt.Errorf("%w: the line has not been silent for %v within %v; something else talks on it, or it is noise",
				ErrBadReply, quietFor, quietBound)
		}
	}
}

// position reads a direction with ask, which does one exchange. After trouble
// it first waits for silence and then wants two readings that agree.
func (w *wire) position(ctx context.Context, ask func(context.Context) (unit.AzEl, error)) (unit.AzEl, error) {
	one := func() (unit.AzEl, error) {
		ctx, cancel := context.WithTimeout(ctx, w.caps.Reply)
		defer cancel()
		at, err := ask(ctx)
		if err == nil {
			err = w.checkReading(at)
		}
		w.count(err)
		return at, err
	}
	fail := func(err error) (unit.AzEl, error) {
		w.unsure = true
		if ctx.Err() == nil {
			err = w.timedOut(err)
		}
		return unit.AzEl{}, fmt.Errorf("%s: read position: %w", w.name, err)
	}
	if !w.unsure {
		at, err := one()
		if err != nil {
			return fail(err)
		}
		return at, nil
	}
	if err := w.silence(ctx); err != nil {
		return fail(err)
	}
	first, err := one()
	if err != nil {
		return fail(err)
	}
	second, err := one()
	if err != nil {
		return fail(err)
	}
	if math.Abs(unit.Diff(first.AzDeg, second.AzDeg)) > agreeDeg || math.Abs(first.ElDeg-second.ElDeg) > agreeDeg {
		return fail(fmt.Errorf("%w: two readings in a row do not agree: %v, then %v", ErrBadReply, first, second))
	}
	w.unsure = false
	return second, nil
}

// move sends a frame that starts a motion, after a stop if half a command may
// be in the controller.
func (w *wire) move(ctx context.Context, what, frame string, halt func(context.Context) error) error {
	if w.cut {
		if err := halt(ctx); err != nil {
			return fmt.Errorf("%s: %s: %w", w.name, what, err)
		}
	}
	if err := w.send(ctx, frame); err != nil {
		return fmt.Errorf("%s: %s: %w", w.name, what, err)
	}
	return nil
}

// count tells the link whether a reply made sense; silence is neither.
func (w *wire) count(err error) {
	if c, ok := w.link.(interface{ CountFrame(good bool) }); ok && (err == nil || errors.Is(err, ErrBadReply)) {
		c.CountFrame(err == nil)
	}
}

// timedOut says what an exchange that ran out of its own time means.
func (w *wire) timedOut(err error) error {
	if !isTimeout(err) {
		return err
	}
	return fmt.Errorf("%w within %v: check power, cable and line rate of the controller (%w)", ErrNoReply, w.caps.Reply, err)
}

func isBad(err error) bool { return errors.Is(err, ErrBadReply) }

func isTimeout(err error) bool {
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded)
}

func badReply(reply, why string) error {
	return fmt.Errorf("%w: %s: %q", ErrBadReply, why, unit.Printable(reply, 60))
}

// checkRange refuses what a protocol cannot express, before anything is sent.
func (w *wire) checkRange(to unit.AzEl) error {
	c := w.caps
	if !(c.AzMinDeg <= to.AzDeg && to.AzDeg <= c.AzMaxDeg) {
		return fmt.Errorf("%s: %w: azimuth %v° is not in %v..%v", w.name, ErrRange, to.AzDeg, c.AzMinDeg, c.AzMaxDeg)
	}
	if !c.AzimuthOnly && !(c.ElMinDeg <= to.ElDeg && to.ElDeg <= c.ElMaxDeg) {
		return fmt.Errorf("%s: %w: elevation %v° is not in %v..%v", w.name, ErrRange, to.ElDeg, c.ElMinDeg, c.ElMaxDeg)
	}
	return nil
}

// checkReading refuses a position that no rotator can have.
func (w *wire) checkReading(at unit.AzEl) error {
	if w.azFloor <= at.AzDeg && at.AzDeg <= readAzMax && readElMin <= at.ElDeg && at.ElDeg <= readElMax {
		return nil
	}
	return fmt.Errorf("%w: %v° azimuth, %v° elevation is outside %v..%d, %d..%d, the widest travel of any rotator",
		ErrBadReply, at.AzDeg, at.ElDeg, w.azFloor, readAzMax, readElMin, readElMax)
}

// tenths writes an angle with one decimal, rounded half away from zero. printf
// rounds half to even on the binary value, so its 0.25 is 0.2 and its 0.35
// 0.3; ours are 0.3 and 0.4.
func tenths(deg float64) string {
	n := int64(math.Round(deg * 10))
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	return sign + strconv.FormatInt(n/10, 10) + "." + strconv.FormatInt(n%10, 10)
}

// decimal reads the number that s starts with: an optional sign, one to four
// digits, and optionally a point with one to ten more. Nothing else is a number
// here: no nan, no hexadecimal, no exponent, no comma.
func decimal(s string) (value float64, rest string, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	whole := digits(s[i:])
	if whole < 1 || whole > 4 {
		return 0, s, false
	}
	i += whole
	if i < len(s) && s[i] == '.' {
		fraction := digits(s[i+1:])
		if fraction < 1 || fraction > 20 {
			return 0, s, false
		}
		i += 1 + fraction
	}
	value, err := strconv.ParseFloat(s[:i], 64)
	return value, s[i:], err == nil
}

// digits counts the decimal digits that s starts with.
func digits(s string) int {
	n := 0
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

// whole rounds an angle to whole degrees, half away from zero, so 12.5 is 13.
// printf rounds half to even and makes it 12.
func whole(deg float64) int { return int(math.Round(deg)) }

// noFeedback is the answer of a driver that cannot read a position.
func noFeedback(name string) error {
	return fmt.Errorf("%s: read position: %w; it is an estimate from what was commanded", name, ErrNoFeedback)
}
