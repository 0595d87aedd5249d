package hub

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mqtt "github.com/eclipse/paho.mqtt.golang"
	"github.com/eclipse/paho.mqtt.golang/packets"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/state"
)

// A countingFS counts what a journal asks of its disk.
type countingFS struct {
	state.FS
	bytes, flushes atomic.Int64
}

type countingFile struct {
	state.File
	fs *countingFS
}

// OpenFile counts what is done with the file.
func (c *countingFS) OpenFile(name string, flag int, perm fs.FileMode) (state.File, error) {
	f, err := c.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return countingFile{f, c}, nil
}

// Write counts bytes.
func (f countingFile) Write(p []byte) (int, error) {
	f.fs.bytes.Add(int64(len(p)))
	return f.File.Write(p)
}

// WriteAt counts bytes.
func (f countingFile) WriteAt(p []byte, off int64) (int, error) {
	f.fs.bytes.Add(int64(len(p)))
	return f.File.WriteAt(p, off)
}

// Sync counts flushes.
func (f countingFile) Sync() error {
	f.fs.flushes.Add(1)
	return f.File.Sync()
}

// benchEvent is an event as a station has most of.
func benchEvent(b *testing.B) []byte {
	b.Helper()
	_, payload := eventOf("gs-01", "crit", "5f0c2d1e", 1, "0193e8a4-1d2c-7b3a-9c4d-5e6f70819203",
		event.PassAOS{PassRef: event.PassRef{PassID: "25544-20261130T1405Z"}})
	if !json.Valid(payload) {
		b.Fatal("the event is no JSON")
	}
	return payload
}

// onDisk is what the process has had written to storage, in bytes; 0 = the
// kernel does not say, or the directory is in memory.
func onDisk() float64 {
	data, err := os.ReadFile("/proc/self/io")
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(data) {
		if v, ok := bytes.CutPrefix(line, []byte("write_bytes: ")); ok {
			n, _ := strconv.ParseFloat(string(bytes.TrimSpace(v)), 64) // not a number: 0
			return n
		}
	}
	return 0
}

// report prints the figures that scripts/bench/hub.sh reads.
func report(b *testing.B, events int, asked int64, before float64, start time.Time) {
	b.ReportMetric(float64(events)/time.Since(start).Seconds(), "events/s")
	b.ReportMetric(float64(asked)/float64(events), "B/event")
	b.ReportMetric((onDisk()-before)/float64(events), "diskB/event")
}

// BenchmarkJournal is what the outbox takes in a second, each event flushed
// before it counts, with so many callers at once.
func BenchmarkJournal(b *testing.B) {
	payload := benchEvent(b)
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) {
			count := &countingFS{FS: state.OS()}
			j, _, err := state.OpenJournal(filepath.Join(b.TempDir(), "crit"), state.JournalOptions{FS: count, Quota: 1 << 40})
			if err != nil {
				b.Fatal(err)
			}
			defer j.Close()
			count.bytes.Store(0)
			count.flushes.Store(0)
			var wg sync.WaitGroup
			b.ResetTimer()
			start, before := time.Now(), onDisk()
			for range b.N {
				wg.Add(batch)
				for range batch {
					err := j.Submit(func(uint64, string) ([]byte, error) { return payload, nil }, func(_ uint64, err error) {
						if err != nil {
							b.Error(err)
						}
						wg.Done()
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				wg.Wait()
			}
			report(b, b.N*batch, count.bytes.Load(), before, start)
			b.ReportMetric(float64(b.N*batch)/float64(max(count.flushes.Load(), 1)), "events/flush")
		})
	}
}

// BenchmarkPahoFileStore is the same through the store of the MQTT library: as
// it is, which survives no power cut, and with the flushes that it would need.
func BenchmarkPahoFileStore(b *testing.B) {
	payload := benchEvent(b)
	for _, flushed := range []bool{false, true} {
		name := "as-it-is"
		if flushed {
			name = "flushed"
		}
		b.Run(name, func(b *testing.B) {
			dir := b.TempDir()
			store := mqtt.NewFileStore(dir)
			store.Open()
			defer store.Close()
			d, err := os.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			var asked int64
			b.ResetTimer()
			start, before := time.Now(), onDisk()
			for n := range b.N {
				m := packets.NewControlPacket(packets.Publish).(*packets.PublishPacket)
				m.TopicName, m.Qos, m.Payload, m.MessageID = "gsd/v1/gs-01/events/pass/aos", 1, payload, uint16(n%65535+1)
				key := fmt.Sprintf("o.%d", m.MessageID)
				store.Put(key, m)
				asked += int64(len(payload) + len(m.TopicName) + 7)
				if !flushed {
					continue
				}
				f, err := os.Open(filepath.Join(dir, key+".msg"))
				if err != nil {
					b.Fatal(err)
				}
				if err := errors.Join(f.Sync(), d.Sync(), f.Close()); err != nil {
					b.Fatal(err)
				}
			}
			report(b, b.N, asked, before, start)
		})
	}
}
