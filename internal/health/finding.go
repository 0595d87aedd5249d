// Package health turns facts into findings: what is wrong, why, and what to do,
// worst first. It reads the computer under the station from sysfs (its root is
// a parameter, so a Raspberry Pi is a folder of files) and the state directory.
// It must never repair, restart or stop anything, and never run a program.
package health

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"time"
)

// Severities of a finding, mildest first.
const (
	Info    = "info"    // worth knowing; nothing is wrong
	Warning = "warning" // the station works, with less margin
	Unsafe  = "unsafe"  // motion or transmission is refused for it
	Down    = "down"    // the station cannot do its work at all
)

// A Finding is one thing that somebody should know, and the next step.
type Finding struct {
	Code     string    `json:"code"` // stable, like a refusal code: UNDER_VOLTAGE
	Severity string    `json:"severity"`
	Title    string    `json:"title"` // a few words
	Cause    string    `json:"cause"` // one sentence, with the numbers
	NextStep string    `json:"next_step"`
	Since    time.Time `json:"since"` // when it was first seen, station time
	AgeS     float64   `json:"age_s"` // seconds since then
}

// A Verdict is the state of the whole station in one word.
type Verdict string

// Verdicts, best first.
const (
	VerdictWell     Verdict = "well"
	VerdictDegraded Verdict = "degraded"
	VerdictUnsafe   Verdict = "unsafe"
	VerdictDown     Verdict = "down"
)

// rank orders severities. An unknown one counts as unsafe: whoever wrote it
// wanted to say something.
func rank(severity string) int {
	switch severity {
	case Info:
		return 0
	case Warning:
		return 1
	case Down:
		return 3
	}
	return 2
}

// Assess is the verdict of the worst finding.
func Assess(findings []Finding) Verdict {
	worst := 0
	for _, f := range findings {
		worst = max(worst, rank(f.Severity))
	}
	return [...]Verdict{VerdictWell, VerdictDegraded, VerdictUnsafe, VerdictDown}[worst]
}

// ExitCode is what `gsd-mcp health` and `doctor` end with: 0 well, 1 degraded,
// 2 unsafe or down.
func (v Verdict) ExitCode() int {
	switch v {
	case VerdictWell:
		return 0
	case VerdictDegraded:
		return 1
	}
	return 2
}

// Sort puts the worst finding first; among equals the oldest, then by code.
func Sort(findings []Finding) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(rank(b.Severity)-rank(a.Severity), a.Since.Compare(b.Since), cmp.Compare(a.Code, b.Code))
	})
}

// A Memory knows since when each finding has been there. It is safe for
// concurrent use; the zero value is ready.
type Memory struct {
	mu    sync.Mutex
	since map[string]time.Time
}

// Stamp fills in Since and AgeS of the findings that are there now, forgets
// those that have gone, and sorts. Two findings with one code share their age.
// A Since that is already set is kept when it is earlier.
func (m *Memory) Stamp(findings []Finding, now time.Time) []Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := make(map[string]time.Time, len(findings))
	out := slices.Clone(findings)
	for i := range out {
		f := &out[i]
		first, ok := m.since[f.Code]
		if !ok || first.After(now) { // the clock stepped back
			first = now
		}
		if !f.Since.IsZero() && f.Since.Before(first) {
			first = f.Since
		}
		f.Since = first
		f.AgeS = math.Round(now.Sub(first).Seconds()*10) / 10
		next[f.Code] = first
	}
	m.since = next
	Sort(out)
	return out
}

// A Report is the verdict and what it rests on.
type Report struct {
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// MarshalJSON writes no findings as an empty list.
func (r Report) MarshalJSON() ([]byte, error) {
	type plain Report
	p := plain(r)
	if p.Findings == nil {
		p.Findings = []Finding{}
	}
	return json.Marshal(p)
}
