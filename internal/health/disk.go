package health

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Disk is what the file system below the state directory has left.
type Disk struct {
	Path       string `json:"path"`
	FreeBytes  int64  `json:"free_bytes"`  // to the station's user
	TotalBytes int64  `json:"total_bytes"` //
	FreeInodes int64  `json:"free_inodes"` // -1: the file system does not count them
	ReadOnly   bool   `json:"read_only"`
	Writable   bool   `json:"writable"` // a probe file was written, flushed and removed
	Why        string `json:"why,omitempty"`
}

const (
	// lowBytes is where telemetry is dropped and the audit kept.
	lowBytes = 50 << 20
	// fullBytes is where the next audit segment may not fit any more.
	fullBytes = 4 << 20
	// lowInodes leaves room for the station's own files, of which there are
	// some dozens.
	lowInodes = 200
)

// ReadDisk looks at the file system of the state directory and tries a write:
// a card that has gone read-only, or lies about it, shows only then.
func ReadDisk(stateDir string) Disk {
	d := Disk{Path: stateDir}
	var st unix.Statfs_t
	if err := unix.Statfs(stateDir, &st); err != nil {
		d.Why = fmt.Sprintf("statfs %s: %v", stateDir, err)
		return d
	}
	fill(&d, &st)
	if err := probe(stateDir); err != nil {
		d.Why = err.Error()
		d.ReadOnly = d.ReadOnly || errors.Is(err, syscall.EROFS)
		return d
	}
	d.Writable = true
	return d
}

// fill takes the numbers of statfs; their types differ between architectures.
func fill(d *Disk, st *unix.Statfs_t) {
	block := int64(st.Bsize)
	d.FreeBytes = int64(st.Bavail) * block
	d.TotalBytes = int64(st.Blocks) * block
	d.FreeInodes = int64(st.Ffree)
	if st.Files == 0 { // btrfs and others make them as needed
		d.FreeInodes = -1
	}
	d.ReadOnly = int64(st.Flags)&unix.ST_RDONLY != 0
}

// probe writes, flushes and removes a file.
func probe(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return fmt.Errorf("probe the state directory: %w", err)
	}
	name := f.Name()
	_, werr := f.WriteString("probe\n")
	serr := f.Sync()
	cerr := f.Close()
	rerr := os.Remove(name)
	if err := errors.Join(werr, serr, cerr, rerr); err != nil {
		return fmt.Errorf("probe the state directory: %w", err)
	}
	return nil
}

// Durable reports whether the station may write down an intent here, which is
// the condition of every actuation, and why not.
func (d Disk) Durable() (why string, ok bool) {
	switch {
	case d.ReadOnly:
		return fmt.Sprintf("%s is on a read-only file system", d.Path), false
	case !d.Writable:
		return fmt.Sprintf("%s cannot be written: %s", d.Path, d.Why), false
	}
	return "", true
}

// Findings says what of the disk somebody should know.
func (d Disk) Findings() []Finding {
	if why, ok := d.Durable(); !ok {
		code, next := "STATE_NOT_WRITABLE", "check the directory's owner and the card; the station moves nothing until it can write"
		if d.ReadOnly {
			code, next = "STATE_READ_ONLY", "look for disk errors in the kernel's log: dmesg; then replace the card, or mount the state partition writable"
		}
		return []Finding{{Code: code, Severity: Unsafe, Title: "state cannot be written", Cause: why, NextStep: next}}
	}
	const space = "remove old files, or give the state a larger partition; telemetry is dropped first, the audit is kept"
	var out []Finding
	switch mb := float64(d.FreeBytes) / (1 << 20); {
	case d.FreeBytes < fullBytes:
		out = append(out, Finding{Code: "DISK_FULL", Severity: Unsafe, Title: "disk full", Cause: fmt.Sprintf("%.1f MB are free at %s", mb, d.Path), NextStep: space})
	case d.FreeBytes < lowBytes:
		out = append(out, Finding{Code: "DISK_LOW", Severity: Warning, Title: "disk nearly full", Cause: fmt.Sprintf("%.0f MB are free at %s, telemetry is dropped below 50", mb, d.Path), NextStep: space})
	}
	if d.FreeInodes >= 0 && d.FreeInodes < lowInodes {
		out = append(out, Finding{Code: "INODES_LOW", Severity: Warning, Title: "too many files", Cause: fmt.Sprintf("the file system at %s has room for %d more files", d.Path, d.FreeInodes), NextStep: "remove directories with many small files"})
	}
	return out
}
