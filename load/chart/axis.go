package chart

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spillway-go/spillway/load/numbers"
)

// Axis is a scale with its name and labels.
type Axis struct {
	Label  string
	Scale  Scale                // zero: from zero to the values, or around them if Log
	Log    bool                 // of a scale that is made from the values
	Format func(float64) string // nil: numbers.Format
	Ticks  func(Scale) []Tick   // nil: round values of the scale
}

// Tick is a place on an axis with its label.
type Tick struct {
	At    float64
	Label string
}

// over is the scale, or one that covers the values if there is none.
func (a Axis) over(values []float64) Scale {
	switch {
	case a.Scale != Scale{}:
		return a.Scale
	case a.Log:
		return LogAround(values...)
	}
	return FromZero(values...)
}

func (a Axis) ticks(s Scale, n int) (ticks []Tick) {
	if a.Ticks != nil {
		ticks = slices.Clone(a.Ticks(s))
	} else {
		for _, v := range s.Ticks(n) {
			ticks = append(ticks, Tick{v, a.format(v)})
		}
	}
	for i := range ticks {
		ticks[i].Label = shorten(ticks[i].Label)
	}
	return ticks
}

func (a Axis) format(v float64) string {
	if a.Format == nil {
		return numbers.Format(v)
	}
	return a.Format(v)
}

var zeros = regexp.MustCompile(`\.0+(\D|$)|(\.\d*[1-9])0+(\D|$)`)

// shorten drops the zeros that three significant digits leave behind on round
// values: 2.50 ms is 2.5 ms on an axis.
func shorten(label string) string { return zeros.ReplaceAllString(label, "$1$2$3") }

// plot is a drawing with a frame in which values have their places.
type plot struct {
	canvas
	width                    float64 // of the drawing
	left, top, right, bottom float64 // of the frame
	across, up               Scale
}

func (p *plot) x(v float64) float64 { return p.left + p.across.At(v)*(p.right-p.left) }
func (p *plot) y(v float64) float64 { return p.bottom - p.up.At(v)*(p.bottom-p.top) }

// begin opens the drawing, with room for labels below the frame; said is what it shows,
// in words.
func (p *plot) begin(kind, title string, below float64, said []string) {
	p.put(`<svg class="chart %v" viewBox="0 0 %v %v" role="img"><title>%v</title>`, kind, p.width, p.bottom+below, title)
	if len(said) > 0 {
		p.put("<desc>%v</desc>", strings.Join(said, "; "))
	}
}

// roomForAxis is what xAxis needs below the frame.
const roomForAxis = 34

// xAxis draws about n grid lines, their labels, and the axis' name beneath the frame.
func (p *plot) xAxis(a Axis, values []float64, n int) {
	p.across = a.over(values)
	lines := 2
	if a.Label != "" {
		lines = 1
		p.text("axis", p.right, p.bottom+28, a.Label)
	}
	var grid []float64
	for _, x := range p.labels(a, n, lines) {
		grid = append(grid, x, p.top, x, p.bottom)
	}
	p.strokes("grid", grid...)
}

// labels writes about n labels beneath the frame and returns where they belong. One that
// would touch its left neighbour lies on the next of so many lines, or is left out. One that
// would cross the edge of the drawing lies at the edge.
func (p *plot) labels(a Axis, n, lines int) (at []float64) {
	free := slices.Repeat([]float64{math.Inf(-1)}, lines) // from where on
	for _, t := range a.ticks(p.across, n) {
		x, half, class := p.x(t.At), textWidth(t.Label)/2, "tick"
		at = append(at, x)
		line := slices.IndexFunc(free, func(from float64) bool { return x-half >= from })
		if line < 0 {
			continue
		}
		free[line] = x + half + 6
		if x-half < 0 {
			class, x = "tick start", 0
		} else if x+half > p.width {
			class, x = "tick end", p.width
		}
		p.text(class, x, p.bottom+14+14*float64(line), t.Label)
	}
	return at
}

// yAxis draws about n grid lines with labels on their left. The axis' name takes room from
// the frame, above it.
func (p *plot) yAxis(a Axis, values []float64, n int) {
	if p.up = a.over(values); a.Label != "" {
		p.text("axis start", 0, p.top+8, a.Label)
		p.top += 24
	}
	var grid []float64
	for _, t := range a.ticks(p.up, n) {
		y := p.y(t.At)
		grid = append(grid, p.left, y, p.right, y)
		p.text("tick end", p.left-6, y+3.5, t.Label)
	}
	p.strokes("grid", grid...)
}

// textWidth estimates the width of tick text.
func textWidth(s string) float64 { return 6 * float64(utf8.RuneCountInString(s)) }
