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

// seriesClass is the colour of a contestant.
func seriesClass(n int) string { return fmt.Sprintf("s%d", n%8) }

// outcomeKinds in stacking order, with the words shown for them.
var outcomeKinds = []struct{ class, word string }{
	{"ok", "good"}, {"rejected", "refused"}, {"error", "errors"}, {"timeout", "timeouts"},
}

// outcomesChart stacks what came back per second, a bar for each contestant.
func outcomesChart(l *loadGroup) template.HTML {
	var totals []float64
	b := chart.Bars{Title: fmt.Sprintf("Requests a second by outcome, %s", loadName(l.load))}
	var desc []string
	for _, c := range l.cells {
		parts := []float64{c.good.median(), c.refused.median(), c.errors.median(), c.timeouts.median()}
		row := chart.BarRow{Name: c.pattern, Label: number(parts[0]) + " good/s"}
		if len(c.killed) > 0 {
			row.Alarm = fmt.Sprintf("killed in %d of %s", len(c.killed), count(c.runs, "run"))
		}
		if c.runs == 0 {
			row.Alarm = "no measurement"
		}
		for i, k := range outcomeKinds {
			share := 0.0
			if c.total() > 0 {
				share = parts[i] / c.total()
			}
			row.Segments = append(row.Segments, chart.Segment{
				Class: k.class, Value: parts[i],
				Tip: fmt.Sprintf("%s: %s %s a second, %s of what came back", c.pattern, number(parts[i]), k.word, percent(share)),
			})
		}
		totals = append(totals, c.total())
		desc = append(desc, fmt.Sprintf("%s %s good of %s", c.pattern, number(parts[0]), number(c.total())))
		b.Rows = append(b.Rows, row)
	}
	b.Desc = strings.Join(desc, "; ")
	b.X = chart.Axis{Label: "requests a second", Scale: chart.FromZero(totals...)}
	return template.HTML(b.SVG())
}

// latencyScale covers every latency of one outcome under the loads of the
// ledger, so that these can be compared; any other load has a scale of its own.
func latencyScale(g *setupGroup, own *loadGroup, of func(*cell) *latency) chart.Scale {
	var values []float64
	compared := func(l *loadGroup) bool { return slices.Contains(knownLoads, l.load) }
	for _, l := range g.loads {
		if l != own && !(compared(l) && compared(own)) {
			continue
		}
		for _, c := range l.cells {
			if h := &of(c).merged; h.Count() > 0 {
				values = append(values, float64(h.Quantile(.02)), float64(h.Max()))
			}
		}
	}
	return chart.LogAround(values...)
}

// latencyChart draws one outcome's latencies over 1/(1−p); empty when no
// request ended so.
func (s *summary) latencyChart(l *loadGroup, title string, y chart.Scale, of func(*cell) *latency) template.HTML {
	most := uint64(0)
	lines := chart.Lines{Title: fmt.Sprintf("Latency of %s requests by percentile, %s", title, loadName(l.load)), Height: 196}
	var desc []string
	for i, c := range l.cells {
		// Lines that lie on each other keep their markers beside each other.
		aside := math.Pow(1.25, float64(i)-float64(len(l.cells)-1)/2)
		h := &of(c).merged
		if h.Count() == 0 {
			continue
		}
		most = max(most, h.Count())
		n := s.shape(c.pattern)
		series := chart.Series{Name: c.pattern, Class: seriesClass(n), Shape: n, Points: quantiles(h)}
		for _, p := range []float64{.5, .9, .99, .999, .9999} {
			if float64(h.Count())*(1-p) < 1 {
				break
			}
			x := aside / (1 - p)
			series.Marks = append(series.Marks, chart.Mark{XY: chart.XY{X: x, Y: float64(h.Quantile(1 - 1/x))},
				Tip: fmt.Sprintf("%s: %s of %s requests took at most %s", c.pattern, percentile(p), title, nanos(float64(h.Quantile(p))))})
		}
		lines.Series = append(lines.Series, series)
		desc = append(desc, fmt.Sprintf("%s median %s, p99 %s, max %s", c.pattern,
			nanos(float64(h.Quantile(.5))), nanos(float64(h.Quantile(.99))), nanos(float64(h.Max()))))
	}
	if most == 0 {
		return ""
	}
	x, ticks := chart.Nines(most)
	lines.Desc = strings.Join(desc, "; ")
	lines.X = chart.Axis{Label: "share of requests that took at most this long", Scale: x, Ticks: ticks}
	lines.Y = chart.Axis{Scale: y, Format: nanos}
	return template.HTML(lines.SVG())
}

func percentile(p float64) string {
	return strconv.FormatFloat(math.Round(1e4*p)/100, 'f', -1, 64) + " %"
}

// quantiles samples the distribution evenly along the 1/(1−p) axis.
func quantiles(h *histogram.Histogram) []chart.XY {
	const steps = 48
	top := math.Log(max(float64(h.Count()), 2))
	var points []chart.XY
	for i := range steps + 1 {
		x := math.Exp(top * float64(i) / steps)
		points = append(points, chart.XY{X: x, Y: float64(h.Quantile(1 - 1/x))})
	}
	return points
}

