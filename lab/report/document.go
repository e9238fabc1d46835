package report

import (
	"html/template"
	"slices"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
	"github.com/spillway-go/spillway/load/document"
)

// Document is a page with a table and pictures over time, for a result that no claim is
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

// HTML is the page, self-contained as that of an experiment.
func (d Document) HTML() (string, error) {
	body, err := document.Render(templates, "body.html", d)
	if err != nil {
		return "", err
	}
	d.Body = template.HTML(body)
	return d.Page.HTML()
}

// Goodput is good answers a second over time.
func (d Document) Goodput() []panel {
	lines := chart.Lines{Title: "Good answers a second over time"}
	for i, t := range d.Timelines {
		step := 0.
		if n := len(t.Points); n > 1 {
			step = (t.Points[n-1].At - t.Points[0].At) / float64(n-1)
		}
		lines.Series = append(lines.Series, t.line(t.Name, i, func(p results.Point) float64 { return float64(p.OK) / max(step, .001) }))
	}
	return overTime("all policies", lines)
}

// Limits are the limit of each contestant, and what was in flight and waiting. Without a limit
// there is no line of it.
func (d Document) Limits() (out []panel) {
	for _, t := range d.Timelines {
		lines := chart.Lines{Title: "Limit, in flight and waiting over time: " + t.Name, Series: []chart.Series{
			t.line("in flight", 0, func(p results.Point) float64 { return float64(p.InFlight) }),
			t.line("waiting", 1, func(p results.Point) float64 { return float64(p.Queued) }),
			t.line("limit", 2, func(p results.Point) float64 { return positive(float64(p.Limit)) }), // last, for in flight lies on it
		}}
		out = append(out, overTime(t.Name, lines)...)
	}
	return out
}

// line is a figure over time, of which NaN is not drawn: with means of the points between, if
// they are many.
func (t Timeline) line(name string, n int, of func(results.Point) float64) chart.Series {
	const most = 60
	line, top := chart.Series{Name: name, Number: n}, 0.
	var all []chart.Point
	for _, p := range t.Points {
		if y := of(p); y >= 0 {
			all, top = append(all, chart.Point{X: p.At, Y: y}), max(top, y)
		}
	}
	for few := range slices.Chunk(all, max((len(all)+most-1)/most, 1)) {
		mean := chart.Point{}
		for _, p := range few {
			mean.X, mean.Y = mean.X+p.X/float64(len(few)), mean.Y+p.Y/float64(len(few))
		}
		line.Points = append(line.Points, mean)
	}
	line.Desc = "at most " + number(top)
	return line
}

// overTime is a panel of the lines that have something in them.
func overTime(title string, lines chart.Lines) []panel {
	lines.Series = slices.DeleteFunc(lines.Series, func(s chart.Series) bool {
		return !slices.ContainsFunc(s.Points, func(p chart.Point) bool { return p.Y > 0 })
	})
	if len(lines.Series) == 0 {
		return nil
	}
	lines.Height, lines.Named, lines.X.Label = 250, true, "seconds"
	return []panel{{title, lines.SVG()}}
}
