package hub

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/state"
)

const (
	sessionFile = "hub-session.json"
	// settled is how long a session must have lasted for the back-off to
	// start anew, and quickEnd how short one is when another client with our
	// name throws us out.
	settled  = 30 * time.Second
	quickEnd = 5 * time.Second
	flapsFor = 3 // quick ends in a row that are called a duplicate client id

	suspectAfter = 2 // sessions in a row that died on the same record: send alone
	poisonAfter  = 4 // then ask with canaries whether the broker takes anything
	maxPoisoned  = 3 // records put aside without a success between them
)

// A Publisher delivers the two journals of a station to its hub, at least
// once, in order, for as long as it takes. Run does the work; the other
// methods may be called from anywhere.
type Publisher struct {
	c    Config
	bus  *event.Bus
	log  hclog.Logger
	now  func() time.Time
	crit *lane
	info *lane

	retry    chan struct{}
	stopping chan struct{}
	stopOnce sync.Once
	hard     chan struct{} // closed when the time for an end in good order is over
	running  chan struct{} // closed when Run has returned

	mu      sync.Mutex
	status  hubStatus
	session uint64
	resends []resend
	ended   []time.Time // ends of sessions within ten minutes
	quick   int         // quick ends in a row
	firstOK time.Time   // first PUBACK since the last confirmation

	poisoned int // only Run
}

// A lane is one journal on its way to the hub. Only Run touches it.
type lane struct {
	name string
	j    *state.Journal
	sent uint64 // highest number given to the client in this session
	q    []inflight

	suspect uint64 // the record at the head when sessions died
	fails   int    // how many in a row
	accused bool   // the broker took a canary before the last of them
}

// New checks the configuration and makes a publisher. It connects to nothing.
func New(cfg Config, bus *event.Bus, crit, info *state.Journal, log hclog.Logger) (*Publisher, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	if crit == nil || info == nil {
		return nil, errors.New("the hub needs both journals: without them nothing could be kept while the broker is away")
	}
	cfg.defaults()
	if log == nil {
		log = hclog.NewNullLogger()
	}
	p := &Publisher{c: cfg, bus: bus, log: log, now: time.Now,
		crit: &lane{name: event.Crit, j: crit}, info: &lane{name: event.Info, j: info},
		retry: make(chan struct{}, 1), stopping: make(chan struct{}), hard: make(chan struct{}), running: make(chan struct{})}
	p.status = hubStatus{State: "down", Reason: reasonConnecting, Since: p.now().UTC()}
	return p, p.loadSession()
}

func (p *Publisher) lanes() []*lane { return []*lane{p.crit, p.info} }

// loadSession continues the count of sessions. Without a file the time of day
// is the best guess at a number greater than the last.
func (p *Publisher) loadSession() error {
	p.session = uint64(max(p.now().Unix(), 0))
	if p.c.Dir == nil {
		return nil
	}
	var n uint64
	note, err := p.c.Dir.Load(sessionFile, &n)
	switch {
	case err == nil:
		p.session = n
	case errors.Is(err, fs.ErrNotExist):
		p.session = 0
	default:
		p.log.Warn("session number lost; continuing from the time of day", "error", err)
	}
	if note != "" {
		p.log.Warn(note)
	}
	return nil
}

func (p *Publisher) nextSession() uint64 {
	p.mu.Lock()
	p.session++
	n := p.session
	p.mu.Unlock()
	if p.c.Dir != nil {
		if err := p.c.Dir.Save(sessionFile, n); err != nil {
			p.log.Warn("session number not saved: after a restart a late will may hide that the station is online", "error", err)
		}
	}
	return n
}

// Run delivers until ctx ends or Shutdown is called. It then sends what it can
// within ShutdownWait, says offline, and returns nil.
func (p *Publisher) Run(ctx context.Context) error {
	defer close(p.running)
	defer p.setState("down", reasonShutdown, nil)
	go p.watchEnd(ctx)
	back, slowBack := p.c.MinBackoff, p.c.SlowBackoff
	for !p.isStopping() {
		start := p.now()
		err := p.runSession()
		if p.isStopping() {
			return nil
		}
		reason := p.sessionOver(err, p.now().Sub(start))
		if p.now().Sub(start) > settled {
			back, slowBack = p.c.MinBackoff, p.c.SlowBackoff
		}
		var wait time.Duration
		if slow(reason) {
			wait, slowBack = jitter(slowBack), min(2*slowBack, p.c.MaxSlowBackoff)
		} else {
			wait, back = jitter(back), min(2*back, p.c.MaxBackoff)
		}
		p.backOff(reason, err, wait)
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-p.retry:
			back, slowBack = p.c.MinBackoff, p.c.SlowBackoff
		case <-p.stopping:
		}
		t.Stop()
	}
	return nil
}

// watchEnd turns the end of ctx into a shutdown, and bounds the time that it
// takes: once for what waits, once for saying offline.
func (p *Publisher) watchEnd(ctx context.Context) {
	select {
	case <-ctx.Done():
		p.stop()
	case <-p.stopping:
	case <-p.running:
		return
	}
	t := time.NewTimer(2 * p.c.ShutdownWait)
	defer t.Stop()
	select {
	case <-t.C:
		close(p.hard)
	case <-p.running:
	}
}

// jitter is half of d fixed and half at random, so that the stations of a
// fleet do not come back together.
func jitter(d time.Duration) time.Duration {
	return d/2 + time.Duration(rand.Int63n(int64(d/2)+1))
}

// Retry connects at once instead of waiting: after a configuration reload, a
// clock that was set, or a network that came up.
func (p *Publisher) Retry() {
	select {
	case p.retry <- struct{}{}:
	default:
	}
}

func (p *Publisher) stop() { p.stopOnce.Do(func() { close(p.stopping) }) }

func (p *Publisher) isStopping() bool {
	select {
	case <-p.stopping:
		return true
	default:
		return false
	}
}

// Shutdown ends Run: what waits is delivered if there is a session and time,
// and the hub is told that the station goes offline. It waits until that is
// done or ctx ends.
func (p *Publisher) Shutdown(ctx context.Context) error {
	p.stop()
	select {
	case <-p.running:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("hub shutdown: %w", ctx.Err())
	}
}

// A resend is a request to send records again that were already delivered.
type resend struct {
	l        *lane
	from, to uint64
}

const maxResends = 64 // waiting requests; the hub asks again for what was dropped

// Replay sends the records from..to of a stream again, as far as the journal
// still has them. The cursor does not move.
func (p *Publisher) Replay(stream string, from, to uint64) error {
	var l *lane
	for _, x := range p.lanes() {
		if x.name == stream {
			l = x
		}
	}
	if l == nil {
		return fmt.Errorf("stream %.20q: want crit or info", stream)
	}
	if from == 0 || to < from {
		return fmt.Errorf("records %d to %d: want at least 1, and the first not after the last", from, to)
	}
	if last := l.j.Last(); from > last {
		return fmt.Errorf("record %d of %s does not exist yet: the newest is %d", from, stream, last)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.resends) >= maxResends {
		return fmt.Errorf("%d resends are waiting already: wait until they are done", maxResends)
	}
	p.resends = append(p.resends, resend{l, from, to})
	return nil
}
