package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const callStop = `{"jsonrpc":"2.0","id":"stop","method":"tools/call","params":{"name":"stop_station"}}`

// session starts a bubble with one session that is open in the given version,
// or in none.
func inSession(t *testing.T, o Options, so SessionOptions, version string, f func(t *testing.T, w *wire)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &wire{}
		w.srv = station(o, w.record)
		dial(t.Context(), w, so)
		if version != "" {
			w.open(version)
		}
		f(t, w)
		w.in.Close()
		if err := <-w.end; err != nil {
			t.Errorf("Serve = %v, want nil", err)
		}
	})
}

func one(t *testing.T, w *wire) string {
	t.Helper()
	got := w.take()
	if len(got) != 1 {
		t.Fatalf("got %d messages, want one: %q", len(got), got)
	}
	return got[0]
}

func wantIn(t *testing.T, got string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(got, p) {
			t.Errorf("got %s\nwant in it %s", got, p)
		}
	}
}

func TestToolListDependsOnTheCaller(t *testing.T) {
	for caller, want := range map[string]bool{"observer": false, "operator": true} {
		inSession(t, Options{}, SessionOptions{Caller: caller}, "2025-11-25", func(t *testing.T, w *wire) {
			w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
			if got := strings.Contains(one(t, w), "secret_move"); got != want {
				t.Errorf("the %s sees secret_move: %v, want %v", caller, got, want)
			}
			w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"secret_move","arguments":{"x":1}}}`)
			if refused := strings.Contains(one(t, w), "may not use"); refused == want {
				t.Errorf("the %s is refused secret_move: %v, want %v", caller, refused, !want)
			}
		})
	}
}

func TestDeniedAnswersInTheOwnersWords(t *testing.T) {
	so := SessionOptions{Caller: "observer", Denied: func(caller any, tool string) *Result {
		return &Result{IsError: true, Text: fmt.Sprintf("%v may not %s", caller, tool), Structured: map[string]string{"code": "NOT_PERMITTED"}}
	}}
	inSession(t, Options{}, so, "2025-11-25", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"secret_move"}}`)
		wantIn(t, one(t, w), "observer may not secret_move", `{\"code\":\"NOT_PERMITTED\"}`, `"isError":true`)
		if len(w.ran) > 0 {
			t.Errorf("a denied tool ran: %v", w.ran)
		}
	})
}

func TestPrivateMethodsAreOpenOnlyWhereGiven(t *testing.T) {
	so := SessionOptions{Caller: "root", ID: "s9", Private: map[string]func(context.Context, *PrivateCall) (any, error){
		"gsd/approve": func(_ context.Context, c *PrivateCall) (any, error) {
			return map[string]string{"saw": fmt.Sprint(c.Method, " ", string(c.Params), " ", c.Caller, " ", c.Client.Name, " ", c.Session, " ", c.Request)}, nil
		},
		"gsd/fail": func(context.Context, *PrivateCall) (any, error) { panic("a secret of the inside") },
	}}
	inSession(t, Options{}, so, "", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"gsd/approve","params":{"id":"7F3A"}}`)
		wantIn(t, one(t, w), "send initialize first")
		w.open("2025-11-25")
		w.send(`{"jsonrpc":"2.0","id":1,"method":"gsd/approve","params":{"id":"7F3A"}}`)
		wantIn(t, one(t, w), `gsd/approve {\"id\":\"7F3A\"} root t s9 1`)
		w.send(`{"jsonrpc":"2.0","id":1,"method":"gsd/fail"}`)
		if got := one(t, w); !strings.Contains(got, "-32603") || strings.Contains(got, "secret") {
			t.Errorf("a panic in a private method gave %s", got)
		}
	})
	inSession(t, Options{}, SessionOptions{}, "2025-11-25", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"gsd/approve","params":{"id":"7F3A"}}`)
		wantIn(t, one(t, w), "-32601")
	})
}

func TestBudgetDoesNotHoldStop(t *testing.T) {
	so := SessionOptions{Limit: func(_ context.Context, method string) error {
		if method == "initialize" {
			return nil
		}
		return &Error{Code: CodeInternal, Message: method + ": wait 3 s"}
	}}
	inSession(t, Options{}, so, "2025-11-25", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"station_status"}}`)
		wantIn(t, one(t, w), "-32603", "tools/call: wait 3 s")
		w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		wantIn(t, one(t, w), "tools/list: wait 3 s")
		w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		wantIn(t, one(t, w), `"result":{}`)
		w.send(callStop)
		wantIn(t, one(t, w), "stopped")
	})
}

