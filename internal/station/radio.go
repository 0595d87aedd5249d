package station

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
)

// RadioOptions describes a radio to its owner.
type RadioOptions struct {
	Model radio.Model
	Open  Opener
}

// Bounds of the radio's owner. Station time unless they say real.
const (
	radioIdlePoll = 10 * time.Second
	radioBusyPoll = 2 * time.Second
	radioTask     = 3 * time.Second // real: one task, retries included
)

// radioView is what others may see of the radio's owner.
type radioView struct {
	present  bool
	why      string
	status   radio.Status
	measured bool
	readAt   time.Duration // station monotonic
	readTime time.Time
	asked    map[radio.Path]int64 // frequencies asked for, Hz
	fault    safety.Code
	faultWhy string
}

type radioTaskRequest struct {
	do    func(ctx context.Context, r radio.Radio) error
	reply chan error
}

// A radioOwner is the one goroutine that writes to a radio: halt first, then
// the newest Doppler frequency of each path, then tasks.
type radioOwner struct {
	o     RadioOptions
	clk   *clock.Clock
	facts func() safety.Facts
	t0    time.Time

	tasks chan radioTaskRequest
	wake  chan struct{}
	beat  beat

	mu     sync.Mutex
	view   radioView
	slot   map[radio.Path]int64
	halts  []chan error
	cancel context.CancelFunc
	rtt    time.Duration // real, smoothed: one tune
	busy   bool          // a pass is on
	failed error         // of the last slot that could not be sent

	// Below: the owner's goroutine only.
	rad     radio.Radio
	line    *watchedWire
	lastAt  time.Duration
	misses  int
	backoff time.Duration
}

func newRadioOwner(o RadioOptions, clk *clock.Clock, facts func() safety.Facts) *radioOwner {
	return &radioOwner{o: o, clk: clk, facts: facts, t0: time.Now(), tasks: make(chan radioTaskRequest), wake: make(chan struct{}, 1),
		slot: map[radio.Path]int64{}, view: radioView{why: "not opened yet", asked: map[radio.Path]int64{}}}
}

func (w *radioOwner) mono() time.Duration { return w.clk.Station(time.Since(w.t0)) }

func (w *radioOwner) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Halt brings the radio to rest: it returns once the radio was told, or with
// why it could not be.
func (w *radioOwner) Halt(ctx context.Context) error {
	c := make(chan error, 1)
	w.mu.Lock()
	w.halts = append(w.halts, c)
	clear(w.slot)
	if w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.poke()
	select {
	case err := <-c:
		return err
	case <-ctx.Done():
		return fmt.Errorf("halt the radio: %w", context.Cause(ctx))
	}
}

// Do runs one task with the radio: a preparation, a mode, a tuning by hand.
func (w *radioOwner) Do(ctx context.Context, do func(ctx context.Context, r radio.Radio) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*radioTask)
	defer cancel()
	r := radioTaskRequest{do, make(chan error, 1)}
	select {
	case w.tasks <- r:
	case <-ctx.Done():
		return fmt.Errorf("the radio's owner did not take the task: %w", ctx.Err())
	}
	select {
	case err := <-r.reply:
		return err
	case <-ctx.Done():
		return fmt.Errorf("the radio did not answer: %w", ctx.Err())
	}
}

// Set asks for a frequency; the newest of a path wins. The error is that of an
// earlier frequency that could not be set.
func (w *radioOwner) Set(p radio.Path, frequencyHz int64) error {
	w.mu.Lock()
	w.slot[p] = frequencyHz
	w.view.asked[p] = frequencyHz
	err := w.failed
	w.failed = nil
	w.mu.Unlock()
	w.poke()
	return err
}

// Lead is half of the time that a tune takes, station time.
func (w *radioOwner) Lead() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clk.Station(w.rtt / 2)
}

// Busy makes the owner look at the radio more often, for a pass.
func (w *radioOwner) Busy(on bool) {
	w.mu.Lock()
	w.busy = on
	w.mu.Unlock()
	w.poke()
}

