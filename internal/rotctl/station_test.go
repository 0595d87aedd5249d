package rotctl

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/station"
	"gsd-mcp/internal/unit"
)

// A gpredict cycle: read the position, send the next target with two decimals,
// once a second, over a pass of the ISS that is 41° high. The antenna is within
// 1.5° of the satellite all the time, which is a second of the pass's fastest
// motion, the deadband and the mount's acceleration; the station writes one intent and one
// result for all of it.
func TestAGpredictCycleTracksAPass(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		orbit, pass := issPass(t)
		c := w.connect()
		look := func(at time.Time) unit.AzEl {
			l, err := orbit.Look(london, at)
			if err != nil {
				t.Fatal(err)
			}
			return unit.AzEl{AzDeg: l.AzDeg, ElDeg: l.ElDeg}
		}
		// It is engaged in good time and holds the point of rise, as gpredict does.
		begin, end := pass.AOS.Time.Add(5*time.Second), pass.LOS.Time.Add(-5*time.Second)
		worst, sent, lastAt := 0.0, 0, time.Time{}
		for now := w.clk.Now(); now.Before(end); now = w.clk.Now() {
			c.send("p\n")
			if a := c.answer(); strings.Count(a, "\n") != 2 || strings.Contains(a, "RPRT") {
				t.Fatalf("p is answered %q at %v", a, now)
			}
			target := look(now)
			if now.Before(begin) {
				target = look(begin)
			}
			if a := c.ask(fmt.Sprintf("P %.2f %.2f", target.AzDeg, target.ElDeg)); a != "RPRT 0\n" {
				t.Fatalf("%v is answered %q at %v", target, a, now)
			}
			sent++
			if now.After(begin.Add(5 * time.Second)) {
				if e := unit.Separation(w.at(), look(w.clk.Now())); e > worst {
					worst, lastAt = e, now
				}
			}
			time.Sleep(time.Until(w.real(now.Add(time.Second))))
		}
		if worst > 1.5 {
			t.Errorf("the antenna was %.2f° off at %v, want at most 1.5°", worst, lastAt)
		}
		if n := w.audits("intent"); n != 1 {
			t.Errorf("%d intents for one stream of %d targets", n, sent)
		}
		w.until(20*time.Second, "the stream ends", func() bool { return w.audits("result") == 1 })
		w.mu.Lock()
		last, all := w.audit[len(w.audit)-1], len(w.events)
		w.mu.Unlock()
		if last.Outcome != "done" || !strings.Contains(last.Detail, strconv.Itoa(sent)+" targets") {
			t.Errorf("result %+v, want done with %d targets", last, sent)
		}
		t.Logf("%d targets, worst %.2f° at %v; %d audit lines, %d events", sent, worst, lastAt, w.audits("intent")+w.audits("result"), all)
		if all > 12 { // the start's own included
			t.Errorf("%d events for one stream", all)
		}
		c.vanish()
	})
}

// real is the instant of the bubble at which the station's clock says at: it
// runs at rate 1.
func (w *world) real(at time.Time) time.Time { return time.Now().Add(at.Sub(w.clk.Now())) }

func issPass(t *testing.T) (*passes.Orbit, passes.Pass) {
	t.Helper()
	for _, s := range elements.Embedded() {
		if s.NoradID != 25544 {
			continue
		}
		o, err := passes.New(s)
		if err != nil {
			t.Fatal(err)
		}
		found, why, err := passes.Find(context.Background(), o, london, passes.Options{From: worldStart, To: worldStart.Add(20 * time.Minute), Horizon: unit.FlatHorizon(5)})
		if err != nil || len(found) != 1 {
			t.Fatalf("%d passes, %v, %v", len(found), why, err)
		}
		return o, found[0]
	}
	t.Fatal("the ISS is not in the embedded elements")
	return nil, passes.Pass{}
}

