package gsdmcp

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "gsd-mcp"

// arrows says which of our packages each of our packages may import directly:
// the picture of docs/architecture.md. cmd/gsd-mcp may import all.
var arrows = map[string][]string{
	"hw":                          {"internal/spell", "internal/unit"},
	"internal/clock":              {},
	"internal/config":             {"hw", "internal/radio", "internal/rotator", "internal/safety", "internal/spell", "internal/unit"},
	"internal/door":               {"internal/clock", "internal/event", "internal/mcp", "internal/safety", "internal/station", "internal/tools", "internal/unit"},
	"internal/elements":           {"internal/unit"},
	"internal/elements/catalogue": {"internal/clock", "internal/elements", "internal/spell", "internal/state", "internal/unit"},
	"internal/event":              {"internal/clock", "internal/state", "internal/unit"},
	"internal/health":             {"internal/clock", "internal/unit"},
	"internal/hub":                {"internal/clock", "internal/event", "internal/health", "internal/state", "internal/unit"},
	"internal/hub/hubtest":        {"internal/event", "internal/peers"},
	"internal/mcp":                {"internal/unit"},
	"internal/mcp/mcptest":        {"internal/mcp", "internal/peers"},
	"internal/passes":             {"internal/elements", "internal/unit"},
	"internal/peers":              {},
	"internal/radio":              {"internal/spell", "internal/unit"},
	"internal/rotator":            {"internal/spell", "internal/unit"},
	"internal/rotctl":             {"internal/safety", "internal/station", "internal/unit"},
	"internal/safety":             {"internal/unit"},
	"internal/schedule":           {"internal/clock", "internal/event", "internal/passes", "internal/safety", "internal/state", "internal/track", "internal/unit"},
	"internal/serialport":         {"internal/clock", "internal/unit"},
	"internal/sim":                {"internal/clock", "internal/serialport", "internal/unit"},
	"internal/spell":              {},
	"internal/state":              {"internal/unit"},
	"internal/station": {"internal/clock", "internal/elements", "internal/event", "internal/health", "internal/passes", "internal/radio", "internal/rotator",
		"internal/safety", "internal/state", "internal/track", "internal/unit"},
	"internal/tools": {"internal/clock", "internal/elements", "internal/elements/catalogue", "internal/event", "internal/health", "internal/mcp", "internal/passes",
		"internal/radio", "internal/rotator", "internal/safety", "internal/schedule", "internal/spell", "internal/station", "internal/track", "internal/unit"},
	"internal/track": {"internal/clock", "internal/passes", "internal/safety", "internal/unit"},
	"internal/unit":  {},
	"internal/unkey": {"internal/clock", "internal/radio", "internal/serialport", "internal/unit"},
}

// owners says who alone may import a library, tests included where a test
// could touch hardware or the network behind the owner's back.
var owners = []struct {
	library string
	may     []string
	why     string
}{
	{"go.bug.st/serial", []string{"internal/serialport"}, "one place opens a tty"},
	{"github.com/joshuaferrara/go-satellite", []string{"internal/passes"}, "its epochs, angles and errors are wrong unless corrected there"},
	{"github.com/eclipse/paho.mqtt.golang", []string{"internal/hub", "internal/hub/hubtest"}, "publish-only lives in one place"},
	{"github.com/mochi-mqtt/server", []string{"internal/sim", "internal/hub/hubtest"}, "the only broker in the binary is the demo's"},
	{"github.com/modelcontextprotocol/go-sdk", []string{"internal/mcp/mcptest"}, "a peer of our tests, never part of the binary"},
	{"pgregory.net/rapid", nil, "a test library"},
	{"github.com/google/go-cmp", nil, "a test library"},
	{"github.com/rogpeppe/go-internal", nil, "a test library"},
	{"github.com/spf13/cobra", []string{"cmd/gsd-mcp"}, "flags belong to the command"},
}

// helpers exist for tests only.
var helpers = []string{"internal/peers", "internal/hub/hubtest", "internal/mcp/mcptest"}

// pure packages know no port, file, clock or logger. A file name limits the rule
// to that file.
var pure = []string{"internal/unit", "internal/safety", "internal/passes", "internal/elements", "internal/track/plan.go"}

var impure = regexp.MustCompile(`^(net|os|log|syscall|unsafe)(/.*)?$|^golang\.org/x/sys|hclog|/internal/(clock|state|event|serialport)$`)

// standardOnly packages import the standard library and our own packages.
var standardOnly = []string{"internal/mcp", "internal/door"}

