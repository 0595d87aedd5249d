package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ErrNotFound is what a Read returns for an object that does not exist.
var ErrNotFound = errors.New("resource not found")

const maxURI = 2048 // bytes

// A Resource is a document that clients read and subscribe to.
type Resource struct {
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`

	// Read returns the document as it is now.
	Read func(ctx context.Context, caller any) (text string, err error) `json:"-"`
	// Binary says that the text is bytes, to be sent as base64.
	Binary bool `json:"-"`
}

// A Template is a family of resources with one variable in the address, which
// stands for one path segment.
type Template struct {
	URITemplate string `json:"uriTemplate"` // such as station://passes/{norad_id}
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	MIMEType    string `json:"mimeType,omitempty"`

	// Read returns the document for a value of the variable, or ErrNotFound. The
	// value is text from outside.
	Read func(ctx context.Context, caller any, value string) (text string, err error) `json:"-"`
	// Complete lists values that start with prefix, nil for no completion.
	Complete func(ctx context.Context, prefix string) []string `json:"-"`
}

type template struct {
	Template
	variable       string
	prefix, suffix string
}

// AddResource adds a resource. It panics on an address that is taken.
func (s *Server) AddResource(r Resource) {
	if _, err := url.Parse(r.URI); err != nil || r.URI == "" || s.hasResource(r.URI) {
		panic(fmt.Sprintf("mcp: resource %q: the address is taken or is none", r.URI))
	}
	s.resources = append(s.resources, &r)
}

// AddTemplate adds a family of resources. It panics unless the template has
// exactly one {variable}.
func (s *Server) AddTemplate(t Template) {
	prefix, rest, ok := strings.Cut(t.URITemplate, "{")
	variable, suffix, ok2 := strings.Cut(rest, "}")
	if !ok || !ok2 || variable == "" || strings.ContainsAny(suffix, "{}") {
		panic(fmt.Sprintf("mcp: template %q must have exactly one {variable}", t.URITemplate))
	}
	s.templates = append(s.templates, &template{t, variable, prefix, suffix})
}

// match returns the variable's value when the address is one of the template's.
func (t *template) match(uri string) (value string, ok bool) {
	if len(uri) <= len(t.prefix)+len(t.suffix) || !strings.HasPrefix(uri, t.prefix) || !strings.HasSuffix(uri, t.suffix) {
		return "", false
	}
	value = uri[len(t.prefix) : len(uri)-len(t.suffix)]
	if strings.ContainsAny(value, "/?#") {
		return "", false
	}
	value, err := url.PathUnescape(value)
	return value, err == nil
}

// A reading finds what an address stands for: a function that reads it, nil
// when nothing has this address.
type reading struct {
	mimeType string
	binary   bool
	read     func(ctx context.Context, caller any) (string, error)
}

func (s *Server) find(uri string) *reading {
	for _, r := range s.resources {
		if r.URI == uri {
			return &reading{r.MIMEType, r.Binary, r.Read}
		}
	}
	for _, t := range s.templates {
		if value, ok := t.match(uri); ok {
			return &reading{t.MIMEType, false, func(ctx context.Context, caller any) (string, error) {
				return t.Read(ctx, caller, value)
			}}
		}
	}
	return nil
}

func (s *Server) hasResource(uri string) bool { return s.find(uri) != nil }

func (s *Server) listResources(rq *request) (map[string]any, error) {
	return s.page("resources", rq, listing(s.resources))
}

func (s *Server) listTemplates(rq *request) (map[string]any, error) {
	return s.page("resourceTemplates", rq, listing(s.templates))
}

func listing[T any](items []T) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, it := range items {
		out[i] = mustEncode(it)
	}
	return out
}

// uri reads the one parameter of the resource methods.
func (rq *request) uri() (string, error) {
	u, ok := rq.params.str("uri")
	if !ok || u == "" || len(u) > maxURI {
		return "", errorf(CodeParams, "%s needs a uri, which must be string of 1 to %d bytes", rq.method, maxURI)
	}
	return u, nil
}

func noResource(rq *request, uri string) *Error {
	code := CodeNoResource
	if rq.modern {
		code = CodeParams // 2026-07-28 took the old code away
	}
	return &Error{code, "resource not found: " + printable(uri, maxShown), map[string]any{"uri": uri}}
}

func (ss *session) readResource(ctx context.Context, rq *request) (map[string]any, error) {
	uri, err := rq.uri()
	if err != nil {
		return nil, err
	}
	r := ss.srv.find(uri)
	if r == nil {
		return nil, noResource(rq, uri)
	}
	text, err := r.read(ctx, ss.o.Caller)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, noResource(rq, uri)
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", uri, err)
	}
	c := map[string]any{"uri": uri}
	if r.mimeType != "" {
		c["mimeType"] = r.mimeType
	}
	if r.binary {
		c["blob"] = []byte(text)
	} else {
		c["text"] = text
	}
	return map[string]any{"contents": []any{c}}, nil
}

// Cursors of lists: which list, and where in it.

func cursor(list string, index int) string {
	return base64.RawURLEncoding.EncodeToString([]byte(list + ":" + strconv.Itoa(index)))
}

// cursorIndex is -1 for a cursor that is not one of this list.
func cursorIndex(list, cursor string) int {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	digits, ok := strings.CutPrefix(string(b), list+":")
	n, err2 := strconv.Atoi(digits)
	if err != nil || err2 != nil || !ok {
		return -1
	}
	return n
}
