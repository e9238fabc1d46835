package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
)

// section is a chapter of drawings.
type section struct {
	ID, Nav, Title, Lead string
	Legend               []key
	Notes                []string
	Setups               []panels
}

// panels are the drawings of one set-up.
type panels struct {
	Name   string
	Panels []panel
}

// panel is a drawing with its caption.
type panel struct {
	Title, Note string
	Drawing     template.HTML
}

// key is an entry of a legend: a colour, or a contestant's mark.
type key struct {
	Name, Class string
	Mark        template.HTML
}

// Pictures are the drawings, chapter by chapter. A chapter without any is left out.
func (s *session) Pictures() []section {
	var parts, kinds []key
	for _, p := range s.Family.Stacks.Parts {
		parts = append(parts, key{Name: p.Name, Class: p.Class})
	}
	for _, k := range outcomes {
		kinds = append(kinds, key{Name: k.word, Class: k.kind})
	}
	all := []section{
		{"curves", "Against load", "Against offered load", "What a service is worth that is offered more than it can do: it should climb to its capacity and stay there. Medians over the repeats. A request that is neither answered nor refused in time counts with its whole wait.", seriesKeys(s.patterns), nil, each(s.Setups, s.curves)},
		{"sizes", "Against size", "Against size", "What comes of it when one size grows and the others stay, or grow with it as the name of each says. Throughput counts refusals, as the published harnesses do. Medians over the repeats.", nil, nil, each(s.Setups, s.sizeCurves)},
		{"time", "Over time", "Over time", "What the contestants' processes used in the first repeat.", seriesKeys(s.patterns), nil, each(s.Setups, s.timelines)},
		{"limits", "Limits", "Limits over time", "Limit, in flight and waiting in the first repeat, of each contestant whose limit moves and under every load beyond the capacity.", seriesKeys([]string{"limit", "in flight", "waiting"}), nil, each(s.Setups, s.limits)},
		{"stacks", "Made of", "What it is made of", s.Family.Stacks.Axis + ". Medians over the repeats.", parts, nil, each(s.Setups, s.stack)},
		{"outcomes", "Goodput", "What came back", "Requests a second by outcome. The solid part is goodput. The whole bar is what the published harness calls throughput: there a refusal counts like an answer.", kinds, s.killed(), each(s.served, s.outcomes)},
		{"latency", "Latency", "Latency", "Read from left to right: half of the requests, then nine in ten, then ninety-nine in a hundred. Each step of the axis leaves ten times fewer requests. Good and refused requests are drawn apart, all repeats merged. Time counts from when a request was meant to be sent; in a closed loop, where a client waits for its answer first, that is when it was sent.", seriesKeys(s.patterns), nil, each(s.served, s.latencies)},
		{"process", "Memory and allocations", "Memory, collection and allocations", "What the contestant's process used. A mark for each repeat, a stroke at the median.", seriesKeys(s.patterns), nil, each(s.served, s.processes)},
	}
	return slices.DeleteFunc(all, func(x section) bool { return len(x.Setups)+len(x.Notes) == 0 })
}

func each(setups []*setup, draw func(*setup) []panel) (out []panels) {
	for _, g := range setups {
		if drawn := draw(g); len(drawn) > 0 {
			out = append(out, panels{g.Name, drawn})
		}
	}
	return out
}

func seriesKeys(names []string) (out []key) {
	for n, name := range names {
		out = append(out, key{name, chart.SeriesClass(n), chart.Marker(n)})
	}
	return out
}

func (s *session) series(pattern string) chart.Series {
	return chart.Series{Name: pattern, Number: s.shape(pattern)}
}

// outcomes in stacking order, with the words shown for them.
var outcomes = []struct{ kind, word string }{{"ok", "good"}, {"rejected", "refused"}, {"error", "errors"}, {"timeout", "timeouts"}}

