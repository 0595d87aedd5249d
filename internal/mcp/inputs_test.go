package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// asking is a server whose one tool asks before it runs.
func asking(record func(string)) *Server {
	s := New(Options{Info: Info{Name: "asking", Version: "1"}})
	s.AddTool(Tool{Name: "ask_first", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"additionalProperties":false}`),
		Handle: func(_ context.Context, c *Call) (*Result, error) {
			if c.State == "asked" && c.Responses["sure"] != nil {
				record("ran with " + string(c.Responses["sure"]))
				return &Result{Text: "done"}, nil
			}
			return &Result{Ask: &Ask{State: "asked", Requests: map[string]InputRequest{
				"sure": {Method: "elicitation/create", Params: map[string]any{"mode": "form", "message": "sure?"}}}}}, nil
		}})
	return s
}

func askFirst(id int, args, more, features string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask_first","arguments":%s,%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":%s}}}`, id, args, more, features)
}

func state(t *testing.T, answer string) string {
	t.Helper()
	var m struct {
		Result struct {
			Type  string `json:"resultType"`
			State string `json:"requestState"`
		}
	}
	if err := json.Unmarshal([]byte(answer), &m); err != nil || m.Result.Type != "input_required" || m.Result.State == "" {
		t.Fatalf("want a question with a state, got %s", answer)
	}
	return m.Result.State
}

func TestAnswersAreTiedToTheQuestion(t *testing.T) {
	const can, yes = `{"elicitation":{}}`, `"inputResponses":{"sure":{"action":"accept"}},`
	tests := []struct {
		name  string
		after time.Duration
		args  string
		edit  func(string) string
		want  string // in the answer
	}{
		{"the same call", 0, `{"n":1}`, nil, `"text":"done"`},
		{"the same call, four minutes later", 4 * time.Minute, `{"n":1}`, nil, `"text":"done"`},
		{"six minutes later", 6 * time.Minute, `{"n":1}`, nil, "older than 5m0s"},
		{"other arguments", 0, `{"n":2}`, nil, "not made by this server"},
		{"a changed state", 0, `{"n":1}`, func(s string) string { return "A" + s }, "not made by this server"},
		{"half a state", 0, `{"n":1}`, func(s string) string { s, _, _ = strings.Cut(s, "."); return s }, "not made by this server"},
		{"rubbish", 0, `{"n":1}`, func(string) string { return "!.!" }, "not made by this server"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &wire{}
				w.srv = asking(w.record)
				dial(t.Context(), w, SessionOptions{})
				w.send(askFirst(1, `{"n":1}`, "", can))
				st := state(t, one(t, w))
				time.Sleep(tt.after)
				if tt.edit != nil {
					st = tt.edit(st)
				}
				again := askFirst(2, tt.args, yes+fmt.Sprintf(`"requestState":%q,`, st), can)
				w.send(again)
				wantIn(t, one(t, w), tt.want)
				ran := len(w.ran)
				if want := strings.Contains(tt.want, "done"); (ran == 1) != want {
					t.Errorf("the tool ran %d times", ran)
				}
				w.send(again) // a state works once
				wantIn(t, one(t, w), "-32602")
				if len(w.ran) != ran {
					t.Error("the tool ran again with a used state")
				}
				w.in.Close()
				<-w.end
			})
		})
	}
}

func TestStateOfOneSessionIsNothingInAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := &wire{}, &wire{}
		srv := asking(b.record)
		a.srv, b.srv = srv, srv
		dial(t.Context(), a, SessionOptions{})
		dial(t.Context(), b, SessionOptions{})
		a.send(askFirst(1, `{}`, "", `{"elicitation":{}}`))
		st := state(t, one(t, a))
		b.send(askFirst(1, `{}`, fmt.Sprintf(`"inputResponses":{"sure":{}},"requestState":%q,`, st), `{"elicitation":{}}`))
		wantIn(t, one(t, b), "not made by this server for this session")
		a.in.Close()
		b.in.Close()
		<-a.end
		<-b.end
	})
}

func TestOnlyClientsThatCanBeAskedAreAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		w.srv = asking(w.record)
		dial(t.Context(), w, SessionOptions{})
		w.send(askFirst(1, `{}`, "", `{}`))
		wantIn(t, one(t, w), "-32021", `"requiredCapabilities":{"elicitation":{}}`)
		w.send(askFirst(2, `{}`, `"requestState":7,`, `{}`))
		wantIn(t, one(t, w), "-32602", "requestState must be string")
		w.send(askFirst(3, `{}`, `"inputResponses":[],`, `{}`))
		wantIn(t, one(t, w), "-32602", "inputResponses must be object")
		w.open("2025-11-25")
		w.send(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ask_first"}}`)
		wantIn(t, one(t, w), `"isError":true`, "cannot be asked")
		w.in.Close()
		<-w.end
	})
}
