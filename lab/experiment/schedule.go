package experiment

import (
	"cmp"
	"slices"
	"time"
)

// errand is a step as the schedule of several experiments sees it.
type errand struct {
	part   int // the experiment: the most important is the first
	stage  int
	repeat int
	uses   float64 // 1: it runs alone
	expect time.Duration
	do     *step
}

// agenda is what is left to do, in groups: a repeat of a stage. A group begins when nothing
// of the one before is left to begin. Within it, what leaves room for others runs beside
// them, then the rest, one by one.
type agenda [][]errand

func newAgenda(all []errand) (a agenda) {
	all = slices.Clone(all)
	order := func(x, y errand) int { return cmp.Or(cmp.Compare(x.stage, y.stage), cmp.Compare(x.repeat, y.repeat)) }
	slices.SortStableFunc(all, order)
	for i, e := range all {
		if i == 0 || order(all[i-1], e) != 0 {
			a = append(a, nil)
		}
		a[len(a)-1] = append(a[len(a)-1], e)
	}
	return a
}

// next takes out the errand to begin beside those that run. Without one, something has to
// end first, or nothing is left.
func (a *agenda) next(running []errand) (e errand, ok bool) {
	if len(*a) == 0 {
		return e, false
	}
	busy := 0.0
	for _, r := range running {
		busy += r.uses
	}
	first := (*a)[0]
	i := slices.IndexFunc(first, func(e errand) bool { return e.uses < 1 && busy+e.uses <= 1 })
	if i < 0 && len(running) == 0 {
		i = 0 // all that is left runs alone
	}
	if i < 0 {
		return e, false
	}
	e = first[i]
	if (*a)[0] = slices.Delete(slices.Clone(first), i, i+1); len(first) == 1 {
		*a = (*a)[1:]
	}
	return e, true
}

// takes is how long the agenda takes if everything takes as long as expected.
func (a agenda) takes() (now time.Duration) {
	a = slices.Clone(a)
	var running []errand // expect is when each ends
	for {
		e, ok := a.next(running)
		switch {
		case ok:
			e.expect += now
			running = append(running, e)
		case len(running) == 0:
			return now
		default:
			first := slices.MinFunc(running, func(x, y errand) int { return cmp.Compare(x.expect, y.expect) })
			now = first.expect
			running = slices.DeleteFunc(running, func(e errand) bool { return e.expect == now })
		}
	}
}

// affordable leaves out the parts for which there is not enough time and says what each
// of them would take. The first part that fits is taken first; what has begun always is.
func affordable(all []errand, begun func(part int) bool, left time.Duration) (kept []errand, out map[int]time.Duration) {
	out = map[int]time.Duration{}
	parts := map[int][]errand{}
	last := -1
	for _, e := range all {
		parts[e.part] = append(parts[e.part], e)
		last = max(last, e.part)
	}
	for part := range last + 1 {
		if begun(part) {
			kept = append(kept, parts[part]...)
		}
	}
	had := newAgenda(kept).takes()
	for part := range last + 1 {
		if begun(part) || len(parts[part]) == 0 {
			continue
		}
		with := append(slices.Clone(kept), parts[part]...)
		if has := newAgenda(with).takes(); has <= left {
			kept, had = with, has
		} else {
			out[part] = has - had
		}
	}
	return kept, out
}
