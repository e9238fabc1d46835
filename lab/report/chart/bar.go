package chart

// Bars is a chart of horizontal stacked bars, one row each, with the row's
// name and figure above its bar.
type Bars struct {
	Title string
	X     Axis
	Rows  []BarRow
}

// BarRow is one bar.
type BarRow struct {
	Name     string
	Label    string // at the right, above the bar
	Alarm    string // shown in place of Label, highlighted
	Segments []Segment
}

// Segment is one part of a bar; its class colours it. One that is not above 0 has no
// room in a bar.
type Segment struct {
	Class string
	Value float64
	Tip   string
}

func (r BarRow) sum() (sum float64) {
	for _, s := range r.Segments {
		if s.Value > 0 {
			sum += s.Value
		}
	}
	return sum
}

// SVG draws the chart.
func (b Bars) SVG() string {
	const rowHeight = 38
	f := frame{left: 2, top: 6, right: Width - 4}
	f.bottom = f.top + rowHeight*float64(len(b.Rows)) + 2
	var sums []float64
	var said []string
	for _, row := range b.Rows {
		sums, said = append(sums, row.sum()), append(said, row.Name+" "+row.Label+row.Alarm)
	}
	x := b.X.over(sums)
	c := newCanvas("bars", f.bottom+34, b.Title, said)
	c.xAxis(f, x, 4)
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
			x0 := f.x(x.Scale, sum)
			sum += s.Value
			c.group("segment "+s.Class, s.Tip)
			c.rect("fill", x0, y+18, max(f.x(x.Scale, sum)-x0, .8), 14, 0)
			c.end()
		}
	}
	return c.done()
}
