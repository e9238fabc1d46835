package chart

import "github.com/spillway-go/spillway/lab/usage"

// Dots is a chart of repeated measurements: a dot for each repeat and a stroke at the
// median, so that it shows the spread too.
type Dots struct {
	Title, Desc string
	X           Axis
	Rows        []DotRow
}

// DotRow is one row: a heading when it has no values and no label.
type DotRow struct {
	Name   string
	Class  string
	Shape  int
	Values []float64
	Label  string // at the right end, usually the median
	Tip    string
}

func (r DotRow) heading() bool { return len(r.Values) == 0 && r.Label == "" }

// SVG draws the chart.
func (d Dots) SVG() string {
	const rowHeight = 20
	f := frame{left: 104, top: 6, right: Width - 76}
	f.bottom = f.top + rowHeight*float64(len(d.Rows)) + 4
	c := newCanvas("dots", f.bottom+34, d.Title, d.Desc)
	c.xAxis(f, d.X, 3)
	for i, row := range d.Rows {
		y := f.top + rowHeight*(float64(i)+.5)
		if row.heading() {
			c.text("heading", 0, y+6, row.Name)
			continue
		}
		c.text("name", 8, y+4, fit(row.Name, 16))
		c.text("value", Width-2, y+4, row.Label)
		if len(row.Values) == 0 {
			continue
		}
		c.group("series "+row.Class, row.Tip)
		c.rect("hit", f.left, y-rowHeight/2, f.right-f.left, rowHeight, 0)
		for _, v := range row.Values {
			c.marker("dot", row.Shape, f.x(d.X.Scale, v), y, 3.4)
		}
		x := f.x(d.X.Scale, usage.Median(row.Values))
		c.line("median", x, y-7, x, y+7)
		c.end()
	}
	return c.done()
}

// Strip is a bare row of dots with its median, for a table cell.
func Strip(class string, shape int, s Scale, values []float64, tip string) string {
	c := &canvas{}
	c.b.WriteString(`<svg class="chart strip" viewBox="0 0 120 16" aria-hidden="true">`)
	f := frame{left: 5, right: 115}
	c.line("grid", 0, 8, 120, 8)
	c.group("series "+class, tip)
	c.rect("hit", 0, 0, 120, 16, 0)
	for _, v := range values {
		c.marker("dot", shape, f.x(s, v), 8, 3)
	}
	if len(values) > 0 {
		x := f.x(s, usage.Median(values))
		c.line("median", x, 2, x, 14)
	}
	c.end()
	c.b.WriteString("</svg>")
	return c.b.String()
}
