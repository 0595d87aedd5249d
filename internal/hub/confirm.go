package hub

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	mqtt "github.com/eclipse/paho.mqtt.golang"
)

const (
	maxConfirmation = 64 << 10 // bytes of a confirmation
	maxMissing      = 32       // ranges in one confirmation
)

// A streamAck is what the hub has of one stream.
type streamAck struct {
	Epoch   string   `json:"epoch"`
	UpTo    string   `json:"upto"`
	Missing []string `json:"missing"` // "101" or "101-103"
}

// subscribe asks for the hub's confirmations. The answer proves nothing:
// mosquitto grants subscriptions that its ACL denies. Only traffic does.
func (s *session) subscribe() {
	s.c.Subscribe(s.p.topic("ack"), 1, func(_ mqtt.Client, m mqtt.Message) {
		if len(m.Payload()) > maxConfirmation {
			return
		}
		b := append([]byte(nil), m.Payload()...)
		for {
			select {
			case s.confirm <- b:
				return
			default:
			}
			select {
			case <-s.confirm: // the newest says most
			default:
			}
		}
	})
}

// confirmation takes in what the hub says it has. It can move a cursor within
// what was really sent, and ask for records again; nothing else.
func (p *Publisher) confirmation(payload []byte) {
	var acks map[string]streamAck
	if err := json.Unmarshal(payload, &acks); err != nil {
		p.log.Warn("confirmation of the hub is not readable", "error", err)
		return
	}
	for _, l := range p.lanes() {
		a, ok := acks[l.name]
		if !ok {
			continue
		}
		if a.Epoch != l.j.Epoch() {
			continue // of a numbering that has ended
		}
		upto, err := strconv.ParseUint(a.UpTo, 10, 64)
		if err != nil || upto > l.j.Cursor() {
			p.log.Warn("the hub confirms what was not delivered", "stream", l.name, "upto", a.UpTo, "delivered", l.j.Cursor())
			continue
		}
		if err := l.j.Confirm(upto); err != nil {
			p.log.Warn("confirmation not kept", "stream", l.name, "error", err)
			continue
		}
		p.gotConfirmation()
		for _, m := range a.Missing[:min(len(a.Missing), maxMissing)] {
			from, to, err := parseRange(m)
			if err != nil || to > l.j.Cursor() {
				p.log.Warn("the hub misses what was never sent", "stream", l.name, "missing", fmt.Sprintf("%.40q", m))
				continue
			}
			p.resendOnce(l, from, to)
		}
	}
}

// resendOnce queues a resend unless the same one is waiting.
func (p *Publisher) resendOnce(l *lane, from, to uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.resends {
		if r.l == l && r.to == to {
			return
		}
	}
	if len(p.resends) < maxResends {
		p.resends = append(p.resends, resend{l, from, to})
	}
}

func parseRange(s string) (from, to uint64, err error) {
	a, b, isRange := strings.Cut(s, "-")
	if from, err = strconv.ParseUint(a, 10, 64); err != nil {
		return 0, 0, err
	}
	to = from
	if isRange {
		if to, err = strconv.ParseUint(b, 10, 64); err != nil {
			return 0, 0, err
		}
	}
	if from == 0 || to < from {
		return 0, 0, fmt.Errorf("range %d-%d", from, to)
	}
	return from, to, nil
}