// View is a copy of what is known, and its age.
func (w *radioOwner) View() (radioView, time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.view
	v.asked = map[radio.Path]int64{}
	for p, hz := range w.view.asked {
		v.asked[p] = hz
	}
	return v, w.mono() - v.readAt
}

// run owns the radio until ctx ends.
func (w *radioOwner) run(ctx context.Context) {
	for ctx.Err() == nil {
		wire, err := w.o.Open(ctx)
		if err == nil {
			err = w.session(ctx, wire)
			wire.Close()
		}
		if ctx.Err() != nil {
			return
		}
		w.mu.Lock()
		w.view.present, w.view.why, w.view.measured = false, err.Error(), false
		w.mu.Unlock()
		w.backoff = min(max(reopenMin, 2*w.backoff), reopenMax)
		w.idle(ctx, w.backoff)
	}
}

func (w *radioOwner) idle(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	w.beat.now()
	for {
		v, _ := w.View()
		gone := fmt.Errorf("the radio is not reachable: %s", v.why)
		w.answerHalts(gone)
		w.mu.Lock()
		if len(w.slot) > 0 {
			w.failed = gone
			clear(w.slot)
		}
		w.mu.Unlock()
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			return
		case r := <-w.tasks:
			r.reply <- safety.Refuse(safety.DeviceAbsent, "check its cable, power and port, then read get_station_health", "the radio does not answer (%s)", v.why)
		case <-w.wake:
		}
	}
}

func (w *radioOwner) answerHalts(err error) bool {
	w.mu.Lock()
	hs := w.halts
	w.halts = nil
	w.mu.Unlock()
	for _, c := range hs {
		c <- err
	}
	return len(hs) > 0
}

func (w *radioOwner) session(ctx context.Context, wire Wire) error {
	w.line = &watchedWire{Wire: wire}
	w.rad = w.o.Model.New(w.line)
	w.misses, w.lastAt = 0, 0
	defer func() {
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
		defer cancel()
		w.answerHalts(w.rad.Halt(hctx))
	}()
	if err := w.exchange(ctx, w.rad.Halt); err != nil { // every start stops first
		if err := w.linkError(err); err != nil {
			return err
		}
	}
	if err := w.poll(ctx); err != nil {
		return err
	}
	for ctx.Err() == nil {
		if err := w.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (w *radioOwner) exchange(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, radioTask)
	defer cancel()
	w.mu.Lock()
	if len(w.halts) > 0 {
		w.mu.Unlock()
		return context.Canceled
	}
	w.cancel = cancel
	w.mu.Unlock()
	err := f(ctx)
	w.mu.Lock()
	w.cancel = nil
	w.mu.Unlock()
	return err
}

func (w *radioOwner) step(ctx context.Context) error {
	w.beat.now()
	w.mu.Lock()
	halt := len(w.halts) > 0
	w.mu.Unlock()
	if halt {
		hctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), haltTimeout)
		err := w.rad.Halt(hctx)
		cancel()
		w.answerHalts(err)
		return w.linkError(err)
	}
	for _, p := range []radio.Path{radio.Downlink, radio.Uplink} {
		if err := w.sendSlot(ctx, p); err != nil {
			return err
		}
	}
	if w.mono() >= w.pollDue() {
		if err := w.poll(ctx); err != nil {
			return err
		}
	}
	return w.rest(ctx)
}

