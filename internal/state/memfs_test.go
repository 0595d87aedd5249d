package state

import (
	"fmt"
	"io/fs"
	"maps"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// memFS is a file system in memory that knows what a power cut takes away: a
// file's bytes are safe after Sync, its name after SyncDir. It fails on demand.
type memFS struct {
	mu    sync.Mutex
	names map[string]*inode // what programs see
	safe  map[string]*inode // names that survive a power cut
	dirs  map[string]bool
	free  int64 // bytes left; < 0 = no limit
	op    int   // operations so far
	fail  func(op int, what, name string) error
}

type inode struct {
	data, synced []byte
	mod          time.Time
}

func newMemFS() *memFS {
	return &memFS{names: map[string]*inode{}, safe: map[string]*inode{}, dirs: map[string]bool{}, free: -1}
}

// cut is the file system after a power cut: what was not flushed is there, in
// parts, as zeros, or not at all.
func (m *memFS) cut(r *rand.Rand) *memFS {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := newMemFS()
	n.dirs = maps.Clone(m.dirs)
	names := maps.Clone(m.safe)
	all := slices.Sorted(maps.Keys(m.names))
	for _, k := range all { // creations and renames that were not flushed may have happened
		if names[k] != m.names[k] && r.Intn(2) == 0 {
			names[k] = m.names[k]
		}
	}
	for _, k := range slices.Sorted(maps.Keys(names)) {
		old := names[k]
		i := &inode{mod: old.mod, data: slices.Clone(old.synced)}
		if len(old.data) != len(old.synced) || string(old.data) != string(old.synced) {
			i.data = tear(r, old.synced, old.data)
		}
		i.synced = slices.Clone(i.data)
		n.names[k], n.safe[k] = i, i
	}
	return n
}

// tear mixes the flushed and the unflushed contents.
func tear(r *rand.Rand, was, is []byte) []byte {
	switch r.Intn(4) {
	case 0:
		return slices.Clone(was)
	case 1:
		return slices.Clone(is)
	case 2: // cut short
		if len(is) > len(was) {
			return slices.Clone(is[:len(was)+r.Intn(len(is)-len(was)+1)])
		}
		return slices.Clone(is)
	}
	out := slices.Clone(is) // the size arrived, some of the blocks did not
	const block = 64
	for o := 0; o < len(out); o += block {
		end := min(o+block, len(out))
		if r.Intn(2) == 0 {
			continue
		}
		for k := o; k < end; k++ {
			if k < len(was) {
				out[k] = was[k]
			} else {
				out[k] = 0
			}
		}
	}
	return out
}

func (m *memFS) failing(what, name string) error {
	m.op++
	if m.fail != nil {
		return m.fail(m.op, what, name)
	}
	return nil
}

type memFile struct {
	m *memFS
	i *inode
	n string
}

func (m *memFS) OpenFile(name string, flag int, _ fs.FileMode) (File, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing("open", name); err != nil {
		return nil, err
	}
	i := m.names[name]
	if i == nil {
		if flag&os.O_CREATE == 0 {
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		}
		i = &inode{mod: time.Now()}
		m.names[name] = i
	}
	if flag&os.O_TRUNC != 0 {
		i.data = nil
	}
	return &memFile{m, i, name}, nil
}

type memEntry struct {
	name string
	i    *inode
	dir  bool
}

func (e memEntry) Name() string               { return e.name }
func (e memEntry) IsDir() bool                { return e.dir }
func (e memEntry) Type() fs.FileMode          { return 0 }
func (e memEntry) Info() (fs.FileInfo, error) { return e, nil }
func (e memEntry) Size() int64                { return int64(len(e.i.data)) }
func (e memEntry) Mode() fs.FileMode          { return 0o600 }
func (e memEntry) ModTime() time.Time         { return e.i.mod }
func (e memEntry) Sys() any                   { return nil }

func (m *memFS) ReadDir(name string) ([]fs.DirEntry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []fs.DirEntry
	for _, k := range slices.Sorted(maps.Keys(m.names)) {
		if filepath.Dir(k) == name {
			out = append(out, memEntry{name: filepath.Base(k), i: m.names[k]})
		}
	}
	if !m.dirs[name] && len(out) == 0 {
		return nil, fs.ErrNotExist
	}
	return out, nil
}

func (m *memFS) ReadFile(name string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.names[name]; i != nil {
		return slices.Clone(i.data), nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

func (m *memFS) Stat(name string) (fs.FileInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.names[name]; i != nil {
		return memEntry{name: filepath.Base(name), i: i}, nil
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

func (m *memFS) MkdirAll(name string, _ fs.FileMode) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dirs[name] = true
	return nil
}

func (m *memFS) Rename(from, to string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing("rename", to); err != nil {
		return err
	}
	if m.names[from] == nil {
		return fs.ErrNotExist
	}
	m.names[to] = m.names[from]
	delete(m.names, from)
	return nil
}

func (m *memFS) Remove(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := m.names[name]
	if i == nil {
		return fs.ErrNotExist
	}
	if m.free >= 0 {
		m.free += int64(len(i.data))
	}
	delete(m.names, name)
	return nil
}

func (m *memFS) Touch(name string, t time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := m.names[name]; i != nil {
		i.mod = t
	}
	return nil
}

func (m *memFS) SyncDir(name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.failing("syncdir", name); err != nil {
		return err
	}
	for k := range m.safe {
		if filepath.Dir(k) == name && m.names[k] == nil {
			delete(m.safe, k)
		}
	}
	for k, i := range m.names {
		if filepath.Dir(k) == name {
			m.safe[k] = i
		}
	}
	return nil
}

func (m *memFS) Reserve(name string, size int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free >= 0 {
		if m.free < size {
			return syscall.ENOSPC
		}
		m.free -= size
	}
	i := &inode{data: make([]byte, size)}
	i.synced = i.data
	m.names[name], m.safe[name] = i, i
	return nil
}

func (m *memFS) Free(string) (free, total uint64, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.free < 0 {
		return 1 << 40, 1 << 40, nil
	}
	return uint64(m.free), 1 << 40, nil
}

func (f *memFile) Write(p []byte) (int, error) { return f.WriteAt(p, int64(len(f.i.data))) }

func (f *memFile) WriteAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	err := f.m.failing("write", f.n)
	n := len(p)
	if err != nil {
		n = len(p) / 2 // a failing write may have written something
	}
	grow := off + int64(n) - int64(len(f.i.data))
	if f.m.free >= 0 && grow > f.m.free {
		n -= int(grow - f.m.free)
		grow, err = f.m.free, syscall.ENOSPC
	}
	if grow > 0 {
		f.i.data = append(f.i.data, make([]byte, grow)...)
		if f.m.free >= 0 {
			f.m.free -= grow
		}
	}
	copy(f.i.data[off:], p[:max(n, 0)])
	f.i.mod = time.Now()
	return n, err
}

func (f *memFile) ReadAt(p []byte, off int64) (int, error) {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if off >= int64(len(f.i.data)) {
		return 0, fmt.Errorf("end of file")
	}
	return copy(p, f.i.data[off:]), nil
}

func (f *memFile) Truncate(size int64) error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.failing("truncate", f.n); err != nil {
		return err
	}
	if n := int64(len(f.i.data)) - size; n > 0 && f.m.free >= 0 {
		f.m.free += n
	}
	f.i.data = slices.Clone(f.i.data[:min(size, int64(len(f.i.data)))])
	return nil
}

func (f *memFile) Sync() error {
	f.m.mu.Lock()
	defer f.m.mu.Unlock()
	if err := f.m.failing("sync", f.n); err != nil {
		return err
	}
	f.i.synced = slices.Clone(f.i.data)
	return nil
}

func (f *memFile) Close() error { return nil }

// isSegment picks the operations on the journal's records.
func isSegment(name string) bool { return strings.Contains(name, "seg-") }
