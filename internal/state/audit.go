package state

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// An AuditLine is one line of the audit: JSON in a file per month. CRC is over
// the line as it stands before `,"crc32c"`; Prev is the SHA-256 of the line
// before, without its line feed, so that no line can be changed, taken out or
// put in without the next one telling.
type AuditLine struct {
	Seq  uint64          `json:"seq"`
	Time time.Time       `json:"time"`
	Prev string          `json:"prev"`
	Rec  json.RawMessage `json:"rec"`
	CRC  string          `json:"crc32c"`
}

// MaxAuditLine bounds a line in bytes.
const MaxAuditLine = 256 << 10

// An Audit is the durable record of who asked for what and what came of it.
// It is safe for concurrent use.
type Audit struct {
	dir  string
	fsys FS
	now  func() time.Time

	mu    sync.Mutex // held over the write on purpose: the lines form a chain
	f     File
	month string // 2026-11, the open file's
	size  int64
	seq   uint64
	prev  string
	dead  error
}

// OpenAudit opens the audit of a state directory; now dates the lines. A torn
// last line, which was never acknowledged, is cut off and kept in
// audit/quarantine/.
func OpenAudit(d *Dir, now func() time.Time) (*Audit, Recovery, error) {
	return openAudit(OS(), d.Path("audit"), now)
}

func openAudit(fsys FS, dir string, now func() time.Time) (*Audit, Recovery, error) {
	a := &Audit{dir: dir, fsys: fsys, now: now, prev: strings.Repeat("0", 2*sha256.Size)}
	rec, err := a.open()
	if err != nil {
		if a.f != nil {
			a.f.Close()
		}
		return nil, rec, fmt.Errorf("open audit: %w", err)
	}
	return a, rec, nil
}

func (a *Audit) open() (rec Recovery, err error) {
	if err := a.fsys.MkdirAll(filepath.Join(a.dir, "quarantine"), 0o700); err != nil {
		return rec, err
	}
	if err := a.fsys.SyncDir(filepath.Dir(a.dir)); err != nil {
		return rec, err
	}
	names, err := auditFiles(a.fsys, a.dir)
	if err != nil {
		return rec, err
	}
	if rec.Created = len(names) == 0; rec.Created {
		return rec, nil
	}
	for i, name := range slices.Backward(names) {
		data, err := a.fsys.ReadFile(filepath.Join(a.dir, name))
		if err != nil {
			return rec, err
		}
		if i == len(names)-1 {
			a.month = strings.TrimSuffix(name, ".jsonl")
			a.f, err = a.fsys.OpenFile(filepath.Join(a.dir, name), os.O_RDWR, 0o600)
			if err != nil {
				return rec, err
			}
			if data, err = a.cut(name, data, &rec); err != nil {
				return rec, err
			}
			a.size = int64(len(data))
		}
		if len(data) == 0 {
			continue // a new month's file without a whole line: the chain goes on from the one before
		}
		a.last(data, &rec)
		break
	}
	return rec, nil
}

// cut takes off what an interrupted write left at the end: bytes without a
// line feed, or zeros. Whole lines stay, damaged or not: they are evidence.
func (a *Audit) cut(name string, data []byte, rec *Recovery) ([]byte, error) {
	whole := data[:bytes.LastIndexByte(data, '\n')+1]
	torn := data[len(whole):]
	if len(torn) == 0 {
		return data, nil
	}
	rec.TornBytes = int64(len(torn))
	keep := fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ".jsonl"), len(whole), tornSuffix)
	note := fmt.Sprintf("audit: cut a torn line of %d bytes off %s", len(torn), name)
	if err := replace(a.fsys, filepath.Join(a.dir, "quarantine", keep), torn); err != nil {
		note += fmt.Sprintf(" (no copy could be kept: %v)", err)
	} else {
		note += ", kept as audit/quarantine/" + keep
	}
	rec.Notes = append(rec.Notes, note)
	if err := a.f.Truncate(int64(len(whole))); err != nil {
		return nil, fmt.Errorf("cut %s: %w", name, err)
	}
	if err := a.f.Sync(); err != nil {
		return nil, fmt.Errorf("cut %s: %w", name, err)
	}
	return whole, nil
}

