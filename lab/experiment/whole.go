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
	return w.start(ctx, session)
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
	return w.start(ctx, session)
}

// Takes says in words how long a session takes on an idle machine, and what it leaves out.
func (w Whole) Takes() string {
	w.Session = w.complete()
	w.Dir = os.DevNull // where nothing has begun
	r := &whole{Whole: w}
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

// whole is the state of a whole session.
type whole struct {
	Whole
	session results.Session
	parts   []*part
	agenda  agenda
	running []errand
	began   time.Time
}

// part is the state of one experiment of it.
type part struct {
	*running
	prepared, begun bool
	left            int    // steps, also those that run
	out             string // why it was left out
}

func (w Whole) start(ctx context.Context, session results.Session) (results.Session, []Part, error) {
	w.Session = w.complete()
	r := &whole{Whole: w, session: session}
	defer r.close()
	if err := r.draft(); err != nil {
		return session, nil, inputError{err}
	}
	var all []errand
	for i := range r.parts {
		all = append(all, r.errands(i)...)
	}
	all = r.afford(all, w.Budget)
	if len(all) == 0 && !slices.ContainsFunc(r.parts, func(p *part) bool { return p.begun }) {
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
func (r *whole) draft() error {
	for i, e := range r.Experiments {
		s := r.Session
		s.Dir, s.name, s.whole = filepath.Join(r.Dir, e.ID), fmt.Sprintf("%s, %d of %d · ", e.ID, i+1, len(r.Experiments)), true
		var p part
		var err error
		if _, stat := os.Stat(filepath.Join(s.Dir, results.RunsFile)); stat == nil {
			p.running, err = s.resume(e)
		} else {
			p.running, err = s.draft(e, e.Config(r.Size))
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

// errands are the steps that a part has to do.
func (r *whole) errands(i int) []errand { return errandsOf(i, r.parts[i].steps()) }

// errandsOf puts the steps of a part on the agenda: those of parts that let others run
// beside them in one stage, any other part in a stage of its own.
func errandsOf(part int, steps []step) (out []errand) {
	stage := part + 1
	if slices.ContainsFunc(steps, func(s step) bool { return s.uses < 1 }) {
		stage = 0
	}
	for i, s := range steps {
		out = append(out, errand{part: part, stage: stage, repeat: s.repeat, uses: s.uses, expect: s.expect(), do: &steps[i]})
	}
	return out
}

// afford leaves out the experiments for which there is no time.
func (r *whole) afford(all []errand, left time.Duration) []errand {
	kept, out := affordable(all, func(i int) bool { return r.parts[i].begun }, left)
	for i, p := range r.parts {
		if takes, no := out[i]; no {
			p.out = fmt.Sprintf("it takes %s more, and of the budget of %s too little was left", rough(takes), rough(r.Budget))
		} else if slices.ContainsFunc(kept, func(e errand) bool { return e.part == i }) {
			p.out = ""
		}
	}
	return kept
}

// shortest is how long the shortest experiment takes.
func (r *whole) shortest() time.Duration {
	var all []time.Duration
	for i := range r.parts {
		all = append(all, newAgenda(r.errands(i)).takes())
	}
	return slices.Min(all)
}

// build makes the programs, which takes minutes once for their source and does not count.
func (r *whole) build(ctx context.Context, all []errand) error {
	for i, p := range r.parts {
		if !has(all, i) {
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

func has(all []errand, part int) bool {
	return slices.ContainsFunc(all, func(e errand) bool { return e.part == part })
}

// begin opens and prepares the experiments that have something to do, while nothing runs,
// and puts their errands on the agenda.
func (r *whole) begin(ctx context.Context, all []errand) error {
	r.agenda = newAgenda(all)
	if err := r.write(); err != nil {
		return inputError{err}
	}
	for i, p := range r.parts {
		if !has(all, i) {
			continue
		}
		if p.log == nil {
			if err := p.open(); err != nil {
				return inputError{err}
			}
		}
		for _, e := range all {
			if e.part == i {
				p.left++
			}
		}
		var err error
		if p.prepared {
			err = results.WriteResults(p.Dir, p.res)
		} else {
			err = p.prepare(ctx, r.agenda.takes())
		}
		if err != nil {
			return fmt.Errorf("experiment %s: %w", p.exp.ID, err)
		}
		p.prepared = true
	}
	return nil
}

// ended is a step that has ended.
type ended struct {
	errand
	*activity
	note string
	err  error
}

// loop does what is on the agenda, and then what there is time for.
func (r *whole) loop(ctx context.Context) error {
	ends := make(chan ended)
	var failed error
	for {
		for failed == nil && ctx.Err() == nil {
			e, ok := r.agenda.next(r.running)
			if !ok {
				break
			}
			if p := r.parts[e.part]; !p.begun && !r.fits(e) {
				continue
			}
			r.parts[e.part].begun = true
			r.running = append(r.running, e)
			a := r.Progress.begin(e.do.label, e.do.expect(), r.agenda.takes())
			go func() {
				note, err := e.do.run(ctx)
				ends <- ended{e, a, note, err}
			}()
		}
		if len(r.running) == 0 {
			if failed != nil || ctx.Err() != nil {
				return failed
			}
			more := r.more()
			if len(more) == 0 {
				return nil
			}
			if err := r.begin(ctx, more); err != nil {
				return err
			}
			continue
		}
		failed = errors.Join(failed, r.end(ctx, <-ends))
	}
}

// fits says whether there is still time for the part of an errand that was taken from the
// agenda. What does not fit any more is left out.
func (r *whole) fits(e errand) bool {
	kept := r.afford(append(slices.Concat(r.agenda...), e), r.left())
	r.agenda = newAgenda(slices.DeleteFunc(kept, func(o errand) bool { return o.do == e.do }))
	for _, p := range r.parts {
		if p.out != "" {
			p.left = 0
		}
	}
	return r.parts[e.part].out == ""
}

func (r *whole) left() time.Duration { return r.Budget - time.Since(r.began) }

// end takes note of a step that has ended. The last one of an experiment has it judged.
func (r *whole) end(ctx context.Context, e ended) error {
	r.running = slices.DeleteFunc(r.running, func(o errand) bool { return o.do == e.do })
	for _, group := range r.agenda { // what was measured says how long it takes
		for i := range group {
			if group[i].part == e.part {
				group[i].expect = group[i].do.expect()
			}
		}
	}
	if e.err == nil && ctx.Err() == nil {
		r.Progress.end(e.activity, e.note, r.agenda.takes())
	}
	r.Progress.drop(e.activity)
	p := r.parts[e.part]
	if p.left--; e.err != nil || p.left > 0 || ctx.Err() != nil {
		return e.err
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	return r.write()
}

// more is what there is time for when the agenda is done: experiments for which there
// seemed to be none, or else what would settle open claims.
func (r *whole) more() (all []errand) {
	for i, p := range r.parts {
		if p.out != "" {
			all = append(all, r.errands(i)...)
		}
	}
	if all = r.afford(all, r.left()); len(all) > 0 {
		return all
	}
	var open []want
	for i, p := range r.parts {
		if p.begun && p.res.Looks < mostLooks {
			open = append(open, p.wants(i)...)
		}
	}
	chosen := worth(open, r.left())
	for i, p := range r.parts {
		repeats := 0
		for _, w := range chosen {
			if w.part == i {
				repeats = max(repeats, w.to)
			}
		}
		steps := p.measurements(repeats, func(b batch, repeat int) bool {
			return slices.ContainsFunc(chosen, func(w want) bool { return w.part == i && w.of(b, repeat) })
		})
		if len(steps) > 0 {
			p.look()
			all = append(all, errandsOf(i, steps)...)
		}
	}
	return all
}

// finish judges the experiments that were cut short. Without any run nothing is written.
func (r *whole) finish(ctx context.Context) error {
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
func (r *whole) write() error {
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
func (r *whole) results() (out []Part) {
	for _, p := range r.parts {
		if p.log != nil && len(p.runs) > 0 {
			out = append(out, Part{p.exp, p.res, p.runs})
		}
	}
	return out
}

// close ends the logs. A session that began and has no runs leaves nothing behind. One that
// did not begin has written nothing: what is in its folder is of an earlier session.
func (r *whole) close() {
	for _, p := range r.parts {
		if p.log != nil {
			p.abandon()
			p.log.Close()
		}
	}
	if !r.began.IsZero() && len(r.results()) == 0 {
		os.Remove(filepath.Join(r.Dir, results.ResultsFile))
		os.Remove(r.Dir) // unless something else is in it
	}
}
