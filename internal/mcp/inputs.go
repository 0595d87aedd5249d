package mcp

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"
)

// Questions to the user in the middle of a call (2026-07-28). Asking is a
// convenience and no boundary: a client may answer by itself.

// Inputs is what a repeated call brings back.
type Inputs struct {
	Responses map[string]json.RawMessage // by the key of the request, as sent: check them like arguments
	State     string                     // what Ask.State was; the server has checked that it is ours, unused and fresh
	Features  []string                   // what the client declared: elicitation, sampling, roots
}

// An Ask stops a call until the client comes back with answers. A client of an
// earlier version is told that it cannot be asked.
type Ask struct {
	Requests map[string]InputRequest
	State    string // comes back in Inputs.State
}

// An InputRequest is one question: elicitation/create, sampling/createMessage
// or roots/list.
type InputRequest struct {
	Method string `json:"method"`
	Params any    `json:"params,omitempty"`
}

const (
	stateLife = 5 * time.Minute // for a person to answer
	maxStates = 256             // used ones that a session remembers
)

// readInputs takes the answers of a repeated call from its parameters.
func (rq *request) readInputs() error {
	for _, f := range rq.features {
		rq.inputs.Features = append(rq.inputs.Features, f.key)
	}
	answers, err := rq.params.obj("inputResponses")
	if err != nil {
		return errorf(CodeParams, "%v", err)
	}
	for _, a := range answers {
		if rq.inputs.Responses == nil {
			rq.inputs.Responses = make(map[string]json.RawMessage, len(answers))
		}
		rq.inputs.Responses[a.key] = a.value
	}
	if v, ok := rq.params.get("requestState"); ok {
		if rq.inputs.State, ok = text(v); !ok {
			return errorf(CodeParams, "requestState must be string, got %s", kindOf(v))
		}
	}
	return nil
}

// ask answers a call with questions. what and args tie the state to the call.
func (ss *session) ask(rq *request, a *Ask, what string, args []byte) (map[string]any, error) {
	if !rq.modern {
		return map[string]any{"isError": true, "content": []Content{Text(
			"this needs an answer from a person, and a client of protocol version " + rq.version + " cannot be asked")}}, nil
	}
	for _, q := range a.Requests {
		feature := map[string]string{"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}[q.Method]
		if _, ok := rq.features.get(feature); !ok {
			return nil, &Error{CodeNeedsFeature, "the client must declare the capability " + feature + " for this",
				map[string]any{"requiredCapabilities": map[string]any{feature: map[string]any{}}}}
		}
	}
	return map[string]any{"resultType": "input_required", "inputRequests": a.Requests,
		"requestState": ss.seal(a.State, what, args)}, nil
}

// The state travels through the client, who may change it. It is signed
// together with the session, the call and the time, and works once.

func (ss *session) seal(state, what string, args []byte) string {
	body := binary.BigEndian.AppendUint64(nil, uint64(time.Since(ss.srv.started)+stateLife))
	body = append(body, state...)
	enc := base64.RawURLEncoding.EncodeToString
	return enc(body) + "." + enc(ss.sign(body, what, args))
}

func (ss *session) sign(body []byte, what string, args []byte) []byte {
	h := hmac.New(sha256.New, ss.srv.key)
	for _, part := range [][]byte{[]byte(ss.id), []byte(what), args, body} {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
		h.Write(part)
	}
	return h.Sum(nil)
}

// unseal checks rq.inputs.State and replaces it by what was sealed.
func (ss *session) unseal(rq *request, what string, args []byte) error {
	if rq.inputs.State == "" {
		return nil
	}
	reject := func(why string) error { return errorf(CodeParams, "requestState is not accepted: %s", why) }
	var body, mac []byte
	for i, c := range rq.inputs.State {
		if c == '.' {
			body, _ = base64.RawURLEncoding.DecodeString(rq.inputs.State[:i])
			mac, _ = base64.RawURLEncoding.DecodeString(rq.inputs.State[i+1:])
			break
		}
	}
	if len(body) < 8 || !hmac.Equal(mac, ss.sign(body, what, args)) {
		return reject("it was not made by this server for this session, method and arguments")
	}
	now, end := time.Since(ss.srv.started), time.Duration(binary.BigEndian.Uint64(body))
	if now > end {
		return reject(fmt.Sprintf("it is older than %v; call again without it", stateLife))
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for k, e := range ss.states {
		if now > e {
			delete(ss.states, k)
		}
	}
	if _, used := ss.states[string(mac)]; used {
		return reject("it was used before; call again without it")
	}
	if len(ss.states) >= maxStates {
		return reject(fmt.Sprintf("this session has used %d of them in %v; wait", maxStates, stateLife))
	}
	ss.states[string(mac)] = end
	rq.inputs.State = string(body[8:])
	return nil
}
