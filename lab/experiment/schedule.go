package experiment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// next is the index of the step to begin while the running steps use so much of the processors;
// -1: a step has to end first. Steps of a later repeat do not overtake. Within a repeat, steps that leave
// room for others run beside each other, and then every other step alone.
func next(left []step, busy float64) int {
	if len(left) == 0 {
		return -1
	}
	i := slices.IndexFunc(left, func(s step) bool { return s.repeat == left[0].repeat && s.uses < 1 && busy+s.uses <= 1+1e-9 })
	if i < 0 && busy == 0 {
		return 0
	}
	return i
}

// takes is how long the steps take if each takes as long as expected.
func takes(steps []step) (now time.Duration) {
	type running struct {
		uses float64
		ends time.Duration
	}
	left, busy := slices.Clone(steps), 0.0
	var all []running
	for {
		if i := next(left, busy); i >= 0 {
			all = append(all, running{left[i].uses, now + left[i].expect()})
			busy += left[i].uses
			left = slices.Delete(left, i, i+1)
			continue
		}
		if len(all) == 0 {
			return now
		}
		slices.SortFunc(all, func(x, y running) int { return cmp.Compare(x.ends, y.ends) })
		now, all = all[0].ends, all[1:]
		busy = 0
		for _, r := range all {
			busy += r.uses
		}
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
	left, busy, running, ends := slices.Clone(steps), 0.0, 0, make(chan ended)
	for {
		i := -1
		if err == nil && ctx.Err() == nil {
			i = next(left, busy)
		}
		if i >= 0 {
			s := left[i]
			left = slices.Delete(left, i, i+1)
			a := p.begin(s.label, s.expect(), rest(takes(left)))
			running, busy = running+1, busy+s.uses
			go func() {
				note, err := s.run(ctx)
				ends <- ended{s, a, note, err}
			}()
			continue
		}
		if running == 0 {
			return err
		}
		e := <-ends
		if running, busy = running-1, busy-e.uses; running == 0 {
			busy = 0 // whatever was rounded
		}
		if e.err == nil && ctx.Err() == nil {
			p.end(e.activity, e.note, rest(takes(left)))
		}
		p.drop(e.activity)
		err = errors.Join(err, e.err)
	}
}
