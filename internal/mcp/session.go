package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Keys of _meta.
const (
	metaVersion  = "io.modelcontextprotocol/protocolVersion"
	metaClient   = "io.modelcontextprotocol/clientInfo"
	metaFeatures = "io.modelcontextprotocol/clientCapabilities"
	metaServer   = "io.modelcontextprotocol/serverInfo"
	metaListen   = "io.modelcontextprotocol/subscriptionId"
	metaLogLevel = "io.modelcontextprotocol/logLevel"
	metaContract = "gsd-mcp/contractVersion"
)

// SessionOptions say who is at the other end of one session. All hooks may be
// nil and must not block, except Private and Denied, which run on goroutines of
// their own.
type SessionOptions struct {
	Caller any    // handed to every handler
	ID     string // of the connection, "" for a random one

	// Private holds the methods of this session that are not MCP, by full name
	// (gsd/...). They are open only where they are given.
	Private map[string]func(ctx context.Context, c *PrivateCall) (any, error)

	// Denied answers the call of a tool that the caller does not see.
	Denied func(caller any, tool string) *Result

	// OnClient is called when the client has named itself, again when it takes
	// another name.
	OnClient func(Implementation)

	// Limit is asked before every request but ping and urgent tools. Its
	// *[Error] is the answer when the budget is spent.
	Limit func(ctx context.Context, method string) error

	// Ping is how long a client with a handshake may be idle before it is
	// pinged, 0 for never. Silent is called with true when a whole interval
	// after a ping nothing has come, and with false when something comes again.
	Ping   time.Duration
	Silent func(silent bool)
}

// A PrivateCall is one call of a method that is not MCP.
type PrivateCall struct {
	Method  string
	Params  json.RawMessage // as sent, {} when absent
	Caller  any
	Client  Implementation
	Session string // id of the connection
	Request string // JSON-RPC id as sent
	Trace   string // W3C traceparent, ""
}

// A phase is how far the handshake has come. The modern era has none, and a
// modern request never moves it.
type phase int

const (
	fresh    phase = iota
	offered        // initialize answered with another version than asked
	accepted       // initialize answered with the version asked
	ready          // notifications/initialized seen
)

// A session is the protocol's side of one connection. Requests of both eras may
// come on the same stream; each is judged on its own.
type session struct {
	conn
	o  SessionOptions
	id string

	mu       sync.Mutex // never held over anything that waits
	phase    phase
	version  string
	client   Implementation
	features object
	named    Implementation // last told to OnClient
	uris     map[string]bool
	listens  map[string]*listen
	states   map[string]time.Duration // request states that were used, until they expire
}

func newSession(s *Server, o SessionOptions) *session {
	if o.ID == "" {
		o.ID = rand.Text()[:10]
	}
	return &session{o: o, id: o.ID, uris: map[string]bool{}, listens: map[string]*listen{}, states: map[string]time.Duration{},
		conn: conn{srv: s, open: map[string]*request{}, seat: make(chan struct{}, s.o.Calls)}}
}

func (ss *session) handshaken() bool {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	return ss.phase == ready
}

// line serves one message.
func (ss *session) line(ctx context.Context, line []byte) {
	env, e := parseEnvelope(line)
	switch {
	case e != nil:
		ss.reply(env.id, nil, e)
	case env.response: // of a ping, or of nothing: we ask for nothing else
	case env.id == nil:
		ss.notification(env)
	default:
		ss.request(ctx, env)
	}
}

// notification serves a message without an id. It is never answered and starts
// nothing, whatever it holds.
func (ss *session) notification(env envelope) {
	switch env.method {
	case "notifications/initialized":
		ss.mu.Lock()
		if ss.phase == offered || ss.phase == accepted {
			ss.phase = ready
		}
		ss.mu.Unlock()
	case "notifications/cancelled":
		if env.params == nil {
			return
		}
		if p, err := split(env.params); err == nil {
			if id, ok := p.get("requestId"); ok {
				ss.cancelRequest(id)
			}
		}
	}
}

