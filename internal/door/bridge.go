package door

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// drain is how long open calls may take to be answered after the client has
	// closed its end: the 2 s of CONTRACT section 1, and what the daemon's last
	// words need on a slow card.
	drain = 2250 * time.Millisecond
	// comeBack is how long a bridge looks for a daemon that has gone: systemd
	// waits 2 s, and a slow card takes most of the start.
	comeBack = 30 * time.Second
	// hold is how long a message waits for the daemon to come back. After that
	// it is answered with an error: a request to move must not run much later
	// than it was made.
	hold = 5 * time.Second
	// firstRetry and lastRetry bound the back-off of dialling.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 2 * time.Second
	// settled is how long a connection lasts to count as a session.
	settled = 10 * time.Second
	// farewell is how long a client that was sent away may take to ask something
	// and so be told why.
	farewell = 2 * time.Second
	// maxSubscriptions are remembered for a restart; the daemon has its own limit.
	maxSubscriptions = 256
)

// BridgeOptions say where the bridge goes and what its session gives up.
type BridgeOptions struct {
	Socket   string
	Build    string // build id of this program
	Role     string // "" or the strongest role that the session wants: observer, operator, supervisor
	ReadOnly bool   // no tool that changes anything
	// ComeBack is how long to look for a daemon that has gone; 0 means 30 s.
	ComeBack time.Duration
	// Hold is how long a message waits for such a daemon before it is answered
	// with an error; 0 means 5 s.
	Hold time.Duration
	// Dial replaces the dialling of Socket.
	Dial func(ctx context.Context) (net.Conn, error)
	// Note is told of restarts, for stderr; nil: nobody.
	Note func(text string)
}

// Bridge carries an MCP client's lines to the daemon's socket and back, until
// stdin ends or ctx does. It then half-closes and copies what is still answered,
// for at most 2 s. It owns no hardware and judges nothing, but private methods
// (gsd/...) do not pass. When the daemon restarts, the bridge dials again,
// repeats the client's handshake and subscriptions, answers what was in flight
// with an error, and says that the lists may have changed.
//
// A role that does not exist is an error at once.
//
// The error is an *UnreachableError when there is no daemon, at the start or
// after waiting for one; a *RefusedError when the door sent the session away.
// A read from stdin cannot be interrupted: when Bridge returns for another
// reason, one goroutine stays behind in that read.
func Bridge(ctx context.Context, stdin io.Reader, stdout io.Writer, o BridgeOptions) error {
	if o.Dial == nil {
		o.Dial = func(ctx context.Context) (net.Conn, error) { return dial(ctx, o.Socket) }
	}
	if o.ComeBack == 0 {
		o.ComeBack = comeBack
	}
	if o.Hold == 0 {
		o.Hold = hold
	}
	if o.Note == nil {
		o.Note = func(string) {}
	}
	if _, err := limitRole(o.Role); err != nil {
		return err
	}
	b := &bridge{
		o: o, stdout: stdout, turn: make(chan struct{}, 1), eof: make(chan struct{}), told: make(chan struct{}, 1),
		open: map[string]call{}, subscriptions: map[string][]byte{}, ready: make(chan struct{}),
	}
	conn, err := o.Dial(ctx)
	if err != nil {
		return err
	}
	ctx, b.cancel = context.WithCancelCause(ctx)
	defer b.cancel(nil)
	if _, err := conn.Write(b.hello()); err != nil {
		// The door may have refused already: the reader finds out.
		o.Note(fmt.Sprintf("the station closed the connection at once: %v", err))
	}
	b.conn = conn
	close(b.ready)
	go b.up(ctx, stdin)
	return b.down(ctx, conn)
}

// errClientGone ends a bridge whose client no longer reads.
var errClientGone = errors.New("the client has closed its end")

type bridge struct {
	o      BridgeOptions
	stdout io.Writer
	turn   chan struct{} // one place: whose turn it is to write to stdout
	cancel context.CancelCauseFunc
	eof    chan struct{} // closed when stdin has ended and all of it is forwarded
	told   chan struct{} // a request was answered with the reason for going away

	mu    sync.Mutex    // guards all below; not held over I/O
	conn  net.Conn      // nil while the daemon is away
	ready chan struct{} // closed when conn is set, or going is
	lost  time.Time     // when the daemon went away
	going error         // not nil: the bridge is ending, and why
	open  map[string]call

	initialize    []byte // the client's line, nil before
	initializeID  string
	answered      bool              // initialize has its answer
	initialized   []byte            // the client's notification, nil before
	subscriptions map[string][]byte // params of resources/subscribe by URI
	swallow       map[string]bool   // ids of repeated requests whose answer the client has
	heard         bool              // the daemon has said something on this connection
}

