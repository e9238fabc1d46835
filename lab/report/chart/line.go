package chart

import (
	"cmp"
	"html/template"
	"math"
	"slices"
	"unicode/utf8"
)

// Lines is a chart of lines over a common pair of axes.
type Lines struct {
	Title  string
	X, Y   Axis
	Width  float64 // 0: Width
	Height float64
	Series []Series
	Refs   []Ref
	Named  bool // every line has its name at its end, so that it needs no legend
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

// Ref is a value to compare the lines with: a straight line across the chart.
type Ref struct {
	At      float64
	Upright bool // at X, otherwise at Y
	Label   string
}

// SVG draws the chart.
func (l Lines) SVG() template.HTML {
	var xs, ys []float64
	var said []string
	longest := 0.0 // of the names
	for _, s := range l.Series {
		said = append(said, s.Name+" "+s.Desc)
		longest = max(longest, 7*float64(utf8.RuneCountInString(s.Name)))
		for _, at := range s.Points {
			xs, ys = append(xs, at.X), append(ys, at.Y)
		}
	}
	for _, r := range l.Refs {
		said = append(said, r.Label)
		if !r.Upright {
			ys = append(ys, r.At)
		}
	}
	p := plot{width: cmp.Or(l.Width, Width), left: 48, top: 8, bottom: l.Height - roomForAxis}
	if p.right = p.width - 8; l.Named {
		p.right = p.width - longest - 22
	}
	if l.Y.Label != "" {
		p.top += roomForName
	}
	if _, top := ends(ys, 0); !l.Y.Log && top > 0 {
		ys = append(ys, top*1.05) // a line along the edge is hard to see
	}
	kind := "lines"
	if l.Named {
		kind += " named"
	}
	p.begin(kind, l.Title, roomForAxis, said)
	p.xAxis(l.X, xs, 5)
	p.yAxis(l.Y, ys, 4)
	for _, r := range l.Refs {
		p.ref(r)
	}
	for _, s := range l.Series {
		var xy []float64
		for _, at := range s.Points {
			xy = append(xy, p.x(at.X), p.y(at.Y))
		}
		p.line("series line "+SeriesClass(s.Number), thin(xy, .3)...)
	}
	for _, s := range l.Series { // above all lines
		if len(s.Marks) == 0 {
			continue
		}
		p.group("series "+SeriesClass(s.Number), "")
		for _, m := range s.Marks {
			p.marker("mark", s.Number, p.x(m.X), p.y(m.Y), 3.2, m.Tip)
		}
		p.end()
	}
	if l.Named {
		p.names(l.Series)
	}
	return p.done()
}

// ref draws a reference with its label, above its left or its upper end.
func (p *plot) ref(r Ref) {
	if r.Upright {
		x := p.x(r.At)
		p.line("ref", x, p.top, x, p.bottom)
		p.text("axis start", x+3, p.top-3, r.Label)
		return
	}
	y := p.y(r.At)
	p.line("ref", p.left, y, p.right, y)
	p.text("axis start", p.left+3, y-4, r.Label)
}

// names writes the name of every line at its end. Those that would lie on each other move
// apart, and keep a stroke to their line.
func (p *plot) names(series []Series) {
	const apart = 13
	type end struct {
		Series
		y, at float64 // of the line, and of the name
	}
	var ends []end
	for _, s := range series {
		if n := len(s.Points); n > 0 {
			y := p.y(s.Points[n-1].Y)
			ends = append(ends, end{s, y, y})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.y, b.y) })
	for i := range ends { // down, where it is too near to the one above
		if i > 0 {
			ends[i].at = max(ends[i].at, ends[i-1].at+apart)
		}
	}
	lowest := p.bottom
	for i := len(ends) - 1; i >= 0; i-- { // and up again, where there is no room beneath
		ends[i].at = min(ends[i].at, lowest)
		lowest = ends[i].at - apart
	}
	for _, e := range ends {
		p.group("series "+SeriesClass(e.Number), "")
		if math.Abs(e.at-e.y) > 3 {
			p.line("leader", p.x(e.Points[len(e.Points)-1].X)+4, e.y, p.right+8, e.at)
		}
		p.marker("mark", e.Number, p.right+12, e.at, 3.2, "")
		p.text("label", p.right+18, e.at+4, e.Name)
		p.end()
	}
}

// thin leaves out points that lie within the tolerance of the line through those that
// stay: nobody would see them.
func thin(xy []float64, tolerance float64) []float64 {
	last := len(xy) - 2
	if last < 4 {
		return xy
	}
	dx, dy := xy[last]-xy[0], xy[last+1]-xy[1]
	length := math.Hypot(dx, dy)
	far, most := 0, tolerance
	for i := 2; i < last; i += 2 {
		x, y := xy[i]-xy[0], xy[i+1]-xy[1]
		off := math.Hypot(x, y)
		if length > 0 {
			off = math.Abs(x*dy-y*dx) / length
		}
		if off > most {
			far, most = i, off
		}
	}
	if far == 0 {
		return []float64{xy[0], xy[1], xy[last], xy[last+1]}
	}
	return slices.Concat(thin(xy[:far+2], tolerance), thin(xy[far:], tolerance)[2:])
}