// last takes number and hash from the end of whole lines. A damaged last line
// still counts: the next number is one higher for each.
func (a *Audit) last(data []byte, rec *Recovery) {
	lines := bytes.Split(bytes.TrimSuffix(data, []byte{'\n'}), []byte{'\n'})
	a.prev = hashLine(lines[len(lines)-1])
	for n, line := range slices.Backward(lines) {
		if l, err := parseAudit(line); err == nil {
			behind := len(lines) - 1 - n
			a.seq = l.Seq + uint64(behind)
			if behind > 0 {
				rec.BadLines = behind
				rec.Notes = append(rec.Notes, fmt.Sprintf("audit: %d damaged lines after number %d; run gsd-mcp audit --verify", behind, l.Seq))
			}
			return
		}
	}
	a.seq += uint64(len(lines))
	rec.BadLines = len(lines)
	rec.Notes = append(rec.Notes, "audit: no line of the newest file is readable; run gsd-mcp audit --verify")
}

func hashLine(line []byte) string {
	sum := sha256.Sum256(line)
	return hex.EncodeToString(sum[:])
}

const crcKey = `,"crc32c":"`

// parseAudit reads a line without its line feed and checks its CRC.
func parseAudit(line []byte) (AuditLine, error) {
	i := bytes.LastIndex(line, []byte(crcKey))
	if i < 0 {
		return AuditLine{}, errors.New("has no checksum")
	}
	var l AuditLine
	if err := json.Unmarshal(line, &l); err != nil {
		return l, fmt.Errorf("is not JSON: %w", err)
	}
	want := fmt.Sprintf("%08x", crc32.Checksum(line[:i], castagnoli))
	if l.CRC != want || string(line[i:]) != crcKey+want+`"}` {
		return l, fmt.Errorf("has checksum %.20q, its contents give %s", l.CRC, want)
	}
	return l, nil
}

