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
	Points []Point
	Desc   string // in words
}

// Point is a place of a line.
type Point struct {
	X, Y      float64
	Tip       string  // of the mark on it; empty: there is none
	Low, High float64 // where the values lie of which Y is the middle, if Low < High
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
		longest = max(longest, 7*float64(utf8.RuneCountInString(fit(s.Name))))
		for _, at := range s.Points {
			xs, ys = append(xs, at.X), append(ys, at.Y)
			if at.Low < at.High {
				ys = append(ys, at.Low, at.High)
			}
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
		x, y, toX, toY := p.left, p.y(r.At), p.right, p.y(r.At)
		if r.Upright {
			x, y, toX, toY = p.x(r.At), p.top+1, p.x(r.At), p.bottom
		}
		p.line("ref", x, y, toX, toY)
		p.text("axis start", x+3, y-4, r.Label)
	}
	for _, s := range l.Series {
		var xy []float64
		for _, at := range s.Points {
			xy = append(xy, p.x(at.X), p.y(at.Y))
		}
		p.line("series line "+SeriesClass(s.Number), xy...)
	}
	for _, s := range l.Series { // above all lines
		p.marks(s)
	}
	if l.Named {
		p.names(l.Series)
	}
	return p.done()
}

// marks draws the points of a line that have a tip, and how far the values behind them reach.
func (p *plot) marks(s Series) {
	if !slices.ContainsFunc(s.Points, func(at Point) bool { return at.Tip != "" }) {
		return
	}
	p.group("series " + SeriesClass(s.Number))
	var reach []float64
	for _, at := range s.Points {
		if at.Low < at.High {
			reach = append(reach, p.x(at.X), p.y(at.Low), p.x(at.X), p.y(at.High))
		}
	}
	if len(reach) > 0 {
		p.strokes("reach", reach...)
	}
	for _, at := range s.Points {
		if at.Tip != "" {
			p.marker("mark", s.Number, p.x(at.X), p.y(at.Y), 3.2, at.Tip)
		}
	}
	p.end()
}

// names writes the name of every line at its end. Those that would lie on each other move
// apart, and keep a stroke to their line.
func (p *plot) names(series []Series) {
	const apart = 13
	last := func(s Series) Point { return s.Points[len(s.Points)-1] }
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
		p.group("series " + SeriesClass(s.Number))
		if end := p.y(last(s).Y); math.Abs(y-end) > 3 {
			p.line("leader", p.x(last(s).X)+4, end, p.right+8, y)
		}
		p.marker("mark", s.Number, p.right+12, y, 3.2, "")
		p.text("label", p.right+18, y+4, fit(s.Name))
		p.end()
	}
}

// fit cuts a name that would leave no room for the lines; the words of the drawing have it in full.
func fit(name string) string {
	const most = 22 // characters
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
