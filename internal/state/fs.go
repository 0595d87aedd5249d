package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// An FS is the part of a file system that durable state needs. It is a seam:
// tests put one under a journal that fails on demand.
type FS interface {
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	ReadFile(name string) ([]byte, error)
	Stat(name string) (fs.FileInfo, error)
	MkdirAll(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	// Touch sets a file's modification time.
	Touch(name string, t time.Time) error
	// SyncDir makes creations, renames and removals in a directory durable.
	SyncDir(name string) error
	// Reserve makes a file of size bytes whose blocks are really allocated.
	Reserve(name string, size int64) error
	// Free is what an unprivileged user may still write, and the size of the
	// file system, in bytes.
	Free(name string) (free, total uint64, err error)
}

// A File is an open file of an FS.
type File interface {
	Write(p []byte) (int, error)
	WriteAt(p []byte, off int64) (int, error)
	ReadAt(p []byte, off int64) (int, error)
	Truncate(size int64) error
	// Sync makes the contents and the size durable (fdatasync).
	Sync() error
	Close() error
}

// OS is the computer's own file system.
func OS() FS { return osFS{} }

type osFS struct{}

type osFile struct{ *os.File }

func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) ReadDir(name string) ([]fs.DirEntry, error)       { return os.ReadDir(name) }
func (osFS) ReadFile(name string) ([]byte, error)             { return os.ReadFile(name) }
func (osFS) Stat(name string) (fs.FileInfo, error)            { return os.Stat(name) }
func (osFS) MkdirAll(name string, perm fs.FileMode) error     { return os.MkdirAll(name, perm) }
func (osFS) Rename(from, to string) error                     { return os.Rename(from, to) }
func (osFS) Remove(name string) error                         { return os.Remove(name) }
func (osFS) Touch(name string, t time.Time) error             { return os.Chtimes(name, t, t) }
func (osFS) Free(name string) (free, total uint64, err error) { return statfs(name) }
func (osFS) SyncDir(name string) error                        { return syncDir(name) }

func (osFS) Reserve(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	// Where the file system cannot allocate (vfat, tmpfs before 3.5), write
	// zeros: a sparse file reserves nothing.
	if err := unix.Fallocate(int(f.Fd()), 0, 0, size); err == nil {
		return f.Sync()
	} else if !errors.Is(err, unix.EOPNOTSUPP) && !errors.Is(err, unix.ENOSYS) {
		os.Remove(name)
		return err
	}
	zeros := make([]byte, 64<<10)
	for n := int64(0); n < size; n += int64(len(zeros)) {
		if _, err := f.Write(zeros); err != nil {
			os.Remove(name)
			return err
		}
	}
	return f.Sync()
}

// Sync is fdatasync: the modification time alone is not worth a journal commit
// of the file system.
func (f osFile) Sync() error {
	for {
		err := unix.Fdatasync(int(f.Fd()))
		if err == nil {
			return nil
		}
		if !errors.Is(err, unix.EINTR) {
			return os.NewSyscallError("fdatasync", err)
		}
	}
}

func statfs(name string) (free, total uint64, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(name, &s); err != nil {
		return 0, 0, fmt.Errorf("statfs %s: %w", name, err)
	}
	block := uint64(s.Bsize)
	return s.Bavail * block, s.Blocks * block, nil
}

func syncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	// Some file systems cannot sync a directory; they say EINVAL and order
	// their metadata by themselves.
	if err := d.Sync(); err != nil && !errors.Is(err, unix.EINVAL) {
		return err
	}
	return nil
}

// replace writes a file so that a crash leaves either the old or the new
// contents: temporary file, fsync, rename, fsync of the directory.
func replace(fsys FS, name string, data []byte) error {
	tmp := name + ".tmp"
	f, err := fsys.OpenFile(tmp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = fsys.Rename(tmp, name)
	}
	if err != nil {
		fsys.Remove(tmp)
		return err
	}
	return fsys.SyncDir(filepath.Dir(name))
}
