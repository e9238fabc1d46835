// Package chart draws small charts as SVG for an HTML page. It handles shapes and
// scales and does not depend on experiments. Colours come from the page:
// every mark carries a class (s0, s1, … for series, or a name such as "ok"),
// so that one drawing serves light, dark and print. So does text-anchor.
//
// Marks with details have them in a <title>, which a browser shows without a script.
// All text is escaped.
package chart

import (
	_ "embed"
	"fmt"
	"html"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Style is the style sheet of all drawings, with the colours of light and dark pages.
//
//go:embed chart.css
var Style string

// Width is the drawing width of a chart, in CSS pixels at its natural
// size: narrow enough for a telephone, so that text is never scaled away.
const Width = 360

// canvas collects the marks of one drawing.
type canvas struct{ strings.Builder }

// put writes markup: numbers as coordinates with one decimal, text escaped.
func (c *canvas) put(format string, args ...any) {
	for i, a := range args {
		switch a := a.(type) {
		case float64:
			args[i] = short(a)
		case string:
			args[i] = html.EscapeString(Clean(a))
		}
	}
	fmt.Fprintf(c, format, args...)
}

// done ends the drawing.
func (c *canvas) done() template.HTML { return template.HTML(c.String() + "</svg>") }

// shape is an element with these attributes, and with a tooltip unless tip is empty.
func (c *canvas) shape(name, class, tip, attributes string, args ...any) {
	end := "/>"
	if tip != "" {
		class, end, args = class+" tip", "><title>%v</title></"+name+">", append(args, tip)
	}
	c.put("<"+name+` class="%v" `+attributes+end, append([]any{class}, args...)...)
}

// line joins points, each x and y.
func (c *canvas) line(class string, xy ...float64) {
	c.shape("path", class, "", `d="%v"`, steps(xy))
}

// strokes are straight lines from x, y to x, y, drawn as one. One of no length is a dot, as
// wide as the class strokes.
func (c *canvas) strokes(class string, xyxy ...float64) {
	path := ""
	for from := range slices.Chunk(xyxy, 4) {
		path += steps(from)
	}
	c.shape("path", class, "", `d="%v"`, path)
}

// steps is a path through the points: by steps, which are shorter than places.
func steps(xy []float64) string {
	path, x, y, move := "", 0.0, 0.0, "M"
	for at := range slices.Chunk(xy, 2) {
		toX, toY := tenth(at[0]), tenth(at[1])
		path += move + short(toX-x) + " " + short(toY-y)
		x, y, move = toX, toY, "l"
	}
	return path
}

// rect is a rectangle.
func (c *canvas) rect(class string, x, y, w, h float64) {
	c.shape("rect", class, "", `x="%v" y="%v" width="%v" height="%v"`, x, y, max(w, 0), h)
}

// text is anchored as its class says: names at their start, values and axis
// names at their end, ticks in their middle unless they are "start" or "end".
func (c *canvas) text(class string, x, y float64, s string) {
	c.put(`<text class="%v" x="%v" y="%v">%v</text>`, class, x, y, s)
}

// group opens marks that share a class.
func (c *canvas) group(class string) { c.put(`<g class="%v">`, class) }

func (c *canvas) end() { c.put("</g>") }

// marker draws the n-th shape of a small set, so that series differ by more
// than colour.
func (c *canvas) marker(class string, n int, x, y, r float64, tip string) {
	var xy []float64
	switch n % 4 {
	case 0:
		c.shape("circle", class, tip, `cx="%v" cy="%v" r="%v"`, x, y, r)
		return
	case 1:
		r *= .9
		xy = []float64{x - r, y - r, x + r, y - r, x + r, y + r, x - r, y + r}
	case 2:
		xy = []float64{x, y - r*1.2, x + r*1.1, y + r*.8, x - r*1.1, y + r*.8}
	case 3:
		r *= 1.25
		xy = []float64{x, y - r, x + r, y, x, y + r, x - r, y}
	}
	c.shape("path", class, tip, `d="%vZ"`, steps(xy))
}

// SeriesClass is the colour of the n-th series.
func SeriesClass(n int) string { return fmt.Sprintf("s%d", n%8) }

// Clean drops control characters, which no markup can carry and no terminal should get.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s)
}

// short writes a coordinate with at most one decimal.
func short(v float64) string { return strconv.FormatFloat(tenth(v)+0, 'f', -1, 64) }

// tenth rounds to one decimal; a value that is not finite becomes 0, so that no input can
// break a drawing.
func tenth(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return math.Round(v*10) / 10
}
