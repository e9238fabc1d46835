package simulate

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
	"github.com/spillway-go/spillway/load/document"
	"github.com/spillway-go/spillway/load/numbers"
)

// none is shown where there is no figure.
const none = "–"

// columns of the table, after the name.
var columns = []struct {
	name string
	of   func(t *Tally) string
}{
	{"good/s", func(t *Tally) string { return numbers.Format(t.Goodput) }},
	{"served", func(t *Tally) string {
		if t.Served == nil {
			return none
		}
		return numbers.Format(100**t.Served) + " %"
	}},
	{"p50", func(t *Tally) string { return milliseconds(t.P50) }},
	{"p99", func(t *Tally) string { return milliseconds(t.P99) }},
	{"attempts", func(t *Tally) string {
		if t.Callers == 0 {
			return none
		}
		return fmt.Sprintf("%.2f", float64(t.Offered)/float64(t.Callers))
	}},
	{"refused", func(t *Tally) string { return t.share(t.Refused) }},
	{"late", func(t *Tally) string { return t.share(t.Late) }},
	{"failed", func(t *Tally) string { return t.share(t.Failed) }},
	{"left", func(t *Tally) string { return t.share(t.Left) }},
}

// legend says what the columns mean.
var legend = []string{
	"good/s: answers in time, a second. served: share of the callers that got one, at whichever attempt.",
	"p50, p99: latency of whatever was admitted. attempts: per caller. The others are shares of all attempts;",
	"left: the caller gave up while it waited.",
}

func (r *Result) legend() []string {
	if r.scenario.Trouble == nil {
		return legend
	}
	return append([]string{
		"before, during, end: good answers per caller before the trouble, during it, and in the last quarter of the time after it.",
		"Above 100 %: callers of an earlier time have their answers, too.",
	}, legend...)
}

func milliseconds(ms *float64) string {
	if ms == nil {
		return none
	}
	return numbers.Format(*ms) + " ms"
}

// share is that of all attempts.
func (t *Tally) share(n uint64) string {
	if n == 0 {
		return none
	}
	return numbers.Format(100*float64(n)/float64(t.Offered)) + " %"
}

// table has a row for each policy and, if there are several classes, one for each below it.
func (r *Result) table() report.Table {
	header := []string{"policy"}
	if r.scenario.Trouble != nil {
		header = append(header, "before", "during", "end", "recovers")
	}
	for _, c := range columns {
		header = append(header, c.name)
	}
	var rows [][]string
	add := func(name string, a *Answered, t *Tally) {
		row := []string{name}
		if r.scenario.Trouble != nil {
			row = append(row, a.cells()...)
		}
		for _, c := range columns {
			row = append(row, c.of(t))
		}
		rows = append(rows, row)
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		add(o.Policy, o.Answered, &o.Total)
		for j := range o.Classes {
			if len(o.Classes) > 1 {
				add("· "+o.Classes[j].Name, nil, &o.Classes[j])
			}
		}
	}
	return report.NewTable(header, rows)
}

func (a *Answered) cells() []string {
	if a == nil {
		return []string{none, none, none, none}
	}
	share := func(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
	recovers := "no"
	if a.Recovered {
		recovers = "yes"
	}
	return []string{share(a.Before), share(a.During), share(a.End), recovers}
}

// findings are the sets of protections with which the service recovers, and without any
// of which it does not.
func (r *Result) findings() string {
	if r.scenario.Subsets == nil || r.scenario.Trouble == nil || r.Partial {
		return ""
	}
	var names []string
	var smallest []int
	for set, o := range r.Outcomes {
		if o.Answered.Recovered && !slices.ContainsFunc(smallest, func(s int) bool { return s&set == s }) {
			smallest, names = append(smallest, set), append(names, o.Policy)
		}
	}
	switch {
	case len(names) == 0:
		return "With none of these sets does it recover."
	case smallest[0] == 0:
		return "It recovers with nothing at all."
	}
	return "The smallest sets with which it recovers: " + strings.Join(names, "; ") + "."
}

// facts is what was simulated, in sentences.
func (r *Result) facts() string {
	s := r.scenario
	what := "The backend"
	if n := s.Fleet.Replicas; n > 1 {
		what = fmt.Sprintf("The %d replicas together", n)
	}
	text := fmt.Sprintf("%s can do %s calls a second at full speed. Calls arrive for %v; the first %v are not counted. Seed %d.",
		what, numbers.Format(r.Capacity), s.Duration, s.Warmup, s.Seed)
	if i := r.scenario.instead; i.Load != "" {
		text += fmt.Sprintf(" The load is %s, as was asked for.", i.Load)
	}
	if r.Partial {
		text += fmt.Sprintf(" It was interrupted after %d of %d policies.", len(r.Outcomes), len(s.Policies))
	}
	return text
}

func (r *Result) title() string {
	if r.scenario.Title == "" {
		return "A scenario without a title"
	}
	return r.scenario.Title
}

// Print writes the table as text.
func (r *Result) Print(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s\n", chart.Clean(r.title()), r.facts())
	r.table().Text(w)
	if found := r.findings(); found != "" {
		fmt.Fprintf(w, "\n%s\n", found)
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(r.legend(), "\n"))
}

func (r *Result) lead() []string {
	if found := r.findings(); found != "" {
		return []string{r.facts(), found}
	}
	return []string{r.facts()}
}

// Page is the result as one HTML file: the table, goodput over time, and what each policy's
// limit did.
func (r *Result) Page() (string, error) {
	doc := report.Document{
		Page: document.Page{Over: "Spillway simulation", Title: r.title(), Lead: r.lead(), Foot: Schema + " · simulated: the decisions are those of the live limiter, the rest is a model"},
		Note: strings.Join(r.legend(), " "), Table: r.table(),
	}
	for _, o := range r.Outcomes {
		line := report.Timeline{Name: o.Policy}
		for _, p := range o.Timeline {
			line.Points = append(line.Points, results.Point{At: p.At, OK: uint64(p.OK), Rejected: uint64(p.Refused), Limit: p.Limit, InFlight: p.InFlight, Queued: p.Queued})
		}
		doc.Timelines = append(doc.Timelines, line)
	}
	return doc.HTML()
}
