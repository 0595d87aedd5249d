package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Annotations are hints for the client's user interface. All four are always
// sent, because what is left out counts as the worst.
type Annotations struct {
	ReadOnly    bool `json:"readOnlyHint"`
	Destructive bool `json:"destructiveHint"`
	Idempotent  bool `json:"idempotentHint"`
	OpenWorld   bool `json:"openWorldHint"`
}

// A Tool is one action that a model may ask for.
type Tool struct {
	Name         string          // [a-z][a-z0-9_]{2,47}
	Title        string          // for people
	Description  string          // when to use it and when not
	InputSchema  json.RawMessage // an object that lets no unknown key through
	OutputSchema json.RawMessage // of Result.Structured, nil for none
	Annotations  Annotations
	Meta         map[string]any // _meta of the listing, nil for none

	// Urgent is for stop: the call takes no seat, no budget applies, and
	// arguments against the schema are complained of after it has run with none.
	Urgent bool

	// Visible says whether a caller may use the tool, nil for everybody. What is
	// not visible is not in the list, and calling it goes to
	// SessionOptions.Denied.
	Visible func(caller any) bool

	// Handle runs the tool. The context ends when the client cancels or goes
	// away. A refusal is a Result with IsError; an *[Error] chooses a JSON-RPC
	// code; any other error is the server's fault and becomes an incident.
	Handle func(ctx context.Context, c *Call) (*Result, error)
}

// A Call is one tools/call whose arguments the schema allows.
type Call struct {
	Tool    string
	Args    json.RawMessage // with the defaults filled in
	Caller  any             // of the session
	Client  Implementation
	Session string // id of the connection
	Request string // JSON-RPC id as sent
	Trace   string // W3C traceparent, ""
	Version string // protocol version of this request
	Modern  bool   // 2026-07-28 or later
	Inputs         // answers of the user, 2026-07-28

	progress *progress
}

// Decode reads the arguments into a struct. The schema has checked them, so an
// error here is a schema that does not fit the struct.
func (c *Call) Decode(to any) error {
	d := json.NewDecoder(strings.NewReader(string(c.Args)))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Tool, err)
	}
	return nil
}

// Progress tells the client how far the call is, if it asked to be told. done
// grows; total is 0 when unknown. At most four messages a second go out, none
// after the answer, and none waits.
func (c *Call) Progress(done, total float64, msg string) { c.progress.report(done, total, msg) }

// A Result is the answer of a tool. The content that goes out is Text, then
// Structured as JSON text, then Content. Structured also goes out as
// structuredContent on success; on an error it stays text, because clients
// check it against the output schema even then.
type Result struct {
	Text       string // short, for the model
	Structured any    // needed on success when the tool has an OutputSchema
	IsError    bool   // the station says no, or it did not work
	Content    []Content
	Ask        *Ask // instead of all this: questions to the user
}

// Content is one block of a result or a prompt, made by one of the functions
// below.
type Content struct {
	Type     string            `json:"type"`
	Text     string            `json:"text,omitempty"`
	Data     []byte            `json:"data,omitempty"` // base64 on the wire
	MIMEType string            `json:"mimeType,omitempty"`
	URI      string            `json:"uri,omitempty"`
	Name     string            `json:"name,omitempty"`
	Resource *ResourceContents `json:"resource,omitempty"`
}

// ResourceContents is a resource inside a result.
type ResourceContents struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text"`
}

// Text is a block of text.
func Text(s string) Content { return Content{Type: "text", Text: s} }

// Image is a picture.
func Image(data []byte, mimeType string) Content {
	return Content{Type: "image", Data: data, MIMEType: mimeType}
}

// Audio is a sound.
func Audio(data []byte, mimeType string) Content {
	return Content{Type: "audio", Data: data, MIMEType: mimeType}
}

// Embedded is the text of a resource.
func Embedded(uri, mimeType, text string) Content {
	return Content{Type: "resource", Resource: &ResourceContents{uri, mimeType, text}}
}

// Link points at a resource that is too long to send along.
func Link(uri, name, mimeType string) Content {
	return Content{Type: "resource_link", URI: uri, Name: name, MIMEType: mimeType}
}

type tool struct {
	Tool
	in, out *Schema
	listing json.RawMessage
}

// AddTool adds a tool. It panics on a name or a schema that will not do: both
// are mistakes in the program.
func (s *Server) AddTool(t Tool) {
	mustName("tool", t.Name, s.tool(t.Name) != nil)
	x := &tool{Tool: t}
	var err error
	if x.in, err = CompileSchema(t.InputSchema); err != nil {
		panic(fmt.Sprintf("mcp: tool %s: input %v", t.Name, err))
	}
	if where, open := x.in.open(""); open || !slices.Equal(x.in.types, []string{"object"}) {
		panic(fmt.Sprintf(`mcp: tool %s: input schema%s must be an object with "additionalProperties": false`, t.Name, where))
	}
	if t.OutputSchema != nil {
		if x.out, err = CompileSchema(t.OutputSchema); err != nil {
			panic(fmt.Sprintf("mcp: tool %s: output %v", t.Name, err))
		}
		if !slices.Equal(x.out.types, []string{"object"}) {
			panic(fmt.Sprintf("mcp: tool %s: output schema must be an object", t.Name))
		}
	}
	x.listing = mustEncode(struct {
		Name         string          `json:"name"`
		Title        string          `json:"title,omitempty"`
		Description  string          `json:"description,omitempty"`
		InputSchema  json.RawMessage `json:"inputSchema"`
		OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
		Annotations  Annotations     `json:"annotations"`
		Meta         map[string]any  `json:"_meta,omitempty"`
	}{t.Name, t.Title, t.Description, t.InputSchema, t.OutputSchema, t.Annotations, t.Meta})
	s.tools = append(s.tools, x)
}