// auditFiles are the months' files, oldest first.
func auditFiles(fsys FS, dir string) ([]string, error) {
	entries, err := fsys.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		month, ok := strings.CutSuffix(e.Name(), ".jsonl")
		if _, err := time.Parse("2006-01", month); ok && err == nil {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// Append adds a record and returns its number once it is on the disk. After an
// error nothing was added; after a failed flush the audit is closed for good.
func (a *Audit) Append(rec any) (uint64, error) {
	raw, err := json.Marshal(rec)
	if err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead != nil {
		return 0, a.dead
	}
	now := a.now().UTC()
	if err := a.openMonth(now.Format("2006-01")); err != nil {
		return 0, fmt.Errorf("audit: %w", err)
	}
	line := fmt.Appendf(nil, `{"seq":%d,"time":"%s","prev":"%s","rec":%s`, a.seq+1, now.Format(time.RFC3339Nano), a.prev, raw)
	line = fmt.Appendf(line, `%s%08x"}`, crcKey, crc32.Checksum(line, castagnoli))
	if len(line) > MaxAuditLine {
		return 0, fmt.Errorf("audit: the line would have %d bytes, at most %d", len(line), MaxAuditLine)
	}
	if _, err := a.f.WriteAt(append(line, '\n'), a.size); err != nil {
		if terr := a.f.Truncate(a.size); terr != nil {
			a.dead = fmt.Errorf("audit: %w: write: %w, and cutting back: %w", ErrJournalDead, err, terr)
			return 0, a.dead
		}
		return 0, fmt.Errorf("audit: write: %w", err)
	}
	if err := a.f.Sync(); err != nil {
		a.dead = fmt.Errorf("audit: %w: %w", ErrJournalDead, err)
		return 0, a.dead
	}
	a.size += int64(len(line)) + 1
	a.seq++
	a.prev = hashLine(line)
	return a.seq, nil
}

// openMonth opens the month's file. A clock that went back does not reopen an
// old file: the order of the files is the order of the chain.
func (a *Audit) openMonth(month string) error {
	if a.f != nil && month <= a.month {
		return nil
	}
	f, err := a.fsys.OpenFile(filepath.Join(a.dir, month+".jsonl"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := a.fsys.SyncDir(a.dir); err != nil {
		f.Close()
		return err
	}
	if a.f != nil {
		a.f.Close()
	}
	a.f, a.month, a.size = f, month, 0
	return nil
}

// Last is the number of the newest line; 0 = none.
func (a *Audit) Last() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.seq
}

// Err is why the audit takes nothing more; nil while it does.
func (a *Audit) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dead
}

// Close closes the file.
func (a *Audit) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.dead == nil {
		a.dead = fmt.Errorf("audit: %w", ErrClosed)
	}
	if a.f == nil {
		return nil
	}
	f := a.f
	a.f = nil
	return f.Close()
}

// A Problem is a place where the audit is not what was written.
type Problem struct {
	File string `json:"file"`
	Line int    `json:"line"`
	Seq  uint64 `json:"seq,omitempty"` // 0 when it cannot be read
	What string `json:"what"`
}

// A Report is the outcome of Verify.
type Report struct {
	Files    int       `json:"files"`
	Lines    int       `json:"lines"`
	First    uint64    `json:"first_seq"`
	Last     uint64    `json:"last_seq"`
	Head     string    `json:"head_sha256"` // hash of the last line: note it elsewhere to prove later that no end was cut off
	Problems []Problem `json:"problems"`
}

// OK reports whether every line is there as it was written.
func (r Report) OK() bool { return len(r.Problems) == 0 }

// Verify reads the audit in dir (state directory/audit) and checks numbers,
// checksums and the chain over all files. A chain cannot show that its last
// lines were taken away: compare Head with one that was noted elsewhere.
func Verify(dir string) (Report, error) {
	rep := Report{Problems: []Problem{}}
	prev := strings.Repeat("0", 2*sha256.Size)
	err := eachAuditLine(dir, func(file string, n int, line []byte, whole bool) {
		rep.Lines++
		problem := func(seq uint64, format string, args ...any) {
			rep.Problems = append(rep.Problems, Problem{file, n, seq, fmt.Sprintf(format, args...)})
		}
		l, err := parseAudit(line)
		switch {
		case !whole:
			problem(0, "the last line is torn")
		case err != nil:
			problem(0, "%v", err)
		default:
			if rep.First == 0 {
				rep.First = l.Seq
				if l.Seq != 1 {
					prev = l.Prev // older files were archived: the chain starts here
				}
			} else if l.Seq != rep.Last+1 {
				problem(l.Seq, "follows number %d", rep.Last)
			}
			if l.Prev != prev {
				problem(l.Seq, "does not continue the line before: something was changed, taken out or put in")
			}
		}
		rep.Last++
		if err == nil {
			rep.Last = l.Seq
		}
		prev = hashLine(line)
		rep.Head = prev
	}, &rep.Files)
	if err != nil {
		return rep, fmt.Errorf("verify audit: %w", err)
	}
	return rep, nil
}

// TailAudit returns the newest n readable lines, oldest first.
func TailAudit(dir string, n int) ([]AuditLine, error) {
	var out []AuditLine
	err := eachAuditLine(dir, func(_ string, _ int, line []byte, _ bool) {
		if l, err := parseAudit(line); err == nil {
			if out = append(out, l); len(out) > 2*n {
				out = slices.Clone(out[len(out)-n:])
			}
		}
	}, new(int))
	if err != nil {
		return nil, fmt.Errorf("read audit: %w", err)
	}
	return out[max(0, len(out)-n):], nil
}

func eachAuditLine(dir string, f func(file string, n int, line []byte, whole bool), files *int) error {
	names, err := auditFiles(OS(), dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		*files++
		r := bufio.NewReader(file)
		for n := 1; ; n++ {
			line, err := r.ReadBytes('\n')
			if len(line) > 0 {
				f(name, n, bytes.TrimSuffix(line, []byte{'\n'}), err == nil)
			}
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				file.Close()
				return err
			}
		}
		file.Close()
	}
	return nil
}
