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
	d.New = func(l Link) Rotator { return &spid{wire: newWire(d, l), kind: spidRot1, azSteps: 1} }
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

// md01FineDriver is the MD-01's protocol with hundredths of a degree (source:
// the SALSA radio telescope's description of its MD-01; not tried on
// hardware): commands of their own, raw digits, replies that begin with X. An
// angle in hundredths from -360° has five digits, so the first of the four
// bytes must be above 9; a unit whose reply does not show that is not moved.
func md01FineDriver() Driver {
	d := md01Driver()
	d.Name, d.Title, d.Hamlib = "md01fine", "SPID MD-01 and MD-02, 0.01° protocol", 0
	d.Caps.ResolutionDeg = 0.01
	d.Allowed = "W \x0f\x5f\x6f"
	for digit := range 91 { // 540° is 90, 0, 0, 0
		d.Allowed += string(rune(digit))
	}
	d.New = func(l Link) Rotator { return &spid{wire: newWire(d, l), acks: true, kind: spidFine} }
	return d
}

// The layouts of replies.
type spidKind int

const (
	spidRot2 spidKind = iota
	spidRot1
	spidFine
)

const (
	// md01Ack is how long to wait for the position that answers a set; without
	// it the set counts as accepted.
	md01Ack = 300 * time.Millisecond

	spidFineQuery = "W\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x6f "

	spidStop  = "W\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0f "
	spidQuery = "W\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x1f "
)

type spid struct {
	wire
	kind             spidKind
	acks             bool
	azSteps, elSteps int // per degree, as in the last reply; 0: not known
}

func (s *spid) Position(ctx context.Context) (unit.AzEl, error) {
	return s.position(ctx, s.ask)
}

func (s *spid) ask(ctx context.Context) (unit.AzEl, error) {
	query := spidQuery
	if s.kind == spidFine {
		query = spidFineQuery
	}
	if err := s.send(ctx, query); err != nil {
		return unit.AzEl{}, err
	}
	return s.reply(ctx)
}

// reply reads on until there is a reply, and learns its resolution.
func (s *spid) reply(ctx context.Context) (unit.AzEl, error) {
	for {
		f, ok := spidFind(s.in, s.kind)
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

// start is the byte that a reply begins with.
func (k spidKind) start() byte {
	if k == spidFine {
		return 'X'
	}
	return 'W'
}

// spidFind finds the first whole reply.
func spidFind(in []byte, kind spidKind) (f spidFrame, ok bool) {
	for {
		i := bytes.IndexByte(in, kind.start())
		if i < 0 {
			return f, ok
		}
		in = in[i:]
		g, size := spidParse(in, kind)
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
func spidParse(in []byte, kind spidKind) (f spidFrame, size int) {
	size = 12
	if kind == spidRot1 {
		size = 5
	}
	if len(in) < size || in[0] != kind.start() || in[size-1] != ' ' {
		return f, 0
	}
	ok := true
	angle := func(b []byte, scale float64) float64 {
		v := 0.0
		for i, digit := range b {
			if kind == spidFine && i == 0 {
				ok = ok && 9 < digit && digit <= 90
			} else {
				ok = ok && digit <= 9
			}
			v = 10*v + float64(digit)
		}
		return (v - 360*scale) / scale
	}
	switch kind {
	case spidRot1:
		f.azSteps = 1
		f.at.AzDeg = angle(in[1:4], 1)
	case spidRot2:
		f.azSteps, f.elSteps = int(in[5]), int(in[10])
		f.at = unit.AzEl{AzDeg: angle(in[1:5], 10), ElDeg: angle(in[6:10], 10)}
		ok = ok && spidSteps(f.azSteps) && spidSteps(f.elSteps)
	case spidFine:
		f.azSteps, f.elSteps = 100, 100
		f.at = unit.AzEl{AzDeg: angle(in[1:5], 100), ElDeg: angle(in[6:10], 100)}
	}
	if !ok {
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
	switch s.kind {
	case spidFine:
		frame = "W" + spidRaw(to.AzDeg) + "\x00" + spidRaw(to.ElDeg) + "\x00\x5f "
	case spidRot1:
		// Three digits; the fourth is always 0 and the rest is empty.
		frame = "W" + spidDigits(to.AzDeg, 1)[1:] + "0\x00\x00\x00\x00\x00\x00/ "
	}
	if err := s.move(ctx, what, frame, s.Halt); err != nil {
		return err
	}
	if !s.acks {
		return nil
	}
	short, cancel := context.WithTimeout(ctx, md01Ack)
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

// spidRaw is an angle in hundredths from -360°, in four raw digits of which the
// first goes up to 90.
func spidRaw(deg float64) string {
	n := 36000 + int(math.Round(deg*100))
	return string([]byte{byte(n / 1000), byte(n / 100 % 10), byte(n / 10 % 10), byte(n % 10)})
}

// Halt writes one stop frame. After a cut write it writes two: the controller
// counts bytes, so the first may complete the half command, which then ends in
// no known command, and the second stands by itself.
func (s *spid) Halt(ctx context.Context) error {
	return s.halt(ctx, spidStop, spidStop)
}
