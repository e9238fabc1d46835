package experiment

import (
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Legacy declares an experiment whose claims are not rows yet.
func Legacy[C any](id, title, help string, plan func(C) (Plan, error), roles map[string]contestant.Role,
	judge func(runs []results.Run, seed uint64) []results.OldClaim,
) *Experiment {
	e := Declare(ledger.Family{ID: id, Title: title}, help, plan, roles)
	e.legacy = func(runs []results.Run, seed uint64) []results.Claim { return grouped(judge(runs, seed)) }
	return e
}

// grouped makes claims of old ones, whose parts are claims.
func grouped(old []results.OldClaim) (out []results.Claim) {
	for _, o := range old {
		id, part, _ := strings.Cut(o.ID, "/")
		i := slices.IndexFunc(out, func(c results.Claim) bool { return c.ID == id })
		if i < 0 {
			i = len(out)
			out = append(out, results.Claim{ID: id, Title: o.Title, Published: o.Published, Source: o.Source, Why: o.Why})
		}
		out[i].Answers = append(out[i].Answers, results.Answer{
			Part: part, Title: o.Title, Setup: o.Setup, Verdict: o.Verdict, Measured: o.Measured, Low: o.Low, High: o.High, Unit: o.Unit,
			RuleText: o.Rule, Why: o.Why, Repeats: o.Runs, Floor: o.NoiseFloor, MoreRuns: o.MoreRuns,
		})
	}
	for i, c := range out {
		var verdicts []results.Verdict
		for _, a := range c.Answers {
			verdicts = append(verdicts, a.Verdict)
		}
		out[i].Verdict = oldjudge.All(verdicts...)
	}
	return out
}

// Label is a readable name of a cell.
func (c Cell) Label() string { return c.Key().String() }
