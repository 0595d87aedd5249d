package mcp

import (
	"encoding/json"
	"sync"
	"time"
)

// progressEvery bounds progress to four messages a second: a client redraws a
// line for each.
const progressEvery = 250 * time.Millisecond

// A progress reports how far one request is, with the client's own token and
// only until the answer.
type progress struct {
	ss    *session
	token json.RawMessage // nil: the client did not ask

	mu   sync.Mutex
	over bool
	sent time.Time
	done float64
}

type progressParams struct {
	Token   json.RawMessage `json:"progressToken"`
	Done    float64         `json:"progress"`
	Total   float64         `json:"total,omitempty"`
	Message string          `json:"message,omitempty"`
}

func (p *progress) report(done, total float64, msg string) {
	if p.token == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if first := p.sent.IsZero(); p.over || !first && (!(done > p.done) || now.Sub(p.sent) < progressEvery) {
		return
	}
	p.done, p.sent = done, now
	// Queued under the lock, so that close leaves none behind; the queue does not block.
	p.ss.notify(p.key(), "notifications/progress", progressParams{p.token, done, total, msg})
}

func (p *progress) key() string { return "progress " + string(p.token) }

// close ends the reports. One that is still queued goes too: clients have torn
// down the transport over progress that raced the answer.
func (p *progress) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	if !p.sent.IsZero() {
		p.ss.out.drop(func(key string) bool { return key == p.key() })
	}
}
