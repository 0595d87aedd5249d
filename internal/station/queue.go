package station

import (
	"context"
	"sync"
)

// maxQueued bounds what waits for the disk: minutes of a busy station. What
// does not fit is dropped and counted; health says so.
const maxQueued = 4096

// A queue runs small writes in order on one goroutine, so that an owner of a
// device never waits for a disk.
type queue struct {
	mu      sync.Mutex
	todo    []func()
	wake    chan struct{}
	dropped int
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

func (q *queue) put(f func()) {
	q.mu.Lock()
	if len(q.todo) >= maxQueued {
		q.dropped++
	} else {
		q.todo = append(q.todo, f)
	}
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// run works until ctx ends and then what is left.
func (q *queue) run(ctx context.Context) {
	for {
		q.mu.Lock()
		todo := q.todo
		q.todo = nil
		q.mu.Unlock()
		for _, f := range todo {
			f()
		}
		if len(todo) > 0 {
			continue
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
			q.mu.Lock()
			left := len(q.todo)
			q.mu.Unlock()
			if left == 0 {
				return
			}
		}
	}
}

// drops is how many writes were dropped.
func (q *queue) drops() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// A turn lets one at a time write a file. It is not a mutex: who waits for it
// waits for a disk.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the turn; the returned function gives it back.
func (t turn) take() (done func()) {
	t <- struct{}{}
	return func() { <-t }
}
