package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// table is a header and rows of text: a name, and figures.
type table struct {
	Header []string
	Strips string // what the drawing after the figures shows; empty: there is none
	Groups []rows
}

// rows are those of one load.
type rows struct {
	Name, Note string
	Rows       []row
}

type row struct {
	Cells []string
	Marks map[int]cellMark // of a grid
	Strip template.HTML    // the repeats, drawn
	Note  string           // beneath it
}

// cellMark colours a cell, and says more about it.
type cellMark struct{ Class, Tip string }

// flat is a table without groups, or nothing if there are no rows.
func flat(lines []row, header ...string) []table {
	if len(lines) == 0 {
		return nil
	}
	return []table{{Header: header, Groups: []rows{{Rows: lines}}}}
}

// add appends a column; text is what it says of a row's name.
func (t *table) add(name string, text func(string) string) {
	t.Header = append(t.Header, name)
	for _, g := range t.Groups {
		for i, line := range g.Rows {
			g.Rows[i].Cells = append(line.Cells, text(line.Cells[0]))
		}
	}
}

// column is a figure in a table.
type column struct {
	name   string
	of     figure
	format func(float64) string
}

// names are a header.
func names(first string, columns []column) []string {
	out := []string{first}
	for _, k := range columns {
		out = append(out, k.name)
	}
	return out
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
	has     func(*cell) bool
}{
	{"requests a second", rates, (*cell).sent},
	{"latency, good", latencyOf("ok"), timed("ok")},
	{"latency, refused", latencyOf("rejected"), timed("rejected")},
	{"process", resources, func(c *cell) bool { return len(c.runs) == 0 || measured(resources)(c) }},
	{"sent late", lags, func(c *cell) bool { return len(c.stat(lag(.99))) > 0 }},
}

// measured reports whether there is one of the figures.
func measured(columns []column) func(*cell) bool {
	return func(c *cell) bool {
		return slices.ContainsFunc(columns, func(k column) bool { return len(c.stat(k.of)) > 0 })
	}
}

func timed(kind string) func(*cell) bool {
	return func(c *cell) bool { return took(c.runs, kind).Count() > 0 }
}

// Tables are the medians of a set-up.
func (s *session) Tables(g *setup) []table {
	own := s.ownTables(g)
	if !slices.Contains(s.served, g) {
		return own
	}
	return append(s.standard(g, ofRates, ofGood, ofRefused, ofProcess), own...)
}

// standard are those of the standard tables for which the set-up has figures.
func (s *session) standard(g *setup, which ...int) (out []table) {
	off := .01 // the largest distance of a repeat from its median
	for _, c := range g.cells {
		for _, v := range c.offGood() {
			off = max(off, v, -v)
		}
	}
	for _, i := range which {
		of := standards[i]
		t := table{Header: names(of.title, of.columns)}
		for _, l := range g.loads {
			group := rows{Name: loadName(l.name)}
			for _, c := range l.cells {
				if !of.has(c) {
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
func (s *session) ownTables(g *setup) (out []table) {
	if s.axis(g) != "" {
		return s.sizeTable(g)
	}
	several, asked := len(g.loads) > 1, g.asked()
	for _, k := range s.Family.Columns {
		of, format := extra(k.Key), formats[k.Format]
		if !slices.ContainsFunc(g.cells, func(c *cell) bool { return len(c.stat(of)) > 0 }) {
			continue // it was not measured
		}
		if several || len(out) == 0 {
			t := table{Header: []string{pick(several, k.Name, g.loads[0].name)}, Groups: []rows{{Note: groupNote(g.loads[0])}}}
			for _, pattern := range s.patterns {
				if slices.ContainsFunc(g.cells, func(c *cell) bool { return c.Pattern == pattern && (!asked || s.hasOwn(c)) }) {
					t.Groups[0].Rows = append(t.Groups[0].Rows, row{Cells: []string{pattern}})
				}
			}
			out = append(out, t)
		}
		for _, l := range g.loads {
			out[len(out)-1].add(pick(several, l.name, k.Name), func(pattern string) string { return l.cell(pattern).stat(of).or(format) })
		}
	}
	return append(out, s.steps(g)...)
}

// hasOwn reports whether the contestant has one of the family's own figures.
func (s *session) hasOwn(c *cell) bool {
	return slices.ContainsFunc(s.Family.Columns, func(k ledger.Column) bool { return len(c.stat(extra(k.Key))) > 0 })
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
func (s *session) Runs() []table {
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