// request judges one request on the reading goroutine, so that order is kept,
// and runs it there unless it may take time.
func (ss *session) request(ctx context.Context, env envelope) {
	var rq *request
	var urgent bool
	err := ss.srv.guard(printable(env.method, maxShown), func() (err error) {
		if rq, err = ss.admit(env); err != nil {
			return err
		}
		urgent = rq.tool != nil && rq.tool.Urgent
		if !urgent && rq.method != "ping" {
			if err = ss.within(ctx, rq.method); err != nil {
				return err
			}
		}
		ctx, err = ss.begin(ctx, rq)
		return err
	})
	if err != nil {
		ss.reply(env.id, nil, err)
		return
	}
	seated := false
	switch rq.method {
	case "tools/call":
		seated = !urgent
	case "resources/read", "prompts/get", "completion/complete":
		seated = true
	case "subscriptions/listen":
	default:
		if ss.o.Private[rq.method] == nil {
			ss.execute(ctx, rq)
			return
		}
	}
	ss.wg.Add(1)
	go func() {
		defer ss.wg.Done()
		if seated {
			if err := ss.take(ctx); err != nil {
				ss.finish(ctx, rq, nil, err)
				return
			}
			defer func() { <-ss.seat }()
		}
		ss.execute(ctx, rq)
	}()
}

// within asks whether the session's budget has room for one more request.
func (ss *session) within(ctx context.Context, method string) error {
	if ss.openCount() >= maxOpen {
		return errorf(CodeInternal, "%d requests of this session are open, which is the limit: wait for answers, then repeat this one", maxOpen)
	}
	if ss.o.Limit == nil {
		return nil
	}
	return ss.o.Limit(ctx, method)
}

func (ss *session) execute(ctx context.Context, rq *request) {
	var res any
	err := ss.srv.guard(printable(rq.method, maxShown), func() (err error) {
		res, err = ss.dispatch(ctx, rq)
		return err
	})
	ss.finish(ctx, rq, res, err)
}

// finish answers a request, unless its client has cancelled it: then nothing
// more is said.
func (ss *session) finish(ctx context.Context, rq *request, res any, err error) {
	cancelled := context.Cause(ctx) == errCancelled
	line := []byte(nil)
	if !cancelled {
		line = ss.answer(rq.id, res, err)
	}
	ss.end(rq)
	if !cancelled {
		ss.out.send(line)
	}
}

// admit decides how a request is served and takes it apart. Keys that come
// twice are refused at every depth, before anything reads them.
func (ss *session) admit(env envelope) (*request, error) {
	rq := &request{id: env.id, method: env.method}
	rq.progress.ss = ss
	var meta object
	if env.params != nil {
		if path, key, dup := twice(env.params); dup {
			v := Violation{strings.TrimPrefix(path, "/arguments"), "duplicate", "has the key " + quote(key) + " twice"}
			return nil, &Error{CodeParams, "params" + path + " " + v.Message, map[string]any{"errors": []Violation{v}}}
		}
		var err error
		if rq.params, err = split(env.params); err != nil {
			return nil, errorf(CodeParams, "params %v", err)
		}
		if meta, err = rq.params.obj("_meta"); err != nil {
			return nil, errorf(CodeParams, "params/%v", err)
		}
	}
	if t, ok := meta.get("progressToken"); ok {
		if !validID(t) {
			return nil, errorf(CodeParams, "_meta/progressToken must be a string or an integer of at most %d bytes, got %s", maxID, kindOf(t))
		}
		rq.progress.token = t
	}
	if t, _ := meta.str("traceparent"); len(t) <= maxShown {
		rq.trace = printable(t, maxShown)
	}
	if rq.method == "tools/call" {
		name, _ := rq.params.str("name")
		rq.tool = ss.srv.tool(name)
	}
	if v, claims := meta.get(metaVersion); claims {
		return rq, ss.admitModern(rq, v, meta)
	}
	return rq, ss.admitLegacy(rq)
}

