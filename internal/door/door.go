// Package door is the one way into the station: a Unix socket that speaks MCP.
// It asks the kernel who is there, gives the role that the configuration grants
// and never more, bounds how many come and how fast, keeps the private gsd/
// methods for people on the station itself, and holds both ends that use the
// socket: the stdio bridge and the client of the commands. It moves nothing and
// trusts nothing that a peer says of itself.
package door

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

const (
	// agentPlaces of the MaxSessions are open to agents: copilots that run away
	// must leave room for a person who comes to stop them.
	agentPlaces = 12
	// strangerPlaces are for callers without a role: enough to be told why.
	strangerPlaces = 2
	// firstLine is how long a connection may take to say anything.
	firstLine = time.Minute
	// maxHello bounds the bridge's first line, which is about 120 bytes.
	maxHello = 4096
	// stuckWrite ends a session whose client reads nothing for so long.
	stuckWrite = 10 * time.Second
	// endGrace is what a session gets at the end of the daemon: the 2 s in which
	// open calls may finish, and a margin. The whole daemon has 10 s.
	endGrace = 3 * time.Second
)

// A Server serves MCP to one session until its stream ends; *mcp.Server is one.
type Server interface {
	Serve(ctx context.Context, r io.Reader, w io.Writer, o mcp.SessionOptions) error
}

// A Session is one connection through the door. Once opened, only the name of
// its client changes.
type Session struct {
	ID       string
	Peer     Peer
	Caller   station.Caller // Role as held, or less if the bridge gave some up
	MayStop  bool
	ReadOnly bool            // the station only watches, or the session asked to
	Bridged  bool            // through the stdio bridge: no private methods
	Build    string          // of the bridge, "" when it did not say
	Denied   *safety.Refusal // not nil: no role, and what to tell on every call
	Opened   time.Time
	Budget   *Budget // requests per second
	// Private holds the private methods of this session: nil when bridged or denied.
	Private *Privates

	granted station.Caller // before the session gave anything up
	conn    *net.UnixConn
	client  atomic.Pointer[string]
}

// A NoticeKind says what happened at the door.
type NoticeKind string

// What the door reports.
const (
	SessionOpened  NoticeKind = "opened"
	SessionClosed  NoticeKind = "closed"
	SessionRefused NoticeKind = "refused" // no place, or a first line that makes no sense
	BuildSkew      NoticeKind = "skew"    // bridge and daemon are of different builds
	SessionSilent  NoticeKind = "silent"  // its client answers no ping: it can hold no lease
	SessionHeard   NoticeKind = "heard"   // it answers again
	AcceptFailed   NoticeKind = "accept"
)

// A Notice is something that happened at the door, for the log and the events.
type Notice struct {
	Kind    NoticeKind
	Session *Session // nil for AcceptFailed
	Text    string
	Err     error // nil when nothing went wrong
}

// Options of a Door.
type Options struct {
	Policy   *Policy
	Server   Server
	Privates *Privates    // nil: no private methods
	Build    string       // build id of the daemon
	Rate     float64      // requests a second of one session; 0: RequestsPerSecond
	Observe  func(Notice) // nil: nobody listens; called from many goroutines
	// Caller is what the server's handlers get as mcp's Caller; nil: s.Caller.
	Caller func(s *Session) any
	// Denied answers the call of a tool that a caller with a role does not see;
	// nil: as if there were no such tool.
	Denied func(s *Session, tool string) *mcp.Result
}

// A Door lets callers in. Create it with New.
type Door struct {
	o      Options
	policy atomic.Pointer[Policy]

	mu       sync.Mutex
	closing  bool
	sessions map[string]*Session
}

// New returns a door that is still closed: Serve opens it.
func New(o Options) *Door {
	if o.Rate <= 0 {
		o.Rate = RequestsPerSecond
	}
	if o.Observe == nil {
		o.Observe = func(Notice) {}
	}
	d := &Door{o: o, sessions: map[string]*Session{}}
	d.policy.Store(o.Policy)
	return d
}

