package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/elements/catalogue"
	"gsd-mcp/internal/event"
	"gsd-mcp/internal/health"
	"gsd-mcp/internal/passes"
	"gsd-mcp/internal/safety"
)

// refreshTimeout bounds one request for elements, real time: the whole active
// catalogue is 3 MB, and a station's link may be slow.
const refreshTimeout = 2 * time.Minute

// loadElements opens the catalogue on disk and takes in the files of
// [elements]. A simulated station begins with the embedded snapshot.
func (h *house) loadElements() error {
	o := catalogue.Options{Store: h.dir, Now: h.clk.Now, UserAgent: "gsd-mcp/" + version, Shift: passes.Shift, Changed: h.elementsChanged,
		Interval: time.Duration(h.cfg.Elements.RefreshH * float64(time.Hour))}
	if h.clk.Simulated() {
		o.Base = elements.Embedded()
	} else if len(h.cfg.Elements.Sources) > 0 {
		o.Client, o.Sources = &http.Client{Timeout: refreshTimeout}, h.cfg.Elements.Sources
	}
	c, note, err := catalogue.Open(o)
	if err != nil {
		return fmt.Errorf("open the catalogue of elements: %w", err)
	}
	if note != "" {
		h.notes = append(h.notes, note)
	}
	h.catalogue = c
	for _, name := range h.cfg.Elements.Files {
		data, err := os.ReadFile(name)
		if err != nil { // a station without elements can still be stopped and pointed by hand
			h.elementProblems = append(h.elementProblems, fmt.Sprintf("[elements] files: %v", err))
			continue
		}
		r, err := c.Import(context.Background(), name, data)
		for _, p := range r.Problems {
			h.log.Warn("elements", "problem", p.String())
			h.elementProblems = append(h.elementProblems, fmt.Sprintf("%s:%d:%d: %s", p.Source, p.Line, p.Column, p.Fix))
		}
		if err != nil {
			h.elementProblems = append(h.elementProblems, err.Error())
		}
	}
	return nil
}

// elementsChanged tells those who watch a satellite that its elements changed.
func (h *house) elementsChanged(ids []int) {
	if h.server == nil || len(ids) > 64 { // a whole catalogue: nobody watches all of it
		return
	}
	for _, id := range ids {
		h.updated(fmt.Sprintf("satellites/%d", id))
		h.updated(fmt.Sprintf("passes/%d", id))
	}
}

// refreshElements asks the sources when they are due and publishes what came.
func (h *house) refreshElements(ctx context.Context) {
	err := h.catalogue.Run(ctx, h.clk.SleepUntil, func(reports []catalogue.Report, err error) {
		if err != nil {
			h.log.Warn("elements", "error", err)
		}
		for _, r := range reports {
			d := event.ElementsRefreshed{Origin: r.Source, Satellites: r.Read, Updated: r.New + r.Updated, Rejected: len(r.Problems)}
			if st := h.catalogue.Status(); !st.Newest.IsZero() {
				d.NewestAgeD = h.clk.Now().Sub(st.Newest).Hours() / 24
			}
			if len(r.Problems) > 0 {
				d.FirstProblem = r.Problems[0].String()
			}
			h.emit(d)
		}
	})
	if err != nil && ctx.Err() == nil {
		h.log.Error("elements are not refreshed any more", "error", err)
	}
}

// heldBack warns of predictions from elements that newer ones contradict.
func (h *house) heldBack(norad int) string {
	held, ok := h.catalogue.Held(norad)
	if !ok {
		return ""
	}
	return fmt.Sprintf("newer elements (epoch %s) contradict these and are held back: %s", held.Set.Epoch.UTC().Format(time.RFC3339), strings.Join(held.Why, "; "))
}

// elementFindings says what of the catalogue and its sources somebody should
// know. Nothing from inside a file is repeated: a model reads this.
func (h *house) elementFindings() []health.Finding {
	var out []health.Finding
	if n := len(h.elementProblems); n > 0 {
		out = append(out, health.Finding{Code: "ELEMENT_FILES", Severity: health.Warning, Title: "Element files", Cause: fmt.Sprintf("%d problems in the files of [elements]; the first: %s", n, h.elementProblems[0]), NextStep: "read the log, or run: gsd-mcp passes --elements FILE; correct the file, then restart the daemon"})
	}
	st := h.catalogue.Status()
	if st.Satellites == 0 {
		out = append(out, health.Finding{Code: "NO_ELEMENTS", Severity: health.Warning, Title: "No elements", Cause: "no orbital elements are known: no pass can be predicted", NextStep: "name a source or a file in [elements] of station.toml"})
	}
	if st.Held > 0 {
		out = append(out, health.Finding{Code: "ELEMENTS_HELD", Severity: health.Warning, Title: "Elements held back", Cause: fmt.Sprintf("%d new sets contradict the ones in use, which stay", st.Held), NextStep: "compare sources; a second set that agrees takes over by itself"})
	}
	for _, s := range st.Sources {
		if s.Failures >= 3 {
			out = append(out, health.Finding{Code: "ELEMENT_SOURCE", Severity: health.Warning, Title: "Element source fails", Cause: fmt.Sprintf("%s failed %d times in a row", s.URL, s.Failures), NextStep: "read why: gsd-mcp elements list; check the network and the address in [elements] sources", Since: s.LastOK})
		}
	}
	return out
}

// orbits answers the station from the catalogue. Orbits are kept: making one
// costs more than a look.
type orbits struct {
	h  *house
	mu sync.Mutex
	of map[int]*passes.Orbit
}

// Orbit implements station.Orbits.
func (o *orbits) Orbit(norad int) (*passes.Orbit, *safety.Orbit) {
	set, ok := o.h.catalogue.Get(norad)
	if !ok {
		return nil, nil
	}
	t := set.Trust(o.h.clk.Now())
	f := &safety.Orbit{NoradID: norad, AgeDays: t.AgeDays, MaxDays: o.h.maxAge(set)}
	if t.Suspect {
		f.Suspect = t.Why
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if have := o.of[norad]; have != nil && have.Set() == set {
		return have, f
	}
	orbit, err := passes.New(set)
	if err != nil {
		f.Decayed = err.Error()
		return nil, f
	}
	o.of[norad] = orbit
	return orbit, f
}

func (h *house) maxAge(s elements.Set) float64 {
	a := h.cfg.Elements.MaxAge
	switch s.Class() {
	case elements.LowLEO:
		return a.LEOLowDays
	case elements.LEO:
		return a.LEODays
	}
	return a.OtherDays
}
