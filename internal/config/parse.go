package config

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"gsd-mcp/hw"
)

// maxFile bounds what is read: a station.toml with every key is under 20 kB.
const maxFile = 1 << 20

// Load reads a configuration file. A file that is not there is ErrNoConfig; one
// with mistakes is an *Error that lists them all.
func Load(path string) (*Config, error) {
	data, err := Read(path)
	if err != nil {
		return nil, err
	}
	c, _, err := Parse(path, data)
	return c, err
}

// Read gives the bytes of a configuration file for Parse. It refuses a file
// that anybody may write: whoever can change [access] owns the station.
func Read(path string) ([]byte, error) {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: %s does not exist", ErrNoConfig, path)
	case err != nil:
		return nil, fmt.Errorf("read configuration: %w", err)
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("read configuration: %s is not a file", path)
	case st.Mode().Perm()&0o002 != 0:
		return nil, fmt.Errorf("read configuration: everybody may write %s (mode %04o), so anybody could give themselves a role; run: chmod o-w %s", path, st.Mode().Perm(), path)
	case st.Size() > maxFile:
		return nil, fmt.Errorf("read configuration: %s has %d bytes, more than %d; it is not a station.toml", path, st.Size(), maxFile)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return data, nil
}

// Parse reads the text of a configuration; name is the file's, for messages.
// Values come from the defaults, then from the profiles that the text names,
// then from the text. All mistakes are reported at once, in an *Error.
func Parse(name string, data []byte) (*Config, []Warning, error) {
	if len(data) > maxFile {
		return nil, nil, &Error{[]Problem{{File: name, What: fmt.Sprintf("the file has %d bytes, more than %d", len(data), maxFile), Fix: "give a station.toml"}}}
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) // Windows editors
	data, shifted := allowSingleRadio(slices.Clip(bytes.Clone(data)))
	w := newWalk(name, data)
	w.run(reflect.TypeFor[Config]())
	var given Config
	if len(w.problems) == 0 {
		if err := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields().Decode(&given); err != nil {
			w.decodeError(err)
		}
	}
	if len(w.problems) > 0 {
		return nil, nil, w.err(shifted)
	}
	c := Default()
	w.profiles(&c, &given)
	if len(w.problems) > 0 {
		return nil, nil, w.err(shifted)
	}
	overlay(reflect.ValueOf(&c).Elem(), reflect.ValueOf(&given).Elem(), "", w.marks)
	if _, set := w.marks["version"]; !set {
		c.Version = 0 // the check names it
	}
	if _, set := w.marks["antenna.sun_separation_deg"]; !set && c.Antenna.Kind == "dish" {
		c.Antenna.SunSeparationDeg = dishSunSeparationDeg
	}
	ch := check{c: &c}
	ch.all()
	if keys := ignored(w.marks); len(keys) > 0 && len(ch.problems) == 0 { // mistakes first
		ch.warn("", "accepted, but not obeyed by this version: "+strings.Join(keys, ", "), "do not rely on them; they may be left out")
	}
	warnings := w.place(ch.warnings, shifted)
	if len(ch.problems) > 0 {
		w.problems = w.place(ch.problems, 0)
		return nil, warnings, w.err(shifted)
	}
	return &c, warnings, nil
}

// dishSunSeparationDeg keeps a dish's focus, and what sits in it, cool (M-09).
const dishSunSeparationDeg = 5

// Validate checks a configuration that was built in code, by the rules of Parse.
func (c *Config) Validate() error {
	ch := check{c: c}
	ch.all()
	if len(ch.problems) == 0 {
		return nil
	}
	for i := range ch.problems {
		ch.problems[i].File = "configuration: " + ch.problems[i].Key
	}
	return &Error{ch.problems}
}

