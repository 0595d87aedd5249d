package rotator

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"time"

	"gsd-mcp/internal/unit"
)

// SPID Rot1Prog, Rot2Prog and MD-01/02 (source: SPID protocol description and
// MD-01 manual; Hamlib models 902, 901, 903). A command is 13 bytes: W, four
// ASCII digits and a resolution for azimuth, the same for elevation, the
// command and a space. A reply is 12 bytes (Rot1Prog 5): W, binary digits and
// resolution for each axis, a space. Angles are counted from -360°, so winding
// is known. The resolution (1, 2, 4 or 10 steps a degree) is the device's: that
// of a command is ignored by it, so it is learnt from a reply before the first
// move and from every reply after it.
//
// There is no checksum, and no byte of a reply's digits can be W or a space: so
// a reply is found wherever it begins, past stray bytes and the text lines that
// MD-01 firmware mixes in.
func spidDriver(name, title string, baud, hamlib int, resolution float64) Driver {
	return Driver{
		Name: name, Title: title, Baud: baud, Hamlib: hamlib,
		Caps: Caps{
			Feedback: true, Winding: true, ResolutionDeg: resolution,
			AzMinDeg: -180, AzMaxDeg: 540, ElMinDeg: -20, ElMaxDeg: 210,
			// At 600 baud a command takes 217 ms and a reply 200 ms.
			MinInterval: 500 * time.Millisecond, Reply: 1200 * time.Millisecond,
		},
		Allowed: "W0123456789\x00\x01\x02\x04\x0a\x0f\x1f/ ",
	}
}

func rot1progDriver() Driver {
	d := spidDriver("rot1prog", "SPID Rot1Prog (azimuth)", 1200, 902, 1)
	d.Caps.AzimuthOnly, d.Caps.ElMinDeg, d.Caps.ElMaxDeg = true, 0, 0
	d.New = func(l Link) Rotator { return &spid{wire: newWire(d, l), azSteps: 1} }
	return d
}

func rot2progDriver() Driver {
	d := spidDriver("rot2prog", "SPID Rot2Prog", 600, 901, 0.5)
	d.New = func(l Link) Rotator { return &spid{wire: newWire(d, l)} }
	return d
}

// md01Driver also serves the MD-02. It answers a set with a position. Its menu
// sets the line rate.
func md01Driver() Driver {
	d := spidDriver("md01", "SPID MD-01 and MD-02, Rot2 protocol", 115200, 903, 0.1)
	d.Caps.MinInterval, d.Caps.Reply = 300*time.Millisecond, time.Second
	d.New = func(l Link) Rotator { return &spid{wire: newWire(d, l), acks: true} }
	return d
}

const (
	spidStop  = "W\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0f "
	spidQuery = "W\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x1f "
)

type spid struct {
	wire
	acks             bool
	azSteps, elSteps int // per degree, as in the last reply; 0: not known
}

func (s *spid) Position(ctx context.Context) (unit.AzEl, error) {
	return s.position(ctx, s.ask)
}

func (s *spid) ask(ctx context.Context) (unit.AzEl, error) {
	if err := s.send(ctx, spidQuery); err != nil {
		return unit.AzEl{}, err
	}
	return s.reply(ctx)
}

// reply reads on until there is a reply, and learns its resolution.
func (s *spid) reply(ctx context.Context) (unit.AzEl, error) {
	for {
		f, ok := spidFind(s.in, s.caps.AzimuthOnly)
		if ok {
			s.azSteps, s.elSteps = f.azSteps, f.elSteps
			if f.after > 0 {
				return f.at, badReply("", "more than one answer to one question")
			}
			return f.at, nil
		}
		if len(s.in) > 4*lineMax {
			return unit.AzEl{}, badReply(string(s.in[:lineMax]), "no reply frame in it")
		}
		if err := s.more(ctx); err != nil {
			if isTimeout(err) && len(s.in) > 0 {
				return unit.AzEl{}, fmt.Errorf("%w: %d bytes without a whole reply: % x", ErrBadReply, len(s.in), s.in[:min(len(s.in), 32)])
			}
			return unit.AzEl{}, err
		}
	}
}

