package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/state"
)

// A session is one connection with one client of the library. Its publish
// token means PUBACK only because the client never reconnects by itself.
type session struct {
	p       *Publisher
	c       mqtt.Client
	n       uint64
	lost    chan error
	confirm chan []byte
	drain   <-chan time.Time // after it, what is not delivered stays for the next start
	ending  bool

	window  int
	extra   []inflight // resends: acknowledged, they move no cursor
	states  map[string]*stateTopic
	wake    [2]<-chan struct{}
	changed <-chan struct{}
}

type inflight struct {
	rec  state.Record
	tok  mqtt.Token
	sent time.Time
}

// A stateTopic is what the broker has of a thing's retained topic.
type stateTopic struct {
	version uint64
	at      time.Time
	tok     mqtt.Token
}

// tick bounds how late a state topic, a resend or a timeout is noticed.
const tick = 200 * time.Millisecond

// runSession connects, delivers until something ends it, and says what.
func (p *Publisher) runSession() error {
	p.connecting()
	s := &session{p: p, n: p.nextSession(), lost: make(chan error, 1), confirm: make(chan []byte, 16), window: p.c.Window,
		states: map[string]*stateTopic{}, wake: [2]<-chan struct{}{p.crit.j.Wake(), p.info.j.Wake()}}
	for _, l := range p.lanes() {
		l.sent, l.q = l.j.Cursor(), nil
		if l.fails >= suspectAfter {
			s.window = 1 // find the culprit
		}
	}
	if err := s.connect(); err != nil {
		return err
	}
	// Disconnect can hang, and its wait is no promise: do not wait for it.
	defer func() { go s.c.Disconnect(200) }()
	changed, end := p.bus.WatchStates()
	defer end()
	s.changed = changed
	if err := s.say(p.topic("availability"), true, s.availability("online", "")); err != nil {
		return fmt.Errorf("announce: %w", err)
	}
	p.connected(s.n)
	if p.c.Confirmation {
		s.subscribe()
	}
	err := s.deliver()
	if err == nil { // shutting down in good order
		return s.say(p.topic("availability"), true, s.availability("offline", "shutdown"))
	}
	for _, l := range p.lanes() {
		l.blame()
	}
	return err
}

// blame remembers which record was at the head when the session died.
func (l *lane) blame() {
	if len(l.q) == 0 {
		return
	}
	if head := l.q[0].rec.Seq; head != l.suspect {
		l.suspect, l.fails, l.accused = head, 0, false
	}
	l.fails++
}

func (p *Publisher) topic(end string) string { return "gsd/v1/" + p.c.Station + "/" + end }

// availability is the payload of the availability topic and of the will. The
// session number lets the hub ignore the late will of an old connection.
func (s *session) availability(word, reason string) []byte {
	b, _ := json.Marshal(struct {
		State     string `json:"state"`
		Session   uint64 `json:"session"`
		Reason    string `json:"reason,omitempty"`
		Simulated bool   `json:"simulated"`
	}{word, s.n, reason, s.p.bus.Simulated()}) // strings and numbers: cannot fail
	return b
}

