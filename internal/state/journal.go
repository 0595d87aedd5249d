package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Why a journal does not take a record. Nothing was written, except where
// ErrUncertain says otherwise.
var (
	ErrJournalDead = errors.New("the journal is closed for good: the disk did not confirm a write; check the disk and restart the daemon")
	ErrNoSpace     = errors.New("no space left for the journal: free disk space or bring the hub back")
	ErrQuota       = errors.New("the journal is full of events that the hub has not taken: bring the hub back or raise the quota")
	ErrTooLarge    = errors.New("the record is larger than the journal takes")
	ErrBusy        = errors.New("the journal has too many records waiting for the disk")
	ErrClosed      = errors.New("the journal is closed")
	// ErrUncertain: the caller stopped waiting while its record was being
	// written. It may or may not be there.
	ErrUncertain = errors.New("the record may still be written")
)

const (
	// MaxRecord is the largest record in bytes: what CloudEvents asks every
	// intermediary to pass.
	MaxRecord = 64 << 10

	defaultSegment = 1 << 20
	defaultQuota   = 64 << 20
	defaultRetain  = 7 * 24 * time.Hour
	reserveBytes   = 4 << 20
	maxWaiting     = 4096 // records waiting for the committer; more means a disk that hangs
	maxBatch       = 256  // records per write, so that the first caller does not wait for ever
)

// JournalOptions are a journal's limits. The zero value of each field is the
// default it names.
type JournalOptions struct {
	FS      FS               // the computer's own
	Now     func() time.Time // the time of day for retention; time.Now
	Linger  time.Duration    // how long the first record waits for company; 0
	Segment int64            // bytes in a segment file; 1 MiB
	Quota   int64            // bytes in all segments; 64 MiB
	Retain  time.Duration    // how long a delivered segment stays after its PUBACK; 7 days
	// KeepFree is how many bytes of the file system stay free; 0 = no check.
	KeepFree uint64
	// Droppable lets the oldest records that were not delivered go when there
	// is no room, after they were declared as a gap.
	Droppable bool
	// Reserve keeps a file of 4 MiB to give up when the disk is full, so that
	// the news of it still fits.
	Reserve bool
	// Relieve is asked to free space elsewhere before this journal gives up
	// records of its own; nil = nothing. It says whether it freed anything.
	Relieve func() bool
}

func (o *JournalOptions) defaults() {
	if o.FS == nil {
		o.FS = OS()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Segment <= 0 {
		o.Segment = defaultSegment
	}
	if o.Quota <= 0 {
		o.Quota = defaultQuota
	}
	if o.Retain <= 0 {
		o.Retain = defaultRetain
	}
}

// A Journal is a numbered, durable queue of small records in segment files. A
// record is on the disk when Append returns; a cursor remembers how far the
// records were delivered. Its methods are safe for concurrent use.
type Journal struct {
	dir    string
	o      JournalOptions
	kick   chan struct{} // something to commit or to tidy
	wake   chan struct{} // something new to read
	ending chan struct{}
	done   chan struct{} // the committer has ended

	cursor    *cursor // delivered: PUBACK
	confirmed *cursor // the hub says it has it

	mu        sync.Mutex
	queue     []*request
	closed    bool
	dead      error
	low       bool // the reserve was given up
	refusing  bool // the last append found no room
	segs      []segment
	committed uint64
	epochs    []epochMark
	pending   []pendingGap
	known     []Gap
	declare   func(Gap) error
	pressure  func(string)
	stats     counters
	shedding  bool // another journal asked this one to make room
	warned    bool // nearly_full was said

	tidyDue atomic.Bool

	// Only the committer touches these.
	active   File
	next     uint64
	reserved bool // the reserve file is there
	tidied   time.Time

	rmu sync.Mutex // one reader at a time
	pos readPos
}

type segment struct {
	name  string
	first uint64
	size  int64
	acked bool // delivered as a whole, and its file's time says when
}

type request struct {
	build func(seq uint64, epoch string) ([]byte, error) // nil: no record, only a place in the order
	then  func(seq uint64, err error)
	seq   uint64
}

type counters struct {
	dropped, quarantined, torn int64
	fsync                      [256]time.Duration
	fsyncs                     int
}

// Submit queues a record and returns at once. build gets the record's number
// and the journal's epoch and makes the line; then is told the outcome. Both
// run on the journal's own goroutine, one record after the other in the order
// of their numbers: they must be quick and must not wait for this journal.
// build may be called again, with another number, before then.
func (j *Journal) Submit(build func(seq uint64, epoch string) ([]byte, error), then func(seq uint64, err error)) error {
	_, err := j.submit(build, then)
	return err
}

func (j *Journal) submit(build func(uint64, string) ([]byte, error), then func(uint64, error)) (*request, error) {
	r := &request{build: build, then: then}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return nil, ErrClosed
	case j.dead != nil:
		return nil, j.dead
	case len(j.queue) >= maxWaiting:
		return nil, ErrBusy
	}
	j.queue = append(j.queue, r)
	poke(j.kick)
	return r, nil
}

