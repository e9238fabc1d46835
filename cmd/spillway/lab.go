package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/spillway-go/spillway/lab/advice"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

type labCmd struct {
	kong.Plugins // a command for each experiment

	All      labAllCmd      `cmd:"" default:"withargs" help:"Run all experiments, or those that are named, as one session within a time."`
	Judge    labJudgeCmd    `cmd:"" help:"Decide every claim again from the raw runs of a results folder."`
	Selftest labSelftestCmd `cmd:"" help:"Test the instruments: plant known effects and see whether the judge finds them."`

	Teach bool `kong:"-"` // its help is wanted: how long things take is found by planning all of them
}

// newLabCmd makes the commands of the experiments. Those whose help the arguments ask for
// teach.
func newLabCmd(args []string) (lab labCmd) {
	help := slices.Contains(args, "lab") && (slices.Contains(args, "--help") || slices.Contains(args, "-h"))
	named := func(name string) bool {
		return slices.ContainsFunc(args, func(arg string) bool { return strings.EqualFold(arg, name) })
	}
	one := named("judge") || named("selftest")
	for _, e := range experiments {
		teach := help && named(e.ID)
		one = one || teach
		tag := fmt.Sprintf(`cmd:"" name:%q help:%q`, e.ID, e.Title+".")
		if lower := strings.ToLower(e.ID); lower != e.ID { // H is called h, too
			tag += fmt.Sprintf(` aliases:%q`, lower)
		}
		command := reflect.StructField{Name: "Command", Type: reflect.TypeFor[experimentCmd](), Tag: reflect.StructTag(tag)}
		commands := reflect.New(reflect.StructOf([]reflect.StructField{command}))
		commands.Elem().Field(0).Set(reflect.ValueOf(experimentCmd{Experiment: e, Config: e.Flags(), Teach: teach}))
		lab.Plugins = append(lab.Plugins, commands.Interface())
	}
	lab.Teach = help && (!one || named("all"))
	lab.All.Teach = lab.Teach
	return lab
}

// Help teaches.
func (c labCmd) Help() string {
	if !c.Teach {
		return ""
	}
	var b strings.Builder
	b.WriteString("Each experiment takes one family of published claims, or goals of our own, measures it again on this machine and gives a verdict for each claim, with an interval. Nothing else should run meanwhile.\n\nExamples, with what they take on an idle machine:\n")
	fmt.Fprintf(&b, "  spillway lab              %s\n  spillway lab H F R        these, as one session\n", forecast(15*time.Minute))
	for _, e := range experiments {
		fmt.Fprintf(&b, "  spillway lab %-12s %s; --quick: %s\n", e.ID, e.Takes(""), e.Takes("quick"))
	}
	b.WriteString(`  spillway lab judge DIR    at once: the verdicts again, from the raw runs

Ctrl-C ends an experiment; what was measured until then is judged and written, and --resume goes on. Exit codes: 0 everything was measured, whatever the verdicts; 1 something could not be measured; 2 bad input; 130 Ctrl-C.`)
	return b.String()
}

// experimentCmd is the command of one experiment: its own flags and those that all share.
type experimentCmd struct {
	experiment.Single `embed:""`

	Config     any                    `embed:""`
	Experiment *experiment.Experiment `kong:"-"`
	Teach      bool                   `kong:"-"` // as of labCmd
}

// Help teaches.
func (c experimentCmd) Help() string {
	if !c.Teach {
		return ""
	}
	e := c.Experiment
	return fmt.Sprintf(`%s

Examples, with what they take on an idle machine:
  spillway lab %s                     %s
  spillway lab %s --quick             %s
  spillway lab %s --full              %s, the published sizes
  spillway lab %s --resume DIR --repeats 10
  spillway lab judge DIR               the verdicts again, from the raw runs

Files: runs.jsonl (raw, one run a line), results.json, report.html (one file, opens without a network).

Exit codes: 0 everything was measured, whatever the verdicts; 1 a run could not be measured; 2 bad input; 130 Ctrl-C, after the partial result was written.`,
		e.Help, e.ID, e.Takes(""), e.ID, e.Takes("quick"), e.ID, e.Takes("full"), e.ID)
}

func (c *experimentCmd) Run(ctx *kong.Context, env *environment) error {
	if err := c.Check(); err != nil {
		return badInput(err)
	}
	if err := notHeeded(ctx, c.Resume, "resume", "repeats", "again", "json", "config"); err != nil {
		return badInput(err)
	}
	s := experiment.Session{Experiments: []*experiment.Experiment{c.Experiment}, Config: c.Config, Repeats: c.Repeats, Again: c.Again}
	return runSession(env, c.Common, c.Experiment.ID, s)
}

