package report

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/chart"
)

// Options say how the terminal summary looks.
type Options struct {
	Color bool   // ANSI colours
	Width int    // columns; 0: 80
	Dir   string // the results folder, named at the end; empty: not named
}

// For returns the options that suit f: colour only on a terminal whose user
// has not set NO_COLOR, and the terminal's width.
func For(f *os.File) Options {
	if !term.IsTerminal(int(f.Fd())) {
		return Options{Width: 100}
	}
	width, _, _ := term.GetSize(int(f.Fd())) // 0 where it is not known
	return Options{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: cmp.Or(width, 80)}
}

// Terminal writes the summary: what the page says, in words.
func Terminal(w io.Writer, fam ledger.Family, res results.Results, runs []results.Run, opts Options) error {
	t, s := newTerminal(w, opts), newSession(fam, res, runs)
	t.head(s)
	for _, ch := range s.Chapters() {
		t.verdicts(ch)
	}
	t.figures(s)
	t.rest(s)
	return t.w.Flush()
}

// TerminalSession writes the summary of several experiments: the answer that decided each claim,
// what would settle those that are open, and the advice.
func TerminalSession(w io.Writer, families []ledger.Family, of results.Session, runs map[string][]results.Run, opts Options) error {
	t, s := newTerminal(w, opts), newWhole(families, of, runs)
	t.noisy(s.session)
	for _, ch := range s.Chapters() {
		t.tally(ch)
	}
	t.table(s.last(), 0)
	title := "OPEN, and what would settle it"
	for _, c := range s.Results.Claims {
		if c.Verdict == results.Inconclusive {
			t.section(title)
			title = ""
			t.say(0, span{plain, c.ID + ": " + c.Why})
		}
	}
	t.advice(s.session)
	for _, out := range of.LeftOut {
		t.gap()
		t.say(0, span{plain, "Left out: " + out.Experiment + ": " + out.Why})
	}
	if len(of.LeftOut) > 0 {
		t.say(0, span{plain, "spillway lab --resume " + t.Dir + " --budget 30m goes on with what was left out"})
	}
	t.files(results.ResultsFile)
	return t.w.Flush()
}

func newTerminal(w io.Writer, opts Options) *terminal {
	opts.Width = min(max(cmp.Or(opts.Width, 80), 40), 140)
	return &terminal{bufio.NewWriter(w), opts}
}

type terminal struct {
	w *bufio.Writer
	Options
}

// Styles of text, as ANSI attributes.
const (
	plain  = ""
	bold   = "1"
	faint  = "2"
	green  = "32"
	red    = "31"
	yellow = "33"
	purple = "35"
	loud   = "1;30;43"
)

// span is text with its style.
type span struct{ code, text string }

func (t *terminal) noisy(s *session) {
	if n := s.Noisy(); n != "" {
		t.gap()
		t.say(0, span{loud, "A DISTURBED SESSION: " + n})
	}
}

func (t *terminal) head(s *session) {
	t.noisy(s)
	t.section(fmt.Sprintf("Experiment %s: %s", s.Results.Experiment, s.Family.Title))
	for _, f := range s.Facts() {
		t.say(0, span{faint, f.Name + ": " + f.Value})
	}
	if p := s.Results.Partial; p != "" {
		t.gap()
		t.say(0, span{loud, "PARTIAL RESULT: " + p + ". What follows rests on the runs that were finished."})
	}
}

// tally is the title of a chapter, and how often each verdict was given.
func (t *terminal) tally(ch chapter) {
	var tally []span
	for _, n := range ch.Tally() {
		tally = append(tally, span{kind(n.Verdict).code, fmt.Sprintf("%d %s", n.N, n.Words)})
	}
	t.section(strings.ToUpper(ch.Title), append(tally, span{faint, pick(len(tally) == 0, "none yet", "")})...)
	t.say(0, span{faint, ch.Wrong()})
}

func (t *terminal) verdicts(ch chapter) {
	t.tally(ch)
	for _, c := range ch.Cards {
		t.gap()
		t.say(0, badge(c.Verdict), span{bold, c.ID + ": " + sentence(c.Title)})
		if c.Published != "" {
			t.say(2, span{faint, "Published: " + c.Published})
		}
		t.say(2, span{plain, c.Undecided()})
		for _, p := range c.Parts {
			t.say(2, span{plain, sentence(p.Title)})
			t.say(2, span{faint, "Rule: " + p.Rule})
			for _, a := range p.Answers {
				facts := span{faint, strings.Join(a.Remarks(), ", ")}
				t.say(4, badge(a.Verdict), span{plain, a.Setup + pick(a.Beside, ", for comparison", "")}, span{bold, a.Interval()}, facts)
				t.say(6, span{plain, sentence(a.Why)})
				t.say(6, span{faint, a.Behind()})
			}
		}
	}
}