// sendSlot sets the newest frequency asked for, after the gate.
func (w *radioOwner) sendSlot(ctx context.Context, p radio.Path) error {
	w.mu.Lock()
	hz, ok := w.slot[p]
	delete(w.slot, p)
	w.mu.Unlock()
	if !ok {
		return nil
	}
	err := error(nil)
	if ref := safety.Decide(&safety.Rules{}, w.facts(), safety.Request{Verb: safety.VerbTune}); ref != nil {
		err = ref
	} else {
		begun := time.Now()
		var got int64
		err = w.exchange(ctx, func(ctx context.Context) (err error) {
			got, err = w.rad.Tune(ctx, p, hz)
			return err
		})
		if err == nil {
			w.mu.Lock()
			w.rtt = (3*w.rtt + time.Since(begun)) / 4
			w.tuned(p, got)
			w.mu.Unlock()
			w.misses = 0
			return nil
		}
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	w.mu.Lock()
	w.failed = err
	w.mu.Unlock()
	var ref *safety.Refusal
	if errors.As(err, &ref) {
		return nil
	}
	return w.linkError(err)
}

// tuned notes what the radio has read back; the mutex is held.
func (w *radioOwner) tuned(p radio.Path, hz int64) {
	if p == radio.Downlink {
		w.view.status.Downlink.FrequencyHz = hz
	} else {
		w.view.status.Uplink.FrequencyHz = hz
	}
	w.view.readAt, w.view.readTime = w.mono(), w.clk.Now()
}

// linkError says whether an error of an exchange ends the session: a line that
// is gone, or too many silences in a row. What the radio or its protocol refuses
// is none.
func (w *radioOwner) linkError(err error) error {
	switch {
	case err == nil:
		w.misses = 0
	case errors.Is(err, context.Canceled):
	case w.line.gone:
		return err
	case errors.Is(err, radio.ErrSilent): // also where a read-back after a refusal was silent
		return w.missed(err)
	case errors.Is(err, radio.ErrRefused), errors.Is(err, radio.ErrMismatch), errors.Is(err, radio.ErrTransmitting):
		w.misses = 0 // it has answered
	case errors.Is(err, radio.ErrUnsupported): // nothing was asked
	default:
		return w.missed(err)
	}
	return nil
}

func (w *radioOwner) missed(err error) error {
	if w.misses++; w.misses >= lostReplies {
		return err
	}
	return nil
}

// A watchedWire notices that its line is gone, whatever a driver makes of the
// error: silence is none.
type watchedWire struct {
	Wire
	gone bool
}

func (l *watchedWire) note(err error) error {
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		l.gone = true
	}
	return err
}

// Write sends p whole.
func (l *watchedWire) Write(ctx context.Context, p []byte) error {
	return l.note(l.Wire.Write(ctx, p))
}

// Read returns at least one byte, or an error.
func (l *watchedWire) Read(ctx context.Context, p []byte) (int, error) {
	n, err := l.Wire.Read(ctx, p)
	return n, l.note(err)
}

// Discard drops what has been received and not yet read.
func (l *watchedWire) Discard() error { return l.note(l.Wire.Discard()) }

func (w *radioOwner) pollDue() time.Duration {
	w.mu.Lock()
	busy := w.busy
	w.mu.Unlock()
	every := radioIdlePoll
	if busy || w.misses > 0 {
		every = radioBusyPoll
	}
	return w.lastAt + max(every, w.clk.Station(w.o.Model.Caps.MinInterval))
}

func (w *radioOwner) poll(ctx context.Context) error {
	var s radio.Status
	err := w.exchange(ctx, func(ctx context.Context) (err error) {
		s, err = w.rad.Status(ctx)
		return err
	})
	w.lastAt = w.mono()
	if err != nil {
		w.mu.Lock()
		if !w.view.present {
			w.view.why = err.Error()
		}
		w.mu.Unlock()
		return w.linkError(err)
	}
	w.misses, w.backoff = 0, 0
	w.mu.Lock()
	w.view.status, w.view.present, w.view.measured, w.view.why = s, true, true, ""
	w.view.readAt, w.view.readTime = w.lastAt, w.clk.Now()
	w.mu.Unlock()
	return nil
}

func (w *radioOwner) rest(ctx context.Context) error {
	w.mu.Lock()
	busy := len(w.halts)+len(w.slot) > 0
	w.mu.Unlock()
	d := w.pollDue() - w.mono()
	if busy || d <= 0 {
		return nil
	}
	t := w.clk.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	case <-w.wake:
	case r := <-w.tasks:
		if ref := safety.Decide(&safety.Rules{}, w.facts(), safety.Request{Verb: safety.VerbTune}); ref != nil {
			r.reply <- ref
			return nil
		}
		err := w.exchange(ctx, func(ctx context.Context) error { return r.do(ctx, w.rad) })
		r.reply <- err
		w.lastAt = 0 // read back what has changed
		return w.linkError(err)
	}
	return nil
}