// calls that belong to one place: they end the process, start another one, or
// read the time of day.
var calls = []struct {
	fn  string
	may []string // prefixes of paths
	why string
}{
	{"os.Exit", []string{"cmd/"}, "only main ends the process"},
	{"log.Fatal", nil, "deferred stops would not run"},
	{"log.Fatalf", nil, "deferred stops would not run"},
	{"log.Panic", nil, "nothing logs past the ring"},
	{"os.StartProcess", []string{"internal/unkey/"}, "children inherit serial descriptors"},
	{"syscall.ForkExec", []string{"internal/unkey/"}, "children inherit serial descriptors"},
	{"syscall.StartProcess", []string{"internal/unkey/"}, "children inherit serial descriptors"},
	{"syscall.Exec", []string{"cmd/"}, "the daemon never execs"},
	{"unix.Exec", []string{"cmd/"}, "the daemon never execs"},
}

type listed struct {
	ImportPath, Dir                    string
	GoFiles, TestGoFiles, XTestGoFiles []string
}

// A source is one file of ours: its path in the repository, what it imports and
// what it says.
type source struct {
	pkg, path string // pkg is "internal/unit", "." for the root
	test      bool
	imports   []string
	syntax    *ast.File
}

func sources(t *testing.T) []source {
	t.Helper()
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,TestGoFiles,XTestGoFiles", "./...")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	var all []source
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		pkg := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		for i, files := range [][]string{p.GoFiles, p.TestGoFiles, p.XTestGoFiles} {
			for _, f := range files {
				full := filepath.Join(p.Dir, f)
				syntax, err := parser.ParseFile(token.NewFileSet(), full, nil, parser.SkipObjectResolution)
				if err != nil {
					t.Fatal(err)
				}
				rel, err := filepath.Rel(root, full)
				if err != nil {
					t.Fatal(err)
				}
				s := source{pkg: pkg, path: filepath.ToSlash(rel), test: i > 0, syntax: syntax}
				for _, im := range syntax.Imports {
					path, err := strconv.Unquote(im.Path.Value)
					if err != nil {
						t.Fatal(err)
					}
					s.imports = append(s.imports, path)
				}
				all = append(all, s)
			}
		}
	}
	if len(all) < 20 {
		t.Fatalf("go list found only %d files", len(all))
	}
	return all
}

func within(path, library string) bool {
	return path == library || strings.HasPrefix(path, library+"/")
}

func isOurs(path string) bool { return within(path, module) }

func isStandard(path string) bool {
	return !strings.Contains(strings.Split(path, "/")[0], ".") && !isOurs(path)
}

// broken lists the import rules that one import breaks.
func broken(s source, path string) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	ours := strings.TrimPrefix(path, module+"/")
	if strings.HasPrefix(ours, "cmd/") && isOurs(path) {
		say("nothing imports cmd")
	}
	if s.test {
		return out
	}
	if isOurs(path) && s.pkg != "cmd/gsd-mcp" {
		if may, ok := arrows[s.pkg]; !ok {
			say("package %s has no row in arrows (imports_test.go): say what it may import", s.pkg)
		} else if !slices.Contains(may, ours) {
			say("%s may import only %v of our packages", s.pkg, may)
		}
	}
	if isOurs(path) && slices.Contains(helpers, ours) && !slices.Contains(helpers, s.pkg) {
		say("%s is a test helper: only _test.go files import it", ours)
	}
	for _, o := range owners {
		if within(path, o.library) && !slices.Contains(o.may, s.pkg) {
			say("only %v may import %s: %s", o.may, o.library, o.why)
		}
	}
	if slices.Contains(standardOnly, s.pkg) && !isStandard(path) && !isOurs(path) {
		say("%s imports only the standard library and our own packages", s.pkg)
	}
	if (slices.Contains(pure, s.pkg) || slices.Contains(pure, s.path)) && impure.MatchString(path) {
		say("%s is pure: no port, file, clock or logger", s.pkg)
	}
	if path == "os/exec" && !strings.HasPrefix(s.pkg, "cmd/") && !slices.Contains(helpers, s.pkg) {
		say("os/exec only in cmd: children inherit serial descriptors")
	}
	if within(path, "testing") && !slices.Contains(helpers, s.pkg) {
		say("package testing belongs to tests and their helpers")
	}
	return out
}

func TestImportRules(t *testing.T) {
	for _, s := range sources(t) {
		for _, path := range s.imports {
			for _, rule := range broken(s, path) {
				t.Errorf("%s imports %q: %s", s.path, path, rule)
			}
		}
	}
}

