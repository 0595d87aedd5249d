package main

import (
	"context"

	"gsd-mcp/internal/event"
	"gsd-mcp/internal/radio"
	"gsd-mcp/internal/schedule"
	"gsd-mcp/internal/station"
)

// executor lets the station work the schedule's passes.
type executor struct{ h *house }

// RunPass implements schedule.Executor.
func (x executor) RunPass(ctx context.Context, e schedule.Entry, report func(s schedule.State, code, reason string)) schedule.Outcome {
	job := station.PassJob{ScheduledID: e.ID, PassID: e.PassID, NoradID: e.NoradID, Satellite: e.Satellite, AOS: e.AOS, TCA: e.TCA, LOS: e.LOS, MaxElDeg: e.MaxElDeg, By: e.CreatedBy}
	down, up := x.h.frequency(e.NoradID)
	if down.FrequencyHz > 0 {
		job.Downlink = radio.Tuning{FrequencyHz: down.FrequencyHz, Mode: radio.Mode(down.Mode)}
	}
	if up.FrequencyHz > 0 {
		job.Uplink = radio.Tuning{FrequencyHz: up.FrequencyHz, Mode: radio.Mode(up.Mode)}
	}
	end := x.h.station.RunPass(ctx, job, func(state, code, reason string) { report(schedule.State(state), code, reason) })
	return schedule.Outcome{State: schedule.State(end.State), Code: end.Code, Reason: end.Reason, Record: &schedule.Record{
		ErrorP50Deg: end.Stats.P50Deg, ErrorP99Deg: end.Stats.P99Deg, ErrorMaxDeg: end.Stats.MaxDeg, OffBeamS: end.Stats.OffBeamS, Samples: end.Stats.Samples,
		Ticks: end.Tally.Ticks, LateTicks: end.Tally.Late, DopplerMaxHz: end.DopplerMaxHz, TrackedS: end.TrackedS}}
}

func (h *house) openBook() (*schedule.Book, error) {
	b, note, err := schedule.Open(h.dir, h.clk.Now, h.scheduleChanged)
	if note != "" {
		h.notes = append(h.notes, note)
	}
	return b, err
}

// scheduleChanged publishes each step of each scheduled pass.
func (h *house) scheduleChanged(c schedule.Change) {
	e := c.Entry
	by := e.CreatedBy
	about := event.About{Subject: "pass/" + e.PassID, Correlation: e.ID, Author: &by}
	ref := event.PassRef{PassID: e.PassID, ScheduledPassID: e.ID, NoradID: e.NoradID, Satellite: e.Satellite}
	emit := func(d event.Data) {
		if _, err := h.bus.Emit(context.Background(), about, d); err != nil {
			h.log.Error("event was not recorded", "error", err)
		}
	}
	switch {
	case c.From == "":
		emit(event.PassScheduled{PassRef: ref, AOS: e.AOS, TCA: e.TCA, LOS: e.LOS, MaxElevationDeg: e.MaxElDeg, Priority: e.Priority, Displaced: e.Displaced})
	case e.State == schedule.Cancelled:
		emit(event.PassCancelled{PassRef: ref, Reason: e.Reason})
	}
	if c.From != "" {
		emit(event.PassState{PassRef: ref, From: string(c.From), To: string(e.State), ReasonCode: e.ReasonCode, Reason: e.Reason})
	}
	if e.State.Terminal() {
		d := event.PassEnded{PassRef: ref, State: string(e.State), ReasonCode: e.ReasonCode, Reason: e.Reason, MaxElevationDeg: e.MaxElDeg}
		if r := e.Record; r != nil {
			d.TrackedS, d.PointingErrorP50Deg, d.PointingErrorP99Deg, d.PointingErrorMaxDeg = r.TrackedS, r.ErrorP50Deg, r.ErrorP99Deg, r.ErrorMaxDeg
			d.OffBeamS, d.DopplerMaxHz = r.OffBeamS, float64(r.DopplerMaxHz)
		}
		emit(d)
	}
	h.updated("schedule")
}
