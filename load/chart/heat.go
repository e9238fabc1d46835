package chart

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"
)

// Heat is a map of fields, columns across and rows up. The larger the share of a field, the
// stronger its colour.
type Heat struct {
	Title   string
	X       Axis // its scale reaches over all columns
	Y       Axis // it counts rows: the lowest lies between 0 and 1
	Height  float64
	Columns [][]float64 // the shares of each, 0 to 1, from the lowest row up
	Desc    string      // in words
}

// HeatLevels are the largest shares of each colour, from the weakest to the strongest.
var HeatLevels = [...]float64{.05, .15, .3, .6, 1}

// HeatClass is the n-th of the colours.
func HeatClass(n int) string { return fmt.Sprintf("level%d", n) }

// SVG draws the map.
func (h Heat) SVG() template.HTML {
	rows := 0
	for _, c := range h.Columns {
		rows = max(rows, len(c))
	}
	p := plot{width: Width, left: 48, top: 8, right: Width - 8, bottom: h.Height - roomForAxis}
	p.begin("heat", h.Title, roomForAxis, []string{h.Desc})
	h.Y.Scale = Scale{Max: float64(max(rows, 1))}
	p.yAxis(h.Y, nil, 4)
	p.xAxis(h.X, nil, 5)
	if rows > 0 {
		h.fields(&p, rows)
	}
	return p.done()
}

// fields draws each colour as one shape. A field is the unit, so that its corners are whole
// numbers, and neighbours in a row are one rectangle: both keep the drawing small.
func (h Heat) fields(p *plot, rows int) {
	scale := func(length float64, n int) string { return strconv.FormatFloat(length/float64(n), 'f', 4, 64) }
	p.put(`<g transform="translate(%v %v) scale(%v %v)" shape-rendering="crispEdges">`,
		p.left, p.top, scale(p.right-p.left, len(h.Columns)), scale(p.bottom-p.top, rows))
	for level := range HeatLevels {
		var shape strings.Builder
		for row := range rows {
			for x := 0; x < len(h.Columns); x++ {
				from := x
				for x < len(h.Columns) && h.level(x, row) == level {
					x++
				}
				if width := x - from; width > 0 {
					fmt.Fprintf(&shape, "M%d %dh%dv1h-%dz", from, rows-1-row, width, width)
				}
			}
		}
		if shape.Len() > 0 {
			p.put(`<path class="fill %v" d="%v"/>`, HeatClass(level), shape.String())
		}
	}
	p.end()
}

// level is the colour of a field; -1: it has none.
func (h Heat) level(column, row int) int {
	c := h.Columns[column]
	if row >= len(c) || !(c[row] > 0) {
		return -1
	}
	level, _ := slices.BinarySearch(HeatLevels[:], c[row])
	return min(level, len(HeatLevels)-1)
}