// A call is a request on its way.
type call struct {
	id     []byte
	method string
}

// hello is the bridge's own first line.
func (b *bridge) hello() []byte {
	return encodeLine(struct {
		Version string      `json:"jsonrpc"`
		Method  string      `json:"method"`
		Params  bridgeHello `json:"params"`
	}{"2.0", bridgeMethod, bridgeHello{b.o.Build, b.o.Role, b.o.ReadOnly}})
}

// say writes one message to the client, with one write.
func (b *bridge) say(line []byte) {
	b.turn <- struct{}{}
	_, err := b.stdout.Write(line)
	<-b.turn
	if err != nil {
		b.cancel(errClientGone)
	}
}

func (b *bridge) sayError(id []byte, code int, text string) {
	b.say(errorLine(id, wireError{Code: code, Message: text}))
}

// up carries the client's lines to the daemon.
func (b *bridge) up(ctx context.Context, stdin io.Reader) {
	defer close(b.eof)
	in := bufio.NewReaderSize(stdin, 64<<10)
	for ctx.Err() == nil {
		line, tooLong, err := readLine(in)
		switch {
		case err != nil:
			return
		case tooLong:
			b.sayError(nil, codeInvalidRequest, fmt.Sprintf("the message is longer than %d bytes: send less at once", MaxLine))
		case len(line) > 0:
			b.forward(ctx, line)
		}
	}
}

// forward sends one line of the client to the daemon, waiting a little for one
// that is away.
func (b *bridge) forward(ctx context.Context, line []byte) {
	m := peek(line)
	if m.private {
		if m.id != nil {
			b.sayError(m.id, codeNoMethod, "method not found: private methods are for gsd-mcp commands on the station itself and do not pass the bridge")
		}
		return
	}
	conn, err := b.take(ctx, m, line)
	if err != nil {
		if m.request() {
			b.sayError(m.id, codeInternal, err.Error())
			select {
			case b.told <- struct{}{}:
			default:
			}
		}
		return
	}
	conn.Write(append(line, '\n')) // if it fails, down sees the end of the connection and answers
}

// take notes what must be remembered of a line and returns the connection to
// write it to. An error says what to answer instead.
func (b *bridge) take(ctx context.Context, m message, line []byte) (net.Conn, error) {
	var timer <-chan time.Time
	for {
		b.mu.Lock()
		conn, ready, going := b.conn, b.ready, b.going
		if going != nil {
			b.mu.Unlock()
			return nil, going
		}
		if conn != nil {
			b.note(m, line)
			b.mu.Unlock()
			return conn, nil
		}
		if m.method == "notifications/initialized" && b.initialize != nil {
			b.initialized = bytes.Clone(line) // the repeated handshake brings it
			b.mu.Unlock()
			return nil, errors.New("remembered")
		}
		left := b.o.Hold - time.Since(b.lost)
		b.mu.Unlock()
		if timer == nil {
			if left <= 0 {
				return nil, errAway
			}
			timer = time.After(left)
		}
		select {
		case <-ready:
		case <-timer:
			return nil, errAway
		case <-ctx.Done():
			return nil, errors.New("the bridge is ending")
		}
	}
}

var errAway = errors.New("the station is restarting and nothing was done: wait some seconds, read get_station_health and ask again")

// note remembers what a restart needs: open requests, the handshake, and
// subscriptions. b.mu is held.
func (b *bridge) note(m message, line []byte) {
	if m.request() && validID(m.id) {
		b.open[string(m.id)] = call{bytes.Clone(m.id), m.method}
	}
	switch m.method {
	case "initialize":
		if b.initialize == nil && m.id != nil {
			b.initialize, b.initializeID = bytes.Clone(line), string(m.id)
		}
	case "notifications/initialized":
		if b.initialize != nil && b.initialized == nil {
			b.initialized = bytes.Clone(line)
		}
	case "notifications/cancelled":
		// The daemon stays silent about a cancelled request.
		delete(b.open, string(param(m.params, "requestId")))
	case "resources/subscribe":
		if uri := param(m.params, "uri"); m.request() && uri != nil && len(b.subscriptions) < maxSubscriptions {
			b.subscriptions[string(uri)] = bytes.Clone(m.params)
		}
	case "resources/unsubscribe":
		delete(b.subscriptions, string(param(m.params, "uri")))
	}
}

