package chart

import "slices"

// Range is a pair of bounds; an infinite one is open. Tip says what it is.
type Range struct {
	Low, High float64
	Tip       string
}

// Interval is a figure with its interval on a small axis, with the values that it is
// judged by.
type Interval struct {
	Title     string
	Class     string // of the figure
	X         Axis
	Measured  float64
	Figure    Range   // its interval; both ends the figure itself if there is none
	Bands     []Range // where the claim holds
	Margins   []Range // too near to the rule's edges to decide anything
	Published []Range // a point where both ends are equal
}

// Cover returns the values that the axis has to reach. A margin may be wider.
func (v Interval) Cover() []float64 {
	values := []float64{v.Measured}
	for _, r := range slices.Concat(v.Bands, v.Published, []Range{v.Figure}) {
		values = append(values, r.Low, r.High)
	}
	return values
}

// SVG draws the figure.
func (v Interval) SVG() string {
	f := frame{left: 8, top: 8, right: Width - 8, bottom: 48}
	c := newCanvas("interval", 66, v.Title, nil)
	mid := (f.top+f.bottom)/2 + 4
	span := func(r Range) (x0, x1 float64) { return f.x(v.X.Scale, r.Low), f.x(v.X.Scale, r.High) }
	zone := func(class string, ranges []Range, y, height, round float64) {
		for _, r := range ranges {
			x0, x1 := span(r)
			c.group(class, r.Tip)
			c.rect("fill", x0, y, max(x1-x0, 2), height, round)
			c.end()
		}
	}
	zone("band", v.Bands, f.top, f.bottom-f.top, 2)
	zone("noise", v.Margins, f.bottom-9, 8, 0)
	c.line("base", f.left, f.bottom, f.right, f.bottom)
	for _, t := range v.X.ticks(4) {
		x := f.x(v.X.Scale, t.At)
		c.line("base", x, f.bottom, x, f.bottom+3)
		c.tick(x, f.bottom+15, t.Label)
	}
	for _, r := range v.Published {
		x0, x1 := span(r)
		c.group("published", r.Tip)
		c.marker("hit", 0, (x0+x1)/2, f.top+7, 9)
		if x1 > x0 {
			c.line("whisker", x0, f.top+7, x1, f.top+7)
		}
		c.diamond("mark", (x0+x1)/2, f.top+7, 5)
		c.end()
	}
	x0, x1 := span(v.Figure)
	c.group("measured "+v.Class, v.Figure.Tip)
	c.rect("hit", x0-8, mid-12, x1-x0+16, 20, 0)
	c.line("whisker", x0, mid, x1, mid)
	c.line("whisker", x0, mid-4, x0, mid+4)
	c.line("whisker", x1, mid-4, x1, mid+4)
	c.marker("mark", 0, f.x(v.X.Scale, v.Measured), mid, 4.5)
	c.end()
	return c.done()
}
