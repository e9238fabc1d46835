package chart

import "html/template"

// Lines is a chart of lines over a common pair of axes.
type Lines struct {
	Title  string
	X, Y   Axis
	Height float64
	Series []Series
}

// Series is one line. Its number fixes its colour and the shape of its marks.
type Series struct {
	Name   string
	Number int
	Points []XY
	Marks  []Mark
	Desc   string // in words
}

// XY is one point.
type XY struct{ X, Y float64 }

// Mark is a point with a tooltip.
type Mark struct {
	XY
	Tip string
}

// SVG draws the chart.
func (l Lines) SVG() template.HTML {
	var xs, ys []float64
	var said []string
	for _, s := range l.Series {
		said = append(said, s.Name+" "+s.Desc)
		for _, at := range s.Points {
			xs, ys = append(xs, at.X), append(ys, at.Y)
		}
	}
	p := plot{left: 48, top: 8, right: Width - 8, bottom: l.Height - roomForAxis}
	p.begin("lines", l.Title, roomForAxis, said)
	p.xAxis(l.X, xs, 5)
	p.yAxis(l.Y, ys, 4)
	for _, s := range l.Series {
		var xy []float64
		for _, at := range s.Points {
			xy = append(xy, p.x(at.X), p.y(at.Y))
		}
		p.group("series "+SeriesClass(s.Number), "")
		p.line("line", xy...)
		p.end()
	}
	for _, s := range l.Series { // above all lines
		for _, m := range s.Marks {
			x, y := p.x(m.X), p.y(m.Y)
			p.group("series "+SeriesClass(s.Number), m.Tip)
			p.marker("hit", 0, x, y, 10)
			p.marker("mark", s.Number, x, y, 3.2)
			p.end()
		}
	}
	return p.done()
}
