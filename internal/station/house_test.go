package station

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/sim"
	"gsd-mcp/internal/unit"
)

// deskOf is a book and a runner over a station, as the daemon has them.
type deskOf struct {
	w    *world
	book *schedule.Book
	stop context.CancelFunc
	wg   sync.WaitGroup

	mu    sync.Mutex
	ended map[string][]schedule.State // terminal states of each entry, in order
}

// newDeskOf goes on with what an earlier desk saw; nil: it is the first.
func newDeskOf(w *world, ended map[string][]schedule.State) *deskOf {
	if ended == nil {
		ended = map[string][]schedule.State{}
	}
	d := &deskOf{w: w, ended: ended}
	var err error
	d.book, _, err = schedule.Open(w.store, w.clk.Now, func(c schedule.Change) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if c.Entry.State.Terminal() {
			d.ended[c.Entry.ID] = append(d.ended[c.Entry.ID], c.Entry.State)
		}
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d.stop = cancel
	d.wg.Go(func() { schedule.NewRunner(d.book, w.clk, d, time.Time{}).Run(ctx) })
	return d
}

func (d *deskOf) end() {
	d.stop()
	d.wg.Wait()
}

// RunPass implements schedule.Executor.
func (d *deskOf) RunPass(ctx context.Context, e schedule.Entry, report func(s schedule.State, code, reason string)) schedule.Outcome {
	job := PassJob{ScheduledID: e.ID, PassID: e.PassID, NoradID: e.NoradID, Satellite: e.Satellite, AOS: e.AOS, TCA: e.TCA, LOS: e.LOS, MaxElDeg: e.MaxElDeg,
		Downlink: radio.Tuning{FrequencyHz: 437_800_000, Mode: "FM"}, By: e.CreatedBy}
	end := d.w.st.RunPass(ctx, job, func(state, code, reason string) { report(schedule.State(state), code, reason) })
	return schedule.Outcome{State: schedule.State(end.State), Code: end.Code, Reason: end.Reason, Record: &schedule.Record{TrackedS: end.TrackedS}}
}

func (d *deskOf) add(p passes.Pass, by event.Author) schedule.Entry {
	e, ref, err := d.book.Add(schedule.Entry{PassID: p.ID, NoradID: p.NoradID, Satellite: p.Satellite, AOS: p.AOS.Time, TCA: p.TCA.Time, LOS: p.LOS.Time, MaxElDeg: p.MaxElDeg, Priority: 5, CreatedBy: by})
	if err != nil || ref != nil {
		d.w.t.Fatal(ref, err)
	}
	return e
}

// A booked pass is worked by itself, from the book to the record.
func TestABookedPassIsWorked(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		d := newDeskOf(w, nil)
		defer d.end()
		e := d.add(w.pass(), event.Author{Kind: "agent", UID: 2001})
		w.clockTo(e.LOS.Add(2 * time.Minute))
		got, _ := d.book.Get(e.ID)
		if got.State != schedule.Completed || got.Record == nil || got.Record.TrackedS < 600 {
			t.Errorf("%+v", got)
		}
	})
}

// pass is the ISS's pass that comes next.
func (w *world) pass() passes.Pass {
	o, _ := w.sky.Orbit(iss)
	found, _, err := passes.Find(context.Background(), o, greenwich, passes.Options{From: w.clk.Now(), To: w.clk.Now().Add(time.Hour)})
	if err != nil || len(found) == 0 {
		w.t.Fatal(found, err)
	}
	return found[0]
}

// An observer sees every byte and every millisecond of a world and knows what
// must hold, whatever happens in it.
type observer struct {
	w    *world
	zone safety.Zone
	bad  []string
	seen int

	intents, results map[string]bool
}

