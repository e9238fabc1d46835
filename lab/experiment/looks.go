package experiment

import (
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim from the raw runs of a session, a partial one too. What a session
// of several experiments left out of the goals is not judged.
func (e *Experiment) Judge(runs []results.Run, of results.Results) []results.Claim {
	ev := ledger.NewEvidence(runs, of.Seed)
	ev.Looks = of.Looks
	if len(of.Judged) == 0 && !of.Part {
		return e.Family.Judge(ev)
	}
	one := *e
	if of.Part {
		one.Claims = slices.DeleteFunc(slices.Clone(e.Claims), func(c ledger.Claim) bool { return c.Goal && len(c.Keys(ev)) == 0 })
	}
	return one.judgeInLooks(runs, of)
}

// judgeInLooks decides as the session did, look after look: at each one, those claims that
// were not decided yet, on the runs that there were by then. What was decided stays so,
// because only what is open is measured further. A claim is judged anew where an answer that left
// the claim open has more repeats, and pays for the looks at which there were enough of them for a
// verdict: each halves the error that the next may make.
func (e *Experiment) judgeInLooks(runs []results.Run, of results.Results) []results.Claim {
	out := make([]results.Claim, len(e.Claims))
	for _, n := range append(slices.Clone(of.Judged), math.MaxInt) {
		ev := ledger.NewEvidence(slices.DeleteFunc(slices.Clone(runs), func(r results.Run) bool { return r.Order >= n }), of.Seed)
		for i, c := range e.Claims {
			before := out[i]
			if before.ID != "" && !undecided(before) {
				continue
			}
			one := e.Family
			one.Claims, ev.Looks = []ledger.Claim{c}, before.Looks
			now := one.Judge(ev)[0]
			if now.Looks = before.Looks; enough(now) {
				now.Looks++
			}
			if before.ID == "" || grew(before, now) {
				out[i] = now
			}
		}
	}
	return out
}

// grew reports whether an answer that left the claim open rests on more repeats now.
func grew(before, now results.Claim) bool {
	return slices.ContainsFunc(now.Answers, func(a results.Answer) bool {
		i := slices.IndexFunc(before.Answers, func(b results.Answer) bool { return b.Part == a.Part && b.Setup == a.Setup })
		return !a.Beside && (i < 0 || a.Repeats > before.Answers[i].Repeats && open(before, before.Answers[i]))
	})
}

// enough reports whether an answer that decides the claim has enough repeats for a verdict.
func enough(c results.Claim) bool {
	return slices.ContainsFunc(c.Answers, func(a results.Answer) bool { return !a.Beside && !a.Few })
}

// looked reports whether the session was judged with enough repeats for a verdict: only
// then could it have been ended because of what was seen.
func (p *part) looked() bool {
	return slices.ContainsFunc(p.res.Claims, func(c results.Claim) bool {
		return slices.ContainsFunc(c.Answers, func(a results.Answer) bool { return !a.Few })
	})
}

// untried reports whether anything is left that was not tried yet. To make a failed
// measurement again is no second chance: it had no result.
func (p *part) untried() bool {
	tried := map[ledger.Key]int{}
	for _, run := range results.Latest(p.runs) {
		tried[ledger.KeyOf(&run)]++
	}
	return slices.ContainsFunc(p.plan.Keys(), func(k ledger.Key) bool { return tried[k] < p.res.Repeats })
}

// countLook counts that the session was judged and is extended.
func (p *part) countLook() {
	if p.res.Looks++; p.res.Part {
		p.res.Judged = append(p.res.Judged, p.order)
	} else {
		p.res.Judged = nil
	}
	p.res.Claims, p.res.Ended = nil, time.Time{} // so that this look is counted once
}
