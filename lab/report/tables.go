package report

import (
	"fmt"
	"math"
	"slices"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// column is a figure in a table.
type column struct {
	name   string
	of     figure
	format func(float64) string
}

// own is a figure of the family's.
func own(k ledger.Column) column { return column{k.Name, extra(k.Key), formats[k.Format]} }

// names are a header.
func names(first string, columns []column) []string {
	out := []string{first}
	for _, k := range columns {
		out = append(out, k.name)
	}
	return out
}

// have reports whether one of the figures was measured in one of the cells.
func have(columns []column, cells ...*cell) bool {
	return slices.ContainsFunc(cells, func(c *cell) bool {
		return slices.ContainsFunc(columns, func(k column) bool { return len(c.stat(k.of)) > 0 })
	})
}

func (c *cell) row(columns []column) row {
	out := row{Cells: []string{c.Pattern}}
	for _, k := range columns {
		out.Cells = append(out.Cells, c.stat(k.of).or(k.format))
	}
	return out
}

// answers is what the published harnesses call throughput: all of them.
func answers(r *results.Run) (sum float64) {
	for _, o := range outcomes {
		sum += r.Rate(o.kind)
	}
	return sum
}

var (
	refusedShare = column{"refused share", func(r *results.Run) float64 { return r.Share("rejected") }, some(percent)}

	rates = []column{
		{"good", rate("ok"), number}, {"refused", rate("rejected"), some(number)}, {"errors", rate("error"), some(number)}, {"timeouts", rate("timeout"), some(number)},
		{"sum", answers, number}, refusedShare,
	}

	ofRun = []column{
		{"took", func(r *results.Run) float64 { return r.Elapsed }, func(v float64) string { return fmt.Sprintf("%.1f s", v) }},
		{"offered", offered, number},
		{"good/s", rate("ok"), number}, {"refused/s", rate("rejected"), some(number)}, {"errors/s", rate("error"), some(number)}, {"timeouts/s", rate("timeout"), some(number)},
		{"median", quantile(.5, "ok"), nanos}, {"p99", quantile(.99, "ok"), nanos},
		{"goroutines", ledger.Goroutines.Value, number}, {"peak RSS", ledger.PeakRSS.Value, size},
	}

	// resources are what a process used.
	resources = []column{
		{"CPU/good", func(r *results.Run) float64 { return positive(1e9 * r.Process.CPUSeconds / float64(r.Of("ok").Count)) }, nanos},
		{"bytes/good", func(r *results.Run) float64 {
			return positive(float64(r.Process.AllocBytes) / float64(r.Of("ok").Count))
		}, size},
		{"allocs/req", func(r *results.Run) float64 { return positive(float64(r.Process.Mallocs) / offered(r)) }, number},
		{"goroutines", ledger.Goroutines.Value, number},
		{"peak RSS", ledger.PeakRSS.Value, size},
		{"GC of CPU", gcShare, percent},
		{"true reuse", func(r *results.Run) float64 { return positive(r.Process.ReuseRate) }, percent},
	}
)

// latencyOf are the figures of the requests with that outcome.
func latencyOf(kind string) []column {
	return []column{
		{"min", quantile(0, kind), nanos}, {"mean", latency((*histogram.Histogram).Mean, kind), nanos}, {"median", quantile(.5, kind), nanos},
		{"p95", quantile(.95, kind), nanos}, {"p99", quantile(.99, kind), nanos}, {"max", quantile(1, kind), nanos},
	}
}

// lag is by how much the generator sent late.
func lag(q float64) figure {
	return func(r *results.Run) float64 {
		if r.Lag == nil || r.Lag.Max() == 0 { // a closed loop sends when it sends
			return math.NaN()
		}
		return float64(r.Lag.Quantile(q))
	}
}

var lags = []column{{"median", lag(.5), nanos}, {"p90", lag(.9), nanos}, {"p99", lag(.99), nanos}, {"max", lag(1), nanos}}

func gcShare(r *results.Run) float64 {
	if math.IsNaN(ledger.Goroutines.Value(r)) { // the runtime was not asked
		return math.NaN()
	}
	return r.Process.GCShare
}

// positive is x, or missing if it is not a number above 0.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return math.NaN()
}

// The standard tables of a set-up that was sent requests.
const (
	ofRates = iota
	ofGood
	ofRefused
	ofProcess
	ofLag
)

var standards = []struct {
	title   string
	columns []column
	has     func(*cell) bool // nil: those that have a figure
}{
	{"requests a second", rates, (*cell).sent},
	{"latency, good", latencyOf("ok"), nil},
	{"latency, refused", latencyOf("rejected"), nil},
	{"process", resources, func(c *cell) bool { return len(c.runs) == 0 || have(resources, c) }},
	{"sent late", lags, nil},
}

