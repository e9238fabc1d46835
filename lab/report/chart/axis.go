package chart

import (
	"regexp"
	"strings"

	"github.com/spillway-go/spillway/lab/internal/numbers"
)

// Axis is a scale with its name and labels.
type Axis struct {
	Label  string
	Scale  Scale
	Format func(float64) string // nil: numbers.Format
	Ticks  []Tick               // nil: round values of the scale
}

func (a Axis) ticks(n int) []Tick {
	if a.Ticks != nil {
		return a.Ticks
	}
	var ticks []Tick
	for _, v := range a.Scale.Ticks(n) {
		ticks = append(ticks, Tick{v, shorten(a.format(v))})
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

func (a Axis) format(v float64) string {
	if a.Format != nil {
		return a.Format(v)
	}
	return numbers.Format(v)
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
		half := textWidth(t.Label) / 2
		if x-half < free {
			continue
		}
		free = x + half + 6
		class, at := "tick", x
		if x+half > Width {
			class, at = "tick end", Width
		}
		c.text(class, at, f.bottom+14, t.Label)
	}
	if a.Label != "" {
		c.text("axis", f.right, f.bottom+28, a.Label)
	}
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
