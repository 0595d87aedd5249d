package main

import (
	"fmt"
	"io"
	"sync"

	"github.com/hashicorp/go-hclog"
)

// ringLines bounds what waits for the log's reader: about a minute of a busy
// station at debug level.
const ringLines = 2048

// A logRing takes log lines without ever waiting for who reads them: hclog
// writes under a lock, and an unread stderr stopped it after 595 lines. One
// goroutine writes; what does not fit is dropped, counted, and told in the next
// line that gets through.
type logRing struct {
	out   io.Writer
	lines chan []byte
	done  chan struct{}

	mu      sync.Mutex
	dropped int
	closed  bool
}

func newLogRing(out io.Writer) *logRing {
	r := &logRing{out: out, lines: make(chan []byte, ringLines), done: make(chan struct{})}
	go r.run()
	return r
}

// Write implements io.Writer. It never blocks and never fails.
func (r *logRing) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return len(p), nil
	}
	if r.dropped > 0 {
		select {
		case r.lines <- fmt.Appendf(nil, "gsd-mcp: %d log lines were dropped: nobody read them\n", r.dropped):
			r.dropped = 0
		default:
			r.dropped++
			return len(p), nil
		}
	}
	select {
	case r.lines <- append([]byte(nil), p...):
	default:
		r.dropped++
	}
	return len(p), nil
}

// Dropped is how many lines are lost and not yet told.
func (r *logRing) Dropped() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

func (r *logRing) run() {
	defer close(r.done)
	for l := range r.lines {
		r.out.Write(l) // nobody is left to tell of an error of the log itself
	}
}

// Close lets what waits go out, as long as the reader takes it.
func (r *logRing) Close() {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.lines)
	}
	r.mu.Unlock()
	<-r.done
}

// newLogger makes the station's logger on a ring.
func newLogger(ring *logRing, level, format string) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{Name: "gsd-mcp", Level: hclog.LevelFromString(level), Output: ring, JSONFormat: format == "json"})
}