// A spidFrame is a reply as read.
type spidFrame struct {
	at               unit.AzEl
	azSteps, elSteps int
	after            int // further replies behind it
}

// spidFind finds the first whole reply.
func spidFind(in []byte, azimuthOnly bool) (f spidFrame, ok bool) {
	for {
		i := bytes.IndexByte(in, 'W')
		if i < 0 {
			return f, ok
		}
		in = in[i:]
		g, size := spidParse(in, azimuthOnly)
		switch {
		case size == 0:
			in = in[1:]
			continue
		case ok:
			f.after++
		default:
			f, ok = g, true
		}
		in = in[size:]
	}
}

// spidParse reads a reply at the start of in; size 0: there is none.
func spidParse(in []byte, azimuthOnly bool) (f spidFrame, size int) {
	size = 12
	if azimuthOnly {
		size = 5
	}
	if len(in) < size || in[0] != 'W' || in[size-1] != ' ' {
		return f, 0
	}
	angle := func(b []byte, scale float64) (float64, bool) {
		v := 0.0
		for _, digit := range b {
			if digit > 9 {
				return 0, false
			}
			v = 10*v + float64(digit)
		}
		return (v - 360*scale) / scale, true
	}
	var ok bool
	if azimuthOnly {
		f.azSteps = 1
		if f.at.AzDeg, ok = angle(in[1:4], 1); !ok {
			return f, 0
		}
		return f, size
	}
	f.azSteps, f.elSteps = int(in[5]), int(in[10])
	if !spidSteps(f.azSteps) || !spidSteps(f.elSteps) {
		return f, 0
	}
	var okEl bool
	f.at.AzDeg, ok = angle(in[1:5], 10)
	f.at.ElDeg, okEl = angle(in[6:10], 10)
	if !ok || !okEl {
		return f, 0
	}
	return f, size
}

func spidSteps(n int) bool { return n == 1 || n == 2 || n == 4 || n == 10 }

func (s *spid) Point(ctx context.Context, to unit.AzEl) error {
	if err := s.checkRange(to); err != nil {
		return err
	}
	what := fmt.Sprintf("point to %v", to)
	if s.azSteps == 0 {
		if err := s.learn(ctx); err != nil {
			return fmt.Errorf("%s: %s: read the resolution: %w", s.name, what, err)
		}
	}
	frame := "W" + spidDigits(to.AzDeg, s.azSteps) + string(rune(s.azSteps)) + spidDigits(to.ElDeg, s.elSteps) + string(rune(s.elSteps)) + "/ "
	if s.caps.AzimuthOnly {
		// Three digits; the fourth is always 0 and the rest is empty.
		frame = "W" + spidDigits(to.AzDeg, 1)[1:] + "0\x00\x00\x00\x00\x00\x00/ "
	}
	if err := s.move(ctx, what, frame, s.Halt); err != nil {
		return err
	}
	if !s.acks {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, s.caps.MinInterval)
	defer cancel()
	if _, err := s.reply(short); err != nil {
		s.unsure = true
		if !isTimeout(err) && !isBad(err) || ctx.Err() != nil {
			return fmt.Errorf("%s: %s: %w", s.name, what, err)
		}
	}
	return nil
}

// learn asks once for a position, for the resolution in it.
func (s *spid) learn(ctx context.Context) error {
	if s.unsure {
		if err := s.silence(ctx); err != nil {
			return err
		}
	}
	short, cancel := context.WithTimeout(ctx, s.caps.Reply)
	defer cancel()
	_, err := s.ask(short)
	s.count(err)
	if ctx.Err() == nil {
		err = s.timedOut(err)
	}
	return err
}

// spidDigits is an angle in steps from -360°, in four digits, rounded half away
// from zero. Hamlib cuts it off, which is up to a whole degree.
func spidDigits(deg float64, steps int) string {
	n := 360*steps + int(math.Round(deg*float64(steps)))
	return fmt.Sprintf("%04d", n)
}

// Halt writes one stop frame. After a cut write it writes two: the controller
// counts bytes, so the first may complete the half command, which then ends in
// no known command, and the second stands by itself.
func (s *spid) Halt(ctx context.Context) error {
	return s.halt(ctx, spidStop, spidStop)
}