// The rules bite: each of these imports is caught.
func TestImportRulesCatch(t *testing.T) {
	tests := []struct{ pkg, path, imports string }{
		{"internal/tools", "internal/tools/a.go", "gsd-mcp/cmd/gsd-mcp"},
		{"internal/rotator", "internal/rotator/a.go", "go.bug.st/serial/enumerator"},
		{"internal/track", "internal/track/a.go", "github.com/joshuaferrara/go-satellite"},
		{"internal/event", "internal/event/a.go", "github.com/eclipse/paho.mqtt.golang"},
		{"internal/hub", "internal/hub/a.go", "github.com/mochi-mqtt/server/v2"},
		{"internal/mcp", "internal/mcp/a.go", "github.com/hashicorp/go-hclog"},
		{"internal/mcp", "internal/mcp/a.go", "gsd-mcp/internal/station"},
		{"internal/door", "internal/door/a.go", "golang.org/x/sys/unix"},
		{"internal/safety", "internal/safety/a.go", "os"},
		{"internal/safety", "internal/safety/a.go", "gsd-mcp/internal/station"},
		{"internal/passes", "internal/passes/a.go", "net/http"},
		{"internal/elements", "internal/elements/a.go", "log/slog"},
		{"internal/unit", "internal/unit/a.go", "gsd-mcp/internal/clock"},
		{"internal/track", "internal/track/plan.go", "gsd-mcp/internal/clock"},
		{"internal/station", "internal/station/a.go", "os/exec"},
		{"internal/station", "internal/station/a.go", "gsd-mcp/internal/peers"},
		{"internal/station", "internal/station/a.go", "testing"},
		{"internal/newcomer", "internal/newcomer/a.go", "gsd-mcp/internal/unit"},
	}
	for _, tt := range tests {
		if broken(source{pkg: tt.pkg, path: tt.path}, tt.imports) == nil {
			t.Errorf("%s may import %q", tt.path, tt.imports)
		}
	}
	if got := broken(source{pkg: "internal/door", path: "internal/door/a_test.go", test: true}, "github.com/modelcontextprotocol/go-sdk/mcp"); got != nil {
		t.Errorf("a test may not import a peer: %v", got)
	}
}

// No package changes the world when it is linked, and calls that end the
// process, start another one or read the time of day stay where they belong.
func TestCallRules(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s has an init function: build what it builds where it is used", s.path)
				}
			case *ast.SelectorExpr:
				x, ok := n.X.(*ast.Ident)
				if !ok {
					return true
				}
				fn := x.Name + "." + n.Sel.Name
				for _, c := range calls {
					if c.fn == fn && !slices.ContainsFunc(c.may, func(p string) bool { return strings.HasPrefix(s.path, p) }) {
						t.Errorf("%s uses %s: %s", s.path, fn, c.why)
					}
				}
				isPure := slices.Contains(pure, s.pkg) || slices.Contains(pure, s.path)
				if isPure && slices.Contains([]string{"time.Now", "time.Since", "time.Until", "time.Sleep", "time.After", "time.NewTimer", "time.NewTicker", "time.Tick"}, fn) {
					t.Errorf("%s uses %s: %s is pure, the time comes in as an argument", s.path, fn, s.pkg)
				}
			}
			return true
		})
	}
}

// Every package that exists has its row, and every row its package or a place
// in the plan.
func TestEveryPackageHasItsArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		if s.pkg != "" && s.pkg != "cmd/gsd-mcp" && !s.test && !seen[s.pkg] {
			seen[s.pkg] = true
			if _, ok := arrows[s.pkg]; !ok {
				t.Errorf("package %s has no row in arrows (imports_test.go)", s.pkg)
			}
		}
	}
	if out := cycle(); out != nil {
		t.Errorf("arrows go round: %v", out)
	}
}

// cycle finds packages that may import each other in a ring.
func cycle() []string {
	state := map[string]int{}
	var walk func(p string, path []string) []string
	walk = func(p string, path []string) []string {
		path = append(path, p)
		switch state[p] {
		case 1:
			return path
		case 2:
			return nil
		}
		state[p] = 1
		for _, q := range arrows[p] {
			if ring := walk(q, path); ring != nil {
				return ring
			}
		}
		state[p] = 2
		return nil
	}
	for p := range arrows {
		if ring := walk(p, nil); ring != nil {
			return ring
		}
	}
	return nil
}

// A new dependency comes with its reason, its licence and its weight.
func TestEveryDependencyIsAccountedFor(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^` ]+)` \\|").FindAllStringSubmatch(string(page), -1) {
		listed[m[1]] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^\t(\S+) v\S+( // indirect)?$`).FindAllStringSubmatch(string(mod), -1) {
		if !listed[m[1]] {
			t.Errorf("go.mod requires %s, which has no row in docs/dependencies.md", m[1])
		}
		delete(listed, m[1])
	}
	for m := range listed {
		t.Errorf("docs/dependencies.md lists %s, which go.mod does not require", m)
	}
}
