package tools

import (
	"encoding/json"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// maxList bounds the JSON of one list in an answer, in bytes (hazard A-08).
// Clients warn at 10 000 tokens and cut at 25 000, which is about 30 kB with the
// sentence and the rest of the document.
const maxList = 24 << 10

// fit is how many items of a list, from its start, may go into one answer.
func fit[T any](items []T) int {
	size := 0
	for i, it := range items {
		b, err := json.Marshal(it)
		if err != nil {
			return i
		}
		if size += len(b) + 1; size > maxList {
			return i
		}
	}
	return len(items)
}

// maxName is how much of a satellite's name is shown, in characters. No real
// name needs more, and little can be said in that (hazard A-02).
const maxName = 24

// shown is a catalogue whose names are short: whatever a tool, a resource or a
// booking takes from it can be shown as data.
type shown struct{ Catalogue }

func short(s elements.Set) elements.Set {
	s.Name = unit.Printable(s.Name, maxName)
	return s
}

func shortAll(list []elements.Set) []elements.Set {
	out := make([]elements.Set, len(list))
	for i, s := range list {
		out[i] = short(s)
	}
	return out
}

// Get implements Catalogue.
func (c shown) Get(noradID int) (elements.Set, bool) {
	s, ok := c.Catalogue.Get(noradID)
	return short(s), ok
}

// All implements Catalogue.
func (c shown) All() []elements.Set { return shortAll(c.Catalogue.All()) }

// Find implements Catalogue.
func (c shown) Find(query string, limit int) []elements.Set {
	return shortAll(c.Catalogue.Find(query, limit))
}
