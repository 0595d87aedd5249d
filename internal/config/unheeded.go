package config

import (
	"maps"
	"slices"
	"strings"
)

// unheeded are the keys, or whole tables, that are read and checked and that
// nothing obeys yet. A guard that is written down and does not act is worse than
// none, so whoever sets one is told.
func unheeded() []string {
	return []string{
		"rotator.limits.max_turns", "rotator.limits.speed_factor", "rotator.limits.unknown_wrap_deg", "rotator.limits.duty_on_s", "rotator.limits.duty_window_s",
		"rotator.watch.reversal_pause_ms", "rotator.watch.max_reversals_per_min", "rotator.watch.max_starts_per_min",
		"rotator.moves_on_open", "radio.address", "satellite.tone_hz", "schedule", "transmit", "trace",
		"access.contract_major", "access.approval_pin_hash", "access.budgets.transmits_per_hour",
	}
}

// ignored lists the keys of a file that nothing obeys, by their place in it; of a
// whole table only the table.
func ignored(marks map[string]mark) []string {
	var out []string
	for _, path := range slices.Sorted(maps.Keys(marks)) {
		plain := withoutIndex(path)
		if !slices.ContainsFunc(unheeded(), func(u string) bool { return plain == u || strings.HasPrefix(plain, u+".") }) {
			continue
		}
		if n := len(out); n == 0 || !strings.HasPrefix(path, out[n-1]+".") && !strings.HasPrefix(path, out[n-1]+"[") {
			out = append(out, path)
		}
	}
	return out
}

// withoutIndex takes the numbers of list entries out of a path: radio[1].baud
// becomes radio.baud.
func withoutIndex(path string) string {
	for {
		i := strings.IndexByte(path, '[')
		j := strings.IndexByte(path, ']')
		if i < 0 || j < i {
			return path
		}
		path = path[:i] + path[j+1:]
	}
}
