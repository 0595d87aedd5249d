// Package hw holds what is known of real hardware: one TOML profile per rotator
// and radio, built into the program. A profile gives the defaults of [rotator]
// or [radio]; station.toml overrides any of them. README.md says how to add one.
package hw

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"gsd-mcp/internal/spell"
)

//go:embed rotator/*.toml radio/*.toml
var files embed.FS

// The two kinds of profile: the folders here, the tables in station.toml.
const (
	RotatorKind = "rotator"
	RadioKind   = "radio"
)

// A Profile is one file: what a rotator or radio is like before anybody has
// looked at the one on site.
type Profile struct {
	Name    string   // file name without .toml, as in profile = "..."
	Kind    string   // RotatorKind or RadioKind
	Title   string   // maker, model and controller
	Confirm []string // what a technician must look at on site, in the imperative

	text     []byte
	settings []byte
}

// Text is the profile's file, comments and all.
func (p Profile) Text() []byte { return bytes.Clone(p.text) }

// Decode writes the profile's settings over those that into, a pointer to the
// configuration's table, already has. A setting that the table does not know is
// an error: a profile must not promise what nothing reads.
func (p Profile) Decode(into any) error {
	if err := toml.NewDecoder(bytes.NewReader(p.settings)).DisallowUnknownFields().Decode(into); err != nil {
		var missing *toml.StrictMissingError
		if errors.As(err, &missing) {
			return fmt.Errorf("profile %s: unknown setting %s", p.Name, strings.Join(missing.Errors[0].Key(), "."))
		}
		return fmt.Errorf("profile %s: %w", p.Name, err)
	}
	return nil
}

// Rotator finds a rotator profile by name.
func Rotator(name string) (Profile, error) { return Find(RotatorKind, name) }

// Radio finds a radio profile by name.
func Radio(name string) (Profile, error) { return Find(RadioKind, name) }

// Names lists the profiles of a kind, sorted.
func Names(kind string) []string {
	entries, err := fs.ReadDir(files, kind)
	if err != nil {
		return nil // no such kind
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".toml"))
	}
	return names
}

// Find finds a profile by kind and name.
func Find(kind, name string) (Profile, error) {
	if !slices.Contains(Names(kind), name) {
		return Profile{}, &UnknownError{Kind: kind, Name: name}
	}
	data, err := files.ReadFile(path.Join(kind, name+".toml"))
	if err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", name, err)
	}
	var file struct {
		Title    string         `toml:"title"`
		Confirm  []string       `toml:"confirm"`
		Settings map[string]any `toml:"settings"`
	}
	if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&file); err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", name, err)
	}
	settings, err := toml.Marshal(file.Settings)
	if err != nil {
		return Profile{}, fmt.Errorf("profile %s: %w", name, err)
	}
	return Profile{Name: name, Kind: kind, Title: file.Title, Confirm: file.Confirm, text: data, settings: settings}, nil
}

// An UnknownError says that there is no profile of that name.
type UnknownError struct{ Kind, Name string }

// Error names the likeliest profile of the kind.
func (e *UnknownError) Error() string {
	names := Names(e.Kind)
	if best := spell.Nearest(e.Name, names); best != "" {
		return fmt.Sprintf("there is no %s profile %.40q; did you mean %s?", e.Kind, e.Name, best)
	}
	return fmt.Sprintf("there is no %s profile %.40q among the %d", e.Kind, e.Name, len(names))
}
