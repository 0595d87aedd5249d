package gsdmcp

import (
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// pages lists every Markdown file of the repository.
func pages(t *testing.T) []string {
	t.Helper()
	var all []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules" || d.Name() == "dist"):
			return filepath.SkipDir
		case !d.IsDir() && strings.HasSuffix(path, ".md"):
			all = append(all, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("only %d pages were found: %v", len(all), all)
	}
	return all
}

var (
	fence      = regexp.MustCompile("(?ms)^ *```.*?^ *```$")
	inlineCode = regexp.MustCompile("`[^`\n]*`")
	linkTarget = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading    = regexp.MustCompile(`(?m)^#{1,6} +(.+)$`)
	elsewhere  = regexp.MustCompile(`^[a-z][a-z+.-]*:`)
)

// anchors are the fragments that GitHub makes of a page's headings.
func anchors(page string) map[string]bool {
	out := map[string]bool{}
	for _, h := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		slug := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(h[1]))
		out[slug] = true
	}
	return out
}

func TestEveryRelativeLinkOfThePagesLeadsSomewhere(t *testing.T) {
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := inlineCode.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "")
		for _, m := range linkTarget.FindAllStringSubmatch(prose, -1) {
			if elsewhere.MatchString(m[1]) {
				continue // another site's
			}
			name, fragment, _ := strings.Cut(m[1], "#")
			name, err := url.PathUnescape(name)
			if err != nil {
				t.Errorf("%s: link %q: %v", page, m[1], err)
				continue
			}
			target := page
			if name != "" {
				target = filepath.Join(filepath.Dir(page), name)
			}
			if strings.HasPrefix(target, "..") || filepath.IsAbs(name) {
				t.Errorf("%s: link %q leaves the repository", page, m[1])
				continue
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link %q: %v", page, m[1], err)
				continue
			}
			if fragment == "" {
				continue
			}
			to, err := os.ReadFile(target)
			if err != nil {
				t.Errorf("%s: link %q: %v", page, m[1], err)
			} else if !anchors(string(to))[fragment] {
				t.Errorf("%s: link %q: %s has no heading for #%s", page, m[1], target, fragment)
			}
		}
	}
}

// Who opens the README wants to run it: the main job first, the tests second.
func TestReadmeOpensWithTheTwoCommands(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	block := fence.FindStringIndex(string(text))
	if block == nil {
		t.Fatal("the README has no commands")
	}
	if n := strings.Count(string(text[:block[0]]), "\n"); n > 3 {
		t.Errorf("%d lines stand before the commands, want the title only", n)
	}
	lines := strings.Split(strings.Trim(string(text[block[0]:block[1]]), "`sh \n"), "\n")
	want := []string{"go run ./cmd/gsd-mcp demo", "go test ./..."}
	if len(lines) != len(want) {
		t.Fatalf("the README opens with %q, want the two commands %q", lines, want)
	}
	for i, l := range lines {
		if got, _, _ := strings.Cut(l, "#"); strings.TrimSpace(got) != want[i] {
			t.Errorf("command %d is %q, want %q", i+1, got, want[i])
		}
	}
}

// Every page of docs is found from its index.
func TestTheIndexNamesEveryPage(t *testing.T) {
	index, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages(t) {
		name, ok := strings.CutPrefix(filepath.ToSlash(page), "docs/")
		if ok && name != "README.md" && !strings.Contains(string(index), "]("+name+")") {
			t.Errorf("docs/README.md does not link %s", name)
		}
	}
}
