package door

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// MaxLine is the longest message that passes, in bytes without the newline.
const MaxLine = 1 << 20

// privatePrefix begins the methods that only the door's own clients may use.
const privatePrefix = "gsd/"

// JSON-RPC 2.0 error codes.
const (
	codeInvalidRequest = -32600
	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeBadVersion     = -32022 // MCP 2026-07-28: protocol version not offered
)

// codeRefused is our own code, outside JSON-RPC's reserved range: a private
// method was refused, and data is the refusal of CONTRACT section 4.
const codeRefused = 1001

// readLine returns one line without its newline and carriage return. A longer
// one than MaxLine is read to its end and reported, so that it never ends a
// session. At the end of the stream a last line without a newline counts.
func readLine(r *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine+2 { // the line ends with \r\n at most
			tooLong, line = true, nil
		}
		if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, false, err
		}
		line = bytes.TrimSuffix(bytes.TrimSuffix(line, []byte{'\n'}), []byte{'\r'})
		return line, tooLong || len(line) > MaxLine, nil
	}
}

// A message is what the bridge and the client look at in a line that they do
// not otherwise interpret. The bytes point into the line.
type message struct {
	id      []byte // as written; nil when absent
	method  string
	params  []byte
	result  []byte
	answer  bool // has a result or an error
	failure []byte
	private bool // some key "method" begins with gsd/, whatever else is wrong with the line
}

func (m message) request() bool  { return m.id != nil && m.method != "" }
func (m message) response() bool { return m.id != nil && m.method == "" && m.answer }

// peek finds the top-level keys of a JSON object without decoding the rest. It
// is not a validator: the daemon's reader judges the line. What peek cannot
// follow it leaves out. Of duplicate keys the last one counts (the daemon
// refuses such a line), but one private method among them is enough.
func peek(line []byte) message {
	var m message
	i := skipSpace(line, 0)
	if i >= len(line) || line[i] != '{' {
		return m
	}
	for i++; ; i++ {
		if i = skipSpace(line, i); i >= len(line) || line[i] != '"' {
			return m
		}
		end := skipString(line, i)
		key := plainString(line[i:end])
		if i = skipSpace(line, end); i >= len(line) || line[i] != ':' {
			return m
		}
		i = skipSpace(line, i+1)
		end = skipValue(line, i)
		value := line[i:end]
		switch key {
		case "id":
			m.id = value
		case "method":
			m.method = plainString(value)
			m.private = m.private || strings.HasPrefix(m.method, privatePrefix)
		case "params":
			m.params = value
		case "result":
			m.answer, m.result = true, value
		case "error":
			m.answer, m.failure = true, value
		}
		if i = skipSpace(line, end); i >= len(line) || line[i] != ',' {
			return m
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// skipString returns the index after the string that starts at i.
func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(b)
}

// skipValue returns the index after the value that starts at i.
func skipValue(b []byte, i int) int {
	for depth := 0; i < len(b); {
		switch b[i] {
		case '"':
			if i = skipString(b, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return len(b)
}

// plainString is the text of a JSON string, "" when it is not one.
func plainString(b []byte) string {
	if len(b) < 2 || b[0] != '"' {
		return ""
	}
	if !bytes.ContainsRune(b, '\\') {
		return string(b[1 : len(b)-1])
	}
	var s string
	if json.Unmarshal(b, &s) != nil {
		return ""
	}
	return s
}

// validID reports whether an id may be echoed in an answer of ours: a string or
// an integer, as MCP wants it.
func validID(id []byte) bool {
	if len(id) == 0 || len(id) > 256 || !json.Valid(id) {
		return false
	}
	return id[0] == '"' || !bytes.ContainsAny(id, "ntf{[.eE")
}

// A wireError is the error object of a JSON-RPC answer.
type wireError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// errorLine is an error answer as one line; without a usable id it is null.
func errorLine(id []byte, e wireError) []byte {
	if !validID(id) {
		id = []byte("null")
	}
	return encodeLine(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wireError       `json:"error"`
	}{"2.0", id, e})
}

// encodeLine is v as one line of JSON with its newline. v is made of our own
// types; text in it may be anything.
func encodeLine(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("door: encode a message of our own: " + err.Error())
	}
	return b.Bytes()
}
