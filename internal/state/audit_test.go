package state

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

type intent struct {
	Verb string `json:"verb"`
	N    int    `json:"n"`
}

func auditOn(t *testing.T, d *Dir, now time.Time) (*Audit, Recovery) {
	t.Helper()
	a, rec, err := OpenAudit(d, func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close() })
	return a, rec
}

func TestAuditChainRunsOverMonthsAndRestarts(t *testing.T) {
	d := openDir(t)
	n := uint64(0)
	for _, at := range []string{"2026-10-31", "2026-11-01", "2026-09-01", "2026-12-01"} { // the third: a clock that went back
		now, _ := time.Parse(time.DateOnly, at)
		a, rec := auditOn(t, d, now)
		if len(rec.Notes) > 0 || a.Last() != n {
			t.Fatalf("%s: recovery %+v, last %d, want %d", at, rec, a.Last(), n)
		}
		for range 3 {
			seq, err := a.Append(intent{`point "x",crc32c":"`, int(n)})
			if n++; err != nil || seq != n {
				t.Fatalf("append = %d, %v; want %d", seq, err, n)
			}
		}
		a.Close()
	}
	names, _ := auditFiles(OS(), d.Path("audit"))
	if got := strings.Join(names, " "); got != "2026-10.jsonl 2026-11.jsonl 2026-12.jsonl" {
		t.Errorf("files %s", got)
	}
	rep, err := Verify(d.Path("audit"))
	if err != nil || !rep.OK() || rep.Lines != 12 || rep.First != 1 || rep.Last != 12 || rep.Files != 3 {
		t.Errorf("Verify = %+v, %v", rep, err)
	}
	// The chain by other means than ours: sha256 of the bytes of each line.
	prev := strings.Repeat("0", 64)
	for _, name := range names {
		data, _ := os.ReadFile(d.Path("audit", name))
		for line := range bytes.Lines(data) {
			var l map[string]any
			if err := json.Unmarshal(line, &l); err != nil {
				t.Fatalf("%s: not JSON: %v", line, err)
			}
			if l["prev"] != prev {
				t.Fatalf("line %v: prev %v, want %s", l["seq"], l["prev"], prev)
			}
			prev = fmt.Sprintf("%x", sha256.Sum256(bytes.TrimSuffix(line, []byte("\n"))))
		}
	}
	if rep.Head != prev {
		t.Errorf("head %s, want %s", rep.Head, prev)
	}
	tail, err := TailAudit(d.Path("audit"), 4)
	if err != nil || len(tail) != 4 || tail[0].Seq != 9 || tail[3].Seq != 12 {
		t.Errorf("TailAudit = %+v, %v; want 9..12", tail, err)
	}
}

func TestTornAuditLineIsCutAtEveryByte(t *testing.T) {
	d := openDir(t)
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	a, _ := auditOn(t, d, now)
	a.Append(intent{"point", 1})
	a.Append(intent{"point", 2})
	a.Close()
	path := d.Path("audit", "2026-11.jsonl")
	whole, _ := os.ReadFile(path)
	first := bytes.IndexByte(whole, '\n') + 1
	for cut := first; cut < len(whole); cut++ {
		os.RemoveAll(d.Path("audit", "quarantine"))
		os.WriteFile(path, whole[:cut], 0o600)
		a, rec := auditOn(t, d, now)
		if a.Last() != 1 || rec.TornBytes != int64(cut-first) || (cut > first) != (len(rec.Notes) == 1) {
			t.Fatalf("cut at %d: last %d, %+v", cut, a.Last(), rec)
		}
		if cut > first {
			kept, _ := filepath.Glob(d.Path("audit", "quarantine", "*.torn"))
			if b, _ := os.ReadFile(kept[0]); !bytes.Equal(b, whole[first:cut]) {
				t.Fatalf("cut at %d: kept %q", cut, b)
			}
		}
		if seq, err := a.Append(intent{"park", 3}); err != nil || seq != 2 {
			t.Fatalf("cut at %d: append %d, %v", cut, seq, err)
		}
		a.Close()
		if rep, err := Verify(d.Path("audit")); err != nil || !rep.OK() {
			t.Fatalf("cut at %d: %+v, %v", cut, rep, err)
		}
	}
}

func TestVerifyFindsEveryKindOfTampering(t *testing.T) {
	d := openDir(t)
	a, _ := auditOn(t, d, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC))
	for n := range 6 {
		a.Append(intent{"point", n})
	}
	a.Close()
	path := d.Path("audit", "2026-11.jsonl")
	whole, _ := os.ReadFile(path)
	lines := func() [][]byte { return bytes.SplitAfter(bytes.Clone(whole), []byte("\n")) }
	forged := func(l [][]byte) [][]byte { // a careful forger who also mends the checksum
		i := bytes.LastIndex(l[2], []byte(crcKey))
		body := bytes.Replace(l[2][:i], []byte(`"n":2`), []byte(`"n":9`), 1)
		l[2] = fmt.Appendf(body, "%s%08x\"}\n", crcKey, crc32Sum(body))
		return l
	}
	for name, change := range map[string]func(l [][]byte) [][]byte{
		"bit":             func(l [][]byte) [][]byte { l[2][30] ^= 1; return l },
		"line taken out":  func(l [][]byte) [][]byte { return append(l[:2], l[3:]...) },
		"lines swapped":   func(l [][]byte) [][]byte { l[2], l[3] = l[3], l[2]; return l },
		"line repeated":   func(l [][]byte) [][]byte { return append(l[:3], l[2:]...) },
		"line put in":     func(l [][]byte) [][]byte { l[2] = append([]byte("{}\n"), l[2]...); return l },
		"checksum mended": forged,
		"torn":            func(l [][]byte) [][]byte { l[5] = l[5][:9]; return l },
	} {
		os.WriteFile(path, bytes.Join(change(lines()), nil), 0o600)
		if rep, err := Verify(d.Path("audit")); err != nil || rep.OK() {
			t.Errorf("%s: Verify = %+v, %v; want a problem", name, rep, err)
		}
	}
}

func TestAuditRefusesWhatTheDiskDoesNotTake(t *testing.T) {
	m := newMemFS()
	var fault string
	var with error
	m.fail = func(_ int, what, name string) error {
		if what == fault && strings.HasSuffix(name, ".jsonl") {
			return with
		}
		return nil
	}
	a, _, err := openAudit(m, "/audit", func() time.Time { return time.Unix(1.7e9, 0) })
	if err != nil {
		t.Fatal(err)
	}
	a.Append(intent{"a", 1})
	fault, with = "write", syscall.ENOSPC
	if _, err := a.Append(intent{"b", 2}); !errors.Is(err, syscall.ENOSPC) || a.Err() != nil {
		t.Errorf("full disk: %v, closed: %v; want the reason and an open audit", err, a.Err())
	}
	fault = ""
	if seq, err := a.Append(intent{"c", 3}); err != nil || seq != 2 {
		t.Errorf("space again: %d, %v; want 2", seq, err)
	}
	fault, with = "sync", syscall.EIO
	for range 2 {
		if _, err := a.Append(intent{"d", 4}); !errors.Is(err, ErrJournalDead) {
			t.Errorf("failed flush: %v, want ErrJournalDead", err)
		}
	}
	if _, err := a.Append(func() {}); err == nil {
		t.Error("a record that is no JSON was taken")
	}
}

func crc32Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }
