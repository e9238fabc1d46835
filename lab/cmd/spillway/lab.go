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

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
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
	experiment.Common `embed:""`

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

Exit codes: 0 everything was measured, whatever the verdicts; 1 a run or a demonstration could not be measured; 2 bad input; 130 Ctrl-C, after the partial result was written.`,
		e.Help, e.ID, e.Takes(""), e.ID, e.Takes("quick"), e.ID, e.Takes("full"), e.ID)
}

func (c *experimentCmd) Run(ctx *kong.Context, env *environment) error {
	if err := c.Check(); err != nil {
		return badInput(err)
	}
	if c.Resume != "" {
		if err := notHeeded(ctx, c.Resume, "resume", "repeats", "again", "json", "config"); err != nil {
			return badInput(err)
		}
	}
	noteCaps(env)
	s := experiment.Session{
		Repeats: c.Repeats, Again: c.Again, Seed: cmp.Or(c.Seed, 1+rand.Uint64N(999_999)), Command: append([]string{"spillway"}, env.args...),
		Progress: experiment.NewProgress(env.stderr, env.width > 0, env.width),
	}
	s.Dir = cmp.Or(c.Resume, c.Out, filepath.Join("spillway-results", c.Experiment.ID+"-"+time.Now().Format("20060102-150405")))
	run := func() (results.Results, []results.Run, error) { return s.Run(env.ctx, c.Experiment, c.Config) }
	if c.Resume != "" {
		run = func() (results.Results, []results.Run, error) { return s.Resume(env.ctx, c.Experiment) }
	}
	res, runs, err := run()
	if err != nil {
		return err
	}
	if err := show(env, c.Experiment, s.Dir, res, runs, c.JSON); err != nil {
		return err
	}
	switch {
	case env.ctx.Err() != nil:
		return fmt.Errorf("%w; what was measured is in %s, and --resume %s goes on", errInterrupted, s.Dir, s.Dir)
	case res.Partial != "":
		return errors.New(res.Partial)
	}
	return nil
}

func noteCaps(env *environment) {
	if !contestant.CapEnforced {
		fmt.Fprintln(env.stderr, "note: memory caps need Linux and are not enforced here")
	}
}

// notHeeded refuses flags that a session that is resumed would not heed.
func notHeeded(ctx *kong.Context, dir string, heeded ...string) error {
	for _, p := range ctx.Path {
		if p.Flag != nil && !p.Resolved && !slices.Contains(heeded, p.Flag.Name) {
			return fmt.Errorf("--resume goes on with the settings of the session in %s: leave out --%s, or start a new session", dir, p.Flag.Name)
		}
	}
	return nil
}

func show(env *environment, e *experiment.Experiment, dir string, res results.Results, runs []results.Run, asJSON bool) error {
	if asJSON {
		return writeJSON(env.stdout, res)
	}
	opts := report.Options{Width: 100}
	if f, ok := env.stdout.(*sink).Writer.(*os.File); ok {
		opts = report.For(f)
	}
	opts.Dir = dir
	return report.Terminal(env.stdout, e.Family, res, runs, opts)
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
	if session, err := results.ReadSession(c.Dir); err == nil {
		if c.Curve != "" {
			return badInput(fmt.Errorf("--curve draws one experiment: give it %s", filepath.Join(c.Dir, "overload")))
		}
		return judgeSession(env, c.Dir, session, c.JSON)
	}
	res, runs, err := results.Read(c.Dir)
	if err != nil {
		return badInput(err)
	}
	e, err := find(res.Experiment)
	if err != nil {
		return badInput(err)
	}
	if c.Curve != "" {
		var svg bytes.Buffer
		if err := report.Curve(&svg, res, runs); err != nil {
			return badInput(err)
		}
		if err := results.WriteFile(c.Curve, svg.Bytes()); err != nil {
			return badInput(fmt.Errorf("--curve: %w", err))
		}
	}
	before := res.Claims
	res.Claims = e.Judge(runs, res)
	if err := report.Write(c.Dir, e.Family, res, runs); err != nil {
		return badInput(fmt.Errorf("the verdicts cannot be written: %w", err))
	}
	for _, line := range changes(before, res.Claims) {
		fmt.Fprintln(env.stderr, line)
	}
	if here := experiment.Revision(); here != res.Revision {
		fmt.Fprintf(env.stderr, "the runs were made by revision %s of the lab and judged by %s\n", res.Revision, here)
	}
	return show(env, e, c.Dir, res, runs, c.JSON)
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
