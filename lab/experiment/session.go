package experiment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/report"
	"github.com/spillway-go/spillway/lab/results"
)

// Session is one execution of an experiment. It may be interrupted and resumed.
type Session struct {
	Dir      string // results go here; must not hold runs yet
	Repeats  int
	Again    int // how often a disturbed measurement is made again
	Seed     uint64
	Command  []string  // how it was called, for the report
	Progress *Progress // nil: nothing is shown

	// Watch begins to watch other processes; what it returns is the share of the
	// processors that they have used since. Nil: as the system reports it.
	Watch func() func() float64

	name  string                   // before the labels of its steps, if it is part of a whole
	pace  *pace                    // of the machine, in all parts of a whole; nil: as planned
	spare func(time.Duration) bool // whether there is time to measure something again; nil: always
	part  bool                     // of a whole: only what decides a claim is run, and what was decided stays so when the session is extended
}

// ErrInput is matched by errors that the user can correct by other settings.
var ErrInput = errors.New("bad input")

type inputError struct{ error }

func (inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error      { return e.error }

// Run executes the experiment, judges it and writes the results folder. If ctx ends,
// the measurements made until then are still judged and written, and Results.Partial
// says so. An error means that no results were written: the settings were invalid
// (errors.Is ErrInput) or the folder could not be used.
func (s Session) Run(ctx context.Context, exp *Experiment, config any) (results.Results, []results.Run, error) {
	r, err := s.draft(exp, config)
	if err == nil {
		err = r.open()
	}
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	return r.run(ctx)
}

// Resume goes on with the session in dir until it has so many repeats. Its settings and
// seed are those it began with; another revision of the lab, or another version of Go,
// is refused, for its runs could not be compared.
func (s Session) Resume(ctx context.Context, exp *Experiment) (results.Results, []results.Run, error) {
	r, err := s.resume(exp)
	if err != nil {
		return results.Results{}, nil, inputError{err}
	}
	return r.run(ctx)
}

// sessionState is the state of a session.
type sessionState struct {
	Session
	exp  *Experiment
	plan Plan

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

// draft is a session that has not begun: nothing is on disk yet.
func (s Session) draft(exp *Experiment, config any) (*sessionState, error) {
	plan, scaled, err := s.plan(exp, config)
	if err != nil {
		return nil, err
	}
	settings, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	return &sessionState{Session: s.complete(), exp: exp, plan: plan, took: map[ledger.Key]time.Duration{}, res: results.Results{
		Schema: results.Schema, Experiment: exp.ID, Started: time.Now().Truncate(time.Second), Machine: ThisMachine(), Revision: Revision(),
		Command: s.Command, Config: settings, Settings: settingsOf(config), Seed: s.Seed, Repeats: s.Repeats, Part: s.part, Scaled: scaled,
	}}, nil
}

// plan is what the session runs, and how that differs from everything at full size.
func (s Session) plan(exp *Experiment, config any) (p Plan, scaled string, err error) {
	if p, err = exp.plan(config); err != nil {
		return p, "", err
	}
	if scaled = exp.scaled(config); s.part {
		p, scaled = p.only(append(exp.deciding(p, false), exp.deciding(p, true)...)), strings.TrimPrefix(scaled+"; only what decides a claim", "; ")
	}
	return p, scaled, nil
}

// complete fills in what was not given.
func (s Session) complete() Session {
	if s.Progress == nil {
		s.Progress = NewProgress(io.Discard, false, 0)
	}
	return s
}

// open makes the folder.
func (r *sessionState) open() (err error) {
	r.log, err = results.CreateRunLog(r.Dir)
	return err
}

func (s Session) resume(exp *Experiment) (*sessionState, error) {
	res, runs, err := results.Read(s.Dir)
	if err != nil {
		return nil, err
	}
	switch here := ThisMachine(); {
	case res.Experiment != exp.ID:
		return nil, fmt.Errorf("the session in %s is one of experiment %s: spillway lab %s --resume %s", s.Dir, res.Experiment, res.Experiment, s.Dir)
	case res.Revision != Revision():
		return nil, fmt.Errorf("the session in %s was made by revision %s of the lab and this is %s: their runs cannot be compared; start a new session", s.Dir, res.Revision, Revision())
	case res.Machine.Go != here.Go || res.Machine.CPUs != here.CPUs || res.Machine.CPU != here.CPU:
		return nil, fmt.Errorf("the session in %s was made on another machine or version of Go (%s, %d CPUs, %s): start a new session", s.Dir, res.Machine.Go, res.Machine.CPUs, res.Machine.CPU)
	}
	s.part = s.part || res.Part // what was decided stays so, and looks are counted, in either way to go on
	config := exp.Flags()
	if err := json.Unmarshal(res.Config, config); err != nil {
		return nil, fmt.Errorf("the settings of the session in %s: %w", s.Dir, err)
	}
	plan, _, err := s.plan(exp, config)
	if err != nil {
		return nil, err
	}
	log, err := results.ContinueRunLog(s.Dir)
	if err != nil {
		return nil, err
	}
	res.Repeats = max(res.Repeats, s.Repeats)
	s.Seed, s.Repeats = res.Seed, res.Repeats
	r := &sessionState{Session: s.complete(), exp: exp, plan: plan, log: log, res: res, took: map[ledger.Key]time.Duration{}}
	for _, run := range runs {
		r.add(run)
	}
	if r.looked() && r.untried() {
		r.countLook()
	}
	if r.res.Claims == nil || len(r.steps()) > 0 { // without claims it was killed before it was judged
		r.res.Ended = time.Time{}
	}
	return r, nil
}

// add takes a run that was made.
func (r *sessionState) add(run results.Run) {
	r.runs, r.order = append(r.runs, run), max(r.order, run.Order+1)
	if run.Failed == "" {
		r.took[ledger.KeyOf(&run)] = time.Duration(run.Took * float64(time.Second))
	}
}

func (r *sessionState) run(ctx context.Context) (results.Results, []results.Run, error) {
	defer r.log.Close()
	steps := r.steps()
	stop := r.Progress.start(takes(steps))
	err := r.prepare(ctx, takes(steps))
	if err == nil {
		err = r.Progress.play(ctx, steps, func(left time.Duration) time.Duration { return left })
	}
	stop()
	if err != nil {
		r.abandon()
		return results.Results{}, r.runs, err
	}
	err = r.finish(ctx)
	return r.res, r.runs, err
}

// abandon leaves no folder without runs behind.
func (r *sessionState) abandon() {
	if len(r.runs) == 0 {
		r.log.Discard()
	}
}

// finish judges what was measured and writes it.
func (r *sessionState) finish(ctx context.Context) error {
	r.runs = results.Latest(r.runs)
	r.res.Ended, r.res.Partial = time.Now().Truncate(time.Second), r.partial(ctx)
	r.res.Claims = r.exp.Judge(r.runs, r.res)
	return report.Write(r.Dir, r.exp.Family, r.res, r.runs)
}

// prepare fails for problems that the user can correct, such as a full disk. The results
// of an earlier part of the session stay as they are until then.
func (r *sessionState) prepare(ctx context.Context, rest time.Duration) error {
	a := r.Progress.begin(r.name+"preparing", 0, rest)
	defer r.Progress.drop(a)
	for _, spec := range r.plan.Programs {
		if _, err := contestant.Build(ctx, spec, r.Progress); err != nil && ctx.Err() == nil {
			return inputError{err}
		}
	}
	if r.plan.Prepare != nil {
		if err := r.plan.Prepare(ctx); err != nil && ctx.Err() == nil {
			return inputError{err}
		}
		r.Progress.end(a, "", rest)
	}
	if err := results.WriteResults(r.Dir, r.res); err != nil {
		return inputError{err}
	}
	return nil
}

// partial says why runs are missing, if any are.
func (r *sessionState) partial(ctx context.Context) string {
	demos, groups := len(r.plan.Demos), r.Repeats*len(r.plan.groups())
	switch {
	case ctx.Err() != nil && len(r.steps()) > 0:
		return fmt.Sprintf("interrupted after %d of %d runs and %d of %d demonstrations", len(r.runs), r.Repeats*len(r.plan.Keys()), len(r.res.Demos), demos)
	case len(r.failures) > 0:
		return fmt.Sprintf("%d of %d measurements and demonstrations failed; the first: %s", len(r.failures), groups+demos, r.failures[0])
	}
	return ""
}
