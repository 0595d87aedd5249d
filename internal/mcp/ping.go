package mcp

import (
	"encoding/json"
	"strconv"
	"time"
)

// A pinger notices a client that has gone silent: an operator's link may be
// dead for hours before the transport says so. The 2026-07-28 era has no
// requests from the server, so pings go out only after a handshake. It lives on
// the session's reading goroutine.
type pinger struct {
	ss     *session
	timer  *time.Timer // nil when the session is not watched
	n      int
	asked  bool // a ping has gone out and nothing has been heard since
	warned bool
}

func newPinger(ss *session) *pinger {
	p := &pinger{ss: ss}
	if ss.o.Ping > 0 {
		p.timer = time.NewTimer(ss.o.Ping)
	}
	return p
}

func (p *pinger) fire() <-chan time.Time {
	if p.timer == nil {
		return nil
	}
	return p.timer.C
}

func (p *pinger) stop() {
	if p.timer != nil {
		p.timer.Stop()
	}
}

// heard is called for every line: an answer to the ping is as good as any.
func (p *pinger) heard() {
	if p.timer == nil {
		return
	}
	p.timer.Reset(p.ss.o.Ping)
	p.asked = false
	if p.warned {
		p.warned = false
		p.tell(false)
	}
}

// silent is called when nothing has come for the interval.
func (p *pinger) silent() {
	p.timer.Reset(p.ss.o.Ping)
	if !p.ss.handshaken() {
		return
	}
	if p.asked && !p.warned {
		p.warned = true
		p.tell(true)
	}
	p.asked = true
	p.n++
	id, _ := json.Marshal("gsd-ping-" + strconv.Itoa(p.n))
	line, _ := encode(requestMessage{Version: "2.0", ID: id, Method: "ping"}) // holds nothing that cannot be encoded
	p.ss.out.note("ping", line)
}

func (p *pinger) tell(silent bool) {
	if p.ss.o.Silent != nil {
		p.ss.o.Silent(silent)
	}
}
