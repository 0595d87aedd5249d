package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"gsd-mcp/internal/unit"
)

// The drawing in the terminal: braille dots are 2 by 4 in a cell that is twice
// as high as wide, so they are square.
const (
	plotColumns = 65
	plotRows    = 31
	plotRadius  = 54 // dots
)

// A canvas is a field of braille dots with text over it.
type canvas struct {
	dots [plotRows][plotColumns]rune // bits of U+2800
	text [plotRows][plotColumns]rune // 0: the dots show
}

// set lights the dot at x to the right and y up from the middle.
func (c *canvas) set(x, y float64) {
	px, py := int(math.Round(plotColumns+x)), int(math.Round(plotRows*2-y))
	if px < 0 || py < 0 || px >= plotColumns*2 || py >= plotRows*4 {
		return
	}
	bit := [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}[py%4][px%2]
	c.dots[py/4][px/2] |= bit
}

// write puts text at a place, left-aligned from it, if none is there yet;
// required text moves sideways rather than be lost.
func (c *canvas) write(x, y float64, s string) bool {
	col, row := int(math.Round(plotColumns+x))/2, int(math.Round(plotRows*2-y))/4
	n := utf8.RuneCountInString(s)
	col = max(0, min(col, plotColumns-n))
	if row < 0 || row >= plotRows {
		return false
	}
	for i := range n {
		if c.text[row][col+i] != 0 {
			return false
		}
	}
	for i, r := range []rune(s) {
		c.text[row][col+i] = r
	}
	return true
}

func (c *canvas) render(out io.Writer) {
	for row := range plotRows {
		var b strings.Builder
		for col := range plotColumns {
			switch {
			case c.text[row][col] != 0:
				b.WriteRune(c.text[row][col])
			case c.dots[row][col] != 0:
				b.WriteRune(0x2800 + c.dots[row][col])
			default:
				b.WriteByte(' ')
			}
		}
		fmt.Fprintln(out, strings.TrimRight(b.String(), " "))
	}
}

// ring draws the circle of an elevation, every step degrees of azimuth.
func (c *canvas) ring(el func(az float64) float64, step float64) {
	for az := 0.0; az < 360; az += step {
		x, y := disc(unit.AzEl{AzDeg: az, ElDeg: el(az)})
		c.set(x*plotRadius, y*plotRadius)
	}
}

// braille draws the pass for a terminal.
func (t *skyTrack) braille(out io.Writer) {
	var c canvas
	at := func(el float64) func(float64) float64 { return func(float64) float64 { return el } }
	c.ring(at(0), 0.7)
	c.ring(at(30), 6)
	c.ring(at(60), 9)
	if el, flat := t.horizon.Flat(); !flat || el > 0 {
		c.ring(t.horizon.At, 2)
	}
	for _, d := range t.points {
		x, y := disc(d)
		// Two dots wide, so that the track stands out from the rings.
		c.set(x*plotRadius, y*plotRadius)
		c.set(x*plotRadius+1, y*plotRadius)
		c.set(x*plotRadius, y*plotRadius+1)
	}
	for _, w := range []struct {
		name string
		az   float64
	}{{"N", 0}, {"E", 90}, {"S", 180}, {"W", 270}} {
		x, y := disc(unit.AzEl{AzDeg: w.az, ElDeg: -8})
		c.write(x*plotRadius, y*plotRadius, w.name)
	}
	c.write(0, 0, "+")
	if t.sun.ElDeg > 0 {
		x, y := disc(t.sun)
		c.write(x*plotRadius, y*plotRadius, "☼")
	}
	if n := len(t.points); n > 0 {
		for _, end := range []struct {
			d    unit.AzEl
			text string
		}{{t.points[0], "rise"}, {t.points[n-1], "set"}} {
			x, y := disc(end.d)
			c.write(x*plotRadius+3, y*plotRadius, end.text)
		}
	}
	for _, m := range t.marks {
		x, y := disc(m.at)
		c.write(x*plotRadius, y*plotRadius, "●")
		c.write(x*plotRadius+4, y*plotRadius, m.text)
	}
	c.render(out)
	for _, l := range t.legend() {
		fmt.Fprintln(out, l)
	}
}
