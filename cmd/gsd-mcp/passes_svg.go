package main

import (
	"fmt"
	"html"
	"io"
	"strings"

	"gsd-mcp/internal/unit"
)

// The drawing as SVG: a disc of radius 260 in a sheet of 640 by 700.
const (
	svgMiddle = 320.0
	svgTop    = 310.0
	svgRadius = 260.0
)

func svgPoint(d unit.AzEl) (x, y float64) {
	x, y = disc(d)
	return svgMiddle + x*svgRadius, svgTop - y*svgRadius
}

func svgPath(points []unit.AzEl) string {
	var b strings.Builder
	for i, d := range points {
		x, y := svgPoint(d)
		fmt.Fprintf(&b, "%c%.1f %.1f ", "ML"[min(i, 1)], x, y)
	}
	return strings.TrimRight(b.String(), " ")
}

// svg draws the pass as a file of its own, without scripts or outside parts.
func (t *skyTrack) svg(out io.Writer) {
	p := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	legend := t.legend()
	p(`<svg xmlns="http://www.w3.org/2000/svg" width="640" height="700" viewBox="0 0 640 700" font-family="sans-serif" font-size="14">`)
	p(`<title>%s</title>`, html.EscapeString(legend[0]))
	p(`<rect width="640" height="700" fill="#fff"/>`)
	p(`<circle cx="%.0f" cy="%.0f" r="%.0f" fill="#eef3f8" stroke="#345" stroke-width="1.5"/>`, svgMiddle, svgTop, svgRadius)
	if el, flat := t.horizon.Flat(); !flat || el > 0 {
		var mask []unit.AzEl
		for az := 0.0; az < 360; az++ {
			mask = append(mask, unit.AzEl{AzDeg: az, ElDeg: t.horizon.At(az)})
		}
		// The ring between the horizon and the mask: what cannot be seen.
		p(`<path fill-rule="evenodd" fill="#9aa7b3" fill-opacity="0.5" d="M%.1f %.1f a%.1f %.1f 0 1 0 %.1f 0 a%.1f %.1f 0 1 0 %.1f 0 Z %s Z"><title>below the mask</title></path>`,
			svgMiddle-svgRadius, svgTop, svgRadius, svgRadius, 2*svgRadius, svgRadius, svgRadius, -2*svgRadius, svgPath(mask))
	}
	for _, el := range []float64{30, 60} {
		p(`<circle cx="%.0f" cy="%.0f" r="%.1f" fill="none" stroke="#89a" stroke-dasharray="3 4"/>`, svgMiddle, svgTop, (90-el)/90*svgRadius)
		p(`<text x="%.0f" y="%.1f" fill="#678" font-size="11">%.0f°</text>`, svgMiddle+3, svgTop-(90-el)/90*svgRadius-3, el)
	}
	p(`<path d="M%.0f %.0f h%.0f M%.0f %.0f v%.0f" stroke="#bcc" fill="none"/>`, svgMiddle-svgRadius, svgTop, 2*svgRadius, svgMiddle, svgTop-svgRadius, 2*svgRadius)
	for _, w := range []struct {
		name string
		az   float64
	}{{"N", 0}, {"E", 90}, {"S", 180}, {"W", 270}} {
		x, y := svgPoint(unit.AzEl{AzDeg: w.az, ElDeg: -6})
		p(`<text x="%.1f" y="%.1f" text-anchor="middle" font-weight="bold">%s</text>`, x, y+5, w.name)
	}
	if t.sun.ElDeg > 0 {
		x, y := svgPoint(t.sun)
		p(`<circle cx="%.1f" cy="%.1f" r="8" fill="#fc3" stroke="#b80"><title>Sun</title></circle>`, x, y)
	}
	p(`<path d="%s" fill="none" stroke="#c22" stroke-width="2.5" stroke-linejoin="round"/>`, svgPath(t.points))
	for _, m := range t.marks {
		x, y := svgPoint(m.at)
		p(`<circle cx="%.1f" cy="%.1f" r="3.5" fill="#c22"/><text x="%.1f" y="%.1f" font-size="12">%s</text>`, x, y, x+7, y+4, html.EscapeString(m.text))
	}
	if n := len(t.points); n > 0 {
		for _, end := range []struct {
			d    unit.AzEl
			text string
		}{{t.points[0], "rises"}, {t.points[n-1], "sets"}} {
			x, y := svgPoint(end.d)
			p(`<text x="%.1f" y="%.1f" font-size="12" font-style="italic">%s</text>`, x+7, y-6, end.text)
		}
	}
	for i, l := range legend {
		p(`<text x="40" y="%d">%s</text>`, 640+20*i, html.EscapeString(l))
	}
	p(`</svg>`)
}
