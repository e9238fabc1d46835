package chart

// Dots is a chart of repeated measurements: a dot for each repeat and a stroke at the
// median, so that it shows the spread too.
type Dots struct {
	Title string
	X     Axis
	Rows  []DotRow
}

// DotRow is one row: a heading when it has no values and no label.
type DotRow struct {
	Name   string
	Class  string
	Shape  int
	Values []float64
	Median float64
	Label  string // at the right end, usually the median
	Tip    string
}

// SVG draws the chart.
func (d Dots) SVG() string {
	const rowHeight = 20
	f := frame{left: 104, top: 6, right: Width - 76}
	f.bottom = f.top + rowHeight*float64(len(d.Rows)) + 4
	var values []float64
	var said []string
	for _, row := range d.Rows {
		values, said = append(values, row.Values...), append(said, row.Name+" "+row.Label)
	}
	x := d.X.over(values)
	c := newCanvas("dots", f.bottom+34, d.Title, said)
	c.xAxis(f, x, 3)
	for i, row := range d.Rows {
		y := f.top + rowHeight*(float64(i)+.5)
		if len(row.Values) == 0 && row.Label == "" {
			c.text("heading", 0, y+6, row.Name)
			continue
		}
		c.text("name", 8, y+4, fit(row.Name, 16))
		c.text("value", Width-2, y+4, row.Label)
		c.repeats(f, x.Scale, row, y, rowHeight, 3.4)
	}
	return c.done()
}

// repeats draws the dots of a row around y.
func (c *canvas) repeats(f frame, s Scale, row DotRow, y, height, r float64) {
	if len(row.Values) == 0 {
		return
	}
	c.group("series "+row.Class, row.Tip)
	c.rect("hit", f.left, y-height/2, f.right-f.left, height, 0)
	for _, v := range row.Values {
		c.marker("dot", row.Shape, f.x(s, v), y, r)
	}
	x := f.x(s, row.Median)
	c.line("median", x, y-7, x, y+7)
	c.end()
}

// Strip is a bare row of dots with its median, for a table cell.
func Strip(s Scale, row DotRow) string {
	c := &canvas{}
	c.b.WriteString(`<svg class="chart strip" viewBox="0 0 120 16" aria-hidden="true">`)
	c.line("grid", 0, 8, 120, 8)
	c.repeats(frame{left: 5, right: 115}, s, row, 8, 16, 3)
	c.b.WriteString("</svg>")
	return c.b.String()
}
