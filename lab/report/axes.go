package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// axis is what the loads of a set-up count, if they are sizes of something.
func (s *session) axis(g *setup) string { return s.Family.Axes[g.Name] }

// ofSize are the figures that are shown against a size.
var ofSize = []column{
	{"throughput", answers, number}, {"good/s", rate("ok"), number}, refusedShare, {"p99, good", quantile(.99, "ok"), nanos},
}

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
func (s *session) sizeTable(g *setup) []table {
	var lines []row
	for _, c := range g.cells {
		line := c.row(ofSize)
		line.Cells[0] = c.Load
		lines = append(lines, line)
	}
	return flat(lines, names(s.axis(g), ofSize)...)
}

// sizeCurves draws each figure against the size.
func (s *session) sizeCurves(g *setup) (out []panel) {
	axis := s.axis(g)
	if axis == "" {
		return nil
	}
	sizes := map[*cell]float64{}
	smallest := math.Inf(1)
	for _, c := range g.cells {
		if size := c.stat(sizeOf).median(); size >= 0 {
			sizes[c] = size
			if size > 0 {
				smallest = min(smallest, size)
			}
		}
	}
	// A logarithmic axis has no place for a size of 0: it lies where half of the smallest would.
	place := func(size float64) float64 { return max(size, smallest/2) }
	var ticks []chart.Tick
	for _, size := range slices.Sorted(maps.Values(sizes)) {
		ticks = append(ticks, chart.Tick{At: place(size), Label: number(size)})
	}
	if len(ticks) < 2 {
		return nil
	}
	for _, f := range ofSize {
		if f.name == refusedShare.name {
			continue // the difference between the first two
		}
		line, said := chart.Series{Name: f.name}, []string{}
		for _, c := range g.cells {
			v := c.stat(f.of)
			size, known := sizes[c]
			if len(v) == 0 || !known {
				continue
			}
			at := chart.XY{X: place(size), Y: v.median()}
			line.Points = append(line.Points, at)
			line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s: %s %s", c.Load, v.or(f.format), f.name)})
			said = append(said, v.or(f.format)+" at "+c.Load)
		}
		if len(line.Points) < 2 {
			continue
		}
		line.Desc = strings.Join(said, ", ")
		lines := chart.Lines{Title: sentence(f.name) + " against " + axis + ", " + g.Name, Height: 220, Series: []chart.Series{line}, Y: chart.Axis{Format: f.format}}
		lines.X = chart.Axis{Label: axis + " (logarithmic)", Log: true, Ticks: func(chart.Scale) []chart.Tick { return ticks }}
		out = append(out, panel{Title: f.name, Drawing: lines.SVG()})
	}
	return out
}
