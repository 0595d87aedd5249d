package rotctl

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// worldStart is a day after the epoch of the embedded elements.
var worldStart = time.Date(2026, 8, 13, 11, 40, 0, 0, time.UTC)

var london = unit.Site{LatDeg: 51.5074, LonDeg: -0.1278, AltM: 25}

// gpredict is the account that TCP clients act as.
var gpredict = station.Caller{Role: station.Operator, UID: 1001, User: "gpredict"}

// A world is a station with a simulated mount and the server, in fake time.
type world struct {
	t     *testing.T
	clk   *clock.Clock
	mount *sim.Mount
	st    *station.Station
	lis   *pipes

	mu     sync.Mutex
	wire   []string // what was written to the rotator
	audit  []audited
	events []event.Event
}

type audited struct {
	What, Verb, Code, Outcome, Detail string
}

// inWorld runs f in a bubble with a station that has read its position. A
// mast stands in the north, 0°..20° up to 35°.
func inWorld(t *testing.T, peer func() Peer, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		clk, err := clock.Simulated(worldStart, time.Now(), 1)
		if err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, clk: clk, lis: &pipes{in: make(chan net.Conn), done: make(chan struct{})}}
		m := sim.DefaultMount()
		m.StartAzDeg, m.StartElDeg = 90, 60
		w.mount = sim.NewMount(clk, m)
		ctl, err := sim.NewController("easycomm2", w.mount)
		if err != nil {
			t.Fatal(err)
		}
		drv, err := rotator.Lookup("easycomm2")
		if err != nil {
			t.Fatal(err)
		}
		ctx, end := context.WithCancel(context.Background())
		var wg sync.WaitGroup
		bus := event.NewBus(event.Options{Station: "test", Simulated: true, BootID: "boot", Clock: clk})
		events, unsubscribe := bus.Subscribe(4096)
		wg.Go(func() {
			defer unsubscribe()
			for {
				select {
				case <-ctx.Done():
					return
				case e := <-events:
					w.mu.Lock()
					w.events = append(w.events, e)
					w.mu.Unlock()
				}
			}
		})
		var link *sim.MemLink
		w.st, _, err = station.New(station.Options{
			Clock: clk, Site: london, BeamwidthDeg: 30, Park: unit.AzEl{AzDeg: 90, ElDeg: 60},
			Rules: safety.Rules{
				Travel:     safety.Travel{AzMinDeg: m.AzMinDeg, AzMaxDeg: m.AzMaxDeg, ElMinDeg: m.ElMinDeg, ElMaxDeg: m.ElMaxDeg},
				Horizon:    unit.FlatHorizon(5),
				Zones:      []safety.Zone{{Name: "mast", AzFromDeg: 0, AzToDeg: 20, ElMinDeg: 0, ElMaxDeg: 35, Reason: "a mast"}},
				AzSpeedDps: m.AzSpeedDps, ElSpeedDps: m.ElSpeedDps, AccelDps2: m.AccelDps2,
				FeedbackMoving: 2 * time.Second, FeedbackIdle: 10 * time.Second,
			},
			Rotator: &station.RotatorOptions{Driver: drv, Absolute: true, DeadbandDeg: 0.2, Open: func(context.Context) (station.Wire, error) {
				l, dev := sim.Wire()
				link = l
				wg.Go(func() { ctl.Run(ctx, dev) })
				return tap{l, w}, nil
			}},
			Store: memory{}, Audit: w, Bus: bus, Orbits: noOrbits{}, BootID: "boot", Simulated: true,
			Trust: func() station.Trust { return station.Trust{Good: true, State: "simulated"} }, AgentBudget: station.DefaultAgentBudget(),
		})
		if err != nil {
			t.Fatal(err)
		}
		sctx, stop := context.WithCancel(context.Background())
		ran, served := make(chan struct{}), make(chan error, 1)
		go func() { defer close(ran); w.st.Run(sctx) }()
		s := New(Options{Station: w.st, Info: "test rotator", Identify: func(net.Conn) (Who, error) { return peer, nil }})
		lctx, close := context.WithCancel(context.Background())
		go func() { served <- s.Serve(lctx, w.lis) }()
		w.until(time.Minute, "a position is read", func() bool { a := w.st.Antenna(); return a.Measured != nil && !a.Moving })
		f(t, w)
		close()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
		stop()
		<-ran
		end()
		link.Unplug()
		wg.Wait()
	})
}

func operator() Peer { return Peer{Caller: gpredict, MayStop: true} }

