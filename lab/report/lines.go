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
				tip := fmt.Sprintf("%s: %s took at most %s", c.Pattern, t.Label, nanos(at(t.At).Y))
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
	lines.Y = chart.Axis{Label: "time to the answer, logarithmic", Scale: chart.LogAround(all...), Format: nanos}
	return lines.SVG()
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
	return s.against(g, goodputCurve, curve{column{"p99 of whatever was not refused", quantile(.99, "ok", "error", "timeout"), nanos}, true, nil})
}

// against draws figures over the loads of a set-up.
func (s *session) against(g *setup, curves ...curve) (out []panel) {
	if len(g.sweep()) == 0 {
		return nil
	}
	for _, f := range curves {
		if lines := s.curve(g, f); len(lines.Series) > 0 {
			out = append(out, panel{Title: f.name, Drawing: lines.SVG(), table: sampled(lines, f.name)})
		}
	}
	return out
}

// curve is one figure over the loads of a set-up, a line for each contestant.
func (s *session) curve(g *setup, f curve) chart.Lines {
	var ticks []chart.Tick
	for _, x := range g.sweep() {
		ticks = append(ticks, chart.Tick{At: x, Label: strconv.FormatFloat(x, 'g', 3, 64) + "x"})
	}
	lines := chart.Lines{Title: sentence(f.name) + " against offered load", Height: 290, Named: true, Y: chart.Axis{Label: f.name + pick(f.log, ", logarithmic", ""), Format: f.format, Log: f.log}}
	lines.X = chart.Axis{Label: "offered, in multiples of the capacity", Log: true, Ticks: func(chart.Scale) []chart.Tick { return ticks }}
	if f.refs != nil {
		lines.Refs = f.refs(g)
	}
	for _, name := range s.patterns {
		line, said := s.series(name), []string{}
		for _, l := range g.loads {
			c := l.cell(name)
			v := c.stat(f.of)
			if len(v) == 0 || !(c.multiple > 0) {
				continue
			}
			at := chart.XY{X: c.multiple, Y: v.median()}
			line.Points = append(line.Points, at)
			line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s at %s: %s", name, l.name, v.spread(f.format))})
			said = append(said, v.or(f.format)+" at "+l.name)
		}
		if line.Desc = strings.Join(said, ", "); len(line.Points) > 0 {
			lines.Series = append(lines.Series, line)
		}
	}
	return lines
}

