package report

import (
	"html/template"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
	"github.com/spillway-go/spillway/load/document"
)

// Document is a page with a table and drawings over time, for a result that no claim is
// about. What is empty is not on it.
type Document struct {
	document.Page // its Body is made of the rest

	Note      string // above the table
	Table     Table
	Timelines []Timeline
}

// Timeline is what one contestant did over time. The limit is 0 where there is none.
type Timeline struct {
	Name   string
	Points []results.Point
}

// goodput is that of the interval which ends with the point.
var goodput = over{"Good answers a second", false, number, each(outcomes[0].in)}

// HTML is the page, self-contained as that of an experiment.
func (d Document) HTML() (string, error) {
	body, err := render("body.html", d)
	if err != nil {
		return "", err
	}
	d.Body = template.HTML(body)
	return d.Page.HTML()
}

// Pictures are goodput over time, and the limits of those that have one.
func (d Document) Pictures() (all []section) {
	good := chart.Lines{Title: goodput.name, Height: 260, Y: chart.Axis{Format: goodput.format}}
	var names []string
	var limits []panel
	for n, t := range d.Timelines {
		names = append(names, t.Name)
		good.Series = append(good.Series, goodput.draw(chart.Series{Name: t.Name, Number: n}, t.Points))
		limits = append(limits, limitPanel(t.Name, t.Points)...)
	}
	if drawn := overTime("all policies", "", good); len(drawn) > 0 {
		all = append(all, section{"goodput", "Goodput", "Good answers over time", "Answers in time, a second.", seriesKeys(names), nil, []panels{withTables(drawn)}})
	}
	if len(limits) > 0 {
		all = append(all, section{"limits", "Limits", "Limits over time", "Limit, in flight and waiting, under each policy.", seriesKeys(limitNames()), nil, []panels{withTables(limits)}})
	}
	return all
}

// withTables are drawings with the tables of the same figures.
func withTables(drawn []panel) (out panels) {
	out.Panels = drawn
	for _, d := range drawn {
		out.Tables = append(out.Tables, d.table...)
	}
	return out
}
