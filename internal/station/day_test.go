package station

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
)

// Bounds of the day.
const (
	dayDamaged  = 0.01             // of all answers
	dayTolDeg   = 0.5              // that the true antenna may be inside a zone: both axes are read twice a second
	dayStill    = 4 * time.Second  // after a stop the true antenna stands
	dayBack     = 45 * time.Second // after the cable is back the position is known
	dayOffDeg   = 3.0              // that the true antenna may be off a satellite that it claims to track: a reading with a changed digit leads it astray for half a second ...
	dayCatchUp  = 45 * time.Second // ... once it has had the time to get there
	dayTooHigh  = 80.0             // a pass over this is too fast for the mount at its top
	dayMinElDeg = 10.0
)

// A damage spoils some of the answers of a wire: a bit flips, a byte is lost or
// one comes from nowhere.
type damage struct {
	mu               sync.Mutex
	rnd              *rand.Rand
	answers, damaged int
}

// A damagedWire is a wire with interference.
type damagedWire struct {
	Wire
	d *damage
}

func (w damagedWire) Read(ctx context.Context, p []byte) (int, error) {
	n, err := w.Wire.Read(ctx, p)
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	if n == 0 {
		return n, err
	}
	if w.d.answers++; w.d.rnd.Float64() >= dayDamaged {
		return n, err
	}
	w.d.damaged++
	at := w.d.rnd.IntN(n)
	switch kind := w.d.rnd.IntN(3); {
	case kind == 0 && n > 1:
		copy(p[at:], p[at+1:n])
		return n - 1, err
	case kind == 1 && n < len(p):
		copy(p[at+1:n+1], p[at:n])
		p[at] = byte(w.d.rnd.IntN(256))
		return n + 1, err
	}
	p[at] ^= 1 << w.d.rnd.IntN(8)
	return n, err
}

// Hours of work on a wire that damages one answer in a hundred and loses its
// device once an hour: no invariant of the safety case is broken, every pass
// ends in one state, every loss is told and made good, and nobody has to reset
// anything. GSD_TORTURE=1 makes it ten whole days, each
// with other damage.
func TestADayOnADamagedWire(t *testing.T) {
	long, days := 144*time.Minute, uint64(1)
	if os.Getenv("GSD_TORTURE") == "1" {
		long, days = 24*time.Hour, 10
	}
	for day := range days {
		t.Run(fmt.Sprint(day+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { workDay(t, long, day+1) })
		})
	}
}

// workDay works all passes of a day; seed says what goes wrong, and when.
func workDay(t *testing.T, long time.Duration, seed uint64) {

	rnd := rand.New(rand.NewPCG(24, seed))
	dmg := &damage{rnd: rand.New(rand.NewPCG(100, seed))}
	zone := safety.Zone{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMinDeg: 0, ElMaxDeg: 25, Reason: "mast"}
	w := newWorld(t, setup{noRadio: true, rules: func(r *safety.Rules) { r.Zones = []safety.Zone{zone} }, rotator: func(o *RotatorOptions) {
		open := o.Open
		o.Open = func(ctx context.Context) (Wire, error) {
			wire, err := open(ctx)
			return damagedWire{wire, dmg}, err
		}
	}})
	defer w.close()
	w.start()
	w.until(time.Minute, "the first position", func() bool { return w.st.Antenna().Measured != nil && w.still() })

	zone.AzFromDeg, zone.AzToDeg, zone.ElMaxDeg = zone.AzFromDeg+dayTolDeg, zone.AzToDeg-dayTolDeg, zone.ElMaxDeg-dayTolDeg
	obs := &observer{w: w, zone: zone, intents: map[string]bool{}, results: map[string]bool{}}
	desk := newDeskOf(w, nil)
	booked := desk.bookDay(w.clk.Now(), long)
	keeper := &dayKeeper{w: w, high: map[string]bool{}}
	for _, e := range booked {
		keeper.high[e.PassID] = e.MaxElDeg > dayTooHigh
	}
	done := w.watch(100*time.Millisecond, func() { obs.look(); keeper.look() })
	end := w.clk.Now().Add(long)
	pulls, stops, hours := 0, 0, 0
	for hour := w.clk.Now(); hour.Before(end); hour = hour.Add(time.Hour) {
		left := min(time.Hour, end.Sub(hour))
		pull := hour.Add(time.Duration(rnd.Int64N(int64(left * 8 / 10))))
		for _, e := range booked { // rather in a pass than between two
			if e.AOS.After(hour) && e.LOS.Before(hour.Add(left)) {
				pull = e.AOS.Add(time.Duration(rnd.Int64N(int64(e.LOS.Sub(e.AOS)))))
			}
		}
		w.clockTo(pull)
		keeper.pulled(true)
		w.unplug()
		pulls++
		w.sleep(time.Duration(rnd.Int64N(int64(20*time.Second))) + 100*time.Millisecond)
		w.plug()
		w.until(dayBack, "the position after the cable is back", func() bool { return w.st.Antenna().Present && w.st.Antenna().Measured != nil })
		keeper.pulled(false)
		if hours++; hours%4 == 2 { // and a person stops it for a minute
			stops++
			w.sleep(time.Duration(rnd.Int64N(int64(90 * time.Second))))
			w.st.Stop(context.Background(), visitor, "test")
			keeper.stop(true)
			w.sleep(time.Minute)
			keeper.stop(false)
			if r := w.do(alice, VerbResume); r.Refusal != nil || r.Err != nil {
				t.Fatalf("resume: %+v", r)
			}
		}
		w.clockTo(hour.Add(left))
	}
	w.sleep(15 * time.Minute) // the last pass ends
	done()
	desk.end()

	ends := map[schedule.State]int{}
	desk.mu.Lock()
	for _, e := range booked {
		got, _ := desk.book.Get(e.ID)
		if n := len(desk.ended[e.ID]); n != 1 || got.ReasonCode == "" || got.Reason == "" {
			t.Errorf("pass %s of %d ended in %v: %s %s", e.PassID, e.NoradID, desk.ended[e.ID], got.ReasonCode, got.Reason)
			continue
		}
		ends[got.State]++
		if got.State != schedule.Completed && got.State != schedule.Partial && got.State != schedule.Stopped {
			t.Errorf("pass %s of %d: %s %s (%s)", e.PassID, e.NoradID, got.State, got.ReasonCode, got.Reason)
		}
	}
	desk.mu.Unlock()
	if ends[schedule.Stopped] > stops {
		t.Errorf("%d passes were stopped, and a person did so %d times", ends[schedule.Stopped], stops)
	}
	for _, b := range append(obs.bad, keeper.bad...) {
		t.Error(b)
	}
	if a := w.st.Antenna(); a.Fault != "" || !a.Present || a.Moving {
		t.Errorf("at the end of the day: %+v", a)
	}
	for _, e := range w.saw("antenna.fault") {
		t.Errorf("a fault that a person had to reset: %s", e.Data)
	}
	lost, found := 0, 0
	for _, e := range w.saw("antenna.state_changed") {
		var d event.AntennaState
		if err := json.Unmarshal(e.Data, &d); err != nil {
			t.Fatal(err)
		}
		if d.To == string(AntennaUnknown) {
			lost++
		}
		if d.From == string(AntennaUnknown) {
			found++
		}
	}
	if lost < pulls || found < lost {
		t.Errorf("%d cables were pulled; events told of %d losses and %d returns", pulls, lost, found)
	}
	t.Logf("%v: %d passes (%v), %d of %d answers damaged, %d unplugs, %d lines lost and back; %.0f s tracked, off by %.2f° at most",
		long, len(booked), ends, dmg.damaged, dmg.answers, pulls, lost, keeper.trackedS, keeper.worst)
	if len(booked) < int(long/time.Hour)/2 || dmg.damaged < 10 || keeper.trackedS < 300 {
		t.Error("too little happened to show anything")
	}
}

