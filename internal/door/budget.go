package door

import (
	"sync"
	"time"
)

// Limits of one session (DESIGN section 3): a timing rule that keeps the
// tracking loop on time, not a courtesy. Budgets per uid are the station's.
const (
	MaxSessions       = 16
	RequestsPerSecond = 20
	requestBurst      = 20 // an MCP host asks for every list at once when it starts
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
	now := time.Now()
	b.tokens = min(b.burst, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	b.last = now
	if b.tokens >= 1 {
		b.tokens--
		return 0
	}
	return time.Duration((1 - b.tokens) / b.rate * float64(time.Second))
}
