package rotator_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/clock"
	"gsd-mcp/internal/rotator"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

func TestEveryDriverIsComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range rotator.Drivers() {
		c := d.Caps
		if d.Name == "" || seen[d.Name] || d.Title == "" || d.New == nil || d.Allowed == "" || c.ResolutionDeg <= 0 ||
			!(c.AzMinDeg < c.AzMaxDeg) || !c.AzimuthOnly && !(c.ElMinDeg < c.ElMaxDeg) || c.Reply <= 0 {
			t.Errorf("row %+v is not complete", d)
		}
		seen[d.Name] = true
		link, _ := sim.Wire()
		r := d.New(link)
		if _, ok := r.(rotator.Parker); ok != c.Park {
			t.Errorf("%s: Caps.Park is %v and the driver says %v", d.Name, c.Park, ok)
		}
		if _, ok := r.(rotator.StatusReader); ok != c.Status {
			t.Errorf("%s: Caps.Status is %v and the driver says %v", d.Name, c.Status, ok)
		}
		if len(link.Sent()) != 0 {
			t.Errorf("%s: New sent %q", d.Name, link.SentBytes())
		}
	}
}

func TestLookupSuggests(t *testing.T) {
	if d, err := rotator.Lookup("easycomm2"); err != nil || d.Name != "easycomm2" {
		t.Fatalf("%+v, %v", d, err)
	}
	_, err := rotator.Lookup("EasyCom2")
	if err == nil || !strings.Contains(err.Error(), "did you mean easycomm2?") {
		t.Errorf("%v", err)
	}
	_, err = rotator.Lookup("toaster\n\x1b[2J")
	if err == nil || strings.ContainsAny(err.Error(), "\n\x1b") || strings.Contains(err.Error(), "did you mean") {
		t.Errorf("%q", err)
	}
}

func TestNothingIsSentForWhatNoProtocolCanSay(t *testing.T) {
	for _, d := range rotator.Drivers() {
		for _, to := range []unit.AzEl{
			{AzDeg: math.NaN(), ElDeg: 10}, {AzDeg: math.Inf(1), ElDeg: 10}, {AzDeg: d.Caps.AzMaxDeg + 0.04, ElDeg: 10},
			{AzDeg: d.Caps.AzMinDeg - 0.04, ElDeg: 10}, {AzDeg: 10, ElDeg: math.NaN()}, {AzDeg: 10, ElDeg: d.Caps.ElMaxDeg + 0.04}, {AzDeg: 10, ElDeg: -91},
		} {
			if d.Caps.AzimuthOnly && to.AzDeg == 10 {
				continue
			}
			var err error
			sent := on(t, d, silent, func(ctx context.Context, r rotator.Rotator) { err = r.Point(ctx, to) })
			if !errors.Is(err, rotator.ErrRange) || strings.Contains(sent, "10") {
				t.Errorf("%s: Point(%v) = %v after sending %q, want ErrRange and no set", d.Name, to, err, sent)
			}
		}
	}
}

// bench is a driver on a simulated controller, in a bubble.
type bench struct {
	rotator.Rotator
	link *sim.MemLink
	ctl  *sim.Controller
}

func (b *bench) truth() unit.AzEl {
	at := b.ctl.Mount().Truth()
	return unit.AzEl{AzDeg: at.AzDeg, ElDeg: at.ElDeg}
}

// withSim runs do on a driver of the protocol and a mount that can keep up.
func withSim(t *testing.T, protocol string, do func(ctx context.Context, b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctl, err := sim.NewController(protocol, sim.NewMount(clock.System(), sim.DefaultMount()))
		if err != nil {
			t.Fatal(err)
		}
		link, device := sim.Wire()
		ended := make(chan error, 1)
		go func() { ended <- ctl.Run(context.Background(), device) }()
		do(t.Context(), &bench{lookup(t, protocol).New(link), link, ctl})
		link.Unplug()
		if err := <-ended; err != nil {
			t.Errorf("simulator: %v", err)
		}
	})
}