func TestATargetInsideAKeepOutMovesNothingAndIsTold(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		c := w.connect()
		for i := range 100 { // once a second
			c.want(fmt.Sprintf("P %.2f 20.00", 8+float64(i)/50), "RPRT -21\n")
			time.Sleep(time.Second)
		}
		if n := w.moves(); n != 0 {
			t.Errorf("%d moves went out", n)
		}
		refused := w.told("actuation/refused")
		if len(refused) != 2 || w.audits("refused") != 2 {
			t.Fatalf("%d events and %d audit lines for 100 s of equal refusals, want 2: one a minute", len(refused), w.audits("refused"))
		}
		if s := string(refused[0].Data); !strings.Contains(s, "KEEP_OUT") || !strings.Contains(s, "mast") {
			t.Errorf("the event says %s", s)
		}
		if s := string(refused[1].Data); !strings.Contains(s, "more such refusals") {
			t.Errorf("the second event does not count: %s", s)
		}
		c.want("P 100.00 2.00", "RPRT -21\n") // below the horizon: refused, not clamped
		c.want("P 100.00 -3.00", "RPRT -21\n")
		if n := len(w.told("actuation/refused")); n != 4 {
			t.Errorf("%d events, want another one for each other reason", n)
		}
	})
}

func TestAVanishedClientsMotionStops(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		c := w.connect()
		c.want("P 300 60", "RPRT 0\n")
		w.until(5*time.Second, "it moves", func() bool { return w.at().AzDeg > 95 })
		c.vanish()
		w.until(5*time.Second, "it stands", func() bool { return !w.st.Antenna().Moving })
		if w.at().AzDeg > 130 {
			t.Errorf("it stands at %v: it went on", w.at())
		}
		if _, _, held, _ := w.st.Mode(); held {
			t.Error("the station holds after a client has gone")
		}
		c = w.connect()
		c.want("P 100 60", "RPRT 0\n") // the lease is free at once
	})
}

// What rotctl does: connect, move, quit. The move it was told to make is made.
func TestAClientThatTakesItsLeaveLeavesTheMoveToItsEnd(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		c := w.connect()
		c.want("P 150 60", "RPRT 0\n")
		c.send("q\n")
		w.until(60*time.Second, "it arrives", func() bool { return w.near(unit.AzEl{AzDeg: 150, ElDeg: 60}, 0.5) && !w.st.Antenna().Moving })
	})
}

// A script that starts rotctl for each target is one stream too.
func TestOneShotClientsJoinTheStream(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		for i := range 20 {
			c := w.connect()
			c.want(fmt.Sprintf("P %.1f 60", 100+float64(i)), "RPRT 0\n")
			c.send("q\n")
			time.Sleep(time.Second)
		}
		if n := w.audits("intent"); n != 1 {
			t.Errorf("%d intents, want 1", n)
		}
		c := w.connect()
		c.want("S", "RPRT 0\n") // what its own account began is its own
		if _, _, held, _ := w.st.Mode(); held {
			t.Error("the station holds after a client stopped its own move")
		}
		w.until(10*time.Second, "the result is written", func() bool { return w.audits("result") == 1 })
	})
}

func TestStopHaltsOnesOwnMoveWithoutHoldingTheStation(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		c := w.connect()
		c.want("P 300 60", "RPRT 0\n")
		w.until(5*time.Second, "it moves", func() bool { return w.at().AzDeg > 95 })
		c.want("S", "RPRT 0\n")
		w.until(5*time.Second, "it stands", func() bool { return !w.st.Antenna().Moving })
		if w.at().AzDeg > 130 {
			t.Errorf("it stands at %v", w.at())
		}
		c.want("P 100 60", "RPRT 0\n")
		w.until(60*time.Second, "it arrives", func() bool { return w.near(unit.AzEl{AzDeg: 100, ElDeg: 60}, 0.5) })
		c.want("K", "RPRT 0\n")
		w.until(60*time.Second, "it is parked", func() bool { return w.st.Antenna().State == station.AntennaParked })
	})
}

