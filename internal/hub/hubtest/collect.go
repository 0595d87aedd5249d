package hubtest

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"

	"gsd-mcp/internal/event"
)

// A Message is what a Collector got.
type Message struct {
	Topic    string
	Payload  []byte
	Retained bool // it was on the broker before the subscription
	Event    event.Event
	At       time.Time
}

// A Collector is a hub's consumer: fixed client id, persistent session, QoS 1.
// It comes back by itself when the broker does.
type Collector struct {
	mu   sync.Mutex
	msgs []Message
	more chan struct{}

	id, topic string
	options   func() *mqtt.ClientOptions
	done      chan struct{}
	wg        sync.WaitGroup
}

// Collect subscribes to topic of the broker at url and keeps what comes until
// the test ends. It returns once the broker has granted the subscription.
func Collect(t testing.TB, url, topic string) *Collector {
	t.Helper()
	return collect(t, topic, func() *mqtt.ClientOptions { return mqtt.NewClientOptions().AddBroker(url) })
}

// Collect is the package's Collect as the hub's user of this broker.
func (b *Broker) Collect(t testing.TB, topic string) *Collector {
	t.Helper()
	return collect(t, topic, b.options)
}

func (b *Broker) options() *mqtt.ClientOptions {
	o := mqtt.NewClientOptions().AddBroker(b.URL)
	if b.o.Secure {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(b.CAFile)
		if err != nil || !pool.AppendCertsFromPEM(pem) {
			b.t.Errorf("CA of the test broker: %v", err)
		}
		c := &tls.Config{RootCAs: pool, ServerName: b.o.ServerName}
		if b.o.ClientCerts {
			if cert, err := tls.LoadX509KeyPair(b.ClientCert, b.ClientKey); err == nil {
				c.Certificates = []tls.Certificate{cert}
			}
		}
		o.SetTLSConfig(c).SetUsername(Hub).SetPassword(HubPassword)
	}
	return o
}

// Publish sends one message as the hub, and waits for the PUBACK.
func (b *Broker) Publish(t testing.TB, topic string, retain bool, payload string) {
	t.Helper()
	c := mqtt.NewClient(b.options().SetClientID(fmt.Sprintf("pub-%d", time.Now().UnixNano())).SetAutoReconnect(false))
	if tok := c.Connect(); !tok.WaitTimeout(10*time.Second) || tok.Error() != nil {
		t.Fatalf("hub connects: %v", tok.Error())
	}
	defer c.Disconnect(100)
	if tok := c.Publish(topic, 1, retain, payload); !tok.WaitTimeout(10*time.Second) || tok.Error() != nil {
		t.Fatalf("hub publishes: %v", tok.Error())
	}
}

func collect(t testing.TB, topic string, options func() *mqtt.ClientOptions) *Collector {
	t.Helper()
	c := &Collector{more: make(chan struct{}, 1), id: fmt.Sprintf("collector-%d", time.Now().UnixNano()), topic: topic,
		options: options, done: make(chan struct{})}
	ready := make(chan struct{})
	c.wg.Go(func() { c.run(sync.OnceFunc(func() { close(ready) })) })
	t.Cleanup(func() { close(c.done); c.wg.Wait() })
	select {
	case <-ready:
	case <-time.After(20 * time.Second):
		t.Fatal("the collector got no subscription within 20 s")
	}
	return c
}

func (c *Collector) run(ready func()) {
	for {
		lost := make(chan struct{})
		o := c.options().SetClientID(c.id).SetCleanSession(false).SetAutoReconnect(false).SetProtocolVersion(4).
			SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) { c.keep(m) }).
			SetConnectionLostHandler(func(mqtt.Client, error) { close(lost) })
		cl := mqtt.NewClient(o)
		tok := cl.Connect()
		if tok.WaitTimeout(5*time.Second) && tok.Error() == nil {
			if sub := cl.Subscribe(c.topic, 1, nil); sub.WaitTimeout(5*time.Second) && sub.Error() == nil {
				ready()
				select {
				case <-lost:
				case <-c.done:
					cl.Disconnect(50)
					return
				}
			}
		}
		go cl.Disconnect(0)
		select {
		case <-time.After(100 * time.Millisecond):
		case <-c.done:
			return
		}
	}
}

func (c *Collector) keep(m mqtt.Message) {
	msg := Message{Topic: m.Topic(), Payload: append([]byte(nil), m.Payload()...), Retained: m.Retained(), At: time.Now()}
	json.Unmarshal(m.Payload(), &msg.Event) // what is no event has an empty one
	c.mu.Lock()
	c.msgs = append(c.msgs, msg)
	c.mu.Unlock()
	select {
	case c.more <- struct{}{}:
	default:
	}
}

// Messages is everything so far, in the order of arrival.
func (c *Collector) Messages() []Message {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Message(nil), c.msgs...)
}

// Wait waits until ok says so, or fails the test after d.
func (c *Collector) Wait(t testing.TB, what string, d time.Duration, ok func([]Message) bool) []Message {
	t.Helper()
	deadline := time.After(d)
	for {
		msgs := c.Messages()
		if ok(msgs) {
			return msgs
		}
		select {
		case <-c.more:
		case <-deadline:
			t.Fatalf("%s did not arrive within %v; got %d messages, %d events", what, d, len(msgs), len(Events(msgs)))
		}
	}
}

// WaitEvents waits for n different events by (source, id).
func (c *Collector) WaitEvents(t testing.TB, n int, d time.Duration) []event.Event {
	t.Helper()
	return Events(c.Wait(t, fmt.Sprintf("%d events", n), d, func(m []Message) bool { return len(Events(m)) >= n }))
}

// Events are the numbered events among msgs, without duplicates by (source,
// id), in the order of their first arrival.
func Events(msgs []Message) []event.Event {
	type key struct{ source, id string }
	seen := map[key]bool{}
	var out []event.Event
	for _, m := range msgs {
		k := key{m.Event.Source, m.Event.ID}
		if m.Event.Sequence == "" || seen[k] {
			continue
		}
		seen[k] = true
		out = append(out, m.Event)
	}
	return out
}
