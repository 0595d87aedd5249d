package door

import (
	"bytes"
	"context"
	"io"
	"sync"
	"time"
)

// Limits of one session (DESIGN section 3): a timing rule that keeps the
// tracking loop on time, not a courtesy. Budgets per uid are the station's.
const (
	MaxSessions       = 16
	RequestsPerSecond = 20
	requestBurst      = 20 // an MCP host asks for every list at once when it starts

	linesPerSecond = 1000 // read from one session, requests or not
	lineBurst      = 2000
	lineBytes      = 4096 // so much of a long line costs as much as a short line
)

// A Budget is a token bucket: burst requests at once, then rate per second.
type Budget struct {
	rate, burst float64

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

// NewBudget returns a full bucket.
func NewBudget(perSecond float64, burst int) *Budget {
	return &Budget{rate: perSecond, burst: float64(burst), tokens: float64(burst), last: time.Now()}
}

// Take takes one token. When there is none it takes nothing and returns how
// long to wait for the next.
func (b *Budget) Take() (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return b.until(1)
}

// Spend takes n tokens, there or not, and returns how long it is until the debt
// is paid.
func (b *Budget) Spend(n int) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.tokens -= float64(n)
	return b.until(0)
}

func (b *Budget) fill() {
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
}

func (b *Budget) until(tokens float64) time.Duration {
	return max(0, time.Duration((tokens-b.tokens)/b.rate*float64(time.Second)))
}

// A pacedReader reads no faster than a budget of lines allows. What is refused
// costs time too, and pings and notifications have no budget of requests: a
// client that sends nothing but those must not make the tracking loop late
// (hazard S-12). It is slowed down, and notices nothing else.
type pacedReader struct {
	ctx    context.Context
	in     io.Reader
	budget *Budget
}

func (p *pacedReader) Read(b []byte) (int, error) {
	n, err := p.in.Read(b)
	if wait := p.budget.Spend(bytes.Count(b[:n], []byte{'\n'}) + n/lineBytes); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
		case <-p.ctx.Done():
		}
	}
	return n, err
}