// Tables are the medians of a set-up.
func (s *session) Tables(g *setup) []Table {
	own := s.ownTables(g)
	if !slices.Contains(s.served, g) {
		return own
	}
	return append(s.standard(g, ofRates, ofGood, ofRefused, ofProcess), own...)
}

// standard are those of the standard tables for which the set-up has figures.
func (s *session) standard(g *setup, which ...int) (out []Table) {
	off := .01 // the largest distance of a repeat from its median
	for _, c := range g.cells {
		for _, v := range c.offGood() {
			off = max(off, v, -v)
		}
	}
	for _, i := range which {
		of := standards[i]
		t := Table{Header: names(of.title, of.columns)}
		for _, l := range g.loads {
			group := rows{Name: loadName(l.name)}
			for _, c := range l.cells {
				if of.has != nil && !of.has(c) || of.has == nil && !have(of.columns, c) {
					continue
				}
				line := c.row(of.columns)
				if i == ofRates {
					line.Strip = chart.Strip(chart.Scale{Min: -off, Max: off}, 0, chart.DotRow{Series: s.shape(c.Pattern),
						Values: c.offGood(), Tip: c.Pattern + ", good a second: " + c.stat(rate("ok")).spread(number)})
				}
				group.Rows = append(group.Rows, line)
			}
			if i == ofRates {
				t.Strips, group.Note = "good, each repeat, ± "+percent(off), groupNote(l)
			}
			if len(group.Rows) > 0 {
				t.Groups = append(t.Groups, group)
			}
		}
		if len(t.Groups) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// offGood is the distance of each repeat's goodput from the median, as a share of it.
func (c *cell) offGood() (out []float64) {
	good := c.stat(rate("ok"))
	if m := good.median(); m > 0 {
		for _, v := range good {
			out = append(out, v/m-1)
		}
	}
	return out
}

// ownTables shows a family's own figures of a set-up: a row for each contestant,
// and a column for each load, or, where there is only one load, for each figure. Where
// requests were sent, contestants without such a figure have no row.
func (s *session) ownTables(g *setup) (out []Table) {
	if s.axis(g) != "" {
		return s.sizeTable(g)
	}
	var all []column
	for _, k := range s.Family.Columns {
		if have([]column{own(k)}, g.cells...) {
			all = append(all, own(k))
		}
	}
	patterns := slices.DeleteFunc(slices.Clone(s.patterns), func(pattern string) bool {
		return !slices.ContainsFunc(g.cells, func(c *cell) bool { return c.Pattern == pattern && (!g.asked() || have(all, c)) })
	})
	if len(g.loads) == 1 && len(all) > 0 {
		l := g.loads[0]
		out = cross(names(l.name, all), patterns, func(i, j int) string { return l.cell(patterns[i]).stat(all[j].of).or(all[j].format) })
	}
	var loads []string
	for _, l := range g.loads {
		loads = append(loads, l.name)
	}
	for _, k := range all {
		if len(loads) > 1 {
			out = append(out, cross(append([]string{k.name}, loads...), patterns, func(i, j int) string { return g.loads[j].cell(patterns[i]).stat(k.of).or(k.format) })...)
		}
	}
	for _, t := range out {
		t.Groups[0].Note = groupNote(g.loads[0])
	}
	return append(out, s.steps(g)...)
}

// Figures are the tables that stand by themselves: the others are beneath the drawings of
// what they say.
func (s *session) Figures() (out []panels) {
	for _, g := range s.Setups {
		tables := s.ownTables(g)
		if slices.Contains(s.served, g) && s.detail < mainLoads {
			tables = s.Tables(g) // there are no drawings
		}
		if len(tables) > 0 {
			out = append(out, panels{Name: g.Name, Tables: tables})
		}
	}
	return out
}

// Raw says how many runs there are that the page has no room for.
func (s *session) Raw() string {
	return pick(s.detail < everything && len(s.runs) > 0, count(len(s.runs), "run"), "")
}

// Runs are the runs that were sent requests, and all that failed, were killed or were
// disturbed: the others are not shown here if the family has figures of its own.
func (s *session) Runs() []Table {
	var lines []row
	for i := range s.runs {
		r := &s.runs[i]
		if s.Family.Axes[r.Setup] != "" && r.Killed == "" && r.Failed == "" {
			continue // the sizes have a table of their own
		}
		line := (&cell{Key: ledger.Key{Pattern: title(r)}, runs: []*results.Run{r}}).row(ofRun)
		switch {
		case r.Killed != "":
			line.Note = "killed: " + r.Killed
		case r.Failed != "":
			line.Note = "no measurement: " + results.Gist(r.Failed)
		case r.Disturbed > 0:
			line.Note = "disturbed: other processes used " + percent(r.Disturbed) + " of the processors"
		}
		if s.detail == everything && (len(s.Family.Columns) == 0 || r.Offered > 0) || line.Note != "" {
			lines = append(lines, line)
		}
	}
	return flat(lines, names("run", ofRun)...)
}
