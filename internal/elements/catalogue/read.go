package catalogue

import (
	"encoding/json"
	"errors"
	"fmt"

	"gsd-mcp/internal/elements"
)

// FileName is the catalogue's file in the station's state directory.
const FileName = setsName

// ReadFile gives the sets of a catalogue's file as state.Dir saved it, for
// programs that only look and must not take the station's lock. Sets that are
// out of range are left out.
func ReadFile(data []byte) ([]elements.Set, error) {
	var file struct {
		Value saved `json:"value"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, fmt.Errorf("read the catalogue: %w", err)
	}
	var sets []elements.Set
	for _, s := range file.Value.Sets {
		if s.Validate() == nil {
			sets = append(sets, s)
		}
	}
	if len(sets) == 0 {
		return nil, errors.New("the catalogue holds no elements")
	}
	return sets, nil
}
