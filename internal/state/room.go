package state

import (
	"fmt"
	"path/filepath"
	"time"
)

const (
	reserveName = "reserve"
	// tidyEvery bounds how long old segments and a filling disk go unnoticed
	// while records come.
	tidyEvery = 10 * time.Second
	// nearlyFull is the share of the quota at which undelivered records that
	// may not be dropped are worth an alarm, while the alarm still fits.
	nearlyFull = 0.9
)

// room makes place for need bytes inside the quota.
func (j *Journal) room(need int64) error {
	for {
		bytes := j.bytes()
		if bytes+need <= j.o.Quota {
			return nil
		}
		if j.dropDelivered() || j.o.Droppable && j.dropUndelivered("the journal's quota is used up") {
			continue
		}
		j.mu.Lock()
		j.refusing = true
		j.mu.Unlock()
		return fmt.Errorf("%w: %d of %d bytes", ErrQuota, bytes, j.o.Quota)
	}
}

func (j *Journal) bytes() (n int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		n += s.size
	}
	return n
}

// relieve gives up one delivered segment, here or where the options say.
func (j *Journal) relieve() bool {
	if j.o.Relieve != nil {
		return j.o.Relieve()
	}
	return j.dropDelivered()
}

// desperate is what happens when the disk is full: it frees something and says
// so, or says no.
func (j *Journal) desperate() bool {
	if j.relieve() || j.o.Droppable && j.dropUndelivered("the disk is full") {
		return true
	}
	if !j.reserved {
		return false
	}
	j.reserved = false
	if err := j.o.FS.Remove(filepath.Join(j.dir, reserveName)); err != nil {
		return false
	}
	j.mu.Lock()
	j.low = true
	j.mu.Unlock()
	j.tell("disk_full")
	return true
}

// tidy applies retention, keeps part of the file system free and restores the
// reserve.
func (j *Journal) tidy() {
	if !j.tidyDue.Swap(false) && time.Since(j.tidied) < tidyEvery {
		return
	}
	j.tidied = time.Now()
	j.mu.Lock()
	shed := j.shedding
	j.shedding = false
	j.mu.Unlock()
	if shed && j.o.Droppable {
		j.dropUndelivered("the disk is full")
	}
	for j.dropExpired() {
	}
	j.keepFree()
	j.warnNearlyFull()
}

// dropExpired removes the oldest segment if the hub has confirmed it, or if
// its time after the PUBACK is over.
func (j *Journal) dropExpired() bool {
	confirmed := j.confirmed.get()
	j.mu.Lock()
	ok := len(j.segs) > 1 && j.segs[0].acked
	var s segment
	var end uint64
	if ok {
		s, end = j.segs[0], j.segs[1].first-1
	}
	j.mu.Unlock()
	if !ok {
		return false
	}
	path := filepath.Join(j.dir, s.name)
	if confirmed < end {
		info, err := j.o.FS.Stat(path)
		if err != nil || j.o.Now().Sub(info.ModTime()) < j.o.Retain {
			return false
		}
	}
	return j.dropDelivered()
}

func (j *Journal) keepFree() {
	if j.o.KeepFree == 0 && !j.o.Reserve {
		return
	}
	free, _, err := j.o.FS.Free(j.dir)
	for err == nil && free < j.o.KeepFree {
		if !j.relieve() && !(j.o.Droppable && j.dropUndelivered("the file system is nearly full")) {
			break
		}
		before := free
		if free, _, err = j.o.FS.Free(j.dir); free <= before {
			break // somebody else fills the disk: giving up more helps nobody
		}
	}
	if err != nil || !j.o.Reserve || j.reserved || free < 2*reserveBytes {
		return
	}
	if j.o.FS.Reserve(filepath.Join(j.dir, reserveName), reserveBytes) != nil {
		return
	}
	j.reserved = true
	j.mu.Lock()
	was := j.low
	j.low = false
	j.mu.Unlock()
	if was {
		j.tell("recovered")
	}
}

func (j *Journal) warnNearlyFull() {
	if j.o.Droppable {
		return
	}
	cur := j.cursor.get()
	j.mu.Lock()
	var n int64
	for i, s := range j.segs {
		if i+1 == len(j.segs) || j.segs[i+1].first-1 > cur {
			n += s.size
		}
	}
	over := float64(n) > nearlyFull*float64(j.o.Quota)
	say := over && !j.warned
	j.warned = over
	j.mu.Unlock()
	if say {
		j.tell("nearly_full")
	}
}

// dropDelivered removes the oldest segment if the broker has all of it. The
// active segment stays.
func (j *Journal) dropDelivered() bool {
	cur := j.cursor.get()
	j.mu.Lock()
	if len(j.segs) < 2 || j.segs[1].first-1 > cur {
		j.mu.Unlock()
		return false
	}
	s := j.segs[0]
	j.segs = j.segs[1:]
	j.mu.Unlock()
	return j.unlink(s)
}

func (j *Journal) unlink(s segment) bool {
	if err := j.o.FS.Remove(filepath.Join(j.dir, s.name)); err != nil {
		return false
	}
	j.o.FS.SyncDir(j.dir) // a segment that comes back after a power cut is delivered again: harmless
	return true
}

// dropUndelivered declares the oldest segment lost and removes it, in that
// order: what is not declared stays.
func (j *Journal) dropUndelivered(why string) bool {
	cur := j.cursor.get()
	j.mu.Lock()
	declare := j.declare
	if len(j.segs) < 2 || declare == nil {
		j.mu.Unlock()
		return false
	}
	s, end := j.segs[0], j.segs[1].first-1
	g := Gap{Epoch: j.epochOf(s.first), From: max(s.first, cur+1), To: end, Why: why}
	j.mu.Unlock()
	if g.From <= g.To {
		if declare(g) != nil {
			return false
		}
		j.mu.Lock()
		j.stats.dropped += int64(g.To - g.From + 1)
		j.mu.Unlock()
		if j.cursor.set(end) != nil {
			return false
		}
	}
	j.mu.Lock()
	if len(j.segs) > 1 && j.segs[0].name == s.name {
		j.segs = j.segs[1:]
	}
	j.mu.Unlock()
	return j.unlink(s)
}

// shed asks this journal to give up its oldest segment, delivered or not.
func (j *Journal) shed() {
	j.mu.Lock()
	j.shedding = true
	j.mu.Unlock()
	j.tidyDue.Store(true)
	poke(j.kick)
}
