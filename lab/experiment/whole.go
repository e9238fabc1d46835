package experiment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// Whole is several experiments as one session, each in a folder of its own below Dir.
// What only waits runs side by side, what computes alone. The time that is left when all
// have their repeats goes to the claims that more repeats would settle.
type Whole struct {
	Session
	Budget      time.Duration
	Size        string        // of the configurations: "whole", "quick", …
	Experiments []*Experiment // the most important first

	// Done is called whenever an experiment has been judged, to complete the session with
	// what is made of all of them; may be nil.
	Done func(*results.Session)
}

// Part is an experiment of a whole session.
type Part struct {
	*Experiment
	Results results.Results
	Runs    []results.Run
}

// mostLooks is how often a session is judged and extended: each time halves the error
// that it may make, so that a fourth would need many repeats for little.
const mostLooks = 3

// Run measures and judges. If ctx ends, what was measured until then is judged and
// written. An error means that there is no result.
func (w Whole) Run(ctx context.Context) (results.Session, []Part, error) {
	files := []string{filepath.Join(w.Dir, results.ResultsFile)}
	for _, e := range w.Experiments {
		files = append(files, filepath.Join(w.Dir, e.ID, results.RunsFile))
	}
	for _, path := range files {
		if _, err := os.Stat(path); err == nil {
			return results.Session{}, nil, inputError{fmt.Errorf("%s holds the results of an earlier session; choose another folder, or go on with it by --resume: %w", filepath.Dir(path), fs.ErrExist)}
		}
	}
	session := results.Session{
		Schema: results.SessionSchema, Started: time.Now().Truncate(time.Second), Machine: ThisMachine(), Revision: Revision(),
		Command: w.Command, Seed: w.Seed, Size: w.Size, Parts: []results.Results{},
	}
	for _, e := range w.Experiments {
		session.Experiments = append(session.Experiments, e.ID)
	}
	return w.run(ctx, session)
}

// Resume goes on with the session in Dir, of these experiments: those that are complete
// are not run again.
func (w Whole) Resume(ctx context.Context) (results.Session, []Part, error) {
	session, err := results.ReadSession(w.Dir)
	if err != nil {
		return results.Session{}, nil, inputError{err}
	}
	if here := Revision(); session.Revision != here {
		return results.Session{}, nil, inputError{fmt.Errorf("the session in %s was made by revision %s of the lab and this is %s: their runs cannot be compared; start a new session", w.Dir, session.Revision, here)}
	}
	w.Seed, w.Size, session.LeftOut, session.Ended = session.Seed, session.Size, nil, time.Time{}
	return w.run(ctx, session)
}

// Takes says in words how long a session takes on an idle machine, and what it leaves out.
func (w Whole) Takes() string {
	w.Session = w.complete()
	w.Dir = os.DevNull // where nothing has begun
	r := &wholeState{Whole: w}
	if err := r.draft(); err != nil {
		return "not known: " + err.Error()
	}
	var all []errand
	for i := range r.parts {
		all = append(all, r.errands(i)...)
	}
	words := rough(newAgenda(r.afford(all, w.Budget)).takes())
	var out []string
	for _, p := range r.parts {
		if p.out != "" {
			out = append(out, p.exp.ID)
		}
	}
	if len(out) > 0 {
		words += ", without " + strings.Join(out, ", ")
	}
	return words
}

// wholeState is the state of a whole session.
type wholeState struct {
	Whole
	session results.Session
	parts   []*partState
	agenda  agenda
	running []errand
	began   time.Time
	wrote   bool // the results file of the folder
}

// partState is the state of one experiment of it.
type partState struct {
	*sessionState
	prepared, begun bool
	pending         int    // steps that have not ended
	out             string // why it was left out
}

