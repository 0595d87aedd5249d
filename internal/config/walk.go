package config

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"gsd-mcp/internal/unit"
)

// A mark is the place of a key or table header in the file.
type mark struct{ line, column int }

// A walk goes once over the file's syntax tree before it is decoded: it finds
// every unknown key and wrong type at once, and remembers where each key is so
// that later checks can point at it. go-toml alone stops at the first mistake
// and names Go types.
type walk struct {
	file     string
	data     []byte
	lines    []int // offset of the start of each line
	parser   unstable.Parser
	marks    map[string]mark
	counts   map[string]int // entries of each list of tables
	problems []Problem
}

var timeType = reflect.TypeFor[time.Time]()

func newWalk(file string, data []byte) *walk {
	w := &walk{file: file, data: data, lines: []int{0}, marks: map[string]mark{}, counts: map[string]int{}}
	for i, c := range data {
		if c == '\n' {
			w.lines = append(w.lines, i+1)
		}
	}
	return w
}

// run visits the whole file. A syntax error ends it, and so do too many
// mistakes.
func (w *walk) run(root reflect.Type) {
	w.parser.Reset(w.data)
	table, path, ok := root, "", true
	for len(w.problems) <= maxProblems && w.parser.NextExpression() {
		e := w.parser.Expression()
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table, path, ok = w.header(root, e)
		case unstable.KeyValue:
			if ok {
				w.keyValue(table, path, e)
			}
		}
	}
	var pe *unstable.ParserError
	if err := w.parser.Error(); errors.As(err, &pe) {
		at := w.at(int(w.parser.Range(pe.Highlight).Offset))
		what, fix := reword(pe.Message)
		w.add(at, strings.Join(pe.Key, "."), what, fix)
	} else if err != nil {
		w.add(mark{}, "", "the file is not valid TOML", "see: gsd-mcp config example")
	}
}

// header resolves [a.b] or [[a.b]] to the type and path of the table that the
// following keys belong to.
func (w *walk) header(t reflect.Type, e *unstable.Node) (reflect.Type, string, bool) {
	path := ""
	it := e.Key()
	for it.Next() {
		key := string(it.Node().Data)
		at := w.at(int(it.Node().Raw.Offset))
		shown := fmt.Sprintf("[%s]", show(join(path, key)))
		f, ok := lookup(t, key)
		if !ok {
			what := fmt.Sprintf("unknown table %s", shown)
			if t.Kind() != reflect.Struct {
				what = fmt.Sprintf("%s has no tables inside", show(path))
			}
			w.add(at, join(path, key), what, suggest(t, key, true))
			return nil, "", false
		}
		path = join(path, key)
		switch {
		case isTables(f):
			if e.Kind == unstable.ArrayTable && it.IsLast() {
				w.counts[path]++
			} else if w.counts[path] == 0 || it.IsLast() {
				w.add(at, path, fmt.Sprintf("%s is a list of tables", key), fmt.Sprintf("write [[%s]] with two brackets above each entry", show(path)))
				return nil, "", false
			}
			path = fmt.Sprintf("%s[%d]", path, w.counts[path])
			t = f.Elem()
		case isTable(f):
			if e.Kind == unstable.ArrayTable && it.IsLast() {
				w.add(at, path, fmt.Sprintf("there is only one %s", shown), "write it with single brackets")
				return nil, "", false
			}
			t = f
		default:
			w.add(at, path, fmt.Sprintf("%s is a value, not a table", show(path)), fmt.Sprintf("write %s = %s under its table", key, sample(f)))
			return nil, "", false
		}
		w.mark(path, at)
	}
	return t, path, true
}

// keyValue checks one `a.b = value` inside the table t.
func (w *walk) keyValue(t reflect.Type, path string, e *unstable.Node) {
	it := e.Key()
	for it.Next() {
		key := string(it.Node().Data)
		at := w.at(int(it.Node().Raw.Offset))
		f, ok := lookup(t, key)
		if !ok {
			where := "at the top of the file"
			if path != "" {
				where = "in [" + show(path) + "]"
			}
			w.add(at, join(path, key), fmt.Sprintf("unknown key %s %s", quote(key), where), suggest(t, key, false))
			return
		}
		path = join(path, key)
		w.mark(path, at)
		if it.IsLast() {
			w.value(f, path, at, e.Value())
			return
		}
		if !isTable(f) {
			fix := fmt.Sprintf("write %s = %s", key, sample(f))
			if isTables(f) {
				fix = fmt.Sprintf("write [[%s]] with two brackets above each entry", key)
			}
			w.add(at, path, fmt.Sprintf("%s has no keys inside", show(path)), fix)
			return
		}
		t = f
	}
}

