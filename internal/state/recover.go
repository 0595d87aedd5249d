package state

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Gap is a run of records that will never come, and why.
type Gap struct {
	Epoch    string
	From, To uint64 // both included
	Why      string
	Previous string // with a new epoch: the one before, under which the hub may have records up to To
}

type pendingGap struct {
	Gap
	file string // in quarantine; renamed once the gap is declared. "" = the epoch file
}

// An epochMark says from which number on an epoch's name holds.
type epochMark struct {
	ID       string `json:"id"`
	First    uint64 `json:"first"`
	Why      string `json:"why,omitempty"`
	Declared bool   `json:"declared"`
}

const (
	keptEpochs  = 32
	badSuffix   = ".bad"      // in quarantine, its gap not declared yet
	oldSuffix   = ".declared" // in quarantine, and the hub has been told
	tornSuffix  = ".torn"     // in quarantine, was never acknowledged: nothing to declare
	epochName   = "epoch.json"
	cursorName  = "cursor"
	confirmName = "confirmed"
)

// A Recovery is what opening found and did. The zero value means that
// everything was in order.
type Recovery struct {
	Created   bool
	NewEpoch  bool
	TornBytes int64    // cut off the end
	BadLines  int      // damaged regions with good records after them
	Notes     []string // sentences for the operator
}

// OpenJournal opens the journal in dir, makes it when there is none, and
// repairs what a power cut or a bad disk left: a torn end is kept in
// quarantine/ and cut, damaged records are put aside and declared as a gap.
// It starts the goroutine that writes; Close ends it.
func OpenJournal(dir string, o JournalOptions) (*Journal, Recovery, error) {
	o.defaults()
	j := &Journal{dir: dir, o: o, kick: make(chan struct{}, 1), wake: make(chan struct{}, 1),
		ending: make(chan struct{}), done: make(chan struct{})}
	rec, err := j.open()
	if err != nil {
		for _, c := range []*cursor{j.cursor, j.confirmed} {
			if c != nil {
				c.f.Close()
			}
		}
		if j.active != nil {
			j.active.Close()
		}
		return nil, rec, fmt.Errorf("open journal %s: %w", dir, err)
	}
	go j.run()
	return j, rec, nil
}

func (j *Journal) open() (rec Recovery, err error) {
	if err := j.o.FS.MkdirAll(filepath.Join(j.dir, "quarantine"), 0o700); err != nil {
		return rec, err
	}
	if err := j.o.FS.SyncDir(filepath.Dir(j.dir)); err != nil {
		return rec, err
	}
	var damaged bool
	if j.cursor, damaged, err = openCursor(j.o.FS, filepath.Join(j.dir, cursorName)); err != nil {
		return rec, err
	}
	if damaged {
		rec.Notes = append(rec.Notes, "the delivery cursor is damaged: everything retained is sent again")
	}
	if j.confirmed, _, err = openCursor(j.o.FS, filepath.Join(j.dir, confirmName)); err != nil {
		return rec, err
	}
	if err := j.listSegments(); err != nil {
		return rec, err
	}
	newEpoch := j.readEpochs(&rec)
	if err := j.readQuarantine(); err != nil {
		return rec, err
	}
	last, cut, err := j.scanActive(&rec)
	if err != nil {
		return rec, err
	}
	if cut != "" {
		newEpoch = cut
	}
	if cur := j.cursor.get(); cur > last {
		// The broker had records that this disk has not: their numbers must
		// not be used for others.
		newEpoch = fmt.Sprintf("the journal ends at %d and %d were delivered", last, cur)
		last = cur
	}
	j.committed, j.next = last, last+1
	if newEpoch != "" {
		if err := j.startEpoch(&rec, newEpoch); err != nil {
			return rec, err
		}
	}
	if n := len(j.segs); j.active == nil || newEpoch != "" && (j.segs[n-1].size > 0 || j.segs[n-1].first != j.next) {
		if err := j.roll(); err != nil {
			return rec, err
		}
	}
	j.tidyDue.Store(true)
	j.tidy()
	return rec, nil
}

// listSegments fills segs from the directory, in order.
func (j *Journal) listSegments() error {
	entries, err := j.o.FS.ReadDir(j.dir)
	if err != nil {
		return err
	}
	cur := j.cursor.get()
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "seg-")
		digits, ok2 := strings.CutSuffix(digits, ".jsonl")
		first, err := strconv.ParseUint(digits, 10, 64)
		if !ok || !ok2 || err != nil || first == 0 || e.Name() != segmentName(first) {
			continue
		}
		j.segs = append(j.segs, segment{name: e.Name(), first: first, size: fileSize(e)})
	}
	slices.SortFunc(j.segs, func(a, b segment) int { return strings.Compare(a.name, b.name) })
	for i := 0; i+1 < len(j.segs); i++ {
		j.segs[i].acked = j.segs[i+1].first-1 <= cur
	}
	_, err = j.o.FS.Stat(filepath.Join(j.dir, reserveName))
	j.reserved = err == nil
	return nil
}

