package experiment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// next is the index of the step to begin while others run; -1: a step has to end first. Steps of a
// later repeat do not overtake. Within a repeat, steps that leave room for others run beside each
// other, and then every other step alone. Two repeats of one batch never run at the same time, for
// one disturbance would change both.
func next(left, running []step) int {
	if len(left) == 0 {
		return -1
	}
	busy := 0.0
	for _, s := range running {
		busy += s.uses
	}
	for i, s := range left {
		if s.repeat != left[0].repeat {
			break
		}
		again := slices.ContainsFunc(running, func(other step) bool { return other.batch == s.batch })
		if s.uses < 1 && busy+s.uses <= 1+1e-9 && !again {
			return i
		}
	}
	if len(running) == 0 {
		return 0
	}
	return -1
}

// without is the steps without the one of that index, in place. A session may have many thousands.
func without(steps []step, i int) []step {
	copy(steps[1:i+1], steps[:i])
	return steps[1:]
}

// takes is how long the steps take if each takes as long as expected.
func takes(steps []step) (now time.Duration) {
	left, ends := slices.Clone(steps), map[string]time.Duration{} // of the batches that run
	var running []step
	for {
		if i := next(left, running); i >= 0 {
			s := left[i]
			left, running, ends[s.batch] = without(left, i), append(running, s), now+s.expect()
			continue
		}
		if len(running) == 0 {
			return now
		}
		slices.SortStableFunc(running, func(x, y step) int { return cmp.Compare(ends[x.batch], ends[y.batch]) })
		now, running = ends[running[0].batch], running[1:]
	}
}

// play does the steps, and shows as what is left what rest makes of the time that the steps still
// take. The first error ends the playing, once the running steps have ended.
func (p *Progress) play(ctx context.Context, steps []step, rest func(time.Duration) time.Duration) (err error) {
	type ended struct {
		step
		*activity
		note string
		err  error
	}
	left, ends := slices.Clone(steps), make(chan ended)
	var running []step
	for {
		i := -1
		if err == nil && ctx.Err() == nil {
			i = next(left, running)
		}
		if i >= 0 {
			s := left[i]
			left = without(left, i)
			a := p.begin(s.label, s.expect(), rest(takes(left)))
			running = append(running, s)
			go func() {
				note, err := s.run(ctx)
				ends <- ended{s, a, note, err}
			}()
			continue
		}
		if len(running) == 0 {
			return err
		}
		e := <-ends
		running = slices.DeleteFunc(running, func(s step) bool { return s.batch == e.batch })
		if e.err == nil && ctx.Err() == nil {
			p.end(e.activity, e.note, rest(takes(left)))
		}
		p.drop(e.activity)
		err = errors.Join(err, e.err)
	}
}
