package config

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoConfig means that there is no configuration file, which is not the same
// as a bad one.
var ErrNoConfig = errors.New("no configuration")

// A Problem is one thing wrong in a configuration file, where it is, and what
// to do about it.
type Problem struct {
	File   string `json:"file"`
	Line   int    `json:"line,omitempty"`   // from 1; 0: the file as a whole
	Column int    `json:"column,omitempty"` // in bytes, from 1
	Key    string `json:"key,omitempty"`    // dotted, list entries counted from 1: radio[1].port
	What   string `json:"what"`
	Fix    string `json:"fix,omitempty"`
}

// String is the problem in one line: file:line:column: what; fix.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": " + p.What)
	if p.Fix != "" {
		sep := "; "
		if strings.HasSuffix(p.What, "?") {
			sep = " "
		}
		b.WriteString(sep + p.Fix)
	}
	return b.String()
}

// A Warning is a problem that does not keep the station from running.
type Warning = Problem

// An Error lists everything wrong with one file, by line.
type Error struct{ Problems []Problem }

// Error gives one line per problem.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}
