package schedule

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func inRunner(t *testing.T, f func(t *testing.T, d *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newStore())
		d.run(time.Time{})
		defer d.end()
		f(t, d)
	})
}

func TestPassesAreWorkedInTheirOrder(t *testing.T) {
	inRunner(t, func(t *testing.T, d *desk) {
		b := d.add(pass("b", 3*time.Hour, 5))
		time.Sleep(time.Minute)
		a := d.add(pass("a", time.Hour, 5)) // earlier: it wakes the runner
		c := d.add(pass("c", 3*time.Hour+10*time.Minute+Gap, 5))
		time.Sleep(4 * time.Hour)
		if got := d.exec.worked(); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Fatalf("worked %v", got)
		}
		for _, e := range []Entry{a, b, c} {
			if got := d.wantState(e.ID, Completed, "DONE"); got.Record == nil || got.Record.TrackedS != 600 {
				t.Errorf("record %+v", got.Record)
			}
		}
		if lead := a.AOS.Sub(d.exec.at[0]); lead != PrepassLead {
			t.Errorf("began %v before AOS, want %v", lead, PrepassLead)
		}
		var states []State
		for _, c := range d.changes {
			if c.Entry.ID == a.ID {
				states = append(states, c.Entry.State)
			}
		}
		if !slices.Equal(states, []State{Committed, Prepass, Tracking, Completed}) {
			t.Errorf("states of a: %v", states)
		}
	})
}

func TestAPassThatIsCancelledWhileItIsWorked(t *testing.T) {
	inRunner(t, func(t *testing.T, d *desk) {
		a := d.add(pass("a", time.Hour, 5))
		time.Sleep(62 * time.Minute)
		d.wantState(a.ID, Tracking, "")
		if _, ref, _ := d.book.Cancel(a.ID, "", agent); ref == nil {
			t.Error("an agent cancelled a pass that runs")
		}
		if _, ref, err := d.book.Cancel(a.ID, "visitors", person); ref != nil || err != nil {
			t.Fatal(ref, err)
		}
		synctest.Wait()
		e := d.wantState(a.ID, Cancelled, "CANCELLED")
		if !strings.Contains(e.Reason, "visitors") || e.Record == nil {
			t.Errorf("%+v", e)
		}
	})
}

// A pass that was whole when it was cancelled stays whole.
func TestACancelAfterTheEndChangesNothing(t *testing.T) {
	inRunner(t, func(t *testing.T, d *desk) {
		a := d.add(pass("a", time.Hour, 5))
		d.exec.mu.Lock()
		d.exec.instead = func() Outcome {
			time.Sleep(15 * time.Minute)
			d.book.Cancel(a.ID, "", person)
			return Outcome{State: Completed, Code: "DONE"}
		}
		d.exec.mu.Unlock()
		time.Sleep(2 * time.Hour)
		d.wantState(a.ID, Completed, "DONE")
	})
}

// A pass that is cancelled just before it begins is never worked.
func TestAPassCancelledJustBeforeIsNotWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newStore())
		a := d.add(pass("a", time.Hour, 5))
		d.book.Cancel(a.ID, "", person)
		r := NewRunner(d.book, d.clk, d.exec, time.Time{})
		r.work(t.Context(), a) // as it was when the runner looked
		if got := d.exec.worked(); len(got) != 0 {
			t.Errorf("worked %v", got)
		}
		d.wantState(a.ID, Cancelled, "")
	})
}

func TestAnOutcomeThatIsNoneIsAFailure(t *testing.T) {
	inRunner(t, func(t *testing.T, d *desk) {
		d.exec.instead = func() Outcome { return Outcome{} }
		a := d.add(pass("a", time.Hour, 5))
		time.Sleep(2 * time.Hour)
		d.wantState(a.ID, Failed, "NO_OUTCOME")
		if got := d.exec.worked(); len(got) != 1 {
			t.Errorf("worked %v", got)
		}
	})
}

// After a restart a pass is resumed when enough of it is left, and missed with
// the reason when not.
func TestARestartResumesOrMisses(t *testing.T) {
	tests := []struct {
		name  string
		down  time.Duration // from the middle of the pass on
		state State
		code  string
	}{
		{"back at once", 5 * time.Second, Completed, "DONE"},
		{"back too late to be of use", 5*time.Minute - MinUseful/2, Missed, "STATION_DOWN"},
		{"back hours later", 5 * time.Hour, Missed, "STATION_DOWN"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				d := newDesk(t, store)
				d.run(time.Time{})
				a := d.add(pass("a", time.Hour, 5))
				time.Sleep(65 * time.Minute)
				d.end()
				d.wantState(a.ID, Tracking, "") // the next start decides
				alive := d.clk.Now()
				time.Sleep(tt.down)
				clk := d.clk
				d = newDesk(t, store)
				d.clk, d.exec.clk = clk, clk
				d.book.now = clk.Now
				d.run(alive)
				time.Sleep(time.Hour)
				e := d.wantState(a.ID, tt.state, tt.code)
				if tt.code == "STATION_DOWN" && !strings.Contains(e.Reason, alive.Format("15:04:05Z")) {
					t.Errorf("the reason does not say since when: %s", e.Reason)
				}
				d.end()
			})
		})
	}
}

// A pass that was whole when the station ended is told as completed.
func TestAPassThatWasWholeWhenTheStationEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, newStore())
		d.run(time.Time{})
		d.exec.instead = func() Outcome {
			time.Sleep(20 * time.Minute) // parking, when the end comes
			return Outcome{State: Completed, Code: "DONE"}
		}
		a := d.add(pass("a", time.Hour, 5))
		time.Sleep(70 * time.Minute)
		d.end()
		d.wantState(a.ID, Completed, "DONE")
	})
}

func TestABusyAntennaMissesThePass(t *testing.T) {
	inRunner(t, func(t *testing.T, d *desk) {
		a := d.add(pass("a", time.Hour, 5))
		b := d.add(pass("b", time.Hour+10*time.Minute+Gap, 5))
		d.exec.mu.Lock()
		d.exec.instead = func() Outcome {
			time.Sleep(30 * time.Minute)
			return Outcome{State: Completed, Code: "DONE"}
		}
		d.exec.mu.Unlock()
		time.Sleep(2 * time.Hour)
		d.wantState(a.ID, Completed, "")
		d.wantState(b.ID, Missed, "BUSY")
	})
}
