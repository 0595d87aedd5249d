package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"

	"gsd-mcp/internal/spell"
)

// wants says in words what a field of type t holds.
func wants(t reflect.Type) string {
	switch {
	case t == timeType:
		return "a time with its zone"
	case isTables(t):
		return "a list of tables"
	case isTable(t):
		return "a table"
	}
	switch t.Kind() {
	case reflect.Array, reflect.Slice:
		n := "a list of "
		if t.Kind() == reflect.Array {
			n = fmt.Sprintf("a list of %d ", t.Len())
		}
		switch t.Elem().Kind() {
		case reflect.String:
			return n + "texts"
		case reflect.Slice, reflect.Array:
			return n + "pairs"
		}
		return n + "numbers"
	case reflect.String:
		return "a text in quotes"
	case reflect.Bool:
		return "true or false"
	case reflect.Float64:
		return "a number"
	}
	return "a whole number"
}

// sample is a value of type t as one would write it.
func sample(t reflect.Type) string {
	switch {
	case t == timeType:
		return "2026-11-30T12:00:00Z"
	case isTable(t):
		return "{ ... }"
	}
	switch t.Kind() {
	case reflect.Array:
		return "[" + strings.Repeat(sample(t.Elem())+", ", t.Len()-1) + sample(t.Elem()) + "]"
	case reflect.Slice:
		return "[" + sample(t.Elem()) + "]"
	case reflect.String:
		return `"..."`
	case reflect.Bool:
		return "true"
	case reflect.Float64:
		return "1.5"
	}
	return "1"
}

// kindName says in words what the file has.
func kindName(k unstable.Kind) string {
	switch k {
	case unstable.String:
		return "a text"
	case unstable.Bool:
		return "true or false"
	case unstable.Float:
		return "a number with a fraction"
	case unstable.Integer:
		return "a whole number"
	case unstable.Array:
		return "a list"
	case unstable.InlineTable:
		return "a table"
	case unstable.LocalDateTime:
		return "a time without a zone"
	case unstable.DateTime:
		return "a time"
	case unstable.LocalDate:
		return "a date"
	case unstable.LocalTime:
		return "a time of day"
	}
	return "something else"
}

// fixType says how to turn what the file has into what the field wants.
func fixType(t reflect.Type, got unstable.Kind) string {
	number := t.Kind() == reflect.Float64 || t.Kind() == reflect.Int || t.Kind() == reflect.Int64
	switch {
	case t == timeType && got == unstable.LocalDateTime:
		return "add Z at its end for UTC"
	case (number || t.Kind() == reflect.Bool || t == timeType) && got == unstable.String:
		return "write it without quotes, like " + sample(t)
	case t.Kind() == reflect.String && !isTable(t):
		return `put it in quotes, like "..."`
	case isTables(t):
		return "write it with two brackets, [[...]], above each entry"
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && got != unstable.InlineTable:
		return "write it in brackets, like " + sample(t)
	}
	return "write it like " + sample(t)
}

// suggest proposes what an unknown key of table t was meant to be: the nearest
// known one, or the table where a key of that name belongs.
func suggest(t reflect.Type, key string, header bool) string {
	if t.Kind() != reflect.Struct {
		return "remove it"
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		if !header || isTable(f.Type) || isTables(f.Type) {
			names = append(names, tag(f))
		}
	}
	if best := spell.Nearest(key, names); best != "" {
		return fmt.Sprintf("did you mean %s?", best)
	}
	if home := homes(reflect.TypeFor[Config](), "", key); len(home) > 0 {
		return fmt.Sprintf("%s belongs in %s", key, strings.Join(home, " or "))
	}
	if len(names) == 0 {
		return "remove it"
	}
	kind := "keys here"
	if header {
		kind = "tables"
	}
	if len(names) > 24 {
		return "see: gsd-mcp config example"
	}
	return fmt.Sprintf("the %s are %s", kind, strings.Join(names, ", "))
}

// homes lists the tables that have a key of this name.
func homes(t reflect.Type, path, key string) []string {
	var out []string
	for i := range t.NumField() {
		f := t.Field(i)
		switch {
		case tag(f) == key && path != "":
			out = append(out, path)
		case isTables(f.Type):
			out = append(out, homes(f.Type.Elem(), "[["+strings.Trim(path, "[]")+tag(f)+"]]", key)...)
		case isTable(f.Type) && f.Type.Kind() == reflect.Struct:
			out = append(out, homes(f.Type, "["+join(strings.Trim(path, "[]"), tag(f))+"]", key)...)
		}
	}
	return out
}

// reword turns a message of the TOML library into one for a technician. The
// library's own words stay where they name a character and no Go type.
func reword(msg string) (what, fix string) {
	has := func(parts ...string) bool {
		for _, p := range parts {
			if !strings.Contains(msg, p) {
				return false
			}
		}
		return true
	}
	name := func() string {
		f := strings.Fields(msg)
		if len(f) > 1 {
			return f[1]
		}
		return "this"
	}
	switch {
	case has("is already defined"), has("already exists"):
		return fmt.Sprintf("%s is given twice", show(name())), "keep one of them"
	case has("should be a table"), has("should be an array table"):
		return fmt.Sprintf("%s is written as a table here and as something else above", show(name())), "keep one form"
	case has("too large"), has("out of range"):
		return "the number is too large", "give a smaller one"
	case has("expected '=' after key"):
		return "there is no = after the key", "write: key = value"
	case has("expected value"):
		return "the value is missing", "write: key = value"
	case has("expected newline", "','"):
		return "there is a comma after the value", "write decimals with a point, and one key per line"
	case has("expected newline"):
		return "there is something after the value", "write one key per line, numbers without their unit, text in quotes, a comment after #"
	case has("impossible date"):
		return "there is no such date", "write year-month-day, like 2026-11-30T12:00:00Z"
	case has("at start of value", "U+000A"), has("at start of value", "U+000D"):
		return "the value is missing", "write: key = value"
	case has("at start of value"):
		return "the value is neither a number, nor true or false, nor a text in quotes", "put text in quotes; write true and false in small letters"
	case has("strings cannot have new lines"), has("unterminated"):
		return "a text is not closed on its line", `end it with "`
	case has("to close"):
		return "the table's name is not closed", "write [name], or [[name]] for an entry of a list"
	case has("array is incomplete"):
		return "the list is not closed", "end it with ]"
	case has("inline table is incomplete"):
		return "the table is not closed", "end it with }"
	case has("escape character"):
		return "there is an unknown escape in a text", `write a backslash as \\, or put the text in single quotes`
	case has("UTF-8"):
		return "the file is not in UTF-8", "save it as UTF-8"
	case has("start of key"):
		return "a key cannot begin with this character", "write: key = value; a comment begins with #"
	}
	for _, goWord := range []string{"struct", "toml", "reflect", "interface", "config."} {
		if has(goWord) {
			return "this line does not fit station.toml", "see: gsd-mcp config example"
		}
	}
	return "this is not valid TOML: " + show(msg), "compare the line with: gsd-mcp config example"
}
