package hubtest

import (
	"context"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A Proxy is a link to a broker that can be slow, stuck or cut.
type Proxy struct {
	URL string // the broker's, through the proxy

	to    string
	delay time.Duration
	l     net.Listener
	wg    sync.WaitGroup
	stuck atomic.Bool

	mu    sync.Mutex
	conns map[*net.TCPConn]bool
}

// smallBuffer makes a socket full soon.
const smallBuffer = 4096

// NewProxy listens on a free loopback port and passes everything on to the
// broker at brokerURL, delay later in each direction. It ends with the test.
func NewProxy(t testing.TB, brokerURL string, delay time.Duration) *Proxy {
	t.Helper()
	u, err := url.Parse(brokerURL)
	if err != nil {
		t.Fatal(err)
	}
	lc := net.ListenConfig{}
	if delay == 0 {
		lc.Control = func(_, _ string, c syscall.RawConn) error { // accepted sockets inherit it
			return c.Control(func(fd uintptr) {
				syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, smallBuffer)
			})
		}
	}
	l, err := lc.Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{URL: u.Scheme + "://" + l.Addr().String(), to: u.Host, delay: delay, l: l, conns: map[*net.TCPConn]bool{}}
	p.wg.Go(p.serve)
	t.Cleanup(func() {
		l.Close()
		p.cut(false)
		p.wg.Wait()
	})
	return p
}

func (p *Proxy) serve() {
	for {
		a, err := p.l.Accept()
		if err != nil {
			return
		}
		b, err := net.Dial("tcp", p.to)
		if err != nil {
			a.Close()
			continue
		}
		p.mu.Lock()
		p.conns[a.(*net.TCPConn)], p.conns[b.(*net.TCPConn)] = true, true
		p.mu.Unlock()
		p.wg.Go(func() { p.pass(a, b) })
		p.wg.Go(func() { p.pass(b, a) })
	}
}

// A packet is what has been read and when it is due at the other side.
type packet struct {
	data []byte
	due  time.Time
}

func (p *Proxy) pass(from, to net.Conn) {
	defer from.Close()
	defer to.Close()
	way := make(chan packet, 4096)
	p.wg.Go(func() {
		defer to.Close()
		for k := range way {
			time.Sleep(time.Until(k.due)) // the link's length
			if _, err := to.Write(k.data); err != nil {
				break
			}
		}
		for range way { // the reader must not block on a link that is gone
		}
	})
	defer close(way)
	for {
		for p.stuck.Load() {
			if !p.has(from) {
				return
			}
			time.Sleep(5 * time.Millisecond) // a poll: nothing is read meanwhile
		}
		buf := make([]byte, 16<<10)
		n, err := from.Read(buf)
		if n > 0 {
			way <- packet{buf[:n], time.Now().Add(p.delay)}
		}
		if err != nil {
			return
		}
	}
}

func (p *Proxy) has(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.conns[c.(*net.TCPConn)]
}

// Stick stops reading, in both directions, or goes on: sockets fill up.
func (p *Proxy) Stick(on bool) { p.stuck.Store(on) }

// Reset cuts every connection with a TCP reset.
func (p *Proxy) Reset() { p.cut(true) }

func (p *Proxy) cut(reset bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for c := range p.conns {
		if reset {
			c.SetLinger(0) // all of them first: closing one makes its goroutines close the other
		}
	}
	for c := range p.conns {
		c.Close()
	}
	clear(p.conns)
}
