package hub

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/hub/hubtest"
	"gsd-mcp/internal/state"
)

// Three days of a station that could not reach its hub, at one event in ten
// seconds, and the bounds of catching up.
const (
	offlineEvents = 26_000
	offlineWithin = 5 * time.Minute
	offlineDelay  = 40 * time.Millisecond // each way: 80 ms there and back
	offlineGrowth = 8 << 20               // bytes of anonymous memory
	busy          = 20 * time.Second      // what a machine that runs other tests may add to a part of it
)

// Three days offline are caught up within five minutes over a long link, in
// little memory, and the hub can prove that it has everything. Without
// GSD_TORTURE=1 a tenth of it.
func TestThreeDaysOfflineAreCaughtUp(t *testing.T) {
	if dir := os.Getenv("HUB_TEST_DRAIN"); dir != "" {
		drain(t, dir, os.Getenv("HUB_TEST_BROKER"))
		return
	}
	t.Parallel() // it waits for a link
	n, within := offlineEvents/10, offlineWithin/10+busy
	if os.Getenv("GSD_TORTURE") == "1" {
		n, within = offlineEvents, offlineWithin
	} else if testing.Short() {
		n, within = offlineEvents/100, offlineWithin/100+busy
	}
	b := hubtest.Mosquitto(t, hubtest.Options{})
	k, _ := consume(t, ConsumerConfig{Link: Config{Broker: b.URL}, FromStart: true})
	eventually(t, "the consumer's session", 10*time.Second, func() bool { return k.Report().Connected })

	f := newFixture(t)
	var wg sync.WaitGroup
	for w := range 64 { // together, so that they share their flushes
		wg.Go(func() {
			for i := w; i < n; i += 64 {
				var d event.Data = event.PassAOS{PassRef: event.PassRef{PassID: fmt.Sprintf("25544-%d", i)}}
				if i%4 != 0 {
					d = event.PassTCA{PassRef: event.PassRef{PassID: fmt.Sprintf("25544-%d", i)}}
				}
				_, err := f.bus.Emit(t.Context(), event.About{}, d)
				for errors.Is(err, state.ErrBusy) { // a station is not this fast
					time.Sleep(time.Millisecond)
					_, err = f.bus.Emit(t.Context(), event.About{}, d)
				}
				if err != nil {
					t.Errorf("event %d: %v", i, err)
					return
				}
			}
		})
	}
	wg.Wait()
	f.close()
	if t.Failed() {
		return
	}

	link := hubtest.NewProxy(t, b.URL, offlineDelay)
	cmd := exec.Command(os.Args[0], "-test.run=^TestThreeDaysOfflineAreCaughtUp$")
	cmd.Env = append(os.Environ(), "HUB_TEST_DRAIN="+f.dir, "HUB_TEST_BROKER="+link.URL)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("station: %v: %s", err, out)
	}
	var took time.Duration
	var growth int64
	for line := range strings.Lines(string(out)) {
		var ms int64
		if m, _ := fmt.Sscanf(line, "drained %d ms %d bytes", &ms, &growth); m == 2 {
			took = time.Duration(ms) * time.Millisecond
		}
	}
	eventually(t, "every event at the hub", 10*time.Second, func() bool { e, _, _ := counts(k.Report()); return e >= uint64(n) })
	events, missing, twice := counts(k.Report())
	if events != uint64(n) || missing != 0 {
		t.Errorf("the hub has %d events and misses %d, want %d and 0", events, missing, n)
	}
	if took <= 0 || took > within {
		t.Errorf("%d events took %v, want at most %v", n, took, within)
	}
	if growth > offlineGrowth && !underRace {
		t.Errorf("anonymous memory grew by %d bytes, want less than %d", growth, offlineGrowth)
	}
	t.Logf("%d events in %v: %.0f a second, %d kB more memory, %d came twice", n, took, float64(n)/took.Seconds(), growth>>10, twice)
}

// drain is the station: it delivers what waits and says how long it took and
// how much memory at most.
func drain(t *testing.T, dir, url string) {
	f := &fixture{t: t, dir: dir}
	f.open()
	t.Cleanup(f.close)
	before := anonymous(t)
	most := before
	start := time.Now()
	f.start(Config{Broker: url})
	for f.box.Crit.Cursor() < f.box.Crit.Last() || f.box.Info.Cursor() < f.box.Info.Last() {
		if time.Since(start) > 2*offlineWithin {
			t.Fatalf("not drained after %v: %+v", time.Since(start), f.p.Status())
		}
		most = max(most, anonymous(t))
		time.Sleep(20 * time.Millisecond) // a sample now and then
	}
	fmt.Printf("drained %d ms %d bytes\n", time.Since(start).Milliseconds(), most-before)
}

// anonymous is the process's anonymous resident memory in bytes.
func anonymous(t *testing.T) int64 {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skipf("needs /proc/self/status: %v", err)
	}
	for line := range bytes.Lines(data) {
		if kb, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(string(kb)), " kB"), 10, 64)
			if err != nil {
				t.Fatalf("RssAnon %q: %v", kb, err)
			}
			return n << 10
		}
	}
	t.Skip("needs RssAnon in /proc/self/status")
	return 0
}
