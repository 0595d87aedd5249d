//go:build conformance

// Shim serves a stdio MCP server over loopback Streamable HTTP, so that the
// HTTP-only conformance suite can test it. scripts/conformance.sh builds it; it
// is not part of any release. Legacy: one child per session.
// Modern (2026-07-28): one shared child. Ids and progress tokens are rewritten.
//
//	shim [-addr 127.0.0.1:0] [-v] server args...
//
// The first line on stdout is the address that it serves.
package main

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
)

type obj = map[string]json.RawMessage

// A waiter is one HTTP request that waits for its answer.
type waiter struct {
	ch    chan []byte
	id    json.RawMessage // the client's id
	token json.RawMessage // the client's progress token
}

// A child is one server process.
type child struct {
	trace   bool
	in      io.WriteCloser
	cmd     *exec.Cmd
	mu      sync.Mutex
	waiters map[string]*waiter // by rewritten id
	last    *waiter
	get     chan []byte // legacy GET stream
}

// A shim keeps the children.
type shim struct {
	args     []string
	trace    bool
	seq      atomic.Int64
	mu       sync.Mutex
	sessions map[string]*child // legacy, by session id
	modern   *child
}

func (s *shim) spawn() *child {
	c := &child{trace: s.trace, waiters: map[string]*waiter{}}
	c.cmd = exec.Command(s.args[0], s.args[1:]...)
	c.in, _ = c.cmd.StdinPipe()
	out, _ := c.cmd.StdoutPipe()
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		log.Fatal(err)
	}
	go func() {
		r := bufio.NewReaderSize(out, 1<<20)
		for {
			l, err := r.ReadBytes('\n')
			if len(bytes.TrimSpace(l)) > 0 {
				c.route(bytes.TrimSpace(l))
			}
			if err != nil {
				c.cmd.Wait()
				return
			}
		}
	}()
	return c
}

func (c *child) send(b []byte) {
	if c.trace {
		log.Printf("-> %s", b)
	}
	c.mu.Lock()
	c.in.Write(append(bytes.Clone(b), '\n'))
	c.mu.Unlock()
}

func str(r json.RawMessage) string { var s string; json.Unmarshal(r, &s); return s }
func raw(v any) json.RawMessage    { b, _ := json.Marshal(v); return b }

