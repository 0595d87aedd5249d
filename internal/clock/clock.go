// Package clock is the one seam for time: the station's time of day, waits
// that scale with a simulated rate, and whether the time of day can be
// trusted. Nothing else in the station may call time.Now for the time of day.
package clock

import (
	"context"
	"fmt"
	"time"
)

// MaxRate is the fastest simulated time, in station seconds per second.
const MaxRate = 20

// recheck bounds how long SleepUntil believes one look at the time of day, so
// that a stepped clock is noticed.
const recheck = 10 * time.Second

// A Clock tells station time. It is safe for concurrent use.
type Clock struct {
	start, anchor time.Time // station time start holds at real instant anchor
	rate          float64
	simulated     bool
}

// System is the computer's own clock.
func System() *Clock { return &Clock{rate: 1} }

// Simulated is a clock that shows start at the real instant anchor and runs
// rate (1 to 20) times as fast as real time. Two processes with the same
// three values agree on the time.
func Simulated(start, anchor time.Time, rate float64) (*Clock, error) {
	if !(rate >= 1 && rate <= MaxRate) {
		return nil, fmt.Errorf("simulated rate %v is outside 1..%d", rate, MaxRate)
	}
	return &Clock{start: start.UTC(), anchor: anchor, rate: rate, simulated: true}, nil
}

// Now is the station's time of day in UTC.
func (c *Clock) Now() time.Time {
	if !c.simulated {
		return time.Now().UTC()
	}
	return c.start.Add(time.Duration(float64(time.Since(c.anchor)) * c.rate))
}

// Simulated reports whether the time is made up.
func (c *Clock) Simulated() bool { return c.simulated }

// Rate is station seconds per real second: 1 unless simulated.
func (c *Clock) Rate() float64 { return c.rate }

// Real converts a duration of station time to real time.
func (c *Clock) Real(d time.Duration) time.Duration {
	return time.Duration(float64(d) / c.rate)
}

// Station converts a duration of real time to station time.
func (c *Clock) Station(d time.Duration) time.Duration {
	return time.Duration(float64(d) * c.rate)
}

// NewTimer fires after d of station time.
func (c *Clock) NewTimer(d time.Duration) *time.Timer { return time.NewTimer(c.Real(d)) }

// Sleep waits for d of station time or until ctx ends, whose error it returns.
func (c *Clock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := c.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// SleepUntil waits until the station's time of day is t. It looks again at
// least every ten real seconds, so a step of the clock neither oversleeps nor
// wakes it early.
func (c *Clock) SleepUntil(ctx context.Context, t time.Time) error {
	for {
		d := t.Sub(c.Now())
		if d <= 0 {
			return ctx.Err()
		}
		if err := c.Sleep(ctx, min(d, c.Station(recheck))); err != nil {
			return err
		}
	}
}
