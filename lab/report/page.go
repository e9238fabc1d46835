package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// page is what the template shows: words and drawings, nothing to compute.
type page struct {
	Style           template.CSS
	Script          template.JS
	Experiment      string
	Family          family
	Partial         string
	Scaled          string
	Schema          string
	Tally           []tallyView
	InShort         []string
	Facts           []fact
	Command         string
	Cards           []card
	Outcomes        []legendKey
	Patterns        []legendKey
	Setups          []setupView
	Runs            []runRow
	Failed          []string
	Demos           []results.Demo
	Recommendations []recommendation
}

type tallyView struct {
	Class, Mark, Words string
	N                  int
}

type fact struct{ Name, Value string }

// card is one claim, with a row for each set-up it was decided in.
type card struct {
	Anchor, ID, Title, Published, Rule, Source string
	Rows                                       []verdictRow
}

type verdictRow struct {
	results.Claim
	Class, Mark, Interval, Noise string
	Chart                        template.HTML
}

type legendKey struct {
	Name, Class string
	Key         template.HTML
}

// setupView is the pictures and figures of one set-up.
type setupView struct {
	Name    string
	Loads   []loadView
	Process []template.HTML
	Killed  []string
}

type loadView struct {
	Name, Note            string
	Outcomes, OK, Refused template.HTML
	Rates                 []rateRow
	Latency, Process      table
}

// rateRow is a row of the table of rates, with the spread of its goodput.
type rateRow struct {
	Cells  []string
	Spread template.HTML
}

// runRow is one raw run.
type runRow struct {
	Cells []string
	Note  string
}

func newPage(res results.Results, runs []results.Run) *page {
	sum := summarize(runs)
	p := &page{
		Experiment: res.Experiment, Family: familyOf(res.Experiment), Partial: res.Partial, Scaled: res.Scaled,
		Schema: res.Schema, Command: command(res.Command), Demos: res.Demos,
		Recommendations: recommend(res.Experiment, res.Claims),
	}
	if p.Schema == "" {
		p.Schema = results.Schema
	}
	for _, t := range tallyOf(res.Claims) {
		p.Tally = append(p.Tally, tallyView{verdictClass(t.Verdict), verdictMark(t.Verdict), t.words(), t.N})
	}
	p.Facts = facts(res, runs, sum)
	p.InShort = inShort(sum)
	p.Cards = cards(res.Claims)
	for _, k := range outcomeKinds {
		p.Outcomes = append(p.Outcomes, legendKey{Name: k.word, Class: k.class})
	}
	for i, name := range sum.patterns {
		p.Patterns = append(p.Patterns, legendKey{name, seriesClass(i), template.HTML(chart.Marker(seriesClass(i), i))})
	}
	for _, g := range sum.setups {
		p.Setups = append(p.Setups, sum.setupView(g))
	}
	p.Runs = runRows(runs)
	for _, r := range sum.failed {
		p.Failed = append(p.Failed, fmt.Sprintf("%s, %s load, %s, repeat %d: %s", setupName(r.Setup), r.Load, r.Pattern, r.Repeat, r.Failed))
	}
	return p
}

func verdictMark(v results.Verdict) string {
	if m, ok := marks[v]; ok {
		return m.mark
	}
	return "?"
}

func facts(res results.Results, runs []results.Run, sum *summary) []fact {
	made := count(len(runs), "run")
	if sum.twins > 0 {
		made += fmt.Sprintf(", %d of them twins that measure noise", sum.twins)
	}
	all := []fact{{"Machine", machine(res.Machine)}, {"Runs", made}}
	if !res.Started.IsZero() {
		all = append(all, fact{"Made", res.Started.UTC().Format("2 January 2006, 15:04 MST") + ", in " + took(res)})
	}
	return append(all, fact{"Seed", fmt.Sprint(res.Seed)})
}

// inShort tells each set-up's high load (or its last) in one sentence.
func inShort(sum *summary) []string {
	var out []string
	for _, g := range sum.setups {
		l := g.loads[len(g.loads)-1]
		if i := slices.IndexFunc(g.loads, func(l *loadGroup) bool { return l.load == "high" }); i >= 0 {
			l = g.loads[i]
		}
		var parts []string
		for _, c := range l.cells {
			if c.runs == 0 {
				continue
			}
			part := fmt.Sprintf("%s %s", c.pattern, number(c.good.median()))
			switch share := c.refusedShare.median(); {
			case len(c.killed) > 0:
				part += " until it was killed"
			case share >= .005:
				part += fmt.Sprintf(" (%s refused)", percent(share))
			}
			parts = append(parts, part)
		}
		if len(parts) > 0 {
			name := setupName(g.setup)
			out = append(out, fmt.Sprintf("%s, at %s load, good answers a second: %s.",
				strings.ToUpper(name[:1])+name[1:], l.load, strings.Join(parts, ", ")))
		}
	}
	return out
}