func (c *child) route(l []byte) {
	if c.trace {
		log.Printf("<- %s", l)
	}
	var m obj
	if json.Unmarshal(l, &m) != nil {
		log.Printf("NOT JSON on stdout: %s", l)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, isReq := m["method"]; !isReq {
		k := str(m["id"])
		w := c.waiters[k]
		if w == nil {
			log.Printf("response for nobody: %s", l)
			return
		}
		delete(c.waiters, k)
		if c.last == w {
			c.last = nil
		}
		m["id"] = w.id
		fixSub(m, "result", w.id)
		w.ch <- raw(m)
		close(w.ch)
		return
	}
	var p obj
	json.Unmarshal(m["params"], &p)
	var w *waiter
	if t, ok := p["progressToken"]; ok {
		if w = c.waiters[str(t)]; w != nil {
			p["progressToken"] = w.token
			m["params"] = raw(p)
		}
	}
	var meta obj
	json.Unmarshal(p["_meta"], &meta)
	if s, ok := meta["io.modelcontextprotocol/subscriptionId"]; ok {
		if w = c.waiters[str(s)]; w != nil {
			fixSub(m, "params", w.id)
		}
	}
	if w == nil {
		w = c.last
	}
	if w != nil {
		w.ch <- raw(m)
	} else if c.get != nil {
		select {
		case c.get <- raw(m):
		default:
		}
	}
}

func fixSub(m obj, key string, id json.RawMessage) {
	var p, meta obj
	if json.Unmarshal(m[key], &p) != nil || json.Unmarshal(p["_meta"], &meta) != nil {
		return
	}
	if _, ok := meta["io.modelcontextprotocol/subscriptionId"]; ok {
		meta["io.modelcontextprotocol/subscriptionId"] = id
		p["_meta"] = raw(meta)
		m[key] = raw(p)
	}
}

func fail(w http.ResponseWriter, status int, id json.RawMessage, code int, msg string) {
	if id == nil {
		id = raw(nil)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": id, "error": map[string]any{"code": code, "message": msg}})
}

func local(h string) bool {
	if x, _, err := net.SplitHostPort(h); err == nil {
		h = x
	}
	return h == "localhost" || h == "127.0.0.1" || h == "::1" || h == "[::1]"
}

func (s *shim) serve(w http.ResponseWriter, r *http.Request) {
	if o := r.Header.Get("Origin"); !local(r.Host) || o != "" && !local(strings.TrimPrefix(strings.TrimPrefix(o, "http://"), "https://")) {
		fail(w, 403, nil, -32600, "host or origin not allowed")
		return
	}
	sid := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	c := s.sessions[sid]
	s.mu.Unlock()
	switch r.Method {
	case "DELETE":
		if c == nil {
			w.WriteHeader(404)
			return
		}
		s.mu.Lock()
		delete(s.sessions, sid)
		s.mu.Unlock()
		c.in.Close()
		w.WriteHeader(204)
		return
	case "GET":
		if c == nil {
			w.WriteHeader(405)
			return
		}
		ch := make(chan []byte, 64)
		c.mu.Lock()
		c.get = ch
		c.mu.Unlock()
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		for {
			select {
			case <-r.Context().Done():
				return
			case b := <-ch:
				fmt.Fprintf(w, "event: message\ndata: %s\n\n", b)
				w.(http.Flusher).Flush()
			}
		}
	case "POST":
	default:
		w.WriteHeader(405)
		return
	}
	body, _ := io.ReadAll(io.LimitReader(r.Body, 8<<20))
	var m, p, meta obj
	if json.Unmarshal(body, &m) != nil {
		fail(w, 400, nil, -32700, "Parse error")
		return
	}
	json.Unmarshal(m["params"], &p)
	json.Unmarshal(p["_meta"], &meta)
	method := str(m["method"])
	_, hasID := m["id"]
	ver, claims := meta["io.modelcontextprotocol/protocolVersion"]
	hv := r.Header.Get("MCP-Protocol-Version")
	isModern := claims || hv >= "2026-07-28"
	newSession := ""
	switch {
	case method == "initialize" && !isModern:
		c = s.spawn()
		newSession = rand.Text()
		s.mu.Lock()
		s.sessions[newSession] = c
		s.mu.Unlock()
	case isModern:
		if hasID {
			if hm := r.Header.Get("Mcp-Method"); claims && (hv != str(ver) || hm != method) {
				fail(w, 400, m["id"], -32020, "header mismatch")
				return
			}
			want := str(p["name"])
			if method == "resources/read" {
				want = str(p["uri"])
			}
			if (method == "tools/call" || method == "prompts/get" || method == "resources/read") && r.Header.Get("Mcp-Name") != want {
				fail(w, 400, m["id"], -32020, "header mismatch: Mcp-Name")
				return
			}
		}
		s.mu.Lock()
		if s.modern == nil {
			s.modern = s.spawn()
		}
		c = s.modern
		s.mu.Unlock()
	case c == nil && sid == "":
		fail(w, 400, m["id"], -32600, "no session")
		return
	case c == nil:
		fail(w, 404, m["id"], -32600, "unknown session")
		return
	}
	if !hasID || method == "" { // notification or response
		c.send(compact(body))
		w.WriteHeader(202)
		return
	}
	k := fmt.Sprintf("s%d", s.seq.Add(1))
	wt := &waiter{ch: make(chan []byte, 256), id: m["id"]}
	m["id"] = raw(k)
	if t, ok := meta["progressToken"]; ok {
		wt.token = t
		meta["progressToken"] = raw(k)
		p["_meta"] = raw(meta)
		m["params"] = raw(p)
	}
	c.mu.Lock()
	c.waiters[k] = wt
	if method != "subscriptions/listen" {
		c.last = wt
	}
	c.mu.Unlock()
	c.send(raw(m))
	if newSession != "" {
		w.Header().Set("Mcp-Session-Id", newSession)
	}
	sse := false
	for {
		select {
		case <-r.Context().Done():
			c.mu.Lock()
			delete(c.waiters, k)
			if c.last == wt {
				c.last = nil
			}
			c.mu.Unlock()
			c.send(raw(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": k}}))
			return
		case b, ok := <-wt.ch:
			if !ok {
				return
			}
			var x obj
			json.Unmarshal(b, &x)
			if _, note := x["method"]; !sse && !note {
				w.Header().Set("Content-Type", "application/json")
				if e, bad := x["error"]; bad && isModern {
					var er struct{ Code int }
					json.Unmarshal(e, &er)
					switch er.Code {
					case -32601:
						w.WriteHeader(404)
					case -32602, -32021, -32022, -32600:
						if er.Code != -32602 || strings.Contains(string(e), "_meta") {
							w.WriteHeader(400)
						}
					}
				}
				w.Write(b)
				return
			}
			if !sse {
				sse = true
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Cache-Control", "no-cache")
				w.WriteHeader(200)
			}
			fmt.Fprintf(w, "event: message\ndata: %s\n\n", b)
			w.(http.Flusher).Flush()
		}
	}
}

func compact(b []byte) []byte { var o bytes.Buffer; json.Compact(&o, b); return o.Bytes() }

func main() {
	addr := flag.String("addr", "127.0.0.1:0", "listen address")
	trace := flag.Bool("v", false, "trace to stderr")
	flag.Parse()
	s := &shim{args: flag.Args(), trace: *trace, sessions: map[string]*child{}}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("/mcp", s.serve)
	fmt.Println(l.Addr())
	log.Fatal(http.Serve(l, nil))
}