// readEpochs reads the epoch file; the answer is why a new epoch is needed.
func (j *Journal) readEpochs(rec *Recovery) string {
	data, err := j.o.FS.ReadFile(filepath.Join(j.dir, epochName))
	if errors.Is(err, fs.ErrNotExist) && len(j.segs) == 0 && j.cursor.get() == 0 {
		rec.Created = true
		return "created"
	}
	if err == nil {
		err = decodeSaved(data, &j.epochs)
	}
	if err != nil || len(j.epochs) == 0 {
		j.epochs = nil
		rec.Notes = append(rec.Notes, fmt.Sprintf("the epoch file is unreadable (%v): numbering goes on under a new name", err))
		return "the name of the numbering was lost"
	}
	if len(j.segs) == 0 {
		return "the segment files are gone"
	}
	if m := j.epochs[len(j.epochs)-1]; !m.Declared {
		j.pending = append(j.pending, pendingGap{Gap: j.epochGap(len(j.epochs) - 1)})
	}
	return ""
}

func (j *Journal) epochGap(i int) Gap {
	g := Gap{Epoch: j.epochs[i].ID, From: 1, To: j.epochs[i].First - 1, Why: j.epochs[i].Why}
	if i > 0 {
		g.Previous = j.epochs[i-1].ID
	}
	return g
}

// startEpoch gives the numbers from next on a new name, durably.
func (j *Journal) startEpoch(rec *Recovery, why string) error {
	id := make([]byte, 4)
	rand.Read(id)
	m := epochMark{ID: hex.EncodeToString(id), First: j.next, Why: why, Declared: rec.Created}
	j.epochs = append(j.epochs, m)
	j.epochs = j.epochs[max(0, len(j.epochs)-keptEpochs):]
	if err := j.saveEpochs(j.epochs); err != nil {
		return err
	}
	if !m.Declared {
		rec.NewEpoch = true
		rec.Notes = append(rec.Notes, fmt.Sprintf("new epoch %s from record %d on: %s", m.ID, m.First, why))
		j.pending = append(j.pending, pendingGap{Gap: j.epochGap(len(j.epochs) - 1)})
	}
	return nil
}

func (j *Journal) saveEpochs(e []epochMark) error {
	data, err := encodeSaved(e)
	if err != nil {
		return err
	}
	return replace(j.o.FS, filepath.Join(j.dir, epochName), data)
}

// epochOf is the name under which a number was given; call with mu held.
func (j *Journal) epochOf(seq uint64) string {
	id := j.epochs[0].ID
	for _, m := range j.epochs {
		if m.First <= seq {
			id = m.ID
		}
	}
	return id
}

// readQuarantine learns which gaps are known, and which of those were not
// declared before the last end.
func (j *Journal) readQuarantine() error {
	entries, err := j.o.FS.ReadDir(filepath.Join(j.dir, "quarantine"))
	if err != nil {
		return err
	}
	for _, e := range entries {
		var from, to uint64
		base, declared := strings.CutSuffix(e.Name(), oldSuffix)
		base, bad := strings.CutSuffix(base, badSuffix)
		if n, _ := fmt.Sscanf(base, "gap-%d-%d", &from, &to); n != 2 || !declared && !bad {
			continue
		}
		g := Gap{Epoch: j.lastEpochID(from), From: from, To: to, Why: damagedWhy}
		j.known = append(j.known, g)
		if !declared {
			j.pending = append(j.pending, pendingGap{g, e.Name()})
		}
	}
	return nil
}

func (j *Journal) lastEpochID(seq uint64) string {
	if len(j.epochs) == 0 {
		return ""
	}
	return j.epochOf(seq)
}

const damagedWhy = "damaged on the disk"

