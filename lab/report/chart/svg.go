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
	"math"
	"strconv"
	"strings"
	"unicode"
)

// Width is the drawing width of every chart, in CSS pixels at its natural
// size: narrow enough for a telephone, so that text is never scaled away.
const Width = 360

// canvas collects the marks of one drawing.
type canvas struct {
	b strings.Builder
}

// newCanvas begins a drawing; said is what it shows, in words.
func newCanvas(kind string, height float64, title string, said []string) *canvas {
	c := &canvas{}
	fmt.Fprintf(&c.b, `<svg class="chart %s" viewBox="0 0 %d %s" role="img"><title>%s</title>`, kind, Width, px(height), esc(title))
	if len(said) > 0 {
		fmt.Fprintf(&c.b, `<desc>%s</desc>`, esc(strings.Join(said, "; ")))
	}
	return c
}

func (c *canvas) done() string {
	c.b.WriteString("</svg>\n")
	return c.b.String()
}

func (c *canvas) line(class string, x1, y1, x2, y2 float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="M%s %sL%s %s"/>`, esc(class), px(x1), px(y1), px(x2), px(y2))
}

func (c *canvas) rect(class string, x, y, w, h, r float64) {
	fmt.Fprintf(&c.b, `<rect class="%s" x="%s" y="%s" width="%s" height="%s"`, esc(class), px(x), px(y), px(max(w, 0)), px(h))
	if r > 0 {
		fmt.Fprintf(&c.b, ` rx="%s"`, px(r))
	}
	c.b.WriteString("/>")
}

// text is anchored as its class says: names at their start, values and axis
// names at their end, ticks in their middle unless they are "start" or "end".
func (c *canvas) text(class string, x, y float64, s string) {
	fmt.Fprintf(&c.b, `<text class="%s" x="%s" y="%s">%s</text>`, esc(class), px(x), px(y), esc(s))
}

// group opens marks that share a class and, if tip is not empty, a tooltip.
func (c *canvas) group(class, tip string) {
	if tip == "" {
		fmt.Fprintf(&c.b, `<g class="%s">`, esc(class))
		return
	}
	fmt.Fprintf(&c.b, `<g class="%s tip"><title>%s</title>`, esc(class), esc(tip))
}

func (c *canvas) end() { c.b.WriteString("</g>") }

// marker draws the n-th shape of a small set, so that series differ by more
// than colour.
func (c *canvas) marker(class string, n int, x, y, r float64) {
	switch n % 4 {
	case 0:
		fmt.Fprintf(&c.b, `<circle class="%s" cx="%s" cy="%s" r="%s"/>`, esc(class), px(x), px(y), px(r))
	case 1:
		c.rect(class, x-r*.9, y-r*.9, r*1.8, r*1.8, 0)
	case 2:
		c.polygon(class, x, y-r*1.2, x+r*1.1, y+r*.8, x-r*1.1, y+r*.8)
	case 3:
		c.diamond(class, x, y, r*1.25)
	}
}

func (c *canvas) diamond(class string, x, y, r float64) {
	c.polygon(class, x, y-r, x+r, y, x, y+r, x-r, y)
}

func (c *canvas) polygon(class string, xy ...float64) {
	fmt.Fprintf(&c.b, `<path class="%s" d="`, esc(class))
	for i := 0; i+1 < len(xy); i += 2 {
		c.b.WriteByte("ML"[min(i, 1)])
		c.b.WriteString(px(xy[i]) + " " + px(xy[i+1]))
	}
	c.b.WriteString(`Z"/>`)
}

// Marker is the n-th shape alone, for a legend outside the chart.
func Marker(class string, n int) string {
	c := &canvas{}
	c.b.WriteString(`<svg class="key long" viewBox="0 0 28 14" aria-hidden="true">`)
	c.group(class, "")
	c.line("line", 0, 7, 28, 7)
	c.marker("mark", n, 14, 7, 4)
	c.end()
	c.b.WriteString(`</svg>`)
	return c.b.String()
}

// esc makes text safe inside an element or an attribute. Control characters,
// which no markup can carry, are dropped.
func esc(s string) string {
	return html.EscapeString(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, s))
}

// px writes a coordinate with one decimal; a value that is not finite becomes 0, so
// that no input can break a drawing.
func px(v float64) string { return strconv.FormatFloat(tenth(v)+0, 'f', -1, 64) }

func tenth(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return math.Round(v*10) / 10
}