// cards groups the claims by what they say; the set-ups share a card.
func cards(claims []results.Claim) []card {
	var out []card
	groups := [][]results.Claim{}
	for _, c := range claims {
		i := slices.IndexFunc(groups, func(g []results.Claim) bool {
			return g[0].ID == c.ID && g[0].Title == c.Title && g[0].Rule == c.Rule && g[0].Published == c.Published && g[0].Unit == c.Unit
		})
		if i < 0 {
			groups = append(groups, []results.Claim{c})
			continue
		}
		groups[i] = append(groups[i], c)
	}
	for _, g := range groups {
		k := card{Anchor: "claim-" + g[0].ID, ID: g[0].ID, Title: g[0].Title, Published: g[0].Published, Rule: g[0].Rule, Source: g[0].Source}
		pictures := intervalCharts(g)
		for i, c := range g {
			row := verdictRow{Claim: c, Class: verdictClass(c.Verdict), Mark: verdictMark(c.Verdict), Interval: interval(c), Chart: pictures[i]}
			if c.NoiseFloor > 0 {
				row.Noise = "± " + with(c.NoiseFloor, pick(c.Unit == "x", "", c.Unit))
			}
			k.Rows = append(k.Rows, row)
		}
		out = append(out, k)
	}
	return out
}

func (s *summary) setupView(g *setupGroup) setupView {
	v := setupView{Name: setupName(g.setup)}
	okOf, rejectedOf := func(c *cell) *latency { return &c.ok }, func(c *cell) *latency { return &c.rejected }
	okScale, rejectedScale := latencyScale(g, okOf), latencyScale(g, rejectedOf)
	for _, l := range g.loads {
		lv := loadView{
			Name: l.load, Note: groupNote(l),
			Outcomes: outcomesChart(l),
			OK:       s.latencyChart(l, "good", okScale, okOf),
			Refused:  s.latencyChart(l, "refused", rejectedScale, rejectedOf),
			Latency:  latencyTable(l.cells),
			Process:  processTable(l.cells),
		}
		var good []float64
		for _, c := range l.cells {
			good = append(good, c.good...)
			if len(c.killed) > 0 {
				v.Killed = append(v.Killed, fmt.Sprintf("%s at %s load, in %d of %s: %s", c.pattern, l.load, len(c.killed), count(c.runs, "run"), c.killed[0]))
			}
		}
		for i, row := range ratesTable(l.cells).Rows {
			c := l.cells[i]
			n := s.shape(c.pattern)
			lv.Rates = append(lv.Rates, rateRow{row, template.HTML(chart.Strip(seriesClass(n), n, chart.FromZero(good...), c.good,
				c.pattern+", good a second: "+spread(c.good, number)))})
		}
		v.Loads = append(v.Loads, lv)
	}
	for _, d := range []struct {
		title  string
		log    bool
		format func(float64) string
		of     func(*cell) stat
	}{
		{"Peak goroutines", true, number, func(c *cell) stat { return c.goroutines }},
		{"Peak resident memory", false, size, func(c *cell) stat { return c.rss }},
		{"Garbage collection, share of CPU", false, percent, func(c *cell) stat { return c.gc }},
		{"Allocations a request", false, number, func(c *cell) stat { return c.allocs }},
		{"Bytes allocated a request", false, size, func(c *cell) stat { return c.bytes }},
		{"True reuse of pooled objects", false, percent, func(c *cell) stat { return c.reuse }},
	} {
		if svg := s.dotsChart(g, d.title, d.log, d.format, d.of); svg != "" {
			v.Process = append(v.Process, svg)
		}
	}
	return v
}

func runRows(runs []results.Run) []runRow {
	rows := make([]runRow, 0, len(runs))
	for i := range runs {
		r := &runs[i]
		ok := latency{}
		ok.add(r.Of("ok").Latency)
		name := r.Pattern + pick(r.Twin, " (twin)", "")
		row := runRow{Cells: []string{
			setupName(r.Setup), r.Load, name, fmt.Sprint(r.Repeat), fmt.Sprintf("%.1f s", r.Elapsed), number(float64(r.Offered)),
			number(r.Rate("ok")), number(r.Rate("rejected")), number(r.Rate("error")), number(r.Rate("timeout")),
			ok.median.or(nanos), ok.p99.or(nanos), number(float64(r.Process.PeakGoroutines)), size(float64(r.Process.PeakRSS)),
		}}
		switch {
		case r.Killed != "":
			row.Note = "killed: " + r.Killed
		case r.Failed != "":
			row.Note = "no measurement: " + r.Failed
		}
		rows = append(rows, row)
	}
	return rows
}
