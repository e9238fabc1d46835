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

// lack is cells, and the number of repeats that each should have.
type lack struct {
	keys []ledger.Key
	to   int
}

// wants are the claims whose cells lack repeats, with their steps. A repeat that failed is not made
// again. A claim that lacks more repeats than a session may have is none of them.
func (r *sessionState) wants(part int, lacks func(c ledger.Claim, ev *ledger.Evidence) []lack) (out []want) {
	ev := ledger.NewEvidence(r.runs, r.Seed)
	for _, c := range r.exp.Claims {
		all, to := lacks(c, ev), 0
		for _, l := range all {
			to = max(to, l.to)
		}
		if to > results.MaxRepeats {
			continue
		}
		w := want{part, c.ID, r.measurements(to, func(b batch, repeat int) bool {
			return slices.ContainsFunc(all, func(l lack) bool { return repeat < l.to && b.has(l.keys) }) && repeat >= b.tried(ev)
		})}
		if len(w.steps) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// tried is the number of repeats of the batch, failed ones too.
func (b batch) tried(ev *ledger.Evidence) (most int) {
	for _, g := range b {
		for _, k := range g.Keys {
			most = max(most, tried(ev, k))
		}
	}
	return most
}

// tried is the least number of repeats of those cells that were run at all, failed ones too.
func tried(ev *ledger.Evidence, keys ...ledger.Key) (least int) {
	for _, k := range keys {
		if all := ev.Runs(k); len(all) > 0 {
			if n := all[len(all)-1].Repeat + 1; least == 0 || n < least {
				least = n
			}
		}
	}
	return least
}

// lacking are the answers that need more repeats to decide the claim, with the number of them; none if
// more repeats would not help, or if the claim is decided.
func lacking(c results.Claim) (out []results.Answer) {
	for _, a := range c.Answers {
		switch {
		case !open(c, a), c.MoreRuns > 0 && a.Verdict == results.Inconclusive:
		case c.MoreRuns > 0:
			a.MoreRuns = c.MoreRuns
			out = append(out, a)
		case a.MoreRuns > 0:
			out = append(out, a)
		case !c.Any:
			return nil
		}
	}
	return out
}

// open reports whether the answer leaves the claim open: the answer is inconclusive, or the answer
// alone would decide the claim and does not yet stand among so many.
func open(c results.Claim, a results.Answer) bool {
	alone := results.Fails
	if c.Any {
		alone = results.Holds
	}
	return c.Verdict == results.Inconclusive && !a.Beside && (a.Verdict == results.Inconclusive || c.MoreRuns > 0 && a.Verdict == alone)
}

// worth chooses the wants for which there is time, the cheapest first: most claims are
// settled that way. A step that two of them share is done once.
func worth(all []want, left time.Duration) (chosen []want) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b want) int { return cmp.Compare(takes(a.steps), takes(b.steps)) })
	type once struct {
		batch  string
		repeat int
	}
	done := map[once]bool{}
	for _, w := range all {
		w.steps = slices.DeleteFunc(slices.Clone(w.steps), func(s step) bool { return done[once{s.batch, s.repeat}] })
		if left -= takes(w.steps); left < 0 {
			break
		}
		for _, s := range w.steps {
			done[once{s.batch, s.repeat}] = true
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