func (w Whole) run(ctx context.Context, session results.Session) (results.Session, []Part, error) {
	w.Session = w.complete()
	r := &wholeState{Whole: w, session: session}
	defer r.close()
	if err := r.draft(); err != nil {
		return session, nil, inputError{err}
	}
	var all []errand
	for i := range r.parts {
		all = append(all, r.errands(i)...)
	}
	all = r.afford(all, w.Budget)
	if len(all) == 0 && !slices.ContainsFunc(r.parts, func(p *partState) bool { return p.begun }) {
		return session, nil, inputError{fmt.Errorf("no experiment fits into a budget of %v: the shortest takes %s", w.Budget, rough(r.shortest()))}
	}
	if err := r.build(ctx, all); err != nil {
		return session, nil, err
	}
	r.began = time.Now()
	stop := r.Progress.start(newAgenda(all).takes())
	err := r.begin(ctx, all)
	if err == nil {
		err = r.loop(ctx)
	}
	stop()
	err = errors.Join(err, r.finish(ctx))
	return r.session, r.results(), err
}

// draft plans every experiment, and goes on with those that have begun.
func (r *wholeState) draft() error {
	for i, e := range r.Experiments {
		s := r.Session
		s.Dir, s.name, s.part = filepath.Join(r.Dir, e.ID), fmt.Sprintf("%s, %d of %d · ", e.ID, i+1, len(r.Experiments)), true
		var p partState
		var err error
		if info, stat := os.Stat(filepath.Join(s.Dir, results.RunsFile)); stat == nil && info.Size() > 0 {
			p.sessionState, err = s.resume(e)
		} else {
			p.sessionState, err = s.draft(e, e.Config(r.Size))
		}
		if err != nil {
			return fmt.Errorf("experiment %s: %w", e.ID, err)
		}
		p.begun = p.log != nil
		r.parts = append(r.parts, &p)
		if p.begun && p.res.Claims == nil && len(p.steps()) == 0 { // it was killed before it was judged
			if err := p.finish(context.Background()); err != nil {
				return err
			}
		}
	}
	return nil
}

// build makes the programs, which takes minutes once for their source and does not count.
func (r *wholeState) build(ctx context.Context, all []errand) error {
	for i, p := range r.parts {
		if !hasPart(all, i) {
			continue
		}
		for _, spec := range p.plan.Programs {
			if _, err := contestant.Build(ctx, spec, r.Progress); err != nil && ctx.Err() == nil {
				return inputError{err}
			}
		}
	}
	return nil
}

// finish judges the experiments that were cut short. Without any run nothing is written.
func (r *wholeState) finish(ctx context.Context) error {
	if len(r.results()) == 0 {
		return nil
	}
	for _, p := range r.parts {
		switch {
		case p.log == nil || len(p.runs) == 0:
			p.out = cmp.Or(p.out, "the session ended before it began")
		case p.res.Ended.IsZero():
			if err := p.finish(ctx); err != nil {
				return err
			}
		}
	}
	r.session.Ended = time.Now().Truncate(time.Second)
	return r.write()
}

// write stores what is known of the session.
func (r *wholeState) write() error {
	r.wrote = true
	r.session.Parts, r.session.LeftOut = []results.Results{}, nil
	for _, p := range r.parts {
		switch {
		case p.log != nil && !p.res.Ended.IsZero():
			r.session.Parts = append(r.session.Parts, p.res)
		case p.out != "":
			r.session.LeftOut = append(r.session.LeftOut, results.LeftOut{Experiment: p.exp.ID, Why: p.out})
		}
	}
	if r.Done != nil {
		r.Done(&r.session)
	}
	return results.WriteSession(r.Dir, r.session)
}

// results are the experiments that have any.
func (r *wholeState) results() (out []Part) {
	for _, p := range r.parts {
		if p.log != nil && len(p.runs) > 0 {
			out = append(out, Part{p.exp, p.res, p.runs})
		}
	}
	return out
}

// close ends the logs. What is without runs leaves nothing behind, and what could not go
// on stays as it was.
func (r *wholeState) close() {
	for _, p := range r.parts {
		if p.log != nil {
			p.abandon()
			p.log.Close()
		}
	}
	if r.wrote && len(r.results()) == 0 {
		os.Remove(filepath.Join(r.Dir, results.ResultsFile))
		os.Remove(r.Dir) // unless something else is in it
	}
}