// Flush returns when everything that was submitted before it is settled: on the
// disk, or failed and told so.
func (j *Journal) Flush(ctx context.Context) error {
	c := make(chan error, 1)
	if _, err := j.submit(nil, func(_ uint64, err error) { c <- err }); err != nil {
		return err
	}
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Append adds a record and returns its number once it is on the disk; see
// Submit for build. Records that wait together are flushed together. When ctx
// ends first the record is withdrawn, or the error is an ErrUncertain.
func (j *Journal) Append(ctx context.Context, build func(seq uint64, epoch string) ([]byte, error)) (uint64, error) {
	return j.AppendThen(ctx, build, func() {})
}

// AppendThen is Append that calls then on the journal's own goroutine once the
// record is on the disk, in the order of the records, even if the caller has
// stopped waiting.
func (j *Journal) AppendThen(ctx context.Context, build func(seq uint64, epoch string) ([]byte, error), then func()) (uint64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	type outcome struct {
		seq uint64
		err error
	}
	c := make(chan outcome, 1)
	r, err := j.submit(build, func(seq uint64, err error) {
		if err == nil {
			then()
		}
		c <- outcome{seq, err}
	})
	if err != nil {
		return 0, err
	}
	select {
	case out := <-c:
		return out.seq, out.err
	case <-ctx.Done():
	}
	j.mu.Lock()
	i := slices.Index(j.queue, r)
	if i >= 0 {
		j.queue = slices.Delete(j.queue, i, i+1)
	}
	j.mu.Unlock()
	if i >= 0 {
		return 0, ctx.Err()
	}
	select {
	case out := <-c:
		return out.seq, out.err
	default:
		return 0, fmt.Errorf("%w: %w", ErrUncertain, ctx.Err())
	}
}

// run is the committer: the only writer of segments.
func (j *Journal) run() {
	defer close(j.done)
	for {
		select {
		case <-j.kick:
		case <-j.ending:
			for j.commitSome() {
			}
			return
		}
		if j.o.Linger > 0 && j.waiting() > 0 {
			t := time.NewTimer(j.o.Linger)
			select {
			case <-t.C:
			case <-j.ending:
			}
			t.Stop()
		}
		j.tidy()
		for j.commitSome() {
		}
	}
}

func (j *Journal) waiting() int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return len(j.queue)
}

// commitSome writes what waits and tells the callers; false when nothing did.
func (j *Journal) commitSome() bool {
	j.mu.Lock()
	n := min(len(j.queue), maxBatch)
	batch := slices.Clone(j.queue[:n])
	j.queue = slices.Delete(j.queue, 0, n)
	dead := j.dead
	j.mu.Unlock()
	for len(batch) > 0 {
		if dead != nil {
			settle(batch, dead)
			return true
		}
		batch = batch[j.commit(batch):]
		j.mu.Lock()
		dead = j.dead
		j.mu.Unlock()
	}
	return n > 0
}