// scanActive reads the last segment, cuts a torn end and opens it for writing.
// cut says why an end that may have been acknowledged had to go.
func (j *Journal) scanActive(rec *Recovery) (last uint64, cut string, err error) {
	if len(j.segs) == 0 {
		return 0, "", nil
	}
	seg := &j.segs[len(j.segs)-1]
	path := filepath.Join(j.dir, seg.name)
	f, err := j.o.FS.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return 0, "", err
	}
	j.active = f
	buf := make([]byte, seg.size)
	n, err := f.ReadAt(buf, 0)
	if int64(n) < seg.size {
		return 0, "", fmt.Errorf("read %s: %w", seg.name, err)
	}
	recs, bad, used := scanLines(buf, seg.first-1)
	last = seg.first - 1
	if len(recs) > 0 {
		last = recs[len(recs)-1].Seq
	}
	for _, r := range bad {
		if r.next != 0 {
			rec.BadLines++
			j.damage(buf[r.off:r.end], r.prev+1, r.next-1)
		}
	}
	if used == seg.size {
		return last, "", nil
	}
	tail := buf[used:]
	rec.TornBytes = int64(len(tail))
	j.stats.torn = rec.TornBytes
	if mayBeAcknowledged(tail) {
		cut = fmt.Sprintf("%d bytes after record %d were damaged and may have been acknowledged", len(tail), last)
	}
	note := fmt.Sprintf("cut %d bytes after record %d", len(tail), last)
	name := fmt.Sprintf("tail-%020d-%d-%s%s", last, used, time.Now().UTC().Format("20060102T150405Z"), tornSuffix)
	if err := j.quarantine(name, tail); err != nil {
		note += fmt.Sprintf(" (no copy could be kept: %v)", err)
	} else {
		note += ", kept as quarantine/" + name
	}
	rec.Notes = append(rec.Notes, note)
	if err := f.Truncate(used); err != nil {
		return 0, "", fmt.Errorf("cut %s: %w", seg.name, err)
	}
	if err := f.Sync(); err != nil {
		return 0, "", fmt.Errorf("cut %s: %w", seg.name, err)
	}
	seg.size = used
	return last, cut, nil
}

// mayBeAcknowledged: an interrupted write leaves the beginning of one batch,
// so anything but the beginning of lines means that whole records were hurt.
// A batch that was cut inside a later line leaves its first lines whole, and
// those are good records, not part of the tail.
func mayBeAcknowledged(tail []byte) bool {
	for _, c := range tail {
		if c == '\n' || c == 0 {
			return true
		}
	}
	_, whole := parseLine(tail[:len(tail)-1])
	return whole // only its line feed was hurt
}

// damage puts a bad region aside and remembers the gap that it makes.
func (j *Journal) damage(data []byte, from, to uint64) {
	if from > to {
		return
	}
	j.mu.Lock()
	for _, g := range j.known {
		if g.From <= from && to <= g.To {
			j.mu.Unlock()
			return
		}
	}
	g := Gap{Epoch: j.lastEpochID(from), From: from, To: to, Why: damagedWhy}
	name := fmt.Sprintf("gap-%d-%d%s", from, to, badSuffix)
	j.known = append(j.known, g)
	j.pending = append(j.pending, pendingGap{g, name})
	j.stats.dropped += int64(to - from + 1)
	j.mu.Unlock()
	if j.quarantine(name, data) != nil {
		return // the gap is found again at the next start if it was not declared by then
	}
}

// quarantine keeps bytes that cannot be used, verbatim.
func (j *Journal) quarantine(name string, data []byte) error {
	j.mu.Lock()
	j.stats.quarantined++
	j.mu.Unlock()
	return replace(j.o.FS, filepath.Join(j.dir, "quarantine", name), data)
}

// Quarantine keeps a record that the broker will not take, and counts it.
func (j *Journal) Quarantine(r Record, why string) error {
	name := fmt.Sprintf("refused-%020d.jsonl", r.Seq)
	if err := j.quarantine(name, append(slices.Clone(r.Data), '\n')); err != nil {
		return fmt.Errorf("quarantine record %d (%s): %w", r.Seq, why, err)
	}
	return nil
}

// DeclareGaps sets who is told of records that will never come; f returns nil
// once that is durable elsewhere. It is called at once for what opening found,
// and later from Read and from the journal's own goroutine.
func (j *Journal) DeclareGaps(f func(Gap) error) {
	j.mu.Lock()
	j.declare = f
	j.mu.Unlock()
	j.declarePending()
}

func (j *Journal) declarePending() {
	j.mu.Lock()
	declare, pending := j.declare, j.pending
	if declare != nil {
		j.pending = nil // ours now: two callers must not declare the same
	}
	j.mu.Unlock()
	if declare == nil {
		return
	}
	for i, g := range pending {
		if declare(g.Gap) != nil {
			j.mu.Lock()
			j.pending = append(slices.Clone(pending[i:]), j.pending...)
			j.mu.Unlock()
			return
		}
		j.declared(g)
	}
}

// declared remembers on disk that the hub has been told. A crash before that
// tells it again, which is harmless.
func (j *Journal) declared(g pendingGap) {
	if g.file != "" {
		q := filepath.Join(j.dir, "quarantine")
		if j.o.FS.Rename(filepath.Join(q, g.file), filepath.Join(q, strings.TrimSuffix(g.file, badSuffix)+oldSuffix)) == nil {
			j.o.FS.SyncDir(q)
		}
		return
	}
	j.mu.Lock()
	for i := range j.epochs {
		if j.epochs[i].ID == g.Epoch {
			j.epochs[i].Declared = true
		}
	}
	marks := slices.Clone(j.epochs)
	j.mu.Unlock()
	j.saveEpochs(marks) // else it is declared again at the next start
}
