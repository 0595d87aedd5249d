// Package rotctl serves Hamlib's rotctld protocol, so that gpredict, SatDump,
// Look4Sat and satnogs-client point the antenna through the station's gate. It
// turns lines into commands of the station and results into reports; it must
// never touch a device, judge safety or clamp a value.
package rotctl

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
)

// Bounds of a session, real time.
const (
	maxSessions  = 16
	maxMistakes  = 10                    // lines in a row that make no sense: this client speaks something else
	maxWaiting   = 64                    // lines read ahead, to see a stop behind a slow move
	idleTimeout  = 15 * time.Minute      // tracking programs ask every second
	writeTimeout = 5 * time.Second       // for a client that does not read
	moveInterval = 50 * time.Millisecond // between two moves of a session
)

// A Station is what the server needs of *station.Station.
type Station interface {
	Do(ctx context.Context, c station.Command) station.Result
	Stop(ctx context.Context, c station.Caller, reason string) station.StopAnswer
	Halt(ctx context.Context, c station.Caller) (ours bool, err error)
	SessionEnded(session string)
	SessionLeft(session string)
	Antenna() station.AntennaView
	Rules() *safety.Rules
}

// A Who tells what the one at the other end of a connection may do now: rights
// can be taken away while it lasts.
type Who func() Peer

// A Peer is who is at the other end of a connection.
type Peer struct {
	Caller  station.Caller
	MayStop bool
}

// Options are what a server is made of. Station and Identify are needed.
type Options struct {
	Station     Station
	Info        string                           // answers get_info: one printable line
	AzimuthOnly bool                             // the rotator has no elevation axis
	Identify    func(net.Conn) (Who, error)      // asked once for each connection
	Log         func(msg string, keyvals ...any) // of connections refused and closed; nil: silence
}

// A Server answers rotctld's clients.
type Server struct {
	o Options

	mu       sync.Mutex
	sessions int
}

// New makes a server. It listens to nothing.
func New(o Options) *Server {
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	return &Server{o: o}
}

// Serve answers the connections of l until ctx ends. Then it closes l and the
// connections, whose motion stops, and returns nil; an error is the
// listener's.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			l.Close()
			if ctx.Err() != nil {
				return nil
			}
			return fmt.Errorf("accept a rotctl client: %w", err)
		}
		if !s.enter() {
			s.o.Log("rotctl: a connection was refused", "sessions", maxSessions)
			c.Close()
			continue
		}
		wg.Go(func() {
			defer s.leave()
			s.serve(ctx, c)
		})
	}
}

func (s *Server) enter() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions >= maxSessions {
		return false
	}
	s.sessions++
	return true
}

func (s *Server) leave() {
	s.mu.Lock()
	s.sessions--
	s.mu.Unlock()
}

func (s *Server) serve(ctx context.Context, c net.Conn) {
	defer c.Close()
	who, err := s.o.Identify(c)
	if err != nil {
		s.o.Log("rotctl: who connected is not known", "error", err)
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var id [6]byte
	rand.Read(id[:])
	ss := &session{s: s, conn: c, id: "rotctl-" + hex.EncodeToString(id[:]), who: who, lines: make(chan line, maxWaiting)}
	read := make(chan struct{})
	go func() { defer close(read); ss.read() }()
	polite := ss.work(ctx)
	c.Close() // the reader, if it still reads, ends by it
	for range ss.lines {
	}
	<-read
	if polite {
		s.o.Station.SessionLeft(ss.id)
		return
	}
	s.o.Station.SessionEnded(ss.id)
}

// A session is one connection. One goroutine reads, so that a stop and the end
// of the connection are seen while a move is being worked; one works and
// answers, in order.
type session struct {
	s     *Server
	conn  net.Conn
	id    string
	who   Who
	lines chan line

	mu     sync.Mutex
	epoch  int                // a stop and the end of the connection begin a new one: older moves are void
	cancel context.CancelFunc // of the move that is being worked

	// The worker's only.
	mistakes int
	signed   bool // the client counts azimuth from -180 to 180
	movedAt  time.Time
}

// A line is a request and the epoch in which it was read.
type line struct {
	request
	epoch int
	last  bool // the connection is closed after the answer
}

// read hands lines to the worker until the connection or the conversation ends.
func (ss *session) read() {
	defer close(ss.lines)
	r := bufio.NewReaderSize(ss.conn, maxLine)
	for {
		ss.conn.SetReadDeadline(time.Now().Add(idleTimeout))
		raw, err := r.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // its rest must not be taken for commands
			ss.lines <- line{request: request{verb: wrong, code: invalid}, last: true}
			return
		case err != nil: // what has no end was never said
			ss.void()
			return
		}
		l := line{request: parse(raw[:len(raw)-1])}
		switch l.verb {
		case nothing:
			continue
		case foreign:
			ss.s.o.Log("rotctl: a client that does not speak this protocol was sent away", "by", ss.peer().Caller.User)
			ss.void()
			ss.conn.Close()
			return
		case stop:
			if ss.void() && ss.peer().MayStop { // at once; the worker stops again and answers
				ss.halt()
			}
		case quit:
			l.last = true
		}
		l.epoch = ss.now()
		ss.lines <- l
		if l.last {
			return
		}
	}
}

