package report

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
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

// For returns the options that suit f: colour only on a terminal whose user
// has not set NO_COLOR, and the terminal's width.
func For(f *os.File) Options {
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return Options{Width: 100}
	}
	return Options{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: terminalWidth(f)}
}

// Terminal writes the summary: what the page says, in words.
func Terminal(w io.Writer, fam ledger.Family, res results.Results, runs []results.Run, opts Options) error {
	if opts.Width <= 0 {
		opts.Width = 80
	}
	opts.Width = min(max(opts.Width, 40), 140)
	t := &terminal{bufio.NewWriter(w), opts}
	s := newSession(fam, res, runs)
	t.head(s)
	for _, ch := range s.Chapters() {
		t.verdicts(ch)
	}
	t.figures(s)
	t.rest(s)
	return t.w.Flush()
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

func (t *terminal) head(s *session) {
	t.block(0, bold, "\n"+fmt.Sprintf("Experiment %s: %s", s.Results.Experiment, s.Family.Title))
	for _, f := range s.Facts() {
		t.block(0, faint, f.Name+": "+f.Value)
	}
	if p := s.Results.Partial; p != "" {
		t.block(0, loud, "\n PARTIAL RESULT: "+p+". What follows rests on the runs that were finished.")
	}
}

func (t *terminal) verdicts(ch chapter) {
	title := []span{{bold, strings.ToUpper(ch.Title)}}
	for _, n := range ch.Tally {
		title = append(title, span{verdicts[kind(n.Verdict)].code, fmt.Sprintf("%d %s", n.N, n.Words)})
	}
	if len(ch.Cards) == 0 {
		title = append(title, span{faint, "none yet"})
	}
	t.gap()
	t.line(0, title...)
	for _, c := range ch.Cards {
		t.block(0, bold+";"+badge(c.Verdict).code, fmt.Sprintf("\n%s · %s: %s", badge(c.Verdict).text, c.ID, sentence(c.Title)))
		if c.Published != "" {
			t.block(2, faint, "Published: "+c.Published)
		}
		t.block(2, plain, c.Undecided())
		for _, p := range c.Parts {
			t.block(2, plain, p.Title)
			t.block(2, faint, "Rule: "+p.Rule)
			for _, a := range p.Answers {
				words := []span{badge(a.Verdict), {plain, a.Setup + pick(a.Beside, ", for comparison", "")}, {bold, a.Interval()}}
				for _, r := range a.Remarks() {
					words = append(words, span{faint, r})
				}
				t.line(4, words...)
				t.block(6, plain, sentence(a.Why))
				t.block(6, faint, a.Behind())
			}
		}
	}
}

func badge(v results.Verdict) span {
	k := verdicts[kind(v)]
	return span{k.code, fmt.Sprintf("%s %-12s", k.mark, strings.ToUpper(string(v)))}
}

// worst is how many losses a terminal shows.
const worst = 20

func (t *terminal) figures(s *session) {
	if losses := s.Losses(); losses != nil {
		all := losses.Groups[0].Rows
		t.section("losses", count(len(all), "comparison")+", medians")
		losses.Groups[0].Rows = all[:min(worst, len(all))]
		t.table(*losses)
		if more := len(all) - worst; more > 0 {
			t.block(2, faint, fmt.Sprintf("and %s more, all of them in the report", number(float64(more))))
		}
	}
	for _, g := range s.Grid() {
		t.section("grid", "Spillway's time/the better's, medians")
		t.table(g)
	}
	for _, g := range s.setups {
		if !s.inGrid(g) {
			t.section(setupName(g.name), "")
			for _, tab := range s.tables(g) {
				t.table(tab)
			}
		}
	}
	for _, text := range s.killed() {
		t.block(0, red, "\n"+text)
	}
}

func (t *terminal) rest(s *session) {
	if failed := s.Failed(); len(failed) > 0 {
		t.section("runs without a measurement", count(len(failed), "run"))
		for _, text := range failed {
			t.block(2, plain, text)
		}
	}
	if len(s.Results.Demos) > 0 {
		t.section("demonstrations", "")
	}
	for _, d := range s.Results.Demos {
		t.block(2, bold, "\n"+sentence(d.Title))
		t.block(4, plain, d.Outcome)
		var counts []string
		for _, n := range d.Counts {
			counts = append(counts, n.Name+" "+number(n.N))
		}
		t.block(4, faint, strings.Join(counts, ", "))
	}
	advice := s.Advice()
	if len(advice) > 0 {
		t.section("recommendations", "published advice, by our verdicts")
	}
	for _, a := range advice {
		t.block(2, bold, "\n"+fmt.Sprintf("%s: %s", sentence(a.For), a.Use))
		t.block(4, verdicts[kind(a.Verdict)].code, support(a.Verdict))
		t.block(4, faint, a.Why)
	}
	t.gap()
	if t.Dir != "" {
		t.line(0, span{bold, "Report"}, span{plain, filepath.Join(t.Dir, results.ReportFile)})
		t.line(0, span{bold, "Data"}, span{plain, filepath.Join(t.Dir, results.ResultsFile)}, span{plain, filepath.Join(t.Dir, results.RunsFile)})
	}
	if p := s.Results.Partial; p != "" {
		t.block(0, loud, " Partial result: "+p)
	}
}

func (t *terminal) style(code, s string) string {
	if !t.Color || s == "" || code == plain {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (t *terminal) gap() { fmt.Fprintln(t.w) }

// section begins with an empty line.
func (t *terminal) section(title, note string) {
	title = strings.ReplaceAll(strings.ToUpper(title), "ΜS", "µs") // a unit is not upper case
	t.gap()
	t.line(0, span{bold, title}, span{faint, note})
}

// block writes text wrapped to the width at spaces, every line indented. A new line
// before the text is an empty line; of no text nothing is written.
func (t *terminal) block(indent int, code, text string) {
	if strings.HasPrefix(text, "\n") {
		t.gap()
	}
	line := ""
	flush := func() {
		if line != "" {
			fmt.Fprintln(t.w, strings.Repeat(" ", indent)+t.style(code, line))
		}
	}
	for word := range strings.FieldsSeq(clean(text)) {
		if line != "" && indent+utf8.RuneCountInString(line+" "+word) > t.Width {
			flush()
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	flush()
}

// span is text with its style.
type span struct{ code, text string }

// line writes spans side by side; those that no longer fit begin a new line.
func (t *terminal) line(indent int, spans ...span) {
	used := 0
	for _, s := range spans {
		s.text = clean(s.text)
		n := utf8.RuneCountInString(s.text)
		gap := "  "
		switch {
		case n == 0:
			continue
		case used == 0:
			gap = strings.Repeat(" ", indent)
		case used+2+n > t.Width:
			gap, used = "\n"+strings.Repeat(" ", indent+2), -1
		}
		fmt.Fprint(t.w, gap+t.style(s.code, s.text))
		used += n + len(gap)
	}
	t.gap()
}

// table writes aligned columns. Those that do not fit into the width follow
// beneath, with the names repeated.
func (t *terminal) table(tab table) {
	widths := make([]int, len(tab.Header))
	lines := []row{{Cells: tab.Header}}
	for _, g := range tab.Groups {
		lines = append(lines, g.Rows...)
	}
	for _, line := range lines {
		for i, s := range line.Cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(clean(s)))
		}
	}
	for from := 1; from < len(widths); {
		to, used := from, 2+widths[0]
		for to < len(widths) && (to == from || used+2+widths[to] <= t.Width) {
			used += 2 + widths[to]
			to++
		}
		t.gap()
		t.row(tab.Header, widths, from, to, faint)
		for _, g := range tab.Groups {
			t.line(2, span{bold, g.Name}, span{faint, g.Note})
			for _, line := range g.Rows {
				t.row(line.Cells, widths, from, to, plain)
			}
		}
		from = to
	}
}

func (t *terminal) row(cells []string, widths []int, from, to int, code string) {
	line := "  " + clean(cells[0]) + strings.Repeat(" ", widths[0]-utf8.RuneCountInString(clean(cells[0])))
	for i := from; i < to; i++ {
		line += strings.Repeat(" ", 2+widths[i]-utf8.RuneCountInString(clean(cells[i]))) + clean(cells[i])
	}
	fmt.Fprintln(t.w, t.style(code, line))
}