func TestStopRunsWhileTheSessionIsFull(t *testing.T) {
	inSession(t, Options{}, SessionOptions{}, "2025-11-25", func(t *testing.T, w *wire) {
		for i := range maxOpen {
			w.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"scan_noise","arguments":{"seconds":1.5}}}`, i))
		}
		w.take()
		w.send(`{"jsonrpc":"2.0","id":"more","method":"tools/list"}`)
		wantIn(t, one(t, w), "64 requests of this session are open")
		w.send(callStop)
		wantIn(t, one(t, w), "stopped")
	})
}

func TestClientsNameIsToldAndMadePrintable(t *testing.T) {
	names := make(chan string, 8)
	so := SessionOptions{OnClient: func(c Implementation) { names <- c.Name + " " + c.Version }}
	inSession(t, Options{}, so, "", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"evil\u001b[2J\u202e\nname","version":"1"}}}`)
		for range 2 {
			w.send(`{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{` + testMeta + `}}`)
		}
		w.take()
		close(names)
		var got []string
		for n := range names {
			got = append(got, n)
		}
		if want := "evil[2J name 1|t 1"; strings.Join(got, "|") != want {
			t.Errorf("OnClient was told %q, want %q", got, want)
		}
	})
}

func TestIdleClientIsPinged(t *testing.T) {
	said := make(chan bool, 8)
	so := SessionOptions{Ping: 15 * time.Second, Silent: func(s bool) { said <- s }}
	inSession(t, Options{}, so, "", func(t *testing.T, w *wire) {
		time.Sleep(time.Minute)
		if got := w.take(); len(got) > 0 {
			t.Fatalf("pinged before the handshake: %q", got)
		}
		w.open("2025-11-25")
		time.Sleep(16 * time.Second)
		wantIn(t, one(t, w), `"method":"ping"`, `"id":"gsd-ping-1"`)
		w.send(`{"jsonrpc":"2.0","id":"gsd-ping-1","result":{}}`)
		time.Sleep(14 * time.Second)
		if got := w.take(); len(got) > 0 || len(said) > 0 {
			t.Fatalf("after an answer: %q, told of silence %d times", got, len(said))
		}
		time.Sleep(17 * time.Second)
		w.take()
		if len(said) != 1 || !<-said {
			t.Fatal("one ping went unanswered and nobody was told once")
		}
		w.send(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
		w.take()
		if len(said) != 1 || <-said {
			t.Error("the client is back and nobody was told")
		}
	})
}

func TestPagesCoverAListOnce(t *testing.T) {
	inSession(t, Options{PageSize: 3}, SessionOptions{Caller: "observer"}, "2025-11-25", func(t *testing.T, w *wire) {
		var names []string
		cursor := ""
		for range 10 {
			w.send(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{` + cursor + `}}`)
			var m struct {
				Result struct {
					Tools []struct{ Name string }
					Next  string `json:"nextCursor"`
				}
			}
			if err := json.Unmarshal([]byte(one(t, w)), &m); err != nil {
				t.Fatal(err)
			}
			for _, x := range m.Result.Tools {
				names = append(names, x.Name)
			}
			if m.Result.Next == "" {
				break
			}
			cursor = fmt.Sprintf(`"cursor":%q`, m.Result.Next)
		}
		want := "station_status predict_passes point_antenna stop_station scan_noise late_progress broken_tool"
		if got := strings.Join(names, " "); got != want {
			t.Errorf("pages hold %s\nwant %s", got, want)
		}
	})
}

func TestVersionsCanBeNarrowed(t *testing.T) {
	const discover = `{"jsonrpc":"2.0","id":2,"method":"server/discover","params":{` + testMeta + `}}`
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	inSession(t, Options{Versions: []string{"2025-06-18"}}, SessionOptions{}, "", func(t *testing.T, w *wire) {
		w.send(discover)
		wantIn(t, one(t, w), "-32022", `"supported":["2025-06-18"]`)
		w.send(`{"jsonrpc":"2.0","id":2,"method":"server/discover"}`)
		wantIn(t, one(t, w), "-32601")
		w.send(initialize)
		wantIn(t, one(t, w), `"protocolVersion":"2025-06-18"`)
	})
	inSession(t, Options{Versions: []string{"2026-07-28"}}, SessionOptions{}, "", func(t *testing.T, w *wire) {
		w.send(initialize)
		wantIn(t, one(t, w), "-32022", `"supported":["2026-07-28"]`)
		w.send(`{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
		wantIn(t, one(t, w), "-32600")
		w.send(discover)
		wantIn(t, one(t, w), `"supportedVersions":["2026-07-28"]`)
	})
}

func TestMethodsOfWhatIsNotServedAreNotFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &wire{srv: New(Options{Info: Info{Name: "bare", Version: "1"}})}
		dial(t.Context(), w, SessionOptions{})
		w.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		wantIn(t, one(t, w), `"capabilities":{}`)
		for _, m := range []string{"tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/read", "resources/subscribe", "completion/complete"} {
			w.send(`{"jsonrpc":"2.0","id":1,"method":"` + m + `"}`)
			wantIn(t, one(t, w), "-32601", m)
		}
		w.in.Close()
		<-w.end
	})
}

