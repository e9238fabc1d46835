package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// latencies draws the good and the refused requests of each load over 1/(1−p).
func (s *session) latencies(g *setup) (out []panel) {
	for _, l := range g.loads {
		if l.untimed() {
			continue
		}
		var drawn template.HTML
		for i, nobody := range []template.HTML{"No request was answered well.", "Nothing was refused."} {
			o := outcomes[i]
			drawn += template.HTML("<h4>"+o.word+"</h4>") + cmp.Or(s.percentiles(g, l, o.kind, o.word), `<p class="empty">`+nobody+`</p>`)
		}
		out = append(out, panel{loadName(l.name), "", drawn})
	}
	return out
}

// percentiles draws the requests with one outcome; empty if there are none.
func (s *session) percentiles(g *setup, l *load, kind, word string) template.HTML {
	most := uint64(0)
	lines := chart.Lines{Title: fmt.Sprintf("Latency of %s requests by percentile, %s", word, loadName(l.name)), Height: 196}
	for i, c := range l.cells {
		h := took(c.runs, kind)
		if h.Count() == 0 {
			continue
		}
		n := float64(h.Count())
		most = max(most, h.Count())
		at := func(x float64) chart.XY { return chart.XY{X: x, Y: float64(h.Quantile(1 - 1/x))} }
		line := s.series(c.Pattern)
		line.Desc = fmt.Sprintf("median %s, p99 %s, max %s", nanos(at(2).Y), nanos(at(100).Y), nanos(float64(h.Max())))
		const steps = 48 // along the axis
		for step := range steps + 1 {
			line.Points = append(line.Points, at(math.Pow(max(n, 2), float64(step)/steps)))
		}
		// Lines that lie on each other keep their markers beside each other.
		aside := math.Pow(1.25, float64(i)-float64(len(l.cells)-1)/2)
		nines := chart.Nines(h.Count())
		for _, t := range nines.Ticks(nines.Scale) {
			if t.At <= min(n, 10_000) {
				tip := fmt.Sprintf("%s: %s of %s requests took at most %s", c.Pattern, t.Label, word, nanos(at(t.At).Y))
				line.Marks = append(line.Marks, chart.Mark{XY: at(t.At * aside), Tip: tip})
			}
		}
		lines.Series = append(lines.Series, line)
	}
	if most == 0 {
		return ""
	}
	lines.X = chart.Nines(most)
	lines.X.Label = "share of requests that took at most this long"
	var all []float64 // of the whole set-up, so that its loads can be compared
	for _, c := range g.cells {
		if h := took(c.runs, kind); h.Count() > 0 {
			all = append(all, float64(h.Quantile(.02)), float64(h.Max()))
		}
	}
	lines.Y = chart.Axis{Scale: chart.LogAround(all...), Format: nanos}
	return lines.SVG()
}

// curves draws a set-up over its loads, if these are multiples of a capacity.
func (s *session) curves(g *setup) (out []panel) {
	var ticks []chart.Tick
	for _, l := range g.loads {
		if x := l.cells[0].multiple; x > 0 {
			ticks = append(ticks, chart.Tick{At: x, Label: strconv.FormatFloat(x, 'g', 3, 64)})
		}
	}
	if len(ticks) < 2 {
		return nil
	}
	for _, f := range []struct {
		column
		log bool
	}{
		{column{"good answers a second", rate("ok"), number}, false},
		{column{"p99 of whatever was not refused", quantile(.99, "ok", "error", "timeout"), nanos}, true},
	} {
		lines := chart.Lines{Title: sentence(f.name) + " against offered load", Height: 260, Y: chart.Axis{Format: f.format, Log: f.log}}
		lines.X = chart.Axis{Label: "offered, in multiples of the capacity (logarithmic)", Log: true, Ticks: func(chart.Scale) []chart.Tick { return ticks }}
		for _, name := range s.patterns {
			line, said := s.series(name), []string{}
			for _, l := range g.loads {
				c := l.cell(name)
				v := c.stat(f.of)
				if len(v) == 0 {
					continue
				}
				at := chart.XY{X: c.multiple, Y: v.median()}
				line.Points = append(line.Points, at)
				line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s at %s: %s %s", name, l.name, v.or(f.format), f.name)})
				said = append(said, v.or(f.format)+" at "+l.name)
			}
			line.Desc = strings.Join(said, ", ")
			lines.Series = append(lines.Series, line)
		}
		out = append(out, panel{f.name, "", lines.SVG()})
	}
	return out
}