// Serve accepts connections until ctx ends, or the listener breaks. It then
// closes the listener, lets open calls finish (endGrace) and waits for every
// session.
func (d *Door) Serve(ctx context.Context, l *net.UnixListener) error {
	sessions, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { l.Close() })
	defer stop()
	var wg sync.WaitGroup
	var broken error
	for pause := time.Duration(0); ; {
		c, err := l.AcceptUnix()
		if err == nil {
			pause = 0
			wg.Go(func() { d.serve(sessions, c) })
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if errors.Is(err, net.ErrClosed) {
			broken = fmt.Errorf("door: accept: %w", err)
			break
		}
		// Out of descriptors, most likely: those who are inside go on, and one
		// of them may leave.
		pause = min(max(2*pause, 50*time.Millisecond), time.Second)
		d.o.Observe(Notice{Kind: AcceptFailed, Text: "no new caller can come in", Err: err})
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	l.Close()
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	for _, s := range d.Sessions() {
		s.conn.CloseRead() // what was asked is still answered
	}
	late := time.AfterFunc(endGrace, func() {
		cancel()
		for _, s := range d.Sessions() {
			s.conn.Close()
		}
	})
	wg.Wait()
	late.Stop()
	return broken
}

// Sessions lists who is inside.
func (d *Door) Sessions() []*Session {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*Session, 0, len(d.sessions))
	for _, s := range d.sessions {
		list = append(list, s)
	}
	return list
}

// SetPolicy takes new rights into use. Sessions whose rights change are ended:
// a bridge comes back by itself, with the new rights, and tells its client that
// the list of tools has changed.
func (d *Door) SetPolicy(p *Policy) {
	d.policy.Store(p)
	for _, s := range d.Sessions() {
		now := p.Caller(s.Peer)
		if now.Agent != s.granted.Agent || now.Role != s.granted.Role || p.MayStop(s.Peer) != s.MayStop || p.ReadOnly() && !s.ReadOnly {
			s.conn.Close()
		}
	}
}

// serve is the life of one connection.
func (d *Door) serve(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	peer, err := PeerOf(c) // first of all: who is it
	if err != nil {
		d.o.Observe(Notice{Kind: AcceptFailed, Text: "a caller whom the kernel does not name was sent away", Err: err})
		return
	}
	policy := d.policy.Load()
	s := &Session{
		ID: newID(), Peer: peer, granted: policy.Caller(peer), MayStop: policy.MayStop(peer), ReadOnly: policy.ReadOnly(),
		Opened: time.Now(), Budget: NewBudget(d.o.Rate, requestBurst), conn: c,
	}
	s.Caller = s.granted
	s.Caller.Session = s.ID
	if s.Caller.Role == station.NoRole {
		s.Denied = policy.Denial(peer)
	}
	if kind, why := d.enter(s); kind != "" {
		d.refuse(c, s, kind, why)
		return
	}
	defer d.leave(s)

	in := bufio.NewReaderSize(c, maxHello)
	c.SetReadDeadline(time.Now().Add(firstLine))
	hello, err := takeHello(in)
	if err == nil {
		err = s.heed(hello)
	}
	if err != nil {
		d.refuse(c, s, doorHello, err.Error())
		return
	}
	c.SetReadDeadline(time.Time{})
	if s.Build != "" && s.Build != d.o.Build {
		d.o.Observe(Notice{Kind: BuildSkew, Session: s, Text: fmt.Sprintf("the bridge of %s is build %s, the daemon is build %s: restart the one that is older",
			peer, s.Build, d.o.Build)})
	}
	if !s.Bridged && s.Denied == nil {
		s.Private = d.o.Privates
	}
	d.o.Observe(Notice{Kind: SessionOpened, Session: s, Text: fmt.Sprintf("session %s opened by %s as %s", s.ID, peer, s.Caller.Role)})
	o, end := d.options(s)
	err = d.o.Server.Serve(ctx, &pacedReader{ctx, in, NewBudget(linesPerSecond, lineBurst)}, &link{c}, o)
	end()
	d.o.Observe(Notice{Kind: SessionClosed, Session: s, Text: fmt.Sprintf("session %s of %s closed after %v", s.ID, peer,
		time.Since(s.Opened).Round(time.Second)), Err: err})
}

// enter gives a session a place, or says why there is none.
func (d *Door) enter(s *Session) (kind, why string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	agents, strangers := 0, 0
	for _, other := range d.sessions {
		switch {
		case other.granted.Role == station.NoRole:
			strangers++
		case other.granted.Agent:
			agents++
		}
	}
	switch {
	case d.closing:
		return doorClosing, "the station is going down; try again in a few seconds"
	case len(d.sessions) >= MaxSessions:
		return doorFull, fmt.Sprintf("all %d sessions of this station are in use; end one that is no longer needed and try again", MaxSessions)
	case s.granted.Role == station.NoRole && strangers >= strangerPlaces:
		return doorFull, s.Denied.Sentence()
	case (s.granted.Role == station.NoRole || s.granted.Agent) && agents+strangers >= agentPlaces:
		return doorFull, fmt.Sprintf("all %d sessions that agents may hold are in use (the other %d of %d are for people); end one that is no longer needed and try again",
			agentPlaces, MaxSessions-agentPlaces, MaxSessions)
	}
	d.sessions[s.ID] = s
	return "", ""
}

