package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report/chart"
	"github.com/spillway-go/spillway/lab/results"
)

// page is the data of the template: text and drawings, all computed.
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
	OverTime        []legendKey
	Curves          bool   // there are some
	Answered, Timed bool   // something was sent; and its latency was measured
	Used            bool   // the resource use of processes is known
	Parts           []part // of the stacked bars
	Losses          *table
	Heats           []heat
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
	ID, Title, Published, Rule string
	Rows                       []verdictRow
}

type verdictRow struct {
	results.OldClaim
	Class, Mark, Interval, Noise string
	Chart                        template.HTML
}

type legendKey struct {
	Name, Class string
	Key         template.HTML
}

// setupView is the charts and figures of one set-up.
type setupView struct {
	Name   string
	Stack  template.HTML
	Idle   bool      // nothing was sent; the tables are the experiment's own
	Curves []picture // over the loads
	Limits []picture // over time
	// Timelines are what the processes used over time.
	Timelines []picture
	Loads     []loadView
	Process   []picture
	Killed    []string
	Tables    []figureTable
}

func (v setupView) answered() bool { return !v.Idle || len(v.Killed) > 0 }

// Timed reports whether a latency, or its absence, has to be shown.
func (v setupView) Timed() bool {
	return !v.Idle && slices.ContainsFunc(v.Loads, func(l loadView) bool { return !l.Untimed })
}

type loadView struct {
	Name, Note            string
	Outcomes, OK, Refused template.HTML
	Idle                  bool // nothing was sent
	Untimed               bool // or the latency was not measured
}

// figureTable is one kind of figures of a set-up, with a group of rows for
// each load.
type figureTable struct {
	table
	Spread string // what the drawing after the figures shows; empty: there is none
	Groups []figureRows
}

type figureRows struct {
	Name, Note string
	Rows       [][]string
	Spreads    []template.HTML
}

type picture struct {
	Title string
	SVG   template.HTML
}

// runRow is one raw run.
type runRow struct {
	Cells []string
	Note  string
}

