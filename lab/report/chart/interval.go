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
	Figure    Range     // its interval; both ends the figure itself if there is none
	Repeats   []float64 // the value of each
	Bands     []Range   // where the claim holds
	Margins   []Range   // too near to the rule's edges to decide anything
	Published []Range   // a point where both ends are equal
}

// SVG draws the figure.
func (v Interval) SVG() template.HTML {
	p := plot{width: Width, left: 8, top: 8, right: Width - 8, bottom: 58, across: v.X.Scale}
	const high, low, dots = 16, 31, 44 // where the published figure is, the measured one, and its repeats
	p.begin("interval", v.Title, 18, nil)
	v.zones(&p, 9)
	axis := []float64{p.left, p.bottom, p.right, p.bottom}
	free := 0.0
	for _, t := range v.X.ticks(p.across, 4) {
		x := p.x(t.At)
		axis = append(axis, x, p.bottom, x, p.bottom+3)
		if half := textWidth(t.Label) / 2; x-half >= free || free == 0 {
			free = x + half + 6
			p.tick(x, p.bottom+15, t.Label)
		}
	}
	p.strokes("base", axis...)
	for _, r := range v.Published {
		x0, x1 := p.x(r.Low), p.x(r.High)
		p.group("published", r.Tip)
		if x1 > x0 {
			p.line("whisker", x0, high, x1, high)
		}
		p.marker("mark", 3, (x0+x1)/2, high, 4, "")
		p.end()
	}
	p.group("measured "+v.Class, v.Figure.Tip)
	v.figure(&p, low, 4)
	xs := make([]float64, len(v.Repeats))
	for i, r := range v.Repeats {
		xs[i] = p.x(r)
	}
	if len(xs) > 0 {
		p.dots("repeat", dots, xs...)
	}
	p.end()
	return p.done()
}

// Small is the same for a table cell: without an axis, and without words.
func (v Interval) Small() template.HTML {
	p := plot{left: 3, top: 1, right: 117, bottom: 19, across: v.X.Scale}
	p.put(`<svg class="chart small-interval" viewBox="0 0 120 20" aria-hidden="true">`)
	v.Bands, v.Margins = silent(v.Bands), silent(v.Margins)
	v.zones(&p, 4)
	for _, r := range v.Published {
		p.group("published", "")
		p.marker("mark", 3, (p.x(r.Low)+p.x(r.High))/2, 5, 3, "")
		p.end()
	}
	p.group("measured "+v.Class, "")
	v.figure(&p, 11, 3)
	p.end()
	return p.done()
}

// zones draws where the claim holds, and above the axis where nothing is decided.
func (v Interval) zones(p *plot, margin float64) {
	for _, r := range v.Bands {
		p.rect("fill band", p.x(r.Low), p.top, max(p.x(r.High)-p.x(r.Low), 2), p.bottom-p.top, r.Tip)
	}
	for _, r := range v.Margins {
		p.rect("fill noise", p.x(r.Low), p.bottom-margin, max(p.x(r.High)-p.x(r.Low), 2), margin-1, r.Tip)
	}
}

// figure draws the interval and the figure within.
func (v Interval) figure(p *plot, y, half float64) {
	x0, x1 := p.x(v.Figure.Low), p.x(v.Figure.High)
	p.strokes("whisker", x0, y, x1, y, x0, y-half, x0, y+half, x1, y-half, x1, y+half)
	p.marker("mark", 0, p.x(v.Measured), y, half+.5, "")
}

// silent are the ranges without their tooltips.
func silent(ranges []Range) []Range {
	out := make([]Range, len(ranges))
	for i, r := range ranges {
		out[i] = Range{Low: r.Low, High: r.High}
	}
	return out
}
