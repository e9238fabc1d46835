package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Session is one execution of experiments. It may be interrupted and resumed.
//
// Without a budget the session is of one experiment: everything that its plan has is run, and
// judged once. With a budget there may be several, each in a folder of its own below Dir, and
// their order is by claims; see budget.go.
type Session struct {
	Dir      string // results go here; must not hold runs yet, unless they are resumed
	Resume   bool   // go on with the session in Dir: its settings, size and seed are kept
	Repeats  int
	Again    int // how often a disturbed measurement is made again
	Seed     uint64
	Command  []string  // how it was called, for the report
	Progress *Progress // nil: nothing is shown

	Experiments []*Experiment // the most important first
	Config      any           // of the only experiment; nil: that of Size
	Size        string        // of the configurations: "whole", "quick", …
	Complete    func(any)     // adds to a configuration of Size what the user has said of all; may be nil
	Budget      time.Duration // 0: none

	// Watch begins to watch other processes; what it returns is the share of the
	// processors that they have used since. Nil: as the system reports it.
	Watch func() func() float64

	// Done is called whenever experiments of a session with a budget have been judged, to
	// complete the session with what is made of all of them; may be nil.
	Done func(*results.Session)
}

// Part is an experiment of a session that has results.
type Part struct {
	*Experiment
	Results results.Results
	Runs    []results.Run
}

// ErrInput is matched by errors that the user can correct by other settings.
var ErrInput = errors.New("bad input")

type inputError struct{ error }

func (inputError) Is(target error) bool { return target == ErrInput }
func (e inputError) Unwrap() error      { return e.error }

// Run runs the session of one experiment.
func (s Session) Run(ctx context.Context, e *Experiment, config any) (results.Results, []results.Run, error) {
	s.Experiments, s.Config = []*Experiment{e}, config
	_, parts, err := s.RunAll(ctx)
	if len(parts) == 0 {
		return results.Results{}, nil, err
	}
	return parts[0].Results, parts[0].Runs, err
}

// RunAll runs the session, judges it and writes the results folder. If ctx ends, what was measured
// until then is judged and written, and Results.Partial says so. An error means that something could
// not be measured or kept, or that the settings were invalid (errors.Is ErrInput); what there is of
// results is returned beside the error.
func (s Session) RunAll(ctx context.Context) (results.Session, []Part, error) {
	r := &session{Session: s}
	if r.Progress == nil {
		r.Progress = NewProgress(io.Discard, false, 0)
	}
	defer r.close()
	err := r.open()
	if err == nil {
		err = r.draft()
	}
	if err != nil {
		return r.kept, nil, inputError{err}
	}
	first, goals, err := r.chosenFirst()
	if err == nil {
		err = r.build(ctx, slices.Concat(first, goals))
	}
	if err != nil {
		return r.kept, nil, err
	}
	r.began = time.Now()
	stop := r.Progress.start(total(first) + total(goals))
	err = r.do(ctx, first)
	if err == nil && ctx.Err() == nil && r.Budget > 0 {
		err = r.spend(ctx)
	}
	stop()
	err = errors.Join(err, r.finish(ctx))
	return r.kept, r.results(), err
}

// session is the state of a session.
type session struct {
	Session
	kept   results.Session // with a budget: the results file of Dir
	wrote  bool            // that file
	parts  []*part
	began  time.Time
	pace   *pace        // of the machine, with a budget; nil: as planned
	chosen atomic.Int64 // nanoseconds that the chosen steps which have not begun will take
}

// open begins what is kept of the session, or reads it.
func (r *session) open() (err error) {
	if r.Budget == 0 {
		return nil
	}
	r.pace = new(pace)
	if r.Resume {
		if r.kept, err = results.ReadSession(r.Dir); err == nil {
			r.Seed, r.Size, r.kept.LeftOut, r.kept.Ended = r.kept.Seed, r.kept.Size, nil, time.Time{}
			err = comparable(r.Dir, r.kept.Revision)
		}
		return err
	}
	r.kept = results.Session{
		Schema: results.SessionSchema, Started: time.Now().Truncate(time.Second), Machine: ThisMachine(), Revision: Revision(),
		Command: r.Command, Seed: r.Seed, Size: r.Size, Parts: []results.Results{},
	}
	for _, e := range r.Experiments {
		r.kept.Experiments = append(r.kept.Experiments, e.ID)
	}
	if _, err := os.Stat(filepath.Join(r.Dir, results.ResultsFile)); err == nil {
		return inUse(r.Dir)
	}
	return nil
}

func inUse(dir string) error {
	return fmt.Errorf("%s holds the results of an earlier session; choose another folder, or go on with it by --resume: %w", dir, fs.ErrExist)
}

// comparable fails for a session of another revision.
func comparable(dir, revision string) error {
	if here := Revision(); revision != here {
		return fmt.Errorf("the session in %s was made by revision %s of the lab and this is %s: their runs cannot be compared; start a new session", dir, revision, here)
	}
	return nil
}

// draft plans every experiment, and goes on with those that have begun.
func (r *session) draft() error {
	for i, e := range r.Experiments {
		p := &part{s: r, exp: e, dir: r.Dir, took: map[ledger.Key]time.Duration{}}
		r.parts = append(r.parts, p)
		begun := r.Resume
		if r.Budget > 0 {
			p.dir, p.name = filepath.Join(r.Dir, e.ID), fmt.Sprintf("%s, %d of %d · ", e.ID, i+1, len(r.Experiments))
			info, err := os.Stat(filepath.Join(p.dir, results.RunsFile))
			if begun = err == nil && info.Size() > 0; err == nil && !r.Resume {
				return inUse(p.dir)
			}
		}
		draft := p.draft
		if begun {
			draft = p.resume
		}
		if err := draft(); err != nil {
			return fmt.Errorf("experiment %s: %w", e.ID, err)
		}
	}
	return nil
}

