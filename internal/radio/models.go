package radio

import (
	"fmt"
	"slices"
	"strings"

	"gsd-mcp/internal/spell"
)

// Models is the table of radios: every model that station.toml may name.
func Models() []Model {
	return slices.Concat(icomModels(), kenwoodModels(), ft991Models(), ft847Models(), ft817Models(), rigctldModels())
}

// Lookup finds a model by its name or one of its other names, in any case. An
// unknown name is answered with the nearest known one.
func Lookup(name string) (Model, error) {
	want := strings.ToLower(name)
	var names, all []string
	for _, m := range Models() {
		if m.Name == want || slices.Contains(m.Aliases, want) {
			return m, nil
		}
		names = append(names, m.Name)
		all = append(append(all, m.Name), m.Aliases...)
	}
	if s := spell.Nearest(want, all); s != "" {
		return Model{}, fmt.Errorf("radio %q is not known: did you mean %s?", printable(name), s)
	}
	return Model{}, fmt.Errorf("radio %q is not known: choose one of %s", printable(name), strings.Join(names, ", "))
}
