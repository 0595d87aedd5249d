package tools

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/safety"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// done is what an actuating tool answers.
type done struct {
	ID       string `json:"command_id"`
	Repeated bool
	Booked   string `json:"scheduled_pass_id"`
	State    string
	PassID   string `json:"pass_id"`
	Priority int
	Target   unit.AzEl
	Expected float64                                      `json:"expected_s"`
	By       struct{ Kind, User, Client, Session string } `json:"created_by"`
}

func (s *session) done(tool, args string) (d done) {
	s.t.Helper()
	s.call(tool, args).into(s.t, &d)
	return d
}

// A request that is sent fifty times is done once.
func TestFiftyEqualRequestsAreOne(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(copilot)
		defer s.close()
		first := s.done("point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`)
		for range 49 {
			a := s.call("point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`)
			var d done
			a.into(t, &d)
			if d.ID != first.ID || !d.Repeated || !strings.Contains(a.text(), "nothing was done twice") {
				t.Fatalf("a repeat gave %+v: %s", d, a.text())
			}
		}
		if n := len(r.disk.audited(`"what":"intent"`)); n != 1 {
			t.Errorf("%d intents in the audit, want 1", n)
		}
	})
}

func TestAKeyGivesTheFirstAnswerAgain(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		const book = `{"pass_id":"25544-20260813T0833Z","idempotency_key":"k1"}`
		first := s.done("schedule_pass", book)
		s.close()
		s = r.as(operator) // a client that lost its session
		defer s.close()
		if again := s.done("schedule_pass", book); !again.Repeated || again.Booked != first.Booked {
			t.Errorf("the same key gave %+v, want %s again", again, first.Booked)
		}
		s.refusal(safety.IdempotencyMismatch, "schedule_pass", `{"pass_id":"25544-20260813T1010Z","idempotency_key":"k1"}`)
		s.refusal(safety.IdempotencyMismatch, "point_antenna", `{"azimuth_deg":100,"elevation_deg":60,"idempotency_key":"k1"}`)
		other := r.as(another)
		defer other.close()
		other.refusal(safety.ScheduleConflict, "schedule_pass", book) // keys are one's own
		if n := len(r.book.List(time.Time{}, time.Time{})); n != 1 {
			t.Errorf("%d bookings, want 1", n)
		}
	})
}

// Without a key only the newest request counts as a repeat: A, B, A is three
// moves.
func TestGoingBackIsNoRepeat(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		for i, az := range []float64{100, 120, 100} {
			d := s.done("point_antenna", fmt.Sprintf(`{"azimuth_deg":%v,"elevation_deg":60}`, az))
			if d.Repeated {
				t.Errorf("move %d to %v° was taken for a repeat", i+1, az)
			}
			time.Sleep(time.Minute)
			if got := r.mount.Truth().AzDeg; got < az-1 || got > az+1 {
				t.Errorf("move %d: the antenna stands at %.1f°, want %v°", i+1, got, az)
			}
		}
	})
}

// A pass whose booking somebody withdrew can be booked again at once: the first
// answer would be a lie.
func TestAWithdrawnPassCanBeBookedAgain(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s, o := r.as(operator), r.as(another)
		defer s.close()
		defer o.close()
		for _, book := range []string{`{"pass_id":"25544-20260813T0833Z"}`, `{"norad_id":25544,"aos":"2026-08-13T10:05:00Z"}`} {
			first := s.done("schedule_pass", book)
			if got := o.done("cancel_scheduled_pass", fmt.Sprintf(`{"scheduled_pass_id":%q}`, first.Booked)); got.State != "cancelled" {
				t.Fatalf("cancelled: %+v", got)
			}
			again := s.done("schedule_pass", book)
			if again.Repeated || again.Booked == first.Booked || again.State != "committed" {
				t.Errorf("booking again gave %+v", again)
			}
			if e, ok := r.book.Get(again.Booked); !ok || e.State.Terminal() {
				t.Errorf("the new booking is %+v", e)
			}
			if third := s.done("schedule_pass", book); !third.Repeated || third.Booked != again.Booked {
				t.Errorf("asking once more gave %+v, want %s repeated", third, again.Booked)
			}
		}
	})
}

