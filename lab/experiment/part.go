package experiment

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// part is the state of one experiment of a session.
type part struct {
	s         *session
	exp       *Experiment
	dir       string
	name      string // before the labels of its steps, if there are several
	plan      Plan
	published []lack // what the published claims need before their first verdicts
	goals     []lack // likewise the goals
	built     bool   // the programs
	prepared  bool
	out       string // why the experiment, or its goals, were left out
	err       error  // with which preparing it ended

	mu       sync.Mutex // of what follows, while steps run
	log      *results.RunLog
	res      results.Results
	runs     []results.Run
	failures []string
	order    int
	took     map[ledger.Key]time.Duration // the last measurement of a cell, with those in its group
	again    time.Duration                // spent on measurements that were made again
	vain     int                          // measurements in a row that were made again and disturbed again
}

// draft is an experiment that has not begun. With a budget nothing is on disk yet, because the experiment
// may be left out.
func (p *part) draft() error {
	s, config := p.s, p.s.Config
	if config == nil {
		config = p.exp.Config(s.Size)
		if s.Complete != nil {
			s.Complete(config)
		}
	}
	p.res = results.Results{
		Schema: results.Schema, Experiment: p.exp.ID, Started: time.Now().Truncate(time.Second), Machine: ThisMachine(), Revision: Revision(),
		Command: s.Command, Settings: settingsOf(config), Seed: s.Seed, Repeats: s.Repeats, Part: s.Budget > 0,
	}
	err := p.makePlan(config)
	if err == nil {
		p.res.Config, err = json.Marshal(config)
	}
	if err == nil && s.Budget == 0 {
		p.log, err = results.CreateRunLog(p.dir)
	}
	return err
}

// makePlan plans what is run, and says how that differs from everything at full size.
func (p *part) makePlan(config any) (err error) {
	if p.plan, err = p.exp.plan(config); err != nil {
		return err
	}
	p.res.Scaled = p.exp.scaled(config)
	if p.res.Part {
		p.plan = p.plan.only(append(p.exp.first(p.plan, false), p.exp.first(p.plan, true)...))
		p.res.Scaled = strings.TrimPrefix(p.res.Scaled+"; only what decides a claim", "; ")
	}
	p.published, p.goals = p.exp.first(p.plan, false), p.exp.first(p.plan, true)
	return nil
}

// resume goes on with the experiment in the folder until it has so many repeats. Its settings and
// seed are those it began with; another revision of the lab, or another version of Go,
// is refused, for its runs could not be compared.
func (p *part) resume() error {
	res, runs, err := results.Read(p.dir)
	if err != nil {
		return err
	}
	here := ThisMachine()
	if res.Experiment != p.exp.ID {
		return fmt.Errorf("the session in %s is one of experiment %s: spillway lab %s --resume %s", p.dir, res.Experiment, res.Experiment, p.dir)
	}
	if err := comparable(p.dir, res.Revision); err != nil {
		return err
	}
	if res.Machine.Go != here.Go || res.Machine.CPUs != here.CPUs || res.Machine.CPU != here.CPU {
		return fmt.Errorf("the session in %s was made on another machine or version of Go (%s, %d CPUs, %s): start a new session", p.dir, res.Machine.Go, res.Machine.CPUs, res.Machine.CPU)
	}
	res.Part = res.Part || p.s.Budget > 0 // what was decided stays so, and looks are counted, in either way to go on
	res.Repeats = max(res.Repeats, p.s.Repeats)
	p.res = res
	config := p.exp.Flags()
	if err := json.Unmarshal(res.Config, config); err != nil {
		return fmt.Errorf("the settings of the session in %s: %w", p.dir, err)
	}
	if err := p.makePlan(config); err != nil {
		return err
	}
	if p.log, err = results.ContinueRunLog(p.dir); err != nil {
		return err
	}
	for _, run := range runs {
		p.add(run)
	}
	if p.res.Claims == nil || p.res.Partial != "" { // perhaps it was killed before it was judged
		p.res.Ended = time.Time{}
	}
	return nil
}

// add takes a run that was made.
func (p *part) add(run results.Run) {
	p.runs, p.order = append(p.runs, run), max(p.order, run.Order+1)
	if run.Failed == "" {
		p.took[ledger.KeyOf(&run)] = time.Duration(run.Took * float64(time.Second))
	}
}

// build makes the programs, unless they are there.
func (p *part) build(ctx context.Context) error {
	p.built = true
	for _, spec := range p.plan.Programs {
		if _, err := contestant.Build(ctx, spec, p.s.Progress); err != nil && ctx.Err() == nil {
			return inputError{err}
		}
	}
	return nil
}

// begin opens and prepares an experiment, and counts the look if its verdicts were made. It fails for
// problems that the user can correct, such as a full disk; the results of an earlier part of the
// session stay as they are then.
func (p *part) begin(ctx context.Context, rest time.Duration) (err error) {
	if p.log == nil {
		if p.log, err = results.CreateRunLog(p.dir); err != nil {
			return inputError{err}
		}
	}
	if err := p.build(ctx); err != nil {
		return err
	}
	if !p.prepared && p.plan.Prepare != nil {
		a := p.s.Progress.begin(p.name+"preparing", 0, rest)
		defer p.s.Progress.drop(a)
		if err := p.plan.Prepare(ctx); err != nil && ctx.Err() == nil {
			return inputError{fmt.Errorf("experiment %s: %w", p.exp.ID, err)}
		}
		p.s.Progress.end(a, "", rest)
	}
	p.prepared = true
	if p.looked() && (p.s.Budget > 0 || p.untried()) {
		p.countLook()
	}
	p.res.Ended = time.Time{}
	if err := results.WriteResults(p.dir, p.res); err != nil {
		return inputError{err}
	}
	return nil
}

// tried reports whether anything was run.
func (p *part) tried() bool {
	return p.log != nil && len(p.runs)+len(p.failures) > 0
}

// giveUp leaves out an experiment that has no runs.
func (p *part) giveUp(err error) {
	p.out, p.err = err.Error(), err
	p.close()
}

// close ends the log, and leaves no folder without runs behind.
func (p *part) close() {
	if p.log != nil && !p.tried() {
		p.log.Discard()
		p.log = nil
	} else if p.log != nil {
		p.log.Close()
	}
}

// finish judges what was measured and writes it.
func (p *part) finish(ctx context.Context) error {
	p.runs = results.Latest(p.runs)
	p.res.Ended, p.res.Partial = time.Now().Truncate(time.Second), p.partial(ctx)
	p.res.Claims = p.exp.Judge(p.runs, p.res)
	return report.Write(p.dir, p.exp.Family, p.res, p.runs)
}

// partial says why runs are missing, if any are.
func (p *part) partial(ctx context.Context) string {
	switch {
	case ctx.Err() != nil && len(p.steps()) > 0:
		return fmt.Sprintf("interrupted after %d of %d runs", len(p.runs), p.res.Repeats*len(p.plan.Keys()))
	case len(p.failures) > 0:
		return fmt.Sprintf("%d of %d measurements failed; the first: %s", len(p.failures), p.res.Repeats*len(p.plan.groups()), p.failures[0])
	}
	return ""
}
