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

// Add puts a point at the end of the line, and a mark with the tip on it unless tip is empty.
func (s *Series) Add(x, y float64, tip string) {
	at := XY{x, y}
	if s.Points = append(s.Points, at); tip != "" {
		s.Marks = append(s.Marks, Mark{at, tip})
	}
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
	kind := "lines"
	if p.right = p.width - 8; l.Named {
		p.right, kind = p.width-longest-22, "lines named"
	}
	if _, top := ends(ys, 0); !l.Y.Log && top > 0 {
		ys = append(ys, top*1.05) // a line along the edge is hard to see
	}
	p.begin(kind, l.Title, roomForAxis, said)
	p.yAxis(l.Y, ys, 4)
	p.xAxis(l.X, xs, 5)
	for _, r := range l.Refs { // its label is above its upper or its left end
		from, to, x, y := XY{p.left, p.y(r.At)}, XY{p.right, p.y(r.At)}, p.left, p.y(r.At)-1
		if r.Upright {
			from, to, x, y = XY{p.x(r.At), p.top}, XY{p.x(r.At), p.bottom}, p.x(r.At), p.top
		}
		p.line("ref", from.X, from.Y, to.X, to.Y)
		p.text("axis start", x+3, y-3, r.Label)
	}
	for _, s := range l.Series {
		var xy []float64
		for _, at := range s.Points {
			xy = append(xy, p.x(at.X), p.y(at.Y))
		}
		p.line("series line "+SeriesClass(s.Number), xy...)
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

// names writes the name of every line at its end. Those that would lie on each other move
// apart, and keep a stroke to their line.
func (p *plot) names(series []Series) {
	const apart = 13
	last := func(s Series) XY { return s.Points[len(s.Points)-1] }
	series = slices.DeleteFunc(slices.Clone(series), func(s Series) bool { return len(s.Points) == 0 })
	slices.SortStableFunc(series, func(a, b Series) int { return cmp.Compare(p.y(last(a).Y), p.y(last(b).Y)) })
	at, highest := make([]float64, len(series)), math.Inf(-1)
	for i, s := range series { // down, where it is too near to the one above
		at[i] = max(p.y(last(s).Y), highest)
		highest = at[i] + apart
	}
	lowest := p.bottom
	for i, s := range slices.Backward(series) { // and up again, where there is no room beneath
		y := min(at[i], lowest)
		lowest = y - apart
		p.group("series "+SeriesClass(s.Number), "")
		if end := p.y(last(s).Y); math.Abs(y-end) > 3 {
			p.line("leader", p.x(last(s).X)+4, end, p.right+8, y)
		}
		p.marker("mark", s.Number, p.right+12, y, 3.2, "")
		p.text("label", p.right+18, y+4, s.Name)
		p.end()
	}
}
