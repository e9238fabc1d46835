package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// An experiment whose loads are multiples of a capacity (a run's parameter
// "load") can be drawn over them.

// multiple is a run's load as a multiple of the capacity; 0 if it is not one.
func multiple(r *results.Run) float64 {
	x, _ := r.Params["load"].(float64)
	return x
}

// curves draws a set-up over its loads; empty if these are no multiples.
func (s *summary) curves(g *setupGroup) []picture {
	var loads []float64
	for _, l := range g.loads {
		if x := l.cells[0].multiple; x > 0 {
			loads = append(loads, x)
		}
	}
	if len(loads) < 2 {
		return nil
	}
	goodput := s.curve(g, loads, "Good answers a second against offered load", "good answers a second", number, chart.FromZero,
		func(c *cell) (float64, bool) { return c.good.median(), len(c.good) > 0 })
	p99 := s.curve(g, loads, "P99 latency of whatever was not refused against offered load", "p99 of whatever was not refused", nanos, chart.LogAround,
		func(c *cell) (float64, bool) { return c.admitted.median(), len(c.admitted) > 0 })
	return []picture{{"good answers a second", goodput}, {"p99 of whatever was not refused", p99}}
}

func (s *summary) curve(g *setupGroup, loads []float64, title, what string, format func(float64) string,
	scale func(...float64) chart.Scale, of func(*cell) (float64, bool)) template.HTML {
	lines := chart.Lines{Title: title, Height: 260}
	var values []float64
	var desc []string
	for n, name := range s.patterns {
		series := chart.Series{Name: name, Class: seriesClass(n), Shape: n}
		for _, l := range g.loads {
			i := slices.IndexFunc(l.cells, func(c *cell) bool { return c.pattern == name })
			if i < 0 {
				continue
			}
			y, ok := of(l.cells[i])
			if !ok {
				continue
			}
			values = append(values, y)
			at := chart.XY{X: l.cells[i].multiple, Y: y}
			series.Points = append(series.Points, at)
			tip := fmt.Sprintf("%s at %s: %s %s", name, l.load, format(y), what)
			series.Marks = append(series.Marks, chart.Mark{XY: at, Tip: tip})
			desc = append(desc, tip)
		}
		lines.Series = append(lines.Series, series)
	}
	lines.Desc = strings.Join(desc, "; ")
	lines.X = chart.Axis{Label: "offered, in multiples of the capacity (logarithmic)", Scale: chart.LogAround(loads...)}
	for _, x := range loads {
		lines.X.Ticks = append(lines.X.Ticks, chart.Tick{At: x, Label: strconv.FormatFloat(x, 'g', 3, 64)})
	}
	lines.Y = chart.Axis{Scale: scale(values...), Format: format}
	return template.HTML(lines.SVG())
}

// overTime are the figures of a limiter that are drawn over time.
var overTime = []struct {
	name string
	of   func(results.Point) int
}{
	{"limit", func(p results.Point) int { return p.Limit }},
	{"in flight", func(p results.Point) int { return p.InFlight }},
	{"waiting", func(p results.Point) int { return p.Queued }},
}

// limits draws what each contestant whose limit moves did in its first repeat,
// under every load beyond the capacity.
func (g *setupGroup) limits() []picture {
	var out []picture
	for _, l := range g.loads {
		for _, c := range l.cells {
			if c.multiple > 1 && moves(c.series) {
				out = append(out, picture{c.pattern + " at " + c.load, limitChart(c)})
			}
		}
	}
	return out
}

// moves reports whether the limit took more than one value.
func moves(points []results.Point) bool {
	return slices.ContainsFunc(points, func(p results.Point) bool { return p.Limit > 0 && p.Limit != points[0].Limit })
}

func limitChart(c *cell) template.HTML {
	lines := chart.Lines{Title: fmt.Sprintf("Limit, in flight and waiting over time: %s at %s", c.pattern, c.load), Height: 180}
	var values []float64
	end := c.series[len(c.series)-1].At
	for n, f := range overTime {
		series := chart.Series{Name: f.name, Class: seriesClass(n), Shape: n}
		most := 0
		for i, p := range c.series {
			v := f.of(p)
			most = max(most, v)
			at := chart.XY{X: p.At, Y: float64(v)}
			series.Points = append(series.Points, at)
			if i%25 == 12 {
				series.Marks = append(series.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s after %.1f s: %d", f.name, p.At, v)})
			}
		}
		values = append(values, float64(most))
		lines.Desc += fmt.Sprintf("%s at most %d; ", f.name, most)
		lines.Series = append(lines.Series, series)
	}
	lines.X = chart.Axis{Label: "seconds", Scale: chart.Scale{Max: end}}
	lines.Y = chart.Axis{Scale: chart.FromZero(values...)}
	return template.HTML(lines.SVG())
}

// overTimeKeys is the legend of limitChart.
func overTimeKeys() []legendKey {
	var out []legendKey
	for n, f := range overTime {
		out = append(out, legendKey{f.name, seriesClass(n), template.HTML(chart.Marker(seriesClass(n), n))})
	}
	return out
}