func TestOneSessionHoldsTheLeaseAndStopOfAnotherIsAStop(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		a, b := w.connect(), w.connect()
		a.want("P 300 60", "RPRT 0\n")
		b.want("P 20 60", "RPRT -22\n")
		b.want("K", "RPRT -22\n")
		if got := b.ask("p"); strings.Count(got, "\n") != 2 {
			t.Errorf("the second client reads %q", got)
		}
		b.want("S", "RPRT 0\n")
		if _, _, held, _ := w.st.Mode(); !held {
			t.Error("the station does not hold: the other client's next target would move it on")
		}
		a.want("P 301 60", "RPRT -22\n")
		if s := string(w.told("actuation/refused")[0].Data); !strings.Contains(s, "LEASE_HELD") {
			t.Errorf("first refusal %s", s)
		}
	})
}

func TestABrowserMovesNothing(t *testing.T) {
	for _, first := range []string{"POST / HTTP/1.1\r\n", "GET /P HTTP/1.1\r\n", "PUT /x\r\n", "\x16\x03\x01\x02\x00\x01\n", "P / HTTP/1.1\n"} {
		t.Run(first[:3], func(t *testing.T) {
			inWorld(t, operator, func(t *testing.T, w *world) {
				c := w.connect()
				go c.conn.Write([]byte(first + "Host: 127.0.0.1:4533\r\nContent-Type: text/plain\r\n\r\nP 300 60\nS\nK\n"))
				w.until(time.Second, "the connection is closed", c.closed)
				time.Sleep(10 * time.Second)
				if n, s := w.moves(), w.audits("intent"); n != 0 || s != 0 {
					t.Errorf("%d moves, %d intents", n, s)
				}
				if got := c.got.String(); got != "" {
					t.Errorf("it was answered %q", got)
				}
			})
		})
	}
}

func TestRightsAreThoseOfNow(t *testing.T) {
	peer := operator()
	inWorld(t, func() Peer { return peer }, func(t *testing.T, w *world) {
		c := w.connect()
		c.want("P 100 60", "RPRT 0\n")
		peer.Caller.Role = station.Observer
		c.want("P 101 60", "RPRT -22\n")
		c.want("S", "RPRT 0\n")
		peer.MayStop = false
		c.want("S", "RPRT -22\n")
		peer.Caller.Role = station.NoRole
		c.want("p", "RPRT -22\n")
		if !strings.Contains(string(w.told("actuation/refused")[0].Data), "NOT_PERMITTED") {
			t.Error("the refusal has no event with its reason")
		}
	})
}

func TestAnAgentSpendsOneMoveForAStream(t *testing.T) {
	agent := operator()
	agent.Caller.Agent = true
	inWorld(t, func() Peer { return agent }, func(t *testing.T, w *world) {
		c := w.connect()
		for i := range 90 { // over the 60 moves an hour
			c.want(fmt.Sprintf("P %.1f 60", 100+float64(i)/10), "RPRT 0\n")
			time.Sleep(time.Second)
		}
	})
}

// The client's own way of counting azimuth comes back to it.
func TestAzimuthIsReportedAsTheClientCounts(t *testing.T) {
	inWorld(t, operator, func(t *testing.T, w *world) {
		c := w.connect()
		c.want("P -90,50 45,25", "RPRT 0\n")
		w.until(90*time.Second, "it arrives", func() bool { return w.near(unit.AzEl{AzDeg: 269.5, ElDeg: 45.25}, 0.3) })
		w.until(20*time.Second, "it stands", func() bool { return !w.st.Antenna().Moving })
		az, _, _ := strings.Cut(c.ask("p"), "\n")
		if v, err := strconv.ParseFloat(az, 64); err != nil || v > -89 || v < -92 {
			t.Errorf("p says %q after P -90,50", az)
		}
		c.want("P 265 45", "RPRT 0\n")
		az, _, _ = strings.Cut(c.ask("p"), "\n")
		if v, err := strconv.ParseFloat(az, 64); err != nil || v < 200 {
			t.Errorf("p says %q after P 265", az)
		}
	})
}
