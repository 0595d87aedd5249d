package door

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/unit"
)

// modernVersion is the stateless protocol: one request, one answer, no
// handshake before it.
const modernVersion = "2026-07-28"

// A Client is the commands' way to the daemon: the same tools, gate and audit
// as everyone's, and the private methods as far as the caller's role goes. It
// is safe for concurrent use.
type Client struct {
	conn net.Conn
	name string // of this program

	mu      sync.Mutex // not held over I/O
	next    int
	waiting map[string]chan answer
	updates map[string][]chan struct{} // by resource
	acks    map[string]chan []string   // of listen requests, by id: the resources that are honoured
	dead    error                      // not nil: nothing comes any more, and why
	legacy  bool                       // the daemon offers no modern version: after a handshake

	hands chan struct{} // one place: who does the handshake
	done  chan struct{} // closed when the reader has ended
}

// An answer is a response as sent.
type answer struct {
	result json.RawMessage
	err    *RPCError
}

// An RPCError is an error answer of the daemon to a request.
type RPCError struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data"`
}

// Error is the message, fit to be shown.
func (e *RPCError) Error() string {
	return fmt.Sprintf("%s (%d)", unit.Printable(e.Message, 2000), e.Code)
}

// errConnectionEnded is what a call gets when the daemon goes away under it.
var errConnectionEnded = errors.New("the station closed the connection without an answer; see: gsd-mcp health")

// Dial connects to the daemon. program names the caller in the audit, as in
// "gsd-mcp 1.2.0"; it gives no rights. The error is an *UnreachableError when
// no daemon answers.
func Dial(ctx context.Context, socket, program string) (*Client, error) {
	conn, err := dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	return NewClient(conn, program), nil
}

// NewClient speaks through a connection that is there already. Close it through
// the client.
func NewClient(conn net.Conn, program string) *Client {
	c := &Client{conn: conn, name: program, waiting: map[string]chan answer{}, updates: map[string][]chan struct{}{}, acks: map[string]chan []string{},
		hands: make(chan struct{}, 1), done: make(chan struct{})}
	go c.read()
	return c
}

// Close ends the connection; open calls fail.
func (c *Client) Close() error {
	err := c.conn.Close()
	<-c.done
	return err
}