func (d *Door) leave(s *Session) {
	d.mu.Lock()
	delete(d.sessions, s.ID)
	d.mu.Unlock()
}

// refuse tells a caller why it cannot come in. The kind in data lets the bridge
// and the client know that the line is from the door.
func (d *Door) refuse(c *net.UnixConn, s *Session, kind, why string) {
	c.SetWriteDeadline(time.Now().Add(time.Second)) // an empty socket buffer takes the line at once
	c.Write(errorLine(nil, wireError{codeInternal, why, map[string]string{"door": kind}}))
	d.o.Observe(Notice{Kind: SessionRefused, Session: s, Text: fmt.Sprintf("%s was not let in: %s", s.Peer, why)})
}

// bridgeMethod is the notification that a bridge sends before anything else.
const bridgeMethod = privatePrefix + "bridge"

// A bridgeHello is what the bridge says of itself. It can only take rights
// away, so it need not be true.
type bridgeHello struct {
	Build    string `json:"build"`
	Role     string `json:"role,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
}

// takeHello reads the bridge's line off the stream. Any other first line stays
// in the stream, and nil is returned.
func takeHello(in *bufio.Reader) (json.RawMessage, error) {
	for {
		seen, _ := in.Peek(in.Buffered())
		if end := bytes.IndexByte(seen, '\n'); end >= 0 {
			m := peek(seen[:end])
			if m.method != bridgeMethod || m.id != nil {
				return nil, nil
			}
			params := append(json.RawMessage{}, m.params...) // not nil, whatever it holds
			in.Discard(end + 1)
			return params, nil
		}
		if len(seen) == in.Size() {
			return nil, nil // longer than any bridge's line
		}
		if _, err := in.Peek(len(seen) + 1); err != nil {
			if errors.Is(err, io.EOF) {
				return nil, nil // what there is, the server reads
			}
			return nil, fmt.Errorf("no message came within %v: send a JSON-RPC line, or close the connection", firstLine)
		}
	}
}

// heed applies a bridge's line to the session.
func (s *Session) heed(hello json.RawMessage) error {
	if hello == nil {
		return nil
	}
	var h bridgeHello
	d := json.NewDecoder(bytes.NewReader(hello))
	d.DisallowUnknownFields() // it may ask to give up something that we do not know of
	err := d.Decode(&h)
	if err == nil && d.More() {
		err = errors.New("there is more behind it")
	}
	if err != nil {
		return fmt.Errorf("the bridge's first line is not understood (%w): bridge and daemon are of different builds; restart the one that is older", err)
	}
	s.Bridged = true
	s.Build = unit.Printable(h.Build, 80)
	s.ReadOnly = s.ReadOnly || h.ReadOnly
	most, err := limitRole(h.Role)
	if err != nil {
		return err
	}
	if h.ReadOnly {
		most = min(most, station.Observer)
	}
	s.Caller.Role = min(s.Caller.Role, most)
	return nil
}

// limitRole is the strongest role that a session wants to have, "" for all it
// can get.
func limitRole(name string) (station.Role, error) {
	if name == "" {
		return station.Supervisor, nil
	}
	role, err := station.ParseRole(name)
	if err == nil && role == station.NoRole {
		err = fmt.Errorf("role %q: want observer, operator or supervisor", name)
	}
	if err != nil {
		return station.NoRole, fmt.Errorf("limit the session to a role: %w", err)
	}
	return role, nil
}

// A link writes to a client, and gives up on one that reads nothing.
type link struct{ *net.UnixConn }

func (l *link) Write(p []byte) (int, error) {
	if err := l.SetWriteDeadline(time.Now().Add(stuckWrite)); err != nil {
		return 0, err
	}
	return l.UnixConn.Write(p)
}

// newID names a session: unique enough for years of audit lines.
func newID() string {
	var b [6]byte
	rand.Read(b[:])
	return "s" + hex.EncodeToString(b[:])
}
