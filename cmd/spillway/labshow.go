package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// showOne prints the results of one experiment.
func showOne(env *environment, dir string, p experiment.Part, asJSON bool) error {
	if asJSON {
		return writeJSON(env.stdout, p.Results)
	}
	opts := report.Options{Width: 100}
	if f, ok := env.stdout.(*sink).Writer.(*os.File); ok {
		opts = report.For(f)
	}
	opts.Dir = dir
	return report.Terminal(env.stdout, p.Family, p.Results, p.Runs, opts)
}

// showSession prints what came of several experiments, and writes their common page.
func showSession(env *environment, dir string, s results.Session, parts []experiment.Part, asJSON bool) error {
	runs := map[string][]results.Run{}
	for _, p := range parts {
		runs[p.ID] = p.Runs
	}
	var families []ledger.Family
	for _, e := range experiments {
		families = append(families, e.Family)
	}
	if len(runs) > 0 {
		if err := report.WriteSession(dir, families, s, runs); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(env.stdout, s)
	}
	w := env.stdout
	if noisy := report.Disturbed(slices.Collect(maps.Values(runs))...); noisy != "" {
		fmt.Fprintf(w, "\nA DISTURBED SESSION: %s\n", noisy)
	}
	fmt.Fprintf(w, "\n%s\n\n", tally(s))
	if err := table(w, s); err != nil {
		return err
	}
	open(w, s)
	advise(w, s.Advice)
	for _, out := range s.LeftOut {
		fmt.Fprintf(w, "\nLeft out: %s: %s", out.Experiment, out.Why)
	}
	if len(s.LeftOut) > 0 {
		fmt.Fprintf(w, "\nspillway lab --resume %s --budget 30m goes on with what was left out\n", dir)
	}
	fmt.Fprintf(w, "\nData    %s\n", filepath.Join(dir, results.ResultsFile))
	fmt.Fprintf(w, "Report  %s\n", filepath.Join(dir, results.ReportFile))
	for _, p := range s.Parts {
		fmt.Fprintf(w, "Report  %s\n", filepath.Join(dir, p.Experiment, results.ReportFile))
	}
	return nil
}

// open says of every claim that is inconclusive why, and what would settle it.
func open(w io.Writer, s results.Session) {
	title := "\nOPEN, and what would settle it\n\n"
	for _, p := range s.Parts {
		for _, c := range p.Claims {
			if c.Verdict == results.Inconclusive {
				fmt.Fprint(w, title)
				title = ""
				say(w, c.ID+": "+c.Why)
			}
		}
	}
}

// advise prints what the advice comes to. Questions of which nothing was judged are only
// counted.
func advise(w io.Writer, all []results.Advice) {
	title, silent := "\nADVICE, by the verdicts of this machine\n", 0
	for _, a := range all {
		if len(a.Cites) == 0 {
			silent++
			continue
		}
		var cited []string
		for _, c := range a.Cites {
			cited = append(cited, c.String())
		}
		fmt.Fprintf(w, "%s\n%s\n", title, a.Question)
		title = ""
		say(w, "  "+strings.ToUpper(a.Verdict)+". "+a.Text)
		say(w, "  "+strings.Join(cited, "; "))
	}
	if silent > 0 {
		fmt.Fprintf(w, "\n%d more questions rest on nothing that was judged here.\n", silent)
	}
}

// say prints a paragraph in lines of at most 100 characters, indented as it begins.
func say(w io.Writer, text string) {
	const width = 100
	margin := text[:len(text)-len(strings.TrimLeft(text, " "))]
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(margin+line+" "+word) > width {
			fmt.Fprintln(w, margin+line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	fmt.Fprintln(w, margin+line)
}

// tally counts the verdicts.
func tally(s results.Session) string {
	n, all := map[results.Verdict]int{}, 0
	for _, p := range s.Parts {
		for _, c := range p.Claims {
			n[c.Verdict]++
			all++
		}
	}
	return fmt.Sprintf("%d claims and goals: %d hold, %d fail, %d are inconclusive, %d need other hardware",
		all, n[results.Holds], n[results.Fails], n[results.Inconclusive], n[results.NeedsHardware])
}

// table is the last word on every claim.
func table(w io.Writer, s results.Session) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "claim\tverdict\tmeasured\tpublished")
	for _, p := range s.Parts {
		for _, c := range p.Claims {
			a, _ := c.Deciding()
			published := cmp.Or(a.Said(), "no figure")
			if c.Goal {
				published = "a goal of ours: " + a.Rule.Words(a.Unit)
			}
			name := c.ID
			if a.Part != "" && strings.TrimPrefix(a.Part, c.ID) != "" {
				name += " " + a.Part
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", name, c.Verdict, cmp.Or(a.Figure(), "missing"), published)
		}
	}
	return t.Flush()
}
