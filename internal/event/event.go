// Package event is what the station tells the world: typed events in a
// CloudEvents 1.0 envelope, put into the journals before anyone is told, and
// then handed to whoever subscribes. It never waits for a subscriber.
package event

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// A Data is the contents of an event: one Go type for each kind, whose JSON
// names carry their units.
type Data interface {
	// Kind says what sort of event this is. It does not depend on the value,
	// except for the severity.
	Kind() Kind
}

// A Kind is a sort of event.
type Kind struct {
	Type     string // gsd.pass.aos.v1; a breaking change makes a v2 beside it
	Topic    string // pass/aos: the end of its MQTT topic
	Stream   string // Crit or Info
	Severity string // Debug, Notice, Warn, Error or Fatal
	Schema   string // urn:gsd:schema:pass.aos:1.0; an added field makes 1.1
	Says     string // one line for people
}

// Streams: each has a journal of its own.
const (
	Crit = "crit" // must not be lost: durable before Emit returns
	Info = "info" // accepted at once; gives way when there is no room, declared
)

// Severities, by the names of OpenTelemetry.
const (
	Debug  = "DEBUG"
	Notice = "INFO"
	Warn   = "WARN"
	Error  = "ERROR"
	Fatal  = "FATAL"
)

// SeverityNumber is the number of a severity in OpenTelemetry's scale.
func SeverityNumber(text string) int {
	switch text {
	case Debug:
		return 5
	case Warn:
		return 13
	case Error:
		return 17
	case Fatal:
		return 21
	}
	return 9
}

// An Event is a CloudEvents 1.0 event in structured JSON, as it is stored,
// published and shown. The extension attributes are documented in docs/hub.md.
type Event struct {
	SpecVersion     string          `json:"specversion"` // 1.0
	ID              string          `json:"id"`          // UUIDv7, the same on every resend: the hub drops duplicates by (source, id)
	Source          string          `json:"source"`      // /gsd/{station}/{stream}
	Type            string          `json:"type"`
	Subject         string          `json:"subject,omitempty"`
	Time            time.Time       `json:"time"`         // when it happened, station time
	RecordedTime    time.Time       `json:"recordedtime"` // when it was put into the journal
	DataContentType string          `json:"datacontenttype"`
	DataSchema      string          `json:"dataschema"`
	Sequence        string          `json:"sequence,omitempty"` // 20 digits, contiguous per source and epoch; empty until an info event is in the journal
	Epoch           string          `json:"epoch,omitempty"`
	BootID          string          `json:"bootid"`
	UptimeMs        string          `json:"uptimems"` // ms since boot; with bootid it orders events of an untrusted clock
	TimeQuality     string          `json:"timequality"`
	SeverityText    string          `json:"severitytext"`
	SeverityNumber  int             `json:"severitynumber"`
	Simulated       bool            `json:"simulated"`
	CorrelationID   string          `json:"correlationid,omitempty"`
	TraceParent     string          `json:"traceparent,omitempty"`
	Data            json.RawMessage `json:"data"`
}

// Topic is the end of the event's MQTT topic: pass/aos of gsd.pass.aos.v1.
func (e Event) Topic() string { return topicOf(e.Type) }

// topicOf is the rule of the topic, so that a record from a journal needs no
// table to be published.
func topicOf(typ string) string {
	s := strings.TrimPrefix(typ, "gsd.")
	if i := strings.LastIndexByte(s, '.'); i >= 0 {
		s = s[:i]
	}
	area, name, _ := strings.Cut(s, ".")
	return area + "/" + name
}

// An Author is who caused an event; it is created_by of its data.
type Author struct {
	Kind    string `json:"kind" enum:"agent,person,rule"`
	UID     int    `json:"uid" doc:"uid of the account; -1 for the station itself"`
	User    string `json:"user"`
	Client  string `json:"client,omitempty" doc:"what the program says of itself: untrusted"`
	Session string `json:"session,omitempty"`
	Request string `json:"request,omitempty"`
	Trace   string `json:"trace,omitempty"`
}

// Station is the author of what nobody asked for.
func Station() Author { return Author{Kind: "rule", UID: -1, User: "station"} }

// newID makes a UUIDv7: its order is the order of time to the millisecond.
func newID(t time.Time) string {
	var b [16]byte
	rand.Read(b[6:])
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(t.UnixMilli()))
	copy(b[:6], ms[2:])
	b[6] = b[6]&0x0f | 0x70
	b[8] = b[8]&0x3f | 0x80
	h := hex.EncodeToString(b[:])
	return h[:8] + "-" + h[8:12] + "-" + h[12:16] + "-" + h[16:20] + "-" + h[20:]
}

// withAuthor adds created_by to the JSON object of an event's data.
func withAuthor(data []byte, by Author) ([]byte, error) {
	author, err := encode(by)
	if err != nil {
		return nil, err
	}
	data = bytes.TrimSpace(data)
	if len(data) < 2 || data[0] != '{' || data[len(data)-1] != '}' {
		return nil, fmt.Errorf("event data is %.20q: want a JSON object", data)
	}
	out := append([]byte{}, data[:len(data)-1]...)
	if len(data) > 2 {
		out = append(out, ',')
	}
	out = append(out, `"created_by":`...)
	return append(append(out, author...), '}'), nil
}

// BootID is the first eight digits of the kernel's random name for this boot,
// or "unknown".
func BootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && len(id) >= 8 {
		return id[:8]
	}
	return "unknown"
}

// sinceBoot is the time since the computer started, suspended or not: the one
// clock that nothing steps.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