// commit writes as much of the batch as fits into one segment, with one write
// and one flush, and says how many records it has settled.
func (j *Journal) commit(batch []*request) int {
	j.mu.Lock()
	epoch := j.epochs[len(j.epochs)-1].ID
	size := j.segs[len(j.segs)-1].size
	j.mu.Unlock()
	var buf []byte
	seq, n := j.next, 0
	for _, r := range batch {
		if r.build == nil {
			if n > 0 {
				break // what came before it goes to the disk first
			}
			r.then(0, nil)
			return 1
		}
		data, err := r.build(seq, epoch)
		if err == nil {
			err = checkRecord(data)
		}
		line := appendLine(nil, seq, data)
		full := size+int64(len(buf)+len(line)) > j.o.Segment
		if n > 0 && (err != nil || full) {
			break // first what is ready: outcomes come in the order of the records
		}
		if err == nil && full && size > 0 {
			err, size = j.roll(), 0
		}
		if err != nil {
			settle(batch[:1], err)
			return 1
		}
		r.seq = seq
		seq++
		n++
		buf = append(buf, line...)
	}
	err := j.write(buf, seq-1)
	if err == nil {
		j.next = seq // else the numbers are on no disk and in no hand: used again
	}
	settle(batch[:n], err)
	return n
}

func checkRecord(data []byte) error {
	if len(data) > MaxRecord {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(data), MaxRecord)
	}
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return fmt.Errorf("the record has a line feed at byte %d: a journal holds lines", i)
	}
	return nil
}

func settle(batch []*request, err error) {
	for _, r := range batch {
		if err != nil {
			r.then(0, err)
		} else {
			r.then(r.seq, nil)
		}
	}
}

// write puts whole lines at the end of the active segment and flushes them;
// last is the number of the last.
func (j *Journal) write(buf []byte, last uint64) error {
	if err := j.room(int64(len(buf))); err != nil {
		return err
	}
	j.mu.Lock()
	size := j.segs[len(j.segs)-1].size
	j.mu.Unlock()
	_, err := j.active.WriteAt(buf, size)
	for isNoSpace(err) && j.desperate() {
		_, err = j.active.WriteAt(buf, size)
	}
	if err != nil {
		if terr := j.active.Truncate(size); terr != nil {
			return j.die(fmt.Errorf("%w: write: %w, and cutting back: %w", ErrJournalDead, err, terr))
		}
		if isNoSpace(err) {
			j.mu.Lock()
			j.refusing = true
			j.mu.Unlock()
			return fmt.Errorf("%w: %w", ErrNoSpace, err)
		}
		return fmt.Errorf("write journal: %w", err)
	}
	start := time.Now()
	if err := j.active.Sync(); err != nil {
		// What the page cache holds now is unknown: a second flush may say
		// "done" about pages that were thrown away.
		return j.die(fmt.Errorf("%w: %w", ErrJournalDead, err))
	}
	took := time.Since(start)
	j.mu.Lock()
	j.segs[len(j.segs)-1].size += int64(len(buf))
	j.committed = last
	j.refusing = false
	j.stats.fsync[j.stats.fsyncs%len(j.stats.fsync)] = took
	j.stats.fsyncs++
	j.mu.Unlock()
	poke(j.wake)
	return nil
}