// param is one of the parameters, as written; nil when absent.
func param(params []byte, name string) []byte {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil {
		return nil
	}
	return p[name]
}

// leave makes every later request be answered with why.
func (b *bridge) leave(why error) {
	b.mu.Lock()
	if b.going == nil {
		b.going = why
		if b.conn == nil {
			close(b.ready)
		}
	}
	b.conn = nil
	b.mu.Unlock()
}

// down carries the daemon's lines to the client, and is the life of the bridge.
func (b *bridge) down(ctx context.Context, conn net.Conn) error {
	var retry backoff
	for {
		began := time.Now()
		lines := make(chan error, 1)
		go func() { lines <- b.copyDown(conn) }()
		var err error
		select {
		case err = <-lines:
		case <-b.eof:
			return b.finish(ctx, conn, lines)
		case <-ctx.Done():
			return b.finish(ctx, conn, lines)
		}
		conn.Close()
		if ctx.Err() != nil {
			return nil
		}
		var sentAway *RefusedError
		if errors.As(err, &sentAway) && sentAway.kind != doorClosing {
			return b.sentAway(ctx, err)
		}
		if b.heard || time.Since(began) > settled {
			retry = backoff{} // it was a real session
		}
		b.detach()
		b.o.Note("the station closed the connection; looking for it")
		if conn, err = b.reconnect(ctx, &retry); err != nil {
			if ctx.Err() != nil || b.ended() {
				return nil // nobody is left to come back for
			}
			return b.sentAway(ctx, err)
		}
		b.o.Note("the station is back")
	}
}

// ended reports whether stdin has ended and all of it is forwarded.
func (b *bridge) ended() bool {
	select {
	case <-b.eof:
		return true
	default:
		return false
	}
}

// finish half-closes towards the daemon and copies what is still answered.
func (b *bridge) finish(ctx context.Context, conn net.Conn, lines <-chan error) error {
	defer conn.Close()
	if context.Cause(ctx) == errClientGone {
		return nil
	}
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	limit := time.NewTimer(drain)
	defer limit.Stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	// A daemon that has answered everything closes at once. One that does not is
	// given five looks without an open request, then not waited for.
	for quiet, waiting := 0, true; waiting && quiet < 5; {
		select {
		case <-lines:
			b.failOpen("the station closed the connection without an answer; read get_station_health", true)
			return nil
		case <-limit.C:
			waiting = false
		case <-look.C:
			if quiet++; b.pending() > 0 {
				quiet = 0
			}
		}
	}
	conn.Close()
	select {
	case <-lines:
		b.failOpen(fmt.Sprintf("no answer within %v of the end of the input; read get_station_health", drain), true)
	case <-time.After(100 * time.Millisecond): // stuck in a write to the client
	}
	return nil
}

// pending counts the open requests.
func (b *bridge) pending() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.open)
}

// sentAway ends a bridge that cannot go on: open and coming requests are
// answered with the reason.
func (b *bridge) sentAway(ctx context.Context, why error) error {
	b.leave(why)
	if b.failOpen(why.Error(), true) > 0 {
		return why
	}
	select {
	case <-b.told:
	case <-b.eof:
	case <-ctx.Done():
	case <-time.After(farewell):
	}
	return why
}

// detach notes that the daemon is away and answers what was in flight.
func (b *bridge) detach() {
	b.mu.Lock()
	b.conn, b.ready, b.lost = nil, make(chan struct{}), time.Now()
	b.mu.Unlock()
	b.failOpen("the station restarted; read get_station_health", false)
}

