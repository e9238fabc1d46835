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
	Marks []cellMark    // of a grid
	Strip template.HTML // the repeats, drawn
	Note  string        // beneath it
}

// cellMark colours a cell, and says more about it.
type cellMark struct{ Class, Tip string }

// column is a figure in a table.
type column struct {
	name   string
	of     figure
	format func(float64) string
}

func (c *cell) row(columns []column) row {
	out := row{Cells: []string{c.pattern}}
	for _, k := range columns {
		out.Cells = append(out.Cells, c.stat(k.of).or(k.format))
	}
	return out
}

func rate(kind string) figure { return func(r *results.Run) float64 { return r.Rate(kind) } }

// answers is what the published harnesses call throughput: all of them.
func answers(r *results.Run) (sum float64) {
	for _, o := range outcomes {
		sum += r.Rate(o.kind)
	}
	return sum
}

var rates = []column{
	{"good", rate("ok"), number}, {"refused", rate("rejected"), some(number)}, {"errors", rate("error"), some(number)}, {"timeouts", rate("timeout"), some(number)},
	{"sum", answers, number}, {"refused share", func(r *results.Run) float64 { return r.Share("rejected") }, some(percent)},
}

// latencyOf are the figures of the requests with that outcome.
func latencyOf(kind string) (out []column) {
	add := func(name string, of func(*histogram.Histogram) float64) {
		out = append(out, column{name, func(r *results.Run) float64 {
			if h := r.Of(kind).Latency; h != nil && h.Count() > 0 {
				return of(h)
			}
			return math.NaN()
		}, nanos})
	}
	add("min", func(h *histogram.Histogram) float64 { return float64(h.Min()) })
	add("mean", (*histogram.Histogram).Mean)
	for i, q := range []float64{.5, .95, .99, 1} {
		add([]string{"median", "p95", "p99", "max"}[i], func(h *histogram.Histogram) float64 { return float64(h.Quantile(q)) })
	}
	return out
}

// resources are what a process used.
var resources = []column{
	{"allocs/req", aRequest(func(p results.Process) uint64 { return p.Mallocs }), number},
	{"bytes/req", aRequest(func(p results.Process) uint64 { return p.AllocBytes }), size},
	{"goroutines", ledger.Goroutines.Value, number},
	{"peak RSS", ledger.PeakRSS.Value, size},
	{"GC of CPU", gcShare, percent},
	{"true reuse", func(r *results.Run) float64 { return positive(r.Process.ReuseRate) }, percent},
}

func gcShare(r *results.Run) float64 {
	if math.IsNaN(ledger.Goroutines.Value(r)) { // the runtime was not asked
		return math.NaN()
	}
	return r.Process.GCShare
}

func aRequest(of func(results.Process) uint64) figure {
	return func(r *results.Run) float64 { return positive(float64(of(r.Process)) / float64(r.Offered)) }
}

// positive is x, or missing if it is not a number above 0.
func positive(x float64) float64 {
	if x > 0 && !math.IsInf(x, 1) {
		return x
	}
	return math.NaN()
}

// sheet is the tables of one set-up.
type sheet struct {
	Name   string
	Tables []table
}

// Sheets are the figures of every set-up.
func (s *session) Sheets() (out []sheet) {
	for _, g := range s.setups {
		out = append(out, sheet{setupName(g.name), s.tables(g)})
	}
	return out
}

