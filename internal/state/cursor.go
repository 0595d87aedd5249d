package state

import (
	"fmt"
	"hash/crc32"
	"os"
	"strconv"
	"sync"
	"time"
)

const (
	slotBytes = 30   // "%020d crc32c\n"
	slotGap   = 4096 // so that no disk block holds both slots
	// cursorFlush bounds how far a power cut can move a cursor back. Moving
	// back only sends again what the hub already has.
	cursorFlush = 2 * time.Second
)

// A cursor is a number on disk that only grows. It has two slots, written in
// turn and in place, so that a torn write loses one step and not the number.
type cursor struct {
	mu     sync.Mutex
	f      File
	value  uint64
	slot   int64 // the next to write
	synced time.Time
	dirty  bool
}

// openCursor reads the number; damaged says that the file has contents of
// which nothing is valid.
func openCursor(fsys FS, name string) (c *cursor, damaged bool, err error) {
	f, err := fsys.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, false, err
	}
	c = &cursor{f: f, synced: time.Now()}
	valid := 0
	buf := make([]byte, slotBytes)
	for slot := range int64(2) {
		n, _ := f.ReadAt(buf, slot*slotGap) // short means that the slot was never written
		damaged = damaged || n > 0 && slot == 0
		v, ok := parseSlot(buf[:n])
		if !ok {
			continue
		}
		if valid++; v >= c.value {
			c.value, c.slot = v, 1-slot
		}
	}
	return c, damaged && valid == 0, nil
}

func parseSlot(b []byte) (uint64, bool) {
	if len(b) != slotBytes || b[20] != ' ' || b[29] != '\n' {
		return 0, false
	}
	v, err := strconv.ParseUint(string(b[:20]), 10, 64)
	return v, err == nil && string(b[21:29]) == fmt.Sprintf("%08x", crc32.Checksum(b[:20], castagnoli))
}

// get is the number now.
func (c *cursor) get() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.value
}

// set moves the number forward; a smaller one changes nothing. The mutex is
// held over the write on purpose: two slots must not be written at once.
func (c *cursor) set(v uint64) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v <= c.value {
		return nil
	}
	digits := fmt.Sprintf("%020d", v)
	line := fmt.Sprintf("%s %08x\n", digits, crc32.Checksum([]byte(digits), castagnoli))
	if _, err := c.f.WriteAt([]byte(line), c.slot*slotGap); err != nil {
		return err
	}
	c.value, c.slot, c.dirty = v, 1-c.slot, true
	if time.Since(c.synced) < cursorFlush {
		return nil
	}
	return c.flush()
}

func (c *cursor) flush() error {
	if !c.dirty {
		return nil
	}
	c.dirty, c.synced = false, time.Now()
	return c.f.Sync()
}

func (c *cursor) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	if cerr := c.f.Close(); err == nil {
		err = cerr
	}
	return err
}
