package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// labAllCmd runs several experiments as one session. "spillway lab" alone means it, too,
// and so does more than one experiment after "spillway lab".
type labAllCmd struct {
	Experiment []string      `arg:"" optional:"" help:"Experiments such as H F R, in the order of their importance; all of them unless given."`
	Budget     time.Duration `env:"SPILLWAY_LAB_BUDGET" default:"15m" help:"How long it may take. Experiments that do not fit are left out and named; time that is left goes to claims that more repeats would settle, and to goals. Programs are built before it begins, once for each version of their source."`
	Quick      bool          `env:"SPILLWAY_LAB_QUICK" help:"Short runs, to see how it works. Claims about sizes stay open."`
	Seed       uint64        `env:"SPILLWAY_LAB_SEED" default:"0" help:"Of the order of the runs, the random input and the judge; 0 picks one and says which."`
	Out        string        `env:"SPILLWAY_LAB_OUT" placeholder:"DIR" help:"Where the results go, a folder for each experiment; ./spillway-results/lab-<time> unless given. Must not hold results yet."`
	Resume     string        `env:"SPILLWAY_LAB_RESUME" placeholder:"DIR" help:"Go on with the session in that folder. Experiments that are complete are not run again."`
	JSON       bool          `env:"SPILLWAY_LAB_JSON" name:"json" help:"Print results.json on standard output; progress stays on standard error."`

	Teach bool `kong:"-"` // as of labCmd
}

// Help teaches.
func (c labAllCmd) Help() string {
	if !c.Teach {
		return ""
	}
	return fmt.Sprintf(`Runs all experiments as one session. First come the published claims: five repeats of what they rest on, and up to nine where repeats are cheap. Then they are judged. The time that is left goes to published claims that more repeats would settle, and after them to goals of our own. Turns are fewer or shorter than in each experiment alone, and what stands beside the claims for comparison is left out. What only waits runs side by side, what computes runs alone.

A claim that was decided stays decided. Each further look at an open one asks for a wider interval, so that the error of the whole session stays below what is stated. An inconclusive claim says what would settle it. If the machine is slower than expected, repeats and goals are left out, and no published claim.

Examples, with what they take on an idle machine:
  spillway lab                       %s
  spillway lab --budget 1h           %s
  spillway lab H F R                 %s
  spillway lab --resume DIR          what was cut short, or left out
  spillway lab judge DIR             the verdicts again, from the raw runs

Files: results.json (machine, revision, command, seed, all claims, advice), report.html (everything on one page, opens without a network), and a folder for each experiment with runs.jsonl, results.json and report.html.

Exit codes: 0 everything was measured that the budget allows, whatever the verdicts; 1 something could not be measured; 2 bad input; 130 Ctrl-C, after the partial result was written.`,
		forecast(15*time.Minute), forecast(time.Hour), forecast(15*time.Minute, "H", "F", "R"))
}

// wholeSize is the size of the experiments of a whole session.
const wholeSize = "whole"

// forecast is what a session takes, in words, with the experiments it leaves out.
func forecast(budget time.Duration, ids ...string) string {
	w := experiment.Whole{Budget: budget, Size: wholeSize, Session: experiment.Session{Repeats: judge.MinRepeats}}
	var err error
	if w.Experiments, err = several(ids); err != nil {
		return err.Error()
	}
	return w.Takes()
}

// several are the experiments of these ids, or all.
func several(ids []string) (out []*experiment.Experiment, err error) {
	if len(ids) == 0 {
		return experiments, nil
	}
	for _, id := range ids {
		e, err := find(id)
		if err != nil {
			return nil, err
		}
		if slices.Contains(out, e) {
			return nil, fmt.Errorf("experiment %s is named twice: name it once", e.ID)
		}
		out = append(out, e)
	}
	return out, nil
}

// withAll names the command for several experiments where only these were named.
func withAll(args []string) []string {
	if len(args) < 3 || args[0] != "lab" {
		return args
	}
	for _, id := range args[1:3] {
		if _, err := find(id); err != nil {
			return args
		}
	}
	return slices.Insert(slices.Clone(args), 1, "all")
}

