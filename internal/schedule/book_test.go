package schedule

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/safety"
)

func inBook(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { f(t, newDesk(t, newStore())) })
}

func TestConflicts(t *testing.T) {
	held := 60 * time.Minute // when the pass begins that is booked already, priority 5
	tests := []struct {
		name     string
		in       time.Duration
		priority int
		clash    bool
	}{
		{"well before", held - 12*time.Minute, 5, false},
		{"no room for parking and slewing between", held - 11*time.Minute, 5, true},
		{"just enough room before", held - 10*time.Minute - Gap, 5, false},
		{"the same time", held, 5, true},
		{"inside its gap", held + 10*time.Minute + Gap - time.Second, 5, true},
		{"just enough room after", held + 10*time.Minute + Gap, 5, false},
		{"worse priority", held, 6, true},
		{"better priority", held, 4, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inBook(t, func(t *testing.T, d *desk) {
				first := d.add(pass("a", held, 5))
				e, ref, err := d.book.Add(pass("b", tt.in, tt.priority))
				if err != nil {
					t.Fatal(err)
				}
				if (ref != nil) != tt.clash {
					t.Fatalf("refusal %v, want one: %v", ref, tt.clash)
				}
				if ref != nil {
					if ref.Code != safety.ScheduleConflict || ref.Extra["conflicts_with"] != first.ID || ref.Extra["free_from"] == nil || !strings.Contains(ref.Why, first.ID) {
						t.Errorf("refusal %+v does not say what is in the way and what is free", ref)
					}
					d.wantState(first.ID, Committed, "")
					return
				}
				if tt.priority < 5 {
					d.wantState(first.ID, Preempted, "SCHEDULE_CONFLICT")
					if len(e.Displaced) != 1 || e.Displaced[0] != first.ID {
						t.Errorf("displaced %v", e.Displaced)
					}
				}
				d.wantState(e.ID, Committed, "")
			})
		})
	}
}

func TestTheSamePassIsBookedOnce(t *testing.T) {
	inBook(t, func(t *testing.T, d *desk) {
		first := d.add(pass("a", time.Hour, 5))
		_, ref, _ := d.book.Add(pass("a", time.Hour, 1))
		if ref == nil || ref.Code != safety.ScheduleConflict || ref.Extra["scheduled_pass_id"] != first.ID {
			t.Errorf("refusal %+v, want the booking that is there", ref)
		}
	})
}

// Nothing automatic changes a pass within ten minutes of AOS; what is worked is
// not displaced at all.
func TestTheFrozenWindow(t *testing.T) {
	inBook(t, func(t *testing.T, d *desk) {
		first := d.add(pass("a", time.Hour, 9))
		time.Sleep(50*time.Minute + time.Second)
		if _, ref, _ := d.book.Add(pass("b", time.Hour, 1)); ref == nil {
			t.Error("a pass within ten minutes of AOS was displaced")
		}
		_, ref, _ := d.book.Cancel(first.ID, "", agent)
		if ref == nil || ref.Code != safety.FrozenWindow {
			t.Errorf("an agent cancelled: %v", ref)
		}
		d.wantState(first.ID, Committed, "")
		if e, ref, err := d.book.Cancel(first.ID, "rain", person); ref != nil || err != nil || !strings.Contains(e.Reason, "alice: rain") {
			t.Errorf("a person cancels: %+v %v %v", e, ref, err)
		}
		d.wantState(first.ID, Cancelled, "CANCELLED")
	})
	inBook(t, func(t *testing.T, d *desk) {
		first := d.add(pass("a", time.Hour, 9))
		if _, ref, err := d.book.Cancel(first.ID, "", agent); ref != nil || err != nil {
			t.Errorf("an agent cancels an hour before: %v %v", ref, err)
		}
		if _, ref, _ := d.book.Cancel(first.ID, "", person); ref == nil || ref.Code != safety.PassOver {
			t.Errorf("cancelled twice: %v", ref)
		}
		if _, ref, _ := d.book.Cancel("sp-nothing", "", person); ref == nil || ref.Code != safety.PassUnknown {
			t.Errorf("cancelled nothing: %v", ref)
		}
	})
}

func TestBookingsThatMakeNoSense(t *testing.T) {
	inBook(t, func(t *testing.T, d *desk) {
		if _, ref, _ := d.book.Add(pass("a", -20*time.Minute, 5)); ref == nil || ref.Code != safety.PassOver {
			t.Errorf("a pass that is over: %v", ref)
		}
		e := pass("a", time.Hour, 5)
		e.LOS = e.AOS
		if _, ref, err := d.book.Add(e); ref == nil && err == nil {
			t.Error("a pass without length was booked")
		}
		if len(d.book.List(time.Time{}, time.Time{})) != 0 {
			t.Error("something was booked")
		}
	})
}

func TestTheBookOutlivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		d := newDesk(t, store)
		a, b := d.add(pass("a", time.Hour, 5)), d.add(pass("b", 2*time.Hour, 5))
		d.book.Cancel(a.ID, "", person)
		again := newDesk(t, store)
		again.wantState(a.ID, Cancelled, "CANCELLED")
		again.wantState(b.ID, Committed, "")
		if e, ok := again.book.Next(); !ok || e.ID != b.ID {
			t.Errorf("next is %v", e.ID)
		}
	})
}