// bookDay books every pass of three satellites that is high enough, keeps out
// of the zone and leaves room for the one before.
func (d *deskOf) bookDay(from time.Time, long time.Duration) (out []schedule.Entry) {
	var all []passes.Pass
	for _, norad := range []int{iss, 43013, 27607} { // ISS, NOAA 20, SO-50
		o, _ := d.w.sky.Orbit(norad)
		found, _, err := passes.Find(context.Background(), o, greenwich, passes.Options{From: from.Add(3 * time.Minute), To: from.Add(long), MinElevationDeg: dayMinElDeg})
		if err != nil {
			d.w.t.Fatal(err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b passes.Pass) int { return a.AOS.Time.Compare(b.AOS.Time) })
	var until time.Time
	for _, p := range all {
		_, ref, _ := d.w.st.PlanPass(p.NoradID, p.AOS.Time, p.LOS.Time) // some go through the zone
		if ref == nil && p.AOS.Time.After(until) && !p.CutAtEnd {
			out = append(out, d.add(p, event.Author{Kind: "person", UID: 1001, User: "alice"}))
			until = p.LOS.Time.Add(schedule.PrepassLead + schedule.Gap)
		}
	}
	return out
}

// A dayKeeper looks at what an observer does not: a stop holds, and what claims
// to track is on its satellite.
type dayKeeper struct {
	w *world

	mu       sync.Mutex
	bad      []string
	unplug   bool
	stopped  bool
	stopAt   time.Time
	stopSeen int // notes at the stop
	seen     int
	high     map[string]bool // passes that are too fast at their top
	since    time.Time
	trackedS float64
	worst    float64
}

func (k *dayKeeper) pulled(on bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unplug, k.since = on, time.Now()
}

func (k *dayKeeper) stop(on bool) {
	m := k.w.mark()
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stopped, k.stopAt, k.stopSeen = on, time.Now(), m
}

func (k *dayKeeper) say(format string, args ...any) {
	if len(k.bad) < 5 {
		k.bad = append(k.bad, k.w.clk.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (k *dayKeeper) look() {
	w, a, at := k.w, k.w.st.Antenna(), k.w.mount.Truth()
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	if k.stopped {
		if d := now.Sub(k.stopAt); d > dayStill && (at.AzRateDps != 0 || at.ElRateDps != 0) {
			k.say("%v after a stop the antenna moves: %+v", d, at)
		}
		for _, n := range moves(w.since(k.stopSeen, "wire")) {
			k.say("a target after a stop: %q", n.text)
		}
	}
	for _, n := range moves(w.since(k.seen, "wire")) {
		if p, r := target(n), w.rules.Travel; !(r.AzMinDeg <= p.AzDeg && p.AzDeg <= r.AzMaxDeg && r.ElMinDeg <= p.ElDeg && p.ElDeg <= r.ElMaxDeg) {
			k.say("a target out of travel: %q", n.text)
		}
	}
	w.mu.Lock()
	k.seen = len(w.notes)
	w.mu.Unlock()
	claims := a.State == AntennaTracking && a.Pass != nil && !k.unplug
	if !claims {
		k.since = now
		return
	}
	k.trackedS += 0.1
	if now.Sub(k.since) < dayCatchUp || k.high[a.Pass.PassID] {
		return
	}
	off := w.errorOfTruth(a.Pass.NoradID)
	k.worst = max(k.worst, off)
	if off > dayOffDeg {
		k.say("claims to track %d and is %.1f° off it: %+v", a.Pass.NoradID, off, at)
	}
}