// admitLegacy is the gate of the handshake.
func (ss *session) admitLegacy(rq *request) error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	rq.version, rq.client, rq.features = ss.version, ss.client, ss.features
	switch {
	case rq.method == "initialize" || rq.method == "ping":
	case rq.method == "server/discover" && ss.srv.modern != nil:
		return errorf(CodeParams, "missing or invalid _meta field %q", metaVersion)
	case rq.method == "server/discover", rq.method == "subscriptions/listen":
		return noMethod(rq)
	case ss.phase == fresh:
		return errorf(CodeInvalid, "session not initialized: send initialize first, or the _meta fields of %s with every request", version2026)
	case ss.phase == offered:
		return errorf(CodeInvalid, "session not established: protocol version %s was offered; send notifications/initialized to accept it", ss.version)
	}
	return nil
}

var logLevels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// admitModern reads what every 2026-07-28 request carries.
func (ss *session) admitModern(rq *request, v json.RawMessage, meta object) (err error) {
	var ok bool
	if rq.version, ok = text(v); !ok {
		return errorf(CodeParams, "_meta field %q must be string, got %s", metaVersion, kindOf(v))
	}
	if !slices.Contains(ss.srv.modern, rq.version) {
		return ss.srv.wrongVersion(CodeWrongVersion, rq.version)
	}
	rq.modern = true
	features, ok := meta.get(metaFeatures)
	if !ok {
		return errorf(CodeParams, "missing or invalid _meta field %q", metaFeatures)
	}
	if rq.features, err = split(features); err != nil {
		return errorf(CodeParams, "missing or invalid _meta field %q: it %v", metaFeatures, err)
	}
	if c, ok := meta.get(metaClient); ok {
		if rq.client, ok = implementation(c); !ok {
			return errorf(CodeParams, "invalid _meta field %q: it must be an object with a name", metaClient)
		}
		ss.name(rq.client)
	}
	if l, ok := meta.get(metaLogLevel); ok {
		if level, _ := text(l); !slices.Contains(logLevels[:], level) {
			return errorf(CodeParams, "invalid _meta field %q: it must be one of %s", metaLogLevel, strings.Join(logLevels[:], ", "))
		}
	}
	switch rq.method {
	case "initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe":
		return errorf(CodeNoMethod, "method not found: %s was removed in %s", rq.method, rq.version)
	}
	return rq.readInputs()
}

func (s *Server) wrongVersion(code int, asked string) *Error {
	return &Error{code, "unsupported protocol version", map[string]any{"supported": s.offered(), "requested": printable(asked, maxShown)}}
}

func noMethod(rq *request) *Error {
	return errorf(CodeNoMethod, "method not found: %s", printable(rq.method, maxShown))
}

// implementation reads how a client names itself; ok is false without a name.
func implementation(raw json.RawMessage) (im Implementation, ok bool) {
	o, err := split(raw)
	if err != nil {
		return im, false
	}
	for key, to := range map[string]*string{"name": &im.Name, "title": &im.Title, "version": &im.Version} {
		s, _ := o.str(key)
		*to = printable(s, maxShown)
	}
	return im, im.Name != ""
}

// name tells the owner of the session who the client says it is.
func (ss *session) name(client Implementation) {
	ss.mu.Lock()
	news := client != ss.named
	ss.named = client
	ss.mu.Unlock()
	if news && ss.o.OnClient != nil {
		ss.o.OnClient(client)
	}
}

var dateForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// initialize is the handshake. A well-formed version that is not offered gets
// the newest that is; the gate then stays shut until the client accepts it, so
// nothing ever runs under a version that one side does not speak.
func (ss *session) initialize(rq *request) (map[string]any, error) {
	if ss.srv.legacy == nil {
		return nil, ss.srv.wrongVersion(CodeWrongVersion, "")
	}
	asked, ok := rq.params.str("protocolVersion")
	if !ok || !dateForm.MatchString(asked) {
		e := ss.srv.wrongVersion(CodeParams, asked)
		e.Message += ": initialize needs protocolVersion, a date such as " + ss.srv.legacy[0]
		e.Data.(map[string]any)["supported"] = ss.srv.legacy
		return nil, e
	}
	raw, _ := rq.params.get("capabilities")
	features, err := split(raw)
	if err != nil {
		return nil, errorf(CodeParams, "initialize: capabilities %v", err)
	}
	raw, _ = rq.params.get("clientInfo")
	client, ok := implementation(raw)
	if !ok {
		return nil, errorf(CodeParams, "initialize: clientInfo must be an object with a name")
	}
	ss.mu.Lock()
	if ss.phase != fresh {
		ss.mu.Unlock()
		return nil, errorf(CodeInvalid, "the session is initialized already")
	}
	ss.version, ss.phase = asked, accepted
	if !slices.Contains(ss.srv.legacy, asked) {
		ss.version, ss.phase = ss.srv.legacy[0], offered
	}
	ss.client, ss.features = client, features
	version := ss.version
	ss.mu.Unlock()
	ss.name(client)
	res := map[string]any{"protocolVersion": version, "capabilities": ss.srv.capabilities(version), "serverInfo": ss.srv.o.Info}
	if ss.srv.o.Instructions != "" {
		res["instructions"] = ss.srv.o.Instructions
	}
	return res, nil
}

func (ss *session) discover(rq *request) map[string]any {
	res := map[string]any{"supportedVersions": ss.srv.offered(), "capabilities": ss.srv.capabilities(rq.version)}
	if ss.srv.o.Instructions != "" {
		res["instructions"] = ss.srv.o.Instructions
	}
	return res
}

// dispatch serves one request that was admitted.
func (ss *session) dispatch(ctx context.Context, rq *request) (any, error) {
	if h := ss.o.Private[rq.method]; h != nil {
		return ss.private(ctx, rq, h)
	}
	res, err := ss.method(ctx, rq)
	if err != nil {
		return nil, err
	}
	if rq.modern {
		ss.srv.modernize(rq.method, res)
	}
	return res, nil
}

func (ss *session) method(ctx context.Context, rq *request) (map[string]any, error) {
	s := ss.srv
	switch rq.method {
	case "initialize":
		return ss.initialize(rq)
	case "ping":
		return map[string]any{}, nil
	case "server/discover":
		return ss.discover(rq), nil
	}
	has := false // the capability that a method belongs to is declared
	switch kind, _, _ := strings.Cut(rq.method, "/"); kind {
	case "tools":
		has = len(s.tools) > 0
	case "prompts":
		has = len(s.prompts) > 0
	case "resources":
		has = s.hasResources()
	case "completion":
		has = s.completes()
	case "subscriptions":
		has = true
	}
	if !has {
		return nil, noMethod(rq)
	}
	switch rq.method {
	case "tools/list":
		return s.listTools(rq, ss.o.Caller)
	case "tools/call":
		return ss.callTool(ctx, rq)
	case "resources/list":
		return s.listResources(rq)
	case "resources/templates/list":
		return s.listTemplates(rq)
	case "resources/read":
		return ss.readResource(ctx, rq)
	case "resources/subscribe":
		return ss.subscribe(rq)
	case "resources/unsubscribe":
		return ss.unsubscribe(rq)
	case "prompts/list":
		return s.listPrompts(rq)
	case "prompts/get":
		return ss.getPrompt(ctx, rq)
	case "completion/complete":
		return s.complete(ctx, rq)
	case "subscriptions/listen":
		return ss.listen(ctx, rq)
	}
	return nil, noMethod(rq)
}

func (ss *session) private(ctx context.Context, rq *request, h func(context.Context, *PrivateCall) (any, error)) (any, error) {
	params := json.RawMessage("{}")
	if rq.params != nil {
		params = join('{', '}', len(rq.params), rq.params.write)
	}
	return h(ctx, &PrivateCall{Method: rq.method, Params: params, Caller: ss.o.Caller, Client: rq.client,
		Session: ss.id, Request: string(rq.id), Trace: rq.trace})
}
