package chart

import "html/template"

// Range is a pair of bounds; an infinite one is open.
type Range struct{ Low, High float64 }

// Interval is a figure with its interval on a small axis, with the values that it is
// judged by.
type Interval struct {
	Title     string
	Class     string // of the figure
	X         Axis
	Measured  float64
	Figure    Range     // its interval; both ends the figure itself if there is none
	Repeats   []float64 // the value of each
	Bands     []Range   // where the claim holds
	Margins   []Range   // too near to the rule's edges to decide anything
	Published []Range   // a point where both ends are equal
}

// SVG draws the figure: the published one at the top, then the measured one, and its repeats.
func (v Interval) SVG() template.HTML {
	p := plot{width: Width, left: 8, top: 8, right: Width - 8, bottom: 58, across: v.X.Scale}
	p.begin("interval", v.Title, 18, nil)
	v.zones(&p, 9)
	base := []float64{p.left, p.bottom, p.right, p.bottom}
	for _, x := range p.labels(v.X, 4, 1) {
		base = append(base, x, p.bottom, x, p.bottom+3)
	}
	p.strokes("base", base...)
	v.figures(&p, 16, 31, 4)
	return p.done()
}

// Small is the same for a table cell: without an axis, the repeats and words.
func (v Interval) Small() template.HTML {
	p := plot{left: 3, top: 1, right: 117, bottom: 19, across: v.X.Scale}
	p.put(`<svg class="chart small-interval" viewBox="0 0 120 20" aria-hidden="true">`)
	v.Repeats = nil
	v.zones(&p, 4)
	v.figures(&p, 5, 11, 3)
	return p.done()
}

// zones draws where the claim holds, and above the axis where nothing is decided.
func (v Interval) zones(p *plot, margin float64) {
	for _, r := range v.Bands {
		p.rect("fill band", p.x(r.Low), p.top, max(p.x(r.High)-p.x(r.Low), 2), p.bottom-p.top)
	}
	for _, r := range v.Margins {
		p.rect("fill noise", p.x(r.Low), p.bottom-margin, max(p.x(r.High)-p.x(r.Low), 2), margin-1)
	}
}

// figures draws what was published at one height; and the interval, with the figure within
// and the repeats beneath, at another.
func (v Interval) figures(p *plot, published, measured, half float64) {
	for _, r := range v.Published {
		x0, x1 := p.x(r.Low), p.x(r.High)
		p.group("published")
		if x1 > x0 {
			p.line("whisker", x0, published, x1, published)
		}
		p.marker("mark", 3, (x0+x1)/2, published, half, "")
		p.end()
	}
	p.group("measured " + v.Class)
	x0, x1, y := p.x(v.Figure.Low), p.x(v.Figure.High), measured
	p.strokes("whisker", x0, y, x1, y, x0, y-half, x0, y+half, x1, y-half, x1, y+half)
	p.marker("mark", 0, p.x(v.Measured), y, half+.5, "")
	var repeats []float64 // dots, as wide as their class strokes
	for _, x := range v.Repeats {
		repeats = append(repeats, p.x(x), y+13, p.x(x), y+13)
	}
	if len(repeats) > 0 {
		p.strokes("repeat", repeats...)
	}
	p.end()
}