// read hands out what comes until the connection ends.
func (c *Client) read() {
	defer close(c.done)
	in := bufio.NewReaderSize(c.conn, 64<<10)
	why := errConnectionEnded
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		m := peek(line)
		if refused := m.refusal(); refused != nil {
			why = refused
			break
		}
		switch {
		case m.response():
			c.answered(m)
		case m.method == "notifications/resources/updated":
			c.updated(plainString(param(m.params, "uri")))
		case m.method == "notifications/subscriptions/acknowledged":
			c.acknowledged(m.params)
		case m.method == "ping" && m.id != nil:
			c.conn.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`+"\n", m.id))
		}
	}
	c.conn.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dead = why
	for _, w := range c.waiting {
		close(w)
	}
	for _, list := range c.updates {
		for _, u := range list {
			close(u)
		}
	}
	c.waiting, c.updates, c.acks = nil, nil, nil
}

func (c *Client) answered(m message) {
	c.mu.Lock()
	w := c.waiting[string(m.id)]
	delete(c.waiting, string(m.id))
	delete(c.acks, string(m.id))
	c.mu.Unlock()
	if w == nil {
		return // given up
	}
	a := answer{result: bytes.Clone(m.result)}
	if m.failure != nil {
		a.err = &RPCError{}
		if err := json.Unmarshal(m.failure, a.err); err != nil {
			a.err = &RPCError{Code: codeInternal, Message: "an error answer that cannot be read"}
		}
	}
	w <- a // has room for it
}

// call makes one request and waits for its answer. Where the daemon is
// configured without the modern version, it does the handshake and asks again:
// a request of a version that is not offered has not been run.
func (c *Client) call(ctx context.Context, method string, params map[string]any) (json.RawMessage, error) {
	c.mu.Lock()
	legacy := c.legacy
	c.mu.Unlock()
	result, err := c.ask(ctx, method, params, !legacy)
	var e *RPCError
	if legacy || !errors.As(err, &e) || e.Code != codeBadVersion {
		return result, err
	}
	if err := c.handshake(ctx, e); err != nil {
		return nil, err
	}
	return c.ask(ctx, method, params, false)
}

// handshake opens the newest version that the daemon offers to clients of the
// older kind.
func (c *Client) handshake(ctx context.Context, e *RPCError) error {
	var data struct {
		Supported []string `json:"supported"`
	}
	if err := json.Unmarshal(e.Data, &data); err != nil || len(data.Supported) == 0 {
		return e
	}
	select {
	case c.hands <- struct{}{}:
		defer func() { <-c.hands }()
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	done := c.legacy
	c.mu.Unlock()
	if done { // by another call
		return nil
	}
	_, err := c.ask(ctx, "initialize", map[string]any{"protocolVersion": slices.Max(data.Supported), "capabilities": map[string]any{},
		"clientInfo": c.info()}, false)
	if err != nil {
		return fmt.Errorf("open the session: %w", err)
	}
	c.mu.Lock()
	c.legacy = true
	c.mu.Unlock()
	return c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
}

// info names this program.
func (c *Client) info() map[string]any {
	name, version, _ := strings.Cut(c.name, " ")
	return map[string]any{"name": name, "version": version}
}

// ask sends one request and waits.
func (c *Client) ask(ctx context.Context, method string, params map[string]any, modern bool) (json.RawMessage, error) {
	wait, id, err := c.send(method, params, modern)
	if err != nil {
		return nil, err
	}
	select {
	case a, ok := <-wait:
		switch {
		case !ok:
			return nil, c.why()
		case a.err != nil:
			return nil, a.err
		}
		return a.result, nil
	case <-ctx.Done():
		c.forget(id)
		return nil, fmt.Errorf("wait for the answer to %s: %w", method, ctx.Err())
	}
}

// send writes one request; its answer comes through the channel, which is
// closed when the connection ends. ack, if given, is for a listen request.
func (c *Client) send(method string, params map[string]any, modern bool, ack ...chan []string) (<-chan answer, string, error) {
	full := map[string]any{}
	for k, v := range params {
		full[k] = v
	}
	if modern {
		full["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernVersion,
			"io.modelcontextprotocol/clientInfo":         c.info(),
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	wait := make(chan answer, 1)
	c.mu.Lock()
	if c.dead != nil {
		c.mu.Unlock()
		return nil, "", c.dead
	}
	c.next++
	id := strconv.Itoa(c.next)
	c.waiting[id] = wait
	for _, a := range ack {
		c.acks[id] = a
	}
	c.mu.Unlock()
	err := c.write(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "method": method, "params": full})
	if err != nil {
		// The reader may have got the reason before the connection broke.
		<-c.done
		return nil, "", c.why()
	}
	return wait, id, nil
}

// write sends one message with one write, which the connection does not split.
func (c *Client) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	_, err = c.conn.Write(append(line, '\n'))
	return err
}

// forget gives a request up and tells the daemon.
func (c *Client) forget(id string) {
	c.mu.Lock()
	delete(c.waiting, id)
	delete(c.acks, id)
	c.mu.Unlock()
	c.write(map[string]any{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": map[string]any{"requestId": json.RawMessage(id)}})
}

func (c *Client) why() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}

// A ToolResult is what a tool answered.
type ToolResult struct {
	Text    string          // the text for people; of a refusal the sentence
	JSON    json.RawMessage // the structured content; of a refusal its JSON; nil when there is none
	IsError bool
	Refusal *safety.Refusal // not nil: the station said no, and why
	Raw     json.RawMessage // the whole result
}

// CallTool calls a tool with args, a struct or a map, nil for none. A refusal
// is a result, not an error. An *RPCError is a fault in the arguments (-32602)
// or of the station (-32603).
func (c *Client) CallTool(ctx context.Context, name string, args any) (*ToolResult, error) {
	if args == nil {
		args = map[string]any{}
	}
	encoded, err := json.Marshal(args)
	if err != nil {
		return nil, fmt.Errorf("encode the arguments of %s: %w", name, err)
	}
	raw, err := c.call(ctx, "tools/call", map[string]any{"name": name, "arguments": json.RawMessage(encoded)})
	if err != nil {
		return nil, err
	}
	var res struct {
		Content []struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return nil, fmt.Errorf("read the result of %s: %w", name, err)
	}
	t := &ToolResult{JSON: res.Structured, IsError: res.IsError, Raw: raw}
	for _, block := range res.Content {
		if block.Type != "text" {
			continue
		}
		if r := parseRefusal([]byte(block.Text)); t.IsError && r != nil {
			t.Refusal, t.JSON = r, json.RawMessage(block.Text)
		} else if t.Text == "" {
			t.Text = block.Text
		}
	}
	return t, nil
}

// parseRefusal reads the JSON of a refusal; nil when it is none.
func parseRefusal(b []byte) *safety.Refusal {
	var head struct {
		Refused bool           `json:"refused"`
		Code    safety.Code    `json:"code"`
		Why     string         `json:"why"`
		Fix     string         `json:"fix"`
		Limits  map[string]any `json:"limits"`
		Nearest *unit.AzEl     `json:"nearest_allowed"`
	}
	if json.Unmarshal(b, &head) != nil || !head.Refused || head.Code == "" {
		return nil
	}
	r := &safety.Refusal{Code: head.Code, Why: head.Why, Fix: head.Fix, Limits: head.Limits, Nearest: head.Nearest}
	if json.Unmarshal(b, &r.Extra) == nil {
		for _, known := range []string{"refused", "code", "why", "fix", "limits", "nearest_allowed"} {
			delete(r.Extra, known)
		}
	}
	return r
}

// Private calls a private method of the door (gsd/...). A *safety.Refusal says
// that the caller may not, or the station will not.
func (c *Client) Private(ctx context.Context, method string, params any) (json.RawMessage, error) {
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("encode the parameters of %s: %w", method, err)
	}
	var full map[string]any
	if err := json.Unmarshal(encoded, &full); err != nil {
		return nil, fmt.Errorf("the parameters of %s must be an object: %w", method, err)
	}
	result, err := c.call(ctx, method, full)
	var e *RPCError
	if errors.As(err, &e) {
		if r := parseRefusal(e.Data); r != nil {
			return nil, r
		}
	}
	return result, err
}

// A Tool is one row of the daemon's list, as far as a person wants to see it.
type Tool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// ListTools lists what this caller may use.
func (c *Client) ListTools(ctx context.Context) ([]Tool, error) {
	var tools []Tool
	params := map[string]any{}
	for {
		raw, err := c.call(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []Tool `json:"tools"`
			Next  string `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("read the list of tools: %w", err)
		}
		tools = append(tools, page.Tools...)
		if page.Next == "" {
			return tools, nil
		}
		params["cursor"] = page.Next
	}
}

// ReadResource reads a resource and returns its first text and the type of it.
func (c *Client) ReadResource(ctx context.Context, uri string) (text, mimeType string, err error) {
	raw, err := c.call(ctx, "resources/read", map[string]any{"uri": uri})
	if err != nil {
		return "", "", err
	}
	var res struct {
		Contents []struct {
			MIMEType string `json:"mimeType"`
			Text     string `json:"text"`
		} `json:"contents"`
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		return "", "", fmt.Errorf("read the resource %s: %w", uri, err)
	}
	if len(res.Contents) == 0 {
		return "", "", fmt.Errorf("the resource %s has no content", uri)
	}
	return res.Contents[0].Text, res.Contents[0].MIMEType, nil
}
