package mcp

import (
	"context"
	"slices"
	"strings"
)

const (
	maxPromptArg   = 1024 // bytes
	maxCompletions = 100  // the protocol's bound
)

// A Prompt is a text that a person picks and a model reads.
type Prompt struct {
	Name        string           `json:"name"` // [a-z][a-z0-9_]{2,47}
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []PromptArgument `json:"arguments,omitempty"`

	// Get makes the messages. args holds only declared arguments, the required
	// ones for certain.
	Get func(ctx context.Context, caller any, args map[string]string) ([]Message, error) `json:"-"`
	// Complete lists values of an argument that start with prefix, nil for no
	// completion. known holds the arguments that are filled in already.
	Complete func(ctx context.Context, argument, prefix string, known map[string]string) []string `json:"-"`
	// Ask may put questions to the user first (2026-07-28); nil or a nil answer
	// goes on.
	Ask func(in Inputs) *Ask `json:"-"`
}

// A PromptArgument is one blank in a prompt; all are strings.
type PromptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

// A Message is one turn of a prompt.
type Message struct {
	Role    string  `json:"role"` // user or assistant
	Content Content `json:"content"`
}

// AddPrompt adds a prompt. It panics on a name that will not do.
func (s *Server) AddPrompt(p Prompt) {
	mustName("prompt", p.Name, s.prompt(p.Name) != nil)
	s.prompts = append(s.prompts, &p)
}

func (s *Server) prompt(name string) *Prompt {
	for _, p := range s.prompts {
		if p.Name == name {
			return p
		}
	}
	return nil
}

func (s *Server) listPrompts(rq *request) (map[string]any, error) {
	return s.page("prompts", rq, listing(s.prompts))
}

func (ss *session) getPrompt(ctx context.Context, rq *request) (map[string]any, error) {
	name, ok := rq.params.str("name")
	if !ok || name == "" {
		return nil, errorf(CodeParams, "prompts/get needs a name, which must be string")
	}
	p := ss.srv.prompt(name)
	if p == nil {
		return nil, errorf(CodeParams, "unknown prompt: %s", printable(name, maxShown))
	}
	args, err := p.arguments(rq)
	if err != nil {
		return nil, err
	}
	if p.Ask != nil {
		if err := ss.unseal(rq, name, nil); err != nil {
			return nil, err
		}
		if a := p.Ask(rq.inputs); a != nil {
			return ss.ask(rq, a, name, nil)
		}
	}
	msgs, err := p.Get(ctx, ss.o.Caller, args)
	if err != nil {
		return nil, err
	}
	res := map[string]any{"messages": append([]Message{}, msgs...)}
	if p.Description != "" {
		res["description"] = p.Description
	}
	return res, nil
}

func (p *Prompt) arguments(rq *request) (map[string]string, error) {
	raw, err := rq.params.obj("arguments")
	if err != nil {
		return nil, errorf(CodeParams, "%v", err)
	}
	args, err := strMap(raw)
	if err != nil {
		return nil, errorf(CodeParams, "arguments/%v", err)
	}
	names := make([]string, len(p.Arguments))
	for i, a := range p.Arguments {
		names[i] = a.Name
		if a.Required && args[a.Name] == "" {
			return nil, errorf(CodeParams, "prompt %s: missing required argument %q", p.Name, a.Name)
		}
		if n := len(args[a.Name]); n > maxPromptArg {
			return nil, errorf(CodeParams, "prompt %s: argument %q must have at most %d bytes, got %d", p.Name, a.Name, maxPromptArg, n)
		}
	}
	for _, m := range raw {
		if !slices.Contains(names, m.key) {
			return nil, errorf(CodeParams, "prompt %s: unknown argument %s; known are %s", p.Name, quote(m.key), strings.Join(names, ", "))
		}
	}
	return args, nil
}

// complete serves completion/complete.
func (s *Server) complete(ctx context.Context, rq *request) (map[string]any, error) {
	ref, err := rq.params.obj("ref")
	if err != nil {
		return nil, errorf(CodeParams, "%v", err)
	}
	arg, err := rq.params.obj("argument")
	if err != nil {
		return nil, errorf(CodeParams, "%v", err)
	}
	name, ok := arg.str("name")
	prefix, ok2 := arg.str("value")
	if !ok || !ok2 || name == "" || len(prefix) > maxPromptArg {
		return nil, errorf(CodeParams, "completion/complete needs argument.name and argument.value, which must be strings, the value of at most %d bytes", maxPromptArg)
	}
	known, err := rq.known()
	if err != nil {
		return nil, errorf(CodeParams, "context/arguments/%v", err)
	}
	values, err := s.completions(ctx, ref, name, prefix, known)
	if err != nil {
		return nil, err
	}
	total := len(values)
	if total > maxCompletions {
		values = values[:maxCompletions]
	}
	return map[string]any{"completion": map[string]any{
		"values": append([]string{}, values...), "total": total, "hasMore": total > len(values)}}, nil
}

// known reads the arguments that the client has filled in already.
func (rq *request) known() (map[string]string, error) {
	c, err := rq.params.obj("context")
	if err != nil {
		return nil, err
	}
	args, err := c.obj("arguments")
	if err != nil {
		return nil, err
	}
	return strMap(args)
}

func (s *Server) completions(ctx context.Context, ref object, name, prefix string, known map[string]string) ([]string, error) {
	kind, _ := ref.str("type")
	switch kind {
	case "ref/prompt":
		id, _ := ref.str("name")
		p := s.prompt(id)
		if p == nil {
			return nil, errorf(CodeParams, "unknown prompt: %s", printable(id, maxShown))
		}
		if p.Complete == nil || !slices.ContainsFunc(p.Arguments, func(a PromptArgument) bool { return a.Name == name }) {
			return nil, nil
		}
		return p.Complete(ctx, name, prefix, known), nil
	case "ref/resource":
		id, _ := ref.str("uri")
		for _, t := range s.templates {
			if t.URITemplate != id {
				continue
			}
			if t.Complete == nil || t.variable != name {
				return nil, nil
			}
			return t.Complete(ctx, prefix), nil
		}
		return nil, errorf(CodeParams, "unknown resource template: %s", printable(id, maxShown))
	}
	return nil, errorf(CodeParams, "ref/type must be ref/prompt or ref/resource, got %s", quote(kind))
}
