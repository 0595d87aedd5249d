package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/state"
)

// Bounds of the end.
const (
	aliveEvery = time.Minute      // station time
	diskEvery  = 30 * time.Second // real
	diskAgain  = 3 * time.Second  // real: while nothing can be written, and so nothing moves
)

// Run runs the station until ctx ends: devices, schedule, clock watch, hub. It
// returns when everything is halted and written.
func (h *house) Run(ctx context.Context) {
	prev := h.previousEnd()
	var bg sync.WaitGroup
	devCtx, devStop := context.WithCancel(context.WithoutCancel(ctx))
	for _, s := range h.sims {
		bg.Go(func() { s.dev.Run(devCtx, s.pty.Device) })
	}
	hubCtx, hubStop := context.WithCancel(context.WithoutCancel(ctx))
	var hubDone sync.WaitGroup
	if h.hub != nil {
		hubDone.Go(func() {
			if err := h.hub.Run(hubCtx); err != nil {
				h.log.Error("hub", "error", err)
			}
		})
	}
	mode, _, _, _ := h.station.Mode()
	note := ""
	if len(h.notes) > 0 {
		note = fmt.Sprint(h.notes)
	}
	h.emit(event.StationStarted{Version: version, Mode: string(mode), PreviousEnd: prev, StateNote: note, ElementsCount: len(h.catalogue.All())})
	h.markAlive(false)

	var wg sync.WaitGroup
	wg.Go(func() { h.watcher.Run(ctx) })
	wg.Go(func() { h.watch(ctx) })
	wg.Go(func() { h.refreshElements(ctx) })
	wg.Go(func() { h.announceEvents(ctx) })
	wg.Go(func() { h.serveRotctl(ctx) })
	if h.wind != nil {
		wg.Go(func() { h.watchWind(ctx) })
	}
	stationDone := make(chan struct{})
	stationCtx, stationStop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(stationDone); h.station.Run(stationCtx) }()
	wg.Go(func() { h.runner.Run(ctx) })
	<-ctx.Done()
	h.emit(event.StationStopping{Reason: "asked to end"})
	wg.Wait()
	stationStop()
	<-stationDone
	h.markAlive(true)
	h.flushEvents()
	hubStop() // last: it delivers what the end has told
	hubDone.Wait()
	devStop()
	for _, s := range h.sims {
		s.pty.Close()
	}
	bg.Wait()
}

func (h *house) emit(d event.Data) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := h.bus.Emit(ctx, event.About{Subject: "station"}, d); err != nil {
		h.log.Error("event was not recorded", "error", err)
	}
}

func (h *house) markAlive(clean bool) {
	if err := h.dir.Save(aliveFile, alive{h.clk.Now(), clean}); err != nil {
		h.log.Warn("state", "error", err)
	}
}

// watch looks at the disk, tells health and publishes the retained states.
func (h *house) watch(ctx context.Context) {
	last := health.Verdict("")
	lastAlive := h.clk.Now()
	for {
		d := health.ReadDisk(h.dir.Path())
		h.mu.Lock()
		h.disk = d
		h.mu.Unlock()
		h.station.ProbeDisk(h.dir.Probe)
		if now := h.clk.Now(); now.Sub(lastAlive) >= aliveEvery {
			h.markAlive(false)
			lastAlive = now
		}
		r := h.doctor.Report()
		h.bus.SetState("health", map[string]any{"verdict": r.Verdict, "mode": r.Mode, "held_after_stop": r.Held, "findings": codes(r.Findings), "simulated": r.Simulated})
		a := h.station.Antenna()
		h.bus.SetState("rotator", map[string]any{"state": a.State, "measured": a.Measured, "feedback": a.Feedback})
		h.bus.SetState("radio", map[string]any{"present": h.station.Radio().Present, "measured": h.station.Radio().Status})
		if r.Verdict != last {
			h.emit(event.HealthChanged{From: string(last), To: string(r.Verdict), Findings: codes(r.Findings)})
			last = r.Verdict
			h.updated("health")
		}
		wait := diskEvery
		if h.station.Condition().DiskErr != nil {
			wait = diskAgain
		}
		select {
		case <-ctx.Done():
			return
		case <-h.look:
		case <-time.After(wait):
		}
	}
}

func codes(f []health.Finding) []string {
	out := make([]string, 0, len(f))
	for _, x := range f {
		out = append(out, x.Code)
	}
	return out
}

// close gives everything back after Run has returned.
func (h *house) close() {
	if h.outbox != nil {
		h.outbox.Close()
	}
	if h.audit != nil {
		h.audit.Close()
	}
	if h.dir != nil {
		h.dir.Close()
	}
}

// flushPatience bounds the wait for a slow card at the end, real time.
const flushPatience = 3 * time.Second

// flushEvents waits until what the station has told is in the journals, so that
// the hub's last look finds it.
func (h *house) flushEvents() {
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	for _, j := range []*state.Journal{h.outbox.Info, h.outbox.Crit} {
		if err := j.Flush(ctx); err != nil {
			h.log.Warn("the last events are not all in the journal", "error", err)
		}
	}
}
