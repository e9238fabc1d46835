package report

import (
	"html/template"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
)

// part is one of a run's Extra that a bar is stacked of.
type part struct{ Key, Name, Class string }

// stacks are the bars of a family whose figures are made of parts.
type stacks struct {
	Axis  string
	Total ownFigure // told above the bar
	Note  ownFigure // and beside it, where there is one
	Parts []part
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