func TestLongLinesCostLittleAndEndNothing(t *testing.T) {
	srv := station(Options{}, nil)
	in, out := io.Pipe()
	var got lines
	end := make(chan error)
	go func() { end <- srv.Serve(t.Context(), in, &got, SessionOptions{}) }()
	block := []byte(strings.Repeat("A", 1<<20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		if _, err := out.Write(block); err != nil {
			t.Fatal(err)
		}
	}
	io.WriteString(out, "\n"+`{"jsonrpc":"2.0","id":1,"method":"ping"}`+"\n")
	for _, filler := range []string{"\r", "[", `{"a":`, "9"} { // within the limit, or just over it
		io.WriteString(out, strings.Repeat(filler, (1<<20)/len(filler)+2)+"\n")
	}
	io.WriteString(out, `{"jsonrpc":"2.0","id":2,"method":"ping"}`+"\n")
	out.Close()
	if err := <-end; err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 64 {
		t.Errorf("104 MB of rubbish made the server allocate %d MB", mb)
	}
	wantIn(t, got.String(), "longer than 1048576 bytes", `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":2,"result":{}}`)
}

func TestDeepNestingIsRefusedQuickly(t *testing.T) {
	srv := station(Options{}, nil)
	in := `{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"x":` + strings.Repeat("[", 100000) + strings.Repeat("]", 100000) + "}}\n"
	for i := range 20 { // as deep as encoding/json allows, and full of keys
		in += fmt.Sprintf(`{"jsonrpc":"2.0","id":"d%d"`, i) + `,"method":"tools/call","params":{"name":"predict_passes","arguments":{"x":` +
			strings.Repeat(`{"a":1,"b":`, 9000) + "1" + strings.Repeat("}", 9000) + "}," + testMeta + "}}\n"
	}
	var wide strings.Builder // and as wide as a line allows
	for i := range 100000 {
		fmt.Fprintf(&wide, `"%d":1,`, i)
	}
	in += `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"predict_passes","arguments":{` + wide.String() + `"x":1},` + testMeta + "}}\n"
	var got lines
	start := time.Now()
	if err := srv.Serve(t.Context(), strings.NewReader(in), &got, SessionOptions{}); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("22 hostile lines took %v", d)
	}
	if n := strings.Count(got.String(), "-32602"); n != 21 || !strings.Contains(got.String(), "-32700") {
		t.Errorf("21 bad calls got %d times -32602: %.300s", n, got.String())
	}
}

