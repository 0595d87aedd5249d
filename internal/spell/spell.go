// Package spell guesses what a mistyped name was meant to be. It must never
// decide anything: a guess is for a person to read.
package spell

import "strings"

// Nearest is the name that a mistyped word was most likely meant to be, or ""
// when none is close: at most a third of its letters differ, or one begins with
// the other (latitude for latitude_deg).
func Nearest(word string, names []string) string {
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	if len(word) > 64 {
		return ""
	}
	best, bestCost := "", 0
	for _, n := range names {
		low := strings.ReplaceAll(strings.ToLower(n), "-", "_")
		cost := distance(word, low)
		if len(word) >= 3 && (strings.HasPrefix(low, word) || len(low) >= 3 && strings.HasPrefix(word, low)) {
			cost = min(cost, 1)
		}
		if cost <= max(1, (min(len(word), len(low))+1)/3) && (best == "" || cost < bestCost) {
			best, bestCost = n, cost
		}
	}
	return best
}

// distance is the Levenshtein distance, a swap of neighbours counting as one.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
