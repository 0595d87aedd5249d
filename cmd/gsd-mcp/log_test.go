package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// stuck is a log reader that takes nothing until it is let go.
type stuck struct {
	gate chan struct{}
	got  bytes.Buffer
}

func (s *stuck) Write(p []byte) (int, error) {
	<-s.gate
	return s.got.Write(p)
}

// An unread stderr stopped a tracking loop after 595 lines (measured): here ten
// thousand lines go in at once, and the reader learns how many it missed.
func TestAnUnreadLogNeverBlocks(t *testing.T) {
	s := &stuck{gate: make(chan struct{})}
	ring := newLogRing(s)
	log := newLogger(ring, "info", "text")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 10000 {
			log.Info("tick", "n", i)
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the logger waits for its reader")
	}
	if n := ring.Dropped(); n < 10000-ringLines-2 {
		t.Errorf("%d lines dropped of 10000 with room for %d", n, ringLines)
	}
	close(s.gate)
	for ring.Dropped() > 0 { // the next line that fits tells of the loss
		log.Info("again")
		time.Sleep(time.Millisecond) // the writer is another goroutine
	}
	ring.Close()
	if out := s.got.String(); !strings.Contains(out, "log lines were dropped") || strings.Count(out, "tick") < ringLines {
		t.Errorf("%d lines came out, and the loss was told: %v", strings.Count(out, "\n"), strings.Contains(out, "dropped"))
	}
}

func TestALineAfterTheEndOfTheLogIsHarmless(t *testing.T) {
	var b bytes.Buffer
	ring := newLogRing(&b)
	log := newLogger(ring, "info", "json")
	log.Info("one")
	ring.Close()
	log.Info("two")
	ring.Close()
	if !strings.Contains(b.String(), `"one"`) || strings.Contains(b.String(), "two") {
		t.Errorf("log %q", b.String())
	}
}