// inOrder is the order in which steps are done. Those of one experiment go by their repeats. Of several
// experiments first come the steps that leave room for others, so that experiments that only wait run
// side by side, and then the rest, one experiment after the other.
func inOrder(steps []step) []step {
	steps = slices.Clone(steps)
	several := slices.ContainsFunc(steps, func(s step) bool { return s.part != steps[0].part })
	group := func(s step) int {
		if !several || s.uses < 1 {
			return 0
		}
		return 1 + slices.Index(s.part.s.parts, s.part)
	}
	slices.SortStableFunc(steps, func(a, b step) int {
		return cmp.Or(cmp.Compare(group(a), group(b)), cmp.Compare(a.repeat, b.repeat))
	})
	return steps
}

// total is how long the steps take in that order.
func total(steps []step) time.Duration { return takes(inOrder(steps)) }

func has(steps []step, p *part) bool {
	return slices.ContainsFunc(steps, func(s step) bool { return s.part == p })
}

// chosenFirst are the steps with which the session begins, and the goals that fit into a budget beside them.
func (r *session) chosenFirst() (first, goals []step, err error) {
	if r.Budget == 0 {
		return r.parts[0].steps(), nil, nil
	}
	first = r.afford(r.published(), r.Budget, true)
	goals = r.afford(r.goals(), r.Budget-total(first), false)
	if len(first)+len(goals) == 0 && !slices.ContainsFunc(r.parts, func(p *part) bool { return p.log != nil }) {
		err = inputError{fmt.Errorf("no experiment fits into a budget of %v; %s: %s", r.Budget, r.parts[0].exp.ID, r.parts[0].out)}
	}
	return first, goals, err
}

// build makes the programs of the experiments that have steps, which takes minutes once for their source
// and does not count.
func (r *session) build(ctx context.Context, steps []step) error {
	for _, p := range r.parts {
		if r.Budget == 0 || has(steps, p) {
			if err := p.build(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// do does the steps. Their experiments are opened and prepared before. One without published claims
// that cannot be prepared is left out of a session with a budget.
func (r *session) do(ctx context.Context, steps []step) error {
	if err := r.write(); err != nil { // with the verdicts that there are, before looks are counted
		return inputError{err}
	}
	for _, p := range r.parts {
		if r.Budget > 0 && !has(steps, p) {
			continue
		}
		if err := p.begin(ctx, r.rest(total(steps))); err != nil {
			if r.Budget == 0 || len(p.published) > 0 || len(p.runs) > 0 {
				return err
			}
			p.giveUp(err)
			steps = slices.DeleteFunc(steps, func(s step) bool { return s.part == p })
		}
	}
	return r.Progress.play(ctx, inOrder(steps), r.rest)
}

// rest is how long the session goes on, if what was chosen takes so long: at least that, and for
// the rest of the budget if there are goals enough.
func (r *session) rest(chosen time.Duration) time.Duration {
	r.chosen.Store(int64(chosen))
	all := chosen
	for _, p := range r.parts {
		if p.log == nil {
			all += takes(p.steps())
		}
	}
	return max(chosen, min(all, r.left()))
}

// left is what is left of the budget.
func (r *session) left() time.Duration { return r.Budget - time.Since(r.began) }

// spare reports whether there is time to measure something again.
func (r *session) spare(again time.Duration) bool {
	return r.Budget == 0 || again+time.Duration(r.chosen.Load()) <= r.left()
}

// judge makes the verdicts of the experiments that were measured since.
func (r *session) judge(ctx context.Context) error {
	for _, p := range r.parts {
		if p.tried() && p.res.Ended.IsZero() {
			if err := p.finish(ctx); err != nil {
				return err
			}
		}
	}
	return r.write()
}

// finish judges the experiments that were cut short. Without any run nothing is written. The error
// names the experiments that could not be prepared.
func (r *session) finish(ctx context.Context) (err error) {
	for _, p := range r.parts {
		if err = errors.Join(err, p.err); !p.tried() && p.out == "" {
			p.out = "the session ended before it began"
		}
	}
	if len(r.results()) == 0 {
		return err
	}
	r.kept.Ended = time.Now().Truncate(time.Second)
	return errors.Join(err, r.judge(ctx))
}

// write stores what is known of a session with a budget.
func (r *session) write() error {
	if r.Budget == 0 {
		return nil
	}
	r.wrote = true
	r.kept.Parts, r.kept.LeftOut = []results.Results{}, nil
	for _, p := range r.parts {
		if p.log != nil && !p.res.Ended.IsZero() {
			r.kept.Parts = append(r.kept.Parts, p.res)
		}
		if p.out != "" {
			r.kept.LeftOut = append(r.kept.LeftOut, results.LeftOut{Experiment: p.exp.ID, Why: p.out})
		}
	}
	if r.Done != nil {
		r.Done(&r.kept)
	}
	return results.WriteSession(r.Dir, r.kept)
}

// results are the experiments that have any.
func (r *session) results() (out []Part) {
	for _, p := range r.parts {
		if p.tried() {
			out = append(out, Part{p.exp, p.res, p.runs})
		}
	}
	return out
}

// close ends the logs. What is without runs leaves nothing behind, and what could not go
// on stays as it was.
func (r *session) close() {
	for _, p := range r.parts {
		p.close()
	}
	if r.wrote && len(r.results()) == 0 {
		os.Remove(filepath.Join(r.Dir, results.ResultsFile))
		os.Remove(r.Dir) // unless something else is in it
	}
}
