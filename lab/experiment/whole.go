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
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Whole is several experiments as one session, each in a folder of its own below Dir. The
// order is by claims. First come the repeats on which the published claims rest. Then the
// cheapest of these claims get more: as many as one part needs to decide alone, and then nine. Only
// then the first verdicts are made. The time that is left goes to published claims that more
// repeats would settle, and after them to the goals.
//
// Which claims get more repeats before the first verdict depends on their cost alone, and not
// on what was measured, so it is no look at the data.
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

const (
	// mostLooks is how often a claim is judged: each look halves the error that the claim may make at
	// the next one, so that a further look needs many repeats for little.
	mostLooks = 3

	// evenRepeats is how many repeats a cheap claim gets before the first verdict, however few parts
	// the claim has.
	evenRepeats = 9
)

// Run measures and judges. If ctx ends, what was measured until then is judged and
// written. An error means that something could not be measured or kept; what there is of results
// is returned beside the error.
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

// Takes says in words how long a session takes on an idle machine, and what it leaves out. The
// time for claims that stay open is not in it.
func (w Whole) Takes() string {
	w.Session = w.complete()
	w.Dir = os.DevNull // where nothing has begun
	r := &wholeState{Whole: w}
	if err := r.draft(); err != nil {
		return "not known: " + err.Error()
	}
	first := r.afford(r.published(), w.Budget)
	goals := r.afford(r.goals(), w.Budget-total(first))
	words := rough(total(first) + total(goals))
	var out []string
	for _, p := range r.parts {
		if !slices.ContainsFunc(slices.Concat(first, goals), func(j job) bool { return j.partState == p }) {
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
	began   time.Time
	wrote   bool         // the results file of the folder
	chosen  atomic.Int64 // nanoseconds that the chosen steps which have not begun will take
}

// partState is the state of one experiment of a whole session.
type partState struct {
	*sessionState
	built    bool // the programs
	prepared bool
	source   []ledger.Key // the cells of the published claims
	out      string       // why the experiment, or its goals, were left out
	err      error        // with which preparing it ended
}

// job is steps of one experiment.
type job struct {
	*partState
	steps []step
	must  bool // whatever time is left
}

// merged are the steps of the jobs in the order in which they are done: first the steps of all jobs that
// leave room for others, so that experiments that only wait run side by side, and then the rest,
// one experiment after the other.
func merged(jobs []job) []step {
	var waiting, alone []step
	for _, j := range jobs {
		for _, s := range j.steps {
			if s.uses < 1 {
				waiting = append(waiting, s)
			} else {
				alone = append(alone, s)
			}
		}
	}
	slices.SortStableFunc(waiting, func(a, b step) int { return cmp.Compare(a.repeat, b.repeat) })
	return append(waiting, alone...)
}

// total is how long the jobs take.
func total(jobs []job) time.Duration { return takes(merged(jobs)) }

func (w Whole) run(ctx context.Context, session results.Session) (results.Session, []Part, error) {
	w.Session = w.complete()
	r := &wholeState{Whole: w, session: session}
	defer r.close()
	if err := r.draft(); err != nil {
		return session, nil, inputError{err}
	}
	first := r.afford(r.published(), w.Budget)
	goals := r.afford(r.goals(), w.Budget-total(first))
	if len(first)+len(goals) == 0 && !slices.ContainsFunc(r.parts, func(p *partState) bool { return p.log != nil }) {
		return session, nil, inputError{fmt.Errorf("no experiment fits into a budget of %v: the shortest takes %s", w.Budget, rough(r.shortest()))}
	}
	if err := r.build(ctx, slices.Concat(first, goals)); err != nil {
		return session, nil, err
	}
	r.began = time.Now()
	stop := r.Progress.start(total(first) + total(goals))
	err := r.measure(ctx, first)
	stop()
	err = errors.Join(err, r.finish(ctx))
	return r.session, r.results(), err
}

// draft plans every experiment, and goes on with those that have begun.
func (r *wholeState) draft() error {
	machine := new(pace)
	for i, e := range r.Experiments {
		s := r.Session
		s.pace = machine
		s.Dir, s.name, s.part = filepath.Join(r.Dir, e.ID), fmt.Sprintf("%s, %d of %d · ", e.ID, i+1, len(r.Experiments)), true
		s.spare = func(again time.Duration) bool { return again+time.Duration(r.chosen.Load()) <= r.left() }
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
		p.source = e.deciding(p.plan, false)
		r.parts = append(r.parts, &p)
	}
	return nil
}

// published are the repeats on which the published claims rest, with the demonstrations beside them.
func (r *wholeState) published() (out []job) {
	for _, p := range r.parts {
		if len(p.source) == 0 {
			continue
		}
		steps := p.measurements(p.Repeats, func(b batch, _ int) bool { return b.has(p.source) })
		if steps = append(steps, p.demonstrations()...); len(steps) > 0 {
			out = append(out, job{p, steps, p.log != nil})
		}
	}
	return out
}

// goals are what is left of the experiments once the published claims have their repeats.
func (r *wholeState) goals() (out []job) {
	for _, p := range r.parts {
		out = append(out, p.goals()...)
	}
	return out
}

func (p *partState) goals() []job {
	steps := p.steps()
	if len(p.source) > 0 && (p.out == "" || p.log != nil) {
		steps = p.measurements(p.Repeats, func(b batch, _ int) bool { return !b.has(p.source) })
	}
	if len(steps) == 0 {
		return nil
	}
	return []job{{p, steps, false}}
}

// afford leaves out the jobs for which there is not enough time. The first one that fits is taken
// first.
func (r *wholeState) afford(jobs []job, left time.Duration) (out []job) {
	for _, j := range jobs {
		t := takes(j.steps)
		if t > left && !j.must {
			what := "it takes"
			if len(j.source) > 0 && j.log != nil {
				what = "its goals take"
			}
			j.out = fmt.Sprintf("%s %s more, and of the budget of %s too little was left", what, rough(t), rough(r.Budget))
			continue
		}
		left, j.out = left-t, ""
		out = append(out, j)
	}
	return out
}

// shortest is how long the shortest experiment takes.
func (r *wholeState) shortest() time.Duration {
	var all []time.Duration
	for _, p := range r.parts {
		all = append(all, takes(p.steps()))
	}
	return slices.Min(all)
}

// build makes the programs, which takes minutes once for their source and does not count.
func (r *wholeState) build(ctx context.Context, jobs []job) error {
	for _, j := range jobs {
		for _, spec := range j.plan.Programs {
			if _, err := contestant.Build(ctx, spec, r.Progress); err != nil && ctx.Err() == nil {
				return inputError{err}
			}
		}
		j.built = true
	}
	return nil
}

// measure does the jobs that come first, and then what there is time for.
func (r *wholeState) measure(ctx context.Context, first []job) error {
	if err := r.do(ctx, first); err != nil || ctx.Err() != nil {
		return err
	}
	for _, least := range []int{judge.MinRepeats, evenRepeats} {
		left := r.left()
		if least == evenRepeats {
			left /= 2
		}
		even := r.wanted(left, func(p *partState, c ledger.Claim, ev *ledger.Evidence) []lack {
			if c.Goal || p.res.Looks > 0 || p.looked() {
				return nil
			}
			return []lack{{c.Keys(ev), max(least, c.Repeats(ev))}}
		})
		if err := r.do(ctx, even); err != nil || ctx.Err() != nil {
			return err
		}
	}
	if err := r.judge(ctx); err != nil {
		return err
	}
	if err := r.settle(ctx, false); err != nil {
		return err
	}
	for _, p := range r.parts {
		if p.log == nil && !p.built {
			continue
		}
		jobs := r.afford(p.goals(), r.left())
		if len(jobs) == 0 || ctx.Err() != nil {
			continue
		}
		if err := errors.Join(r.do(ctx, jobs), r.judge(ctx)); err != nil {
			return err
		}
	}
	return r.settle(ctx, true)
}

// wanted are the jobs of the claims that lack repeats, as far as there is time.
func (r *wholeState) wanted(left time.Duration, lacks func(p *partState, c ledger.Claim, ev *ledger.Evidence) []lack) (out []job) {
	var all []want
	for i, p := range r.parts {
		if p.log != nil {
			all = append(all, p.wants(i, func(c ledger.Claim, ev *ledger.Evidence) []lack { return lacks(p, c, ev) })...)
		}
	}
	chosen := worth(all, left)
	for i, p := range r.parts {
		if steps := stepsOf(chosen, i); len(steps) > 0 {
			out = append(out, job{p, steps, false})
		}
	}
	return out
}

// settle measures further what should settle open claims, the goals too or not.
func (r *wholeState) settle(ctx context.Context, goals bool) error {
	for range 2 {
		jobs := r.wanted(r.left(), func(p *partState, c ledger.Claim, ev *ledger.Evidence) (out []lack) {
			i := slices.IndexFunc(p.res.Claims, func(of results.Claim) bool { return of.ID == c.ID })
			if i < 0 || c.Goal && !goals || p.res.Claims[i].Looks >= mostLooks {
				return nil
			}
			for _, a := range lacking(p.res.Claims[i]) {
				keys := c.KeysOf(ev, a)
				out = append(out, lack{keys, tried(ev, keys...) + a.MoreRuns})
			}
			return out
		})
		if len(jobs) == 0 || ctx.Err() != nil {
			return nil
		}
		if err := errors.Join(r.do(ctx, jobs), r.judge(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// do does the jobs. Their experiments are opened and prepared before. One without published claims
// that cannot be prepared is left out.
func (r *wholeState) do(ctx context.Context, jobs []job) error {
	if err := r.write(); err != nil { // with the verdicts that there are, before looks are counted
		return inputError{err}
	}
	var begun []job
	for _, j := range jobs {
		switch err := r.begin(ctx, j.partState, r.rest(total(jobs))); {
		case err == nil:
			begun = append(begun, j)
		case len(j.source) > 0 || len(j.runs) > 0:
			return err
		default:
			j.giveUp(err)
		}
	}
	return r.Progress.play(ctx, merged(begun), r.rest)
}

// rest is how long the session goes on, if what was chosen takes so long: at least that, and for
// the rest of the budget if there are goals enough.
func (r *wholeState) rest(chosen time.Duration) time.Duration {
	r.chosen.Store(int64(chosen))
	all := chosen
	for _, p := range r.parts {
		if p.log == nil {
			all += takes(p.steps())
		}
	}
	return max(chosen, min(all, r.left()))
}

// begin opens and prepares an experiment, and counts the look if its verdicts were made.
func (r *wholeState) begin(ctx context.Context, p *partState, rest time.Duration) error {
	if p.log == nil {
		if err := p.open(); err != nil {
			return inputError{err}
		}
	}
	if p.looked() {
		p.countLook()
	}
	p.res.Ended = time.Time{}
	if p.prepared {
		return results.WriteResults(p.Dir, p.res)
	}
	p.prepared = true
	if err := p.prepare(ctx, rest); err != nil {
		return fmt.Errorf("experiment %s: %w", p.exp.ID, err)
	}
	return nil
}

// giveUp leaves out an experiment that has no runs.
func (p *partState) giveUp(err error) {
	p.out, p.err = err.Error(), err
	if p.log != nil {
		p.abandon()
		p.log.Close()
		p.log = nil
	}
}

// judge makes the verdicts of the experiments that were measured since.
func (r *wholeState) judge(ctx context.Context) error {
	for _, p := range r.parts {
		if p.log == nil || len(p.runs) == 0 || !p.res.Ended.IsZero() {
			continue
		}
		if err := p.finish(ctx); err != nil {
			return err
		}
	}
	return r.write()
}

func (r *wholeState) left() time.Duration { return r.Budget - time.Since(r.began) }

// finish judges the experiments that were cut short. Without any run nothing is written. The error
// names the experiments that could not be prepared.
func (r *wholeState) finish(ctx context.Context) (err error) {
	for _, p := range r.parts {
		if err = errors.Join(err, p.err); p.log == nil || len(p.runs) == 0 {
			p.out = cmp.Or(p.out, "the session ended before it began")
		}
	}
	if len(r.results()) == 0 {
		return err
	}
	r.session.Ended = time.Now().Truncate(time.Second)
	return errors.Join(err, r.judge(ctx))
}

// write stores what is known of the session.
func (r *wholeState) write() error {
	r.wrote = true
	r.session.Parts, r.session.LeftOut = []results.Results{}, nil
	for _, p := range r.parts {
		if p.log != nil && !p.res.Ended.IsZero() {
			r.session.Parts = append(r.session.Parts, p.res)
		}
		if p.out != "" {
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