// The budgets of an agent hold over sessions, name the time of the next call,
// and bind nobody else; stop has none.
func TestAnAgentsBudgetHolds(t *testing.T) {
	tight := func(_ *rig, o *station.Options, _ *Deps) { o.AgentBudget = station.Budget{Bookings: 3, Moves: 5} }
	inRig(t, func(t *testing.T, r *rig) {
		for i := range 5 {
			s := r.as(copilot) // a new session each time
			s.call("point_antenna", fmt.Sprintf(`{"azimuth_deg":%d,"elevation_deg":60}`, 100+i))
			s.close()
			r.st.SessionEnded(s.id)
			time.Sleep(10 * time.Second)
		}
		s := r.as(copilot)
		defer s.close()
		n := s.refusal(safety.RateLimited, "point_antenna", `{"azimuth_deg":200,"elevation_deg":60}`)
		if n.RetryS < 3400 || n.RetryS > 3600 || !strings.Contains(n.Why, "the next is allowed at 2026-08-13T07:0") {
			t.Errorf("the refusal does not say when: %+v", n)
		}
		s.refusal(safety.RateLimited, "tune_radio", `{"frequency_hz":145900000}`)
		for i := range 3 {
			s.try("schedule_pass", fmt.Sprintf(`{"pass_id":"25544-20260814T0%d00Z"}`, i)) // refused ones count too
		}
		s.refusal(safety.RateLimited, "schedule_pass", `{"pass_id":"25544-20260813T0833Z"}`)
		s.call("get_antenna", `{}`)
		o := r.as(operator)
		defer o.close()
		for i := range 8 {
			o.call("point_antenna", fmt.Sprintf(`{"azimuth_deg":%d,"elevation_deg":60}`, 100+i))
			time.Sleep(10 * time.Second)
		}
		for range 10 {
			s.call("stop_station", `{}`)
		}
	}, tight)
	inRig(t, func(t *testing.T, r *rig) { // and it fills up again
		s := r.as(copilot)
		defer s.close()
		for i := range 5 {
			s.call("point_antenna", fmt.Sprintf(`{"azimuth_deg":%d,"elevation_deg":60}`, 100+i))
			time.Sleep(10 * time.Second)
		}
		n := s.refusal(safety.RateLimited, "point_antenna", `{"azimuth_deg":200,"elevation_deg":60}`)
		time.Sleep(time.Duration(n.RetryS) * time.Second)
		s.call("point_antenna", `{"azimuth_deg":200,"elevation_deg":60}`)
	}, tight)
}

// What an agent believes may be old: with expect_state nothing happens when it
// is.
func TestExpectStateGuardsAgainstOldKnowledge(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		s.refusal(safety.StateChanged, "point_antenna", `{"azimuth_deg":100,"elevation_deg":60,"expect_state":"parked"}`)
		s.call("point_antenna", `{"azimuth_deg":100,"elevation_deg":60,"expect_state":"standby"}`)
		n := s.refusal(safety.StateChanged, "point_antenna", `{"azimuth_deg":110,"elevation_deg":60,"expect_state":"standby"}`)
		if !strings.Contains(n.Why, "slewing") || !strings.Contains(n.Fix, "get_antenna") {
			t.Errorf("the refusal does not teach: %+v", n)
		}
		time.Sleep(time.Minute)
		s.call("point_antenna", `{"azimuth_deg":110,"elevation_deg":60,"expect_state":"positioned"}`)
	})
}

// One moves at a time: the lease keeps another operator's hands off until a
// minute after the move, and a session that is gone holds nothing.
func TestTheMotionLeaseIsHeldAndFreed(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s, o, a := r.as(operator), r.as(another), r.as(copilot)
		defer o.close()
		defer a.close()
		s.call("point_antenna", `{"azimuth_deg":300,"elevation_deg":60}`)
		if n := o.refusal(safety.LeaseHeld, "point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`); !strings.Contains(n.Why, "olga") {
			t.Errorf("the refusal does not say who holds the lease: %+v", n)
		}
		time.Sleep(10 * time.Second)
		s.close()
		r.st.SessionEnded(s.id)
		time.Sleep(3 * time.Second)
		if p := r.mount.Truth(); p.AzRateDps != 0 || p.AzDeg > 290 {
			t.Errorf("the move of a session that is gone goes on: %+v", p)
		}
		a.call("point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`)
		o.call("point_antenna", `{"azimuth_deg":120,"elevation_deg":60}`) // a person before an agent
		a.refusal(safety.LeaseHeld, "park_antenna", `{}`)
	})
}

