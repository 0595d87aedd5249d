package door

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestPeek(t *testing.T) {
	tests := []struct {
		line, id, method string
		request, answer  bool
		private          bool
	}{
		{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "1", "ping", true, false, false},
		{` { "id" : "a\"}" , "method" : "x" , "params" : { "id" : 2, "method":"gsd/x" } } `, `"a\"}"`, "x", true, false, false},
		{`{"id":9007199254740993,"result":{"a":[1,{"b":"]"}]}}`, "9007199254740993", "", false, true, false},
		{`{"id":null,"error":{"code":1}}`, "null", "", false, true, false},
		{`{"method":"gsd/approve","id":1}`, "1", "gsd/approve", true, false, true},
		{`{"method":"\u0067sd/approve"}`, "", "gsd/approve", false, false, true},
		{`{"method":"gsd\/arm","method":"ping","id":1}`, "1", "ping", true, false, true},
		{`{"\u006dethod":"gsd/arm"}`, "", "gsd/arm", false, false, true},
		{`{"METHOD":"gsd/arm"}`, "", "", false, false, false}, // the daemon reads keys exactly
		{`[{"method":"gsd/arm"}]`, "", "", false, false, false},
		{`{"method":"gsd/arm"`, "", "gsd/arm", false, false, true},
		{`{"method":`, "", "", false, false, false},
		{`{"id`, "", "", false, false, false},
		{`"`, "", "", false, false, false},
		{``, "", "", false, false, false},
	}
	for _, tt := range tests {
		m := peek([]byte(tt.line))
		if string(m.id) != tt.id || m.method != tt.method || m.request() != tt.request || m.response() != tt.answer || m.private != tt.private {
			t.Errorf("peek(%s) = id %s, method %q, request %v, response %v, private %v", tt.line, m.id, m.method, m.request(), m.response(), m.private)
		}
	}
}

// On every valid object peek agrees with encoding/json, and nothing makes it panic.
func FuzzPeek(f *testing.F) {
	for _, s := range []string{`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"a":[1,2,{"b":"\\\""}]}}`, `{"id":"é","result":{}}`, `{"a":"\`, `{"id":-1.5e+3,"method":"x"}`, `{"id":tru`, "{\"id\":\t[]\r}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		m := peek(line)
		var want map[string]json.RawMessage
		if json.Unmarshal(line, &want) != nil || want == nil {
			return
		}
		if !bytes.Equal(m.id, want["id"]) {
			t.Fatalf("peek(%q).id = %q, want %q", line, m.id, want["id"])
		}
		var method string
		if json.Unmarshal(want["method"], &method) == nil && want["method"][0] == '"' && strings.ToValidUTF8(method, "") == method && m.method != method && json.Valid(want["method"]) && !bytes.ContainsRune(want["method"], '\uFFFD') {
			t.Fatalf("peek(%q).method = %q, want %q", line, m.method, method)
		}
		if strings.HasPrefix(method, privatePrefix) && !m.private {
			t.Fatalf("peek(%q) does not see the private method", line)
		}
		_, result := want["result"]
		_, failure := want["error"]
		if m.answer != (result || failure) {
			t.Fatalf("peek(%q).answer = %v", line, m.answer)
		}
	})
}

func TestReadLine(t *testing.T) {
	long := strings.Repeat("x", MaxLine)
	in := bufio.NewReader(strings.NewReader("a\r\n\n" + long + "\n" + long + "y\nb\n" + long + long + "\nlast"))
	want := []struct {
		line string
		long bool
	}{{"a", false}, {"", false}, {long, false}, {"", true}, {"b", false}, {"", true}, {"last", false}}
	for i, w := range want {
		line, tooLong, err := readLine(in)
		if err != nil || tooLong != w.long || !tooLong && string(line) != w.line {
			t.Fatalf("line %d: %d bytes, too long %v, %v; want %d bytes, %v", i, len(line), tooLong, err, len(w.line), w.long)
		}
	}
	if _, _, err := readLine(in); !errors.Is(err, io.EOF) {
		t.Fatalf("at the end: %v, want EOF", err)
	}
}

func TestErrorLineEchoesOnlyValidIDs(t *testing.T) {
	for id, want := range map[string]string{`1`: `1`, `"a"`: `"a"`, `9007199254740993`: `9007199254740993`, `1.5`: `null`, `null`: `null`, `true`: `null`,
		`{}`: `null`, ``: `null`, `"a`: `null`, `1e3`: `null`, `[1]`: `null`, `-7`: `-7`} {
		line := errorLine([]byte(id), wireError{Code: codeInternal, Message: "x"})
		if !json.Valid(line) || !bytes.Contains(line, []byte(`"id":`+want+`,`)) {
			t.Errorf("errorLine(%s) = %s, want id %s", id, line, want)
		}
	}
}