// until lets time pass until something holds.
func (w *world) until(max time.Duration, what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(max); ; time.Sleep(20 * time.Millisecond) {
		synctest.Wait()
		if holds() {
			return
		}
		if time.Now().After(end) {
			w.t.Fatalf("%s: not within %v; antenna %+v, truth %+v", what, max, w.st.Antenna(), w.mount.Truth())
		}
	}
}

// Append implements station.Auditor.
func (w *world) Append(rec any) (uint64, error) {
	b, err := json.Marshal(rec)
	if err != nil {
		return 0, err
	}
	var a audited
	if err := json.Unmarshal(b, &a); err != nil {
		return 0, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.audit = append(w.audit, a)
	return uint64(len(w.audit)), nil
}

// audits counts the audit lines of a kind.
func (w *world) audits(what string) (n int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range w.audit {
		if a.What == what {
			n++
		}
	}
	return n
}

// told counts the events of a topic.
func (w *world) told(topic string) (list []event.Event) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.Topic() == topic {
			list = append(list, e)
		}
	}
	return list
}

// moves counts what would turn the antenna on the rotator's wire.
func (w *world) moves() (n int) {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.wire {
		if strings.ContainsAny(s, "0123456789") {
			n++
		}
	}
	return n
}

// at is where the antenna really is.
func (w *world) at() unit.AzEl {
	m := w.mount.Truth()
	return unit.AzEl{AzDeg: m.AzDeg, ElDeg: m.ElDeg}
}

func (w *world) near(at unit.AzEl, tol float64) bool {
	return math.Abs(unit.Diff(w.at().AzDeg, at.AzDeg)) <= tol && math.Abs(w.at().ElDeg-at.ElDeg) <= tol
}

type tap struct {
	*sim.MemLink
	w *world
}

func (t tap) Write(ctx context.Context, p []byte) error {
	t.w.mu.Lock()
	t.w.wire = append(t.w.wire, string(p))
	t.w.mu.Unlock()
	return t.MemLink.Write(ctx, p)
}

func (t tap) Close() error { t.Unplug(); return nil }

// memory is a disk that is new.
type memory struct{}

func (memory) Save(string, any) error           { return nil }
func (memory) Load(string, any) (string, error) { return "", fs.ErrNotExist }

type noOrbits struct{}

func (noOrbits) Orbit(int) (*passes.Orbit, *safety.Orbit) { return nil, nil }

// pipes is a listener in memory, since sockets know no fake time.
type pipes struct {
	in   chan net.Conn
	once sync.Once
	done chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.in:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.done) }); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }

// A client is a program at the server's port.
type client struct {
	t    *testing.T
	conn net.Conn

	mu    sync.Mutex
	got   bytes.Buffer
	ended bool
}

// connect is a client of the world's server.
func (w *world) connect() *client { return dial(w.t, w.lis) }

func dial(t *testing.T, l *pipes) *client {
	t.Helper()
	ours, theirs := net.Pipe()
	l.in <- theirs
	c := &client{t: t, conn: ours}
	go func() {
		var b [512]byte
		for {
			n, err := ours.Read(b[:])
			c.mu.Lock()
			c.got.Write(b[:n])
			c.ended = err != nil
			c.mu.Unlock()
			if err != nil {
				return
			}
		}
	}()
	return c
}

// send writes without waiting for an answer.
func (c *client) send(text string) {
	c.t.Helper()
	if _, err := c.conn.Write([]byte(text)); err != nil && !errors.Is(err, net.ErrClosed) && !strings.Contains(err.Error(), "closed pipe") {
		c.t.Fatal(err)
	}
}

// answer is what came back within some fake seconds: until the end of a report
// or until the time is up.
func (c *client) answer() string {
	c.t.Helper()
	for range 100 {
		synctest.Wait()
		c.mu.Lock()
		text, ended := c.got.String(), c.ended
		c.mu.Unlock()
		if ended || strings.HasSuffix(text, "\n") {
			c.mu.Lock()
			c.got.Reset()
			c.mu.Unlock()
			return text
		}
		time.Sleep(50 * time.Millisecond)
	}
	return ""
}

// ask sends a line and returns what comes back.
func (c *client) ask(line string) string {
	c.t.Helper()
	c.send(line + "\n")
	return c.answer()
}

func (c *client) want(line, want string) {
	c.t.Helper()
	if got := c.ask(line); got != want {
		c.t.Errorf("%q is answered %q, want %q", line, got, want)
	}
}

func (c *client) closed() bool {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// vanish is the end of a program without a word.
func (c *client) vanish() { c.conn.Close() }
