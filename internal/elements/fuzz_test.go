package elements

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// seed adds every reference file of some folders.
func seed(f *testing.F, patterns ...string) {
	f.Helper()
	for _, p := range patterns {
		files, err := filepath.Glob(filepath.Join(dataDir, p))
		if err != nil || len(files) == 0 {
			f.Fatalf("no seeds in %s: %v", p, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(oneRecord(name, data))
		}
	}
}

// oneRecord cuts a file of OMMs after its first record: the fuzzer minimises
// what it finds, and takes minutes over five kilobytes.
func oneRecord(name string, data []byte) []byte {
	end := map[string][2]string{
		".json": {"}", "}]"}, ".csv": {"\n", ""}, ".xml": {"</omm>", "</omm></ndm>"}, ".kvn": {"\n\n", ""},
	}[filepath.Ext(name)]
	if end[0] == "" {
		return data
	}
	first, rest, _ := strings.Cut(string(data), end[0])
	if filepath.Ext(name) == ".csv" {
		row, _, _ := strings.Cut(rest, "\n")
		first += "\n" + row
	}
	return []byte(first + end[1])
}

// holds checks what must be true of any result.
func holds(t *testing.T, data []byte, r Result) {
	t.Helper()
	if len(r.Sets) == 0 && r.Rejected() == 0 {
		t.Fatalf("nothing read and nothing said, from %q", data)
	}
	for _, s := range r.Sets {
		if err := s.Validate(); err != nil {
			t.Fatalf("%v, from %q", err, data)
		}
		if s.NoradID > maxAlpha5 {
			continue
		}
		l1, l2 := s.TLE()
		again := Parse("again", []byte(l1+"\n"+l2+"\n"))
		if len(again.Sets) != 1 || again.Sets[0].NoradID != s.NoradID {
			// A mean motion of under 1e-8 is 0 in a TLE.
			if s.MeanMotion >= 1e-8 {
				t.Fatalf("its own TLE\n%s\n%s\nreads as %v, from %q", l1, l2, again.Problems, data)
			}
		}
	}
	for _, p := range r.Problems {
		if text := p.String(); !utf8.ValidString(text) || p.What == "" {
			t.Fatalf("problem %q, from %q", text, data)
		}
	}
}

func FuzzTLE(f *testing.F) {
	seed(f, "bad_tles/*", "tle/*.tle")
	f.Fuzz(func(t *testing.T, data []byte) { holds(t, data, Parse("fuzz", data)) })
}

func FuzzOMMJSON(f *testing.F) {
	seed(f, "omm/*.json")
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{source: "fuzz"}
		r.json(data)
		holds(t, data, r.done())
	})
}

func FuzzOMMCSV(f *testing.F) {
	seed(f, "omm/*.csv")
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{source: "fuzz"}
		r.csv(data)
		if len(data) > 0 && len(r.res.Sets) > 0 {
			holds(t, data, r.done())
		}
	})
}

func FuzzOMMXML(f *testing.F) {
	seed(f, "omm/*.xml")
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{source: "fuzz"}
		r.xml(data)
		holds(t, data, r.done())
	})
}

func FuzzOMMKVN(f *testing.F) {
	seed(f, "omm/*.kvn")
	f.Fuzz(func(t *testing.T, data []byte) {
		r := &reader{source: "fuzz"}
		r.kvn(data)
		if len(r.res.Sets) > 0 {
			holds(t, data, r.done())
		}
	})
}
