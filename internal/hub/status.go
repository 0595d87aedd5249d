package hub

import (
	"encoding/json"
	"strings"
	"time"

	"gsd-mcp/internal/state"
	"gsd-mcp/internal/unit"
)

// hubStatus is the connection's part of the health block.
type hubStatus struct {
	State         string     `json:"state"`  // down, connecting, connected or backoff
	Reason        string     `json:"reason"` // a word; empty when all is well
	Detail        string     `json:"detail,omitempty"`
	NextStep      string     `json:"next_step,omitempty"`
	Since         time.Time  `json:"since"`
	Attempts      int        `json:"attempts"` // in a row without a session
	NextAttemptS  float64    `json:"next_attempt_s"`
	LastConnected *time.Time `json:"last_connected,omitempty"`
	LastPuback    *time.Time `json:"last_puback,omitempty"`
	LastHubAck    *time.Time `json:"last_hub_ack,omitempty"`
	Flaps10m      int        `json:"flaps_10m"`
	Session       uint64     `json:"session"`

	next time.Time
}

// A StreamStatus is one journal's part of the health block.
type StreamStatus struct {
	Pending   uint64  `json:"pending"`
	OldestS   float64 `json:"oldest_s"` // age of the oldest event that was not delivered
	Appended  uint64  `json:"appended,string"`
	Puback    uint64  `json:"puback,string"`
	Confirmed uint64  `json:"confirmed,string"`
	Bytes     int64   `json:"bytes"`
	Quota     int64   `json:"quota"`
	Epoch     string  `json:"epoch"`
}

// An OutboxStatus is both journals' part of the health block.
type OutboxStatus struct {
	State            string       `json:"state"` // ok, disk_full or journal_dead
	Crit             StreamStatus `json:"crit"`
	Info             StreamStatus `json:"info"`
	DroppedTotal     int64        `json:"dropped_total"`
	QuarantinedTotal int64        `json:"quarantined_total"`
	TornBytesTotal   int64        `json:"torn_bytes_total"`
	UndeclaredGaps   int          `json:"undeclared_gaps"`
	FsyncP99Ms       float64      `json:"fsync_p99_ms"`
}

// Status is the health block of the hub. Degraded says, in words, what an
// operator should know; empty means well.
type Status struct {
	Hub      hubStatus    `json:"hub"`
	Outbox   OutboxStatus `json:"outbox"`
	Degraded []string     `json:"degraded"`
}

const (
	oldestAllowed = 10 * time.Minute
	fsyncAllowed  = 500 * time.Millisecond
)

// Status says how the hub and the outbox are.
func (p *Publisher) Status() Status {
	now := p.now()
	p.mu.Lock()
	h := p.status
	h.Session = p.session
	h.Flaps10m = p.flaps(now)
	waiting := p.firstOK
	p.mu.Unlock()
	if h.State == "backoff" {
		h.NextAttemptS = max(h.next.Sub(now).Seconds(), 0)
	}
	s := Status{Hub: h, Degraded: []string{}}
	crit, info := p.crit.j.Stats(), p.info.j.Stats()
	s.Outbox = OutboxStatus{State: worse(crit.State, info.State), Crit: p.stream(p.crit, crit), Info: p.stream(p.info, info),
		DroppedTotal: crit.Dropped + info.Dropped, QuarantinedTotal: crit.Quarantined + info.Quarantined,
		TornBytesTotal: crit.TornBytes + info.TornBytes, UndeclaredGaps: crit.Undeclared + info.Undeclared,
		FsyncP99Ms: float64(max(crit.FsyncP99, info.FsyncP99).Microseconds()) / 1000}
	if h.State == "connected" && h.Reason == "" && p.c.Confirmation && !waiting.IsZero() && now.Sub(waiting) > p.c.ConfirmWithin {
		s.Hub.Reason = reasonNotConfirming
	}
	s.Hub.NextStep = advice(s.Hub.Reason)
	if s.Hub.Reason == reasonNotConfirming {
		s.Degraded = append(s.Degraded, reasonNotConfirming)
	}
	if s.Hub.Reason == reasonPayload || s.Hub.Reason == reasonRefusesAll {
		s.Degraded = append(s.Degraded, s.Hub.Reason)
	}
	if max(s.Outbox.Crit.OldestS, s.Outbox.Info.OldestS) > oldestAllowed.Seconds() {
		s.Degraded = append(s.Degraded, "events_waiting")
	}
	if s.Outbox.State != "ok" {
		s.Degraded = append(s.Degraded, s.Outbox.State)
	}
	if s.Outbox.DroppedTotal > 0 || s.Outbox.UndeclaredGaps > 0 {
		s.Degraded = append(s.Degraded, "events_dropped")
	}
	if s.Outbox.QuarantinedTotal > 0 {
		s.Degraded = append(s.Degraded, "events_quarantined")
	}
	if s.Outbox.FsyncP99Ms > float64(fsyncAllowed.Milliseconds()) {
		s.Degraded = append(s.Degraded, "disk_slow")
	}
	return s
}

