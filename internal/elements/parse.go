package elements

import (
	"bytes"
	"strings"

	"gsd-mcp/internal/unit"
)

const (
	fixFetch = "fetch the elements again"
	fixKeep  = "keep the cached set and try again later"
	// showMax bounds how much of a source is quoted in a message.
	showMax = 48
	// nameMax bounds a satellite's name.
	nameMax = 64
)

// Parse reads orbital elements in any of the usual layouts: TLE with or
// without names, and OMM as JSON (also with every value a string, as
// Space-Track sends it), CSV, XML or KVN. The layout is found from the text.
// Good records of a damaged source are kept; everything dropped is a Problem
// with severity Reject. It never panics, whatever data holds. The source is
// only for messages and Set.Source.
func Parse(source string, data []byte) Result {
	r := &reader{source: unit.Printable(source, 200)}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	head := bytes.TrimLeft(data, " \t\r\n")
	switch {
	case len(head) == 0:
		r.reject(0, 0, fixFetch, "empty file")
	case head[0] == '[' || head[0] == '{':
		r.res.Format = "OMM JSON"
		r.json(data)
	case head[0] == '<':
		r.markup(data, head)
	case looksCSV(head):
		r.res.Format = "OMM CSV"
		r.csv(data)
	case looksKVN(head):
		r.res.Format = "OMM KVN"
		r.kvn(data)
	default:
		r.res.Format = "TLE"
		r.tle(data)
	}
	return r.done()
}

func (r *reader) markup(data, head []byte) {
	low := bytes.ToLower(head[:min(len(head), 4096)])
	if bytes.Contains(low, []byte("<ndm")) || bytes.Contains(low, []byte("<omm")) {
		r.res.Format = "OMM XML"
		r.xml(data)
		return
	}
	what := "not orbital data (markup that is no OMM)"
	if bytes.Contains(low, []byte("<html")) || bytes.Contains(low, []byte("<!doctype html")) {
		what = "not orbital data (HTML)"
	}
	r.reject(1, 1, fixKeep, "%s: it begins with %q", what, show(head))
}

// show quotes the beginning of text from outside, up to its first line end.
func show(b []byte) string {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[:i]
	}
	return unit.Printable(string(b[:min(len(b), 4*showMax)]), showMax)
}

func firstLine(head []byte) string {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return strings.TrimSpace(string(line[:min(len(line), 4096)]))
}

func looksCSV(head []byte) bool {
	line := strings.ToUpper(firstLine(head))
	return strings.Contains(line, ",") && strings.Contains(line, "NORAD_CAT_ID") && strings.Contains(line, "EPOCH")
}

// looksKVN finds the first line that is neither blank nor a comment.
func looksKVN(head []byte) bool {
	for len(head) > 0 {
		line := firstLine(head)
		if line != "" && !strings.HasPrefix(line, "COMMENT") {
			key, _, ok := strings.Cut(line, "=")
			return ok && kvnKey(strings.TrimSpace(key))
		}
		_, rest, _ := bytes.Cut(head, []byte("\n"))
		head = rest
	}
	return false
}

func kvnKey(s string) bool {
	if s == "" {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'A' && c <= 'Z' || c == '_' || i > 0 && c >= '0' && c <= '9') {
			return false
		}
	}
	return true
}