// value checks that a value is of the kind that a field of type t wants.
func (w *walk) value(t reflect.Type, path string, at mark, n *unstable.Node) {
	wrong := func() {
		w.add(at, path, fmt.Sprintf("%s wants %s, got %s", show(path), wants(t), kindName(n.Kind)), fixType(t, n.Kind))
	}
	switch {
	case t == timeType:
		if n.Kind != unstable.DateTime {
			wrong()
		}
	case isTable(t):
		if n.Kind != unstable.InlineTable {
			wrong()
			return
		}
		for it := n.Children(); it.Next(); {
			w.keyValue(t, path, it.Node())
		}
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		if n.Kind != unstable.Array {
			wrong()
			return
		}
		i := 0
		for it := n.Children(); it.Next(); i++ {
			elem := fmt.Sprintf("%s[%d]", path, i+1)
			w.mark(elem, at)
			w.value(t.Elem(), elem, at, it.Node())
		}
		if t.Kind() == reflect.Array && i != t.Len() {
			w.add(at, path, fmt.Sprintf("%s has %d values, want %d", show(path), i, t.Len()), fmt.Sprintf("write %s", sample(t)))
		}
	case t.Kind() == reflect.String:
		if n.Kind != unstable.String {
			wrong()
		}
	case t.Kind() == reflect.Bool:
		if n.Kind != unstable.Bool {
			wrong()
		}
	case t.Kind() == reflect.Float64:
		if n.Kind == unstable.Integer {
			return
		}
		if n.Kind != unstable.Float {
			wrong()
			return
		}
		if s := strings.TrimLeft(string(n.Data), "+-"); s == "nan" || s == "inf" {
			w.add(at, path, fmt.Sprintf("%s is %s, which is no number to work with", show(path), n.Data), "give a number")
		}
	default: // the integers
		if n.Kind != unstable.Integer {
			wrong()
		}
	}
}

func (w *walk) mark(path string, at mark) {
	if _, ok := w.marks[path]; !ok {
		w.marks[path] = at
	}
}

func (w *walk) add(at mark, key, what, fix string) {
	w.problems = append(w.problems, Problem{File: w.file, Line: at.line, Column: at.column, Key: unit.Printable(key, 80), What: what, Fix: fix})
}

// at turns an offset into a line and a column.
func (w *walk) at(offset int) mark {
	line, exact := slices.BinarySearch(w.lines, offset)
	if !exact {
		line--
	}
	return mark{line + 1, offset - w.lines[line] + 1}
}

// find is the place of a key, or of the nearest table around it that the file
// has: a value may come from a default or a profile.
func (w *walk) find(path string) mark {
	for path != "" {
		if m, ok := w.marks[path]; ok {
			return m
		}
		path = path[:max(strings.LastIndexAny(path, ".["), 0)]
	}
	return mark{}
}

// lookup finds the type of a key in a table.
func lookup(t reflect.Type, key string) (reflect.Type, bool) {
	switch t.Kind() {
	case reflect.Map:
		return t.Elem(), true
	case reflect.Struct:
		for i := range t.NumField() {
			if tag(t.Field(i)) == key {
				return t.Field(i).Type, true
			}
		}
	}
	return nil, false
}

// tag is the name of a field in the file.
func tag(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("toml"), ",")
	return name
}

func isTable(t reflect.Type) bool {
	return t.Kind() == reflect.Map || t.Kind() == reflect.Struct && t != timeType
}

func isTables(t reflect.Type) bool { return t.Kind() == reflect.Slice && isTable(t.Elem()) }

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// show makes a path from the file safe and short enough for a message.
func show(path string) string { return unit.Printable(path, 80) }

func quote(s string) string { return fmt.Sprintf("%q", unit.Printable(s, 40)) }