func worse(a, b string) string {
	for _, w := range []string{"journal_dead", "disk_full"} {
		if a == w || b == w {
			return w
		}
	}
	return "ok"
}

func (p *Publisher) stream(l *lane, st state.Stats) StreamStatus {
	s := StreamStatus{Appended: st.Appended, Puback: st.Delivered, Confirmed: st.Confirmed, Bytes: st.Bytes, Quota: st.Quota, Epoch: st.Epoch}
	if st.Appended <= st.Delivered {
		return s
	}
	s.Pending = st.Appended - st.Delivered
	recs, err := l.j.Read(st.Delivered, 1)
	if err != nil || len(recs) == 0 {
		return s
	}
	var e struct {
		Recorded time.Time `json:"recordedtime"`
	}
	if json.Unmarshal(recs[0].Data, &e) == nil && !e.Recorded.IsZero() {
		s.OldestS = max(p.bus.Now().Sub(e.Recorded).Seconds(), 0)
	}
	return s
}

func (p *Publisher) setState(word, reason string, detail error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status.State != word || p.status.Reason != reason {
		p.status.Since = p.now().UTC()
	}
	p.status.State, p.status.Reason, p.status.Detail = word, reason, p.scrub(detail)
}

// connecting keeps the reason of the last failure: it is still the news.
func (p *Publisher) connecting() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.State = "connecting"
}

// scrub makes an error fit to be shown: no secret, no control characters, no
// novel.
func (p *Publisher) scrub(err error) string {
	if err == nil {
		return ""
	}
	text := err.Error()
	secrets := []string{p.c.Password, p.c.PasswordFile, p.c.KeyFile}
	if p.c.PasswordFile != "" {
		if pw, err := p.c.password(); err == nil {
			secrets = append(secrets, pw)
		}
	}
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return unit.Printable(text, 300)
}

func (p *Publisher) connected(session uint64) {
	p.log.Info("hub connected", "session", session)
	p.setState("connected", "", nil)
	now := p.now().UTC()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Attempts = 0
	p.status.LastConnected = &now
}

// degrade leaves the session as it is and says what is wrong with it.
func (p *Publisher) degrade(reason, detail string) {
	p.log.Warn("hub", "reason", reason, "detail", detail)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Reason, p.status.Detail = reason, detail
}

func (p *Publisher) gotPuback() {
	now := p.now().UTC()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.LastPuback = &now
	if p.firstOK.IsZero() {
		p.firstOK = now
	}
	if p.status.Reason == reasonPayload {
		p.status.Reason, p.status.Detail = "", ""
	}
}

func (p *Publisher) gotConfirmation() {
	now := p.now().UTC()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.LastHubAck = &now
	p.firstOK = time.Time{}
}

// sessionOver names the reason of an end and counts it.
func (p *Publisher) sessionOver(err error, lasted time.Duration) string {
	now := p.now()
	reason := classify(err, now, p.c.ClockTrusted())
	p.mu.Lock()
	defer p.mu.Unlock()
	had := p.status.State == "connected"
	if had {
		p.ended = append(p.ended, now)
	}
	if had && lasted < quickEnd && (reason == reasonEOF || reason == reasonReset) {
		p.quick++
	} else {
		p.quick = 0
	}
	if p.quick >= flapsFor && p.crit.fails < suspectAfter && p.info.fails < suspectAfter {
		reason = reasonFlap // no record is at fault
	}
	return reason
}

// flaps counts the lost sessions of the last ten minutes; call with mu held.
func (p *Publisher) flaps(now time.Time) int {
	for len(p.ended) > 0 && now.Sub(p.ended[0]) > 10*time.Minute {
		p.ended = p.ended[1:]
	}
	return len(p.ended)
}

func (p *Publisher) backOff(reason string, err error, wait time.Duration) {
	p.log.Warn("hub not connected", "reason", reason, "detail", p.scrub(err), "retry_in", wait.Round(time.Millisecond))
	p.setState("backoff", reason, err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status.Attempts++
	p.status.next = p.now().Add(wait)
}
