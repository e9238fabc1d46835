package report

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// axisOf is that of a figure.
func axisOf(name string, log bool, format func(float64) string) chart.Axis {
	a := chart.Axis{Label: strings.Join(filled(name, pick(log, "logarithmic", "")), ", "), Log: log, Format: format}
	if strings.HasSuffix(format(0), "B") {
		a.Ticks = sizeTicks
	}
	return a
}

// places are where the loads of a set-up lie across a drawing.
type places struct {
	what, label string
	ticks       []chart.Tick
	of          func(*cell) float64 // not above 0: there is no place for it
	tabled      bool                // the figures have a table elsewhere
}

// multiples are the places of loads that are multiples of a capacity.
func (g *setup) multiples() places {
	out := places{what: "offered load", label: "offered, in multiples of the capacity", of: func(c *cell) float64 { return c.multiple }}
	for _, x := range g.sweep() {
		out.ticks = append(out.ticks, chart.Tick{At: x, Label: strconv.FormatFloat(x, 'g', 3, 64) + "x"})
	}
	return out
}

// sizes are the places of loads that are sizes of something. A logarithmic axis has no
// place for a size of 0: it lies where half of the smallest would.
func (s *session) sizes(g *setup) places {
	var all []float64
	for _, c := range g.cells {
		if size := c.stat(sizeOf).median(); size >= 0 && s.axis(g) != "" {
			all = append(all, size)
		}
	}
	slices.Sort(all)
	all = slices.Compact(all)
	place := func(size float64) float64 { return size }
	if len(all) > 1 && all[0] == 0 {
		place = func(size float64) float64 { return max(size, all[1]/2) }
	}
	out := places{s.axis(g), s.axis(g) + " (logarithmic)", nil, func(c *cell) float64 { return place(c.stat(sizeOf).median()) }, true}
	for _, size := range all {
		out.ticks = append(out.ticks, chart.Tick{At: place(size), Label: number(size)})
	}
	return out
}

// curve is a figure against the load.
type curve struct {
	column
	log  bool
	refs func(*setup) []chart.Ref
}

// goodputCurve is what a service is worth under each load, with its knee.
var goodputCurve = curve{column{"good answers a second", rate("ok"), number}, false, knee}

// knee is where the service does all that it can, if it was measured what that is.
func knee(g *setup) (refs []chart.Ref) {
	x := g.sweep()
	if slices.Min(x) < 1 && slices.Max(x) > 1 {
		refs = append(refs, chart.Ref{At: 1, Upright: true, Label: "the knee"})
	}
	var all stat
	for _, c := range g.cells {
		all = append(all, c.stat(extra("capacity"))...)
	}
	if len(all) > 0 {
		refs = append(refs, chart.Ref{At: all.median(), Label: "capacity " + all.or(number)})
	}
	return refs
}

// curves draws a set-up over its loads, if these are multiples of a capacity.
func (s *session) curves(g *setup) []panel {
	return s.against(g, g.multiples(), goodputCurve, curve{column{"p99 of whatever was not refused", quantile(.99, "ok", "error", "timeout"), nanos}, true, nil})
}

// ofSize are the figures that are shown against a size.
var ofSize = []column{
	{"throughput", answers, number}, {"good/s", rate("ok"), number}, refusedShare, {"p99, good", quantile(.99, "ok"), nanos},
}

// axis is what the loads of a set-up count, if they are sizes of something.
func (s *session) axis(g *setup) string { return s.Family.Axes[g.Name] }

// sizeOf is the size in a run.
func sizeOf(r *results.Run) float64 {
	switch x := r.Params["size"].(type) {
	case float64: // as read from disk
		return x
	case int:
		return float64(x)
	}
	return math.NaN()
}

// sizeTable has a row for each size.
func (s *session) sizeTable(g *setup) []Table {
	var lines []row
	for _, c := range g.cells {
		line := c.row(ofSize)
		line.Cells[0] = c.Load
		lines = append(lines, line)
	}
	return flat(lines, names(s.axis(g), ofSize)...)
}

// sizeCurves draws a set-up over its sizes, without the share that was refused: it is the
// difference between the first two.
func (s *session) sizeCurves(g *setup) []panel {
	return s.against(g, s.sizes(g), curve{column: ofSize[0]}, curve{column: ofSize[1]}, curve{column: ofSize[3]})
}

// against draws figures over the loads of a set-up.
func (s *session) against(g *setup, x places, curves ...curve) (out []panel) {
	if len(x.ticks) < 2 {
		return nil
	}
	for _, f := range curves {
		if lines := s.curve(g, x, f); len(lines.Series) > 0 {
			p := panel{Title: f.name, Drawing: lines.SVG()}
			if !x.tabled {
				p.table = sampled(lines, f.name)
			}
			out = append(out, p)
		}
	}
	return out
}

// curve is one figure over the loads of a set-up, a line for each contestant.
func (s *session) curve(g *setup, x places, f curve) chart.Lines {
	lines := chart.Lines{Title: sentence(f.name) + " against " + x.what + ", " + g.Name, Height: 290, Named: true, Y: axisOf(f.name, f.log, f.format)}
	lines.X = chart.Axis{Label: x.label, Log: true, Ticks: func(chart.Scale) []chart.Tick { return x.ticks }}
	if f.refs != nil {
		lines.Refs = f.refs(g)
	}
	for _, name := range s.patterns {
		line, said := s.series(name), []string{}
		for _, l := range g.loads {
			c := l.cell(name)
			if v := c.stat(f.of); len(v) > 0 && x.of(c) > 0 {
				line.Add(x.of(c), v.median(), fmt.Sprintf("%s at %s: %s", name, l.name, v.spread(f.format)))
				said = append(said, v.or(f.format)+" at "+l.name)
			}
		}
		if line.Desc = strings.Join(said, ", "); len(line.Points) > 0 {
			lines.Series = append(lines.Series, line)
		}
	}
	return lines
}
