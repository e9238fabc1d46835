package chart

import "html/template"

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

// SVG draws the figure.
func (v Interval) SVG() template.HTML {
	p := plot{left: 8, top: 8, right: Width - 8, bottom: 48, across: v.X.Scale}
	const high, low = 15, 32 // where the published figure is, and the measured one
	p.begin("interval", v.Title, 18, nil)
	span := func(r Range) (x0, x1 float64) { return p.x(r.Low), p.x(r.High) }
	zone := func(class string, ranges []Range, y, height float64) {
		for _, r := range ranges {
			x0, x1 := span(r)
			p.group(class, r.Tip)
			p.rect("fill", x0, y, max(x1-x0, 2), height)
			p.end()
		}
	}
	zone("band", v.Bands, p.top, p.bottom-p.top)
	zone("noise", v.Margins, p.bottom-9, 8)
	p.line("base", p.left, p.bottom, p.right, p.bottom)
	for _, t := range v.X.ticks(p.across, 4) {
		x := p.x(t.At)
		p.line("base", x, p.bottom, x, p.bottom+3)
		p.tick(x, p.bottom+15, t.Label)
	}
	for _, r := range v.Published {
		x0, x1 := span(r)
		p.group("published", r.Tip)
		p.marker("hit", 0, (x0+x1)/2, high, 9)
		if x1 > x0 {
			p.line("whisker", x0, high, x1, high)
		}
		p.diamond("mark", (x0+x1)/2, high, 5)
		p.end()
	}
	x0, x1 := span(v.Figure)
	p.group("measured "+v.Class, v.Figure.Tip)
	p.rect("hit", x0-8, low-12, x1-x0+16, 20)
	p.line("whisker", x0, low, x1, low)
	p.line("whisker", x0, low-4, x0, low+4)
	p.line("whisker", x1, low-4, x1, low+4)
	p.marker("mark", 0, p.x(v.Measured), low, 4.5)
	p.end()
	return p.done()
}
