package state

import (
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"
)

const (
	infoLinger = 20 * time.Millisecond
	// keepFree and its share of the file system: whichever is less stays free
	// for everybody else.
	keepFree      = 256 << 20
	keepFreeShare = 20 // one twentieth
)

// An Outbox is the station's two journals. Crit holds what must not be lost;
// info gives way to it when there is no room, declared.
type Outbox struct {
	Crit, Info *Journal

	mu sync.Mutex // while opening: a journal may ask for room before both are there
}

// OutboxOptions are the limits of both journals. The zero value of each field
// is the default it names.
type OutboxOptions struct {
	FS        FS               // the computer's own
	Now       func() time.Time // time.Now
	CritQuota int64            // bytes; 64 MiB
	InfoQuota int64            // bytes; 64 MiB
	Segment   int64            // bytes; 1 MiB
	Retain    time.Duration    // 7 days
	KeepFree  uint64           // bytes; 256 MiB or 5 % of the file system, whichever is less
}

// OpenOutbox opens the journals crit and info under dir. Room is made in this
// order: delivered info, delivered crit, undelivered info (declared first);
// undelivered crit is never given up: then the journal refuses.
func OpenOutbox(dir string, o OutboxOptions) (*Outbox, Recovery, error) {
	if o.FS == nil {
		o.FS = OS()
	}
	if err := o.FS.MkdirAll(dir, 0o700); err != nil {
		return nil, Recovery{}, fmt.Errorf("open outbox: %w", err)
	}
	if o.KeepFree == 0 {
		_, total, err := o.FS.Free(dir)
		if err != nil {
			return nil, Recovery{}, fmt.Errorf("open outbox: %w", err)
		}
		o.KeepFree = min(keepFree, total/keepFreeShare)
	}
	var box Outbox
	base := JournalOptions{FS: o.FS, Now: o.Now, Segment: o.Segment, Retain: o.Retain, KeepFree: o.KeepFree}
	crit, info := base, base
	crit.Quota, crit.Reserve = o.CritQuota, true
	crit.Relieve = func() bool { return box.relieve(true) }
	info.Quota, info.Linger, info.Droppable = o.InfoQuota, infoLinger, true
	info.Relieve = func() bool { return box.relieve(false) }

	i, irec, err := OpenJournal(filepath.Join(dir, "info"), info)
	if err != nil {
		return nil, irec, err
	}
	c, rec, err := OpenJournal(filepath.Join(dir, "crit"), crit)
	if err != nil {
		i.Close()
		return nil, rec, err
	}
	box.mu.Lock()
	box.Crit, box.Info = c, i
	box.mu.Unlock()
	rec.Created = rec.Created && irec.Created
	rec.NewEpoch = rec.NewEpoch || irec.NewEpoch
	rec.TornBytes += irec.TornBytes
	rec.BadLines += irec.BadLines
	for n := range rec.Notes {
		rec.Notes[n] = "crit: " + rec.Notes[n]
	}
	for _, n := range irec.Notes {
		rec.Notes = append(rec.Notes, "info: "+n)
	}
	return &box, rec, nil
}

// relieve frees one delivered segment; when there is none, and crit asks, info
// gives up its oldest one soon.
func (b *Outbox) relieve(shed bool) bool {
	b.mu.Lock()
	crit, info := b.Crit, b.Info
	b.mu.Unlock()
	if crit == nil || info == nil {
		return false // still opening
	}
	if info.dropDelivered() || crit.dropDelivered() {
		return true
	}
	if shed {
		info.shed()
	}
	return false
}

// Close closes both journals.
func (b *Outbox) Close() error { return errors.Join(b.Info.Close(), b.Crit.Close()) }
