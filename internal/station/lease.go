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
	cur  safety.Lease
	lost func(to string) // tells the holder that the lease is gone
}

// current is the lease as the gate sees it.
func (l *leases) current() safety.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cur
}

// take gives the lease to a holder, or refuses because another of the same or
// a higher rank has it. It is kept until release.
func (l *leases) take(holder, who string, rank safety.Rank, lost func(to string)) *safety.Refusal {
	l.mu.Lock()
	old, oldLost := l.cur, l.lost
	if ref := safety.LeaseFree(old, l.now(), holder, rank); ref != nil {
		l.mu.Unlock()
		return ref
	}
	l.cur = safety.Lease{Holder: holder, Who: who, Rank: rank}
	l.lost = lost
	l.mu.Unlock()
	if old.Holder != "" && old.Holder != holder && oldLost != nil {
		oldLost(who)
	}
	return nil
}

// release lets the lease run out after a while, or at once when after is zero.
func (l *leases) release(holder string, after time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cur.Holder != holder {
		return
	}
	if after == 0 {
		l.cur, l.lost = safety.Lease{}, nil
		return
	}
	l.cur.Until = l.now().Add(after)
	l.lost = nil
}
