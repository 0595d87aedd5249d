package serialport

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// tripsKept is how many of the latest round trips the percentiles are made of.
const tripsKept = 256

// Stats counts what went over a wire since it was opened.
type Stats struct {
	BytesIn   uint64 `json:"bytes_in"`
	BytesOut  uint64 `json:"bytes_out"`
	Frames    uint64 `json:"frames"`     // replies that parsed
	BadFrames uint64 `json:"bad_frames"` // replies that did not
	Timeouts  uint64 `json:"timeouts"`   // reads that ended without a byte
	Flushes   uint64 `json:"flushes"`    // output queues thrown away

	// Round trips from the end of a request to the first byte of what came
	// back, over the latest 256; zero when there is none.
	RoundTrip50 time.Duration `json:"round_trip_p50_ns"`
	RoundTrip95 time.Duration `json:"round_trip_p95_ns"`
	RoundTrip99 time.Duration `json:"round_trip_p99_ns"`
}

// counters are what Stats is made of.
type counters struct {
	bytesIn, bytesOut, frames, badFrames, timeouts, flushes atomic.Uint64

	mu    sync.Mutex
	asked time.Time // end of the request that has no answer yet, or zero
	trips []time.Duration
	next  int
}

func (c *counters) wrote(at time.Time) {
	c.mu.Lock()
	c.asked = at
	c.mu.Unlock()
}

func (c *counters) heard(at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.asked.IsZero() {
		return
	}
	d := at.Sub(c.asked)
	c.asked = time.Time{}
	if len(c.trips) < tripsKept {
		c.trips = append(c.trips, d)
		return
	}
	c.trips[c.next] = d
	c.next = (c.next + 1) % tripsKept
}

// quiet forgets a request: what comes next does not answer it.
func (c *counters) quiet() {
	c.mu.Lock()
	c.asked = time.Time{}
	c.mu.Unlock()
}

func (c *counters) stats() Stats {
	c.mu.Lock()
	trips := slices.Clone(c.trips)
	c.mu.Unlock()
	slices.Sort(trips)
	at := func(percent int) time.Duration {
		if len(trips) == 0 {
			return 0
		}
		return trips[(len(trips)-1)*percent/100]
	}
	return Stats{
		BytesIn: c.bytesIn.Load(), BytesOut: c.bytesOut.Load(),
		Frames: c.frames.Load(), BadFrames: c.badFrames.Load(),
		Timeouts: c.timeouts.Load(), Flushes: c.flushes.Load(),
		RoundTrip50: at(50), RoundTrip95: at(95), RoundTrip99: at(99),
	}
}

// Stats returns the counts so far.
func (p *Port) Stats() Stats { return p.c.stats() }

// CountFrame counts a reply that a driver could, or could not, make sense of.
func (p *Port) CountFrame(good bool) {
	if good {
		p.c.frames.Add(1)
	} else {
		p.c.badFrames.Add(1)
	}
}
