package experiment

import (
	"cmp"
	"math"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// judgeInLooks decides as the session did, look after look: at each one, those claims that
// were not decided yet, on the runs that there were by then. What was decided stays so,
// because only what is open is measured further. A claim pays for the looks at which it
// had enough repeats for a verdict: each halves the error that the next may make.
func (e *Experiment) judgeInLooks(runs []results.Run, of results.Results) []results.Claim {
	out, looks := make([]results.Claim, len(e.Claims)), make([]int, len(e.Claims))
	for _, n := range append(slices.Clone(of.Judged), math.MaxInt) {
		ev := ledger.NewEvidence(slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.Order >= n }), of.Seed)
		for i, c := range e.Claims {
			if out[i].ID != "" && out[i].Verdict != results.Inconclusive {
				continue
			}
			one := e.Family
			one.Claims, ev.Looks = []ledger.Claim{c}, looks[i]
			now := one.Judge(ev)[0]
			if all, most := repeatsOf(now); out[i].ID == "" || all > first(repeatsOf(out[i])) {
				if out[i] = now; most >= judge.MinRepeats {
					looks[i]++
				}
			}
		}
	}
	return out
}

// repeatsOf is how many repeats the claim's answers rest on, in all, and the most of one.
func repeatsOf(c results.Claim) (all, most int) {
	for _, a := range c.Answers {
		all, most = all+a.Repeats, max(most, a.Repeats)
	}
	return all, most
}

func first(a, _ int) int { return a }

// deciding is the plan without the groups on which no verdict rests: what stands beside for
// comparison, and what is only in tables.
func (e *Experiment) deciding(p Plan) Plan {
	var all []results.Run
	for _, k := range p.Keys() {
		all = append(all, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Params: map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0)}})
	}
	var keys []ledger.Key
	for _, c := range e.Claims {
		keys = append(keys, c.Keys(ledger.NewEvidence(all, 0))...)
	}
	p.Groups = slices.DeleteFunc(p.groups(), func(g Group) bool { return !batch{g}.has(keys) })
	p.Cells = nil
	return p
}

// want is a claim that is open, and the repeats that should settle it.
type want struct {
	part     int
	claim    string
	keys     []ledger.Key
	from, to int // repeats
	costs    time.Duration
}

func (w want) of(b batch, repeat int) bool {
	return w.from <= repeat && repeat < w.to && b.has(w.keys)
}

func (b batch) has(keys []ledger.Key) bool {
	return slices.ContainsFunc(b, func(g Group) bool {
		return slices.ContainsFunc(g.Keys, func(k ledger.Key) bool { return slices.Contains(keys, k) })
	})
}

// wants are the open claims of a judged session that more repeats would settle.
func (r *running) wants(part int) (out []want) {
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