// priorities draws what requests got by their priority: where the load is swept, the share
// of critical and of other requests that was answered well; otherwise the share of each
// priority that was refused, left, or would have been refused in a dry run.
func (s *session) priorities(g *setup) (out []panel) {
	sent, ok := extra("critical_offered"), extra("critical_ok")
	less := func(f, g figure) figure { return func(r *results.Run) float64 { return f(r) - g(r) } }
	offeredRate := func(r *results.Run) float64 { return offered(r) / r.Elapsed }
	out = s.against(g,
		curve{column{"critical requests answered well", ok.per(sent), percent}, false, nil},
		curve{column{"other requests answered well", less(rate("ok"), ok).per(less(offeredRate, sent)), percent}, false, nil})
	var columns []column
	for _, p := range []string{"low", "normal", "high", "critical"} {
		share := extra("share_" + p)
		of := column{p, func(r *results.Run) float64 { return share(r) / 100 }, percent}
		if slices.ContainsFunc(g.cells, func(c *cell) bool { return len(c.stat(of.of)) > 0 }) {
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

// flows draws what came back over time, of each contestant under the main load.
func (s *session) flows(g *setup) (out []panel) {
	const bins = 30
	l := g.main()
	for _, c := range l.cells {
		points := c.series()
		if len(points) < 10 || s.detail == mainLoads {
			continue
		}
		each := (len(points) + bins - 1) / bins
		seconds := (points[len(points)-1].At - points[0].At) / float64(len(points)-1) * float64(each)
		lines := chart.Lines{Title: fmt.Sprintf("What came back over time, %s, %s", c.Pattern, loadName(l.name)), Height: 200, Y: chart.Axis{Label: "requests a second", Format: number}}
		for _, o := range outcomes {
			line, most := chart.Series{Name: o.word, Number: o.line}, 0.0
			for i := 0; i+each <= len(points); i += each {
				n := uint64(0)
				for _, p := range points[i : i+each] {
					n += o.in(p)
				}
				at := chart.XY{X: points[i].At + seconds/2, Y: float64(n) / max(seconds, .001)}
				most = max(most, at.Y)
				if line.Points = append(line.Points, at); len(line.Points)%8 == 4 {
					line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s after %.1f s: %s a second", o.word, at.X, number(at.Y))})
				}
			}
			if line.Desc = "at most " + number(most); most > 0 {
				lines.Series = append(lines.Series, line)
			}
		}
		out = append(out, overTime(c.Pattern, loadName(l.name), lines)...)
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

var timelines = []over{
	{"Goroutines", true, number, func(p, _ results.Point) float64 { return positive(float64(p.Goroutines)) }},
	{"Resident memory", false, size, func(p, _ results.Point) float64 { return positive(float64(p.RSS)) }},
	{"Garbage collection, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.GC }},
	{"Work, share of the processor time", false, percent, func(p, _ results.Point) float64 { return p.Work }},
	{"Switches of threads a second", true, number, func(p, before results.Point) float64 {
		return positive(float64(p.Switches) / max(p.At-before.At, .001))
	}},
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

// timelines draws what the processes of a set-up used over time, if that was recorded.
func (s *session) timelines(g *setup) (out []panel) {
	for _, l := range s.drawn(g) {
		for _, f := range timelines {
			lines := chart.Lines{Title: fmt.Sprintf("%s over time, %s", f.name, loadName(l.name)), Height: 210, Y: chart.Axis{Label: pick(f.log, "logarithmic", ""), Format: f.format, Log: f.log}}
			if strings.HasSuffix(f.format(0), "B") {
				lines.Y.Ticks = sizeTicks
			}
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
func (f over) draw(line chart.Series, points []results.Point) chart.Series {
	const most = 100
	var all []chart.XY
	before, top := results.Point{}, 0.0
	for _, p := range points {
		if y := f.of(p, before); !math.IsNaN(y) {
			all, top = append(all, chart.XY{X: p.At, Y: y}), max(top, y)
		}
		before = p
	}
	for each := range slices.Chunk(all, max((len(all)+most-1)/most, 1)) {
		var at chart.XY
		for _, p := range each {
			at.X, at.Y = at.X+p.X/float64(len(each)), at.Y+p.Y/float64(len(each))
		}
		line.Points = append(line.Points, at)
		if len(line.Points)%20 == 10 {
			line.Marks = append(line.Marks, chart.Mark{XY: at, Tip: fmt.Sprintf("%s after %.1f s: %s", line.Name, at.X, f.format(at.Y))})
		}
	}
	line.Desc = "at most " + f.format(top)
	return line
}

// overTime is a panel, unless there is nothing in it.
func overTime(name, note string, lines chart.Lines) []panel {
	if !slices.ContainsFunc(lines.Series, func(s chart.Series) bool {
		return slices.ContainsFunc(s.Points, func(p chart.XY) bool { return p.Y > 0 })
	}) {
		return nil
	}
	lines.X.Label = "seconds"
	return []panel{{name, note, lines.SVG(), sampled(lines, pick(note == "", name, name+", "+note)+", seconds")}}
}

// sampled is a table of lines: a row for each, and a column for every place on the x axis,
// or for some, if they are many.
func sampled(lines chart.Lines, name string) []table {
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
		xs = xs[:0]
		for i := range some {
			xs = append(xs, last*float64(i+1)/some)
		}
	}
	header := []string{name}
	for _, x := range xs {
		header = append(header, strconv.FormatFloat(x, 'g', 3, 64))
	}
	var out []row
	for _, s := range lines.Series {
		line := row{Cells: []string{s.Name}}
		for i, x := range xs {
			from := math.Inf(-1)
			if i > 0 {
				from = xs[i-1]
			}
			text := none
			for _, p := range s.Points { // the last since the column before
				if p.X > from && p.X <= x {
					text = lines.Y.Format(p.Y)
				}
			}
			line.Cells = append(line.Cells, text)
		}
		out = append(out, line)
	}
	return flat(out, header...)
}
