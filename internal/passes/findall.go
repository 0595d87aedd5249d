package passes

import (
	"cmp"
	"context"

	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"gsd-mcp/internal/elements"
	"gsd-mcp/internal/unit"
)

// A None is a satellite without a pass in the window, and why.
type None struct {
	NoradID   int    `json:"norad_id"`
	Satellite string `json:"satellite"` // untrusted text, printable
	Why       Why    `json:"why"`
}

// A Result is the answer for many satellites.
type Result struct {
	Passes []Pass // by AOS, or highest first with Options.BestFirst
	None   []None // in the order of the sets
}

// FindAll searches the passes of many satellites, on all processors. progress,
// when not nil, is called now and then from one goroutine at a time with the
// number of satellites done. A set that SGP4 cannot use is told in None.
func FindAll(ctx context.Context, sets []elements.Set, site unit.Site, opt Options, progress func(done, total int)) (Result, error) {
	if err := site.Validate(); err != nil {
		return Result{}, err
	}
	if err := opt.validate(); err != nil {
		return Result{}, err
	}
	const batch = 16 // sets that a worker takes at a time: 1 ms of work
	type answer struct {
		passes []Pass
		why    Why
	}
	answers := make([]answer, len(sets))
	at := newSpot(site)
	var next, done atomic.Int64
	var telling sync.Mutex
	work := func() {
		var room []stay
		for ctx.Err() == nil {
			end := int(next.Add(batch))
			begin := end - batch
			if begin >= len(sets) {
				return
			}
			end = min(end, len(sets))
			for i := begin; i < end; i++ {
				a := &answers[i]
				o, err := New(sets[i])
				if err != nil {
					a.why = WhyPropagation
					continue
				}
				f := newFinder(o, at, opt)
				f.stays = room
				// The error can only be that of ctx, which is returned below.
				a.passes, a.why, _ = f.find(ctx, opt)
				room = f.stays
			}
			d := int(done.Add(int64(end - begin)))
			if progress != nil && telling.TryLock() {
				progress(d, len(sets))
				telling.Unlock()
			}
		}
	}
	workers := max(1, min(runtime.GOMAXPROCS(0), (len(sets)+batch-1)/batch))
	var wg sync.WaitGroup
	for range workers {
		wg.Go(work)
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	var r Result
	type entry struct {
		key   float64
		norad int
		place int // as found: makes the order one of a kind
		pass  *Pass
	}
	total := 0
	for _, a := range answers {
		total += len(a.passes)
	}
	order := make([]entry, 0, total)
	for i, a := range answers {
		for j := range a.passes {
			p := &a.passes[j]
			key := float64(p.AOS.Time.UnixMicro())
			if opt.BestFirst {
				key = -p.MaxElDeg
			}
			order = append(order, entry{key, p.NoradID, len(order), p})
		}
		if len(a.passes) == 0 {
			r.None = append(r.None, None{sets[i].NoradID, sets[i].Label(), a.why})
		}
	}
	// Passes are large: keys are sorted, and each pass moves once.
	slices.SortFunc(order, func(a, b entry) int {
		switch {
		case a.key < b.key:
			return -1
		case a.key > b.key:
			return 1
		}
		return cmp.Or(cmp.Compare(a.norad, b.norad), cmp.Compare(a.place, b.place))
	})
	r.Passes = make([]Pass, len(order))
	for i, e := range order {
		r.Passes[i] = *e.pass
	}
	return r, nil
}

// SortBest puts the highest passes first.
func SortBest(p []Pass) {
	slices.SortStableFunc(p, func(a, b Pass) int { return cmp.Compare(b.MaxElDeg, a.MaxElDeg) })
}