func (o *observer) say(format string, args ...any) {
	if len(o.bad) < 5 {
		o.bad = append(o.bad, o.w.clk.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (o *observer) look() {
	w := o.w
	at := w.mount.Truth()
	if o.zone.Contains(unit.AzEl{AzDeg: at.AzDeg, ElDeg: at.ElDeg}) {
		o.say("the antenna is in the zone: %.2f/%.2f", at.AzDeg, at.ElDeg)
	}
	w.mu.Lock()
	ns := append([]note(nil), w.notes[o.seen:]...)
	o.seen = len(w.notes)
	w.mu.Unlock()
	for _, n := range ns {
		switch {
		case n.kind == "wire" && strings.Trim(n.text, "AZELSPRK0123456789. \n") != "":
			o.say("bytes outside the dialect: %q", n.text)
		case isMove(n) && len(o.intents) == len(o.results):
			o.say("a target %q and no intent is open", n.text)
		case n.kind == "audit" && n.text == "intent":
			o.intents[n.rec.Command] = true
		case n.kind == "audit" && n.text == "result":
			o.results[n.rec.Command] = true
		}
	}
}

// Whatever happens to a station in a pass: the antenna keeps out of the zone, no
// target is sent without an open intent, a stop holds, and the pass ends in
// exactly one terminal state with a reason.
func TestPropertyEveryPassEndsOnce(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		zone := safety.Zone{Name: "mast", AzFromDeg: 170, AzToDeg: 190, ElMinDeg: 0, ElMaxDeg: 25, Reason: "mast"}
		type step struct {
			after time.Duration
			what  string
		}
		what := []string{"stop", "resume", "point", "agent points", "cancel", "agent cancels", "unplug", "plug", "mute", "drop stops", "well", "radio gone", "radio back",
			"clock bad", "clock good", "power low", "power good", "disk full", "disk well", "maintenance", "remote", "session ends", "new elements", "reset", "restart runner"}
		steps := make([]step, rapid.IntRange(1, 12).Draw(rt, "steps"))
		for i := range steps {
			steps[i] = step{time.Duration(rapid.IntRange(0, 240_000).Draw(rt, "ms")) * time.Millisecond, rapid.SampledFrom(what).Draw(rt, "what")}
		}
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, setup{rules: func(r *safety.Rules) { r.Zones = []safety.Zone{zone} }})
			defer w.close()
			w.start()
			w.until(time.Minute, "the first position", func() bool { return w.st.Antenna().Measured != nil && w.still() })
			obs := &observer{w: w, zone: zone, intents: map[string]bool{}, results: map[string]bool{}}
			defer w.watch(100*time.Millisecond, obs.look)()
			d := newDeskOf(w, nil)
			defer func() { d.end() }()
			e := d.add(w.pass(), event.Author{Kind: "agent", UID: 2001})
			ctx := context.Background()
			for _, s := range steps {
				w.sleep(s.after)
				switch s.what {
				case "stop":
					w.st.Stop(ctx, visitor, "x")
					w.sleep(5 * time.Second)
					m := w.mark()
					w.sleep(10 * time.Second)
					if got := moves(w.since(m, "wire")); len(got) > 0 {
						obs.say("targets after a stop:\n%s", dump(got))
					}
				case "resume":
					w.do(alice, VerbResume)
				case "point":
					w.point(alice, 90, 50)
				case "agent points":
					w.point(copilot, 260, 20)
				case "cancel":
					d.book.Cancel(e.ID, "", event.Author{Kind: "person"})
				case "agent cancels":
					d.book.Cancel(e.ID, "", event.Author{Kind: "agent"})
				case "unplug":
					w.unplug()
				case "plug":
					w.plug()
				case "mute":
					w.ctl.SetFault(sim.RotatorMute)
				case "drop stops":
					w.ctl.SetFault(sim.RotatorDropStop)
				case "well":
					w.ctl.SetFault(sim.RotatorHealthy)
				case "radio gone":
					w.set(func() { w.rigGone = true; w.rigLink.Unplug() })
				case "radio back":
					w.set(func() { w.rigGone = false })
				case "clock bad":
					w.set(func() { w.trust = Trust{Why: "x"} })
				case "clock good":
					w.set(func() { w.trust = Trust{Good: true} })
				case "power low":
					w.set(func() { w.powerLow = true })
				case "power good":
					w.set(func() { w.powerLow = false })
				case "disk full":
					w.set(func() { w.durable = errors.New("full") })
				case "disk well":
					w.set(func() { w.durable = nil })
				case "maintenance":
					w.st.Do(ctx, Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeMaint})
				case "remote":
					w.st.Do(ctx, Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeRemote})
				case "session ends":
					w.st.SessionEnded(alice.Session)
				case "new elements":
					w.shift(iss, 20*time.Second)
				case "reset":
					w.do(alice, VerbReset)
				case "restart runner":
					d.end()
					d = newDeskOf(w, d.ended)
				}
			}
			w.clockTo(e.LOS.Add(6 * time.Minute))
			d.mu.Lock()
			ended := d.ended[e.ID]
			d.mu.Unlock()
			got, _ := d.book.Get(e.ID)
			if len(ended) != 1 || got.State != ended[0] || got.Reason == "" || got.ReasonCode == "" {
				rt.Fatalf("the pass ended as %v; it is %s %s: %s", ended, got.State, got.ReasonCode, got.Reason)
			}
			for id := range obs.results {
				if !obs.intents[id] {
					rt.Errorf("a result without an intent: %s", id)
				}
			}
			for _, b := range obs.bad {
				rt.Error(b)
			}
		})
	})
}

