package chart

import "math"

// Range is a pair of bounds; an infinite one is open.
type Range struct{ Low, High float64 }

// Interval is a figure with its interval on a small axis, with the values that it is
// judged by: the band of the rule, the published figure, the noise floor.
type Interval struct {
	Title, Desc  string
	Class        string // of the figure
	X            Axis
	Measured     float64
	Low, High    float64
	Band         *Range // where the claim holds
	Published    *Range // a point when both are equal
	Noise        *Range // differences inside it are noise
	Tip, BandTip string
	PublishedTip string
	NoiseTip     string
}

// Cover returns the finite values that the axis has to reach.
func (v Interval) Cover() []float64 {
	values := []float64{v.Measured, v.Low, v.High}
	for _, r := range []*Range{v.Band, v.Published, v.Noise} {
		if r != nil {
			values = append(values, r.Low, r.High)
		}
	}
	return values
}

// SVG draws the figure.
func (v Interval) SVG() string {
	f := frame{left: 8, top: 8, right: Width - 8, bottom: 48}
	c := newCanvas("interval", 66, v.Title, v.Desc)
	s := v.X.Scale
	mid := (f.top + f.bottom) / 2
	// span places a range, and says which ends lie within the axis.
	span := func(r Range) (x0, x1 float64) {
		x0, x1 = f.left, f.right
		if !math.IsInf(r.Low, 0) {
			x0 = f.x(s, r.Low)
		}
		if !math.IsInf(r.High, 0) {
			x1 = f.x(s, r.High)
		}
		return x0, x1
	}
	if v.Band != nil {
		x0, x1 := span(*v.Band)
		c.group("band", v.BandTip)
		c.rect("fill", x0, f.top, max(x1-x0, 2), f.bottom-f.top, 2)
		c.end()
	}
	if v.Noise != nil {
		x0, x1 := span(*v.Noise)
		c.group("noise", v.NoiseTip)
		c.rect("fill", x0, f.bottom-9, max(x1-x0, 2), 8, 0)
		c.end()
	}
	c.line("base", f.left, f.bottom, f.right, f.bottom)
	for _, t := range v.X.ticks(4) {
		x := f.x(s, t.At)
		c.line("base", x, f.bottom, x, f.bottom+3)
		class, half := "tick", textWidth(t.Label)/2
		if x-half < 0 {
			class, x = "tick start", 0
		} else if x+half > Width {
			class, x = "tick end", Width
		}
		c.text(class, x, f.bottom+15, t.Label)
	}
	if v.Published != nil {
		x0, x1 := span(*v.Published)
		c.group("published", v.PublishedTip)
		c.marker("hit", 0, (x0+x1)/2, f.top+7, 9)
		if x1 > x0 {
			c.line("whisker", x0, f.top+7, x1, f.top+7)
		}
		c.diamond("mark", (x0+x1)/2, f.top+7, 5)
		c.end()
	}
	x0, x1 := f.x(s, v.Low), f.x(s, v.High)
	c.group("measured "+v.Class, v.Tip)
	c.rect("hit", x0-8, mid-8, x1-x0+16, 20, 0)
	c.line("whisker", x0, mid+4, x1, mid+4)
	c.line("whisker", x0, mid, x0, mid+8)
	c.line("whisker", x1, mid, x1, mid+8)
	c.marker("mark", 0, f.x(s, v.Measured), mid+4, 4.5)
	c.end()
	return c.done()
}
