package state

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strconv"
)

// A Record is one entry of a journal.
type Record struct {
	Seq  uint64
	Data []byte // one line of JSON, without the line feed

	end int64 // where its line ends in the bytes it was read from
}

// appendLine adds "crc32c SP sequence SP data LF" to buf; the checksum is over
// "sequence SP data".
func appendLine(buf []byte, seq uint64, data []byte) []byte {
	body := strconv.AppendUint(nil, seq, 10)
	body = append(append(body, ' '), data...)
	buf = fmt.Appendf(buf, "%08x ", crc32.Checksum(body, castagnoli))
	return append(append(buf, body...), '\n')
}

// parseLine reads a line without its line feed. The data is a part of line.
func parseLine(line []byte) (Record, bool) {
	if len(line) < 12 || line[8] != ' ' {
		return Record{}, false
	}
	var crc uint32
	for _, c := range line[:8] { // lower case only: one flipped bit must not read the same
		switch {
		case '0' <= c && c <= '9':
			crc = crc<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			crc = crc<<4 | uint32(c-'a'+10)
		default:
			return Record{}, false
		}
	}
	body := line[9:]
	if crc32.Checksum(body, castagnoli) != crc {
		return Record{}, false
	}
	digits, data, ok := bytes.Cut(body, []byte{' '})
	seq, err := strconv.ParseUint(string(digits), 10, 64)
	if !ok || err != nil || seq == 0 {
		return Record{}, false
	}
	return Record{Seq: seq, Data: data}, true
}

// A region is a run of bytes that are no records: what comes before the good
// record next, or before the end (next 0).
type region struct {
	off, end   int64 // offsets in the scanned bytes
	prev, next uint64
}

// scanLines finds the good records of buf, whose sequence numbers grow from
// after, and the bad regions between them. used is the end of the last good
// line; what follows it is the last region, if anything does.
func scanLines(buf []byte, after uint64) (recs []Record, bad []region, used int64) {
	prev := after
	for off := int64(0); off < int64(len(buf)); {
		n := bytes.IndexByte(buf[off:], '\n')
		if n < 0 {
			break
		}
		end := off + int64(n) + 1
		if r, ok := parseLine(buf[off : end-1]); ok && r.Seq > prev {
			if off > used {
				bad = append(bad, region{used, off, prev, r.Seq})
			}
			r.end = end
			recs = append(recs, r)
			prev, used = r.Seq, end
		}
		off = end
	}
	if used < int64(len(buf)) {
		bad = append(bad, region{used, int64(len(buf)), prev, 0})
	}
	return recs, bad, used
}
