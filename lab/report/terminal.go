package report

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Options say how the terminal summary looks.
type Options struct {
	Color bool   // ANSI colours
	Width int    // columns; 0: 80
	Dir   string // the results folder, named at the end; empty: not named
}

// Terminal writes the summary: verdicts, figures, demonstrations, and where
// the rest is.
func Terminal(w io.Writer, fam ledger.Family, res results.Results, runs []results.Run, opts Options) error {
	if opts.Width <= 0 {
		opts.Width = 80
	}
	opts.Width = min(max(opts.Width, 40), 140)
	t := &terminal{w: bufio.NewWriter(w), Options: opts, title: fam.Title}
	sum := summarize(runs)
	t.head(res, runs)
	t.verdicts(res)
	t.figures(sum, familyOf(fam))
	t.trouble(sum)
	t.demos(res)
	t.foot(res)
	return t.w.Flush()
}

type terminal struct {
	w     *bufio.Writer
	title string
	Options
}

// Styles of text, as ANSI attributes.
const (
	bold   = "1"
	faint  = "2"
	green  = "32"
	red    = "31"
	yellow = "33"
	purple = "35"
	loud   = "1;30;43"
)

func (t *terminal) style(code, s string) string {
	if !t.Color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t *terminal) say(format string, args ...any) {
	fmt.Fprintf(t.w, format+"\n", args...)
}

// block writes text wrapped to the width, every line indented.
func (t *terminal) block(indent int, code, text string) {
	for _, line := range wrap(clean(text), t.Width-indent) {
		t.say("%s%s", strings.Repeat(" ", indent), t.style(code, line))
	}
}

func (t *terminal) head(res results.Results, runs []results.Run) {
	t.say("")
	t.block(0, bold, fmt.Sprintf("Experiment %s: %s", res.Experiment, t.title))
	t.block(0, faint, machine(res.Machine))
	t.block(0, faint, fmt.Sprintf("%s in %s, seed %d", count(len(runs), "run"), took(res), res.Seed))
	if res.Scaled != "" {
		t.block(0, faint, "Scaled: "+res.Scaled)
	}
	if res.Partial != "" {
		t.say("")
		t.block(0, loud, " PARTIAL RESULT: "+res.Partial+". What follows rests on the runs that were finished. ")
	}
}

// span is text with its style.
type span struct{ code, text string }

// line writes spans side by side; those that no longer fit begin a new line.
func (t *terminal) line(indent int, spans ...span) {
	var b strings.Builder
	used := 0
	for _, s := range spans {
		s.text = clean(s.text)
		n := utf8.RuneCountInString(s.text)
		switch {
		case used == 0:
			b.WriteString(strings.Repeat(" ", indent))
			used = indent + n
		case used+2+n > t.Width:
			b.WriteString("\n" + strings.Repeat(" ", indent+2))
			used = indent + 2 + n
		default:
			b.WriteString("  ")
			used += 2 + n
		}
		b.WriteString(t.style(s.code, s.text))
	}
	t.say("%s", b.String())
}

func (t *terminal) section(title string, rest ...span) {
	t.say("")
	title = strings.ReplaceAll(strings.ToUpper(title), "ΜS", "µs") // a unit is not upper case
	t.line(0, append([]span{{bold, title}}, rest...)...)
}

var marks = map[results.Verdict]struct{ mark, code string }{
	results.Holds:         {"✓", green},
	results.Fails:         {"✗", red},
	results.Inconclusive:  {"~", yellow},
	results.NeedsHardware: {"▢", purple},
}

func (t *terminal) verdicts(res results.Results) {
	var parts []span
	for _, n := range tallyOf(flat(res.Claims)) {
		parts = append(parts, span{marks[n.Verdict].code, fmt.Sprintf("%d %s", n.N, n.words())})
	}
	if len(parts) == 0 {
		parts = []span{{faint, "none yet"}}
	}
	t.section("verdicts", parts...)
	for _, g := range groupClaims(flat(res.Claims)) {
		t.say("")
		t.block(0, bold, g[0].ID+": "+sentence(g[0].Title))
		t.block(2, faint, "Published: "+g[0].Published)
		t.block(2, faint, "Holds if "+g[0].Rule)
		for _, c := range g {
			t.line(2, span{marks[c.Verdict].code, verdictMark(c.Verdict) + " " + pad(strings.ToUpper(string(c.Verdict)), 12)},
				span{"", pad(c.Setup, 12)}, span{bold, interval(c)})
			t.block(4, "", sentence(c.Why))
		}
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(width-utf8.RuneCountInString(s), 0))
}