func (c *labAllCmd) Run(ctx *kong.Context, env *environment) error {
	if c.Budget <= 0 {
		return badInput(fmt.Errorf("budget is %v: want more than 0s", c.Budget))
	}
	w := experiment.Whole{
		Budget: c.Budget, Size: wholeSize, Done: func(s *results.Session) { s.Advice = advice.Of(s.Parts) },
		Session: experiment.Session{
			Dir:     cmp.Or(c.Resume, c.Out, filepath.Join("spillway-results", "lab-"+time.Now().Format("20060102-150405"))),
			Repeats: judge.MinRepeats, Again: experiment.Sized[experiment.Common]("").Again, Seed: cmp.Or(c.Seed, 1+rand.Uint64N(999_999)),
			Command: append([]string{"spillway"}, env.args...), Progress: experiment.NewProgress(env.stderr, env.width > 0, env.width),
		},
	}
	if c.Quick {
		w.Size = "quick"
	}
	ids := c.Experiment
	if c.Resume != "" {
		if err := notHeeded(ctx, c.Resume, "resume", "budget", "json", "config"); err != nil || len(ids) > 0 {
			return badInput(cmp.Or(err, fmt.Errorf("--resume goes on with the experiments of the session in %s: leave out %s", c.Resume, strings.Join(ids, " "))))
		}
		session, err := results.ReadSession(c.Resume)
		if err != nil {
			return badInput(err)
		}
		ids = session.Experiments
	}
	var err error
	if w.Experiments, err = several(ids); err != nil {
		return badInput(err)
	}
	noteCaps(env)
	run := w.Run
	if c.Resume != "" {
		run = w.Resume
	}
	session, parts, failed := run(env.ctx)
	if failed != nil && len(parts) == 0 {
		return failed
	}
	runs := map[string][]results.Run{}
	for _, p := range parts {
		runs[p.ID] = p.Runs
	}
	if err := errors.Join(reportSession(w.Dir, session, runs), showSession(env, w.Dir, session, c.JSON)); failed != nil || err != nil {
		return errors.Join(failed, err)
	}
	return outcome(env, w.Dir, parts)
}

// outcome is the error that chooses the exit code.
func outcome(env *environment, dir string, parts []experiment.Part) error {
	if env.ctx.Err() != nil {
		if len(parts) == 0 {
			return errInterrupted
		}
		return fmt.Errorf("%w; what was measured is in %s, and --resume %s goes on", errInterrupted, dir, dir)
	}
	for _, p := range parts {
		if p.Results.Partial != "" {
			return errors.New("experiment " + p.ID + ": " + p.Results.Partial)
		}
	}
	return nil
}

func showSession(env *environment, dir string, s results.Session, asJSON bool) error {
	if asJSON {
		return writeJSON(env.stdout, s)
	}
	w := env.stdout
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

// judgeSession decides every claim of a session again.
func judgeSession(env *environment, dir string, s results.Session, asJSON bool) error {
	s.Parts = nil
	all := map[string][]results.Run{}
	for _, id := range s.Experiments {
		folder := filepath.Join(dir, id)
		if info, err := os.Stat(filepath.Join(folder, results.RunsFile)); err != nil || info.Size() == 0 {
			continue // it was left out
		}
		res, runs, err := results.Read(folder)
		if err != nil {
			return badInput(err)
		}
		e, err := find(res.Experiment)
		if err != nil {
			return badInput(err)
		}
		before := res.Claims
		res.Claims = e.Judge(runs, res)
		if err := report.Write(folder, e.Family, res, runs); err != nil {
			return badInput(fmt.Errorf("the verdicts cannot be written: %w", err))
		}
		for _, line := range changes(before, res.Claims) {
			fmt.Fprintln(env.stderr, line)
		}
		s.Parts, all[res.Experiment] = append(s.Parts, res), runs
	}
	s.Advice = advice.Of(s.Parts)
	if here := experiment.Revision(); here != s.Revision {
		fmt.Fprintf(env.stderr, "the runs were made by revision %s of the lab and judged by %s\n", s.Revision, here)
	}
	if err := results.WriteSession(dir, s); err != nil {
		return badInput(fmt.Errorf("the verdicts cannot be written: %w", err))
	}
	if err := reportSession(dir, s, all); err != nil {
		return badInput(err)
	}
	return showSession(env, dir, s, asJSON)
}

// reportSession writes the report of the whole, if anything was measured.
func reportSession(dir string, s results.Session, runs map[string][]results.Run) error {
	if len(runs) == 0 {
		return nil
	}
	var families []ledger.Family
	for _, e := range experiments {
		families = append(families, e.Family)
	}
	return report.WriteSession(dir, families, s, runs)
}
