package hub

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/hashicorp/go-hclog"

	"gsd-mcp/internal/unit"
)

// ConsumerID is the client id of a Consumer unless it is given another. The
// broker keeps a session under it, and in it what comes while nobody listens.
const ConsumerID = "gsd-hub-verify"

// A ConsumerConfig says where the broker is and what the consumer may do.
type ConsumerConfig struct {
	// Link has the broker, the credentials, the certificates and the timeouts.
	// Its Station, Confirmation, Dir, Window and StateEvery have no meaning here.
	Link     Config
	ClientID string // ConsumerID; two consumers with one id throw each other out
	// File keeps the account over restarts; empty = memory only. A line is
	// written before the event is acknowledged.
	File string
	// FromStart expects every epoch from its first number on, not from the
	// first that came.
	FromStart bool
	// Confirm tells each station, retained, what is here and what is missing.
	// It implies FromStart: what is confirmed, a station may forget.
	Confirm      bool
	ConfirmEvery time.Duration // 1 min
}

// A Consumer follows every station of a broker and accounts for their events:
// what is missing, what came twice, which number was used twice, who is silent.
// It keeps no event: a hub with a data base does what it does, and stores.
type Consumer struct {
	c   ConsumerConfig
	log hclog.Logger
	now func() time.Time

	mu        sync.Mutex
	l         *ledger
	file      *os.File
	connected bool
	reason    string
	detail    string
	heard     time.Time         // of the last message, or of the subscription
	told      map[string]string // what each station was told in this session
}

// errNotGranted: the broker answered the subscription with a failure.
var errNotGranted = errors.New("the broker does not grant the subscription to gsd/v1/+: check its ACL")

// NewConsumer checks the configuration, reads the account if there is a file,
// and connects to nothing.
func NewConsumer(cfg ConsumerConfig, log hclog.Logger) (*Consumer, error) {
	cfg.Link.Station = "hub"
	if err := cfg.Link.check(); err != nil {
		return nil, err
	}
	named := cfg.Link.Username
	cfg.Link.defaults()
	cfg.Link.Username = named // a consumer has no station's name
	if cfg.ClientID == "" {
		cfg.ClientID = ConsumerID
	}
	if cfg.ConfirmEvery <= 0 {
		cfg.ConfirmEvery = time.Minute
	}
	if log == nil {
		log = hclog.NewNullLogger()
	}
	c := &Consumer{c: cfg, log: log, now: time.Now, l: newLedger(cfg.FromStart || cfg.Confirm), reason: reasonConnecting}
	if cfg.File != "" {
		if err := c.openFile(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// openFile reads the account and writes it anew, small. A line that was cut by
// a crash was not acknowledged, so its event comes again.
func (c *Consumer) openFile() error {
	f, err := os.Open(c.c.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read the account: %w", err)
	default:
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			c.l.apply(lines.Text(), false) // keeps nothing, so it cannot fail
		}
		err := lines.Err()
		f.Close()
		if err != nil {
			return fmt.Errorf("read the account %s: %w", c.c.File, err)
		}
		for _, s := range c.l.stations { // resends that the file has are no news of this run
			for _, st := range s.streams {
				st.duplicates = 0
			}
		}
	}
	temporary := c.c.File + ".new"
	if c.file, err = os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return fmt.Errorf("write the account: %w", err)
	}
	w := bufio.NewWriter(c.file)
	for _, line := range c.l.lines() {
		w.WriteString(line + "\n")
	}
	if err := errors.Join(w.Flush(), c.file.Sync(), os.Rename(temporary, c.c.File)); err != nil {
		c.file.Close()
		return fmt.Errorf("write the account: %w", err)
	}
	c.l.keep = func(line string) error {
		_, err := c.file.WriteString(line + "\n")
		return err
	}
	return nil
}

// Close closes the account's file, after Run has returned.
func (c *Consumer) Close() error {
	if c.file == nil {
		return nil
	}
	return errors.Join(c.file.Sync(), c.file.Close())
}

// Run follows the broker until ctx ends, and comes back by itself when the
// broker does. It returns nil.
func (c *Consumer) Run(ctx context.Context) error {
	back := c.c.Link.MinBackoff
	for {
		start := time.Now()
		err := c.follow(ctx)
		if ctx.Err() != nil {
			return nil
		}
		c.lost(err)
		if time.Since(start) > settled {
			back = c.c.Link.MinBackoff
		}
		t := time.NewTimer(jitter(back))
		back = min(2*back, c.c.Link.MaxBackoff)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
}

// lost notes why there is no session.
func (c *Consumer) lost(err error) {
	reason := classify(err, c.now(), c.c.Link.ClockTrusted())
	detail := unit.Printable(err.Error(), 300)
	c.log.Warn("no session with the broker", "reason", reason, "detail", detail)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.connected, c.reason, c.detail = false, reason, detail
}

// options are the client's for one connection. The session on the broker stays
// when clean is false.
func (c *Consumer) options(clean bool) (*mqtt.ClientOptions, error) {
	k := &c.c.Link
	password, err := k.password()
	if err != nil {
		return nil, configError{err}
	}
	broker := k.Broker
	if k.Dial != nil {
		broker = "mqtt://in-process"
	}
	// The handler only counts, so it may run in the order of arrival, and its
	// return is what acknowledges.
	o := mqtt.NewClientOptions().AddBroker(broker).SetClientID(c.c.ClientID).SetUsername(k.Username).SetPassword(password).
		SetProtocolVersion(4).SetCleanSession(clean).SetAutoReconnect(false).SetConnectRetry(false).SetResumeSubs(false).
		SetOrderMatters(true).SetKeepAlive(k.KeepAlive).SetPingTimeout(k.PingTimeout).
		SetConnectTimeout(k.ConnectTimeout).SetWriteTimeout(k.WriteTimeout)
	if k.Dial != nil {
		o.SetCustomOpenConnectionFn(func(*url.URL, mqtt.ClientOptions) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(context.Background(), k.ConnectTimeout)
			defer cancel()
			return k.Dial(ctx)
		})
	} else if k.secure() {
		t, err := k.tlsConfig()
		if err != nil {
			return nil, configError{err}
		}
		o.SetTLSConfig(t)
	}
	return o, nil
}

// wait waits for a token, the end of the connection, or too long.
func (c *Consumer) wait(ctx context.Context, tok mqtt.Token, lost <-chan error) error {
	t := time.NewTimer(c.c.Link.ConnectTimeout + c.c.Link.WriteTimeout)
	defer t.Stop()
	select {
	case <-tok.Done():
		return tok.Error()
	case err := <-lost:
		return fmt.Errorf("connection lost: %w", err)
	case <-t.C:
		return errConnackTimeout
	case <-ctx.Done():
		return ctx.Err()
	}
}

// follow is one connection, until something ends it.
func (c *Consumer) follow(ctx context.Context) error {
	o, err := c.options(false)
	if err != nil {
		return err
	}
	lost := make(chan error, 1)
	end := func(err error) {
		select {
		case lost <- err:
		default:
		}
	}
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) { end(err) })
	o.SetAutoAckDisabled(true)
	o.SetDefaultPublishHandler(func(_ mqtt.Client, m mqtt.Message) {
		if err := c.take(m.Topic(), m.Payload()); err != nil {
			end(outboxError{fmt.Errorf("write the account: %w", err)}) // not acknowledged: it comes again
			return
		}
		m.Ack()
	})
	client := mqtt.NewClient(o)
	defer func() { go client.Disconnect(200) }()
	if err := c.wait(ctx, client.Connect(), lost); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	tok := client.SubscribeMultiple(map[string]byte{"gsd/v1/+/events/#": 1, "gsd/v1/+/availability": 1, "gsd/v1/+/state/#": 1}, nil)
	if err := c.wait(ctx, tok, lost); err != nil {
		return fmt.Errorf("subscribe: %w", err)
	}
	if sub, ok := tok.(*mqtt.SubscribeToken); ok {
		for _, granted := range sub.Result() {
			if granted > 2 {
				return errNotGranted
			}
		}
	}
	c.mu.Lock()
	c.connected, c.reason, c.detail, c.heard, c.told = true, "", "", time.Now(), map[string]string{}
	c.mu.Unlock()
	t := time.NewTicker(c.c.ConfirmEvery)
	defer t.Stop()
	for {
		select {
		case err := <-lost:
			return fmt.Errorf("connection lost: %w", err)
		case <-t.C:
			if err := c.confirm(ctx, client, lost); err != nil {
				return err
			}
		case <-ctx.Done():
			// What has come is confirmed before the end; the context is over, the
			// bound of each message is not.
			return errors.Join(c.confirm(context.WithoutCancel(ctx), client, lost), ctx.Err())
		}
	}
}