// over is a figure over the time of a run; before is the point before.
type over struct {
	name   string
	log    bool
	format func(float64) string
	of     func(p, before results.Point) float64
}

var timelines = []over{
	{"Goroutines", true, number, func(p, _ results.Point) float64 { return float64(p.Goroutines) }},
	{"Resident memory", false, size, func(p, _ results.Point) float64 { return float64(p.RSS) }},
	{"Garbage collection, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.GC }},
	{"Work, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.Work }},
	{"Switches of threads a second", true, number, func(p, before results.Point) float64 {
		return float64(p.Switches) / max(p.At-before.At, .001)
	}},
}

var limitLines = []over{
	{"limit", false, number, func(p, _ results.Point) float64 { return float64(p.Limit) }},
	{"in flight", false, number, func(p, _ results.Point) float64 { return float64(p.InFlight) }},
	{"waiting", false, number, func(p, _ results.Point) float64 { return float64(p.Queued) }},
}

// timelines draws what the processes of a set-up used over time, if that was recorded.
func (s *session) timelines(g *setup) (out []panel) {
	for _, l := range g.loads {
		for _, f := range timelines {
			lines := chart.Lines{Title: fmt.Sprintf("%s over time, %s", f.name, loadName(l.name)), Height: 200, Y: chart.Axis{Format: f.format, Log: f.log}}
			for _, c := range l.cells {
				lines.Series = append(lines.Series, f.draw(s.series(c.Pattern), c.series()))
			}
			out = append(out, overTime(f.name, lines)...)
		}
	}
	return out
}

// limits draws what each contestant did whose limit moves.
func (s *session) limits(g *setup) (out []panel) {
	for _, c := range g.cells {
		points := c.series()
		moves := slices.ContainsFunc(points, func(p results.Point) bool { return p.Limit > 0 && p.Limit != points[0].Limit })
		if !moves || !(c.multiple > 1) {
			continue
		}
		out = append(out, limitPanel(c.Pattern+" at "+c.Load, points)...)
	}
	return out
}

// limitPanel draws what one limit did; without one, what was in flight and waiting.
func limitPanel(name string, points []results.Point) []panel {
	lines := chart.Lines{Title: "Limit, in flight and waiting over time: " + name, Height: 180}
	limited := slices.ContainsFunc(points, func(p results.Point) bool { return p.Limit > 0 })
	for i, f := range limitLines {
		if i == 0 && !limited {
			continue // a limit of 0 would be another statement
		}
		lines.Series = append(lines.Series, f.draw(chart.Series{Name: f.name, Number: i}, points))
	}
	return overTime(name, lines)
}

// draw fills the line with the figure.
func (f over) draw(line chart.Series, points []results.Point) chart.Series {
	before, most := results.Point{}, 0.0
	for i, p := range points {
		at := chart.XY{X: p.At, Y: f.of(p, before)}
		before, most = p, max(most, at.Y)
		line.Points = append(line.Points, at)
		if i%25 == 12 {
			line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s after %.1f s: %s", line.Name, p.At, f.format(at.Y))})
		}
	}
	line.Desc = "at most " + f.format(most)
	return line
}

// overTime is a panel, unless there is nothing in it.
func overTime(name string, lines chart.Lines) []panel {
	if !slices.ContainsFunc(lines.Series, func(s chart.Series) bool {
		return slices.ContainsFunc(s.Points, func(p chart.XY) bool { return p.Y > 0 })
	}) {
		return nil
	}
	lines.X.Label = "seconds"
	return []panel{{name, "", lines.SVG()}}
}
