// Package state keeps what must survive a crash or a power cut: whole files
// replaced atomically, two event journals, the audit, and the lock that keeps
// a second daemon away. Nothing here knows what it stores. A return without an
// error means that the bytes have been flushed to the disk.
package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLocked is why a second daemon must not start on the same state.
var ErrLocked = errors.New("state directory is in use")

// A LockedError says who has the state directory. It is an ErrLocked.
type LockedError struct {
	Path string
	PID  int // 0 when the holder did not leave its number
}

func (e *LockedError) Error() string {
	who := "another process"
	if e.PID > 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("state directory %s is in use by %s: only one daemon may own a station; "+
		"use the running one, stop it (systemctl stop gsd-mcp), or give this one its own GSD_STATE_DIR", e.Path, who)
}

// Is makes errors.Is(err, ErrLocked) true.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// castagnoli is CRC-32C, which amd64 and arm64 compute in hardware.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A Dir is the station's state directory, held by a lock until Close. Its
// methods are safe for concurrent use, except that one name must not be saved
// by two callers at once.
type Dir struct {
	path string
	lock *os.File
}

// Open makes path if needed (mode 0700), and takes its lock. When another
// process has the lock the error is a *LockedError that says which.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("make state directory: %w", err)
	}
	name := filepath.Join(path, "lock")
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open state lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", name, err)
		}
		b := make([]byte, 16)
		n, _ := f.ReadAt(b, 0)
		pid, _ := strconv.Atoi(strings.TrimSpace(string(b[:n])))
		return nil, &LockedError{Path: path, PID: pid}
	}
	// The number is for people; the lock itself is the kernel's and ends with
	// the process, so failing to write it changes nothing.
	if f.Truncate(0) == nil {
		f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &Dir{path: path, lock: f}, nil
}

// Path joins elem to the directory.
func (d *Dir) Path(elem ...string) string {
	return filepath.Join(append([]string{d.path}, elem...)...)
}

// Close gives up the lock.
func (d *Dir) Close() error { return d.lock.Close() }

// Free is how many bytes the daemon may still write to the file system.
func (d *Dir) Free() (uint64, error) {
	free, _, err := statfs(d.path)
	return free, err
}

// Probe writes, flushes and removes a small file: a disk that is full, failing
// or mounted read-only answers with the error.
func (d *Dir) Probe() error {
	name := d.Path("probe.tmp")
	f, err := OS().OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return fmt.Errorf("write probe: %w", err)
	}
	defer os.Remove(name)
	defer f.Close()
	if _, err := f.Write([]byte("probe\n")); err != nil {
		return fmt.Errorf("write probe: %w", err)
	}
	if err := f.Sync(); err != nil {
		return fmt.Errorf("write probe: %w", err)
	}
	return nil
}

// saved is a file of Save: the checksum is over the value as compact JSON, so
// a file may be re-indented but not edited.
type saved struct {
	CRC   string          `json:"crc32c"`
	Value json.RawMessage `json:"value"`
}

// Save writes v as JSON under name, durably and all or nothing. What was there
// before stays as name.1.
func (d *Dir) Save(name string, v any) error {
	data, err := encodeSaved(v)
	if err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	path := d.Path(name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	if err := keepPrevious(path); err != nil {
		return fmt.Errorf("save %s: keep the previous version: %w", name, err)
	}
	if err := replace(OS(), path, data); err != nil {
		return fmt.Errorf("save %s: %w", name, err)
	}
	return nil
}

// keepPrevious gives the present file a second name, so that at no moment the
// first name is missing. File systems without links get a rename: then a crash
// leaves only the second name, which Load also reads.
func keepPrevious(path string) error {
	if _, err := os.Lstat(path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	next := path + ".1.tmp"
	os.Remove(next)
	if err := os.Link(path, next); err != nil {
		return os.Rename(path, path+".1")
	}
	return os.Rename(next, path+".1")
}

// Load reads what Save wrote under name into v, a pointer. A file that is torn
// or altered is kept as name.bad and the previous one is read instead; note
// then says so, for the operator. Without either the error is fs.ErrNotExist.
func (d *Dir) Load(name string, v any) (note string, err error) {
	path := d.Path(name)
	err = loadFile(path, v)
	if err == nil {
		return "", nil
	}
	missing := errors.Is(err, fs.ErrNotExist)
	if !missing {
		if rerr := os.Rename(path, path+".bad"); rerr != nil {
			note = fmt.Sprintf(" (and could not be moved aside: %v)", rerr)
		}
		note = fmt.Sprintf("%s was unreadable (%v) and is kept as %s.bad%s", name, err, name, note)
	} else {
		note = name + " was missing"
	}
	perr := loadFile(path+".1", v)
	switch {
	case perr == nil:
		return note + "; the previous version " + name + ".1 was used", nil
	case errors.Is(perr, fs.ErrNotExist) && missing:
		return "", fmt.Errorf("load %s: %w", name, fs.ErrNotExist)
	case errors.Is(perr, fs.ErrNotExist):
		return note, fmt.Errorf("load %s: %w; there is no previous version", name, err)
	}
	return note, fmt.Errorf("load %s: %w; the previous version is unreadable too: %w", name, err, perr)
}

func loadFile(path string, v any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return decodeSaved(data, v)
}

// encodeSaved is the contents of a file of Save.
func encodeSaved(v any) ([]byte, error) {
	value, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(saved{CRC: fmt.Sprintf("%08x", crc32.Checksum(value, castagnoli)), Value: value}, "", "  ")
	return append(data, '\n'), err
}

// decodeSaved reads a file of Save into v, which keeps its old contents when
// that fails.
func decodeSaved(data []byte, v any) error {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("torn or not JSON: %w", err)
	}
	var value bytes.Buffer
	if err := json.Compact(&value, s.Value); err != nil {
		return fmt.Errorf("torn or not JSON: %w", err)
	}
	if got := fmt.Sprintf("%08x", crc32.Checksum(value.Bytes(), castagnoli)); got != s.CRC {
		return fmt.Errorf("checksum is %s and the file says %.20q: damaged, or edited by hand", got, s.CRC)
	}
	p := reflect.ValueOf(v)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return fmt.Errorf("load into %T: want a pointer", v)
	}
	fresh := reflect.New(p.Type().Elem())
	if err := json.Unmarshal(value.Bytes(), fresh.Interface()); err != nil {
		return fmt.Errorf("not what was saved: %w", err)
	}
	p.Elem().Set(fresh.Elem())
	return nil
}
