package simulate

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/internal/numbers"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
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
func (r *Result) table() (header []string, rows [][]string) {
	header = []string{"policy"}
	for _, c := range columns {
		header = append(header, c.name)
	}
	add := func(name string, t *Tally) {
		row := []string{name}
		for _, c := range columns {
			row = append(row, c.of(t))
		}
		rows = append(rows, row)
	}
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		add(o.Policy, &o.Total)
		for j := range o.Classes {
			if len(o.Classes) > 1 {
				add("· "+o.Classes[j].Name, &o.Classes[j])
			}
		}
	}
	return header, rows
}

// facts is what was simulated, in sentences.
func (r *Result) facts() string {
	s := r.scenario
	text := fmt.Sprintf("The backend can do %s calls a second at full speed. Calls arrive for %v; the first %v are not counted. Seed %d.",
		numbers.Format(r.Capacity), time.Duration(s.Duration), time.Duration(s.Warmup), s.Seed)
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
	header, rows := r.table()
	widths := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(chart.Clean(cell)))
		}
	}
	fmt.Fprintf(w, "%s\n%s\n\n", chart.Clean(r.title()), r.facts())
	for _, row := range append([][]string{header}, rows...) {
		line := fmt.Sprintf("%-*s", widths[0], chart.Clean(row[0]))
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(w, "\n%s\n", strings.Join(legend, "\n"))
}

// Page is the result as one HTML file: the table, goodput over time, and what each policy's
// limit did.
func (r *Result) Page() (string, error) {
	header, rows := r.table()
	doc := report.Document{
		Over: "Spillway simulation", Title: r.title(), Lead: []string{r.facts()},
		Note: strings.Join(legend, " "), Header: header, Rows: rows, Foot: Schema + " · simulated: the decisions are those of the live limiter, the rest is a model",
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
