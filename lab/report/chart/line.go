package chart

import "strings"

// Lines is a chart of lines over a common pair of axes.
type Lines struct {
	Title, Desc string
	X, Y        Axis
	Height      float64 // 0: 220
	Series      []Series
}

// Series is one line. Class colours it, Shape numbers its marker.
type Series struct {
	Name   string
	Class  string
	Shape  int
	Points []XY
	Marks  []Mark
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
	height := l.Height
	if height == 0 {
		height = 220
	}
	f := frame{left: 48, top: 8, right: Width - 8, bottom: height - 34}
	if l.Y.Label != "" {
		f.top = 22
	}
	c := newCanvas("lines", height, l.Title, l.Desc)
	c.xAxis(f, l.X, 5)
	c.yAxis(f, l.Y, 4)
	for _, s := range l.Series {
		c.group("series "+s.Class, "")
		c.path("line", f, l.X.Scale, l.Y.Scale, s.Points)
		c.end()
	}
	for _, s := range l.Series { // above all lines
		for _, m := range s.Marks {
			x, y := f.x(l.X.Scale, m.X), f.y(l.Y.Scale, m.Y)
			c.group("series "+s.Class, m.Tip)
			c.marker("hit", 0, x, y, 10)
			c.marker("mark", s.Shape, x, y, 3.2)
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
