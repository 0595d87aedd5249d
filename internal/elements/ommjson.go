package elements

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
)

// json reads OMM records: an array of objects, one object, or objects one
// after the other. Values may be numbers, strings or null. After a syntax
// error the records before it are kept.
func (r *reader) json(data []byte) {
	j := &ommJSON{r: r, dec: json.NewDecoder(bytes.NewReader(data)), index: newLineIndex(data)}
	j.dec.UseNumber()
	for {
		tok, err := j.dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			j.broken(err)
			return
		}
		switch tok {
		case json.Delim('{'):
			if !j.object() {
				return
			}
		case json.Delim('['), json.Delim(']'):
		default:
			at := j.here()
			r.reject(at.line, at.column, fixKeep, "not orbital elements: a JSON %T where a record was expected", tok)
			return
		}
	}
	if j.records == 0 {
		r.reject(1, 1, fixKeep, "the JSON holds no records")
	}
}

type ommJSON struct {
	r       *reader
	dec     *json.Decoder
	index   *lineIndex
	records int
}

// here is the place just after the token that was read last.
func (j *ommJSON) here() place { return j.index.place(int(j.dec.InputOffset())) }

// valueAhead is the place of the value after a key that was read last.
func (j *ommJSON) valueAhead() place {
	i := int(j.dec.InputOffset())
	for i < len(j.index.data) && strings.IndexByte(" \t\r\n:", j.index.data[i]) >= 0 {
		i++
	}
	return j.index.place(i)
}

func (j *ommJSON) broken(err error) {
	at := j.here()
	what := "JSON: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		what = "the JSON ends in the middle of a record"
	}
	j.r.reject(at.line, at.column, fixFetch, "%s; %d records before it were read, the rest is dropped", what, j.records)
}

// object reads one record after its opening brace.
func (j *ommJSON) object() bool {
	o := newRecord(j.here())
	for j.dec.More() {
		tok, err := j.dec.Token()
		if err != nil {
			j.broken(err)
			return false
		}
		key, ok := tok.(string)
		if !ok {
			j.broken(errors.New("a key was expected"))
			return false
		}
		at := j.valueAhead()
		if tok, err = j.dec.Token(); err != nil {
			j.broken(err)
			return false
		}
		text, plain := "", true
		switch v := tok.(type) {
		case string:
			text = v
		case json.Number:
			text = v.String()
		case json.Delim:
			plain = false
			if !j.skip() {
				return false
			}
		case bool:
			plain = false
		}
		if plain && !o.put(key, text, at) {
			j.r.warn(at.line, at.column, "", "record %d has %q twice: the first counts", j.records+1, show([]byte(key)))
		}
	}
	if _, err := j.dec.Token(); err != nil { // the closing brace
		j.broken(err)
		return false
	}
	j.records++
	j.r.finish(o, j.records)
	return true
}

// skip reads to the end of a nested array or object.
func (j *ommJSON) skip() bool {
	for depth := 1; depth > 0; {
		tok, err := j.dec.Token()
		if err != nil {
			j.broken(err)
			return false
		}
		switch tok {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
	}
	return true
}
