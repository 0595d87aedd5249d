package safety

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const notCovered = "not covered yet"

var quoted = regexp.MustCompile("`([^`]+)`")

// testsInTree lists the names of all tests and fuzz targets of the module.
func testsInTree(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	fn := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\)`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		src, err := os.ReadFile(path)
		for _, m := range fn.FindAllStringSubmatch(string(src), -1) {
			found[m[1]] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// hazardIDs lists what the registers hold.
func hazardIDs() []string {
	var ids []string
	for _, reg := range []struct {
		letter string
		last   int
	}{{"M", 37}, {"T", 26}, {"S", 14}, {"A", 10}} {
		for i := 1; i <= reg.last; i++ {
			ids = append(ids, fmt.Sprintf("%s-%02d", reg.letter, i))
		}
	}
	return ids
}

// checkCase reports what is wrong with the safety case's page.
func checkCase(page string, tests map[string]bool) []string {
	var wrong []string
	say := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	id := regexp.MustCompile(`\b[MTSA]-\d\d\b`)
	rows := map[string]bool{}
	known := map[string]bool{}
	for _, id := range hazardIDs() {
		known[id] = true
	}
	for n, line := range strings.Split(page, "\n") {
		for _, q := range quoted.FindAllStringSubmatch(line, -1) {
			name := q[1]
			if strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
				if !tests[name] {
					say("line %d names the test %s, which does not exist", n+1, name)
				}
			} else if regexp.MustCompile(`^[A-Z][A-Z_]+$`).MatchString(name) && !isCode(name) {
				say("line %d names the code %s, which does not exist", n+1, name)
			}
		}
		names := id.FindAllString(line, -1)
		for i, name := range names {
			if !rows[name] && (i > 0 || !strings.HasPrefix(line, "| "+name+" | ")) {
				say("line %d is the first to name %s and is not its row", n+1, name)
			}
		}
		if len(names) == 0 || rows[names[0]] {
			continue
		}
		rows[names[0]] = true
		row := strings.Split(line, " | ")
		if !known[names[0]] {
			say("%s is in no register", names[0])
		}
		if len(row) != 7 {
			say("%s has %d columns, want 7", names[0], len(row))
			continue
		}
		for i, cell := range row {
			if strings.Trim(cell, " |") == "" {
				say("%s: column %d is empty", names[0], i+1)
			}
		}
		if cell := row[5]; !strings.Contains(cell, notCovered) && !strings.Contains(cell, "`Test") && !strings.Contains(cell, "`Fuzz") {
			say("%s: the tests' column names no test and does not say %q", names[0], notCovered)
		}
	}
	for _, id := range hazardIDs() {
		if !rows[id] {
			say("%s has no row", id)
		}
	}
	for _, c := range Codes() {
		if !strings.Contains(page, "`"+string(c.Code)+"`") {
			say("the code %s stands nowhere", c.Code)
		}
	}
	return wrong
}

func isCode(s string) bool { return known(Code(s)) }

func TestSafetyCaseIsComplete(t *testing.T) {
	page, err := os.ReadFile("../../docs/safety.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range checkCase(string(page), testsInTree(t)) {
		t.Errorf("docs/safety.md: %s", w)
	}
}

// The check bites: each of these changes to the page, or to the tree, is found.
func TestSafetyCaseCheckBites(t *testing.T) {
	b, err := os.ReadFile("../../docs/safety.md")
	if err != nil {
		t.Fatal(err)
	}
	page, tests := string(b), testsInTree(t)
	change := func(from, to string) string {
		out := strings.Replace(page, from, to, 1)
		if out == page {
			t.Fatalf("the page has no %q", from)
		}
		return out
	}
	spoiled := map[string]string{
		"a row gone":           change("| M-17 |", "| M-99 |"),
		"a code nobody knows":  change("`WIND`", "`GALE`"),
		"a code without place": strings.ReplaceAll(page, "`FROZEN_WINDOW`", "-"),
		"an untested row":      change("| `TestRouteRaisesFirst` `TestClearSeesWhatIsLeftOfARoute` `TestPropertyAllowedMovesStayAllowed` |", "| – |"),
		"a column gone":        change("| S-13 | nobody reads the log | ", "| S-13 | "),
	}
	for name, p := range spoiled {
		if len(checkCase(p, tests)) == 0 {
			t.Errorf("%s: nothing was found", name)
		}
	}
	delete(tests, "TestRouteRaisesFirst")
	if len(checkCase(page, tests)) == 0 {
		t.Error("a test that was removed was not missed")
	}
}
