// Package mcp is the station's Model Context Protocol server: JSON-RPC over
// lines, the lifecycle of both protocol eras, dispatch, and the checking of
// arguments. It knows no station: what tools do, who may call them and what is
// safe is decided by those who hand it tools. It must never write to a client
// from a goroutine of its callers, and nothing that a client sends may end the
// process or, short of the end of its stream, the session.
package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// Protocol versions, newest first. 2025-03-26 is left out on purpose: it
// obliges a server to accept batches, and here one line is one message.
const (
	version2026 = "2026-07-28" // stateless, "modern"
	version2025 = "2025-11-25" // newest with a handshake, "legacy"
	version0618 = "2025-06-18" // first with structured results and resource links
	version2024 = "2024-11-05" // first of all, no completions capability
)

// Versions returns every protocol version that this package speaks, newest
// first.
func Versions() []string { return []string{version2026, version2025, version0618, version2024} }

// Info is how the server names itself.
type Info struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// An Implementation is how a client names itself. It is self-declared: good for
// a log, never a reason to allow anything. All texts are printable.
type Implementation struct {
	Name    string `json:"name"`
	Title   string `json:"title,omitempty"`
	Version string `json:"version"`
}

// Options of a server. The zero value of each but Info is usable.
type Options struct {
	Info            Info
	Instructions    string                      // what a model should know before it starts
	Versions        []string                    // offered; nil for all of [Versions]
	ContractVersion string                      // of the tool catalogue, sent in _meta of tools/list
	PageSize        int                         // items per page of a list, 0 for 100
	Calls           int                         // tool calls of one session at a time, 0 for 4
	MaxLine         int                         // bytes of one message, 0 for 1 MiB
	Drain           time.Duration               // for open requests after the end of input, 0 for 2 s
	Log             func(msg string, kv ...any) // incidents and ends of sessions; must not block
}

// A Server holds the tools, resources and prompts. Add them before the first
// [Server.Serve]; after that it is safe for concurrent use.
type Server struct {
	o         Options
	modern    []string // offered versions by era, newest first
	legacy    []string
	tools     []*tool
	resources []*Resource
	templates []*template
	prompts   []*Prompt
	key       []byte // signs request states
	started   time.Time

	mu       sync.Mutex
	sessions map[*session]struct{}
}

// New makes a server. It panics on a version that it does not speak: check
// configuration against [Versions] first.
func New(o Options) *Server {
	if o.Calls <= 0 {
		o.Calls = 4
	}
	if o.PageSize <= 0 {
		o.PageSize = 100
	}
	if o.MaxLine <= 0 {
		o.MaxLine = defaultMaxLine
	}
	if o.Drain <= 0 {
		o.Drain = 2 * time.Second
	}
	if o.Log == nil {
		o.Log = func(string, ...any) {}
	}
	if o.Versions == nil {
		o.Versions = Versions()
	}
	s := &Server{o: o, key: make([]byte, 32), started: time.Now(), sessions: map[*session]struct{}{}}
	for _, v := range o.Versions {
		if !slices.Contains(Versions(), v) {
			panic(fmt.Sprintf("mcp: protocol version %q is not one of %v", v, Versions()))
		}
	}
	for _, v := range Versions() {
		switch {
		case !slices.Contains(o.Versions, v):
		case v == version2026:
			s.modern = append(s.modern, v)
		default:
			s.legacy = append(s.legacy, v)
		}
	}
	rand.Read(s.key) // never fails since Go 1.24
	return s
}

