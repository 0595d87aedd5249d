package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// aheadOfTheProgram are commands that a page may name although they are not
// there yet: docs/refusals.md is written from the codes, whose next steps name
// them, and docs/architecture.md says that they are missing.
var aheadOfTheProgram = map[string]bool{
	"docs/refusals.md: doctor":   true,
	"docs/refusals.md: elements": true,
}

var (
	codeOf  = regexp.MustCompile("(?s)```.*?```|`[^`\n]+`")
	comment = regexp.MustCompile(`(?m)^ *#.*$`)
	calls   = regexp.MustCompile(`(?m)(systemctl [a-z-]+(?: --now)?(?: [a-z.-]+)?|-u)?(?:^|[ |]|/usr/bin/|\./cmd/)gsd-mcp((?: +[^ \n|&;#<>()]+)+)`)
	word    = regexp.MustCompile(`^[a-z][a-z-]*$`)
	longOpt = regexp.MustCompile(`^\[?--([a-z][a-z-]*)`)
)

// checkCall reports what is wrong with a command line of a page: a command or
// a flag that does not exist. missing is the command's first word.
func checkCall(root *cobra.Command, args []string) (problem, missing string) {
	cmd := root
	for len(args) > 0 && word.MatchString(args[0]) && cmd.HasAvailableSubCommands() {
		next, _, err := cmd.Find(args[:1])
		if err != nil || next == cmd {
			return "there is no command " + cmd.CommandPath() + " " + args[0], args[0]
		}
		cmd, args = next, args[1:]
	}
	for _, a := range args {
		m := longOpt.FindStringSubmatch(a)
		if m == nil {
			continue
		}
		cmd.InitDefaultHelpFlag()
		if cmd.Flags().Lookup(m[1]) == nil && cmd.InheritedFlags().Lookup(m[1]) == nil {
			return cmd.CommandPath() + " has no flag --" + m[1], ""
		}
	}
	return "", ""
}

func TestThePagesNameOnlyCommandsAndFlagsThatExist(t *testing.T) {
	root := newRoot()
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	top := filepath.Join("..", "..")
	var pages []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "hw/*.md"} {
		found, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		pages = append(pages, found...)
	}
	seen := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(top, page)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range codeOf.FindAllString(string(text), -1) {
			for _, m := range calls.FindAllStringSubmatch(comment.ReplaceAllString(strings.Trim(code, "`"), ""), -1) {
				if m[1] != "" {
					continue // a unit, not a command
				}
				line, _, _ := strings.Cut(m[2], ",") // prose goes on after a comma
				args := strings.Fields(line)
				seen++
				problem, missing := checkCall(root, args)
				if problem != "" && !aheadOfTheProgram[filepath.ToSlash(name)+": "+missing] {
					t.Errorf("%s: %q: %s", name, strings.TrimSpace(m[0]), problem)
				}
			}
		}
	}
	if seen < 50 {
		t.Errorf("only %d command lines were found in %d pages: the test has gone blind", seen, len(pages))
	}
}

// The test above must bite.
func TestAPageWithAnUnknownCommandIsFound(t *testing.T) {
	root := newRoot()
	tests := []struct {
		line string
		ok   bool
	}{
		{"demo --json", true},
		{"antenna point 200 45", true},
		{"mode maintenance --reason x", true},
		{"--sim", true},
		{"fly", false},
		{"antenna jump", false},
		{"demo --loud", false},
		{"--loud", false},
	}
	for _, tt := range tests {
		if problem, _ := checkCall(root, strings.Fields(tt.line)); (problem == "") != tt.ok {
			t.Errorf("gsd-mcp %s: %q, want ok = %v", tt.line, problem, tt.ok)
		}
	}
}
