package report

import (
	"fmt"
	"html/template"
	"slices"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// section is a chapter of drawings.
type section struct {
	ID, Nav, Title, Lead string
	Legend               []key
	Notes                []string
	Setups               []panels
}

// panels are the drawings of one set-up, and tables of the same figures.
type panels struct {
	Name   string
	Panels []panel
	Tables []Table
}

// panel is a drawing with its caption.
type panel struct {
	Title, Note string
	Drawing     template.HTML
	table       []Table // of its figures, if those of the set-up do not have them
}

// key is an entry of a legend. Series is the class of what it stands for in the drawings,
// if it is a line.
type key struct {
	Name, Series string
	Mark         template.HTML
}

// Pictures are the drawings, chapter by chapter. A chapter without any is left out.
func (s *session) Pictures() []section {
	if s.detail < mainLoads {
		return nil
	}
	var parts, kinds, flows []key
	for _, p := range s.Family.Stacks.Parts {
		parts = append(parts, key{Name: p.Name, Mark: chart.Swatch(p.Class)})
	}
	for _, k := range outcomes {
		kinds = append(kinds, key{Name: k.word, Mark: chart.Swatch(k.kind)})
		flows = append(flows, key{k.word, chart.SeriesClass(k.line), chart.Marker(k.line)})
	}
	all := []section{
		{"curves", "Against load", "Against offered load", "What a service is worth that is offered more than it can do: it should climb to its capacity, the knee of the curve, and stay there. Medians over the repeats. A request that is neither answered nor refused in time counts with its whole wait.", nil, nil, s.each(s.Setups, s.curves)},
		{"sizes", "Against size", "Against size", "What comes of it when one size grows and the others stay, or grow with it as the name of each says. Throughput counts refusals, as the published harnesses do. Medians over the repeats.", nil, nil, s.each(s.Setups, s.sizeCurves)},
		{"stacks", "Made of", "What it is made of", s.Family.Stacks.Axis + ". Medians over the repeats.", parts, nil, s.each(s.Setups, s.stack)},
		{"outcomes", "Goodput", "What came back", "Requests by outcome, medians over the repeats. The solid part is goodput. The whole bar is what the published harnesses call throughput: there a refusal counts like an answer.", kinds, s.killed(), s.each(s.served, s.outcomes, ofRates)},
		{"latency", "Latency", "Latency", "Read from left to right: half of the requests, then nine in ten, then ninety-nine in a hundred. Each step of the axis leaves ten times fewer requests. Good and refused requests are drawn apart, all repeats merged. Time counts from when a request was meant to be sent; in a closed loop, where a client waits for its answer first, that is when it was sent.", seriesKeys(s.patterns), nil, s.each(s.served, s.latencies, ofGood, ofRefused)},
		{"flow", "Outcomes over time", "What came back, over time", "Requests a second by outcome in the first repeat, under the highest load.", flows, nil, s.each(s.served, s.flows)},
		{"heat", "Latency over time", "Latency, over time", "How long the good answers of each moment took in the first repeat, under the highest load: time to the right, latency upwards. The stronger the colour, the larger the share of that moment's answers. Latency counts from when a request was meant to be sent.", heatKeys(), nil, s.each(s.served, s.heats)},
		{"limits", "Limits", "Limits over time", "Limit, in flight and waiting in the first repeat, of each contestant whose limit moves and under every load beyond the capacity.", seriesKeys(limitNames()), nil, s.each(s.Setups, s.limits)},
		{"time", "Over time", "Over time", "What the contestants' processes used in the first repeat.", seriesKeys(s.patterns), nil, s.each(s.Setups, s.timelines)},
		{"lag", "Sent on time", "Was the load sent on time?", "By how much requests were sent later than intended, because the generator was busy. Latency counts from the intended moment, so that this is in it. A dot for each repeat, a stroke at the median.", nil, nil, s.each(s.served, s.lags, ofLag)},
		{"priorities", "Priorities", "Fairness by priority", "What requests of each priority got, medians over the repeats.", nil, nil, s.each(s.Setups, s.priorities)},
		{"process", "Cost", "What it cost", "Processor time and memory of the contestant's process. A dot for each repeat, a stroke at the median.", nil, nil, s.each(s.served, s.processes, ofProcess)},
	}
	all = slices.DeleteFunc(all, func(x section) bool { return len(x.Setups)+len(x.Notes) == 0 })
	if s.brief && !s.Roomy() {
		return all[:min(1, len(all))] // which says the most
	}
	return all
}

// each draws the set-ups; which are the standard tables that have the same figures.
func (s *session) each(setups []*setup, draw func(*setup) []panel, which ...int) (out []panels) {
	for _, g := range setups {
		drawn := draw(g)
		if len(drawn) == 0 {
			continue
		}
		p := panels{Name: g.Name, Panels: drawn}
		if s.Roomy() || !s.brief {
			p.Tables = s.standard(g, which...)
		}
		for _, d := range drawn {
			p.Tables = append(p.Tables, d.table...)
		}
		out = append(out, p)
	}
	return out
}

// drawn are the loads of a set-up for which there is room.
func (s *session) drawn(g *setup) []*load {
	if s.detail > mainLoads {
		return g.loads
	}
	return []*load{g.main()}
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

// outcomes in stacking order, with the words shown for them, their line where they are
// lines, and their count in a step of a time line.
var outcomes = []struct {
	kind, word string
	line       int
	in         func(results.Point) uint64
}{
	{"ok", "good", 3, func(p results.Point) uint64 { return p.OK }},
	{"rejected", "refused", 6, func(p results.Point) uint64 { return p.Rejected }},
	{"error", "errors", 0, func(p results.Point) uint64 { return p.Errors }},
	{"timeout", "timeouts", 2, func(p results.Point) uint64 { return p.Timeouts }},
}

// outcomes stacks what came back: a second, a bar for each contestant under a load; or,
// where the load is swept, of what was offered, a bar for each load of a contestant.
func (s *session) outcomes(g *setup) (out []panel) {
	if len(g.sweep()) > 0 {
		for _, name := range s.patterns {
			b := chart.Bars{Title: "Requests by outcome, " + name, X: chart.Axis{Label: "share of what was offered", Format: percent, Scale: chart.Scale{Max: 1}}}
			for _, l := range g.loads {
				if c := l.cell(name); c.asked() {
					b.Rows = append(b.Rows, c.bar("offered "+l.name, func(kind string) figure { return func(r *results.Run) float64 { return r.Share(kind) } }, percent, "of what was offered"))
				}
			}
			if len(b.Rows) > 0 {
				out = append(out, panel{Title: name, Drawing: b.SVG()})
			}
		}
		return out
	}
	for _, l := range s.drawn(g) {
		if l.idle() {
			continue
		}
		b := chart.Bars{Title: "Requests a second by outcome, " + loadName(l.name), X: chart.Axis{Label: "requests a second"}}
		for _, c := range l.cells {
			b.Rows = append(b.Rows, c.bar(c.Pattern, rate, number, "a second"))
		}
		out = append(out, panel{Title: loadName(l.name), Note: groupNote(l), Drawing: b.SVG()})
	}
	return out
}

// bar stacks the outcomes of a cell.
func (c *cell) bar(name string, of func(kind string) figure, format func(float64) string, unit string) chart.BarRow {
	row := chart.BarRow{Name: name, Label: c.stat(rate("ok")).or(number) + " good/s"}
	switch {
	case len(c.runs) == 0:
		row.Alarm = "no measurement"
	case len(c.killed) > 0:
		row.Alarm = fmt.Sprintf("killed in %d of %s", len(c.killed), count(len(c.runs), "run"))
	}
	for _, k := range outcomes {
		v := c.stat(of(k.kind)).median()
		row.Segments = append(row.Segments, chart.Segment{Class: k.kind, Value: v, Tip: fmt.Sprintf("%s: %s %s %s", name, format(v), k.word, unit)})
	}
	return row
}

// stack stacks the parts that a figure is made of, a bar for each contestant. A part
// below 0 is noise or a loss and has no room in a bar.
func (s *session) stack(g *setup) []panel {
	of := s.Family.Stacks
	total, note := own(of.Total), own(of.Note)
	b := chart.Bars{Title: of.Axis + ", " + g.Name, X: chart.Axis{Label: of.Axis}}
	var parts []column
	for _, p := range of.Parts {
		parts = append(parts, column{p.Name, extra(p.Key), decimals})
	}
	var lines []row
	for _, c := range g.loads[0].cells {
		if !have([]column{total}, c) {
			continue
		}
		bar := chart.BarRow{Name: c.Pattern, Label: c.stat(total.of).or(total.format)}
		if have([]column{note}, c) {
			bar.Label += ", " + c.stat(note.of).or(note.format) + " " + note.name
		}
		for i, p := range parts {
			v := c.stat(p.of)
			bar.Segments = append(bar.Segments, chart.Segment{Class: of.Parts[i].Class, Value: v.median(), Tip: c.Pattern + ": " + p.name + " " + v.or(total.format)})
		}
		b.Rows, lines = append(b.Rows, bar), append(lines, c.row(parts))
	}
	if len(lines) == 0 {
		return nil
	}
	return []panel{{Drawing: b.SVG(), table: flat(lines, names(of.Axis, parts)...)}}
}

// processes shows each resource of every contestant, each repeat a dot.
func (s *session) processes(g *setup) (out []panel) {
	for _, r := range resources {
		out = append(out, s.dots(g, resourceTitles[r.name], r)...)
	}
	return out
}

// lags shows how late requests were sent.
func (s *session) lags(g *setup) []panel {
	return s.dots(g, "Sent late by, p99", column{"p99", lag(.99), nanos})
}

// dots shows a figure of every contestant under each load that is drawn. Figures that lie
// far apart need a logarithmic axis.
func (s *session) dots(g *setup, title string, of column) []panel {
	var all stat
	for _, l := range s.drawn(g) {
		for _, c := range l.cells {
			all = append(all, c.stat(of.of)...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	log := slices.Min(all) > 0 && slices.Max(all) > 20*slices.Min(all)
	d := chart.Dots{Title: title + ", " + g.Name, X: axisOf("", log, of.format)}
	for _, l := range s.drawn(g) {
		dots := []chart.DotRow{{Name: loadName(l.name)}}
		for _, c := range l.cells {
			if v := c.stat(of.of); len(v) > 0 {
				dots = append(dots, chart.DotRow{Name: c.Pattern, Series: s.shape(c.Pattern), Values: v, Median: v.median(),
					Label: pick(len(c.killed) > 0, "killed", v.or(of.format)), Tip: c.Pattern + ": " + v.spread(of.format)})
			}
		}
		if len(dots) > 1 {
			d.Rows = append(d.Rows, dots...)
		}
	}
	return []panel{{Title: title, Drawing: d.SVG()}}
}

var resourceTitles = map[string]string{
	"CPU/good": "Processor time for a good answer", "bytes/good": "Bytes allocated for a good answer",
	"allocs/req": "Allocations a request", "goroutines": "Peak goroutines", "peak RSS": "Peak resident memory",
	"GC of CPU": "Garbage collection, share of CPU", "true reuse": "True reuse of pooled objects",
}

// sizeTicks are round numbers of KiB, MiB or GiB.
func sizeTicks(s chart.Scale) (ticks []chart.Tick) {
	var at []float64
	unit := 1.0
	for s.Max/unit >= 1024 {
		unit *= 1024
	}
	for _, v := range (chart.Scale{Max: s.Max / unit}).Ticks(3) {
		at = append(at, v*unit)
	}
	if s.Log {
		at = nil
		for v := 1.0; v <= min(s.Max, 1<<50); v *= 4 {
			at = append(at, v)
		}
	}
	for _, v := range at {
		if v >= s.Min {
			ticks = append(ticks, chart.Tick{At: v, Label: size(v)})
		}
	}
	return ticks
}