// Many clients at once: nothing deadlocks, every intent has its result, and
// nothing is left running when the station has ended (a bubble waits for all of
// its goroutines).
func TestManyClientsAtOnce(t *testing.T) {
	inWorld(t, setup{}, func(w *world) {
		callers := []Caller{alice, bob, copilot, chief, visitor}
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				c := callers[i%len(callers)]
				ctx := context.Background()
				for n := range 25 {
					switch (i + n) % 7 {
					case 0, 1:
						w.point(c, float64(20*n%360), 20+float64(n))
					case 2:
						w.st.Stop(ctx, c, "x")
					case 3:
						w.do(alice, VerbResume)
					case 4:
						w.st.SessionEnded(c.Session)
					case 5:
						w.st.Do(ctx, Command{Caller: chief, Verb: VerbMode, Mode: safety.ModeRemote})
					case 6:
						w.st.Do(ctx, Command{Caller: c, Verb: VerbTune, Tune: &TuneRequest{Path: radio.Downlink, FrequencyHz: 145_800_000 + int64(n)}, Args: n})
						w.st.Antenna()
						w.st.Radio()
						w.st.Condition()
						w.st.CheckPointing(unit.AzEl{AzDeg: 10, ElDeg: 20})
					}
					time.Sleep(time.Duration(i*37+n*101) * time.Millisecond)
				}
			})
		}
		wg.Wait()
		w.st.Stop(context.Background(), alice, "end")
		w.sleep(5 * time.Second)
		if w.mount.Moving() {
			t.Error("it still moves after the stop")
		}
		open := map[string]int{}
		w.shut()
		w.stop = nil
		for _, n := range w.since(0, "audit") {
			switch n.text {
			case "intent":
				open[n.rec.Command]++
			case "result":
				open[n.rec.Command]--
			}
		}
		for id, n := range open {
			if n != 0 {
				t.Errorf("command %s has %d results too few", id, n)
			}
		}
	})
}

// What the gate costs for each setpoint of a pass, facts included.
func BenchmarkDecide(b *testing.B) {
	w := benchWorld(b)
	f := w.facts()
	at := f.Position
	to := unit.AzEl{AzDeg: at.AzDeg + 2, ElDeg: at.ElDeg - 1}
	req := safety.Request{Verb: safety.VerbTrack, Holder: schedulerHolder, Rank: safety.RankScheduler, Mech: &to, Orbit: &safety.Orbit{NoradID: 1, MaxDays: 7}}
	b.ReportAllocs()
	for b.Loop() {
		if ref := safety.Decide(&w.o.Rules, w.facts(), req); ref != nil && ref.Code != safety.FeedbackStale {
			b.Fatal(ref)
		}
	}
}