// take accounts for a message.
func (c *Consumer) take(topic string, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.heard = time.Now()
	return c.l.take(topic, payload, c.now())
}

// confirm tells the stations what is here: what is new, and again what is
// missing.
func (c *Consumer) confirm(ctx context.Context, client mqtt.Client, lost <-chan error) error {
	if !c.c.Confirm {
		return nil
	}
	type message struct{ station, payload string }
	var out []message
	c.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(c.l.stations)) {
		ack := string(c.l.stations[name].ack())
		if ack != "" && (ack != c.told[name] || strings.Contains(ack, `"missing":["`)) {
			out = append(out, message{name, ack})
		}
	}
	c.mu.Unlock()
	if len(out) > 0 && c.file != nil {
		if err := c.file.Sync(); err != nil { // what is confirmed must outlive a power cut
			return outboxError{fmt.Errorf("write the account: %w", err)}
		}
	}
	for _, m := range out {
		if err := c.wait(ctx, client.Publish("gsd/v1/"+m.station+"/ack", 1, true, m.payload), lost); err != nil {
			return fmt.Errorf("confirm to %s: %w", m.station, err)
		}
		c.mu.Lock()
		c.told[m.station] = m.payload
		c.mu.Unlock()
	}
	return nil
}

// Forget ends the session that the broker keeps under the client id, and with
// it the queue of events that would wait there for ever.
func (c *Consumer) Forget(ctx context.Context) error {
	o, err := c.options(true)
	if err != nil {
		return err
	}
	lost := make(chan error, 1)
	o.SetConnectionLostHandler(func(_ mqtt.Client, err error) { lost <- err })
	client := mqtt.NewClient(o)
	defer func() { go client.Disconnect(200) }()
	if err := c.wait(ctx, client.Connect(), lost); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	return nil
}

// Quiet is how long nothing has come in this session; 0 while there is none.
func (c *Consumer) Quiet() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.connected {
		return 0
	}
	return time.Since(c.heard)
}

// Report says how every station is.
func (c *Consumer) Report() FleetReport {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := c.l.report(c.now())
	r.Connected, r.Reason, r.Detail = c.connected, c.reason, c.detail
	return r
}