// lines keeps what is written, one entry per write.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, string(p))
	return len(p), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "")
}

func TestEachAnswerIsOneWrite(t *testing.T) {
	var got lines
	in := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
` + strings.Repeat(`{"jsonrpc":"2.0","id":3,"method":"ping"}`+"\n", 500)
	if err := station(Options{}, nil).Serve(t.Context(), strings.NewReader(in), &got, SessionOptions{}); err != nil {
		t.Fatal(err)
	}
	if len(got.all) != 502 {
		t.Errorf("502 requests in one go got %d writes", len(got.all))
	}
	for _, w := range got.all {
		if strings.Count(w, "\n") != 1 || !strings.HasSuffix(w, "\n") || !json.Valid([]byte(w)) {
			t.Errorf("a write is not one message: %q", w)
		}
	}
}

func TestNothingBeforeTheFirstMessage(t *testing.T) {
	var got lines
	if err := station(Options{}, nil).Serve(t.Context(), strings.NewReader(""), &got, SessionOptions{}); err != nil || got.String() != "" {
		t.Errorf("an empty session wrote %q and ended with %v", got.String(), err)
	}
}

// A stuck is a client that reads nothing until it is closed.
type stuck struct {
	once sync.Once
	gone chan struct{}
}

func (s *stuck) Write([]byte) (int, error) { <-s.gone; return 0, os.ErrClosed }
func (s *stuck) Close() error              { s.once.Do(func() { close(s.gone) }); return nil }

func TestSlowClientHoldsUpNobodyAndIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		stops := 0
		srv := station(Options{}, func(what string) {
			mu.Lock()
			defer mu.Unlock()
			if what == "stop_station" {
				stops++
			}
		})
		in, out := io.Pipe()
		w := &stuck{gone: make(chan struct{})}
		end := make(chan error, 1)
		start := time.Now()
		go func() { end <- srv.Serve(t.Context(), in, w, SessionOptions{}) }()
		send := func(s string) { io.WriteString(out, s+"\n") }
		send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		send(`{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"station://health"}}`)
		synctest.Wait()
		for range 100000 { // a publisher must not feel the client at all
			srv.ResourceUpdated("station://health")
			srv.ListChanged("tools")
		}
		if d := time.Since(start); d != 0 {
			t.Fatalf("publishing took %v of bubble time: it waited for the client", d)
		}
		srv.mu.Lock()
		for ss := range srv.sessions {
			if n := len(ss.out.items); n > 4 {
				t.Errorf("200000 changes left %d messages in the queue, want at most 4", n)
			}
		}
		srv.mu.Unlock()
		for i := range queueLen - 3 { // up to the last place
			send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		send(callStop) // still heard
		synctest.Wait()
		mu.Lock()
		if stops != 1 {
			t.Errorf("stop ran %d times for a client that does not read, want once", stops)
		}
		mu.Unlock()
		go func() {
			for i := range 200 {
				send(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
			}
		}()
		if err := <-end; !errors.Is(err, errSlow) {
			t.Errorf("Serve = %v, want %v", err, errSlow)
		}
		if d := time.Since(start); d < stall || d > 3*stall {
			t.Errorf("the client was cut off after %v, want about %v", d, stall)
		}
	})
}

type brokenPipe struct{ after int }

func (b *brokenPipe) Write(p []byte) (int, error) {
	if b.after--; b.after < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

func TestWriteErrorCancelsEverythingAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ran []string
		srv := station(Options{}, func(s string) { ran = append(ran, s) })
		in, out := io.Pipe()
		end := make(chan error, 1)
		start := time.Now()
		go func() { end <- srv.Serve(t.Context(), in, &brokenPipe{1}, SessionOptions{}) }()
		io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"scan_noise","arguments":{"seconds":30}}}
{"jsonrpc":"2.0","id":3,"method":"ping"}
`)
		if err := <-end; !errors.Is(err, os.ErrClosed) {
			t.Errorf("Serve = %v, want the write error", err)
		}
		if d := time.Since(start); d > lastChance {
			t.Errorf("Serve took %v to end after the write error", d)
		}
		synctest.Wait()
		if len(ran) != 1 || !strings.HasPrefix(ran[0], "scan_noise") {
			t.Errorf("the running call saw %v, want its cancellation", ran)
		}
		if _, err := io.WriteString(out, "x"); err == nil {
			t.Error("the input was not closed")
		}
	})
}

func TestServeLeavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	for i := range 50 {
		srv := station(Options{Drain: 20 * time.Millisecond}, nil)
		ctx, cancel := context.WithCancel(t.Context())
		in, out := io.Pipe()
		end := make(chan error)
		go func() { end <- srv.Serve(ctx, in, &lines{}, SessionOptions{Ping: time.Hour}) }()
		io.WriteString(out, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+testMeta+`}}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"scan_noise","arguments":{"seconds":30},`+testMeta+`}}
`)
		if i%2 == 0 {
			cancel()
		} else {
			out.Close()
		}
		if err := <-end; err != nil {
			t.Fatal(err)
		}
		cancel()
		if len(srv.sessions) > 0 {
			t.Fatal("the server still has the session")
		}
	}
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines before, %d after:\n%s", before, runtime.NumGoroutine(), buf[:runtime.Stack(buf, true)])
		}
	}
}

func TestHandlerThatIgnoresItsContextDoesNotHoldTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logged []string
		srv := New(Options{Log: func(msg string, _ ...any) { logged = append(logged, msg) }})
		free := make(chan struct{})
		srv.AddTool(Tool{Name: "deaf_tool", InputSchema: json.RawMessage(`{"type":"object","additionalProperties":false}`),
			Handle: func(context.Context, *Call) (*Result, error) { <-free; return &Result{Text: "late"}, nil }})
		w := &wire{srv: srv}
		dial(t.Context(), w, SessionOptions{})
		w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deaf_tool",` + testMeta + `}}`)
		synctest.Wait()
		w.in.Close()
		start := time.Now()
		<-w.end
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("Serve ended %v after the input, want the drain of 2 s and 1 s more", d)
		}
		if len(logged) != 1 {
			t.Errorf("logged %q, want one line about the handler", logged)
		}
		close(free)
	})
}

func TestIncidentIsInTheLogUnderItsID(t *testing.T) {
	var log strings.Builder
	o := Options{Log: func(msg string, kv ...any) { fmt.Fprintln(&log, append([]any{msg}, kv...)...) }}
	inSession(t, o, SessionOptions{}, "2025-11-25", func(t *testing.T, w *wire) {
		w.send(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"broken_tool","arguments":{"how":"panic"}}}`)
		id := strings.TrimPrefix(incidentID.FindString(one(t, w)), "incident ")
		wantIn(t, log.String(), "incident "+id, "a secret of the inside", "station_test.go")
	})
}

func TestNamesThatClientsReject(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","additionalProperties":false}`)
	for _, tt := range []struct{ name, schema string }{
		{"rotator.slew", string(schema)},
		{"Rotator", string(schema)},
		{"ab", string(schema)},
		{"station_status", string(schema)}, // taken
		{"open_schema", `{"type":"object"}`},
		{"open_inside", `{"type":"object","properties":{"o":{"type":"object"}},"additionalProperties":false}`},
		{"no_object", `{"type":"string"}`},
		{"unknown_keyword", `{"type":"object","additionalProperties":false,"oneOf":[]}`},
		{"no_json", `{`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Errorf("AddTool accepts %s with %s", tt.name, tt.schema)
				}
			}()
			station(Options{}, nil).AddTool(Tool{Name: tt.name, InputSchema: json.RawMessage(tt.schema)})
		})
	}
}
