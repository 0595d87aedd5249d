package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	mqtt "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/mochi-mqtt/server/v2/packets"
)

// BrokerOptions say how a Broker is reached and what it demands.
type BrokerOptions struct {
	// Listen is a TCP address such as 127.0.0.1:0; empty = no port at all,
	// only Dial.
	Listen string
	// User and Password are what clients must show; an empty User lets anyone
	// in.
	User, Password string
	// OnMessage is told of every message that the broker took; it must not
	// wait.
	OnMessage func(Message)
}

// A Message is what a broker took from a client.
type Message struct {
	Topic   string
	Payload []byte
	Retain  bool
}

// An AckRule is what the broker does with a message instead of taking it.
type AckRule int

// What can happen to a message.
const (
	Take     AckRule = iota // take it and say so
	Swallow                 // take nothing and say nothing: a stuck broker
	TakeMute                // take it and say nothing: the PUBACK is lost
	HangUp                  // close the connection instead
)

// A Broker is an MQTT broker in this process, for the demo and for tests. It
// is not mosquitto: where an ACL forbids a message mosquitto acknowledges it,
// and this one hangs up.
type Broker struct {
	o      BrokerOptions
	server *mqtt.Server
	url    string
	rule   atomic.Pointer[func(Message) AckRule]
	wg     sync.WaitGroup
	closed atomic.Bool
}

// NewBroker starts a broker. Close ends it.
func NewBroker(o BrokerOptions) (*Broker, error) {
	b := &Broker{o: o, url: "mqtt://in-process"}
	b.server = mqtt.New(&mqtt.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), InlineClient: true})
	if err := b.server.AddHook(&brokerHook{b: b}, nil); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if o.Listen != "" {
		l, err := net.Listen("tcp", o.Listen)
		if err != nil {
			return nil, fmt.Errorf("broker: %w", err)
		}
		if err := b.server.AddListener(listeners.NewNet("tcp", l)); err != nil {
			l.Close()
			return nil, fmt.Errorf("broker: %w", err)
		}
		b.url = "mqtt://" + l.Addr().String()
	}
	if err := b.server.Serve(); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	return b, nil
}

// URL is where clients find the broker.
func (b *Broker) URL() string { return b.url }

// Dial connects to the broker without a port.
func (b *Broker) Dial(context.Context) (net.Conn, error) {
	if b.closed.Load() {
		return nil, errors.New("the broker is closed")
	}
	ours, theirs := net.Pipe()
	b.wg.Go(func() {
		b.server.EstablishConnection("in-process", theirs) // its error is the client's end of the pipe
		theirs.Close()
	})
	return ours, nil
}

// Rule sets what happens to each message from now on; nil = Take.
func (b *Broker) Rule(f func(Message) AckRule) {
	if f == nil {
		b.rule.Store(nil)
		return
	}
	b.rule.Store(&f)
}

// DropClients closes every connection, as a network does.
func (b *Broker) DropClients() {
	for _, c := range b.server.Clients.GetAll() {
		if !c.Net.Inline {
			c.Stop(errors.New("dropped"))
		}
	}
}

// Publish sends a message of the broker's own, as a hub would.
func (b *Broker) Publish(topic string, payload []byte, retain bool) error {
	return b.server.Publish(topic, payload, retain, 1)
}

// Close ends the broker and all connections.
func (b *Broker) Close() error {
	if b.closed.Swap(true) {
		return nil
	}
	b.DropClients()
	done := make(chan struct{})
	go func() { b.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second): // a client that neither reads nor hangs up
	}
	return b.server.Close()
}

type brokerHook struct {
	mqtt.HookBase
	b *Broker
}

// ID names the hook to the broker.
func (h *brokerHook) ID() string { return "gsd-sim" }

// Provides lists what the hook wants to hear of.
func (h *brokerHook) Provides(what byte) bool {
	switch what {
	case mqtt.OnConnectAuthenticate, mqtt.OnACLCheck, mqtt.OnPublish, mqtt.OnWillSent:
		return true
	}
	return false
}

// OnConnectAuthenticate checks name and password.
func (h *brokerHook) OnConnectAuthenticate(_ *mqtt.Client, pk packets.Packet) bool {
	return h.b.o.User == "" || string(pk.Connect.Username) == h.b.o.User && string(pk.Connect.Password) == h.b.o.Password
}

// OnACLCheck allows every topic.
func (h *brokerHook) OnACLCheck(*mqtt.Client, string, bool) bool { return true }

// OnWillSent passes on a will, which no rule applies to.
func (h *brokerHook) OnWillSent(_ *mqtt.Client, pk packets.Packet) {
	if h.b.o.OnMessage != nil {
		h.b.o.OnMessage(Message{pk.TopicName, append([]byte(nil), pk.Payload...), pk.FixedHeader.Retain})
	}
}

// OnPublish applies the rule.
func (h *brokerHook) OnPublish(cl *mqtt.Client, pk packets.Packet) (packets.Packet, error) {
	if cl.Net.Inline {
		return pk, nil
	}
	m := Message{Topic: pk.TopicName, Payload: append([]byte(nil), pk.Payload...), Retain: pk.FixedHeader.Retain}
	rule := Take
	if f := h.b.rule.Load(); f != nil {
		rule = (*f)(m)
	}
	switch rule {
	case Swallow:
		return pk, packets.ErrRejectPacket
	case HangUp:
		cl.Stop(errors.New("refused"))
		return pk, packets.ErrRejectPacket
	}
	if h.b.o.OnMessage != nil {
		h.b.o.OnMessage(m)
	}
	if rule == TakeMute {
		return pk, packets.ErrRejectPacket
	}
	return pk, nil
}
