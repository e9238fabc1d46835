package chart

// Bars is a chart of horizontal stacked bars, one row each, with the row's
// name and figure above its bar.
type Bars struct {
	Title, Desc string
	X           Axis
	Rows        []BarRow
}

// BarRow is one bar.
type BarRow struct {
	Name     string
	Label    string // at the right, above the bar
	Alarm    string // shown in place of Label, highlighted
	Segments []Segment
}

// Segment is one part of a bar; its class colours it.
type Segment struct {
	Class string
	Value float64
	Tip   string
}

// SVG draws the chart.
func (b Bars) SVG() string {
	const rowHeight = 38
	f := frame{left: 2, top: 6, right: Width - 4}
	f.bottom = f.top + rowHeight*float64(len(b.Rows)) + 2
	c := newCanvas("bars", f.bottom+34, b.Title, b.Desc)
	c.xAxis(f, b.X, 4)
	for i, row := range b.Rows {
		y := f.top + rowHeight*float64(i)
		c.text("name", f.left, y+12, fit(row.Name, 28))
		if row.Alarm != "" {
			c.text("alarm", f.right, y+12, row.Alarm)
		} else {
			c.text("value", f.right, y+12, row.Label)
		}
		sum := 0.0
		for _, s := range row.Segments {
			if !(s.Value > 0) {
				continue
			}
			x0 := f.x(b.X.Scale, sum)
			sum += s.Value
			x1 := f.x(b.X.Scale, sum)
			c.group("segment "+s.Class, s.Tip)
			c.rect("fill", x0, y+18, max(x1-x0, .8), 14, 0)
			c.end()
		}
	}
	return c.done()
}
