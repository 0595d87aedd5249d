package main

import (
	"sort"
	"strconv"
	"strings"

	"gsd-mcp/internal/elements"
)

// A memoryCatalogue holds element sets that do not change.
type memoryCatalogue struct {
	sets []elements.Set // by catalogue number
	byID map[int]int
}

// newMemoryCatalogue keeps the newest set of each satellite.
func newMemoryCatalogue(sets []elements.Set) *memoryCatalogue {
	newest := map[int]elements.Set{}
	for _, s := range sets {
		if old, ok := newest[s.NoradID]; !ok || s.Epoch.After(old.Epoch) {
			newest[s.NoradID] = s
		}
	}
	c := &memoryCatalogue{byID: map[int]int{}}
	for _, s := range newest {
		c.sets = append(c.sets, s)
	}
	sort.Slice(c.sets, func(i, j int) bool { return c.sets[i].NoradID < c.sets[j].NoradID })
	for i, s := range c.sets {
		c.byID[s.NoradID] = i
	}
	return c
}

// Get returns the set of a satellite.
func (c *memoryCatalogue) Get(noradID int) (elements.Set, bool) {
	i, ok := c.byID[noradID]
	if !ok {
		return elements.Set{}, false
	}
	return c.sets[i], true
}

// All returns every set, by catalogue number.
func (c *memoryCatalogue) All() []elements.Set { return c.sets }

// Find returns up to limit sets whose name or number holds the query: the exact
// number first, then names that begin with it.
func (c *memoryCatalogue) Find(query string, limit int) []elements.Set {
	q := strings.ToLower(strings.TrimSpace(query))
	if q == "" {
		return nil
	}
	type hit struct {
		rank int
		set  elements.Set
	}
	var hits []hit
	for _, s := range c.sets {
		name, number := strings.ToLower(s.Name), strconv.Itoa(s.NoradID)
		switch {
		case number == q:
			hits = append(hits, hit{0, s})
		case strings.HasPrefix(name, q):
			hits = append(hits, hit{1, s})
		case strings.Contains(name, q):
			hits = append(hits, hit{2, s})
		case strings.HasPrefix(number, q):
			hits = append(hits, hit{3, s})
		}
	}
	sort.SliceStable(hits, func(i, j int) bool { return hits[i].rank < hits[j].rank })
	var out []elements.Set
	for _, h := range hits[:min(limit, len(hits))] {
		out = append(out, h.set)
	}
	return out
}
