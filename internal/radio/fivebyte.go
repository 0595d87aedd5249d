package radio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Yaesu's older CAT: five bytes, the command last, no frame marks and no
// checksum. One lost byte shifts everything that follows, and then any byte may
// become a command. The number that matters is 08, which keys the transmitter
// and is also the first byte of "set mode FM" and a pair of digits in many
// frequencies. So an 08 is sent only when the radio is known to stand at the
// start of a frame: after it has answered, or after a silence in which it has
// given up on the bytes it had.
const (
	fiveKeys = 0x08 // PTT on, as a command: never sent

	// The FT-847 waits 200 ms for the next byte of a frame; the others are
	// not documented to wait longer.
	fiveQuiet = 250 * time.Millisecond
)

type fiveFrame [5]byte

// command builds a frame without data.
func command(op byte) fiveFrame { return fiveFrame{0, 0, 0, 0, op} }

// fiveByte speaks to one radio.
type fiveByte struct {
	link    Link
	allowed func(fiveFrame) bool
	reply   time.Duration
	gap     time.Duration // least time between two frames
	byteGap time.Duration // between two bytes, for a radio that cannot take them faster
	aligned bool          // the radio has answered the last frame
	cut     bool          // a frame was cut off in the middle
	last    time.Time     // when the last byte was written
}

// send writes a frame and reads an answer of n bytes.
func (b *fiveByte) send(ctx context.Context, f fiveFrame, n int) ([]byte, error) {
	if f[4] == fiveKeys || !b.allowed(f) {
		return nil, fmt.Errorf("frame % x is not on the list of frames that may be sent", f)
	}
	wait := b.gap
	if b.cut || !b.aligned && slices.Contains(f[:4], fiveKeys) {
		wait = fiveQuiet
	}
	if err := pause(ctx, time.Until(b.last.Add(wait))); err != nil {
		return nil, err
	}
	outer := ctx
	ctx, cancel := context.WithTimeout(ctx, b.reply)
	defer cancel()
	if err := b.link.Discard(); err != nil {
		return nil, fmt.Errorf("discard: %w", err)
	}
	b.aligned, b.cut = false, true
	if err := b.write(ctx, f); err != nil {
		return nil, fmt.Errorf("write % x: %w", f, err)
	}
	b.cut = false
	if n == 0 {
		return nil, nil
	}
	got := make([]byte, 0, n)
	for len(got) < n {
		var chunk [16]byte
		m, err := b.link.Read(ctx, chunk[:n-len(got)])
		if err != nil {
			if outer.Err() != nil {
				return nil, outer.Err()
			}
			if ctx.Err() == nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, fmt.Errorf("read: %w", err)
			}
			return nil, fmt.Errorf("%w to % x within %v, %d of %d bytes: is the radio on, is no menu open, and is the speed right?", ErrSilent, f, b.reply, len(got), n)
		}
		got = append(got, chunk[:m]...)
	}
	b.aligned = true
	return got, nil
}

func (b *fiveByte) write(ctx context.Context, f fiveFrame) error {
	defer func() { b.last = time.Now() }()
	if b.byteGap == 0 {
		return b.link.Write(ctx, f[:])
	}
	for i := range f {
		if i > 0 {
			if err := pause(ctx, b.byteGap); err != nil {
				return err
			}
		}
		if err := b.link.Write(ctx, f[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// ask is send with a second chance, after the radio has given up on what it
// may have half heard.
func (b *fiveByte) ask(ctx context.Context, op byte, n int) ([]byte, error) {
	got, err := b.send(ctx, command(op), n)
	if !errors.Is(err, ErrSilent) || ctx.Err() != nil {
		return got, err
	}
	if err := pause(ctx, time.Until(b.last.Add(fiveQuiet))); err != nil {
		return nil, err
	}
	return b.send(ctx, command(op), n)
}

// fiveHz puts a frequency into a frame: eight digits of 10 Hz, most significant
// first. What does not fit is an error; the GHz digit must not fall off.
func fiveHz(op byte, hz int64) (fiveFrame, error) {
	v := hz / 10
	if hz < 0 || v > 99_999_999 {
		return fiveFrame{}, fmt.Errorf("frequency %s does not fit into eight digits of 10 Hz", formatHz(hz))
	}
	f := fiveFrame{4: op}
	for i := 3; i >= 0; i-- {
		f[i] = byte(v%10) | byte(v/10%10)<<4
		v /= 100
	}
	return f, nil
}

// parseFive reads the answer about frequency and mode.
func parseFive(b []byte) (Tuning, error) {
	if len(b) != 5 || !digits(b[:4]) {
		return Tuning{}, fmt.Errorf("answer % x is not four bytes of digits and a mode", b)
	}
	var v int64
	for _, x := range b[:4] {
		v = v*100 + int64(x>>4)*10 + int64(x&0x0F)
	}
	return Tuning{v * 10, fiveModes()[b[4]]}, nil
}

// fiveModes are the numbers of modes. 06, 0A, 0C and 88 exist on the FT-817
// family, 83 and up are narrow ones.
func fiveModes() map[byte]Mode {
	return map[byte]Mode{0x00: LSB, 0x01: USB, 0x02: CW, 0x03: CWR, 0x04: AM, 0x06: WFM, 0x08: FM, 0x0A: USBD, 0x0C: FMD, 0x88: FMN}
}

func fiveModeCode(m Mode) (byte, error) {
	for code, name := range fiveModes() {
		if name == m {
			return code, nil
		}
	}
	return 0, fmt.Errorf("mode %q has no number on this radio", printable(string(m)))
}

// fiveKeyed reads the transmit status: bit 7 is 0 while the radio transmits.
func fiveKeyed(b []byte) bool { return b[0]&0x80 == 0 }

// empty reports whether a frame carries no data.
func (f fiveFrame) empty() bool { return f == command(f[4]) }

// carriesHz reports whether a frame's data is a frequency.
func (f fiveFrame) carriesHz() bool { return digits(f[:4]) }

// carriesMode reports whether a frame's data is a mode.
func (f fiveFrame) carriesMode() bool {
	_, known := fiveModes()[f[0]]
	return known && f[1] == 0 && f[2] == 0 && f[3] == 0
}