// tables are the medians of a set-up.
func (s *session) tables(g *setup) (out []table) {
	if own := s.ownTables(g); len(own) > 0 {
		return own
	}
	off := .01 // the largest distance of a repeat from its median
	for _, c := range g.cells {
		for _, v := range c.offGood() {
			off = max(off, v, -v)
		}
	}
	for i, of := range []struct {
		title   string
		columns []column
		has     func(*cell) bool
	}{
		{"requests a second", rates, (*cell).sent},
		{"latency, good", latencyOf("ok"), func(c *cell) bool { return c.took["ok"] != nil }},
		{"latency, refused", latencyOf("rejected"), func(c *cell) bool { return c.took["rejected"] != nil }},
		{"process", resources, func(*cell) bool { return true }},
	} {
		t := table{Header: []string{of.title}}
		for _, k := range of.columns {
			t.Header = append(t.Header, k.name)
		}
		for _, l := range g.loads {
			group := rows{Name: loadName(l.name)}
			for _, c := range l.cells {
				if of.has(c) {
					group.Rows = append(group.Rows, c.row(of.columns))
				}
			}
			if len(group.Rows) == 0 {
				continue
			}
			if i == 0 {
				t.Strips, group.Note = "good, each repeat, ± "+percent(off), groupNote(l)
				for j := range group.Rows {
					group.Rows[j].Strip = s.strip(l.cell(group.Rows[j].Cells[0]), off)
				}
			}
			t.Groups = append(t.Groups, group)
		}
		if len(t.Groups) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// strip draws how far the repeats of a contestant's goodput lie from their median.
func (s *session) strip(c *cell, off float64) template.HTML {
	n := s.shape(c.pattern)
	return template.HTML(chart.Strip(chart.Scale{Min: -off, Max: off}, chart.DotRow{Class: seriesClass(n), Shape: n,
		Values: c.offGood(), Tip: c.pattern + ", good a second: " + c.stat(rate("ok")).spread(number)}))
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

// ownTables shows a family's own figures of a set-up, if nothing was sent in
// it: a row for each contestant, and a column for each load, or, where there
// is only one load, for each figure.
func (s *session) ownTables(g *setup) (out []table) {
	var columns []column // that were measured
	for _, k := range s.Family.Columns {
		any := false
		for _, c := range g.cells {
			any = any || len(c.stat(extra(k.Key))) > 0
			if slices.ContainsFunc(c.runs, func(r *results.Run) bool { return r.Offered > 0 }) {
				return nil
			}
		}
		if any {
			columns = append(columns, column{k.Name, extra(k.Key), formats[k.Format]})
		}
	}
	type place struct {
		name string
		load *load
		column
	}
	add := func(title string, places []place) {
		t := table{Header: []string{title}, Groups: []rows{{Note: groupNote(g.loads[0])}}}
		for _, p := range places {
			t.Header = append(t.Header, p.name)
		}
		for _, pattern := range s.contestants(g) {
			line := row{Cells: []string{pattern}}
			for _, p := range places {
				text := none
				if c := p.load.cell(pattern); c != nil {
					text = c.stat(p.of).or(p.format)
				}
				line.Cells = append(line.Cells, text)
			}
			t.Groups[0].Rows = append(t.Groups[0].Rows, line)
		}
		out = append(out, t)
	}
	var one []place
	for _, k := range columns {
		var places []place
		for _, l := range g.loads {
			places = append(places, place{l.name, l, k})
		}
		if len(places) > 1 {
			add(k.name, places)
		} else {
			one = append(one, place{k.name, g.loads[0], k})
		}
	}
	if len(one) > 0 {
		add(g.loads[0].name, one)
	}
	return append(out, s.steps(g)...)
}

// contestants of a set-up in the order of the whole report.
func (s *session) contestants(g *setup) []string {
	return slices.DeleteFunc(slices.Clone(s.patterns), func(name string) bool {
		return !slices.ContainsFunc(g.cells, func(c *cell) bool { return c.pattern == name })
	})
}

// Runs are the runs that were sent requests, and all that failed, were killed or were
// disturbed: the others are not shown here if the family has figures of its own. Nil if
// there is none.
func (s *session) Runs() *table {
	took := latencyOf("ok")
	columns := append(rates[:4:4], took[2], took[4], resources[2], resources[3])
	t := &table{Header: []string{"run", "took", "offered", "good/s", "refused/s", "errors/s", "timeouts/s", "median", "p99", "goroutines", "peak RSS"}, Groups: make([]rows, 1)}
	for i := range s.runs {
		r := &s.runs[i]
		line := (&cell{pattern: title(r), runs: []*results.Run{r}}).row(columns)
		line.Cells = slices.Insert(line.Cells, 1, fmt.Sprintf("%.1f s", r.Elapsed), number(offered(r)))
		switch {
		case r.Killed != "":
			line.Note = "killed: " + r.Killed
		case r.Failed != "":
			line.Note = "no measurement: " + results.Gist(r.Failed)
		case r.Disturbed > 0:
			line.Note = "disturbed: other processes used " + percent(r.Disturbed) + " of the processors"
		}
		if len(s.Family.Columns) == 0 || r.Offered > 0 || line.Note != "" {
			t.Groups[0].Rows = append(t.Groups[0].Rows, line)
		}
	}
	if len(t.Groups[0].Rows) == 0 {
		return nil
	}
	return t
}
