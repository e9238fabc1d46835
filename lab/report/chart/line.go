package chart

import "strings"

// Lines is a chart of lines over a common pair of axes.
type Lines struct {
	Title  string
	X, Y   Axis
	Height float64
	Series []Series
}

// Series is one line. Class colours it, Shape numbers its marker.
type Series struct {
	Name   string
	Class  string
	Shape  int
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
func (l Lines) SVG() string {
	var xs, ys []float64
	var said []string
	for _, s := range l.Series {
		said = append(said, s.Name+" "+s.Desc)
		for _, p := range s.Points {
			xs, ys = append(xs, p.X), append(ys, p.Y)
		}
	}
	x, y := l.X.over(xs), l.Y.over(ys)
	f := frame{left: 48, top: 8, right: Width - 8, bottom: l.Height - 34}
	if y.Label != "" {
		f.top = 22
	}
	c := newCanvas("lines", l.Height, l.Title, said)
	c.xAxis(f, x, 5)
	c.yAxis(f, y, 4)
	for _, s := range l.Series {
		c.group("series "+s.Class, "")
		c.path("line", f, x.Scale, y.Scale, s.Points)
		c.end()
	}
	for _, s := range l.Series { // above all lines
		for _, m := range s.Marks {
			at, high := f.x(x.Scale, m.X), f.y(y.Scale, m.Y)
			c.group("series "+s.Class, m.Tip)
			c.marker("hit", 0, at, high, 10)
			c.marker("mark", s.Shape, at, high, 3.2)
			c.end()
		}
	}
	return c.done()
}

// path joins the points, leaving out those that do not move the pen.
func (c *canvas) path(class string, f frame, xs, ys Scale, points []XY) {
	if len(points) == 0 {
		return
	}
	var d strings.Builder
	var lastX, lastY float64
	for i, p := range points {
		x, y := tenth(f.x(xs, p.X)), tenth(f.y(ys, p.Y))
		if i > 0 && x == lastX && y == lastY {
			continue
		}
		d.WriteByte("Ml"[min(i, 1)]) // steps, not places: a third shorter
		d.WriteString(px(x-lastX) + " " + px(y-lastY))
		lastX, lastY = x, y
	}
	c.b.WriteString(`<path class="` + esc(class) + `" d="` + d.String() + `"/>`)
}