func (ss *session) peer() Peer {
	p := ss.who()
	p.Caller.Session, p.Caller.Client = ss.id, "rotctl"
	return p
}

func (ss *session) now() int {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.epoch
}

// void makes the moves read so far void, and says whether one is being worked.
func (ss *session) void() (working bool) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.epoch++
	if ss.cancel != nil {
		ss.cancel()
	}
	return ss.cancel != nil
}

// work answers until the conversation ends, and says whether the client took
// its leave.
func (ss *session) work(ctx context.Context) (polite bool) {
	for l := range ss.lines {
		if l.verb == quit {
			return true
		}
		a := ss.answer(ctx, l)
		ss.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := ss.conn.Write([]byte(a.text(l.request))); err != nil {
			return false
		}
		if l.verb == wrong {
			ss.mistakes++
		} else {
			ss.mistakes = 0
		}
		if l.last || ss.mistakes >= maxMistakes {
			return false
		}
	}
	return false
}

func (ss *session) answer(ctx context.Context, l line) answer {
	peer := ss.peer()
	if peer.Caller.Role < station.Observer {
		return answer{code: accessDenied}
	}
	st := ss.s.o.Station
	switch l.verb {
	case setPos, park:
		return answer{code: ss.move(ctx, l, peer.Caller)}
	case stop:
		return answer{code: ss.stop(ctx, peer)}
	case getPos:
		return position(st.Antenna(), ss.signed)
	case getStatus:
		return status(st.Antenna())
	case getInfo:
		return answer{silent: true, fields: []field{{label: "Info: ", value: ss.s.o.Info}}}
	case dumpState:
		return state(st.Rules(), ss.s.o.AzimuthOnly)
	case dumpCaps:
		return caps(ss.s.o.Info, st.Rules(), ss.s.o.AzimuthOnly)
	}
	return answer{code: l.code}
}

// move asks the station for a move, unless a stop has come meanwhile.
func (ss *session) move(ctx context.Context, l line, caller station.Caller) int {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ss.mu.Lock()
	void := l.epoch != ss.epoch
	if !void {
		ss.cancel = cancel
	}
	ss.mu.Unlock()
	if void {
		return rejected
	}
	defer func() {
		ss.mu.Lock()
		ss.cancel = nil
		ss.mu.Unlock()
	}()
	wait := time.NewTimer(time.Until(ss.movedAt.Add(moveInterval)))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
		return rejected
	}
	ss.movedAt = time.Now()
	c := station.Command{Caller: caller, Verb: station.VerbPark}
	if l.verb == setPos {
		at := l.at
		c.Verb, c.Target, c.Args, c.Stream = station.VerbPoint, &at, at, true
		ss.signed = at.AzDeg < 0 || ss.signed && at.AzDeg <= 180
	}
	r := ss.s.o.Station.Do(ctx, c)
	if ss.now() != l.epoch { // a stop came while it was being worked
		return rejected
	}
	return codeOf(r)
}

// stop halts what this session moves. What somebody else moves is stopped as
// anybody may stop the station: it holds until an operator resumes.
func (ss *session) stop(ctx context.Context, peer Peer) int {
	if !peer.MayStop {
		return accessDenied
	}
	ours, err := ss.s.o.Station.Halt(ctx, peer.Caller)
	switch {
	case err != nil:
		return ioError
	case ours:
		return ok
	}
	if !ss.s.o.Station.Stop(ctx, peer.Caller, "a rotctl client sent stop while somebody else moved the antenna").Sent {
		return ioError
	}
	return ok
}

// halt is the stop that does not wait for its turn: it follows a move that is
// being worked.
func (ss *session) halt() {
	ss.s.o.Station.Halt(context.Background(), ss.peer().Caller) // the worker's stop tells how it went
}
