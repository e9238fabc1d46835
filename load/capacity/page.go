package capacity

import (
	"fmt"
	"strings"

	"github.com/spillway-go/spillway/load/chart"
	"github.com/spillway-go/spillway/load/document"
	"github.com/spillway-go/spillway/load/numbers"
)

// Page is the result as one HTML page. made is the command that made it.
func (r *Result) Page(made string) (string, error) {
	title := "No rate kept the SLO"
	if r.Found() {
		title = "The knee is " + perSecond(r.Knee)
	}
	if r.Found() && (r.Broken == 0 || r.Ending == Generator) {
		title = "The knee is at least " + perSecond(r.Knee)
	}
	doc := document.Page{Over: "Spillway capacity · " + r.Target + " · SLO " + r.SLO, Title: title, Lead: append([]string{r.Why}, r.Doubts...), Foot: made}
	if len(r.rungs) > 0 {
		doc.Figures = []document.Figure{{Caption: "Good answers a second (diamonds) against offered load (straight)", Chart: r.goodput().SVG()}, {Caption: "p99 (circles) and mean (squares) of the good answers, and what the SLO allows (dashed)", Chart: r.latency().SVG()}}
	}
	for _, a := range r.Advice {
		doc.Facts = append(doc.Facts, document.Fact{Name: a.What, Value: numbers.Format(a.Value), How: a.How})
	}
	return doc.HTML()
}

func (r *Result) goodput() chart.Lines {
	top := r.rungs[len(r.rungs)-1].rate
	asked := chart.Series{Name: "offered", Number: 6, Points: []chart.Point{{}, {X: top, Y: top}}, Desc: "what was asked"}
	good := chart.Series{Name: "good answers a second", Number: 3}
	var said []string
	for _, rung := range r.rungs {
		p := rung.shown()
		tip := fmt.Sprintf("offered %s, %s good: %s", perSecond(p.Rate), perSecond(p.Goodput), rung.verdict())
		good.Points, said = append(good.Points, chart.Point{X: p.Rate, Y: p.Goodput, Tip: tip}), append(said, tip)
	}
	good.Desc = strings.Join(said, ", ")
	return chart.Lines{Title: "Good answers a second against offered load", Height: 260, X: chart.Axis{Label: "offered a second"}, Series: []chart.Series{asked, good}}
}

func (r *Result) latency() chart.Lines {
	mean, tail := chart.Series{Name: "mean", Number: 1}, chart.Series{Name: "p99", Number: 0}
	add := func(s *chart.Series, rate, ms float64) {
		s.Points = append(s.Points, chart.Point{X: rate, Y: ms, Tip: fmt.Sprintf("%s at %s: %s", s.Name, perSecond(rate), millis(ms))})
	}
	for _, rung := range r.rungs {
		if p := rung.shown(); p.Latency != nil {
			add(&mean, p.Rate, p.Latency.Mean)
			add(&tail, p.Rate, p.Latency.P99)
		}
	}
	lines := chart.Lines{Title: "Mean and p99 of the good answers against offered load", Height: 260,
		X: chart.Axis{Label: "offered a second"}, Y: chart.Axis{Log: true, Format: millis}, Series: []chart.Series{mean, tail}}
	for _, b := range r.slo.Latency {
		ms := b.At.Seconds() * 1000
		lines.Series = append(lines.Series, chart.Series{Name: "allowed " + b.Name, Number: 2, Points: []chart.Point{{X: 0, Y: ms}, {X: r.rungs[len(r.rungs)-1].rate, Y: ms}}})
	}
	return lines
}