// Who asked is written down with everything that is done.
func TestEveryBookingAndAuditLineNamesItsAuthor(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(copilot)
		defer s.close()
		d := s.done("schedule_pass", `{"pass_id":"25544-20260813T0833Z","priority":4}`)
		if d.By.Kind != "agent" || d.By.User != "copilot" || d.By.Client != "rig" || d.By.Session != s.id || d.Priority != 4 {
			t.Errorf("booked by %+v", d)
		}
		s.try("point_antenna", `{"azimuth_deg":180,"elevation_deg":20}`)
		time.Sleep(time.Second)
		for _, parts := range [][]string{{`"what":"intent"`, `"verb":"schedule"`}, {`"what":"refused"`, `"code":"KEEP_OUT"`}} {
			lines := r.disk.audited(append(parts, `"kind":"agent"`, `"uid":1004`, `"user":"copilot"`, `"client":"rig"`)...)
			if len(lines) != 1 {
				t.Errorf("%v: %d audit lines with the author, want 1", parts, len(lines))
			}
		}
	})
}

// Nothing is done that cannot be written down; a stop is.
func TestAFullDiskStopsActuationAndNotStop(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(operator)
		defer s.close()
		s.call("point_antenna", `{"azimuth_deg":300,"elevation_deg":60}`)
		time.Sleep(3 * time.Second)
		r.disk.fill(errNoSpace)
		for tool, args := range map[string]string{"point_antenna": writers["point_antenna"], "tune_radio": writers["tune_radio"], "schedule_pass": writers["schedule_pass"]} {
			if n := s.refusal(safety.StateNotDurable, tool, args); !strings.Contains(n.Why, errNoSpace.Error()) {
				t.Errorf("%s: %+v", tool, n)
			}
		}
		var stop station.StopAnswer
		if s.call("stop_station", `{}`).into(t, &stop); !stop.Sent || !stop.Confirmed {
			t.Errorf("the stop: %+v", stop)
		}
		var h HealthReport
		s.call("get_station_health", `{}`).into(t, &h)
		if h.Verdict != "unsafe" || h.Findings[0].Code != string(safety.StateNotDurable) {
			t.Errorf("health says %s, %+v", h.Verdict, h.Findings)
		}
		r.disk.fill(nil)
		r.st.ProbeDisk(func() error { return nil })
		if s.call("get_station_health", `{}`).into(t, &h); h.Verdict != "degraded" { // held
			t.Errorf("after space came back health says %s, %+v", h.Verdict, h.Findings)
		}
		if res := r.st.Do(t.Context(), station.Command{Caller: operator.Caller, Verb: station.VerbResume}); res.Refusal != nil || res.Err != nil {
			t.Fatal(res)
		}
		s.call("point_antenna", writers["point_antenna"])
	})
}

// The same request is no repeat when somebody has turned the antenna away since.
func TestAMoveIsDoneAgainWhenTheAntennaIsElsewhere(t *testing.T) {
	inRig(t, func(t *testing.T, r *rig) {
		s, o := r.as(operator), r.as(another)
		s.done("point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`)
		time.Sleep(3 * time.Minute) // arrived, and the lease has run out
		o.done("point_antenna", `{"azimuth_deg":200,"elevation_deg":60}`)
		time.Sleep(3 * time.Minute)
		if d := s.done("point_antenna", `{"azimuth_deg":100,"elevation_deg":60}`); d.Repeated {
			t.Errorf("taken for a repeat: %+v", d)
		}
		time.Sleep(time.Minute)
		if az := r.mount.Truth().AzDeg; az < 99 || az > 101 {
			t.Errorf("the antenna stands at %.1f°, want 100°", az)
		}
	})
}

// What was asked and spent is remembered over a restart of the daemon.
func TestRepeatsAndBudgetsOutliveARestart(t *testing.T) {
	tight := func(_ *rig, o *station.Options, _ *Deps) { o.AgentBudget = station.Budget{Moves: 2} }
	var first done
	var disk *memory
	inRig(t, func(t *testing.T, r *rig) {
		disk = r.disk
		s := r.as(copilot)
		s.done("park_antenna", `{}`)
		time.Sleep(time.Minute)
		first = s.done("point_antenna", `{"azimuth_deg":100,"elevation_deg":60,"idempotency_key":"over"}`)
		time.Sleep(time.Minute)
	}, tight)
	inRig(t, func(t *testing.T, r *rig) {
		s := r.as(copilot)
		if d := s.done("point_antenna", `{"azimuth_deg":100,"elevation_deg":60,"idempotency_key":"over"}`); !d.Repeated || d.ID != first.ID {
			t.Errorf("after a restart the key gave %+v, want %s again", d, first.ID)
		}
		s.refusal(safety.RateLimited, "point_antenna", `{"azimuth_deg":110,"elevation_deg":60}`)
	}, tight, func(r *rig, o *station.Options, _ *Deps) { r.disk = disk; o.Store, o.Audit = disk, disk })
}
