package radio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
)

// Kenwood's CAT and Yaesu's newer one: commands of two letters and digits,
// ended by a semicolon. Settings are not acknowledged, and what is refused is
// answered with "?;" that does not name the command, so one request is in
// flight at a time.
const (
	asciiEnd     = ';'
	asciiLongest = 128
)

var errGarbled = errors.New("the radio reports a communication error")

// ascii speaks to one radio.
type ascii struct {
	link    Link
	allowed func(command string) bool // each command, without its semicolon
	reply   time.Duration
	gap     time.Duration
	last    time.Time // when the last request was written
	dirty   bool      // the last exchange was cut off
	buf     []byte
	moves   []Move
	note    func(message string) (Move, bool) // reads an unsolicited message
}

// nextMessage takes the first message off received bytes, without its
// semicolon. Characters that no message has are dropped: a radio that is being
// switched on sends some.
func nextMessage(b []byte) (msg string, rest []byte, ok bool) {
	for {
		end := bytes.IndexByte(b, asciiEnd)
		if end < 0 {
			if len(b) > asciiLongest {
				b = nil
			}
			return "", b, false
		}
		m := bytes.TrimFunc(b[:end], func(r rune) bool { return r <= ' ' || r > '~' })
		b = b[end+1:]
		if len(m) > 0 && len(m) <= asciiLongest && bytes.IndexFunc(m, func(r rune) bool { return r < ' ' || r > '~' }) < 0 {
			return string(m), b, true
		}
	}
}

func (a *ascii) next(ctx context.Context) (string, error) {
	for {
		msg, rest, ok := nextMessage(a.buf)
		a.buf = append(a.buf[:0], rest...)
		if ok {
			return msg, nil
		}
		var chunk [256]byte
		n, err := a.link.Read(ctx, chunk[:])
		if err != nil {
			return "", err
		}
		a.buf = append(a.buf, chunk[:n]...)
	}
}

// write sends commands in one go, if each is on the list.
func (a *ascii) write(ctx context.Context, commands ...string) error {
	for _, c := range commands {
		if !a.allowed(c) {
			return fmt.Errorf("command %q is not on the list of commands that may be sent", printable(c))
		}
	}
	if err := pause(ctx, time.Until(a.last.Add(a.gap))); err != nil {
		return err
	}
	a.last = time.Now()
	if err := a.link.Write(ctx, []byte(strings.Join(commands, ";")+";")); err != nil {
		return fmt.Errorf("write %s: %w", strings.Join(commands, ";"), err)
	}
	return nil
}

// ask sends commands of which the last is a question, and returns the message
// that begins with its two letters, without them. A refusal of any of the
// commands is ErrRefused.
func (a *ascii) ask(ctx context.Context, commands ...string) (string, error) {
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, a.reply)
	defer cancel()
	if a.dirty {
		a.drain(ctx)
	}
	a.dirty = true
	if err := a.write(ctx, commands...); err != nil {
		return "", err
	}
	question := commands[len(commands)-1]
	var verdict error
	for {
		msg, err := a.next(ctx)
		if err != nil {
			if outer.Err() != nil {
				return "", outer.Err()
			}
			if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return "", fmt.Errorf("read: %w", err)
			}
			if verdict != nil { // refused, and the question with it
				return "", verdict
			}
			return "", fmt.Errorf("%w to %s; within %v: is the radio on, and are speed and handshake right?", ErrSilent, question, a.reply)
		}
		switch {
		case msg == "?":
			verdict = ErrRefused
			if len(commands) == 1 {
				a.dirty = false
				return "", verdict
			}
		case msg == "E" || msg == "O":
			return "", errGarbled
		case strings.HasPrefix(msg, question) && len(msg) > len(question):
			a.dirty = false
			return msg[len(question):], verdict
		default:
			a.noteMove(msg)
		}
	}
}

// read is ask with a second chance.
func (a *ascii) read(ctx context.Context, question string) (string, error) {
	s, err := a.ask(ctx, question)
	if (errors.Is(err, ErrSilent) || errors.Is(err, errGarbled)) && ctx.Err() == nil {
		return a.ask(ctx, question)
	}
	return s, err
}

func (a *ascii) drain(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, civDrain)
	defer cancel()
	for ctx.Err() == nil {
		quiet, cancel := context.WithTimeout(ctx, civQuiet)
		msg, err := a.next(quiet)
		cancel()
		if err != nil {
			break
		}
		a.noteMove(msg)
	}
	a.buf = a.buf[:0]
}

func (a *ascii) noteMove(msg string) {
	if m, ok := a.note(msg); ok {
		a.moves = keepMove(a.moves, m)
	}
}

func (a *ascii) takeMoves() []Move {
	m := a.moves
	a.moves = nil
	return m
}

// asciiHz reads a frequency of a fixed number of digits at the start of s.
func asciiHz(s string, digits int) (int64, error) {
	if len(s) < digits || !isDigits(s[:digits]) {
		return 0, fmt.Errorf("answer %q does not begin with a frequency of %d digits", printable(s), digits)
	}
	var hz int64
	for _, c := range s[:digits] {
		hz = hz*10 + int64(c-'0')
	}
	return hz, nil
}

// formatDigits writes a frequency as a fixed number of digits. What does not
// fit is an error: no digit ever falls off.
func formatDigits(hz int64, digits int) (string, error) {
	s := fmt.Sprintf("%0*d", digits, hz)
	if hz < 0 || len(s) != digits {
		return "", fmt.Errorf("frequency %s does not fit into %d digits", formatHz(hz), digits)
	}
	return s, nil
}

func isDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}
