package experiment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// The order of a session with a budget is by claims. First come the repeats on which the published
// claims rest. Then the cheapest of these claims get more: as many as their kind of figures takes and
// one part needs to decide alone, and then nine where figures have noise. Only then the first verdicts
// are made. The time that is left goes to published claims that more repeats would settle, and after
// them to the goals.
//
// Which claims get more repeats before the first verdict depends on their cost alone, and not
// on what was measured, so it is no look at the data.

const (
	// mostLooks is how often a claim is judged: each look halves the error that the claim may make at
	// the next one, so that a further look needs many repeats for little.
	mostLooks = 3

	// evenRepeats is how many repeats a cheap claim of figures with noise gets before the first verdict,
	// however few parts the claim has.
	evenRepeats = 9
)

// Takes says in words how long a session with a budget takes on an idle machine, and what it leaves
// out. The time for claims that stay open is not in it.
func (s Session) Takes() string {
	s.Dir = os.DevNull // where nothing has begun
	r := &session{Session: s}
	if err := r.draft(); err != nil {
		return "not known: " + err.Error()
	}
	first := r.afford(r.published(), s.Budget, true)
	more := min(total(r.more()), s.Budget-total(first))
	goals := r.afford(r.goals(), s.Budget-total(first)-more, false)
	words := rough(total(first) + more + total(goals))
	var out []string
	for _, p := range r.parts {
		if !has(first, p) && !has(goals, p) {
			out = append(out, p.exp.ID)
		}
	}
	if len(out) > 0 {
		words += ", without " + strings.Join(out, ", ")
	}
	return words
}

// Needs is how long the published claims take on an idle machine, with all the repeats that they need before
// their first verdicts.
func (s Session) Needs() (time.Duration, error) {
	s.Dir = os.DevNull // where nothing has begun
	r := &session{Session: s}
	if err := r.draft(); err != nil {
		return 0, err
	}
	return total(append(slices.Concat(r.published()...), r.more()...)), nil
}

// published are the repeats on which the published claims rest, by
// experiment.
func (r *session) published() (out [][]step) {
	for _, p := range r.parts {
		if len(p.published) > 0 {
			out = append(out, p.measurements(p.res.Repeats, func(b batch, _ int) bool { return b.lacks(p.published, 0) }))
		}
	}
	return out
}

// more are the repeats that published claims need before their first verdicts beyond those that every
// claim gets.
func (r *session) more() (out []step) {
	for _, p := range r.parts {
		if p.out == "" {
			out = append(out, p.measurements(most(p.published), func(b batch, repeat int) bool { return repeat >= p.res.Repeats && b.lacks(p.published, repeat) })...)
		}
	}
	return out
}

// goals are what is left of the experiments once the published claims have their repeats.
func (r *session) goals() (out [][]step) {
	for _, p := range r.parts {
		out = append(out, p.goalsLeft())
	}
	return out
}

func (p *part) goalsLeft() []step {
	beside := len(p.published) > 0 && (p.out == "" || p.log != nil) // of published claims that are measured
	return p.measurements(max(p.res.Repeats, most(p.goals)), func(b batch, repeat int) bool {
		return !(beside && b.lacks(p.published, 0)) && (repeat < p.res.Repeats || b.lacks(p.goals, repeat))
	})
}

// afford leaves out the experiments for whose steps there is not enough time, unless what has begun goes
// on whatever time is left. The first one that fits is taken first.
func (r *session) afford(all [][]step, left time.Duration, begunGoesOn bool) (out []step) {
	for _, steps := range all {
		if len(steps) == 0 {
			continue
		}
		p, t := steps[0].part, takes(steps)
		if begun := p.log != nil; t > left && !(begun && begunGoesOn) {
			what := "it takes"
			if begun && len(p.published) > 0 {
				what = "its goals take"
			}
			p.out = fmt.Sprintf("%s %s more, and of the budget of %s too little was left", what, rough(t), rough(r.Budget))
			continue
		}
		left, p.out = left-t, ""
		out = append(out, steps...)
	}
	return out
}

// spend does what there is time for, once the published claims have their first repeats.
func (r *session) spend(ctx context.Context) error {
	for _, least := range []int{judge.MinRepeats, evenRepeats} {
		left := r.left()
		if least == evenRepeats {
			left /= 2
		}
		even := r.wanted(left, func(p *part, c ledger.Claim, ev *ledger.Evidence) []lack {
			if c.Goal || p.res.Looks > 0 || p.looked() {
				return nil
			}
			n := c.Repeats(ev)
			if c.Interval(ev) {
				n = max(n, least)
			}
			return []lack{{c.Keys(ev), n}}
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
		steps := r.afford([][]step{p.goalsLeft()}, r.left(), false)
		if len(steps) == 0 || ctx.Err() != nil {
			continue
		}
		if err := errors.Join(r.do(ctx, steps), r.judge(ctx)); err != nil {
			return err
		}
	}
	return r.settle(ctx, true)
}

// settle measures further what should settle open claims, the goals too or not.
func (r *session) settle(ctx context.Context, goals bool) error {
	for range mostLooks - 1 {
		steps := r.wanted(r.left(), func(p *part, c ledger.Claim, ev *ledger.Evidence) (out []lack) {
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
		if len(steps) == 0 || ctx.Err() != nil {
			return nil
		}
		if err := errors.Join(r.do(ctx, steps), r.judge(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// wanted are the steps of the claims that lack repeats, as far as there is time.
func (r *session) wanted(left time.Duration, lacks func(p *part, c ledger.Claim, ev *ledger.Evidence) []lack) []step {
	var all [][]step
	for _, p := range r.parts {
		if p.log != nil {
			all = append(all, p.wants(lacks)...)
		}
	}
	return worth(all, left)
}
