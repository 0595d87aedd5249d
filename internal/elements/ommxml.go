package elements

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
)

// xml reads every omm element; its leaves are the fields. After a syntax error
// the records before it are kept. Entities other than XML's five are errors,
// so nothing can be made to grow.
func (r *reader) xml(data []byte) {
	dec := xml.NewDecoder(bytes.NewReader(data))
	// CelesTrak and Space-Track send UTF-8 and ASCII; other labels are taken
	// as such, since every number is ASCII.
	dec.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	var o *ommRecord
	var leaf string // the innermost open element, "" when it has children
	var text strings.Builder
	var at place
	records := 0
	for {
		tok, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		line, column := dec.InputPos()
		if err != nil {
			what := err.Error()
			var syntax *xml.SyntaxError
			if errors.As(err, &syntax) {
				what = syntax.Msg
			}
			r.reject(line, column, fixFetch, "XML: %s; %d records before it were read, the rest is dropped", show([]byte(what)), records)
			return
		}
		switch t := tok.(type) {
		case xml.StartElement:
			if strings.EqualFold(t.Name.Local, "omm") {
				o = newRecord(place{line, column})
			}
			leaf, at = t.Name.Local, place{line, column}
			text.Reset()
		case xml.CharData:
			if leaf != "" && text.Len() < 4096 {
				text.Write(t)
			}
		case xml.EndElement:
			if o != nil && leaf == t.Name.Local {
				if !o.put(leaf, text.String(), at) && leaf != "COMMENT" {
					r.warn(line, column, "", "record %d has %q twice: the first counts", records+1, show([]byte(leaf)))
				}
			}
			leaf = ""
			if o != nil && strings.EqualFold(t.Name.Local, "omm") {
				records++
				r.finish(o, records)
				o = nil
			}
		}
	}
	if records == 0 {
		r.reject(1, 1, fixKeep, "the XML holds no OMM")
	}
}
