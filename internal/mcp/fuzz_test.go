package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/txtar"
)

// seeds are the lines that the recorded sessions send.
func seeds(f *testing.F) {
	for _, file := range []string{"framing", "lifecycle", "calls", "modern", "resources"} {
		ar, err := txtar.ParseFile("testdata/wire/" + file + ".txtar")
		if err != nil {
			f.Fatal(err)
		}
		for _, s := range ar.Files {
			for _, line := range strings.Split(string(s.Data), "\n") {
				if msg, ok := strings.CutPrefix(line, "> "); ok {
					f.Add([]byte(strings.ReplaceAll(msg, "META", testMeta)))
				}
			}
		}
	}
}

// encoding/json is the judge of what an envelope holds.
func FuzzEnvelope(f *testing.F) {
	seeds(f)
	f.Add([]byte(`{"a":{"b":[1,{"c":1,"c":2}]}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return
		}
		env, e := parseEnvelope(line)
		if !json.Valid(line) || !utf8.Valid(line) {
			if e == nil || e.Code != CodeParse {
				t.Fatalf("%q gave %v, want -32700", line, e)
			}
			return
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(line, &m) != nil || m == nil {
			if e == nil || e.Code != CodeInvalid {
				t.Fatalf("%q gave %v, want -32600", line, e)
			}
			return
		}
		o, err := split(line)
		if err == nil && len(o) != len(m) {
			t.Fatalf("%q has %d members, split found %d", line, len(m), len(o))
		}
		for _, x := range o {
			if want := m[x.key]; err == nil && !bytes.Equal(x.value, want) {
				t.Fatalf("%q: key %q is %s, want %s", line, x.key, x.value, want)
			}
		}
		if _, _, dup := twice(line); err != nil && !dup {
			t.Fatalf("%q: split says %v, twice finds nothing", line, err)
		}
		if e == nil && env.params != nil {
			var p map[string]json.RawMessage
			if err := json.Unmarshal(env.params, &p); err != nil {
				t.Fatalf("%q: params %q: %v", line, env.params, err)
			}
		}
		if env.id != nil && !bytes.Equal(env.id, m["id"]) {
			t.Fatalf("%q: id %s, want %s", line, env.id, m["id"])
		}
	})
}

// Whatever one line holds, the answers are whole messages with the line's id or
// null, the session goes on, and nothing moves that was not asked for in full.
func FuzzSession(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(line, []byte("scan_noise")) || bytes.ContainsRune(line, '\n') {
			return // takes its time; is several lines
		}
		in := io.MultiReader(strings.NewReader(`{"jsonrpc":"2.0","id":"fuzz-open","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`+"\n"),
			bytes.NewReader(line), strings.NewReader("\n"+`{"jsonrpc":"2.0","id":"fuzz-alive","method":"ping"}`+"\n"))
		var got lines
		ran := make(chan string, 8)
		srv := station(Options{}, func(what string) { ran <- what })
		if err := srv.Serve(context.Background(), in, &got, SessionOptions{Caller: "observer"}); err != nil {
			t.Fatalf("%q ended the session: %v", line, err)
		}
		alive, answers := false, 0
		for _, l := range got.all {
			var m struct {
				ID     json.RawMessage
				Result json.RawMessage
				Error  *struct{ Code int }
			}
			if err := json.Unmarshal([]byte(l), &m); err != nil {
				t.Fatalf("%q was answered with %q: %v", line, l, err)
			}
			switch string(m.ID) {
			case `"fuzz-open"`:
			case `"fuzz-alive"`:
				alive = true
			case "":
			default:
				answers++
				if string(m.ID) != "null" && !bytes.Contains(line, m.ID) {
					t.Fatalf("%q was answered under the id %s", line, m.ID)
				}
				if (m.Result == nil) == (m.Error == nil) {
					t.Fatalf("%q was answered with %s", line, l)
				}
			}
		}
		if !alive || answers > 1 {
			t.Fatalf("%q: alive %v, %d answers: %q", line, alive, answers, got.all)
		}
		close(ran)
		for what := range ran {
			if strings.HasPrefix(what, "point_antenna") && !(json.Valid(line) && bytes.Contains(line, []byte("_deg")) && answers == 1) {
				t.Fatalf("%q moved the antenna: %s", line, what)
			}
			if what == "secret_move" {
				t.Fatalf("%q ran a tool that the caller may not use", line)
			}
		}
	})
}