func (s *session) connect() error {
	c := &s.p.c
	password, err := c.password()
	if err != nil {
		return configError{err}
	}
	broker := c.Broker
	if c.Dial != nil {
		broker = "mqtt://in-process"
	}
	o := mqtt.NewClientOptions().AddBroker(broker).SetClientID("gsd-"+c.Station).
		SetUsername(c.Username).SetPassword(password).
		SetProtocolVersion(4).SetCleanSession(true).SetAutoReconnect(false).SetConnectRetry(false).
		SetOrderMatters(false).SetKeepAlive(c.KeepAlive).SetPingTimeout(c.PingTimeout).
		SetConnectTimeout(c.ConnectTimeout).SetWriteTimeout(c.WriteTimeout).
		SetBinaryWill(s.p.topic("availability"), s.availability("offline", ""), 1, true).
		SetDefaultPublishHandler(func(mqtt.Client, mqtt.Message) {}).
		SetConnectionLostHandler(func(_ mqtt.Client, err error) {
			select {
			case s.lost <- err:
			default:
			}
		})
	if c.Dial != nil {
		o.SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), c.ConnectTimeout)
			defer cancel()
			return c.Dial(ctx)
		})
	} else if c.secure() {
		t, err := c.tlsConfig()
		if err != nil {
			return configError{err}
		}
		o.SetTLSConfig(t)
	}
	s.c = mqtt.NewClient(o)
	tok := s.c.Connect()
	t := time.NewTimer(c.ConnectTimeout + c.WriteTimeout)
	defer t.Stop()
	select {
	case <-tok.Done():
		if err := tok.Error(); err != nil {
			if isTimeout(err) {
				err = fmt.Errorf("%w: %w", errConnackTimeout, err)
			}
			return fmt.Errorf("connect: %w", err)
		}
		return nil
	case <-t.C:
		go s.c.Disconnect(0)
		return errConnackTimeout
	case <-s.p.stopping:
		go s.c.Disconnect(0)
		return context.Canceled
	}
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// publish hands a message to the client. The call can block for the whole
// write timeout when the link dies at the wrong moment, so it is not waited
// for beyond that.
func (s *session) publish(topic string, retain bool, payload []byte) (mqtt.Token, error) {
	c := make(chan mqtt.Token, 1)
	go func() { c <- s.c.Publish(topic, 1, retain, payload) }()
	select {
	case tok := <-c:
		return tok, nil
	case err := <-s.lost:
		return nil, fmt.Errorf("connection lost: %w", err)
	case <-s.p.hard:
		return nil, context.DeadlineExceeded
	}
}

// say publishes one message and waits for its PUBACK.
func (s *session) say(topic string, retain bool, payload []byte) error {
	tok, err := s.publish(topic, retain, payload)
	if err != nil {
		return err
	}
	t := time.NewTimer(s.p.c.AckTimeout)
	defer t.Stop()
	select {
	case <-tok.Done():
		return s.reason(tok.Error())
	case err := <-s.lost:
		return fmt.Errorf("connection lost: %w", err)
	case <-t.C:
		return errAckTimeout
	case <-s.p.hard:
		return context.DeadlineExceeded
	}
}

// reason prefers what the connection said to a token's general words.
func (s *session) reason(err error) error {
	if err == nil {
		return nil
	}
	t := time.NewTimer(300 * time.Millisecond)
	defer t.Stop()
	select {
	case lost := <-s.lost:
		return fmt.Errorf("connection lost: %w", lost)
	case <-t.C:
		return err
	}
}

// deliver is the loop of a session; nil means that the station shuts down.
func (s *session) deliver() error {
	if err := s.probe(); err != nil {
		return err
	}
	t := time.NewTicker(tick)
	defer t.Stop()
	stopping := s.p.stopping
	for {
		if err := s.fill(); err != nil {
			return err
		}
		if err := s.publishStates(); err != nil {
			return err
		}
		if s.ending && s.idle() {
			return nil
		}
		select {
		case <-s.head(s.p.crit):
			if err := s.acked(s.p.crit); err != nil {
				return err
			}
		case <-s.head(s.p.info):
			if err := s.acked(s.p.info); err != nil {
				return err
			}
		case err := <-s.lost:
			return fmt.Errorf("connection lost: %w", err)
		case b := <-s.confirm:
			s.p.confirmation(b)
		case <-s.wake[0]:
		case <-s.wake[1]:
		case <-s.changed:
		case <-t.C:
			if err := s.overdue(); err != nil {
				return err
			}
		case <-stopping:
			stopping, s.ending = nil, true
			s.drain = time.After(s.p.c.ShutdownWait)
		case <-s.drain:
			return nil
		}
	}
}

// head is done when the oldest record of a lane is acknowledged; nil blocks.
func (s *session) head(l *lane) <-chan struct{} {
	if len(l.q) == 0 {
		return nil
	}
	return l.q[0].tok.Done()
}

func (s *session) idle() bool {
	for _, l := range s.p.lanes() {
		if len(l.q) > 0 || l.sent < l.j.Last() {
			return false
		}
	}
	return true
}

