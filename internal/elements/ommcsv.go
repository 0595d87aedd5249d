package elements

import (
	"bytes"
	"encoding/csv"
	"errors"
	"io"
	"strings"
)

// csv reads a table whose first line names the fields. A row of another
// length is dropped, the others are kept.
func (r *reader) csv(data []byte) {
	rows := csv.NewReader(bytes.NewReader(data))
	rows.FieldsPerRecord = -1
	rows.ReuseRecord = true
	var keys []string
	for n := 0; ; {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			var e *csv.ParseError
			if errors.As(err, &e) {
				r.reject(e.Line, e.Column, fixFetch, "CSV: %v", e.Err)
				continue
			}
			r.reject(0, 0, fixFetch, "CSV: %v", err)
			return
		}
		if keys == nil {
			keys = make([]string, len(row))
			for i, k := range row {
				keys[i] = strings.ToUpper(strings.TrimSpace(k))
			}
			continue
		}
		line, column := rows.FieldPos(0)
		n++
		if len(row) != len(keys) {
			r.reject(line, column, fixFetch, "record %d has %d fields, the heading has %d", n, len(row), len(keys))
			continue
		}
		o := newRecord(place{line, column})
		for i, text := range row {
			l, c := rows.FieldPos(i)
			o.put(keys[i], text, place{l, c})
		}
		r.finish(o, n)
	}
	if len(r.res.Sets) == 0 && len(r.res.Problems) == 0 {
		r.reject(1, 1, fixKeep, "the table has a heading and no records")
	}
}