// labAllCmd runs several experiments as one session. "spillway lab" alone means it, too,
// and so does more than one experiment after "spillway lab".
type labAllCmd struct {
	experiment.Common `embed:""`

	Experiment []string      `arg:"" optional:"" help:"Experiments such as H F R, in the order of their importance; all of them unless given."`
	Budget     time.Duration `env:"SPILLWAY_LAB_BUDGET" default:"15m" help:"How long it may take. Experiments that do not fit are left out and named; time that is left goes to claims that more repeats would settle, and to goals. Programs are built before it begins, once for each version of their source."`

	Postgres postgres.Server `env:"SPILLWAY_POSTGRES" placeholder:"URL" help:"A PostgreSQL for the experiments that have a use for one, as its superuser: postgres://user@host:port/postgres, with a password only in the environment. They make databases of their own and drop them. Without it H5 and H6 stay open; with it the published claims take some six minutes more."`

	Teach bool `kong:"-"` // as of labCmd
}

// complete gives the server to an experiment that has a use for one.
func (c *labAllCmd) complete(config any) {
	if f := reflect.ValueOf(config).Elem().FieldByName("Postgres"); f.IsValid() {
		f.Set(reflect.ValueOf(c.Postgres))
	}
}

// Help teaches.
func (c labAllCmd) Help() string {
	if !c.Teach {
		return ""
	}
	return fmt.Sprintf(`Runs all experiments as one session. First come the published claims: five repeats of what they rest on, seven where figures have noise, and up to nine where repeats are cheap. Then they are judged. The time that is left goes to published claims that more repeats would settle, and after them to goals of our own. Turns are fewer or shorter than in each experiment alone, and what stands beside the claims for comparison is left out. What only waits runs side by side, what computes runs alone.

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

// forecast is what a session takes, in words, with the experiments it leaves out.
func forecast(budget time.Duration, ids ...string) string {
	s := withBudget(budget)
	var err error
	if s.Experiments, err = several(ids); err != nil {
		return err.Error()
	}
	return s.Takes()
}

func withBudget(budget time.Duration) experiment.Session {
	return experiment.Session{Budget: budget, Size: "whole", Repeats: judge.MinRepeats, Again: experiment.Sized[experiment.Single]("").Again,
		Done: func(s *results.Session) { s.Advice = advice.Of(s.Parts) }}
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
	if err := c.Postgres.Check(); err != nil {
		return badInput(err)
	}
	s, ids := withBudget(c.Budget), c.Experiment
	s.Complete = c.complete
	if c.Quick {
		s.Size = "quick"
	}
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
	if s.Experiments, err = several(ids); err != nil {
		return badInput(err)
	}
	return runSession(env, c.Common, "lab", s)
}

// notHeeded refuses flags that a session that is resumed would not heed.
func notHeeded(ctx *kong.Context, dir string, heeded ...string) error {
	for _, p := range ctx.Path {
		if dir != "" && p.Flag != nil && !p.Resolved && !slices.Contains(heeded, p.Flag.Name) {
			return fmt.Errorf("--resume goes on with the settings of the session in %s: leave out --%s, or start a new session", dir, p.Flag.Name)
		}
	}
	return nil
}

// runSession runs a session, shows what came of it and returns the error that chooses the exit code.
func runSession(env *environment, c experiment.Common, name string, s experiment.Session) error {
	s.Dir, s.Resume = cmp.Or(c.Resume, c.Out, filepath.Join("spillway-results", name+"-"+time.Now().Format("20060102-150405"))), c.Resume != ""
	s.Seed, s.Command = cmp.Or(c.Seed, 1+rand.Uint64N(999_999)), append([]string{"spillway"}, env.args...)
	s.Progress = experiment.NewProgress(env.stderr, env.width > 0, env.width)
	if !contestant.CapEnforced {
		fmt.Fprintln(env.stderr, "note: memory caps need Linux and are not enforced here")
	}
	session, parts, failed := s.RunAll(env.ctx)
	if len(parts) == 0 {
		return cmp.Or(failed, errInterrupted)
	}
	if s.Budget == 0 {
		failed = cmp.Or(failed, showOne(env, s.Dir, parts[0], c.JSON))
	} else {
		failed = errors.Join(failed, showSession(env, s.Dir, session, parts, c.JSON))
	}
	switch {
	case failed != nil:
		return failed
	case env.ctx.Err() != nil:
		return fmt.Errorf("%w; what was measured is in %s, and --resume %s goes on", errInterrupted, s.Dir, s.Dir)
	}
	for _, p := range parts {
		if p.Results.Partial != "" {
			return errors.New("experiment " + p.ID + ": " + p.Results.Partial)
		}
	}
	return nil
}

type labJudgeCmd struct {
	Dir   string `arg:"" help:"A results folder, of one experiment or of several."`
	Curve string `placeholder:"FILE" help:"Also draw goodput against offered load as an SVG, from the results of overload."`
	JSON  bool   `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print results.json on standard output."`
}

// Help teaches.
func (labJudgeCmd) Help() string {
	return `Reads the raw runs (runs.jsonl), decides every claim again, says which verdicts changed and rewrites results.json and report.html. The same runs and seed give the same verdicts. A session that was killed is judged too.

Examples:
  spillway lab judge spillway-results/H-20260102-150405
  spillway lab judge --curve docs/img/overload.svg spillway-results/overload-20260102-150405`
}

func (c *labJudgeCmd) Run(env *environment) error {
	session, err := results.ReadSession(c.Dir)
	if err != nil { // of one experiment
		p, err := judgeAgain(env, c.Dir, c.Curve)
		if err != nil {
			return badInput(err)
		}
		noteRevision(env, p.Results.Revision)
		return showOne(env, c.Dir, p, c.JSON)
	}
	if c.Curve != "" {
		return badInput(fmt.Errorf("--curve draws one experiment: give it %s", filepath.Join(c.Dir, "overload")))
	}
	session.Parts = nil
	var parts []experiment.Part
	for _, id := range session.Experiments {
		folder := filepath.Join(c.Dir, id)
		if info, err := os.Stat(filepath.Join(folder, results.RunsFile)); err != nil || info.Size() == 0 {
			continue // it was left out
		}
		p, err := judgeAgain(env, folder, "")
		if err != nil {
			return badInput(err)
		}
		session.Parts, parts = append(session.Parts, p.Results), append(parts, p)
	}
	session.Advice = advice.Of(session.Parts)
	noteRevision(env, session.Revision)
	if err := results.WriteSession(c.Dir, session); err != nil {
		return badInput(fmt.Errorf("the verdicts cannot be written: %w", err))
	}
	return showSession(env, c.Dir, session, parts, c.JSON)
}

// judgeAgain decides every claim of one experiment, and draws the curve if there is a file for it.
func judgeAgain(env *environment, dir, curve string) (p experiment.Part, err error) {
	if p.Results, p.Runs, err = results.Read(dir); err != nil {
		return p, err
	}
	if p.Experiment, err = find(p.Results.Experiment); err != nil {
		return p, err
	}
	if curve != "" {
		var svg bytes.Buffer
		if err := report.Curve(&svg, p.Results, p.Runs); err != nil {
			return p, err
		}
		if err := results.WriteFile(curve, svg.Bytes()); err != nil {
			return p, fmt.Errorf("--curve: %w", err)
		}
	}
	before := p.Results.Claims
	p.Results.Claims = p.Judge(p.Runs, p.Results)
	if err := report.Write(dir, p.Family, p.Results, p.Runs); err != nil {
		return p, fmt.Errorf("the verdicts cannot be written: %w", err)
	}
	for _, line := range changes(before, p.Results.Claims) {
		fmt.Fprintln(env.stderr, line)
	}
	return p, nil
}

func noteRevision(env *environment, of string) {
	if here := experiment.Revision(); here != of {
		fmt.Fprintf(env.stderr, "the runs were made by revision %s of the lab and judged by %s\n", of, here)
	}
}

// changes says what judging again decided otherwise.
func changes(before, after []results.Claim) (out []string) {
	was := map[string]results.Verdict{}
	for _, c := range before {
		was[c.ID] = c.Verdict
	}
	for _, c := range after {
		switch old, judged := was[c.ID]; {
		case judged && old != c.Verdict:
			out = append(out, fmt.Sprintf("%s was %s and is %s now", c.ID, old, c.Verdict))
		case !judged && before != nil:
			out = append(out, fmt.Sprintf("%s was not judged and is %s now", c.ID, c.Verdict))
		}
		delete(was, c.ID)
	}
	for _, c := range before {
		if _, gone := was[c.ID]; gone {
			out = append(out, fmt.Sprintf("%s was %s and is no claim any more", c.ID, c.Verdict))
		}
	}
	return out
}
