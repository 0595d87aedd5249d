package radio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Icom CI-V: a one-wire bus, or a USB port that behaves like one. A frame is
// FE FE <to> <from> <cmd> [<sub>] [data] FD. Sources: Icom's CI-V reference
// guides (IC-9700, IC-910H) by way of the notes in docs/radios.md.
const (
	civStart      = 0xFE
	civEnd        = 0xFD
	civJam        = 0xFC // sent where a collision was heard
	civController = 0xE0 // us
	civEveryone   = 0x00
	civOK         = 0xFB
	civNo         = 0xFA

	civLongest    = 64                     // bytes of a frame that concerns us; scope frames are longer and dropped
	civDeadline   = 300 * time.Millisecond // echo and answer of one request: slowest seen 70 ms, with margin for 1200 baud
	civCollisions = 3                      // repeats after a collision
	civQuiet      = 20 * time.Millisecond  // silence that ends what a cut-off exchange left behind
	civDrain      = 60 * time.Millisecond  // at most this long is spent waiting for that silence
)

var errCollision = errors.New("collision on the CI-V bus")

// An echoKind says whether the wire brings back what we write. It is learnt
// from the first exchange: an answer carries other addresses than an echo, so
// nothing needs to be sent to find out.
type echoKind int

const (
	echoUnknown echoKind = iota
	echoAbsent
	echoPresent
)

// civ speaks to one rig on a CI-V bus.
type civ struct {
	link    Link
	rig     byte
	allowed func(body []byte) bool // what may ever be written; see icomSpec.allows
	reply   time.Duration
	gap     time.Duration // least time between two requests
	last    time.Time     // when the last request was written
	echo    echoKind
	dirty   bool   // the last exchange was cut off: its answer may still come
	buf     []byte // received, not yet a frame
	moves   []Move
	touched func(Move) // told of each unsolicited announcement
}

// civFrame wraps a body for the wire. It refuses what would end the frame
// early: bodies are built from digits and fixed codes, so this is a bug trap.
func civFrame(to byte, body []byte) ([]byte, error) {
	if len(body) == 0 || len(body) > civLongest {
		return nil, fmt.Errorf("ci-v body of %d bytes", len(body))
	}
	for _, b := range body {
		if b >= civJam {
			return nil, fmt.Errorf("ci-v body % x contains a framing byte", body)
		}
	}
	f := append([]byte{civStart, civStart, to, civController}, body...)
	return append(f, civEnd), nil
}

// nextFrame takes the first frame off received bytes: to, from and body,
// without the framing. frame is nil when none is complete yet; rest is what to
// keep. It resynchronises on any start byte, accepts extra and one missing
// start byte, and reports a jam code as a collision.
func nextFrame(b []byte) (frame, rest []byte, jammed bool) {
	for {
		i := bytes.IndexByte(b, civStart)
		if i < 0 {
			return nil, nil, bytes.IndexByte(b, civJam) >= 0
		}
		if bytes.IndexByte(b[:i], civJam) >= 0 {
			return nil, b[i:], true
		}
		b = b[i:]
		start := 0
		for start < len(b) && b[start] == civStart {
			start++
		}
		end := start
		for end < len(b) && b[end] < civJam && end-start <= civLongest {
			end++
		}
		switch {
		case end == len(b):
			return nil, b[max(0, start-2):], false // padding can be endless
		case end-start > civLongest: // not for us: skip to the next start byte
			b = b[end:]
		case b[end] == civStart: // cut off by a new frame
			b = b[end:]
		case b[end] == civJam:
			return nil, b[end+1:], true
		case end-start < 3: // no room for two addresses and a command
			b = b[end+1:]
		default:
			return b[start:end], b[end+1:], false
		}
	}
}

// next waits for a frame.
func (c *civ) next(ctx context.Context) ([]byte, error) {
	for {
		frame, rest, jammed := nextFrame(c.buf)
		if frame != nil {
			frame = bytes.Clone(frame)
		}
		c.buf = append(c.buf[:0], rest...)
		if jammed {
			return nil, errCollision
		}
		if frame != nil {
			return frame, nil
		}
		var chunk [256]byte
		n, err := c.link.Read(ctx, chunk[:])
		if err != nil {
			return nil, err
		}
		c.buf = append(c.buf, chunk[:n]...)
	}
}

// read sends a request and returns the data of its answer. An answer that does
// not come is asked for once more.
func (c *civ) read(ctx context.Context, body ...byte) ([]byte, error) {
	b, err := c.ask(ctx, body...)
	if errors.Is(err, ErrSilent) && ctx.Err() == nil {
		return c.ask(ctx, body...)
	}
	return b, err
}

// ask is read without the second chance, for when something better can be done
// than to wait.
func (c *civ) ask(ctx context.Context, body ...byte) ([]byte, error) {
	answer := func(b []byte) bool { return len(b) > len(body) && bytes.HasPrefix(b, body) }
	b, err := c.exchange(ctx, body, answer, civCollisions)
	if err != nil {
		return nil, err
	}
	return b[len(body):], nil
}

// set sends a setting and waits until the rig has said yes. It is repeated
// after a collision only, because then the rig has not heard it.
func (c *civ) set(ctx context.Context, body ...byte) error {
	_, err := c.exchange(ctx, body, isOK, civCollisions)
	return err
}

// setOnce is set for what must not happen twice.
func (c *civ) setOnce(ctx context.Context, body ...byte) error {
	_, err := c.exchange(ctx, body, isOK, 0)
	return err
}