// offered lists all versions for an error's data.supported.
func (s *Server) offered() []string { return append(slices.Clone(s.modern), s.legacy...) }

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9_]{2,47}$`) // dots are legal in MCP but break three clients; 64 with a client's prefix

// mustName panics on a name that some client would reject, or that is taken.
func mustName(kind, name string, taken bool) {
	if !nameForm.MatchString(name) {
		panic(fmt.Sprintf("mcp: %s name %q does not match %s", kind, name, nameForm))
	}
	if taken {
		panic(fmt.Sprintf("mcp: %s %q is there already", kind, name))
	}
}

// capabilities declares what is served, and nothing else.
func (s *Server) capabilities(version string) map[string]any {
	c := map[string]any{}
	if len(s.tools) > 0 {
		c["tools"] = map[string]any{"listChanged": true}
	}
	if s.hasResources() {
		c["resources"] = map[string]any{"subscribe": true, "listChanged": true}
	}
	if len(s.prompts) > 0 {
		c["prompts"] = map[string]any{"listChanged": true}
	}
	if version != version2024 && s.completes() {
		c["completions"] = map[string]any{}
	}
	return c
}

func (s *Server) hasResources() bool { return len(s.resources)+len(s.templates) > 0 }

func (s *Server) completes() bool {
	return slices.ContainsFunc(s.prompts, func(p *Prompt) bool { return p.Complete != nil }) ||
		slices.ContainsFunc(s.templates, func(t *template) bool { return t.Complete != nil })
}

// The lifetimes that 2026-07-28 wants on lists and readings. A change
// notification makes a list stale at once.
const listTTL = 5 * time.Minute

// modernize adds the fields that every 2026-07-28 result carries.
func (s *Server) modernize(method string, res map[string]any) {
	if res["resultType"] == nil {
		res["resultType"] = "complete"
	}
	meta, _ := res["_meta"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta[metaServer] = s.o.Info
	res["_meta"] = meta
	if res["resultType"] != "complete" {
		return
	}
	switch method {
	case "server/discover", "prompts/list", "resources/list", "resources/templates/list":
		res["ttlMs"], res["cacheScope"] = listTTL.Milliseconds(), "public"
	case "tools/list": // depends on the caller's rights
		res["ttlMs"], res["cacheScope"] = listTTL.Milliseconds(), "private"
	case "resources/read": // live readings
		res["ttlMs"], res["cacheScope"] = 0, "private"
	}
}

// incident logs a fault of ours under an id and makes the answer that carries
// it. The answer tells nothing of the inside.
func (s *Server) incident(what string, cause any, kv ...any) *Error {
	id := rand.Text()[:10]
	s.o.Log("mcp: "+what, append([]any{"incident", id, "cause", cause}, kv...)...)
	return errorf(CodeInternal, "internal error, incident %s: the station's log has the details under this id", id)
}

// guard runs one handler; a panic in it becomes an incident and the session
// goes on.
func (s *Server) guard(method string, run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = s.incident("panic in "+method, r, "stack", string(debug.Stack()))
		}
	}()
	return run()
}

// ResourceUpdated tells every subscriber of a resource, in either era, that it
// has changed. It never blocks; a client that has not yet been told of the last
// change is told once.
func (s *Server) ResourceUpdated(uri string) {
	s.each(func(ss *session) { ss.changed("", uri) })
}

// ListChanged tells the clients that a list is not what it was; kind is tools,
// resources or prompts. Call it only when the set really changes. It never
// blocks.
func (s *Server) ListChanged(kind string) {
	switch kind {
	case "tools", "resources", "prompts":
		s.each(func(ss *session) { ss.changed(kind, "") })
	default:
		panic(fmt.Sprintf("mcp: no list is named %q", kind))
	}
}

func (s *Server) each(tell func(*session)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for ss := range s.sessions {
		tell(ss)
	}
}

// A page is one part of a list. The cursor is opaque to clients and checked
// against the list that it was made for.
func (s *Server) page(key string, rq *request, items []json.RawMessage) (map[string]any, error) {
	from := 0
	if raw, ok := rq.params.get("cursor"); ok {
		c, isText := text(raw)
		if from = cursorIndex(key, c); !isText || from <= 0 || from >= len(items) {
			return nil, errorf(CodeParams, "invalid cursor: start again without one")
		}
	}
	res := map[string]any{}
	if end := from + s.o.PageSize; end < len(items) {
		items = items[:end]
		res["nextCursor"] = cursor(key, end)
	}
	res[key] = append([]json.RawMessage{}, items[from:]...) // [] and never null
	return res, nil
}

// mustEncode makes the listing of an item once, at the start.
func mustEncode(v any) json.RawMessage {
	b, err := encode(v)
	if err != nil {
		panic(fmt.Sprintf("mcp: %v", err))
	}
	return b
}

// Serve runs one session and returns when it is over: nil after the end of
// input or when ctx is done, else why the stream failed. Requests that were
// accepted are answered first, for at most Options.Drain. When r or w is an
// io.Closer, Serve closes it, so that no goroutine of it stays behind.
func (s *Server) Serve(ctx context.Context, r io.Reader, w io.Writer, o SessionOptions) error {
	return newSession(s, o).serve(ctx, r, w)
}

func (s *Server) enter(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions[ss] = struct{}{}
}

func (s *Server) leave(ss *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, ss)
}