// fill sends records until the window is full; crit goes first.
func (s *session) fill() error {
	for _, l := range s.p.lanes() {
		room := s.window - len(s.p.crit.q) - len(s.p.info.q) - len(s.extra)
		if room <= 0 {
			return nil
		}
		recs, err := l.j.Read(l.sent, room)
		if err != nil {
			return outboxError{err}
		}
		for _, r := range recs {
			tok, err := s.publish(s.p.eventTopic(r), false, r.Data)
			if err != nil {
				if len(l.q) == 0 {
					l.q = append(l.q, inflight{rec: r}) // the suspect
				}
				return err
			}
			l.q = append(l.q, inflight{r, tok, time.Now()})
			l.sent = r.Seq
		}
	}
	return s.fillResends()
}

// eventTopic is where a record belongs.
func (p *Publisher) eventTopic(r state.Record) string {
	var e struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(r.Data, &e) != nil || !strings.HasPrefix(e.Type, "gsd.") {
		return p.topic("events/unknown/record")
	}
	return p.topic("events/" + event.Event{Type: e.Type}.Topic())
}

// acked takes the head off a lane and moves its cursor.
func (s *session) acked(l *lane) error {
	head := l.q[0]
	if err := head.tok.Error(); err != nil {
		return fmt.Errorf("publish record %d of %s: %w", head.rec.Seq, l.name, s.reason(err))
	}
	if err := l.j.Ack(head.rec.Seq); err != nil {
		return outboxError{err}
	}
	l.q = l.q[1:]
	if l.fails > 0 {
		l.suspect, l.fails, l.accused = 0, 0, false
		s.window = s.p.c.Window
		for _, other := range s.p.lanes() {
			if other.fails >= suspectAfter {
				s.window = 1
			}
		}
	}
	s.p.poisoned = 0
	s.p.gotPuback()
	return nil
}

// overdue ends a session whose broker has gone silent.
func (s *session) overdue() error {
	for _, l := range s.p.lanes() {
		if len(l.q) > 0 && time.Since(l.q[0].sent) > s.p.c.AckTimeout {
			return fmt.Errorf("record %d of %s: %w", l.q[0].rec.Seq, l.name, errAckTimeout)
		}
	}
	return nil
}

// publishStates sends what changed of the retained topics, each at most once
// in StateEvery.
func (s *session) publishStates() error {
	if s.ending || s.window == 1 {
		return nil // while a culprit is sought, nothing else may end the session
	}
	for thing, st := range s.p.bus.States() {
		have := s.states[thing]
		if have == nil {
			have = &stateTopic{}
			s.states[thing] = have
		}
		if have.version == st.Version || have.tok != nil && time.Since(have.at) < s.p.c.StateEvery {
			continue
		}
		if have.tok != nil && !isDone(have.tok) {
			continue
		}
		tok, err := s.publish(s.p.topic("state/"+thing), true, st.JSON)
		if err != nil {
			return err
		}
		*have = stateTopic{st.Version, time.Now(), tok}
	}
	return nil
}

func isDone(t mqtt.Token) bool {
	select {
	case <-t.Done():
		return true
	default:
		return false
	}
}

// fillResends sends again what was asked for, after everything new.
func (s *session) fillResends() error {
	for i := 0; i < len(s.extra); {
		e := s.extra[i]
		if !isDone(e.tok) {
			i++
			continue
		}
		if err := e.tok.Error(); err != nil {
			return fmt.Errorf("resend record %d: %w", e.rec.Seq, s.reason(err))
		}
		s.extra = append(s.extra[:i], s.extra[i+1:]...)
	}
	for len(s.extra) < s.window/2 && !s.ending {
		s.p.mu.Lock()
		if len(s.p.resends) == 0 {
			s.p.mu.Unlock()
			return nil
		}
		r := &s.p.resends[0]
		l, from, to := r.l, r.from, r.to
		s.p.mu.Unlock()
		recs, err := l.j.Read(from-1, 1)
		if err != nil {
			return outboxError{err}
		}
		done := len(recs) == 0 || recs[0].Seq > to
		s.p.mu.Lock()
		if !done {
			r.from = recs[0].Seq + 1
		}
		if done || recs[0].Seq == to {
			s.p.resends = s.p.resends[1:]
		}
		s.p.mu.Unlock()
		if done {
			continue
		}
		tok, err := s.publish(s.p.eventTopic(recs[0]), false, recs[0].Data)
		if err != nil {
			return err
		}
		s.extra = append(s.extra, inflight{recs[0], tok, time.Now()})
	}
	return nil
}
