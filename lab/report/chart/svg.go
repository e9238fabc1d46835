// Package chart draws small charts as SVG for an HTML page. It handles shapes and
// scales and does not depend on experiments. Colours come from the page:
// every mark carries a class (s0, s1, … for series, or a name such as "ok"),
// so that one drawing serves light, dark and print. So does text-anchor.
//
// Marks with details have them in a <title>, which a browser shows without a script.
// All text is escaped.
package chart

import (
	"fmt"
	"html"
	"html/template"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Width is the drawing width of every chart, in CSS pixels at its natural
// size: narrow enough for a telephone, so that text is never scaled away.
const Width = 360

// canvas collects the marks of one drawing.
type canvas struct{ strings.Builder }

// put writes markup: numbers as coordinates with one decimal, text escaped.
func (c *canvas) put(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case float64:
			args[i] = strconv.FormatFloat(tenth(a)+0, 'f', -1, 64)
		case string:
			args[i] = html.EscapeString(Clean(a))
		}
	}
	fmt.Fprintf(c, format, args...)
}

// done ends the drawing.
func (c *canvas) done() template.HTML { return template.HTML(c.String() + "</svg>") }

// line joins points, each x and y; polygon closes the line.
func (c *canvas) line(class string, xy ...float64)    { c.path(class, xy, "") }
func (c *canvas) polygon(class string, xy ...float64) { c.path(class, xy, "Z") }

func (c *canvas) path(class string, xy []float64, end string) {
	c.put(`<path class="%v" d="`, class)
	x, y := 0.0, 0.0
	for i := 0; i+1 < len(xy); i += 2 {
		toX, toY := tenth(xy[i]), tenth(xy[i+1])
		if i > 0 && toX == x && toY == y {
			continue // it does not move the pen
		}
		c.put("%c%v %v", "Ml"[min(i, 1)], toX-x, toY-y) // steps, not places: a third shorter
		x, y = toX, toY
	}
	c.put(`%v"/>`, end)
}

func (c *canvas) rect(class string, x, y, w, h float64) {
	c.put(`<rect class="%v" x="%v" y="%v" width="%v" height="%v"/>`, class, x, y, max(w, 0), h)
}

// text is anchored as its class says: names at their start, values and axis
// names at their end, ticks in their middle unless they are "start" or "end".
func (c *canvas) text(class string, x, y float64, s string) {
	c.put(`<text class="%v" x="%v" y="%v">%v</text>`, class, x, y, s)
}

// group opens marks that share a class and, if tip is not empty, a tooltip.
func (c *canvas) group(class, tip string) {
	if tip == "" {
		c.put(`<g class="%v">`, class)
	} else {
		c.put(`<g class="%v tip"><title>%v</title>`, class, tip)
	}
}

func (c *canvas) end() { c.put("</g>") }

// marker draws the n-th shape of a small set, so that series differ by more
// than colour.
func (c *canvas) marker(class string, n int, x, y, r float64) {
	switch n % 4 {
	case 0:
		c.put(`<circle class="%v" cx="%v" cy="%v" r="%v"/>`, class, x, y, r)
	case 1:
		c.rect(class, x-r*.9, y-r*.9, r*1.8, r*1.8)
	case 2:
		c.polygon(class, x, y-r*1.2, x+r*1.1, y+r*.8, x-r*1.1, y+r*.8)
	case 3:
		c.diamond(class, x, y, r*1.25)
	}
}

func (c *canvas) diamond(class string, x, y, r float64) {
	c.polygon(class, x, y-r, x+r, y, x, y+r, x-r, y)
}

// SeriesClass is the colour of the n-th series.
func SeriesClass(n int) string { return fmt.Sprintf("s%d", n%8) }

// Marker is that of the n-th series alone, for a legend outside the chart.
func Marker(n int) template.HTML {
	c := &canvas{}
	c.put(`<svg class="key long" viewBox="0 0 28 14" aria-hidden="true">`)
	c.group(SeriesClass(n), "")
	c.line("line", 0, 7, 28, 7)
	c.marker("mark", n, 14, 7, 4)
	c.end()
	return c.done()
}

// Clean drops control characters, which no markup can carry and no terminal should get.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// tenth rounds to one decimal; a value that is not finite becomes 0, so that no input can
// break a drawing.
func tenth(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return math.Round(v*10) / 10
}
