package serialport

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const (
	// firstRetry and lastRetry bound the wait before the next attempt to open;
	// it doubles in between. An adapter takes about a second to come back.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 5 * time.Second
	// lookEvery is how often a quiet port's name is checked: an adapter that
	// came back under another number, or a simulator that was started again.
	lookEvery = time.Second
	// openBound bounds one attempt to open, settling aside.
	openBound = 5 * time.Second
)

// A State is what a Keeper has in hand.
type State string

// States of a Keeper.
const (
	Absent    State = "absent"    // not open, and not seen since the start
	Connected State = "connected" // open
	Lost      State = "lost"      // was open; being opened again
)

// A Change is told to the owner of a Keeper when its state, or the reason why
// there is no port, changes.
type Change struct {
	State    State
	Err      error  // why there is no port; nil when Connected
	Identity string // USB vendor:product, when Connected
}

// A Keeper keeps a port open: it opens it, and when the device goes away it
// closes it and opens it again by the same name, with back-off, for as long as
// Run runs. It is itself the Link that a driver uses; without a port its
// methods fail at once with ErrUnplugged. It refuses an adapter of another USB
// identity than the first one's.
//
// After a loss the antenna must be taken to be still moving, and a board may
// have been reset: the owner stops it and reads it back before anything else.
type Keeper struct {
	notify func(Change)
	c      counters
	lost   chan lostPort

	mu      sync.Mutex
	cfg     Config
	port    *Port
	state   State
	err     error
	arrived chan struct{} // closed while there is a port
}

type lostPort struct {
	p   *Port
	err error
}

// NewKeeper makes a Keeper; nothing is opened before Run. notify, which may be
// nil, is called from Run. For Connected it is called before the port is handed
// out, so an owner can mark its knowledge as old before it can use the new
// port. It must not block.
func NewKeeper(cfg Config, notify func(Change)) *Keeper {
	if notify == nil {
		notify = func(Change) {}
	}
	return &Keeper{
		notify: notify, lost: make(chan lostPort, 1), cfg: cfg,
		state: Absent, err: errors.New("not opened yet"), arrived: make(chan struct{}),
	}
}

// Run keeps the port open until ctx ends, then closes it and returns the error
// of closing, if any.
func (k *Keeper) Run(ctx context.Context) error {
	retry := firstRetry
	for {
		p, real, err := k.open(ctx)
		if ctx.Err() != nil {
			if p != nil {
				return p.Close()
			}
			return nil
		}
		if err != nil {
			k.without(err)
			pause(ctx, retry)
			retry = min(2*retry, lastRetry)
			continue
		}
		retry = firstRetry
		k.with(p)
		err = k.watch(ctx, p, real)
		if err == nil {
			k.without(errors.New("the station is ending"))
			return p.Close()
		}
		k.without(err)
		p.Close() // its error adds nothing: the device is gone
	}
}

func (k *Keeper) open(ctx context.Context) (p *Port, real string, err error) {
	k.mu.Lock()
	cfg := k.cfg
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, openBound+cfg.Settle)
	defer cancel()
	real, _ = filepath.EvalSymlinks(cfg.Path) // an error comes out of opening; tcp:// is no file
	p, err = openCounted(ctx, cfg, &k.c)
	return p, real, err
}

// watch waits until the port is lost, and says why, or until ctx ends.
func (k *Keeper) watch(ctx context.Context, p *Port, real string) error {
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case l := <-k.lost:
			if l.p == p { // not the news of an earlier port
				return l.err
			}
		case <-look.C:
			if !p.tty {
				continue
			}
			now, err := filepath.EvalSymlinks(p.path)
			if err != nil {
				return fmt.Errorf("port %s: %w: its name has vanished", show(p.path), ErrUnplugged)
			}
			if now != real {
				return fmt.Errorf("port %s: %w: its name now leads to %s, was %s", show(p.path), ErrUnplugged, show(now), show(real))
			}
		}
	}
}

func (k *Keeper) with(p *Port) {
	k.notify(Change{State: Connected, Identity: p.identity})
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.state == Lost {
		k.c.reopens.Add(1)
	}
	if k.cfg.Identity == "" {
		k.cfg.Identity = p.identity
	}
	k.port, k.state, k.err = p, Connected, nil
	close(k.arrived)
}

func (k *Keeper) without(err error) {
	k.mu.Lock()
	before, beforeErr := k.state, k.err
	if k.port != nil {
		k.port, k.state = nil, Lost
		k.arrived = make(chan struct{})
	}
	k.err = err
	state := k.state
	k.mu.Unlock()
	if state != before || beforeErr == nil || err.Error() != beforeErr.Error() {
		k.notify(Change{State: state, Err: err})
	}
}

// current is the open port, or why there is none.
func (k *Keeper) current() (*Port, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.port == nil {
		return nil, fmt.Errorf("port %s: %w (%w)", show(k.cfg.Path), ErrUnplugged, k.err)
	}
	return k.port, nil
}

// use runs one call on the port and takes note if that finds it gone.
func (k *Keeper) use(call func(*Port) error) error {
	p, err := k.current()
	if err != nil {
		return err
	}
	err = call(p)
	if err != nil && errors.Is(err, ErrUnplugged) {
		select {
		case k.lost <- lostPort{p, err}:
		default: // Run has not read the last one yet
		}
	}
	return err
}

// Write is Port.Write on the port in hand.
func (k *Keeper) Write(ctx context.Context, b []byte) error {
	return k.use(func(p *Port) error { return p.Write(ctx, b) })
}

// Read is Port.Read on the port in hand.
func (k *Keeper) Read(ctx context.Context, b []byte) (n int, err error) {
	err = k.use(func(p *Port) error {
		n, err = p.Read(ctx, b)
		return err
	})
	return n, err
}

// Discard is Port.Discard on the port in hand.
func (k *Keeper) Discard() error { return k.use((*Port).Discard) }

// CountFrame is Port.CountFrame.
func (k *Keeper) CountFrame(good bool) { k.c.countFrame(good) }

// Stats counts over all the ports that there have been.
func (k *Keeper) Stats() Stats { return k.c.stats() }

// State says whether there is a port, and if not, why.
func (k *Keeper) State() (State, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.state, k.err
}

// Wait returns when there is a port, or with the reason why there is none when
// ctx ends.
func (k *Keeper) Wait(ctx context.Context) error {
	k.mu.Lock()
	arrived := k.arrived
	k.mu.Unlock()
	select {
	case <-arrived:
		return nil
	case <-ctx.Done():
		_, err := k.State()
		return fmt.Errorf("wait for the port: %w", errors.Join(err, ctx.Err()))
	}
}

// pause waits for d of real time or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
