package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"gsd-mcp/internal/serialport"
)

// memStall is how much a stalled MemLink takes before a write waits, as a
// kernel's output queue does.
const memStall = 4096

// A MemLink is a wire in memory, for tests in fake time: nothing in it touches
// the operating system, so it works inside testing/synctest. It is both
// rotator.Link and radio.Link, and it records every byte that it was given.
type MemLink struct {
	out, in *half

	mu   sync.Mutex
	sent []Sent
}

// Sent is one write to a MemLink.
type Sent struct {
	At    time.Time // real time, which in a synctest bubble is the bubble's
	Bytes []byte
}

// Wire makes a wire. The driver gets link; the simulated device reads and
// writes device. Closing the device end is an unplug: the link then fails with
// serialport.ErrUnplugged for good.
func Wire() (link *MemLink, device io.ReadWriteCloser) {
	toDevice, toDriver := newHalf(), newHalf()
	return &MemLink{out: toDevice, in: toDriver}, &memDevice{in: toDevice, out: toDriver}
}

// Write sends p whole.
func (l *MemLink) Write(ctx context.Context, p []byte) error {
	n, err := l.out.write(ctx, p)
	if n > 0 {
		l.mu.Lock()
		l.sent = append(l.sent, Sent{time.Now(), append([]byte(nil), p[:n]...)})
		l.mu.Unlock()
	}
	if err != nil {
		return fmt.Errorf("write: %d of %d bytes sent: %w", n, len(p), err)
	}
	return nil
}

// Read returns at least one byte, or an error.
func (l *MemLink) Read(ctx context.Context, p []byte) (int, error) {
	n, err := l.in.read(ctx, p)
	if err != nil {
		return n, fmt.Errorf("read: %w", err)
	}
	return n, nil
}

// Discard drops what has been received and not yet read.
func (l *MemLink) Discard() error {
	l.in.mu.Lock()
	defer l.in.mu.Unlock()
	l.in.buf = nil
	if l.in.closed {
		return serialport.ErrUnplugged
	}
	return nil
}

// Sent returns every write so far, in order.
func (l *MemLink) Sent() []Sent {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]Sent(nil), l.sent...)
}

// SentBytes returns all bytes written so far, one write after the other.
func (l *MemLink) SentBytes() []byte {
	var all []byte
	for _, s := range l.Sent() {
		all = append(all, s.Bytes...)
	}
	return all
}

// Unplug makes both ends fail from now on.
func (l *MemLink) Unplug() {
	l.out.close()
	l.in.close()
}

// Stall makes the device stop, or go on, taking bytes: when stalled, a write
// waits once 4096 bytes are queued.
func (l *MemLink) Stall(on bool) {
	l.out.mu.Lock()
	l.out.stalled = on
	l.out.mu.Unlock()
	l.out.signal()
}

type memDevice struct{ in, out *half }

func (d *memDevice) Read(p []byte) (int, error) {
	n, err := d.in.read(context.Background(), p)
	if errors.Is(err, serialport.ErrUnplugged) {
		err = io.EOF
	}
	return n, err
}

func (d *memDevice) Write(p []byte) (int, error) {
	n, err := d.out.write(context.Background(), p)
	if errors.Is(err, serialport.ErrUnplugged) {
		err = io.ErrClosedPipe
	}
	return n, err
}

func (d *memDevice) Close() error {
	d.in.close()
	d.out.close()
	return nil
}

// A half carries bytes one way. One goroutine reads and one writes.
type half struct {
	mu      sync.Mutex
	buf     []byte
	closed  bool
	stalled bool
	changed chan struct{} // closed and replaced at every change
}

func newHalf() *half { return &half{changed: make(chan struct{})} }

func (h *half) signal() {
	h.mu.Lock()
	close(h.changed)
	h.changed = make(chan struct{})
	h.mu.Unlock()
}

func (h *half) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.signal()
}

func (h *half) read(ctx context.Context, p []byte) (int, error) {
	for {
		if err := ctx.Err(); err != nil {
			return 0, memTimeout(err)
		}
		h.mu.Lock()
		n, closed, changed := 0, h.closed, h.changed
		if !h.stalled {
			n = copy(p, h.buf)
			h.buf = h.buf[n:]
		}
		h.mu.Unlock()
		if n > 0 {
			h.signal()
			return n, nil
		}
		if closed {
			return 0, serialport.ErrUnplugged
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (h *half) write(ctx context.Context, p []byte) (int, error) {
	for n := 0; ; {
		if err := ctx.Err(); err != nil {
			return n, memTimeout(err)
		}
		h.mu.Lock()
		room, closed, changed := len(p)-n, h.closed, h.changed
		if h.stalled {
			room = min(room, max(0, memStall-len(h.buf)))
		}
		if !closed {
			h.buf = append(h.buf, p[n:n+room]...)
			n += room
		}
		h.mu.Unlock()
		if closed {
			return n, serialport.ErrUnplugged
		}
		if room > 0 {
			h.signal()
		}
		if n == len(p) {
			return n, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// memTimeout is like serialport's: a deadline is both kinds of timeout.
func memTimeout(err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w (%w)", err, os.ErrDeadlineExceeded)
	}
	return err
}
