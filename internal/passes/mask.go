package passes

import (
	"math"

	"gsd-mcp/internal/unit"
)

// maskStep is the grid on which a mask is compared, in radians of the orbit:
// 1 s in low orbit, as the azimuth runs fast overhead; at most maskMaxS.
const (
	maskStep = 0.0011
	maskMaxS = 10.0
)

// clearance is how far the satellite stands over the mask, in degrees.
func (f *finder) clearance(ts float64, g grade) (degrees float64, s sample) {
	s = f.at(ts, g)
	e, n, u := f.p.components(s.pos)
	el := math.Atan2(u, math.Hypot(e, n)) / rad
	if f.lift {
		el += Refraction(el)
	}
	return el - f.horizon.At(unit.Norm360(math.Atan2(e, n)/rad)), s
}

// underMask cuts stays above the lowest point of a mask into those above the
// mask: one orbit may give several.
func (f *finder) underMask(stays []stay) []stay {
	var out []stay
	for _, s := range stays {
		out = f.segments(out, s)
	}
	return out
}

type maskPoint struct{ ts, clear float64 }

func (f *finder) segments(out []stay, whole stay) []stay {
	c, x := f.clearance(whole.rise.ts, exact)
	prev := maskPoint{whole.rise.ts, c}
	before := prev
	var open *stay
	begin := func(ts float64, cut bool) {
		open = newStay(f.at(ts, exact), cut)
	}
	end := func(ts float64, cut bool) {
		y := f.at(ts, exact)
		open.set, open.setCut = y, cut
		open.offerTop(y)
		open.offerNear(y)
		if whole.top.ts > open.rise.ts && whole.top.ts < ts {
			open.offerTop(whole.top)
		}
		if whole.nearest > open.rise.ts && whole.nearest < ts {
			open.offerNear(f.at(whole.nearest, near))
		}
		out = append(out, *open)
		open = nil
	}
	// A cut stay may begin above the mask, and a mask may be at its lowest where
	// the satellite rises.
	if prev.clear >= 0 {
		begin(prev.ts, whole.riseCut)
	}
	last := x
	for prev.ts < whole.set.ts {
		d := math.Min(maskMaxS, maskStep*last.pos.norm()/last.vel.norm())
		ts := math.Min(prev.ts+d, whole.set.ts)
		c, y := f.clearance(ts, near)
		now := maskPoint{ts, c}
		// A peak or dip between the grid points that crosses the mask unseen.
		if prev.clear < 0 && now.clear < 0 && prev.clear > before.clear && prev.clear >= now.clear && prev.clear > -0.5 {
			if top := f.maskTurn(before.ts, now.ts, 1); top.clear > 0 {
				begin(f.maskRoot(before.ts, top.ts, 1), false)
				end(f.maskRoot(top.ts, now.ts, -1), false)
			}
		}
		if open != nil && prev.clear > 0 && now.clear > 0 && prev.clear < before.clear && prev.clear <= now.clear && prev.clear < 0.5 {
			if dip := f.maskTurn(before.ts, now.ts, -1); dip.clear < 0 {
				end(f.maskRoot(before.ts, dip.ts, -1), false)
				begin(f.maskRoot(dip.ts, now.ts, 1), false)
			}
		}
		switch {
		case open == nil && prev.clear < 0 && now.clear >= 0:
			begin(f.maskRoot(prev.ts, now.ts, 1), false)
		case open != nil && now.clear < 0:
			end(f.maskRoot(prev.ts, now.ts, -1), false)
		}
		if open != nil {
			open.offerTop(y)
			open.offerNear(y)
		}
		before, prev, last = prev, now, y
	}
	if open != nil {
		end(whole.set.ts, whole.setCut)
	}
	return out
}

// maskRoot bisects the crossing of the mask, upwards (sign 1) or downwards
// (-1), between two instants to 1 µs. Where the ends, seen exactly, are on the
// same side, the answer is the end nearest to the mask.
func (f *finder) maskRoot(a, b, sign float64) float64 {
	for b-a > 1e-6 {
		m := (a + b) / 2
		if c, _ := f.clearance(m, exact); sign*c < 0 {
			a = m
		} else {
			b = m
		}
	}
	return (a + b) / 2
}

// maskTurn finds the greatest (sign 1) or least (-1) clearance between two
// instants by golden section.
func (f *finder) maskTurn(a, b, sign float64) maskPoint {
	const g = 0.6180339887498949
	for b-a > 1e-4 {
		x, y := b-g*(b-a), a+g*(b-a)
		cx, _ := f.clearance(x, near)
		cy, _ := f.clearance(y, near)
		if sign*cx > sign*cy {
			b = y
		} else {
			a = x
		}
	}
	c, _ := f.clearance((a+b)/2, near)
	return maskPoint{(a + b) / 2, c}
}
