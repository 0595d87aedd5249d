package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"gsd-mcp/internal/config"
)

// runConfig runs `config ARGS` and returns its stdout and exit code.
func runConfig(t *testing.T, args ...string) (string, int) {
	t.Helper()
	root := &cobra.Command{Use: "gsd-mcp", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(configCmd())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetArgs(append([]string{"config"}, args...))
	err := root.ExecuteContext(t.Context())
	var e *exitError
	switch {
	case err == nil:
		return out.String(), exitDone
	case errors.As(err, &e):
		return out.String(), e.code
	}
	return out.String(), exitUsage
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "station.toml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodConfig = `version = 1
[station]
id = "gs-1"
latitude_deg = 51.5
longitude_deg = -0.1
[rotator]
profile = "yaesu-g5500-gs232b"
port = "/dev/serial/by-id/x"
[access]
approval_pin_hash = "pbkdf2-sha256$100000$MDEyMzQ1Njc4OWFiY2RlZg$ruHhNY8983zqFOWrUjWykot1PFfKk7nEI+YUGqEt81w"
`

func TestConfigCheck(t *testing.T) {
	good := writeConfig(t, goodConfig)
	bad := writeConfig(t, strings.Replace(goodConfig, "latitude_deg = 51.5", "lattitude_deg = 51.5", 1))
	warned := writeConfig(t, strings.Replace(goodConfig, "/dev/serial/by-id/x", "/dev/ttyUSB0", 1))
	missing := filepath.Join(t.TempDir(), "none.toml")
	tests := []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"good", []string{"check", good}, exitDone, []string{"valid: station gs-1", "rotator gs232b", "no radio", "the duty: the manual"}},
		{"good by flag", []string{"check", "--config", good}, exitDone, []string{"valid"}},
		{"bad", []string{"check", bad}, exitUsage, []string{":4:1: unknown key", "did you mean latitude_deg?"}},
		{"bad in JSON", []string{"check", "--json", bad}, exitUsage, []string{`"ok": false`, `"line": 4`, `"key": "station.lattitude_deg"`}},
		{"warned", []string{"check", warned}, exitDone, []string{"warning: ", ":8:1:", "by-id", "valid"}},
		{"missing", []string{"check", missing}, exitFailed, nil},
		{"two files", []string{"check", good, bad}, exitUsage, nil},
		{"show", []string{"show", good}, exitDone, []string{"gs232b", "azimuth_max_deg = 450", "(set, not shown)"}},
		{"show in JSON", []string{"show", "--json", good}, exitDone, []string{`"azimuth_max_deg": 450`, "(set, not shown)"}},
		{"show bad", []string{"show", bad}, exitUsage, nil},
		{"example", []string{"example"}, exitDone, []string{"[rotator.limits]", "max_error_ms = 5000"}},
		{"example with a stray word", []string{"example", "yagi"}, exitUsage, nil},
		{"profiles", []string{"example", "--profiles"}, exitDone, []string{"satnogs-v3", "icom-ic9700", "Yaesu G-5500 with a GS-232B"}},
		{"one profile", []string{"example", "--profiles", "satnogs-v3"}, exitDone, []string{"moves_on_open = true", "# rotator profile satnogs-v3"}},
		{"both kinds", []string{"example", "--profiles", "sim"}, exitDone, []string{"# rotator profile sim", "# radio profile sim"}},
		{"no such profile", []string{"example", "--profiles", "satnogs"}, exitUsage, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, code := runConfig(t, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d; it said:\n%s", code, tt.code, out)
			}
			for _, w := range tt.want {
				if !strings.Contains(out, w) {
					t.Errorf("it does not say %q:\n%s", w, out)
				}
			}
			if strings.Contains(out, "pbkdf2") {
				t.Errorf("it shows a secret:\n%s", out)
			}
			if strings.Contains(strings.Join(tt.args, " "), "--json") && !json.Valid([]byte(out)) {
				t.Errorf("this is not one JSON document:\n%s", out)
			}
		})
	}
}

func TestConfigShowReadsBack(t *testing.T) {
	good := writeConfig(t, strings.Replace(goodConfig, "approval_pin_hash", "# approval_pin_hash", 1))
	out, code := runConfig(t, "show", good)
	if code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	if _, _, err := config.Parse("shown", []byte(out)); err != nil {
		t.Errorf("what config show prints is not a valid station.toml: %v\n%s", err, out)
	}
}

func TestConfigPINMakesAHashThatConfigCheckAccepts(t *testing.T) {
	cmd := configPINCmd()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetIn(strings.NewReader("314159\n"))
	cmd.SetArgs(nil)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	c, _, err := config.Parse("f", []byte("version = 1\nstation = { id = \"gs-1\", latitude_deg = 51.5, longitude_deg = -0.1 }\n[access]\n"+out.String()))
	if err != nil || !config.CheckPIN(c.Access.ApprovalPINHash, "314159") {
		t.Errorf("%q: %v", out.String(), err)
	}
}