// tool finds a tool by name, nil when there is none.
func (s *Server) tool(name string) *tool {
	for _, t := range s.tools {
		if t.Name == name {
			return t
		}
	}
	return nil
}

func (t *tool) visible(caller any) bool { return t.Visible == nil || t.Visible(caller) }

// listTools depends on the caller and on nothing else, in a stable order.
func (s *Server) listTools(rq *request, caller any) (map[string]any, error) {
	var list []json.RawMessage
	for _, t := range s.tools {
		if t.visible(caller) {
			list = append(list, t.listing)
		}
	}
	res, err := s.page("tools", rq, list)
	if err == nil && s.o.ContractVersion != "" {
		res["_meta"] = map[string]any{metaContract: s.o.ContractVersion}
	}
	return res, err
}

func (ss *session) callTool(ctx context.Context, rq *request) (map[string]any, error) {
	name, ok := rq.params.str("name")
	switch {
	case !ok || name == "":
		return nil, errorf(CodeParams, "tools/call needs a name, which must be string")
	case rq.tool == nil:
		return nil, errorf(CodeParams, "unknown tool: %s", printable(name, maxShown))
	case !rq.tool.visible(ss.o.Caller):
		return ss.result(rq, ss.denied(name))
	}
	args, ok := rq.params.get("arguments")
	if !ok {
		args = json.RawMessage("{}")
	}
	args, broken := rq.tool.in.Validate(args)
	if broken != nil {
		e := &Error{CodeParams, "invalid arguments for " + name + ": " + summary(broken), map[string]any{"errors": broken}}
		if rq.tool.Urgent {
			return nil, ss.anyway(ctx, rq, e)
		}
		return nil, e
	}
	if err := ss.unseal(rq, name, args); err != nil {
		return nil, err
	}
	r, err := ss.handle(ctx, rq, args)
	switch {
	case err != nil:
		return nil, err
	case r == nil:
		return nil, fmt.Errorf("tool %s gave no result", name)
	case r.Ask != nil:
		return ss.ask(rq, r.Ask, name, args)
	}
	return ss.result(rq, r)
}

func (ss *session) handle(ctx context.Context, rq *request, args json.RawMessage) (*Result, error) {
	return rq.tool.Handle(ctx, &Call{Tool: rq.tool.Name, Args: args, Caller: ss.o.Caller, Client: rq.client, Session: ss.id,
		Request: string(rq.id), Trace: rq.trace, Version: rq.version, Modern: rq.modern, Inputs: rq.inputs, progress: &rq.progress})
}

// anyway runs an urgent tool whose arguments are wrong: a model that says stop
// and adds a reason that is not in the schema means stop.
func (ss *session) anyway(ctx context.Context, rq *request, e *Error) error {
	r, err := ss.handle(ctx, rq, json.RawMessage("{}"))
	switch {
	case err != nil:
		return err
	case r == nil:
		return fmt.Errorf("tool %s gave no result", rq.tool.Name)
	}
	return &Error{e.Code, e.Message + "; it ran all the same, without arguments: " + r.Text, e.Data}
}

func (ss *session) denied(name string) *Result {
	if ss.o.Denied != nil {
		if r := ss.o.Denied(ss.o.Caller, name); r != nil {
			return r
		}
	}
	return &Result{IsError: true, Text: "you may not use " + name + ": see tools/list for what you may"}
}

// summary is the first violation in words, and how many more there are.
func summary(broken []Violation) string {
	s := "arguments" + broken[0].Path + " " + broken[0].Message
	if n := len(broken) - 1; n > 0 {
		s += fmt.Sprintf(" (and %d more, see data.errors)", n)
	}
	return s
}

// result puts a tool's answer into the form of the protocol.
func (ss *session) result(rq *request, r *Result) (map[string]any, error) {
	content := []Content{}
	if r.Text != "" {
		content = append(content, Text(r.Text))
	}
	res := map[string]any{}
	if r.Structured != nil {
		b, err := json.Marshal(r.Structured)
		if err != nil {
			return nil, ss.unfit(rq, err)
		}
		content = append(content, Text(string(b)))
		if !r.IsError && rq.version >= version0618 {
			res["structuredContent"] = json.RawMessage(b)
		}
		if !r.IsError && rq.tool.out != nil {
			if _, broken := rq.tool.out.Validate(b); broken != nil {
				return nil, ss.unfit(rq, broken)
			}
		}
	} else if rq.tool.out != nil && !r.IsError {
		return nil, ss.unfit(rq, "there is no structured content")
	}
	for _, c := range r.Content {
		switch { // blocks are a closed union that grew; errors carry text only
		case c.Type == "text":
		case r.IsError:
			continue
		case c.Type == "resource_link" && rq.version < version0618:
			c = Text(c.Name + ": " + c.URI)
		case c.Type == "audio" && rq.version < "2025-03-26":
			c = Text("(a sound, which protocol version " + rq.version + " cannot carry)")
		}
		content = append(content, c)
	}
	res["content"] = content
	if r.IsError {
		res["isError"] = true
	}
	return res, nil
}

// unfit is for an answer that breaks the tool's own promise. The tool has run,
// and the client must know that.
func (ss *session) unfit(rq *request, why any) *Error {
	e := ss.srv.incident("answer does not fit the output schema", why, "tool", rq.tool.Name)
	e.Message += "; " + rq.tool.Name + " has run, only its answer is unusable"
	return e
}
