package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gsd-mcp/internal/config"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/station"
)

// windEvery is how often the wind is read, station time.
const windEvery = 5 * time.Second

// A windWatch judges the wind with hysteresis: over the warning no new move
// begins, over the stow limit the antenna is parked, and both end only after
// the wind has been below the clear limit for a while. A fitted sensor that is
// silent counts as high wind (hazards M-10 and M-11).
type windWatch struct {
	c config.Weather

	mu     sync.Mutex
	high   bool
	why    string
	last   health.Wind
	calm   time.Time // since when the wind has been below the clear limit
	storm  bool
	silent bool
}

func newWindWatch(c config.Weather) *windWatch {
	if c.Source != "file" {
		return nil
	}
	return &windWatch{c: c, high: true, why: "the wind has not been read yet"}
}

// judge takes one reading, or why there is none, at a station time. It returns
// whether the antenna is to be stowed now.
func (w *windWatch) judge(now time.Time, r health.Wind, err error) (stow bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	age := now.Sub(r.Time)
	if err == nil && !(age <= time.Duration(w.c.StaleS)*time.Second) {
		err = fmt.Errorf("the last reading is %.0f s old, the limit is %d s", age.Seconds(), w.c.StaleS)
	}
	if err != nil {
		w.high, w.silent, w.calm = true, true, time.Time{}
		w.why = fmt.Sprintf("the wind sensor is silent, which counts as high wind: %v", err)
		return false // the register: stow only with a fresh reading
	}
	w.last, w.silent = r, false
	if r.WindMps < w.c.WindClearMps {
		if w.calm.IsZero() {
			w.calm = now
		}
	} else {
		w.calm = time.Time{}
	}
	switch {
	case !(r.WindMps < w.c.WindStowMps):
		stow = !w.storm
		w.storm, w.high = true, true
		w.why = fmt.Sprintf("the wind is %.1f m/s, the antenna is parked from %.1f m/s on", r.WindMps, w.c.WindStowMps)
	case !(r.WindMps < w.c.WindWarnMps):
		w.high = true
		w.why = fmt.Sprintf("the wind is %.1f m/s, the limit for new moves is %.1f m/s", r.WindMps, w.c.WindWarnMps)
	case w.high && !w.calm.IsZero() && now.Sub(w.calm) >= time.Duration(w.c.ClearAfterS)*time.Second:
		w.high, w.storm, w.why = false, false, ""
	case w.high:
		w.why = fmt.Sprintf("the wind is %.1f m/s and must stay below %.1f m/s for %d s", r.WindMps, w.c.WindClearMps, w.c.ClearAfterS)
	}
	return stow
}

// verdict is what the gate asks.
func (w *windWatch) verdict() (high bool, why string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.high, w.why
}

// watchWind reads the wind and stows in a storm.
func (h *house) watchWind(ctx context.Context) {
	was := false
	for {
		now := h.clk.Now()
		r, err := health.ReadWind(h.cfg.Weather.File, now)
		stow := h.wind.judge(now, r, err)
		if high, why := h.wind.verdict(); high != was {
			was = high
			d := event.Data(event.AlarmCleared{Code: "WIND", Title: "High wind"})
			if high {
				d = event.AlarmRaised{Code: "WIND", Severity: "warning", Title: "High wind", Cause: why, NextStep: "wait: moves are refused until the wind has been low for a while"}
			}
			h.emit(d)
			h.updated("health")
		}
		if stow {
			h.stow(ctx)
		}
		if h.clk.Sleep(ctx, windEvery) != nil {
			return
		}
	}
}

// stow ends the pass that runs and parks the antenna.
func (h *house) stow(ctx context.Context) {
	h.station.EndPass("stopped", "WIND", "the wind rose over the limit and the antenna is parked")
	r := h.station.Do(ctx, station.Command{Caller: station.Caller{Role: station.Operator, UID: -1, User: "weather", Session: "weather"}, Verb: station.VerbPark, Args: map[string]string{"why": "wind"}, Safety: true})
	switch {
	case r.Refusal != nil:
		h.log.Error("stow in the wind was refused", "why", r.Refusal.Why)
	case r.Err != nil:
		h.log.Error("stow in the wind", "error", r.Err)
	}
}
