package station

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// Store keeps small files durably; state.Dir is one.
type Store interface {
	Save(name string, v any) error
	Load(name string, v any) (note string, err error)
}

// Guards of every actuating command (contract, section 5): the same request
// gives the first answer again, and nobody may ask without end. Both outlive a
// restart.
const (
	guardsFile    = "guards.json"
	repeatWindow  = 10 * time.Minute
	budgetWindow  = time.Hour
	maxRemembered = 512
	maxKeyLen     = 64
)

// A Budget is how many commands of a sort a uid may give in an hour; 0: any
// number.
type Budget struct{ Bookings, Moves int }

// DefaultAgentBudget is what an agent may do in an hour.
func DefaultAgentBudget() Budget { return Budget{Bookings: 30, Moves: 60} }

type remembered struct {
	UID  int             `json:"uid"`
	Verb string          `json:"verb"`
	Key  string          `json:"key,omitempty"`
	Hash string          `json:"hash"`
	At   time.Time       `json:"at"`
	ID   string          `json:"command_id"`
	Data json.RawMessage `json:"data,omitempty"`
}

type guardsState struct {
	Version int                    `json:"version"`
	Done    []remembered           `json:"done"`  // oldest first
	Spent   map[string][]time.Time `json:"spent"` // "uid/sort" to the times of commands
}

type guards struct {
	store Store
	now   func() time.Time

	mu   sync.Mutex
	st   guardsState
	busy map[string]chan struct{} // keys of commands under way

	saving turn
}

func openGuards(store Store, now func() time.Time) (*guards, string, error) {
	g := &guards{store: store, now: now, busy: map[string]chan struct{}{}, saving: newTurn()}
	note, err := store.Load(guardsFile, &g.st)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		// Losing the memory of repeats is safer than not starting: the gate stands.
		note, g.st = fmt.Sprintf("the memory of recent commands could not be read and begins anew: %v", err), guardsState{}
	}
	if g.st.Spent == nil {
		g.st.Spent = map[string][]time.Time{}
	}
	return g, note, nil
}

// hashArgs identifies what a command asks for. Arguments that JSON cannot hold
// (no tool lets them through) never equal each other.
func hashArgs(c Command) string {
	b, err := json.Marshal([]any{c.Args, c.Target, c.Tune, c.Mode, c.Fault})
	if err != nil {
		b = []byte(c.ID)
	}
	s := sha256.Sum256(append([]byte(c.Verb+"\x00"), b...))
	return hex.EncodeToString(s[:16])
}

// enter lets one command of a uid with a key through at a time: a client that
// asks again before it was answered waits for the first answer. leave must be
// called.
func (g *guards) enter(ctx context.Context, uid int, key string) (leave func(), err error) {
	if key == "" {
		return func() {}, nil
	}
	k := fmt.Sprintf("%d/%s", uid, key)
	for {
		g.mu.Lock()
		other := g.busy[k]
		if other == nil {
			mine := make(chan struct{})
			g.busy[k] = mine
			g.mu.Unlock()
			return func() {
				g.mu.Lock()
				delete(g.busy, k)
				g.mu.Unlock()
				close(mine)
			}, nil
		}
		g.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, fmt.Errorf("the first command with the key %q is under way still: %w", key, ctx.Err())
		}
	}
}

// repeated finds the first answer to the same request. A key is remembered
// however long ago it was used. Without one only the uid's newest command
// counts, within repeatWindow: sending an antenna to A, to B and to A again is
// three requests.
func (g *guards) repeated(uid int, key, hash string) (*remembered, *safety.Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := g.now()
	for i := len(g.st.Done) - 1; i >= 0; i-- {
		d := g.st.Done[i]
		switch {
		case d.UID != uid:
		case key == "":
			if d.Hash == hash && now.Sub(d.At) <= repeatWindow {
				return &d, nil
			}
			return nil, nil
		case d.Key == key:
			if d.Hash != hash {
				return nil, safety.Refuse(safety.IdempotencyMismatch, "use a new key for a new request", "the idempotency key %q was used %.0f s ago with other arguments", unit.Printable(key, maxKeyLen), now.Sub(d.At).Seconds())
			}
			return &d, nil
		}
	}
	return nil, nil
}

// spend takes one command of a sort from a uid's budget, or says when the next
// is allowed.
func (g *guards) spend(uid int, sort string, limit int) *safety.Refusal {
	if limit <= 0 {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	k := fmt.Sprintf("%d/%s", uid, sort)
	now := g.now()
	times := g.st.Spent[k]
	for len(times) > 0 && now.Sub(times[0]) >= budgetWindow {
		times = times[1:]
	}
	if len(times) >= limit {
		wait := times[0].Add(budgetWindow).Sub(now)
		ref := safety.Refuse(safety.RateLimited, fmt.Sprintf("wait %.0f s", wait.Seconds()+0.5), "%d %s in the last hour, the limit is %d; the next is allowed at %s",
			len(times), sort, limit, now.Add(wait).UTC().Format(time.RFC3339))
		ref.Extra = map[string]any{"retry_after_s": int(wait.Seconds() + 0.999)}
		g.st.Spent[k] = times
		return ref
	}
	g.st.Spent[k] = append(times, now)
	return nil
}

// remember keeps an answer; the error is that of the disk.
func (g *guards) remember(r remembered) error {
	defer g.saving.take()()
	g.mu.Lock()
	r.At = g.now()
	g.st.Version = 1
	old := func(d remembered) bool { return d.Key == "" && r.At.Sub(d.At) > repeatWindow }
	g.st.Done = append(slices.DeleteFunc(g.st.Done, old), r)
	if n := len(g.st.Done) - maxRemembered; n > 0 {
		g.st.Done = slices.Delete(g.st.Done, 0, n)
	}
	st := guardsState{Version: g.st.Version, Done: slices.Clone(g.st.Done), Spent: map[string][]time.Time{}}
	for k, times := range g.st.Spent {
		if n := len(times); n > 0 && r.At.Sub(times[n-1]) < budgetWindow {
			st.Spent[k] = slices.Clone(times)
		}
	}
	g.mu.Unlock()
	return g.store.Save(guardsFile, st)
}
