package state

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// From linux/fs/ext4/ext4.h: the file system stops at once, and what its
// journal has not written is gone, as in a power cut.
const (
	ext4Shutdown   = 0x8004587d // EXT4_IOC_SHUTDOWN, _IOR('X', 125, __u32)
	ext4NoLogFlush = 2          // EXT4_GOING_FLAGS_NOLOGFLUSH
)

// A disk is an ext4 file system in a file, mounted for a test.
type disk struct {
	t            *testing.T
	image, mount string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: it mounts a file system of its own and cuts its power")
	}
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Skip("needs mkfs.ext4 (package e2fsprogs)")
	}
	dir := t.TempDir()
	d := &disk{t: t, image: filepath.Join(dir, "disk"), mount: filepath.Join(dir, "mount")}
	if err := os.Mkdir(d.mount, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(d.image)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(64 << 20); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if out, err := exec.Command(mkfs, "-q", "-F", d.image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	if out, err := exec.Command("mount", "-o", "loop", d.image, d.mount).CombinedOutput(); err != nil {
		t.Skipf("this root may not mount a loop device: %v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", d.mount).Run() })
	return d
}

// cut ends the power: nothing that was not flushed survives.
func (d *disk) cut() {
	d.t.Helper()
	f, err := os.Open(d.mount)
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), ext4Shutdown, ext4NoLogFlush); err != nil {
		d.t.Fatalf("EXT4_IOC_SHUTDOWN: %v", err)
	}
}

// back mounts the file system again, with the recovery of its journal.
func (d *disk) back() {
	d.t.Helper()
	for _, args := range [][]string{{"umount", d.mount}, {"mount", "-o", "loop", d.image, d.mount}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			d.t.Fatalf("%s: %v: %s", args, err, out)
		}
	}
}

// What Append has confirmed is there after a power cut, with the number and the
// words that it was confirmed with; a cut moves the cursor back at most. Each
// cut meets the disk that the one before left.
func TestPowerCutLosesNothingThatWasConfirmed(t *testing.T) {
	if dir := os.Getenv("STATE_TEST_WRITER"); dir != "" {
		powerCutWriter(t, dir)
		return
	}
	cuts := 2
	if s := os.Getenv("GSD_POWER_CUTS"); s != "" {
		var err error
		if cuts, err = strconv.Atoi(s); err != nil || cuts < 1 {
			t.Fatalf("GSD_POWER_CUTS=%q: want a number", s)
		}
	}
	d := newDisk(t)
	dir := filepath.Join(d.mount, "crit")
	confirmed := map[uint64]string{}
	for cut := range cuts {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPowerCutLosesNothingThatWasConfirmed$")
		cmd.Env = append(os.Environ(), "STATE_TEST_WRITER="+dir, fmt.Sprintf("STATE_TEST_CUT=%d", cut))
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		var powerOff int64 // monotonic; 0 = not yet
		note := func() {
			f := strings.Fields(lines.Text())
			if len(f) != 4 || f[0] != "ok" {
				return
			}
			seq, err1 := strconv.ParseUint(f[1], 10, 64)
			at, err2 := strconv.ParseInt(f[3], 10, 64)
			if err1 == nil && err2 == nil && (powerOff == 0 || at < powerOff) {
				confirmed[seq] = f[2]
			}
		}
		for n := 0; n < 150+37*cut && lines.Scan(); n++ { // each cut falls somewhere else
			note()
		}
		// A computer without power says nothing; this one still runs, and its
		// kernel can call a flush good that met the aborted journal.
		powerOff = monotonic()
		d.cut()
		cmd.Process.Signal(syscall.SIGKILL)
		for lines.Scan() { // what it had said before the power went counts
			note()
		}
		cmd.Wait()
		d.back()

		j, rec := mustOpen(t, dir, JournalOptions{Segment: 16 << 10})
		got := map[uint64]string{}
		for _, r := range readAll(t, j, 0) {
			got[r.Seq] = string(r.Data)
		}
		for seq, want := range confirmed {
			if got[seq] != `{"id":"`+want+`"}` {
				t.Errorf("cut %d: record %d is %q, want the confirmed id %s; recovery %+v", cut, seq, got[seq], want, rec)
			}
		}
		if rec.NewEpoch || j.Cursor() > j.Last() {
			t.Errorf("cut %d: recovery %+v, cursor %d of %d: a power cut is no loss", cut, rec, j.Cursor(), j.Last())
		}
		j.Close()
	}
	if len(confirmed) < 150*cuts {
		t.Errorf("only %d records were confirmed in %d cuts: the test did not test", len(confirmed), cuts)
	}
	if !t.Failed() {
		t.Logf("%d power cuts, %d confirmed records, 0 lost", cuts, len(confirmed))
	}
}

// monotonic is a time that two processes can compare, in ns.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // Linux has it
	}
	return ts.Nano()
}

// powerCutWriter appends and delivers until it is killed, and says what was
// confirmed.
func powerCutWriter(t *testing.T, dir string) {
	j, _, err := OpenJournal(dir, JournalOptions{Segment: 16 << 10}) // small: cuts meet changes of segment
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for w := range 4 { // group commit
		wg.Go(func() {
			for n := 0; ; n++ {
				id := fmt.Sprintf("c%s-w%d-%d", os.Getenv("STATE_TEST_CUT"), w, n)
				seq, err := j.Append(context.Background(), func(uint64, string) ([]byte, error) { return []byte(`{"id":"` + id + `"}`), nil })
				if err != nil {
					time.Sleep(time.Minute) // the power is gone; the kill comes
					return
				}
				at := monotonic()
				mu.Lock()
				fmt.Println("ok", seq, id, at)
				mu.Unlock()
				if seq%5 == 0 {
					j.Ack(seq - 1) // as a PUBACK would; its errors are the cut
				}
			}
		})
	}
	wg.Wait()
}
