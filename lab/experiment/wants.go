package experiment

import (
	"cmp"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// want is a claim, and the steps that more repeats of its cells take.
type want struct {
	part  int
	claim string
	steps []step
}

// wants are the claims for which more says how many repeats they lack, with their steps.
func (r *sessionState) wants(part int, more func(c ledger.Claim, repeats int) int) (out []want) {
	ev := ledger.NewEvidence(r.runs, r.Seed)
	for _, c := range r.exp.Claims {
		keys, from := c.Keys(ev), results.MaxRepeats
		for _, k := range keys {
			if all := ev.Runs(k); len(all) > 0 {
				from = min(from, all[len(all)-1].Repeat+1)
			}
		}
		to := from + more(c, from)
		if to <= from || to > results.MaxRepeats {
			continue
		}
		w := want{part, c.ID, r.measurements(to, func(b batch, repeat int) bool { return from <= repeat && b.has(keys) })}
		if len(w.steps) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// settles is how many more repeats should decide the claim; 0 if more would not help, or
// if it is decided.
func settles(c results.Claim) (more int) {
	if c.Verdict != results.Inconclusive {
		return 0
	}
	if c.MoreRuns > 0 {
		return c.MoreRuns
	}
	for _, a := range c.Answers {
		if a.Beside || a.Verdict != results.Inconclusive {
			continue
		}
		if a.MoreRuns == 0 {
			return 0
		}
		more = max(more, a.MoreRuns)
	}
	return more
}

// worth chooses the wants for which there is time, the cheapest first: most claims are
// settled that way. A step that two of them share is done once.
func worth(all []want, left time.Duration) (chosen []want) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b want) int { return cmp.Compare(takes(a.steps), takes(b.steps)) })
	done := map[string]bool{}
	for _, w := range all {
		w.steps = slices.DeleteFunc(slices.Clone(w.steps), func(s step) bool { return done[s.id] })
		if left -= takes(w.steps); left < 0 {
			break
		}
		for _, s := range w.steps {
			done[s.id] = true
		}
		chosen = append(chosen, w)
	}
	return chosen
}

// stepsOf are the steps of the wants of one part, in the order of their repeats.
func stepsOf(chosen []want, part int) (out []step) {
	for _, w := range chosen {
		if w.part == part {
			out = append(out, w.steps...)
		}
	}
	slices.SortStableFunc(out, func(a, b step) int { return cmp.Compare(a.repeat, b.repeat) })
	return out
}
