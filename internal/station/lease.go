package station

import (
	"sync"
	"time"

	"gsd-mcp/internal/safety"
)

// leaseAfter is how long the motion lease outlives the move, station time.
const leaseAfter = 60 * time.Second

// leases keeps who may move the antenna. One holder at a time; a higher rank
// takes the lease, and the loser is told.
type leases struct {
	now func() time.Time

	mu   sync.Mutex
	cur  leased
	next uint64
}

// leased is a lease with what only its keeper knows.
type leased struct {
	safety.Lease
	grant uint64
	lost  func(to string) // tells the holder that the lease is gone
}

// A grant is a lease that was taken for one move.
type grant struct {
	l     *leases
	id    uint64
	who   string
	was   leased
	other bool // somebody else had it
}

// current is the lease as the gate sees it.
func (l *leases) current() safety.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur.Lease
}

// held reports whether a holder has the lease, or has it still.
func (l *leases) held(holder string) bool {
	c := l.current()
	return c.Holder == holder && (c.Until.IsZero() || l.now().Before(c.Until))
}

// take gives the lease to a holder, or refuses because another of the same or
// a higher rank has it. It is kept until its release. The move that it was
// taken for may still come to nothing: keep and undo say how that went.
func (l *leases) take(holder, who string, rank safety.Rank, lost func(to string)) (*grant, *safety.Refusal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ref := safety.LeaseFree(l.cur.Lease, l.now(), holder, rank); ref != nil {
		return nil, ref
	}
	l.next++
	g := &grant{l: l, id: l.next, who: who, was: l.cur, other: l.cur.Holder != "" && l.cur.Holder != holder}
	l.cur = leased{safety.Lease{Holder: holder, Who: who, Rank: rank}, g.id, lost}
	return g, nil
}

// keep tells a holder of a lower rank that the antenna has been taken.
func (g *grant) keep() {
	if g.other && g.was.lost != nil {
		g.was.lost(g.who)
	}
}

// undo gives the lease back to whoever had it before.
func (g *grant) undo() {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	if g.l.cur.grant == g.id {
		g.l.cur = g.was
	}
}

// release lets the lease run out after a while, unless it was given for another
// move meanwhile.
func (g *grant) release(after time.Duration) {
	g.l.mu.Lock()
	defer g.l.mu.Unlock()
	if g.l.cur.grant == g.id {
		g.l.cur.Until = g.l.now().Add(after)
		g.l.cur.lost = nil
	}
}

// drop ends the lease of a holder at once.
func (l *leases) drop(holder string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur.Holder == holder {
		l.cur = leased{}
	}
}

// clear ends the lease at once, whoever has it.
func (l *leases) clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cur = leased{}
}
