package radio

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/sim"
)

// A testWire is a pair of byte queues that never block a writer: a wire whose
// driver end is a Link and whose device end is an io.ReadWriter.
type testWire struct {
	toDevice, toDriver chan []byte
	mu                 sync.Mutex
	sent               [][]byte // what the driver wrote, write by write
	rest               []byte   // received by the driver's end, not yet read
}

func newTestWire() *testWire {
	return &testWire{toDevice: make(chan []byte, 4096), toDriver: make(chan []byte, 4096)}
}

func (w *testWire) Write(ctx context.Context, p []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w.mu.Lock()
	w.sent = append(w.sent, bytes.Clone(p))
	w.mu.Unlock()
	w.toDevice <- bytes.Clone(p)
	return nil
}

func (w *testWire) Read(ctx context.Context, p []byte) (int, error) {
	if len(w.rest) == 0 {
		select {
		case w.rest = <-w.toDriver:
		case <-ctx.Done():
			return 0, os.ErrDeadlineExceeded
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *testWire) Discard() error {
	w.rest = nil
	for {
		select {
		case <-w.toDriver:
		default:
			return nil
		}
	}
}

// takeSent returns what the driver has written since it was last asked.
func (w *testWire) takeSent() [][]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.sent
	w.sent = nil
	return s
}

// deviceEnd is the simulated hardware's side of the wire.
type deviceEnd struct {
	w    *testWire
	done <-chan struct{}
	rest []byte
}

func (d *deviceEnd) Read(p []byte) (int, error) {
	if len(d.rest) == 0 {
		select {
		case d.rest = <-d.w.toDevice:
		case <-d.done:
			return 0, io.EOF
		}
	}
	n := copy(p, d.rest)
	d.rest = d.rest[n:]
	return n, nil
}

func (d *deviceEnd) Write(p []byte) (int, error) {
	d.w.toDriver <- bytes.Clone(p)
	return len(p), nil
}

// plug runs a simulated device on a new wire until the test ends.
func plug(t testing.TB, dev sim.Device) *testWire {
	t.Helper()
	w := newTestWire()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		_ = dev.Run(ctx, &deviceEnd{w: w, done: ctx.Done()})
	}()
	t.Cleanup(func() { cancel(); <-stopped })
	return w
}

// A model's driver on a healthy simulated radio.
func plugIC9700(t testing.TB) (Radio, *sim.IC9700, *testWire) {
	t.Helper()
	dev := sim.NewIC9700(clock.System())
	w := plug(t, dev)
	return mustLookup(t, "icom-ic9700").New(w), dev, w
}

func mustLookup(t testing.TB, name string) Model {
	t.Helper()
	m, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// within gives a test a context that ends long after the driver should have.
func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// bg is for drivers whose own deadlines end every call.
func bg() context.Context { return context.Background() }

// bubble runs a subtest in fake time.
func bubble(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