// resource is a figure of a process.
type resource struct {
	title      string
	log, bytes bool
	format     func(float64) string
	of         func(*cell) stat
}

var resources = []resource{
	{"Peak goroutines", true, false, number, func(c *cell) stat { return c.goroutines }},
	{"Peak resident memory", false, true, size, func(c *cell) stat { return c.rss }},
	{"Garbage collection, share of CPU", false, false, percent, func(c *cell) stat { return c.gc }},
	{"Allocations a request", false, false, number, func(c *cell) stat { return c.allocs }},
	{"Bytes allocated a request", false, true, size, func(c *cell) stat { return c.bytes }},
	{"True reuse of pooled objects", false, false, percent, func(c *cell) stat { return c.reuse }},
}

// sizeTicks are round numbers of KiB, MiB or GiB.
func sizeTicks(s chart.Scale) []chart.Tick {
	unit, names := 1.0, []string{" B", " KiB", " MiB", " GiB", " TiB"}
	for len(names) > 1 && s.Max/unit >= 1024 {
		unit, names = unit*1024, names[1:]
	}
	var ticks []chart.Tick
	for _, v := range (chart.Scale{Max: s.Max / unit}).Ticks(3) {
		ticks = append(ticks, chart.Tick{At: v * unit, Label: strconv.FormatFloat(v, 'g', 4, 64) + names[0]})
	}
	return ticks
}

// dotsChart shows a resource of every contestant under every load, each
// repeat a dot; empty when it was not measured.
func (s *summary) dotsChart(g *setupGroup, r resource) template.HTML {
	d := chart.Dots{Title: r.title + ", " + setupName(g.setup)}
	var values []float64
	var desc []string
	for _, l := range g.loads {
		heading := false
		for _, c := range l.cells {
			n, v := s.shape(c.pattern), r.of(c)
			if len(v) == 0 {
				continue
			}
			if !heading {
				d.Rows = append(d.Rows, chart.DotRow{Name: loadName(l.load)})
				heading = true
			}
			values = append(values, v...)
			label := v.or(r.format)
			if len(c.killed) > 0 {
				label = "killed"
			}
			d.Rows = append(d.Rows, chart.DotRow{Name: c.pattern, Class: seriesClass(n), Shape: n, Values: v, Label: label,
				Tip: fmt.Sprintf("%s, %s: %s", c.pattern, loadName(l.load), spread(v, r.format))})
			desc = append(desc, fmt.Sprintf("%s, %s: %s", c.pattern, loadName(l.load), label))
		}
	}
	if len(values) == 0 {
		return ""
	}
	d.X = chart.Axis{Scale: chart.FromZero(values...), Format: r.format}
	if r.bytes {
		d.X.Ticks = sizeTicks(d.X.Scale)
	}
	if r.log {
		d.X.Scale, d.X.Label = chart.LogAround(values...), "logarithmic"
	}
	d.Desc = strings.Join(desc, "; ")
	return template.HTML(d.SVG())
}

// spread returns a figure's median and range over the repeats, in words.
func spread(v stat, format func(float64) string) string {
	switch len(v) {
	case 0:
		return "not measured"
	case 1:
		return format(v[0]) + " (one run)"
	}
	lo, hi := v[0], v[0]
	for _, x := range v {
		lo, hi = min(lo, x), max(hi, x)
	}
	if format(lo) == format(hi) {
		return fmt.Sprintf("%s in each of %d repeats", format(lo), len(v))
	}
	return fmt.Sprintf("median %s of %d repeats, %s to %s", format(v.median()), len(v), format(lo), format(hi))
}

// intervalCharts draws one claim in several set-ups over a common axis. A claim
// without a figure has no drawing.
func intervalCharts(claims []results.OldClaim) []template.HTML {
	out := make([]template.HTML, len(claims))
	charts := make([]*chart.Interval, len(claims))
	var all []float64
	for i, c := range claims {
		if !measured(c) {
			continue
		}
		v := &chart.Interval{
			Title: fmt.Sprintf("%s, %s: measured %s", c.ID, c.Setup, interval(c)),
			Class: verdictClass(c.Verdict), Measured: c.Measured, Low: c.Low, High: c.High,
			Band: band(c), Published: published(c), Noise: noise(c),
			Tip:          "measured " + interval(c),
			BandTip:      "holds if " + c.Rule,
			PublishedTip: "published: " + c.Published,
			NoiseTip:     "noise floor: the same contestant differs from itself by " + noiseWords(c),
		}
		if v.Band == nil && v.Published == nil && v.Noise == nil && c.Low == c.High {
			continue // a single dot shows no spread
		}
		charts[i] = v
		all = append(all, v.Cover()...)
	}
	for i, v := range charts {
		if v != nil {
			v.X = chart.Axis{Scale: chart.Around(all...), Format: func(x float64) string { return with(x, claims[i].Unit) }}
			out[i] = template.HTML(v.SVG())
		}
	}
	return out
}

func verdictClass(v results.Verdict) string {
	switch v {
	case results.Holds, results.Fails, results.Inconclusive:
		return string(v)
	}
	return "hardware"
}
