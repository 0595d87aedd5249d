package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func openDir(t *testing.T) *Dir {
	t.Helper()
	d, err := Open(t.TempDir() + "/state")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestSecondOpenerIsToldWhoAndWhatToDo(t *testing.T) {
	d := openDir(t)
	_, err := Open(d.Path())
	var locked *LockedError
	if !errors.Is(err, ErrLocked) || !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("second Open = %v, want ErrLocked with pid %d", err, os.Getpid())
	}
	for _, word := range []string{d.Path(), "GSD_STATE_DIR", "systemctl stop"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %s", err, word)
		}
	}
	d.Close()
	d2, err := Open(d.Path())
	if err != nil {
		t.Fatalf("after Close: %v", err)
	}
	d2.Close()
	if st, _ := os.Stat(d.Path()); st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, want 0700", st.Mode())
	}
}

// The kernel ends the lock with its process, however it ends.
func TestLockOfAnotherProcessIsSeen(t *testing.T) {
	if path := os.Getenv("STATE_TEST_HOLD"); path != "" {
		if _, err := Open(path); err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("held\n")
		os.Stdin.Read(make([]byte, 1))
		return
	}
	d := openDir(t)
	d.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockOfAnotherProcessIsSeen$")
	cmd.Env = append(os.Environ(), "STATE_TEST_HOLD="+d.Path())
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := out.Read(buf); err != nil || string(buf) != "held\n" {
		t.Fatalf("holder said %q, %v", buf, err)
	}
	_, err := Open(d.Path())
	var locked *LockedError
	if !errors.As(err, &locked) || locked.PID != cmd.Process.Pid {
		t.Errorf("Open = %v, want the lock of process %d", err, cmd.Process.Pid)
	}
	cmd.Process.Kill()
	in.Close()
	cmd.Wait()
	d, err = Open(d.Path())
	if err != nil {
		t.Fatalf("after the holder was killed: %v", err)
	}
	d.Close()
}

type schedule struct {
	Passes []string `json:"passes"`
	N      int      `json:"n"`
}

func TestSaveAndLoad(t *testing.T) {
	d := openDir(t)
	var got schedule
	if _, err := d.Load("schedule.json", &got); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of nothing = %v, want fs.ErrNotExist", err)
	}
	for n := 1; n <= 3; n++ {
		if err := d.Save("schedule.json", schedule{[]string{"<a> & \u2028 b"}, n}); err != nil {
			t.Fatal(err)
		}
	}
	if note, err := d.Load("schedule.json", &got); err != nil || note != "" || got.N != 3 || got.Passes[0] != "<a> & \u2028 b" {
		t.Errorf("Load = %+v, %q, %v", got, note, err)
	}
	var prev schedule
	if err := loadFile(d.Path("schedule.json.1"), &prev); err != nil || prev.N != 2 {
		t.Errorf("previous version = %+v, %v; want 2", prev, err)
	}
}

// A torn file is never read as something else: at every length and with every
// kind of damage the previous version answers, and says so.
func TestDamagedFileFallsBackToThePreviousVersion(t *testing.T) {
	d := openDir(t)
	d.Save("wrap.json", schedule{N: 1})
	d.Save("wrap.json", schedule{N: 2})
	whole, err := os.ReadFile(d.Path("wrap.json"))
	if err != nil {
		t.Fatal(err)
	}
	prev, _ := os.ReadFile(d.Path("wrap.json.1"))
	damage := map[string][]byte{"empty": {}, "zeros": make([]byte, len(whole)), "html": []byte("<html>")}
	for cut := 1; cut < len(whole)-1; cut++ { // the last byte is only a line feed
		damage[fmt.Sprintf("cut at %d", cut)] = whole[:cut]
	}
	edited := []byte(strings.Replace(string(whole), `"n": 2`, `"n": 7`, 1))
	damage["edited"] = edited
	for name, data := range damage {
		os.WriteFile(d.Path("wrap.json"), data, 0o600)
		os.WriteFile(d.Path("wrap.json.1"), prev, 0o600)
		got := schedule{N: 99}
		note, err := d.Load("wrap.json", &got)
		if err != nil || got.N != 1 || !strings.Contains(note, "wrap.json.bad") || !strings.Contains(note, "wrap.json.1") {
			t.Fatalf("%s: Load = %+v, %q, %v; want the previous version and a note", name, got, note, err)
		}
		if bad, err := os.ReadFile(d.Path("wrap.json.bad")); err != nil || string(bad) != string(data) {
			t.Fatalf("%s: kept %q, %v", name, bad, err)
		}
	}
	os.WriteFile(d.Path("wrap.json"), nil, 0o600)
	os.WriteFile(d.Path("wrap.json.1"), nil, 0o600)
	got := schedule{N: 99}
	if _, err := d.Load("wrap.json", &got); err == nil || errors.Is(err, fs.ErrNotExist) || got.N != 99 {
		t.Errorf("both damaged: %+v, %v; want an error that is not \"nothing there\", and the value untouched", got, err)
	}
}

func TestProbeSeesAReadOnlyDirectory(t *testing.T) {
	d := openDir(t)
	if err := d.Probe(); err != nil {
		t.Errorf("Probe of a good disk = %v", err)
	}
	if free, err := d.Free(); err != nil || free == 0 {
		t.Errorf("Free = %d, %v", free, err)
	}
	os.RemoveAll(d.Path())
	if err := d.Probe(); err == nil {
		t.Error("Probe of a directory that is gone is content")
	}
}