// outcomes stacks what came back per second, a bar for each contestant.
func (s *session) outcomes(g *setup) (out []panel) {
	for _, l := range g.loads {
		if l.idle() {
			continue
		}
		b := chart.Bars{Title: "Requests a second by outcome, " + loadName(l.name), X: chart.Axis{Label: "requests a second"}}
		for _, c := range l.cells {
			row := chart.BarRow{Name: c.Pattern, Label: c.stat(rate("ok")).or(number) + " good/s"}
			switch {
			case len(c.runs) == 0:
				row.Alarm = "no measurement"
			case len(c.killed) > 0:
				row.Alarm = fmt.Sprintf("killed in %d of %s", len(c.killed), count(len(c.runs), "run"))
			}
			for _, k := range outcomes {
				v := c.stat(rate(k.kind)).median()
				row.Segments = append(row.Segments, chart.Segment{Class: k.kind, Value: v,
					Tip: fmt.Sprintf("%s: %s %s a second, %s of what came back", c.Pattern, number(v), k.word, percent(v/c.stat(answers).median()))})
			}
			b.Rows = append(b.Rows, row)
		}
		out = append(out, panel{loadName(l.name), groupNote(l), b.SVG()})
	}
	return out
}

// stack stacks the parts that a figure is made of, a bar for each contestant. A part
// below 0 is noise or a loss and has no room in a bar.
func (s *session) stack(g *setup) []panel {
	of := s.Family.Stacks
	b := chart.Bars{Title: of.Axis + ", " + g.Name, X: chart.Axis{Label: of.Axis}}
	format := formats[of.Total.Format]
	for _, c := range g.loads[0].cells {
		total := c.stat(extra(of.Total.Key))
		if len(total) == 0 {
			continue
		}
		row := chart.BarRow{Name: c.Pattern, Label: total.or(format)}
		if note := c.stat(extra(of.Note.Key)); len(note) > 0 {
			row.Label += ", " + note.or(formats[of.Note.Format]) + " " + of.Note.Name
		}
		for _, p := range of.Parts {
			v := c.stat(extra(p.Key)).median()
			row.Segments = append(row.Segments, chart.Segment{Class: p.Class, Value: v, Tip: c.Pattern + ": " + p.Name + " " + format(v)})
		}
		b.Rows = append(b.Rows, row)
	}
	if len(b.Rows) == 0 {
		return nil
	}
	return []panel{{"", "", b.SVG()}}
}

// processes shows each resource of every contestant under every load, each repeat a dot.
func (s *session) processes(g *setup) (out []panel) {
	for _, r := range resources {
		log := r.name == "goroutines"
		d := chart.Dots{Title: resourceTitles[r.name] + ", " + g.Name, X: chart.Axis{Label: pick(log, "logarithmic", ""), Format: r.format, Log: log}}
		if strings.HasSuffix(r.format(0), "B") {
			d.X.Ticks = sizeTicks
		}
		for _, l := range g.loads {
			dots := []chart.DotRow{{Name: loadName(l.name)}}
			for _, c := range l.cells {
				if v := c.stat(r.of); len(v) > 0 {
					dots = append(dots, chart.DotRow{Name: c.Pattern, Series: s.shape(c.Pattern), Values: v, Median: v.median(),
						Label: pick(len(c.killed) > 0, "killed", v.or(r.format)), Tip: fmt.Sprintf("%s, %s: %s", c.Pattern, loadName(l.name), v.spread(r.format))})
				}
			}
			if len(dots) > 1 {
				d.Rows = append(d.Rows, dots...)
			}
		}
		if len(d.Rows) > 0 {
			out = append(out, panel{resourceTitles[r.name], "", d.SVG()})
		}
	}
	return out
}

var resourceTitles = map[string]string{
	"allocs/req": "Allocations a request", "bytes/req": "Bytes allocated a request", "goroutines": "Peak goroutines", "peak RSS": "Peak resident memory",
	"GC of CPU": "Garbage collection, share of CPU", "true reuse": "True reuse of pooled objects",
}

// sizeTicks are round numbers of KiB, MiB or GiB.
func sizeTicks(s chart.Scale) (ticks []chart.Tick) {
	unit, names := 1.0, []string{" B", " KiB", " MiB", " GiB", " TiB"}
	for ; len(names) > 1 && s.Max/unit >= 1024; names = names[1:] {
		unit *= 1024
	}
	for _, v := range (chart.Scale{Max: s.Max / unit}).Ticks(3) {
		ticks = append(ticks, chart.Tick{At: v * unit, Label: strconv.FormatFloat(v, 'g', 4, 64) + names[0]})
	}
	return ticks
}
