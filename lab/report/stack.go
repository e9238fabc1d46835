package report

import (
	"html/template"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
)

// part is one of a run's Extra that a bar is stacked of.
type part struct{ Key, Name, Class string }

// stacks are the bars of a family whose figures are made of parts.
type stacks struct {
	Axis  string
	Total ownFigure // shown above the bar
	Note  ownFigure // shown beside it, if there is one
	Parts []part
	Whole string // the contestant whose parts are also listed
	Steps int    // those from this one on
}

// stackChart stacks the medians of a set-up, a bar for each contestant; empty
// without parts. A part below 0 is noise or a loss and has no room in a bar.
func (f family) stackChart(s *summary, g *setupGroup) template.HTML {
	if len(f.Stacks.Parts) == 0 {
		return ""
	}
	b := chart.Bars{Title: f.Stacks.Axis + ", " + setupName(g.setup)}
	var totals []float64
	var desc []string
	for _, pattern := range g.patterns(s) {
		for _, c := range g.loads[0].cells {
			if c.pattern != pattern || len(c.extra[f.Stacks.Total.Key]) == 0 {
				continue
			}
			row := chart.BarRow{Name: pattern, Label: c.extra[f.Stacks.Total.Key].or(f.Stacks.Total.Format)}
			if note := c.extra[f.Stacks.Note.Key]; len(note) > 0 {
				row.Label += ", " + note.or(f.Stacks.Note.Format) + " " + f.Stacks.Note.Name
			}
			sum := 0.0
			for _, p := range f.Stacks.Parts {
				v := c.extra[p.Key].median()
				if !(v > 0) {
					continue
				}
				sum += v
				row.Segments = append(row.Segments, chart.Segment{Class: p.Class, Value: v,
					Tip: pattern + ": " + p.Name + " " + f.Stacks.Total.Format(v)})
			}
			totals = append(totals, sum)
			desc = append(desc, pattern+" "+row.Label)
			b.Rows = append(b.Rows, row)
		}
	}
	if len(b.Rows) == 0 {
		return ""
	}
	b.Desc = strings.Join(desc, "; ")
	b.X = chart.Axis{Label: f.Stacks.Axis, Scale: chart.FromZero(totals...)}
	return template.HTML(b.SVG())
}

// steps lists the parts of the difference between two contestants, each in the unit of
// the figure and in per cent of the sum. They are means: those
// of parts add up to that of the whole, medians need not.
func (f family) steps(g *setupGroup) table {
	t := table{Left: 1, Header: []string{"step by step", f.Stacks.Axis, "% of all steps"}}
	i := slices.IndexFunc(g.loads[0].cells, func(c *cell) bool { return c.pattern == f.Stacks.Whole })
	if i < 0 {
		return t
	}
	extra := g.loads[0].cells[i].extra
	sum, steps := 0.0, f.Stacks.Parts[f.Stacks.Steps:]
	for _, p := range steps {
		sum += extra[p.Key].mean()
	}
	if sum == 0 {
		return t
	}
	for _, p := range steps {
		v := extra[p.Key].mean()
		t.Rows = append(t.Rows, []string{p.Name, decimals(v), decimals(100 * v / sum)})
	}
	t.Rows = append(t.Rows, []string{"all steps", decimals(sum), decimals(100)})
	return t
}
