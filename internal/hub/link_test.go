package hub

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub/hubtest"
)

// A cutDial is a network that can be cut for good.
type cutDial struct {
	dial func(context.Context) (net.Conn, error)

	mu    sync.Mutex
	conns []net.Conn
	gone  bool
}

// Dial connects until the cut.
func (d *cutDial) Dial(ctx context.Context) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.gone {
		return nil, net.ErrClosed
	}
	c, err := d.dial(ctx)
	if err == nil {
		d.conns = append(d.conns, c)
	}
	return c, err
}

func (d *cutDial) cut() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone = true
	for _, c := range d.conns {
		c.Close()
	}
}

// A socket that is full, with a peer that is silent, is noticed by the write
// timeout long before the ping.
func TestFullSocketIsNoticedByTheWriteTimeout(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{Config: "autosave_interval 1800\nautosave_on_changes false\n"}) // this much would keep it busy with its file
	col := hubtest.Collect(t, b.URL, eventTopics)
	link := hubtest.NewProxy(t, b.URL, 0)
	f := newFixture(t)
	f.start(Config{Broker: link.URL, WriteTimeout: 300 * time.Millisecond, Window: 256})
	eventually(t, "a session", 10*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
	link.Stick(true)
	var wg sync.WaitGroup
	const n = 200 // of 60 kB: more than the kernel holds for one connection
	for range n {
		wg.Go(func() {
			if _, err := f.bus.Emit(t.Context(), event.About{}, event.AlarmRaised{Code: "BIG", Cause: strings.Repeat("x", 60_000)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	f.waitReason(reasonWrite, 15*time.Second)
	link.Reset()
	link.Stick(false)
	got := col.WaitEvents(t, n, 30*time.Second)
	inOrder(t, got)
}

func TestResetIsNamedAndLosesNothing(t *testing.T) {
	b := hubtest.Mosquitto(t, hubtest.Options{})
	col := hubtest.Collect(t, b.URL, eventTopics)
	link := hubtest.NewProxy(t, b.URL, 0)
	f := newFixture(t)
	f.start(Config{Broker: link.URL, MinBackoff: 300 * time.Millisecond})
	for range 2 { // a third quick end would be called a duplicate client id
		eventually(t, "a session", 10*time.Second, func() bool { return f.p.Status().Hub.State == "connected" })
		f.emit(40)
		link.Reset()
		f.waitReason(reasonReset, 5*time.Second)
	}
	inOrder(t, col.WaitEvents(t, len(f.ids), 20*time.Second))
}
