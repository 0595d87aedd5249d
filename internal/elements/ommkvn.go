package elements

import (
	"bytes"
	"strings"

	"gsd-mcp/internal/unit"
)

// kvn reads "KEY = value" lines. A record begins at CCSDS_OMM_VERS, or where a
// key that the record has already comes again.
func (r *reader) kvn(data []byte) {
	var o *ommRecord
	records := 0
	finish := func() {
		if o != nil && len(o.fields) > 0 {
			records++
			r.finish(o, records)
		}
		o = nil
	}
	for no := 1; len(data) > 0; no++ {
		raw, rest, _ := bytes.Cut(data, []byte("\n"))
		data = rest
		line := strings.TrimSpace(string(raw))
		if line == "" || strings.HasPrefix(line, "COMMENT") {
			continue
		}
		key, text, ok := strings.Cut(line, "=")
		key = strings.TrimSpace(key)
		if !ok || !kvnKey(key) {
			r.warn(no, 1, "", "line %q is not KEY = value and is left out", unit.Printable(line, showMax))
			continue
		}
		if key == "CCSDS_OMM_VERS" {
			finish()
			o = newRecord(place{no, 1})
			continue
		}
		if o == nil {
			o = newRecord(place{no, 1})
		}
		if !o.put(key, kvnValue(text), place{no, strings.IndexByte(string(raw), '=') + 2}) {
			finish()
			o = newRecord(place{no, 1})
			o.put(key, kvnValue(text), place{no, 1})
		}
	}
	finish()
}

// kvnValue drops a unit in brackets: "51.6 [deg]".
func kvnValue(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '['); i > 0 && strings.HasSuffix(s, "]") {
		s = strings.TrimSpace(s[:i])
	}
	return s
}
