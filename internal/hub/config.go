// Package hub drains the outbox to an MQTT broker and keeps the station's
// retained topics fresh. It is publish-only: the one thing it may subscribe to
// is the hub's confirmation, which can move a cursor and nothing else. Nothing
// in the station ever waits for it.
//
// The choices behind the options of the MQTT client, each with the failure
// that it prevents, are in docs/hub.md.
package hub

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"gsd-mcp/internal/state"
)

// Config is where the hub is and how to get in. The zero value of each
// duration is the default it names.
type Config struct {
	Station      string // [a-z0-9-]{1,32}: topic, client id, and the user name unless Username is set
	Broker       string // mqtt://host:1883, ssl://host:8883, wss://host/path; never with a password in it
	Username     string
	Password     string // or
	PasswordFile string // read at every connection
	CAFile       string // PEM; empty = the system's
	CertFile     string // client certificate, with KeyFile
	KeyFile      string
	ServerName   string // name in the broker's certificate; empty = the host
	Confirmation bool   // the hub publishes confirmations: subscribe to them

	// Dir keeps the session number over restarts, so that a late will of an
	// old session is recognised; nil = it starts at the time of day.
	Dir *state.Dir
	// Dial replaces the network, for a broker inside the process.
	Dial func(ctx context.Context) (net.Conn, error)
	// ClockTrusted says whether the time of day may judge certificates; nil =
	// it may.
	ClockTrusted func() bool

	Window         int           // events sent and not yet acknowledged; 16
	KeepAlive      time.Duration // 30 s
	PingTimeout    time.Duration // 10 s
	AckTimeout     time.Duration // 30 s without PUBACK ends the session
	ConnectTimeout time.Duration // 15 s
	WriteTimeout   time.Duration // 10 s
	MinBackoff     time.Duration // 1 s, doubling
	MaxBackoff     time.Duration // 60 s
	SlowBackoff    time.Duration // 60 s, doubling, for what only a person can mend
	MaxSlowBackoff time.Duration // 15 min
	StateEvery     time.Duration // least interval of a retained topic; 5 s
	ConfirmWithin  time.Duration // without confirmation for this long, while events flow, health says so; 10 min
	ShutdownWait   time.Duration // how long the end may take to deliver what waits; 3 s
}

var stationID = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

func (c *Config) defaults() {
	def := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	def(&c.KeepAlive, 30*time.Second)
	def(&c.PingTimeout, 10*time.Second)
	def(&c.AckTimeout, 30*time.Second)
	def(&c.ConnectTimeout, 15*time.Second)
	def(&c.WriteTimeout, 10*time.Second)
	def(&c.MinBackoff, time.Second)
	def(&c.MaxBackoff, time.Minute)
	def(&c.SlowBackoff, time.Minute)
	def(&c.MaxSlowBackoff, 15*time.Minute)
	def(&c.StateEvery, 5*time.Second)
	def(&c.ConfirmWithin, 10*time.Minute)
	def(&c.ShutdownWait, 3*time.Second)
	if c.Window <= 0 {
		c.Window = 16
	}
	if c.Username == "" {
		c.Username = c.Station
	}
	if c.ClockTrusted == nil {
		c.ClockTrusted = func() bool { return true }
	}
}

// check says what is wrong with the configuration, in the words of the file.
func (c *Config) check() error {
	if !stationID.MatchString(c.Station) {
		return fmt.Errorf("[station] id %.40q: want 1 to 32 of a-z, 0-9 and - (it is part of the MQTT topics)", c.Station)
	}
	if c.Dial != nil {
		return nil
	}
	u, err := url.Parse(c.Broker)
	if err != nil {
		return fmt.Errorf("[hub] broker is not an address: %w", errors.Unwrap(err)) // the outer error repeats the address
	}
	if u.User != nil {
		return errors.New("[hub] broker has a user name or password in it, which would be shown in logs: use username and password_file")
	}
	switch u.Scheme {
	case "mqtt", "tcp", "mqtts", "ssl", "tls", "ws", "wss":
	default:
		return fmt.Errorf("[hub] broker %q: want mqtt://host:1883 or ssl://host:8883", c.Broker)
	}
	if u.Hostname() == "" {
		return fmt.Errorf("[hub] broker %q has no host name: want mqtt://host:1883 or ssl://host:8883", c.Broker)
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return errors.New("[hub] cert_file and key_file belong together: give both or neither")
	}
	return nil
}

func (c *Config) secure() bool {
	scheme, _, _ := strings.Cut(c.Broker, ":")
	switch scheme {
	case "mqtts", "ssl", "tls", "wss":
		return c.Dial == nil
	}
	return false
}

// password is read anew at every connection, so that changing it needs no
// restart.
func (c *Config) password() (string, error) {
	if c.PasswordFile == "" {
		return c.Password, nil
	}
	b, err := os.ReadFile(c.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("[hub] password_file: %w", errors.Unwrap(err)) // without the path
	}
	return strings.TrimRight(string(b), "\r\n"), nil
}

// tlsConfig reads the certificates anew at every connection.
func (c *Config) tlsConfig() (*tls.Config, error) {
	t := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.ServerName}
	if u, err := url.Parse(c.Broker); err == nil && t.ServerName == "" {
		t.ServerName = u.Hostname()
	}
	if c.CAFile != "" {
		pem, err := os.ReadFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("[hub] ca_file: %w", errors.Unwrap(err))
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(pem) {
			return nil, errors.New("[hub] ca_file has no certificate in PEM form")
		}
	}
	if c.CertFile != "" {
		cert, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, errors.New("[hub] cert_file and key_file cannot be read or do not fit together")
		}
		t.Certificates = []tls.Certificate{cert}
	}
	return t, nil
}