func TestEveryDriverMovesReadsAndStopsItsSimulator(t *testing.T) {
	for _, d := range rotator.Drivers() {
		t.Run(d.Name, func(t *testing.T) {
			withSim(t, d.Name, func(ctx context.Context, b *bench) {
				near := func(what string, got, want unit.AzEl, tolerance float64) {
					t.Helper()
					if d.Caps.AzimuthOnly {
						want.ElDeg = got.ElDeg
					}
					if math.Abs(unit.Diff(got.AzDeg, want.AzDeg)) > tolerance || math.Abs(got.ElDeg-want.ElDeg) > tolerance {
						t.Errorf("%s: %v, want %v within %g°", what, got, want, tolerance)
					}
				}
				if err := b.Halt(ctx); err != nil {
					t.Fatal(err)
				}
				to := unit.AzEl{AzDeg: 123.4, ElDeg: 45.6}
				if err := b.Point(ctx, to); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				near("arrived", b.truth(), to, d.Caps.ResolutionDeg+0.01)
				at, err := b.Position(ctx)
				if err != nil && d.Caps.Feedback {
					t.Fatal(err)
				}
				if err == nil {
					near("read", at, b.truth(), d.Caps.ResolutionDeg+0.01)
				}
				if err := b.Point(ctx, unit.AzEl{AzDeg: 300, ElDeg: 80}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if err := b.Halt(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				stood := b.truth()
				if stood.AzDeg < 130 || stood.AzDeg > 200 {
					t.Errorf("5 s on the way from 123 to 300: %v", stood)
				}
				time.Sleep(time.Minute)
				near("after a stop", b.truth(), stood, 1e-6)
				for _, s := range b.link.Sent() {
					if i := bytes.IndexFunc(s.Bytes, func(r rune) bool { return !strings.ContainsRune(d.Allowed, r) }); i >= 0 {
						t.Errorf("sent %q, which is not in the dialect", s.Bytes)
					}
				}
			})
		})
	}
}

func TestStopIsWrittenAtOnceAlsoWhileAReplyIsPending(t *testing.T) {
	for _, d := range rotator.Drivers() {
		withSim(t, d.Name, func(ctx context.Context, b *bench) {
			b.ctl.SetFault(sim.RotatorMute)
			asking, cancel := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() { _, err := b.Position(asking); ended <- err }()
			time.Sleep(quietThenAsk)
			cancel()
			err := <-ended
			if d.Caps.Feedback && !errors.Is(err, context.Canceled) {
				t.Errorf("%s: Position = %v, want context.Canceled", d.Name, err)
			}
			before, start := len(b.link.Sent()), time.Now()
			if err := b.Halt(ctx); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
			sent := b.link.Sent()[before:]
			if len(sent) == 0 || sent[0].At.Sub(start) > 50*time.Millisecond {
				t.Errorf("%s: the stop was not on the wire within 50 ms: %v", d.Name, sent)
			}
		})
	}
}

// quietThenAsk is long enough after the start of Position for its first
// question to be out and its deadline not to have passed.
const quietThenAsk = 150 * time.Millisecond

func TestSilenceIsErrNoReplyWithWhatToCheck(t *testing.T) {
	for _, d := range rotator.Drivers() {
		if !d.Caps.Feedback {
			continue
		}
		var err error
		on(t, d, silent, func(ctx context.Context, r rotator.Rotator) { _, err = r.Position(ctx) })
		if !errors.Is(err, rotator.ErrNoReply) || !strings.Contains(err.Error(), "check power") || !strings.HasPrefix(err.Error(), d.Name+":") {
			t.Errorf("%s: %v", d.Name, err)
		}
	}
}

func TestAfterTroubleTwoReadingsMustAgree(t *testing.T) {
	d := lookup(t, "easycomm2")
	answers := []string{"AZ10.0 EL20.0\n", "AZ10.0 EL20.0\n", "AZ1", "AZ10.0 EL20.0\n", "AZ200.0 EL20.0\n", "AZ30.0 EL20.0\n", "AZ31.0 EL20.0\n", "AZ32.0 EL20.0\n"}
	i := -1
	wants := []string{"az 10.0° el 20.0°", "no reply", "do not agree", "az 31.0° el 20.0°", "az 32.0° el 20.0°"}
	on(t, d, func(string) string { i++; return answers[i] }, func(ctx context.Context, r rotator.Rotator) {
		for _, want := range wants {
			at, err := r.Position(ctx)
			if got := fmt.Sprint(at, err); !strings.Contains(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
	if i != len(answers)-1 {
		t.Errorf("%d questions, want %d", i+1, len(answers))
	}
}

func TestABurstOfStaleAnswersIsNotAPosition(t *testing.T) {
	withSim(t, "easycomm2", func(ctx context.Context, b *bench) {
		if _, err := b.Position(ctx); err != nil {
			t.Fatal(err)
		}
		b.ctl.SetFault(sim.RotatorStaleBurst) // every fourth
		bad := 0
		for range 12 {
			if _, err := b.Position(ctx); err != nil {
				if !errors.Is(err, rotator.ErrBadReply) {
					t.Errorf("%v, want ErrBadReply", err)
				}
				bad++
			}
		}
		if bad == 0 {
			t.Error("nine answers to one question were believed")
		}
	})
}

// A cutLink loses the end of the next write.
type cutLink struct {
	*sim.MemLink
	keep int // bytes of the next write that get out; -1: all
}

func (l *cutLink) Write(ctx context.Context, p []byte) error {
	if l.keep < 0 {
		return l.MemLink.Write(ctx, p)
	}
	p = p[:min(l.keep, len(p)-1)]
	l.keep = -1
	if len(p) > 0 {
		if err := l.MemLink.Write(ctx, p); err != nil {
			return err
		}
	}
	return os.ErrDeadlineExceeded
}

func TestStopIsACommandOfItsOwnAfterACutWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		link, device := sim.Wire()
		cut := &cutLink{link, 4}
		r := lookup(t, "easycomm2").New(cut)
		if err := r.Point(t.Context(), unit.AzEl{AzDeg: 123, ElDeg: 45}); err == nil {
			t.Fatal("a cut write is no error")
		}
		if err := r.Point(t.Context(), unit.AzEl{AzDeg: 124, ElDeg: 45}); err != nil {
			t.Fatal(err)
		}
		link.Unplug()
		got, _ := io.ReadAll(device)
		if want := "AZ12\nSA SE \nAZ124.0 EL45.0\n"; string(got) != want {
			t.Errorf("wire %q, want %q: the half command ended, a stop, then the move", got, want)
		}
	})
}

func TestExchangesKeepTheirDistance(t *testing.T) {
	for _, d := range rotator.Drivers() {
		withSim(t, d.Name, func(ctx context.Context, b *bench) {
			for i := range 3 {
				b.Point(ctx, unit.AzEl{AzDeg: 10 + 20*float64(i), ElDeg: 20})
				b.Position(ctx)
			}
			sent := b.link.Sent()
			for i := 1; i < len(sent); i++ {
				if gap := sent[i].At.Sub(sent[i-1].At); gap < d.Caps.MinInterval {
					t.Errorf("%s: %q came %v after %q, want at least %v", d.Name, sent[i].Bytes, gap, sent[i-1].Bytes, d.Caps.MinInterval)
				}
			}
		})
	}
}