func isNoSpace(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

func (j *Journal) die(err error) error {
	j.mu.Lock()
	j.dead = err
	j.mu.Unlock()
	j.tell("journal_dead")
	return err
}

func (j *Journal) tell(what string) {
	j.mu.Lock()
	f := j.pressure
	j.mu.Unlock()
	if f != nil {
		f(what)
	}
}

// roll starts a new segment. The directory is flushed before the first record
// is written: a record in a file without a name is lost.
func (j *Journal) roll() error {
	name := segmentName(j.next)
	path := filepath.Join(j.dir, name)
	f, err := j.o.FS.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	for isNoSpace(err) && j.desperate() {
		f, err = j.o.FS.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	}
	if err == nil {
		if err = j.o.FS.SyncDir(j.dir); err != nil {
			f.Close()
			j.o.FS.Remove(path)
		}
	}
	if err != nil {
		if isNoSpace(err) {
			return fmt.Errorf("%w: new segment: %w", ErrNoSpace, err)
		}
		return fmt.Errorf("new journal segment: %w", err)
	}
	if j.active != nil {
		j.active.Close()
	}
	j.active = f
	j.mu.Lock()
	j.segs = append(j.segs, segment{name: name, first: j.next})
	j.mu.Unlock()
	j.markDelivered(j.cursor.get()) // the segment before may have been delivered as it was
	j.tidyDue.Store(true)
	j.tidy()
	return nil
}

func segmentName(first uint64) string { return fmt.Sprintf("seg-%020d.jsonl", first) }

// Ack records that everything up to seq was delivered. It is not flushed at
// once: a power cut may move the cursor back, which sends twice and loses
// nothing.
func (j *Journal) Ack(seq uint64) error {
	if last := j.Last(); seq > last {
		return fmt.Errorf("ack of record %d: the last one is %d", seq, last)
	}
	if err := j.cursor.set(seq); err != nil {
		return fmt.Errorf("journal cursor: %w", err)
	}
	if j.markDelivered(seq) {
		j.tidyDue.Store(true)
		poke(j.kick)
	}
	return nil
}

// Confirm records that the hub itself says it has everything up to seq. It
// never moves back and never beyond what there is.
func (j *Journal) Confirm(seq uint64) error {
	if last := j.Last(); seq > last {
		return fmt.Errorf("confirmation of record %d: the last one is %d", seq, last)
	}
	if err := j.confirmed.set(seq); err != nil {
		return fmt.Errorf("confirmation cursor: %w", err)
	}
	j.tidyDue.Store(true)
	poke(j.kick)
	return nil
}

// markDelivered stamps the segments that seq completes; their retention runs
// from now. It says whether there were any.
func (j *Journal) markDelivered(seq uint64) bool {
	j.mu.Lock()
	var names []string
	for i := 0; i+1 < len(j.segs); i++ {
		if s := &j.segs[i]; !s.acked && j.segs[i+1].first-1 <= seq {
			s.acked = true
			names = append(names, s.name)
		}
	}
	j.mu.Unlock()
	for _, n := range names {
		j.o.FS.Touch(filepath.Join(j.dir, n), j.o.Now()) // without it the segment only goes earlier
	}
	return len(names) > 0
}

// Last is the number of the newest durable record; 0 = none yet.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.committed
}

// Cursor is the number up to which records were delivered.
func (j *Journal) Cursor() uint64 { return j.cursor.get() }

// Wake delivers a value after records were added.
func (j *Journal) Wake() <-chan struct{} { return j.wake }

// Epoch is the random name of this journal's numbering.
func (j *Journal) Epoch() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.epochs[len(j.epochs)-1].ID
}

// OnPressure sets who is told of trouble with space, in one word: disk_full,
// nearly_full, recovered or journal_dead. It runs on the journal's goroutine
// and must not wait.
func (j *Journal) OnPressure(f func(what string)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.pressure = f
}

// Stats is a journal's condition.
type Stats struct {
	State       string // ok, disk_full (room is being made or missing) or journal_dead
	Epoch       string
	Appended    uint64 // number of the newest record
	Delivered   uint64 // up to here the broker has acknowledged
	Confirmed   uint64 // up to here the hub itself has confirmed
	Bytes       int64
	Quota       int64
	Dropped     int64 // records declared lost, this run
	Quarantined int64 // pieces put aside, this run
	TornBytes   int64 // cut off at the start of this run
	FsyncP99    time.Duration
	Undeclared  int // gaps that could not be declared yet
}

// Stats says how the journal is.
func (j *Journal) Stats() Stats {
	delivered, confirmed := j.cursor.get(), j.confirmed.get()
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Stats{State: "ok", Epoch: j.epochs[len(j.epochs)-1].ID, Appended: j.committed, Delivered: delivered,
		Confirmed: confirmed, Quota: j.o.Quota, Dropped: j.stats.dropped, Quarantined: j.stats.quarantined,
		TornBytes: j.stats.torn, Undeclared: len(j.pending)}
	for _, g := range j.segs {
		s.Bytes += g.size
	}
	switch {
	case j.dead != nil:
		s.State = "journal_dead"
	case j.low || j.refusing:
		s.State = "disk_full"
	}
	if n := min(j.stats.fsyncs, len(j.stats.fsync)); n > 0 {
		d := slices.Sorted(slices.Values(j.stats.fsync[:n]))
		s.FsyncP99 = d[(n*99)/100]
	}
	return s
}

// Close commits what waits, flushes the cursors and ends the journal.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	close(j.ending)
	<-j.done
	j.rmu.Lock()
	defer j.rmu.Unlock()
	return errors.Join(j.active.Close(), j.cursor.close(), j.confirmed.close())
}

func fileSize(e fs.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	return info.Size()
}