// allowSingleRadio lets the first radio be written [radio]: most stations have
// one, and TOML would want [[radio]]. It returns the line whose columns moved.
func allowSingleRadio(data []byte) ([]byte, int) {
	var p unstable.Parser
	p.Reset(data)
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable {
			continue
		}
		it := e.Key()
		it.Next()
		if string(it.Node().Data) != "radio" || !it.IsLast() {
			continue
		}
		if e.Kind == unstable.ArrayTable {
			return data, 0
		}
		raw := it.Node().Raw
		begin := bytes.LastIndexByte(data[:raw.Offset], '[')
		end := int(raw.Offset + raw.Length)
		end += bytes.IndexByte(data[end:], ']')
		out := slices.Concat(data[:begin], []byte("["), data[begin:end], []byte("]"), data[end:])
		return slices.Clip(out), bytes.Count(data[:begin], []byte{'\n'}) + 1
	}
	return data, 0
}

// decodeError adds what the TOML library found that the walk did not: a key
// given twice, an impossible date, a number out of range.
func (w *walk) decodeError(err error) {
	var de *toml.DecodeError
	if !errors.As(err, &de) {
		w.add(mark{}, "", "the file does not fit station.toml", "compare it with: gsd-mcp config example")
		return
	}
	line, column := de.Position()
	what, fix := reword(strings.TrimPrefix(de.Error(), "toml: "))
	w.add(mark{line, column}, strings.Join(de.Key(), "."), what, fix)
}

// err gives the problems in the order of the file. shifted is the line of the
// rewritten [radio].
func (w *walk) err(shifted int) error {
	for i, p := range w.problems {
		if p.Line == shifted && p.Column > 1 {
			w.problems[i].Column--
		}
	}
	slices.SortStableFunc(w.problems, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	if len(w.problems) > maxProblems {
		w.problems = append(w.problems[:maxProblems], Problem{File: w.file, What: "there are more mistakes", Fix: "correct these first"})
	}
	return &Error{w.problems}
}

// maxProblems is as much as anybody wants to read at once.
const maxProblems = 50

// place fills in where each problem is.
func (w *walk) place(problems []Problem, shifted int) []Problem {
	for i := range problems {
		p := &problems[i]
		at := w.find(p.Key)
		p.File, p.Line, p.Column = w.file, at.line, at.column
		if p.Line == shifted && p.Column > 1 {
			p.Column--
		}
	}
	return problems
}

// profiles fills c with the values of the profiles that the file names, and
// makes each list as long as the file's, of default entries.
func (w *walk) profiles(c, given *Config) {
	apply := func(path, name string, find func(string) (hw.Profile, error), into any) {
		if name == "" {
			return
		}
		p, err := find(name)
		if err == nil {
			err = p.Decode(into)
		}
		if err != nil {
			w.add(w.find(path), path, err.Error(), "list them with: gsd-mcp config example --profiles")
		}
	}
	apply("rotator.profile", given.Rotator.Profile, hw.Rotator, &c.Rotator)
	c.Radio = make([]Radio, len(given.Radio))
	for i, r := range given.Radio {
		c.Radio[i] = defaultRadio()
		apply(fmt.Sprintf("radio[%d].profile", i+1), r.Profile, hw.Radio, &c.Radio[i])
	}
	c.Satellite = make([]Satellite, len(given.Satellite))
	for i := range c.Satellite {
		c.Satellite[i] = defaultSatellite()
	}
	c.KeepOut = make([]KeepOut, len(given.KeepOut))
}

// overlay copies from the file's values into the defaults every value whose
// key the file has.
func overlay(into, given reflect.Value, path string, marks map[string]mark) {
	t := into.Type()
	for i := range t.NumField() {
		f, at := t.Field(i), join(path, tag(t.Field(i)))
		switch {
		case isTables(f.Type):
			for j := range given.Field(i).Len() {
				overlay(into.Field(i).Index(j), given.Field(i).Index(j), fmt.Sprintf("%s[%d]", at, j+1), marks)
			}
		case isTable(f.Type) && f.Type.Kind() == reflect.Struct:
			overlay(into.Field(i), given.Field(i), at, marks)
		default:
			if _, set := marks[at]; set {
				into.Field(i).Set(given.Field(i))
			}
		}
	}
}