// What cannot be written was not booked, not displaced and not cancelled.
func TestAFailedWriteLeavesTheBookAsItWas(t *testing.T) {
	inBook(t, func(t *testing.T, d *desk) {
		a := d.add(pass("a", time.Hour, 5))
		told := len(d.changes)
		d.store.fail(errDisk)
		if _, ref, err := d.book.Add(pass("b", time.Hour, 1)); ref != nil || err == nil {
			t.Fatalf("booked on a full disk: %v %v", ref, err)
		}
		if _, _, err := d.book.Cancel(a.ID, "", person); err == nil {
			t.Error("cancelled on a full disk")
		}
		d.wantState(a.ID, Committed, "")
		if got := d.book.List(time.Time{}, time.Time{}); len(got) != 1 {
			t.Errorf("%d entries", len(got))
		}
		if len(d.changes) != told {
			t.Errorf("changes were told that did not happen: %+v", d.changes[told:])
		}
		if d.book.Err() == nil {
			t.Error("health is not told")
		}
		// What happens to a pass happens though it cannot be written, and shows.
		if err := d.book.Move(a.ID, Prepass, "", "", nil); err == nil || d.book.Err() == nil {
			t.Error("nobody is told that a step could not be written")
		}
		d.wantState(a.ID, Prepass, "")
		d.store.fail(nil)
		if err := d.book.Move(a.ID, Tracking, "", "", nil); err != nil || d.book.Err() != nil {
			t.Errorf("the disk is well again: %v, %v", err, d.book.Err())
		}
	})
}

func TestOldPassesAreForgotten(t *testing.T) {
	inBook(t, func(t *testing.T, d *desk) {
		for i := range keepDone + 20 {
			e := d.add(pass(fmt.Sprint(i), time.Duration(i+1)*time.Hour, 5))
			d.book.Cancel(e.ID, "", person)
		}
		open := d.add(pass("open", 10000*time.Hour, 5))
		got := d.book.List(time.Time{}, time.Time{})
		if len(got) != keepDone+1 || got[0].PassID != "20" {
			t.Errorf("%d entries, the first is %s", len(got), got[0].PassID)
		}
		d.wantState(open.ID, Committed, "")
	})
}

// Whatever is done to a book: no two open passes are closer than the gap, a
// terminal state never changes, and every change is told once and in order.
func TestPropertyBook(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		synctest.Test(t, func(t *testing.T) {
			store := newStore()
			d := newDesk(t, store)
			final := map[string]State{}
			states := []State{Proposed, Committed, Prepass, Acquiring, Tracking, Postpass, Completed, Partial, Failed, Missed, Stopped, Preempted, Refused}
			var ids []string
			for i := range rapid.IntRange(1, 40).Draw(rt, "steps") {
				pick := func() string {
					if len(ids) == 0 {
						return "none"
					}
					return rapid.SampledFrom(ids).Draw(rt, "id")
				}
				by := rapid.SampledFrom([]event.Author{person, agent}).Draw(rt, "by")
				switch rapid.SampledFrom([]string{"add", "add", "cancel", "move", "sleep", "disk", "restart"}).Draw(rt, "do") {
				case "add":
					in := d.clk.Now().Sub(start) + time.Duration(rapid.IntRange(-20, 120).Draw(rt, "in"))*time.Minute
					if e, ref, err := d.book.Add(pass(fmt.Sprint(i), in, rapid.IntRange(1, 9).Draw(rt, "priority"))); ref == nil && err == nil {
						ids = append(ids, e.ID)
					}
				case "cancel":
					d.book.Cancel(pick(), "", by)
				case "move":
					d.book.Move(pick(), rapid.SampledFrom(states).Draw(rt, "state"), "X", "", nil)
				case "sleep":
					time.Sleep(time.Duration(rapid.IntRange(0, 90).Draw(rt, "minutes")) * time.Minute)
				case "disk":
					store.fail(rapid.SampledFrom([]error{nil, errDisk}).Draw(rt, "disk"))
				case "restart":
					if d.book.Err() == nil {
						old := d.book.List(time.Time{}, time.Time{})
						b, _, err := Open(store, d.clk.Now, d.book.notify)
						if err != nil {
							rt.Fatal(err)
						}
						for _, e := range old {
							if got, ok := b.Get(e.ID); !ok || got.State != e.State {
								rt.Fatalf("%s was %s and is %s after a restart", e.ID, e.State, got.State)
							}
						}
						d.book = b
					}
				}
				all := d.book.List(time.Time{}, time.Time{})
				for i, e := range all {
					if was, ok := final[e.ID]; ok && e.State != was {
						rt.Fatalf("%s was %s and is %s", e.ID, was, e.State)
					}
					if e.State.Terminal() {
						final[e.ID] = e.State
						continue
					}
					for _, f := range all[i+1:] {
						if !f.State.Terminal() && f.AOS.Before(e.LOS.Add(Gap)) {
							rt.Fatalf("%s and %s are both open, %v between them", e.ID, f.ID, f.AOS.Sub(e.LOS))
						}
					}
				}
				last := map[string]State{}
				for _, c := range d.changes {
					if was, ok := last[c.Entry.ID]; ok != (c.From != "") || was != c.From || was.Terminal() {
						rt.Fatalf("change of %s from %q after %q", c.Entry.ID, c.From, was)
					}
					last[c.Entry.ID] = c.Entry.State
				}
			}
		})
	})
}
