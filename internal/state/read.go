package state

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
)

// readPos is where the next sequential read goes on.
type readPos struct {
	seg   string
	after uint64 // the last record before off
	off   int64
}

// readChunk is the least that a read takes from the disk: a few tens of
// ordinary records.
const readChunk = 32 << 10

// Read returns up to limit records with numbers greater than after, oldest
// first; none when there are no more yet. Only durable records are seen. A
// number that is missing from the answer was delivered and tidied away, or is
// declared as a gap.
func (j *Journal) Read(after uint64, limit int) ([]Record, error) {
	j.rmu.Lock()
	defer j.rmu.Unlock()
	defer j.declarePending()
	var out []Record
	for len(out) < limit {
		seg, end, ok := j.segmentFor(after + 1)
		if !ok {
			return out, nil
		}
		recs, err := j.readSegment(seg, end, after, limit-len(out))
		if err != nil {
			return out, err
		}
		out = append(out, recs...)
		if len(recs) > 0 {
			after = recs[len(recs)-1].Seq
		}
		if len(out) < limit && after < end {
			after = end // nothing more in this segment
		}
	}
	return out, nil
}

// segmentFor is the segment that holds seq, or the first after it, with the
// number of its last record.
func (j *Journal) segmentFor(seq uint64) (s segment, end uint64, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if seq > j.committed {
		return segment{}, 0, false
	}
	i := sort.Search(len(j.segs), func(i int) bool { return j.segs[i].first > seq }) - 1
	i = max(i, 0)
	end = j.committed
	if i+1 < len(j.segs) {
		end = min(end, j.segs[i+1].first-1)
	}
	return j.segs[i], end, true
}

// readSegment reads records of s after a number, and puts damage aside.
func (j *Journal) readSegment(s segment, end, after uint64, limit int) ([]Record, error) {
	f, err := j.o.FS.OpenFile(filepath.Join(j.dir, s.name), os.O_RDONLY, 0)
	if err != nil {
		if os.IsNotExist(err) && after < end {
			if j.gone(s.name) {
				return nil, nil // retention was faster
			}
			j.damage(nil, max(s.first, after+1), end)
			return nil, nil
		}
		return nil, fmt.Errorf("read journal: %w", err)
	}
	defer f.Close()
	off, prev := int64(0), s.first-1
	if j.pos.seg == s.name && j.pos.after <= after {
		off, prev = j.pos.off, j.pos.after
	}
	var out []Record
	for want := int64(readChunk); off < s.size && len(out) < limit; want *= 2 {
		buf := make([]byte, min(want, s.size-off))
		if n, err := f.ReadAt(buf, off); n < len(buf) {
			return out, fmt.Errorf("read %s at %d: %w", s.name, off, err)
		}
		recs, bad, used := scanLines(buf, prev)
		atEnd := off+int64(len(buf)) == s.size
		for _, r := range bad {
			switch {
			case r.next != 0:
				j.damage(buf[r.off:r.end], r.prev+1, r.next-1)
			case atEnd:
				j.hole(buf[r.off:r.end], r.prev+1, end)
			}
		}
		if atEnd && len(bad) == 0 && len(recs) > 0 {
			j.hole(nil, recs[len(recs)-1].Seq+1, end)
		}
		if used == 0 && !atEnd {
			continue // a line, or damage, longer than the buffer: look further
		}
		for _, r := range recs {
			if r.Seq > after && len(out) < limit {
				out = append(out, r)
				j.pos = readPos{s.name, r.Seq, off + r.end}
			}
		}
		off += used
		if len(recs) > 0 {
			prev = recs[len(recs)-1].Seq
		}
		if atEnd {
			break
		}
	}
	return out, nil
}

// hole is damage up to the end of a segment: nothing, if what is missing was
// never there because a new epoch began.
func (j *Journal) hole(data []byte, from, to uint64) {
	j.mu.Lock()
	for _, m := range j.epochs {
		if m.First == to+1 && len(data) == 0 {
			from = to + 1
		}
	}
	j.mu.Unlock()
	j.damage(data, from, to)
}

func (j *Journal) gone(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.segs {
		if s.name == name {
			return false
		}
	}
	return true
}