// failOpen answers the open requests with an error and returns how many there
// were. An initialize stays open unless the bridge is ending: it is repeated.
func (b *bridge) failOpen(text string, ending bool) int {
	b.mu.Lock()
	var failed []call
	for key, c := range b.open {
		if ending || c.method != "initialize" {
			failed = append(failed, c)
			delete(b.open, key)
		}
	}
	b.mu.Unlock()
	slices.SortFunc(failed, func(x, y call) int { return bytes.Compare(x.id, y.id) })
	for _, c := range failed {
		b.sayError(c.id, codeInternal, text)
	}
	return len(failed)
}

// A backoff goes on from one lost connection to the next until one has been a
// real session, so that a daemon that falls over at every start is left in peace.
type backoff struct {
	deadline time.Time
	pause    time.Duration
}

// reconnect dials until the daemon is back, and repeats the handshake.
func (b *bridge) reconnect(ctx context.Context, r *backoff) (net.Conn, error) {
	if r.deadline.IsZero() {
		r.deadline = time.Now().Add(b.o.ComeBack)
	} else if err := b.pause(ctx, r); err != nil {
		return nil, err
	}
	for {
		conn, err := b.o.Dial(ctx)
		if err == nil {
			if err = b.repeat(conn); err == nil {
				return conn, nil
			}
			conn.Close()
		}
		if b.pause(ctx, r) != nil {
			if !errors.Is(err, ErrUnreachable) {
				err = &UnreachableError{b.o.Socket, err}
			}
			return nil, fmt.Errorf("the station went away and did not come back within %v: %w", b.o.ComeBack, err)
		}
	}
}

// errTooLate ends the search for a daemon.
var errTooLate = errors.New("the station closes every connection at once")

// pause waits before the next attempt; an error means that there is none.
func (b *bridge) pause(ctx context.Context, r *backoff) error {
	left := time.Until(r.deadline)
	if left <= 0 {
		return &UnreachableError{b.o.Socket, errTooLate}
	}
	r.pause = min(max(2*r.pause, firstRetry), lastRetry)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-b.eof:
		return io.EOF
	case <-time.After(min(r.pause, left)):
		return nil
	}
}

// repeat writes the bridge's own line, the client's handshake and its
// subscriptions to a new connection, and takes it into use.
func (b *bridge) repeat(conn net.Conn) error {
	lines := b.hello()
	b.mu.Lock()
	b.swallow, b.heard = map[string]bool{}, false
	if b.initialize != nil {
		lines = append(append(lines, b.initialize...), '\n')
		b.swallow[b.initializeID] = b.answered
	}
	ready := b.initialized != nil
	if ready {
		lines = append(append(lines, b.initialized...), '\n')
	}
	n := 0
	for _, params := range b.subscriptions {
		n++
		id := strconv.Quote("gsd-bridge-" + strconv.Itoa(n))
		b.swallow[id] = true
		lines = append(lines, encodeLine(struct {
			Version string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Params  json.RawMessage `json:"params"`
		}{"2.0", json.RawMessage(id), "resources/subscribe", params})...)
	}
	b.mu.Unlock()
	for {
		if _, err := conn.Write(lines); err != nil {
			return err
		}
		b.mu.Lock()
		if !ready && b.initialized != nil { // it came while the lines were written
			ready, lines = true, append(bytes.Clone(b.initialized), '\n')
			b.mu.Unlock()
			continue
		}
		b.conn = conn
		close(b.ready)
		b.mu.Unlock()
		break
	}
	if ready {
		// A modern client has asked for nothing outside its own requests; it
		// learns by the error of its listen request.
		b.say([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n"))
	}
	return nil
}

// copyDown copies lines until the connection ends. A last line without its
// newline is torn and is left out.
func (b *bridge) copyDown(conn net.Conn) error {
	in := bufio.NewReaderSize(conn, 64<<10)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return err
		}
		m := peek(line)
		if sentAway := m.refusal(); sentAway != nil {
			return sentAway
		}
		if b.arrived(m) {
			b.say(line)
		}
	}
}

// arrived notes a line of the daemon, and reports whether it is for the client.
func (b *bridge) arrived(m message) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.heard = true
	if !m.response() {
		return true
	}
	key := string(m.id)
	drop := b.swallow[key]
	delete(b.swallow, key)
	if drop {
		return false
	}
	delete(b.open, key)
	if b.initialize != nil && key == b.initializeID && !b.answered {
		if b.answered = m.failure == nil; !b.answered {
			b.initialize = nil // the client may try again
		}
	}
	return true
}
