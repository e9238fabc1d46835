package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// timelines of what a process uses, for experiments that record it. before is
// the point before, which may be the zero point at the start.
var timelines = []struct {
	title  string
	log    bool
	format func(float64) string
	of     func(p, before results.Point) float64
}{
	{"Goroutines", true, number, func(p, _ results.Point) float64 { return float64(p.Goroutines) }},
	{"Resident memory", false, size, func(p, _ results.Point) float64 { return float64(p.RSS) }},
	{"Garbage collection, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.GC }},
	{"Work, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.Work }},
	{"Switches of threads a second", true, number, func(p, before results.Point) float64 {
		return float64(p.Switches) / max(p.At-before.At, .001)
	}},
}

// timelines draws each figure of a set-up's processes over time, from the first
// repeat of every contestant; empty if memory over time was not recorded.
func (s *summary) timelines(g *setupGroup) []picture {
	var out []picture
	for _, l := range g.loads {
		if !slices.ContainsFunc(l.cells, func(c *cell) bool {
			return slices.ContainsFunc(c.series, func(p results.Point) bool { return p.RSS > 0 })
		}) {
			continue
		}
		for i := range timelines {
			if svg := s.timeline(l, i); svg != "" {
				out = append(out, picture{timelines[i].title, svg})
			}
		}
	}
	return out
}

func (s *summary) timeline(l *loadGroup, figure int) template.HTML {
	f := timelines[figure]
	lines := chart.Lines{Title: fmt.Sprintf("%s over time, %s", f.title, loadName(l.load)), Height: 200}
	var values []float64
	var desc []string
	end, most := 0.0, 0.0
	for _, c := range l.cells {
		n := s.shape(c.pattern)
		series := chart.Series{Name: c.pattern, Class: seriesClass(n), Shape: n}
		peak, before := 0.0, results.Point{}
		for i, p := range c.series {
			v := f.of(p, before)
			before = p
			if f.log {
				v = max(v, 1)
			}
			at := chart.XY{X: p.At, Y: v}
			series.Points = append(series.Points, at)
			if i%25 == 12 {
				series.Marks = append(series.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s after %.1f s: %s", c.pattern, p.At, f.format(v))})
			}
			values, peak, end = append(values, v), max(peak, v), max(end, p.At)
		}
		if len(series.Points) > 0 {
			lines.Series = append(lines.Series, series)
			desc = append(desc, fmt.Sprintf("%s at most %s", c.pattern, f.format(peak)))
			most = max(most, peak)
		}
	}
	if most == 0 {
		return ""
	}
	lines.Desc = strings.Join(desc, "; ")
	lines.X = chart.Axis{Label: "seconds", Scale: chart.Scale{Max: end}}
	lines.Y = chart.Axis{Scale: chart.FromZero(values...), Format: f.format}
	if f.log {
		lines.Y.Scale = chart.LogAround(values...)
	}
	return template.HTML(lines.SVG())
}