func badge(v results.Verdict) span {
	return span{kind(v).code, kind(v).Mark + " " + strings.ToUpper(string(v))}
}

func (t *terminal) figures(s *session) {
	if losses := s.Losses(); len(losses) > 0 {
		const worst = 20 // of which there is room
		n := len(losses[0].Rows)
		t.section("LOSSES", span{faint, count(n, "comparison") + ", medians"})
		losses[0].Rows = losses[0].Rows[:min(worst, n)]
		t.table(losses[0], 2)
		if n > worst {
			t.say(2, span{faint, fmt.Sprintf("and %s more, all of them in the report", number(float64(n-worst)))})
		}
	}
	for _, g := range s.Grid() {
		t.section("GRID", span{faint, "Spillway's time/the better's, medians"})
		t.table(g, 2)
	}
	for _, g := range s.Setups {
		if s.inGrid(g) {
			continue // its tables are in the report
		}
		t.section(strings.ReplaceAll(strings.ToUpper(g.Name), "ΜS", "µs"), span{faint, "medians over the repeats"}) // a unit is not upper case
		for _, tab := range s.Tables(g) {
			t.table(tab, 2)
		}
	}
	for _, text := range s.Killed() {
		t.gap()
		t.say(0, span{red, text})
	}
}

func (t *terminal) rest(s *session) {
	failed := s.Failed()
	if len(failed) > 0 {
		t.section("RUNS WITHOUT A MEASUREMENT", span{yellow, count(len(failed), "run")})
	}
	for _, text := range failed {
		t.say(2, span{plain, text})
	}
	t.advice(s)
	t.files(results.ResultsFile, results.RunsFile)
	if p := s.Results.Partial; p != "" {
		t.say(0, span{loud, "Partial result: " + p})
	}
}

func (t *terminal) advice(s *session) {
	advised := s.Advice()
	if len(advised) > 0 {
		t.section("ADVICE", span{faint, "by the verdicts of this machine"})
	}
	for _, a := range advised {
		var cited []string
		for _, c := range a.Cites {
			cited = append(cited, c.String())
		}
		t.gap()
		t.say(2, span{bold, a.Question})
		t.say(4, span{standing(a.Verdict).code, strings.ToUpper(a.Verdict)}, span{plain, a.Text})
		t.say(4, span{faint, strings.Join(cited, "; ")})
	}
}

// files says where the report and the data are.
func (t *terminal) files(data ...string) {
	t.gap()
	if t.Dir == "" {
		return
	}
	t.say(0, span{bold, "Report"}, span{plain, filepath.Join(t.Dir, results.ReportFile)})
	names := []span{{bold, "Data"}}
	for _, name := range data {
		names = append(names, span{plain, filepath.Join(t.Dir, name)})
	}
	t.say(0, names...)
}

func (t *terminal) style(code, s string) string {
	if !t.Color || s == "" || code == plain {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t *terminal) gap() { fmt.Fprintln(t.w) }

// section begins with an empty line and a title.
func (t *terminal) section(title string, rest ...span) {
	t.gap()
	t.say(0, append([]span{{bold, title}}, rest...)...)
}

// say writes the spans side by side, wrapped to the width at spaces, every line indented.
// Without text it writes nothing.
func (t *terminal) say(indent int, spans ...span) {
	used, margin := 0, strings.Repeat(" ", indent)
	for _, s := range spans {
		piece, gap := "", "  " // of this span on this line
		for word := range strings.FieldsSeq(chart.Clean(s.text)) {
			n := utf8.RuneCountInString(word)
			switch {
			case used == 0:
				fmt.Fprint(t.w, margin)
				piece, used = word, indent+n
			case used+len(gap)+n > t.Width:
				fmt.Fprint(t.w, t.style(s.code, piece), "\n", margin)
				piece, used = word, indent+n
			default:
				piece, used = piece+gap+word, used+len(gap)+n
			}
			gap = " "
		}
		fmt.Fprint(t.w, t.style(s.code, piece))
	}
	if used > 0 {
		t.gap()
	}
}
