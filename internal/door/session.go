package door

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"gsd-mcp/internal/mcp"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

const (
	// pingIdle is how long a client may be silent before it is asked whether it
	// is there (DESIGN section 8, decision 7).
	pingIdle = 15 * time.Second
	// silentEnd is how long after that a silent session keeps its place. Its
	// leases are gone at once; the place may wait for a bad link.
	silentEnd = time.Minute
)

// Client is what the session's program calls itself, "" before it has.
func (s *Session) Client() string {
	if name := s.client.Load(); name != nil {
		return *name
	}
	return ""
}

// options is the session as the MCP server sees it. Call end when it is over.
func (d *Door) options(s *Session) (o mcp.SessionOptions, end func()) {
	o = mcp.SessionOptions{
		Caller: s.Caller,
		ID:     s.ID,
		OnClient: func(c mcp.Implementation) {
			name := unit.Printable(c.Name, 80)
			s.client.Store(&name)
		},
		Limit: func(_ context.Context, method string) error { return s.limit(method) },
		Ping:  pingIdle,
	}
	if d.o.Caller != nil {
		o.Caller = d.o.Caller(s)
	}
	watch := &watch{door: d, session: s}
	o.Silent = watch.silent
	switch {
	case s.Denied != nil:
		o.Denied = func(any, string) *mcp.Result { return refused(s.Denied) }
	case d.o.Denied != nil:
		o.Denied = func(_ any, tool string) *mcp.Result { return d.o.Denied(s, tool) }
	}
	if s.Private != nil {
		o.Private = map[string]func(context.Context, *mcp.PrivateCall) (any, error){}
		for _, name := range s.Private.Names() {
			o.Private[name] = s.private
		}
	}
	return o, watch.end
}

// openToAll are the methods that a caller without a role may use: enough to
// connect and to see that there is nothing for it. Calls of tools are answered
// with the way to get a role.
func openToAll() []string {
	return []string{"initialize", "server/discover", "tools/list", "tools/call", "resources/list", "resources/templates/list", "prompts/list"}
}

// limit holds the session to its rate, and tells a caller without a role what
// it needs.
func (s *Session) limit(method string) error {
	if wait := s.Budget.Take(); wait > 0 {
		r := safety.Refuse(safety.RateLimited, fmt.Sprintf("wait %.2f s and ask again; subscribe to resources instead of polling them", wait.Seconds()),
			"a session may make %.0f requests a second", s.Budget.rate)
		return &mcp.Error{Code: codeInternal, Message: r.Sentence(), Data: r}
	}
	if s.Denied != nil && !slices.Contains(openToAll(), method) {
		return &mcp.Error{Code: codeRefused, Message: s.Denied.Sentence(), Data: s.Denied}
	}
	return nil
}

// private runs one private method.
func (s *Session) private(ctx context.Context, c *mcp.PrivateCall) (any, error) {
	caller := s.Caller
	caller.Client, caller.Request, caller.Trace = c.Client.Name, c.Request, c.Trace
	result, found, err := s.Private.Call(ctx, caller, c.Method, withoutMeta(c.Params))
	var refusal *safety.Refusal
	var params *ParamsError
	switch {
	case !found:
		return nil, &mcp.Error{Code: codeNoMethod, Message: "method not found"}
	case errors.As(err, &refusal):
		return nil, &mcp.Error{Code: codeRefused, Message: refusal.Sentence(), Data: refusal}
	case errors.As(err, &params):
		return nil, &mcp.Error{Code: codeInvalidParams, Message: params.Text}
	}
	return result, err
}

// withoutMeta takes the protocol's own field from the parameters, so that a
// handler can be strict about the rest.
func withoutMeta(params json.RawMessage) json.RawMessage {
	var p map[string]json.RawMessage
	if json.Unmarshal(params, &p) != nil || p["_meta"] == nil {
		return params
	}
	delete(p, "_meta")
	return bytes.TrimSpace(encodeLine(p))
}

// A watch ends a session whose client has been silent for too long.
type watch struct {
	door    *Door
	session *Session

	mu    sync.Mutex
	timer *time.Timer // nil while the client answers
}

// silent is told by the MCP server when pings go unanswered, and when they are
// answered again.
func (w *watch) silent(yes bool) {
	s := w.session
	w.end()
	if !yes {
		w.door.o.Observe(Notice{Kind: SessionHeard, Session: s, Text: fmt.Sprintf("session %s of %s answers again", s.ID, s.Peer)})
		return
	}
	w.mu.Lock()
	w.timer = time.AfterFunc(silentEnd, func() {
		w.door.refuse(s.conn, s, doorIdle, fmt.Sprintf("no answer to pings for %v", pingIdle+silentEnd))
		s.conn.Close()
	})
	w.mu.Unlock()
	w.door.o.Observe(Notice{Kind: SessionSilent, Session: s, Text: fmt.Sprintf("session %s of %s has answered no ping for %v", s.ID, s.Peer, pingIdle)})
}

// end stops the clock.
func (w *watch) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// refused is a refusal as the result of a tool (CONTRACT section 4).
func refused(r *safety.Refusal) *mcp.Result {
	data, err := json.Marshal(r)
	if err != nil {
		panic("door: encode a refusal: " + err.Error()) // its values are ours
	}
	return &mcp.Result{IsError: true, Text: r.Sentence(), Content: []mcp.Content{mcp.Text(string(data))}}
}
