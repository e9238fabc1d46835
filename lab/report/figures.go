package report

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// figure is one number of a run; NaN: the run does not have it.
type figure func(*results.Run) float64

// column is a figure in a table or a picture.
type column struct {
	name   string
	of     figure
	format string // one of formats
}

func (k column) text(v float64) string { return formats[k.format](v) }

// owns are figures of the family's.
func owns(columns []ledger.Column) (out []column) {
	for _, k := range columns {
		out = append(out, column{k.Name, extra(k.Key), k.Format})
	}
	return out
}

func extra(key string) figure {
	return func(r *results.Run) float64 {
		if v, ok := r.Extra[key]; ok {
			return v
		}
		return math.NaN()
	}
}

func offered(r *results.Run) float64 { return float64(r.Offered) }

// rate is the answers of these kinds a second, of a run that was sent requests.
func rate(kinds ...string) figure {
	return func(r *results.Run) float64 {
		if r.Offered == 0 {
			return math.NaN()
		}
		sum := 0.0
		for _, kind := range kinds {
			sum += r.Rate(kind)
		}
		return sum
	}
}

// quantile is that of the latency of the requests with one of the outcomes.
func quantile(q float64, kinds ...string) figure {
	return latency(func(h *histogram.Histogram) float64 { return float64(h.Quantile(q)) }, kinds...)
}

// latency is a figure of that latency.
func latency(of func(*histogram.Histogram) float64, kinds ...string) figure {
	return func(r *results.Run) float64 {
		all := &histogram.Histogram{}
		for _, kind := range kinds {
			if h := r.Of(kind).Latency; h != nil {
				all.Merge(h)
			}
		}
		if all.Count() == 0 {
			return math.NaN()
		}
		return of(all)
	}
}

// lag is by how much the generator sent late. A closed loop sends when it sends.
func lag(q float64) figure {
	return func(r *results.Run) float64 {
		if r.Lag == nil || r.Lag.Max() == 0 {
			return math.NaN()
		}
		return float64(r.Lag.Quantile(q))
	}
}

// per is a figure over another one; missing if that is not above 0.
func (f figure) per(g figure) figure {
	return func(r *results.Run) float64 { return f(r) / positive(g(r)) }
}

// positive is x, or missing if it is not a number above 0.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return math.NaN()
}

// used is what a process used, for each of something.
func used(of func(results.Process) float64, each figure) figure {
	return func(r *results.Run) float64 { return positive(of(r.Process) / each(r)) }
}

func goodOnes(r *results.Run) float64 { return float64(r.Of("ok").Count) }

var (
	good         = column{"good/s", rate("ok"), ""}
	refusedShare = column{"refused share", figure(func(r *results.Run) float64 { return float64(r.Of("rejected").Count) }).per(offered), "share"}
	cpu          = column{"CPU/good", used(func(p results.Process) float64 { return 1e9 * p.CPUSeconds }, goodOnes), "nanos"}
	peakRSS      = column{"peak RSS", ledger.PeakRSS.Value, "size"}
	criticalGood = column{"critical, good", figure(extra("critical_ok")).per(extra("critical_offered")), "percent"}

	answers = rate("ok", "rejected", "error", "timeout") // what the published harnesses call throughput

	// ofSize is shown of loads that are sizes.
	ofSize = []column{{"throughput", answers, ""}, good, refusedShare, {"p99, good", quantile(.99, "ok"), "nanos"}}
)

// standard is a table that any set-up has, as far as it has the figures.
type standard struct {
	title   string
	columns []column
}

var standards = []standard{
	{"requests a second", []column{
		{"good", rate("ok"), ""}, {"refused", rate("rejected"), "count"}, {"errors", rate("error"), "count"}, {"timeouts", rate("timeout"), "count"},
		{"sum", answers, ""}, refusedShare, criticalGood,
	}},
	{"latency, good", latencyOf("ok")},
	{"latency, refused", latencyOf("rejected")},
	{"process", []column{
		cpu, {"bytes/good", used(func(p results.Process) float64 { return float64(p.AllocBytes) }, goodOnes), "size"},
		{"allocs/req", used(func(p results.Process) float64 { return float64(p.Mallocs) }, offered), ""},
		{"goroutines", ledger.Goroutines.Value, ""}, peakRSS, {"GC of CPU", func(r *results.Run) float64 { return positive(r.Process.GCShare) }, "percent"},
		{"true reuse", func(r *results.Run) float64 { return positive(r.Process.ReuseRate) }, "percent"},
	}},
	{"sent late by", []column{{"median", lag(.5), "nanos"}, {"p90", lag(.9), "nanos"}, {"p99", lag(.99), "nanos"}, {"max", lag(1), "nanos"}}},
}

// latencyOf are the figures of the requests with that outcome.
func latencyOf(kind string) []column {
	return []column{
		{"min", quantile(0, kind), "nanos"}, {"mean", latency((*histogram.Histogram).Mean, kind), "nanos"}, {"median", quantile(.5, kind), "nanos"},
		{"p95", quantile(.95, kind), "nanos"}, {"p99", quantile(.99, kind), "nanos"}, {"max", quantile(1, kind), "nanos"},
	}
}

// names are a header.
func names(first string, columns []column) []string {
	out := []string{first}
	for _, k := range columns {
		out = append(out, k.name)
	}
	return out
}

// measured are the columns that the set-up has figures of.
func (g *setup) measured(columns []column) []column {
	return slices.DeleteFunc(slices.Clone(columns), func(k column) bool {
		return !slices.ContainsFunc(g.cells, func(c *cell) bool { return len(c.stat(k.of)) > 0 })
	})
}

// row is the medians of a cell.
func (c *cell) row(name string, columns []column) row {
	out := row{Cells: []string{name}}
	for _, k := range columns {
		out.Cells = append(out.Cells, c.stat(k.of).or(k.text))
	}
	return out
}

// Tables are the medians of a set-up: of sizes a row each; otherwise a table of each kind of figure
// that was measured, with a row for each contestant under each load, and at last one of the family's own.
func (s *session) Tables(g *setup) (out []Table) {
	if axis := s.Family.Axes[g.Name]; axis != "" {
		var lines []row
		for _, c := range g.cells {
			lines = append(lines, c.row(c.Load, ofSize))
		}
		return tableOf(lines, names(axis, ofSize)...)
	}
	for _, of := range append(standards[:len(standards):len(standards)], standard{"measured", owns(s.Family.Columns)}) {
		columns, lines := g.measured(of.columns), []row(nil)
		for _, l := range g.loads {
			group := []row{{Head: true, Cells: []string{loadName(l.name)}}}
			for _, c := range l.cells {
				line := c.row(c.Pattern, columns)
				if slices.ContainsFunc(line.Cells[1:], func(text string) bool { return text != none }) {
					group = append(group, line)
				}
			}
			if len(group) > 1 {
				lines = append(lines, group...)
			}
		}
		out = append(out, tableOf(lines, names(of.title, columns)...)...)
	}
	return append(out, s.steps(g)...)
}
