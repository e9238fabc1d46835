package chart

import (
	"regexp"
	"strings"

	"github.com/spillway-go/spillway/lab/internal/numbers"
)

// Axis is a scale with its name and labels.
type Axis struct {
	Label  string
	Scale  Scale                // zero: from zero to the values, or around them if Log
	Log    bool                 // of a scale that is made from the values
	Format func(float64) string // nil: numbers.Format
	Ticks  func(Scale) []Tick   // nil: round values of the scale
}

// over gives an axis without a scale one that covers the values.
func (a Axis) over(values []float64) Axis {
	switch {
	case a.Scale != Scale{}:
	case a.Log:
		a.Scale = LogAround(values...)
	default:
		a.Scale = FromZero(values...)
	}
	return a
}

func (a Axis) ticks(n int) []Tick {
	if a.Ticks != nil {
		return a.Ticks(a.Scale)
	}
	format := a.Format
	if format == nil {
		format = numbers.Format
	}
	var ticks []Tick
	for _, v := range a.Scale.Ticks(n) {
		ticks = append(ticks, Tick{v, shorten(format(v))})
	}
	return ticks
}

var zeros = regexp.MustCompile(`(\.\d*?)0+(\D|$)`)

// shorten drops the zeros that three significant digits leave behind on round
// values: 2.50 ms is 2.5 ms on an axis.
func shorten(label string) string {
	m := zeros.FindStringSubmatchIndex(label)
	if m == nil {
		return label
	}
	return label[:m[0]] + strings.TrimSuffix(label[m[2]:m[3]], ".") + label[m[4]:]
}

// frame is the plotting area of a chart.
type frame struct {
	left, top, right, bottom float64
}

func (f frame) x(s Scale, v float64) float64 { return f.left + s.At(v)*(f.right-f.left) }
func (f frame) y(s Scale, v float64) float64 { return f.bottom - s.At(v)*(f.bottom-f.top) }

// xAxis draws grid lines, tick labels and the axis' name beneath the frame.
// Labels that would touch their left neighbour are left out.
func (c *canvas) xAxis(f frame, a Axis, n int) {
	free := -30.0
	for _, t := range a.ticks(n) {
		x := f.x(a.Scale, t.At)
		c.line("grid", x, f.top, x, f.bottom)
		if half := textWidth(t.Label) / 2; x-half >= free {
			free = x + half + 6
			c.tick(x, f.bottom+14, t.Label)
		}
	}
	if a.Label != "" {
		c.text("axis", f.right, f.bottom+28, a.Label)
	}
}

// tick writes a label in the middle of x, or at the edge if it would cross it.
func (c *canvas) tick(x, y float64, label string) {
	class, half := "tick", textWidth(label)/2
	if x-half < 0 {
		class, x = "tick start", 0
	} else if x+half > Width {
		class, x = "tick end", Width
	}
	c.text(class, x, y, label)
}

func (c *canvas) yAxis(f frame, a Axis, n int) {
	for _, t := range a.ticks(n) {
		y := f.y(a.Scale, t.At)
		c.line("grid", f.left, y, f.right, y)
		c.text("tick end", f.left-6, y+3.5, t.Label)
	}
	if a.Label != "" {
		c.text("axis start", 0, f.top-8, a.Label)
	}
}

// textWidth estimates the width of tick text.
func textWidth(s string) float64 { return 6 * float64(len([]rune(s))) }

// fit cuts a name that is longer than n characters; tooltips have it in full.
func fit(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
