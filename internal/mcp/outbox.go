package mcp

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

const (
	queueLen = 64              // answers waiting to be written
	stall    = 2 * time.Second // an answer waits this long for room: longer than a bad link's hiccup, shorter than a person's patience for stop
)

// errSlow ends the session of a client that does not read.
var errSlow = fmt.Errorf("the client has not read its %d waiting answers for %v", queueLen, stall)

var errClosed = errors.New("the session has ended")

// An outbox is the bounded queue of one session and its one writer goroutine.
// Answers take one of 64 places and wait a moment for one; notifications never
// wait and never pile up, because one that is still queued is replaced by its
// successor. So nobody who publishes is ever held up by a client.
type outbox struct {
	w      io.Writer
	fail   func(error) // called once, when writing is over
	places chan struct{}
	wake   chan struct{}
	dead   chan struct{} // closed on failure
	done   chan struct{} // closed when the writer has returned

	mu     sync.Mutex
	items  []*outItem
	queued map[string]*outItem // the items with a key
	closed bool
	failed bool
}

type outItem struct {
	key  string // "" for an answer
	line []byte
}

func newOutbox(w io.Writer, fail func(error)) *outbox {
	o := &outbox{w: w, fail: fail, places: make(chan struct{}, queueLen), wake: make(chan struct{}, 1),
		dead: make(chan struct{}), done: make(chan struct{}), queued: map[string]*outItem{}}
	go o.write()
	return o
}

// reserve waits for a place. The caller then appends exactly one answer.
func (o *outbox) reserve() error {
	select {
	case o.places <- struct{}{}:
		return nil
	case <-o.dead:
		return errClosed
	default:
	}
	t := time.NewTimer(stall)
	defer t.Stop()
	select {
	case o.places <- struct{}{}:
		return nil
	case <-o.dead:
		return errClosed
	case <-t.C:
		o.broken(errSlow)
		return errSlow
	}
}

// release gives a reserved place back.
func (o *outbox) release() { <-o.places }

// append queues an answer whose place is reserved. It does not block.
func (o *outbox) append(line []byte) { o.push(&outItem{line: line}) }

// send queues an answer, waiting for a place.
func (o *outbox) send(line []byte) {
	if o.reserve() == nil {
		o.append(line)
	}
}

// note queues a notification that stands for all earlier ones of the same key.
// It does not block. The number of keys is bounded by the subscriptions and the
// open requests of the session.
func (o *outbox) note(key string, line []byte) { o.push(&outItem{key, line}) }

func (o *outbox) push(it *outItem) {
	o.mu.Lock()
	switch old := o.queued[it.key]; {
	case o.closed || o.failed:
	case old != nil:
		old.line = it.line
	default:
		o.items = append(o.items, it)
		if it.key != "" {
			o.queued[it.key] = it
		}
	}
	o.mu.Unlock()
	o.ring()
}

// drop takes back queued notifications: those of a request that has ended.
func (o *outbox) drop(of func(key string) bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	keep := o.items[:0]
	for _, it := range o.items {
		if it.key != "" && of(it.key) {
			delete(o.queued, it.key)
			continue
		}
		keep = append(keep, it)
	}
	o.items = keep
}

// ring wakes the writer.
func (o *outbox) ring() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// close lets the writer finish what is queued.
func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.mu.Unlock()
	o.ring()
}

// broken drops what is queued and ends the session.
func (o *outbox) broken(err error) {
	o.mu.Lock()
	first := !o.failed
	o.failed, o.items = true, nil
	o.mu.Unlock()
	if first {
		close(o.dead)
		o.fail(err)
	}
}

func (o *outbox) write() {
	defer close(o.done)
	for {
		o.mu.Lock()
		if len(o.items) == 0 {
			end := o.closed || o.failed
			o.mu.Unlock()
			if end {
				return
			}
			select {
			case <-o.wake:
			case <-o.dead:
			}
			continue
		}
		it := o.items[0]
		o.items = o.items[1:]
		if it.key != "" {
			delete(o.queued, it.key)
		}
		o.mu.Unlock()
		if it.key == "" {
			<-o.places
		}
		if _, err := o.w.Write(it.line); err != nil { // one write per message
			o.broken(fmt.Errorf("write to the client: %w", err))
			return
		}
	}
}
