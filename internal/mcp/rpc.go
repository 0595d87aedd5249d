package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"gsd-mcp/internal/unit"
)

// Codes of JSON-RPC 2.0 and of MCP. A handler's own codes, if it needs any,
// lie outside -32768..-32000.
const (
	CodeParse         = -32700 // not JSON, not UTF-8
	CodeInvalid       = -32600 // JSON, but not a request that is allowed now
	CodeNoMethod      = -32601 // unknown method, or one of the other era
	CodeParams        = -32602 // parameters of the wrong shape, arguments against the schema
	CodeInternal      = -32603 // our fault, or overload
	CodeNoResource    = -32002 // unknown resource, versions up to 2025-11-25
	CodeNeedsFeature  = -32021 // the client has not declared what this needs
	CodeWrongVersion  = -32022 // protocol version not offered
	maxID             = 256    // bytes of a request id or a progress token, as sent
	defaultMaxLine    = 1 << 20
	maxShown          = 64 // characters of foreign text that an error message repeats
	readBuffer        = 64 << 10
	batchesNotAllowed = "JSON-RPC batches are not supported: send one object per line"
)

// An Error is a JSON-RPC error object. A handler returns one to choose the
// code; every other error is the server's fault and is answered with
// [CodeInternal] and an incident id.
type Error struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Error is the message.
func (e *Error) Error() string { return e.Message }

func errorf(code int, format string, a ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, a...)}
}

// printable makes foreign text safe to repeat; see unit.Printable.
func printable(s string, max int) string { return unit.Printable(s, max) }

func quote(s string) string { return strconv.Quote(printable(s, maxShown)) }

// An envelope is one decoded message.
type envelope struct {
	id       json.RawMessage // as sent; nil when absent
	method   string
	params   json.RawMessage // nil when absent
	response bool            // an answer to a request of ours
}

// parseEnvelope reads one line. On an error the envelope holds the id when it
// was readable, so that the answer can carry it.
func parseEnvelope(line []byte) (env envelope, e *Error) {
	if !utf8.Valid(line) { // encoding/json would put U+FFFD in silently
		return env, errorf(CodeParse, "parse error: the message is not valid UTF-8")
	}
	if !json.Valid(line) {
		return env, errorf(CodeParse, "parse error: the line is not one JSON value")
	}
	if line[skipSpace(line, 0)] == '[' {
		return env, errorf(CodeInvalid, batchesNotAllowed)
	}
	m, err := split(line)
	ids := 0
	for _, e := range m {
		if e.key != "id" {
			continue
		}
		if ids++; ids > 1 || !validID(e.value) {
			env.id = nil
			return env, errorf(CodeInvalid, "invalid request: there must be one id, a string or an integer of at most %d bytes, got %s", maxID, kindOf(e.value))
		}
		env.id = e.value
	}
	if err != nil {
		return env, errorf(CodeInvalid, "invalid request: the message %v", err)
	}
	if v, _ := m.str("jsonrpc"); v != "2.0" {
		return env, errorf(CodeInvalid, `invalid request: jsonrpc must be "2.0"`)
	}
	method, ok := m.get("method")
	if !ok {
		_, result := m.get("result")
		_, failure := m.get("error")
		if env.id != nil && (result || failure) {
			env.response = true
			return env, nil
		}
		return env, errorf(CodeInvalid, "invalid request: the message has no method")
	}
	if env.method, _ = text(method); env.method == "" {
		return env, errorf(CodeInvalid, "invalid request: method must be a string that is not empty, got %s", got(method))
	}
	if p, ok := m.get("params"); ok {
		if p[0] != '{' {
			return env, errorf(CodeParams, "params must be object, got %s", kindOf(p))
		}
		env.params = p
	}
	return env, nil
}

// validID accepts a string or an integer. It is kept as sent: ids above 2^53
// survive.
func validID(id json.RawMessage) bool {
	if len(id) == 0 || len(id) > maxID {
		return false
	}
	if id[0] == '"' {
		return true
	}
	digits := bytes.TrimPrefix(id, []byte("-"))
	for _, c := range digits {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(digits) > 0
}

// idKey is the same for ids that are equal in JSON: "a" and "\u0061" are one
// id, 1 and "1" are two.
func idKey(id json.RawMessage) string {
	if s, ok := text(id); ok {
		return `"` + s
	}
	return string(id)
}

// readLine returns one line without its end. A line longer than max bytes is
// read to its end and reported, so that no message can end the session. The
// last line may come without a newline.
func readLine(r *bufio.Reader, max int) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > max+2 { // two for the line's end
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && (err != io.EOF || len(line) == 0 && !tooLong) {
			return nil, tooLong, err
		}
		return bytes.Trim(line, " \t\r\n"), tooLong, nil
	}
}

// encode makes one line of a message. HTML characters stay as they are, and the
// encoder compacts raw values, so no newline gets inside.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return b.Bytes(), err
}

type resultMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
}

type errorMessage struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Error   *Error          `json:"error"`
}

type requestMessage struct { // a notification when ID is nil
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method"`
	Params  any             `json:"params,omitempty"`
}
