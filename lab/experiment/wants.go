package experiment

import (
	"cmp"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// want is a claim that is open, and the repeats that should settle it.
type want struct {
	part     int
	claim    string
	keys     []ledger.Key
	from, to int // repeats
	costs    time.Duration
}

func (w want) covers(b batch, repeat int) bool {
	return w.from <= repeat && repeat < w.to && b.has(w.keys)
}

// wants are the open claims of a judged session that more repeats would settle.
func (r *sessionState) wants(part int) (out []want) {
	ev := ledger.NewEvidence(r.runs, r.Seed)
	for i, c := range r.res.Claims {
		more := settles(c)
		if more == 0 {
			continue
		}
		w := want{part: part, claim: c.ID, keys: r.exp.Claims[i].Keys(ev), from: results.MaxRepeats}
		for _, k := range w.keys {
			if all := ev.Runs(k); len(all) > 0 {
				w.from = min(w.from, all[len(all)-1].Repeat+1)
			}
		}
		if w.to = w.from + more; w.to > results.MaxRepeats {
			continue
		}
		for _, b := range r.plan.batches() {
			if b.has(w.keys) {
				w.costs += time.Duration(more) * r.expected(b)
			}
		}
		out = append(out, w)
	}
	return out
}

// settles is how many more repeats should decide the claim; 0 if more would not help, or
// if it is decided.
func settles(c results.Claim) (more int) {
	if c.Verdict != results.Inconclusive {
		return 0
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
// settled that way.
func worth(all []want, left time.Duration) (out []want) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b want) int { return cmp.Compare(a.costs, b.costs) })
	for _, w := range all {
		if left -= w.costs; left < 0 {
			break
		}
		out = append(out, w)
	}
	return out
}
