package safety

import (
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gsd-mcp/internal/unit"
)

var update = flag.Bool("update", false, "rewrite docs/refusals.md")

// constants reads the refusal codes from the source, so that none can be added
// without its row.
func constants(t *testing.T) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "refusal.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if ok && fmt.Sprint(v.Type) == "Code" {
			s, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			if codes[s] {
				t.Errorf("code %s has two names", s)
			}
			codes[s] = true
		}
		return true
	})
	return codes
}

func TestEveryCodeHasItsRow(t *testing.T) {
	rest := constants(t)
	if len(rest) < 47 {
		t.Fatalf("found only %d codes in refusal.go", len(rest))
	}
	for _, c := range Codes() {
		if !rest[string(c.Code)] {
			t.Errorf("Codes() lists %s twice, or it is not in refusal.go", c.Code)
		}
		delete(rest, string(c.Code))
		if c.Meaning == "" || c.Next == "" {
			t.Errorf("%s has no meaning or no next step", c.Code)
		}
	}
	for c := range rest {
		t.Errorf("%s is not in Codes()", c)
	}
}

// docs/refusals.md is written from the table; go test -update ./internal/safety
// writes it again.
func TestRefusalsPageIsCurrent(t *testing.T) {
	const page = "../../docs/refusals.md"
	var b strings.Builder
	b.WriteString(`# Refusals

Every refusal names one of these codes, says why with the numbers, and what to do next; it is an answer, not a fault, and nothing was
sent to the hardware. A code keeps its meaning for ever. This page is written from the table in the code
(` + "`go test ./internal/safety -update`" + `); ` + "`station://hazards`" + ` says the same.

| code | what it means | what to do |
| --- | --- | --- |
`)
	for _, c := range Codes() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.Code, c.Meaning, c.Next)
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(got)); diff != "" {
		t.Errorf("docs/refusals.md is stale; run: go test ./internal/safety -update\n%s", diff)
	}
}

func TestRefusalForms(t *testing.T) {
	r := &Refusal{Code: ElevationBelowMask, Why: "elevation 2.0° is below 5.0°", Fix: "ask for more",
		Limits:  map[string]any{"elevation_min_deg": 5.0},
		Nearest: &unit.AzEl{AzDeg: 90, ElDeg: 5},
		Extra:   map[string]any{"retry_after_s": 3, "code": "MUST_NOT_WIN", "why": "must not win"}}
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"code":"ELEVATION_BELOW_MASK","fix":"ask for more","limits":{"elevation_min_deg":5},"nearest_allowed":{"azimuth_deg":90,"elevation_deg":5},"refused":true,"retry_after_s":3,"why":"elevation 2.0° is below 5.0°"}`
	if string(got) != want {
		t.Errorf("JSON\n got %s\nwant %s", got, want)
	}
	if s := r.Sentence(); s != "Refused (ELEVATION_BELOW_MASK): elevation 2.0° is below 5.0°. To go on: ask for more. Nearest allowed: azimuth 90.0°, elevation 5.0°." {
		t.Errorf("Sentence() = %q", s)
	}
	if s := r.Error(); !strings.Contains(s, "ELEVATION_BELOW_MASK") || !strings.Contains(s, "ask for more") {
		t.Errorf("Error() = %q", s)
	}
}

// A number that JSON cannot hold must not swallow the refusal.
func TestRefusalWithNoNumberStillSpeaks(t *testing.T) {
	r := &Refusal{Code: ElementsTooOld, Why: "w", Fix: "f", Limits: map[string]any{"max_age_days": math.NaN()}}
	got, err := json.Marshal(r)
	if err != nil || string(got) != `{"code":"ELEMENTS_TOO_OLD","fix":"f","refused":true,"why":"w"}` {
		t.Errorf("JSON = %s, %v", got, err)
	}
}
