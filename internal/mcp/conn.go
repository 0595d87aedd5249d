package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
)

// Bounds of one session. They are timing rules: unlimited clients made the
// tracking loop late by hundreds of milliseconds on two cores.
const (
	maxOpen    = 64          // requests accepted and not answered, subscriptions among them
	maxWait    = time.Second // of a call for one of the four seats
	maxListens = 32          // of 2026-07-28
	maxURIs    = 256         // subscribed resources, earlier versions
	lastChance = time.Second // for handlers to notice that they were cancelled
)

// Why a request's context ended.
var (
	errCancelled = errors.New("cancelled by the client")
	errListenEnd = errors.New("the server ends the subscription")
	errDrained   = errors.New("the session has ended")
)

// A request is one open request.
type request struct {
	id       json.RawMessage
	key      string
	method   string
	params   object
	version  string
	modern   bool
	client   Implementation
	features object // capabilities that the client declared
	trace    string
	inputs   Inputs
	tool     *tool // of tools/call, nil when unknown
	cancel   context.CancelCauseFunc
	progress progress
}

// A conn moves lines: it reads, keeps the open requests, and answers each at
// most once.
type conn struct {
	srv  *Server
	out  *outbox
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	seat chan struct{} // one per running call

	mu   sync.Mutex
	open map[string]*request
}

// reply answers a request, or a line whose id could not be read (nil).
func (c *conn) reply(id json.RawMessage, result any, err error) {
	if line := c.answer(id, result, err); line != nil {
		c.out.send(line)
	}
}

// answer encodes an answer.
func (c *conn) answer(id json.RawMessage, result any, err error) []byte {
	if id == nil {
		id = json.RawMessage("null")
	}
	if err == nil {
		line, failed := encode(resultMessage{"2.0", id, result})
		if failed == nil {
			return line
		}
		err = c.srv.incident("answer cannot be encoded", failed)
	}
	line, failed := encode(errorMessage{"2.0", id, c.asError(err)})
	if failed != nil {
		line, _ = encode(errorMessage{"2.0", id, c.srv.incident("error cannot be encoded", failed)})
	}
	return line
}

// asError keeps a handler's choice of code and turns any other error into an
// incident.
func (c *conn) asError(err error) *Error {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.Canceled), errors.Is(err, errDrained):
		return errorf(CodeInternal, "the session ended before this was finished")
	}
	return c.srv.incident("handler failed", err)
}

// notify queues a notification; see outbox.note for the key.
func (c *conn) notify(key, method string, params any) {
	line, err := encode(requestMessage{Version: "2.0", Method: method, Params: params})
	if err != nil {
		c.srv.incident("notification cannot be encoded", err, "method", method)
		return
	}
	c.out.note(key, line)
}

// begin registers a request. An id that is still open may not come again, and
// the second request must not run.
func (c *conn) begin(ctx context.Context, rq *request) (context.Context, error) {
	rq.key = idKey(rq.id)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open[rq.key] != nil {
		return nil, errorf(CodeInvalid, "invalid request: id %s is in use by a request that is not answered yet", printable(string(rq.id), maxShown))
	}
	ctx, rq.cancel = context.WithCancelCause(ctx)
	c.open[rq.key] = rq
	return ctx, nil
}

// end takes a request off the list; after it no progress goes out.
func (c *conn) end(rq *request) {
	rq.progress.close()
	c.mu.Lock()
	delete(c.open, rq.key)
	c.mu.Unlock()
	rq.cancel(nil)
}

// cancelRequest serves notifications/cancelled. From here on nothing is said
// about the request.
func (ss *session) cancelRequest(id json.RawMessage) {
	ss.conn.mu.Lock()
	rq := ss.open[idKey(id)]
	ss.conn.mu.Unlock()
	if rq == nil {
		return
	}
	rq.cancel(errCancelled)
	rq.progress.close()
	if rq.method == "subscriptions/listen" {
		ss.unlisten(rq)
	}
}

// openCount is the number of requests not answered yet.
func (c *conn) openCount() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.open)
}

// take waits for one of the four seats. The wait is short: it is for calls that
// came in one burst, not for a queue of work.
func (c *conn) take(ctx context.Context) error {
	select {
	case c.seat <- struct{}{}:
		return nil
	default:
	}
	t := time.NewTimer(maxWait)
	defer t.Stop()
	select {
	case c.seat <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return errorf(CodeInternal, "%d calls of this session are under way, which is the limit: wait for an answer, then repeat this one", cap(c.seat))
	}
}

type lineRead struct {
	line []byte
	long bool
	err  error
}

// readLines hands over one line at a time until the input ends or stop closes.
func readLines(in io.Reader, max int, to chan<- lineRead, stop <-chan struct{}) {
	r := bufio.NewReaderSize(in, readBuffer)
	for {
		line, long, err := readLine(r, max)
		select {
		case to <- lineRead{line, long, err}:
		case <-stop:
			return
		}
		if err != nil {
			return
		}
	}
}

// serve runs the session from the first line to the last answer.
func (ss *session) serve(ctx context.Context, in io.Reader, w io.Writer) (err error) {
	// Open requests outlive ctx for the drain, so their context is not its child.
	work, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(errDrained)
	ss.stop = stop
	out := newOutbox(w, stop)
	ss.out = out
	ss.srv.enter(ss)
	defer ss.srv.leave(ss)

	lines, over := make(chan lineRead), make(chan struct{})
	go readLines(in, ss.srv.o.MaxLine, lines, over)
	idle := newPinger(ss)
	defer idle.stop()
loop:
	for {
		select {
		case <-ctx.Done():
			break loop
		case <-work.Done():
			break loop
		case <-idle.fire():
			idle.silent()
		case l := <-lines:
			if l.err != nil {
				if l.err != io.EOF {
					err = l.err
				}
				break loop
			}
			idle.heard()
			switch {
			case l.long:
				ss.reply(nil, nil, errorf(CodeInvalid, "invalid request: the message is longer than %d bytes", ss.srv.o.MaxLine))
			case len(l.line) > 0:
				ss.line(work, l.line)
			}
		}
	}
	close(over)
	ss.endListens()
	ss.drain(work)
	if broken := context.Cause(work); broken != nil && broken != errDrained {
		err = broken
	}
	out.close()
	select {
	case <-out.done:
	case <-time.After(stall):
		out.broken(errSlow)
	}
	for _, x := range []any{in, w} {
		if cl, ok := x.(io.Closer); ok {
			cl.Close()
		}
	}
	if err != nil {
		ss.srv.o.Log("mcp: session failed", "session", ss.id, "cause", err)
	}
	return err
}

// drain lets open requests finish, then cancels them.
func (ss *session) drain(work context.Context) {
	done := make(chan struct{})
	go func() { ss.wg.Wait(); close(done) }()
	select {
	case <-done:
		return
	case <-work.Done(): // nobody is there to read the answers
	case <-time.After(ss.srv.o.Drain):
	}
	ss.stop(errDrained)
	select {
	case <-done:
	case <-time.After(lastChance):
		ss.srv.o.Log("mcp: a handler does not obey its context", "session", ss.id)
	}
}
