package report

import (
	"cmp"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// latencies draws the good and the refused requests of each load over 1/(1−p).
func (s *session) latencies(g *setup) (out []panel) {
	for _, l := range s.drawn(g) {
		if l.untimed() {
			continue
		}
		var drawn template.HTML
		for i, nobody := range []template.HTML{"No request was answered well.", "Nothing was refused."} {
			o := outcomes[i]
			drawn += template.HTML("<h4>"+o.word+"</h4>") + cmp.Or(s.percentiles(g, l, o.kind, o.word), `<p class="empty">`+nobody+`</p>`)
		}
		out = append(out, panel{Title: loadName(l.name), Drawing: drawn})
	}
	return out
}

// percentiles draws the requests with one outcome; empty if there are none.
func (s *session) percentiles(g *setup, l *load, kind, word string) template.HTML {
	most := uint64(0)
	lines := chart.Lines{Title: fmt.Sprintf("Latency of %s requests by percentile, %s", word, loadName(l.name)), Height: 206}
	for i, c := range l.cells {
		h := took(c.runs, kind)
		if h.Count() == 0 {
			continue
		}
		n := float64(h.Count())
		most = max(most, h.Count())
		at := func(x float64) float64 { return float64(h.Quantile(1 - 1/x)) }
		line := s.series(c.Pattern)
		line.Desc = fmt.Sprintf("median %s, p99 %s, max %s", nanos(at(2)), nanos(at(100)), nanos(float64(h.Max())))
		const steps = 40 // along the axis
		for step := range steps + 1 {
			x := math.Pow(max(n, 2), float64(step)/steps)
			line.Add(x, at(x), "")
		}
		// Lines that lie on each other keep their markers beside each other.
		aside := math.Pow(1.25, float64(i)-float64(len(l.cells)-1)/2)
		nines := chart.Nines(h.Count())
		for _, t := range nines.Ticks(nines.Scale) {
			if t.At <= min(n, 10_000) {
				tip := fmt.Sprintf("%s: %s took at most %s", c.Pattern, t.Label, nanos(at(t.At)))
				line.Marks = append(line.Marks, chart.Mark{XY: chart.XY{X: t.At * aside, Y: at(t.At * aside)}, Tip: tip})
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
	lines.Y = chart.Axis{Label: "time to the answer, logarithmic", Scale: chart.LogAround(all...), Format: nanos}
	return lines.SVG()
}

// priorities draws what requests got by their priority: where the load is swept, the share
// of critical and of other requests that was answered well; otherwise the share of each
// priority that was refused, left, or would have been refused in a dry run.
func (s *session) priorities(g *setup) (out []panel) {
	sent, ok := extra("critical_offered"), extra("critical_ok")
	less := func(f, g figure) figure { return func(r *results.Run) float64 { return f(r) - g(r) } }
	offeredRate := func(r *results.Run) float64 { return offered(r) / r.Elapsed }
	out = s.against(g, g.multiples(),
		curve{column{"critical requests answered well", ok.per(sent), percent}, false, nil},
		curve{column{"other requests answered well", less(rate("ok"), ok).per(less(offeredRate, sent)), percent}, false, nil})
	var columns []column
	for _, p := range []string{"low", "normal", "high", "critical"} {
		share := extra("share_" + p)
		of := column{p, func(r *results.Run) float64 { return share(r) / 100 }, percent}
		if have([]column{of}, g.cells...) {
			columns = append(columns, of)
		}
	}
	if len(columns) == 0 {
		return out
	}
	for _, l := range g.loads {
		const title = "Refused, of the requests of each priority"
		d := chart.Dots{Title: title + ", " + l.name, X: chart.Axis{Format: percent, Scale: chart.Scale{Max: 1}}}
		var lines []row
		for _, c := range l.cells {
			d.Rows = append(d.Rows, chart.DotRow{Name: c.Pattern})
			for _, of := range columns {
				v := c.stat(of.of)
				d.Rows = append(d.Rows, chart.DotRow{Name: of.name, Series: s.shape(c.Pattern), Values: v, Median: v.median(), Label: v.or(percent), Tip: c.Pattern + ", " + of.name + ": " + v.spread(percent)})
			}
			lines = append(lines, c.row(columns))
		}
		out = append(out, panel{Title: title, Note: loadName(l.name) + "; in a dry run what would have been", Drawing: d.SVG(), table: flat(lines, names("refused", columns)...)})
	}
	return out
}

// over is a figure over the time of a run; before is the point before. NaN: the point does
// not have it.
type over struct {
	name   string
	log    bool
	format func(float64) string
	of     func(p, before results.Point) float64
}

// each is a count of every point, a second.
func each(count func(results.Point) uint64) func(p, before results.Point) float64 {
	return func(p, before results.Point) float64 { return float64(count(p)) / max(p.At-before.At, .001) }
}

var switches = each(func(p results.Point) uint64 { return p.Switches })

var timelines = []over{
	{"Goroutines", true, number, func(p, _ results.Point) float64 { return positive(float64(p.Goroutines)) }},
	{"Resident memory", false, size, func(p, _ results.Point) float64 { return positive(float64(p.RSS)) }},
	{"Garbage collection, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.GC }},
	{"Work, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.Work }},
	{"Switches of threads a second", true, number, func(p, before results.Point) float64 { return positive(switches(p, before)) }},
}

var limitLines = []over{
	{"in flight", false, number, func(p, _ results.Point) float64 { return float64(p.InFlight) }},
	{"waiting", false, number, func(p, _ results.Point) float64 { return float64(p.Queued) }},
	{"limit", false, number, func(p, _ results.Point) float64 { return positive(float64(p.Limit)) }}, // last, for in flight lies on it
}

func limitNames() (out []string) {
	for _, f := range limitLines {
		out = append(out, f.name)
	}
	return out
}

// flows draws what came back over time, of each contestant under the main load.
func (s *session) flows(g *setup) (out []panel) {
	load := loadName(g.main().name)
	for _, c := range g.main().cells {
		points := c.series()
		if len(points) < 10 || s.detail == mainLoads {
			continue
		}
		lines := chart.Lines{Title: fmt.Sprintf("What came back over time, %s, %s", c.Pattern, load), Height: 200, Y: chart.Axis{Label: "requests a second", Format: number}}
		for _, o := range outcomes {
			f := over{format: func(v float64) string { return number(v) + " a second" }, of: each(o.in)}
			if line := f.draw(chart.Series{Name: o.word, Number: o.line}, points); above0(line) {
				lines.Series = append(lines.Series, line)
			}
		}
		out = append(out, overTime(c.Pattern, load, lines)...)
	}
	return out
}

// timelines draws what the processes of a set-up used over time, if that was recorded.
func (s *session) timelines(g *setup) (out []panel) {
	for _, l := range s.drawn(g) {
		for _, f := range timelines {
			lines := chart.Lines{Title: fmt.Sprintf("%s over time, %s", f.name, loadName(l.name)), Height: 210, Y: axisOf("", f.log, f.format)}
			for _, c := range l.cells {
				lines.Series = append(lines.Series, f.draw(s.series(c.Pattern), c.series()))
			}
			out = append(out, overTime(f.name, loadName(l.name), lines)...)
		}
	}
	return out
}

// limits draws what each contestant did whose limit moves.
func (s *session) limits(g *setup) (out []panel) {
	main := g.main()
	for _, c := range g.cells {
		points := c.series()
		moves := slices.ContainsFunc(points, func(p results.Point) bool { return p.Limit > 0 && p.Limit != points[0].Limit })
		if !moves || c.multiple <= 1 || s.detail <= mainLoads && c.Load != main.name {
			continue
		}
		out = append(out, limitPanel(c.Pattern+" at "+c.Load, points)...)
	}
	return out
}

// limitPanel draws what one limit did; without one, what was in flight and waiting.
func limitPanel(name string, points []results.Point) []panel {
	lines := chart.Lines{Title: "Limit, in flight and waiting over time: " + name, Height: 200, Y: chart.Axis{Label: "requests", Format: number}}
	for i, f := range limitLines {
		if line := f.draw(chart.Series{Name: f.name, Number: i}, points); len(line.Points) > 0 {
			lines.Series = append(lines.Series, line)
		}
	}
	return overTime(name, "", lines)
}

// draw fills the line with the figure: with means of the points between, if they are many.
// The first point is as long as the others.
func (f over) draw(line chart.Series, points []results.Point) chart.Series {
	const most = 60
	before, top := results.Point{}, 0.0
	if n := len(points); n > 1 {
		before.At = points[0].At - (points[n-1].At-points[0].At)/float64(n-1)
	}
	var all []chart.XY
	for _, p := range points {
		if y := f.of(p, before); !math.IsNaN(y) {
			all, top = append(all, chart.XY{X: p.At, Y: y}), max(top, y)
		}
		before = p
	}
	for few := range slices.Chunk(all, max((len(all)+most-1)/most, 1)) {
		x, y, tip := 0.0, 0.0, ""
		for _, p := range few {
			x, y = x+p.X/float64(len(few)), y+p.Y/float64(len(few))
		}
		if len(line.Points)%12 == 6 {
			tip = fmt.Sprintf("%s after %.1f s: %s", line.Name, x, f.format(y))
		}
		line.Add(x, y, tip)
	}
	line.Desc = "at most " + f.format(top)
	return line
}

func above0(line chart.Series) bool {
	return slices.ContainsFunc(line.Points, func(p chart.XY) bool { return p.Y > 0 })
}

// overTime is a panel, unless there is nothing in it.
func overTime(name, note string, lines chart.Lines) []panel {
	if !slices.ContainsFunc(lines.Series, above0) {
		return nil
	}
	lines.X.Label = "seconds"
	return []panel{{name, note, lines.SVG(), sampled(lines, strings.Join(filled(name, note, "seconds"), ", "))}}
}

// sampled is a table of lines: a row for each, and a column for every place on the x axis,
// or for some, if they are many.
func sampled(lines chart.Lines, name string) []Table {
	const some = 8
	var xs []float64
	for _, s := range lines.Series {
		for _, p := range s.Points {
			xs = append(xs, p.X)
		}
	}
	slices.Sort(xs)
	if xs = slices.Compact(xs); len(xs) > some {
		last := xs[len(xs)-1]
		xs = xs[:some]
		for i := range xs {
			xs[i] = last * float64(i+1) / some
		}
	}
	header, names := []string{name}, []string{}
	for _, x := range xs {
		header = append(header, strconv.FormatFloat(x, 'g', 3, 64))
	}
	for _, s := range lines.Series {
		names = append(names, s.Name)
	}
	return cross(header, names, func(i, j int) string {
		from, text := math.Inf(-1), none
		if j > 0 {
			from = xs[j-1]
		}
		for _, p := range lines.Series[i].Points { // the last since the column before
			if p.X > from && p.X <= xs[j] {
				text = lines.Y.Format(p.Y)
			}
		}
		return text
	})
}
