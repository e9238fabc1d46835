package chart

import "html/template"

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

// SVG draws the chart.
func (b Bars) SVG() template.HTML {
	const rowHeight = 36
	p := plot{width: Width, left: 2, top: 6, right: Width - 4, bottom: 8 + rowHeight*float64(len(b.Rows))}
	var sums []float64
	var said []string
	for _, row := range b.Rows {
		sum := 0.0
		for _, s := range row.Segments {
			sum += s.room()
		}
		sums, said = append(sums, sum), append(said, row.Name+" "+row.Label+row.Alarm)
	}
	p.begin("bars", b.Title, roomForAxis, said)
	p.xAxis(b.X, sums, 4)
	for i, row := range b.Rows {
		y, class, label := p.top+rowHeight*float64(i), "value", row.Label
		if row.Alarm != "" {
			class, label = "alarm", row.Alarm
		}
		room := p.right - p.left - 1.2*textWidth(label) - 8
		p.text("name", p.left, y+12, fit(row.Name, max(int(room/6.4), 12)))
		p.text(class, p.right, y+12, label)
		sum := 0.0
		for _, s := range row.Segments {
			if s.room() > 0 {
				p.rect("fill "+s.Class, p.x(sum), y+17, max(p.x(sum+s.Value)-p.x(sum), .8), 14, s.Tip)
				sum += s.Value
			}
		}
	}
	return p.done()
}

// room is what the part takes of its bar.
func (s Segment) room() float64 {
	if s.Value > 0 {
		return s.Value
	}
	return 0
}

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
	Series int // the number that fixes its colour
	Values []float64
	Median float64
	Label  string // at the right end, usually the median
	Tip    string
}

// SVG draws the chart.
func (d Dots) SVG() template.HTML {
	const rowHeight = 20
	p := plot{width: Width, left: 104, top: 6, right: Width - 76, bottom: 10 + rowHeight*float64(len(d.Rows))}
	var values []float64
	var said []string
	for _, row := range d.Rows {
		values, said = append(values, row.Values...), append(said, row.Name+" "+row.Label)
	}
	p.begin("dots", d.Title, roomForAxis, said)
	p.xAxis(d.X, values, 3)
	for i, row := range d.Rows {
		y := p.top + rowHeight*(float64(i)+.5)
		if len(row.Values) == 0 && row.Label == "" {
			p.text("heading", 0, y+6, row.Name)
			continue
		}
		p.text("name", 8, y+4, fit(row.Name, 16))
		p.text("value", Width-2, y+4, row.Label)
		p.repeats(row, y, rowHeight)
	}
	return p.done()
}

// Strip is a bare row of dots with its median, for a table cell. The value at which
// nothing differs is marked.
func Strip(s Scale, same float64, row DotRow) template.HTML {
	p := plot{left: 5, right: 115, across: s}
	p.put(`<svg class="chart strip" viewBox="0 0 120 16" aria-hidden="true">`)
	p.strokes("grid", 0, 8, 120, 8)
	p.line("ref", p.x(same), 0, p.x(same), 16)
	p.repeats(row, 8, 16)
	return p.done()
}

// repeats draws the dots of a row around y.
func (p *plot) repeats(row DotRow, y, height float64) {
	if len(row.Values) == 0 {
		return
	}
	p.group("series "+SeriesClass(row.Series), row.Tip)
	p.rect("hit", p.left, y-height/2, p.right-p.left, height, "")
	p.dots("dot", y, row.Values)
	x := p.x(row.Median)
	p.line("median", x, y-7, x, y+7)
	p.end()
}

// dots are round marks at the values, as wide as the class strokes.
func (p *plot) dots(class string, y float64, values []float64) {
	var at []float64
	for _, v := range values {
		at = append(at, p.x(v), y, p.x(v), y)
	}
	if len(at) > 0 {
		p.strokes(class, at...)
	}
}