// worst is how many losses a terminal shows.
const worst = 20

func (t *terminal) figures(sum *summary, f family) {
	if losses := f.losses(sum); len(losses.Rows) > 0 {
		t.section("losses", span{faint, count(len(losses.Rows), "comparison") + ", medians"})
		more := len(losses.Rows) - worst
		losses.Rows = losses.Rows[:min(worst, len(losses.Rows))]
		t.table(losses)
		if more > 0 {
			t.block(2, faint, fmt.Sprintf("and %s more, all of them in the report", number(float64(more))))
		}
	}
	t.heat(f.heats(sum))
	for _, s := range sum.setups {
		if f.inGrid(s) {
			continue // its tables are in the report
		}
		if tables := f.figureTables(sum, s); len(tables) > 0 {
			t.section(setupName(s.setup), span{faint, groupNote(s.loads[0])})
			for _, own := range tables {
				t.table(own)
			}
			for _, l := range s.loads {
				t.killed(l)
			}
			continue
		}
		for _, l := range s.loads {
			t.section(setupName(s.setup)+", "+loadName(l.load), span{faint, groupNote(l)})
			t.table(ratesTable(l.cells))
			t.table(latencyTable(l.cells))
			t.table(processTable(l.cells))
			t.killed(l)
		}
	}
}

// killed lists the contestants that were killed, and why.
func (t *terminal) killed(l *loadGroup) {
	for _, c := range l.cells {
		if len(c.killed) > 0 {
			t.block(2, red, fmt.Sprintf("%s was killed in %d of %s: %s. Its figures count up to then.",
				c.pattern, len(c.killed), count(c.runs, "run"), c.killed[0]))
		}
	}
}

// groupNote says what the figures of a load are based on.
func groupNote(l *loadGroup) string {
	lo, hi, offered := 0, 0, stat{}
	for i, c := range l.cells {
		if i == 0 {
			lo = c.runs
		}
		lo, hi = min(lo, c.runs), max(hi, c.runs)
		offered = append(offered, c.offered...)
	}
	repeats := number(float64(hi))
	if lo != hi {
		repeats = number(float64(lo)) + " to " + repeats
	}
	note := fmt.Sprintf("medians over %s %s", repeats, pick(hi == 1, "repeat", "repeats"))
	if l.idle() {
		return note
	}
	return fmt.Sprintf("%s requests a run, %s", number(offered.median()), note)
}

func (t *terminal) trouble(sum *summary) {
	if len(sum.failed) == 0 {
		return
	}
	t.section("runs without a measurement", span{yellow, count(len(sum.failed), "run")})
	for _, r := range sum.failed {
		t.block(2, "", title(r)+": "+results.Gist(r.Failed))
	}
}

func (t *terminal) demos(res results.Results) {
	if len(res.Demos) == 0 {
		return
	}
	t.section("demonstrations")
	for _, d := range res.Demos {
		t.say("")
		t.block(2, bold, sentence(d.Title))
		t.block(4, "", d.Outcome)
		var counts []string
		for _, n := range d.Counts {
			counts = append(counts, n.Name+" "+number(n.N))
		}
		t.block(4, faint, strings.Join(counts, ", "))
	}
}

func (t *terminal) foot(res results.Results) {
	t.say("")
	if t.Dir != "" {
		t.say("%s  %s", t.style(bold, "Report"), filepath.Join(t.Dir, results.ReportFile))
		t.say("%s    %s, %s", t.style(bold, "Data"), filepath.Join(t.Dir, results.ResultsFile), filepath.Join(t.Dir, results.RunsFile))
	}
	if res.Partial != "" {
		t.block(0, loud, " Partial result: "+res.Partial+" ")
	}
}

// wrap breaks text at spaces. A word longer than a line gets one to itself.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// clean drops control characters, so that no recorded text moves the cursor.
func clean(s string) string { return strings.Map(printable, s) }

func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}