func isOK(b []byte) bool { return len(b) == 1 && b[0] == civOK }

func (c *civ) exchange(ctx context.Context, body []byte, answer func([]byte) bool, collisions int) ([]byte, error) {
	if !c.allowed(body) {
		return nil, fmt.Errorf("ci-v request % x is not on the list of requests that may be sent", body)
	}
	frame, err := civFrame(c.rig, body)
	if err != nil {
		return nil, err
	}
	for {
		b, err := c.attempt(ctx, frame, answer)
		if !errors.Is(err, errCollision) || collisions == 0 || ctx.Err() != nil {
			return b, err
		}
		collisions--
		// Random, so that two controllers do not collide for ever.
		if err := pause(ctx, 10*time.Millisecond+rand.N(50*time.Millisecond)); err != nil {
			return nil, err
		}
	}
}

// attempt is one request and its answer, all inside one deadline.
func (c *civ) attempt(ctx context.Context, frame []byte, answer func([]byte) bool) ([]byte, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, c.reply)
	defer cancel()
	if c.dirty {
		c.drain(ctx)
	}
	if err := pause(ctx, time.Until(c.last.Add(c.gap))); err != nil {
		return nil, err
	}
	c.dirty = true
	c.last = time.Now()
	if err := c.link.Write(ctx, frame); err != nil {
		return nil, fmt.Errorf("write % x: %w", frame, err)
	}
	sent := frame[2 : len(frame)-1]
	echoed, unheard := false, false
	for {
		f, err := c.next(ctx)
		if err != nil {
			if outer.Err() != nil {
				return nil, outer.Err()
			}
			if errors.Is(err, errCollision) {
				return nil, err
			}
			if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("read: %w", err)
			}
			if unheard {
				c.echo = echoUnknown // somebody has changed the radio's menu
			}
			return nil, fmt.Errorf("%w to % x within %v: is the radio on, the CI-V address %02Xh and the speed right?", ErrSilent, frame, c.reply, c.rig)
		}
		to, from, body := f[0], f[1], f[2:]
		switch {
		case !echoed && bytes.Equal(f, sent):
			echoed = true
			c.echo = echoPresent
		case from == civController && !echoed && c.echo == echoPresent:
			return nil, errCollision // our own words came back changed
		case from != c.rig || to != civController && to != civEveryone:
			// another rig's or another controller's business
		case c.note(body):
			// an operator's hand
		case to != civController:
		case c.echo == echoPresent && !echoed:
			unheard = true // an answer before our question was heard: to an older question
		case answer(body), body[0] == civNo && len(body) == 1:
			if c.echo == echoUnknown {
				c.echo = echoAbsent
			}
			c.dirty = false
			if body[0] == civNo {
				return nil, ErrRefused
			}
			return body, nil
		}
	}
}

// drain waits until what an earlier exchange left behind has passed, and notes
// announcements in it.
func (c *civ) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, civDrain)
	defer cancel()
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, civQuiet)
		f, err := c.next(quiet)
		cancel()
		switch {
		case err == nil:
			if f[1] == c.rig {
				c.note(f[2:])
			}
		case !errors.Is(err, errCollision):
			c.buf = c.buf[:0]
			return
		}
	}
	c.buf = c.buf[:0]
}

// note takes an announcement ("CI-V transceive"): 00 frequency or 01 mode. No
// answer has these command numbers.
func (c *civ) note(body []byte) bool {
	var m Move
	switch body[0] {
	case 0x00:
		hz, err := decodeBCD(body[1:])
		if err != nil || hz == 0 {
			return true
		}
		m.FrequencyHz = hz
	case 0x01:
		if len(body) > 1 {
			m.Mode, _ = icomMode(body[1], false)
		}
	default:
		return false
	}
	c.moves = keepMove(c.moves, m)
	if c.touched != nil {
		c.touched(m)
	}
	return true
}

func (c *civ) takeMoves() []Move {
	m := c.moves
	c.moves = nil
	return m
}

// keepMove appends a move and forgets the oldest of more than keptMoves.
func keepMove(moves []Move, m Move) []Move {
	if len(moves) == keptMoves {
		moves = append(moves[:0], moves[1:]...)
	}
	return append(moves, m)
}

const keptMoves = 16

// pause waits in real time: it is about the wire.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// encodeBCD writes a frequency in Hz as n bytes of packed digits, least
// significant first. What does not fit is an error: no digit ever falls off.
func encodeBCD(hz int64, n int) ([]byte, error) {
	out := make([]byte, n)
	v := hz
	for i := range out {
		out[i] = byte(v%10) | byte(v/10%10)<<4
		v /= 100
	}
	if hz < 0 || v != 0 {
		return nil, fmt.Errorf("frequency %s does not fit into %d digits", formatHz(hz), 2*n)
	}
	return out, nil
}

// decodeBCD is the inverse of encodeBCD for 4, 5 or 6 bytes. A digit above 9
// is an error: Icom sends FF for an empty memory channel.
func decodeBCD(b []byte) (int64, error) {
	if len(b) < 4 || len(b) > 6 {
		return 0, fmt.Errorf("frequency of %d bytes, want 4 to 6", len(b))
	}
	var hz int64
	for i := len(b) - 1; i >= 0; i-- {
		hi, lo := b[i]>>4, b[i]&0x0F
		if hi > 9 || lo > 9 {
			return 0, fmt.Errorf("frequency % x has a digit above 9", b)
		}
		hz = hz*100 + int64(hi)*10 + int64(lo)
	}
	return hz, nil
}
