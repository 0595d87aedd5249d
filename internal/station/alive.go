package station

import (
	"fmt"
	"sync/atomic"
	"time"
)

// silentAfter is how long an owner's loop may take for one turn, real time: an
// idle poll, a back-off, or a device that answers nothing three times.
const silentAfter = 15 * time.Second

// A beat is when a loop last turned, on the monotonic clock.
type beat struct{ at atomic.Pointer[time.Time] }

func (b *beat) now() {
	t := time.Now()
	b.at.Store(&t)
}

func (b *beat) age() time.Duration {
	at := b.at.Load()
	if at == nil {
		return 0 // not started
	}
	return time.Since(*at)
}

// Alive reports which owner of a device hangs, for the watchdog: it is fed by
// the loops that could leave an antenna moving, not by a free timer.
func (s *Station) Alive() error {
	if s.rot != nil {
		if d := s.rot.beat.age(); d > silentAfter {
			return fmt.Errorf("the rotator's owner has not turned for %v", d.Round(time.Second))
		}
	}
	if s.rad != nil {
		if d := s.rad.beat.age(); d > silentAfter {
			return fmt.Errorf("the radio's owner has not turned for %v", d.Round(time.Second))
		}
	}
	return nil
}
