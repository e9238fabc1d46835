package experiment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/results"
)

// errands are the steps that a part has to do.
func (r *wholeState) errands(i int) []errand { return errandsOf(i, r.parts[i].steps()) }

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
func (r *wholeState) afford(all []errand, left time.Duration) []errand {
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
func (r *wholeState) shortest() time.Duration {
	var all []time.Duration
	for i := range r.parts {
		all = append(all, newAgenda(r.errands(i)).takes())
	}
	return slices.Min(all)
}

func hasPart(all []errand, part int) bool {
	return slices.ContainsFunc(all, func(e errand) bool { return e.part == part })
}

// begin opens and prepares the experiments that have something to do, while nothing runs,
// and puts their errands on the agenda.
func (r *wholeState) begin(ctx context.Context, all []errand) error {
	r.agenda = newAgenda(all)
	if err := r.write(); err != nil {
		return inputError{err}
	}
	for i, p := range r.parts {
		if !hasPart(all, i) {
			continue
		}
		if p.log == nil {
			if err := p.open(); err != nil {
				return inputError{err}
			}
		}
		for _, e := range all {
			if e.part == i {
				p.pending++
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
func (r *wholeState) loop(ctx context.Context) error {
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
func (r *wholeState) fits(e errand) bool {
	kept := r.afford(append(slices.Concat(r.agenda...), e), r.left())
	r.agenda = newAgenda(slices.DeleteFunc(kept, func(o errand) bool { return o.do == e.do }))
	for _, p := range r.parts {
		if p.out != "" {
			p.pending = 0
		}
	}
	return r.parts[e.part].out == ""
}

func (r *wholeState) left() time.Duration { return r.Budget - time.Since(r.began) }

// end takes note of a step that has ended. The last one of an experiment has it judged.
func (r *wholeState) end(ctx context.Context, e ended) error {
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
	if p.pending--; e.err != nil || p.pending > 0 || ctx.Err() != nil {
		return e.err
	}
	if err := p.finish(ctx); err != nil {
		return err
	}
	return r.write()
}

// more is what there is time for when the agenda is done: experiments for which there
// seemed to be none, or else what would settle open claims.
func (r *wholeState) more() (all []errand) {
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
			return slices.ContainsFunc(chosen, func(w want) bool { return w.part == i && w.covers(b, repeat) })
		})
		if len(steps) > 0 {
			p.countLook()
			all = append(all, errandsOf(i, steps)...)
		}
	}
	return all
}
