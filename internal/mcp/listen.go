package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
)

// A listen is one open subscriptions/listen of 2026-07-28. Each has its own
// state: ending one leaves the others.
type listen struct {
	id   json.RawMessage
	want filter
}

// A filter is what a listen asked for and the server honours.
type filter struct {
	Tools     bool     `json:"toolsListChanged,omitempty"`
	Prompts   bool     `json:"promptsListChanged,omitempty"`
	Resources bool     `json:"resourcesListChanged,omitempty"`
	URIs      []string `json:"resourceSubscriptions,omitempty"`
}

// filter reads what a listen asks for, without what there is not.
func (ss *session) filter(rq *request) (f filter, err error) {
	if _, ok := rq.params.get("notifications"); !ok {
		return f, errorf(CodeParams, "subscriptions/listen needs notifications, which must be object")
	}
	n, err := rq.params.obj("notifications")
	if err != nil {
		return f, errorf(CodeParams, "%v", err)
	}
	for key, to := range map[string]*bool{"toolsListChanged": &f.Tools, "promptsListChanged": &f.Prompts, "resourcesListChanged": &f.Resources} {
		v, ok := n.get(key)
		if ok && json.Unmarshal(v, to) != nil {
			return f, errorf(CodeParams, "notifications/%s must be boolean, got %s", key, kindOf(v))
		}
	}
	if v, ok := n.get("resourceSubscriptions"); ok {
		var uris []string
		if json.Unmarshal(v, &uris) != nil || len(uris) > maxURIs {
			return f, errorf(CodeParams, "notifications/resourceSubscriptions must be array of at most %d strings, got %s", maxURIs, kindOf(v))
		}
		for _, u := range uris {
			if len(u) <= maxURI && ss.srv.hasResource(u) && !slices.Contains(f.URIs, u) {
				f.URIs = append(f.URIs, u)
			}
		}
	}
	s := ss.srv
	f.Tools, f.Prompts, f.Resources = f.Tools && len(s.tools) > 0, f.Prompts && len(s.prompts) > 0, f.Resources && s.hasResources()
	return f, nil
}

// listen holds a subscription open until the client cancels it, which is
// answered with silence, or the session ends, which is answered with a result.
func (ss *session) listen(ctx context.Context, rq *request) (map[string]any, error) {
	f, err := ss.filter(rq)
	if err != nil {
		return nil, err
	}
	meta := map[string]any{metaListen: rq.id}
	ack, err := encode(requestMessage{Version: "2.0", Method: "notifications/subscriptions/acknowledged",
		Params: map[string]any{"_meta": meta, "notifications": f}})
	if err != nil {
		return nil, err
	}
	if err := ss.out.reserve(); err != nil {
		return nil, err
	}
	ss.mu.Lock()
	if len(ss.listens) >= maxListens {
		ss.mu.Unlock()
		ss.out.release()
		return nil, errorf(CodeInternal, "%d subscriptions of this session are open, which is the limit: cancel one first", maxListens)
	}
	// Acknowledge and register under one lock: no change can come before the
	// acknowledgement, and none after it can be missed.
	ss.out.append(ack)
	ss.listens[rq.key] = &listen{rq.id, f}
	ss.mu.Unlock()
	<-ctx.Done()
	ss.unlisten(rq)
	return map[string]any{"_meta": meta}, nil
}

// unlisten ends a subscription; what is queued for it goes too.
func (ss *session) unlisten(rq *request) {
	ss.mu.Lock()
	delete(ss.listens, rq.key)
	ss.mu.Unlock()
	ss.out.drop(func(key string) bool { return strings.HasPrefix(key, changeKey(string(rq.id), "", "")) })
}

// endListens ends every subscription, each with its last answer.
func (ss *session) endListens() {
	ss.conn.mu.Lock()
	defer ss.conn.mu.Unlock()
	for _, rq := range ss.open {
		if rq.method == "subscriptions/listen" {
			rq.cancel(errListenEnd)
		}
	}
}

// subscribe serves resources/subscribe of the earlier versions.
func (ss *session) subscribe(rq *request) (map[string]any, error) {
	uri, err := rq.uri()
	if err != nil {
		return nil, err
	}
	if !ss.srv.hasResource(uri) {
		return nil, noResource(rq, uri)
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if len(ss.uris) >= maxURIs && !ss.uris[uri] {
		return nil, errorf(CodeInternal, "this session is subscribed to %d resources, which is the limit: unsubscribe from one first", maxURIs)
	}
	ss.uris[uri] = true
	return map[string]any{}, nil
}

func (ss *session) unsubscribe(rq *request) (map[string]any, error) {
	uri, err := rq.uri()
	if err != nil {
		return nil, err
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	delete(ss.uris, uri)
	return map[string]any{}, nil
}

type changeParams struct {
	URI  string         `json:"uri,omitempty"`
	Meta map[string]any `json:"_meta,omitempty"`
}

// changed tells this session's client that a list (tools, resources, prompts)
// or a resource has changed, in whichever way it asked to be told. It does not
// block, and a change that is still queued is not queued again.
func (ss *session) changed(list, uri string) {
	method := "notifications/resources/updated"
	if list != "" {
		method = "notifications/" + list + "/list_changed"
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	if list != "" && ss.phase == ready || uri != "" && ss.uris[uri] {
		var p any
		if uri != "" {
			p = changeParams{URI: uri}
		}
		ss.notify(changeKey("", list, uri), method, p)
	}
	for _, l := range ss.listens {
		if l.want.covers(list, uri) {
			ss.notify(changeKey(string(l.id), list, uri), method, changeParams{uri, map[string]any{metaListen: l.id}})
		}
	}
}

// changeKey names a change in the queue; id is that of the listen as sent, "" for
// the earlier versions. It holds no line break, so no key is the beginning of
// another listen's.
func changeKey(id, list, uri string) string { return "changed " + id + "\n" + list + uri }

func (f *filter) covers(list, uri string) bool {
	switch list {
	case "tools":
		return f.Tools
	case "prompts":
		return f.Prompts
	case "resources":
		return f.Resources
	}
	return slices.Contains(f.URIs, uri)
}
