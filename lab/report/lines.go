package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// latencies draws the good and the refused requests of each load over 1/(1−p).
func (s *session) latencies(g *setup) (out []panel) {
	for _, l := range g.loads {
		if l.untimed() || len(s.ownTables(g)) > 0 {
			continue
		}
		drawn := ""
		for i, nobody := range []string{"No request was answered well.", "Nothing was refused."} {
			o := outcomes[i]
			svg := s.latency(g, l, o.kind, o.word)
			if svg == "" {
				svg = `<p class="empty">` + nobody + `</p>`
			}
			drawn += "<h4>" + o.word + "</h4>" + svg
		}
		out = append(out, panel{loadName(l.name), "", template.HTML(drawn)})
	}
	return out
}

func (s *session) latency(g *setup, l *load, kind, word string) string {
	most := uint64(0)
	lines := chart.Lines{Title: fmt.Sprintf("Latency of %s requests by percentile, %s", word, loadName(l.name)), Height: 196}
	for i, c := range l.cells {
		// Lines that lie on each other keep their markers beside each other.
		aside := math.Pow(1.25, float64(i)-float64(len(l.cells)-1)/2)
		h := c.took[kind]
		if h == nil {
			continue
		}
		most = max(most, h.Count())
		at := func(x float64) chart.XY { return chart.XY{X: x, Y: float64(h.Quantile(1 - 1/x))} }
		line := s.series(c.pattern)
		line.Desc = fmt.Sprintf("median %s, p99 %s, max %s", nanos(at(2).Y), nanos(at(100).Y), nanos(float64(h.Max())))
		const steps = 48 // along the axis
		for i := range steps + 1 {
			line.Points = append(line.Points, at(math.Pow(max(float64(h.Count()), 2), float64(i)/steps)))
		}
		for i, x := range []float64{2, 10, 100, 1000, 10_000} {
			if float64(h.Count()) >= x {
				tip := fmt.Sprintf("%s: %s %% of %s requests took at most %s", c.pattern, []string{"50", "90", "99", "99.9", "99.99"}[i], word, nanos(at(x).Y))
				line.Marks = append(line.Marks, chart.Mark{XY: at(x * aside), Tip: tip})
			}
		}
		lines.Series = append(lines.Series, line)
	}
	if most == 0 {
		return ""
	}
	x, ticks := chart.Nines(most)
	lines.X = chart.Axis{Label: "share of requests that took at most this long", Scale: x, Ticks: func(chart.Scale) []chart.Tick { return ticks }}
	var all []float64 // of the whole set-up, so that its loads can be compared
	for _, c := range g.cells {
		if h := c.took[kind]; h != nil {
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
		if x := l.cells[0].multiple(); x > 0 {
			ticks = append(ticks, chart.Tick{At: x, Label: strconv.FormatFloat(x, 'g', 3, 64)})
		}
	}
	if len(ticks) < 2 {
		return nil
	}
	for _, f := range []struct {
		what   string
		of     figure
		format func(float64) string
		log    bool
	}{{"good answers a second", rate("ok"), number, false}, {"p99 of whatever was not refused", admitted, nanos, true}} {
		lines := chart.Lines{Title: sentence(f.what) + " against offered load", Height: 260, Y: chart.Axis{Format: f.format, Log: f.log}}
		lines.X = chart.Axis{Label: "offered, in multiples of the capacity (logarithmic)", Log: true, Ticks: func(chart.Scale) []chart.Tick { return ticks }}
		for _, name := range s.patterns {
			line, said := s.series(name), []string{}
			for _, l := range g.loads {
				c := l.cell(name)
				if c == nil || len(c.stat(f.of)) == 0 {
					continue
				}
				at, figure := chart.XY{X: c.multiple(), Y: c.stat(f.of).median()}, c.stat(f.of).or(f.format)
				line.Points = append(line.Points, at)
				line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s at %s: %s %s", name, l.name, figure, f.what)})
				said = append(said, figure+" at "+l.name)
			}
			line.Desc = strings.Join(said, ", ")
			lines.Series = append(lines.Series, line)
		}
		out = append(out, panel{f.what, "", template.HTML(lines.SVG())})
	}
	return out
}

// admitted is the p99 latency of whatever was not refused.
func admitted(r *results.Run) float64 {
	var all histogram.Histogram
	for _, o := range r.Outcomes {
		if o.Kind != "rejected" && o.Latency != nil {
			all.Merge(o.Latency)
		}
	}
	if all.Count() == 0 {
		return math.NaN()
	}
	return float64(all.Quantile(.99))
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
		if !slices.ContainsFunc(l.cells, func(c *cell) bool {
			return slices.ContainsFunc(c.series(), func(p results.Point) bool { return p.RSS > 0 })
		}) {
			continue
		}
		for _, f := range timelines {
			lines := chart.Lines{Title: fmt.Sprintf("%s over time, %s", f.name, loadName(l.name)), Height: 200, Y: chart.Axis{Format: f.format, Log: f.log}}
			for _, c := range l.cells {
				lines.Series = append(lines.Series, f.draw(s.series(c.pattern), c.series()))
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
		if c.multiple() <= 1 || !slices.ContainsFunc(points, func(p results.Point) bool { return p.Limit > 0 && p.Limit != points[0].Limit }) {
			continue
		}
		name := c.pattern + " at " + c.load
		lines := chart.Lines{Title: "Limit, in flight and waiting over time: " + name, Height: 180}
		for i, f := range limitLines {
			lines.Series = append(lines.Series, f.draw(series(i, f.name), points))
		}
		out = append(out, overTime(name, lines)...)
	}
	return out
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
	return []panel{{name, "", template.HTML(lines.SVG())}}
}
