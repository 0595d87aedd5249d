package hw

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryFileIsAProfile(t *testing.T) {
	for _, kind := range []string{RotatorKind, RadioKind} {
		files, err := filepath.Glob(kind + "/*.toml")
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v, %v", kind, files, err)
		}
		if got := len(Names(kind)); got != len(files) {
			t.Errorf("%d %s profiles are built in, the folder has %d", got, kind, len(files))
		}
		for _, name := range Names(kind) {
			p, err := Find(kind, name)
			if err != nil {
				t.Error(err)
				continue
			}
			if p.Title == "" || p.Name != name || p.Kind != kind {
				t.Errorf("%s/%s: %+v", kind, name, p)
			}
			if name != "sim" && len(p.Confirm) == 0 {
				t.Errorf("%s/%s asks for nothing to be confirmed on site", kind, name)
			}
			text, err := os.ReadFile(filepath.Join(kind, name+".toml"))
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "# ") {
				t.Errorf("%s/%s does not begin with a comment that says what it is", kind, name)
			}
			if string(p.Text()) != string(text) {
				t.Errorf("%s/%s: Text is not the file", kind, name)
			}
		}
	}
}

func TestAnUnknownProfileIsAnsweredWithTheNearest(t *testing.T) {
	tests := []struct {
		find func(string) (Profile, error)
		name string
		want string
	}{
		{Rotator, "yaesu-g5500-gs323b", "did you mean yaesu-g5500-gs232b?"},
		{Rotator, "satnogs", "did you mean satnogs-v3?"},
		{Rotator, "icom-ic9700", "there is no rotator profile \"icom-ic9700\" among the "},
		{Radio, "ic9700", "there is no radio profile"},
		{Radio, "IC-9700", "there is no radio profile"},
		{Radio, "icom-9700", "did you mean icom-ic9700?"},
		{Rotator, "../radio/sim", "there is no rotator profile"},
		{Rotator, strings.Repeat("x", 10000), "there is no rotator profile"},
	}
	for _, tt := range tests {
		_, err := tt.find(tt.name)
		if err == nil || !strings.Contains(err.Error(), tt.want) || len(err.Error()) > 300 {
			t.Errorf("%.40q: %v, want %q", tt.name, err, tt.want)
		}
	}
	if Names("no such kind") != nil {
		t.Error("a kind that does not exist has names")
	}
}

func TestAProfileMustNotPromiseWhatNothingReads(t *testing.T) {
	p := Profile{Name: "p", settings: []byte("driver = \"x\"\nwarp = 9\n")}
	var into struct {
		Driver string `toml:"driver"`
	}
	if err := p.Decode(&into); err == nil || !strings.Contains(err.Error(), "unknown setting warp") {
		t.Errorf("Decode = %v", err)
	}
}