func newPage(fam ledger.Family, res results.Results, runs []results.Run) *page {
	sum := summarize(runs)
	p := &page{
		Experiment: res.Experiment, Family: familyOf(fam), Partial: sentence(res.Partial), Scaled: res.Scaled,
		Schema: res.Schema, Command: command(res.Command), Demos: res.Demos,
		Recommendations: recommend(familyOf(fam).Family, flat(res.Claims)),
	}
	if p.Schema == "" {
		p.Schema = results.Schema
	}
	for _, t := range tallyOf(flat(res.Claims)) {
		p.Tally = append(p.Tally, tallyView{verdictClass(t.Verdict), verdictMark(t.Verdict), t.words(), t.N})
	}
	p.Facts = facts(res, runs, sum)
	p.InShort = inShort(p.Family, sum)
	p.Cards = cards(flat(res.Claims))
	for _, k := range outcomeKinds {
		p.Outcomes = append(p.Outcomes, legendKey{Name: k.word, Class: k.class})
	}
	for i, name := range sum.patterns {
		p.Patterns = append(p.Patterns, legendKey{name, seriesClass(i), template.HTML(chart.Marker(seriesClass(i), i))})
	}
	if losses := p.Family.losses(sum); len(losses.Rows) > 0 {
		p.Losses = &losses
	}
	p.Heats = p.Family.heats(sum)
	for _, g := range sum.setups {
		v := sum.setupView(g)
		if tables := p.Family.figureTables(sum, g); len(tables) > 0 {
			v.Idle, v.Process, v.Tables = true, nil, ownTables(tables, groupNote(g.loads[0]))
			v.Stack = p.Family.stackChart(sum, g)
		}
		p.Setups = append(p.Setups, v)
		p.Curves = p.Curves || len(v.Curves) > 0
		p.Answered = p.Answered || v.answered()
		p.Timed = p.Timed || v.Timed()
		p.Used = p.Used || len(v.Process) > 0
	}
	if slices.ContainsFunc(p.Setups, func(v setupView) bool { return v.Stack != "" }) {
		p.Parts = p.Family.Stacks.Parts
	}
	p.OverTime = overTimeKeys()
	p.Runs = runRows(p.Family, runs)
	for _, r := range sum.failed {
		p.Failed = append(p.Failed, title(r)+": "+results.Gist(r.Failed))
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

// inShort describes each set-up's high load (or its last) in one sentence.
func inShort(f family, sum *summary) []string {
	var out []string
	for _, g := range sum.setups {
		l := g.loads[len(g.loads)-1]
		if i := slices.IndexFunc(g.loads, func(l *loadGroup) bool { return l.load == "high" }); i >= 0 {
			l = g.loads[i]
		}
		if len(f.figureTables(sum, g)) > 0 {
			continue
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
			out = append(out, fmt.Sprintf("%s, at %s, good answers a second: %s.",
				sentence(setupName(g.setup)), loadName(l.load), strings.Join(parts, ", ")))
		}
	}
	return out
}

// groupClaims puts the set-ups of one claim together.
func groupClaims(decided []results.OldClaim) [][]results.OldClaim {
	var groups [][]results.OldClaim
	for _, c := range decided {
		i := slices.IndexFunc(groups, func(g []results.OldClaim) bool {
			return g[0].ID == c.ID && g[0].Title == c.Title && g[0].Rule == c.Rule && g[0].Published == c.Published && g[0].Unit == c.Unit
		})
		if i < 0 {
			groups = append(groups, []results.OldClaim{c})
			continue
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

func cards(decided []results.OldClaim) []card {
	var out []card
	for _, g := range groupClaims(decided) {
		k := card{ID: g[0].ID, Title: sentence(g[0].Title), Published: g[0].Published, Rule: g[0].Rule}
		pictures := intervalCharts(g)
		for i, c := range g {
			c.Why = sentence(c.Why)
			row := verdictRow{OldClaim: c, Class: verdictClass(c.Verdict), Mark: verdictMark(c.Verdict), Interval: interval(c), Chart: pictures[i]}
			if c.NoiseFloor > 0 {
				row.Noise = noiseWords(c)
			}
			k.Rows = append(k.Rows, row)
		}
		out = append(out, k)
	}
	return out
}

func (s *summary) setupView(g *setupGroup) setupView {
	v := setupView{Name: setupName(g.setup), Curves: s.curves(g), Limits: g.limits(), Timelines: s.timelines(g)}
	okOf, rejectedOf := func(c *cell) *latency { return &c.ok }, func(c *cell) *latency { return &c.rejected }
	for _, l := range g.loads {
		lv := loadView{
			Name: loadName(l.load), Note: groupNote(l), Idle: l.idle(), Untimed: l.untimed(),
			Outcomes: outcomesChart(l),
			OK:       s.latencyChart(l, "good", latencyScale(g, l, okOf), okOf),
			Refused:  s.latencyChart(l, "refused", latencyScale(g, l, rejectedOf), rejectedOf),
		}
		for _, c := range l.cells {
			if len(c.killed) > 0 {
				v.Killed = append(v.Killed, fmt.Sprintf("%s, %s, in %d of %s: %s", c.pattern, loadName(l.load), len(c.killed), count(c.runs, "run"), c.killed[0]))
			}
		}
		v.Loads = append(v.Loads, lv)
	}
	v.Tables = s.figureTables(g)
	for _, r := range resources {
		if svg := s.dotsChart(g, r); svg != "" {
			v.Process = append(v.Process, picture{r.title, svg})
		}
	}
	return v
}

// figureTables are the medians of a set-up; the rates also show how far the
// repeats lie from them.
func (s *summary) figureTables(g *setupGroup) []figureTable {
	off := .01 // the largest distance of a repeat from its median
	for _, l := range g.loads {
		for _, c := range l.cells {
			for _, v := range relative(c.good) {
				off = max(off, v, -v)
			}
		}
	}
	var out []figureTable
	for _, of := range []func([]*cell) table{ratesTable, latencyTable, processTable} {
		t := figureTable{}
		if len(out) == 0 {
			t.Spread = "good, each repeat, ± " + percent(off)
		}
		for _, l := range g.loads {
			t.table = of(l.cells)
			rows := figureRows{Name: loadName(l.load), Rows: t.Rows}
			if t.Spread != "" && !l.idle() {
				rows.Note = groupNote(l)
				for _, c := range l.cells {
					if !c.sent() {
						continue // has no row either
					}
					n := s.shape(c.pattern)
					rows.Spreads = append(rows.Spreads, template.HTML(chart.Strip(seriesClass(n), n, chart.Scale{Min: -off, Max: off},
						relative(c.good), c.pattern+", good a second: "+spread(c.good, number))))
				}
			}
			if len(rows.Rows) > 0 {
				t.Groups = append(t.Groups, rows)
			}
		}
		if len(t.Groups) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// ownTables are a family's own figures, each table with one group of rows.
func ownTables(tables []table, note string) (out []figureTable) {
	for _, t := range tables {
		out = append(out, figureTable{table: t, Groups: []figureRows{{Note: note, Rows: t.Rows}}})
	}
	return out
}

// relative is the distance of each repeat from the median, as a share of it.
func relative(s stat) []float64 {
	var out []float64
	if m := s.median(); m > 0 {
		for _, v := range s {
			out = append(out, v/m-1)
		}
	}
	return out
}

// runRows are the runs that were sent requests, and all that failed: the others are
// not shown here if the family has figures of its own.
func runRows(f family, runs []results.Run) []runRow {
	rows := make([]runRow, 0, len(runs))
	for i := range runs {
		r := &runs[i]
		if len(f.Figures) > 0 && r.Offered == 0 && r.Killed == "" && r.Failed == "" {
			continue
		}
		ok := latency{}
		ok.add(r.Of("ok").Latency)
		name := r.Pattern + pick(r.Twin, " (twin)", "")
		row := runRow{Cells: []string{
			setupName(r.Setup), r.Load, name, fmt.Sprint(r.Repeat + 1), fmt.Sprintf("%.1f s", r.Elapsed), number(float64(r.Offered)),
			number(r.Rate("ok")), number(r.Rate("rejected")), number(r.Rate("error")), number(r.Rate("timeout")),
			ok.median.or(nanos), ok.p99.or(nanos), number(float64(r.Process.PeakGoroutines)), size(float64(r.Process.PeakRSS)),
		}}
		switch {
		case r.Killed != "":
			row.Note = "killed: " + r.Killed
		case r.Failed != "":
			row.Note = "no measurement: " + results.Gist(r.Failed)
		}
		rows = append(rows, row)
	}
	return rows
}
