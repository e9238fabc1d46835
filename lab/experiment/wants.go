package experiment

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// lack is cells, and the number of repeats that each should have.
type lack struct {
	keys []ledger.Key
	to   int
}

// wants are the steps that each claim takes whose cells lack repeats. A repeat that failed is not made
// again. A claim that lacks more repeats than a session may have is none of them.
func (p *part) wants(lacks func(p *part, c ledger.Claim, ev *ledger.Evidence) []lack) (out [][]step) {
	ev := ledger.NewEvidence(p.runs, p.res.Seed)
	for _, c := range p.exp.Claims {
		all := lacks(p, c, ev)
		to := most(all)
		if to > results.MaxRepeats {
			continue
		}
		steps := p.measurements(to, func(b batch, repeat int) bool { return b.lacks(all, repeat) && repeat >= b.tried(ev) })
		if len(steps) > 0 {
			out = append(out, steps)
		}
	}
	return out
}

// most is the most repeats that any of the cells should have.
func most(all []lack) (to int) {
	for _, l := range all {
		to = max(to, l.to)
	}
	return to
}

// lacks reports whether a cell of the batch should have that repeat.
func (b batch) lacks(all []lack, repeat int) bool {
	return slices.ContainsFunc(all, func(l lack) bool { return repeat < l.to && b.has(l.keys) })
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
// more repeats would not help, or if the claim is decided. A claim that needs all of its answers
// cannot hold any more where one of them stays open whatever is measured. Such a claim can still fail:
// by an answer whose figure does not satisfy its rule.
func lacking(c results.Claim) (out []results.Answer) {
	var hopeless bool
	for _, a := range c.Answers {
		switch {
		case stuck(a) && c.MoreRuns == 0 && !c.Any:
			hopeless = true
		case !open(c, a), c.MoreRuns > 0 && a.Verdict == results.Inconclusive:
		case c.MoreRuns > 0:
			a.MoreRuns = c.MoreRuns
			out = append(out, a)
		case a.MoreRuns > 0:
			out = append(out, a)
		}
	}
	if hopeless {
		out = slices.DeleteFunc(out, func(a results.Answer) bool { return math.IsNaN(a.Measured) || a.Rule.Contains(a.Measured) })
	}
	return out
}

// stuck reports whether no repeats of this machine decide the answer.
func stuck(a results.Answer) bool {
	return !a.Beside && (a.Verdict == results.NeedsHardware || a.Verdict == results.Inconclusive && a.MoreRuns == 0)
}

// undecided reports whether more repeats may still decide the claim. One that needs hardware may fail
// without that.
func undecided(c results.Claim) bool {
	return c.Verdict == results.Inconclusive || c.Verdict == results.NeedsHardware
}

// open reports whether the answer leaves the claim open: the answer is inconclusive, or the answer
// alone would decide the claim and does not yet stand among so many.
func open(c results.Claim, a results.Answer) bool {
	alone := results.Fails
	if c.Any {
		alone = results.Holds
	}
	return undecided(c) && !a.Beside && (a.Verdict == results.Inconclusive || c.MoreRuns > 0 && a.Verdict == alone)
}

// worth chooses the claims for whose steps there is time, the cheapest first: most claims are
// settled that way. A step that two of them share is done once, and steps that leave room for others
// run beside those that were chosen before.
func worth(all [][]step, left time.Duration) (chosen []step) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b []step) int { return cmp.Compare(takes(a), takes(b)) })
	for _, steps := range all {
		steps = slices.DeleteFunc(slices.Clone(steps), func(s step) bool {
			return slices.ContainsFunc(chosen, func(c step) bool { return c.batch == s.batch && c.repeat == s.repeat })
		})
		with := slices.Concat(chosen, steps)
		if total(with) > left {
			break
		}
		chosen = with
	}
	return chosen
}
