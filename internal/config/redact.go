package config

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// hidden stands for a secret that is set.
const hidden = "(set, not shown)"

//go:embed example.toml
var example string

// Example is a station.toml that has every key with its default and the reason
// for it. What stations differ in is commented out.
func Example() []byte { return []byte(example) }

// Redacted is a copy without secrets, fit to be shown, logged and sent. Names
// of secret files stay; passwords in addresses and hashes go.
func (c *Config) Redacted() Config {
	d := c.clone()
	if d.Access.ApprovalPINHash != "" {
		d.Access.ApprovalPINHash = hidden
	}
	d.Hub.Broker = bare(d.Hub.Broker)
	for i, s := range d.Elements.Sources {
		d.Elements.Sources[i] = bare(s)
	}
	return *d
}

// bare takes a user and a password out of an address.
func bare(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return hidden
	}
	if u.User == nil {
		return address
	}
	u.User = url.User(hidden)
	return u.String()
}

// TOML is the configuration as a station.toml, without secrets.
func (c *Config) TOML() ([]byte, error) {
	d := c.Redacted()
	var b bytes.Buffer
	if err := toml.NewEncoder(&b).SetIndentTables(false).Encode(&d); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return b.Bytes(), nil
}

// MarshalJSON gives the keys of station.toml, without secrets.
func (c Config) MarshalJSON() ([]byte, error) {
	text, err := c.TOML()
	if err != nil {
		return nil, err
	}
	var m map[string]any
	if err := toml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("write configuration: %w", err)
	}
	return json.Marshal(m)
}

// String names the station only, so that a configuration that slips into a log
// or a %v shows nothing.
func (c Config) String() string { return fmt.Sprintf("configuration of station %q", c.Station.ID) }

// GoString is String, for %#v.
func (c Config) GoString() string { return c.String() }

// maxSecret bounds a secret file.
const maxSecret = 4096

// Password is the hub's password: the first line of password_file, or the
// environment variable GSD_HUB_PASSWORD, or "". It is read anew at each call, so
// that a changed file takes effect at the next connection.
func (h Hub) Password(getenv func(string) string) (string, error) {
	if h.PasswordFile == "" {
		return getenv("GSD_HUB_PASSWORD"), nil
	}
	f, err := os.Open(h.PasswordFile)
	if err != nil {
		return "", fmt.Errorf("read hub.password_file: %w", err)
	}
	defer f.Close()
	buf := make([]byte, maxSecret+1)
	n, err := f.Read(buf)
	if n > maxSecret {
		return "", fmt.Errorf("read hub.password_file: %s has more than %d bytes; it should have one line", h.PasswordFile, maxSecret)
	}
	line, _, _ := strings.Cut(string(buf[:max(n, 0)]), "\n")
	if line = strings.TrimRight(line, "\r"); line == "" {
		if err != nil && n == 0 {
			return "", fmt.Errorf("read hub.password_file: %s: %w", h.PasswordFile, err)
		}
		return "", fmt.Errorf("read hub.password_file: the first line of %s is empty", h.PasswordFile)
	}
	return line, nil
}
