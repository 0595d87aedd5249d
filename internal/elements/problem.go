package elements

import (
	"fmt"
	"strings"
)

// Severity says whether a problem cost a record.
type Severity int

const (
	// Warn: the record was kept.
	Warn Severity = iota
	// Reject: the record, or the rest of the file, was dropped.
	Reject
)

// String is the word for messages: warning or error.
func (s Severity) String() string {
	if s == Reject {
		return "error"
	}
	return "warning"
}

// A Problem is one thing wrong in a source of elements: where, what, and what
// to do. Its text is safe to show.
type Problem struct {
	Source   string // file name or URL
	Line     int    // from 1; 0 when the whole source is meant
	Column   int    // from 1, in characters; 0 when the whole line is meant
	Severity Severity
	What     string
	Fix      string
}

// String gives the problem the way compilers do: source:line:column: text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.Source)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
		if p.Column > 0 {
			fmt.Fprintf(&b, ":%d", p.Column)
		}
	}
	fmt.Fprintf(&b, ": %s: %s", p.Severity, p.What)
	if p.Fix != "" {
		b.WriteString("; ")
		b.WriteString(p.Fix)
	}
	return b.String()
}

// A Result is what a source gave: the good sets in order, and what was wrong.
type Result struct {
	Sets     []Set
	Problems []Problem
	Format   string // "TLE", "OMM JSON", "OMM CSV", "OMM XML", "OMM KVN", or "" when it was none of them
}

// Rejected counts the problems that cost a record or the rest of the source.
func (r Result) Rejected() int {
	n := 0
	for _, p := range r.Problems {
		if p.Severity == Reject {
			n++
		}
	}
	return n
}

// maxProblems bounds what one source can make us remember: a megabyte of
// noise is one fact, not a million.
const maxProblems = 200

// A reader collects the result of one source.
type reader struct {
	source string
	res    Result
	lost   int // problems beyond maxProblems
}

func (r *reader) add(p Problem) {
	if len(r.res.Problems) >= maxProblems {
		r.lost++
		return
	}
	p.Source = r.source
	r.res.Problems = append(r.res.Problems, p)
}

func (r *reader) reject(line, column int, fix, what string, args ...any) {
	r.add(Problem{Line: line, Column: column, Severity: Reject, What: fmt.Sprintf(what, args...), Fix: fix})
}

func (r *reader) warn(line, column int, fix, what string, args ...any) {
	r.add(Problem{Line: line, Column: column, Severity: Warn, What: fmt.Sprintf(what, args...), Fix: fix})
}

func (r *reader) done() Result {
	if r.lost > 0 {
		r.res.Problems = append(r.res.Problems, Problem{
			Source: r.source, Severity: Reject,
			What: fmt.Sprintf("%d more problems are not listed", r.lost),
			Fix:  "fetch the source again",
		})
	}
	return r.res
}
