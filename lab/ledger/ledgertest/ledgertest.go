// Package ledgertest tests the claims of an experiment with figures that are made up.
package ledgertest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/judge"
)

// Check asks the family's claims, in the set-ups that these runs have, about figures that
// are made up: clearly inside each rule, clearly outside of it, at its edge, and with each
// figure missing. No two runs may be of one cell. Every answer that is wrong is an error of the test, so that a row whose
// verdict ignores its figures is found.
func Check(t testing.TB, f ledger.Family, runs []results.Run) {
	t.Helper()
	for _, complaint := range complaints(f, runs) {
		t.Error(complaint)
	}
}

func complaints(f ledger.Family, runs []results.Run) (out []string) {
	cells := map[ledger.Key]bool{}
	for i := range runs {
		k := ledger.KeyOf(&runs[i])
		if cells[k] {
			out = append(out, fmt.Sprintf("%s is planned twice", k))
		}
		cells[k] = true
	}
	for _, c := range f.Claims {
		if len(c.Parts) == 0 {
			out = append(out, c.ID+": no parts")
		}
		seen := map[string]bool{}
		for _, p := range c.Parts {
			name := c.ID + "/" + p.ID
			if seen[p.ID] {
				out = append(out, name+": two parts have this name")
			}
			seen[p.ID] = true
			decides := p.Beside
			for _, k := range p.Cases(ledger.NewEvidence(runs, 1)) {
				decides = decides || !k.Beside
				for _, wrong := range newPlanting(p, k).wrong() {
					out = append(out, fmt.Sprintf("%s (%s): %s", name, k.Setup, wrong))
				}
			}
			if !decides {
				out = append(out, name+": no set-up decides it")
			}
		}
	}
	return out
}

// planting is a part in one set-up, whose figures are read from the points that are
// planted. A point gives each figure a value.
type planting struct {
	part    ledger.Part
	figures []figure
	rng     *rand.Rand
}

type figure struct {
	ledger.Figure // the part's own, before it was replaced
	cell          ledger.Key
}

type point []float64

func newPlanting(part ledger.Part, of ledger.Case) *planting {
	p := &planting{part: part, rng: rand.New(rand.NewPCG(7, 7))}
	of.Open, of.Needs = "", ""
	of.Value = of.Value.With(func(k ledger.Key, f ledger.Figure) ledger.Figure {
		i := slices.IndexFunc(p.figures, func(have figure) bool { return have.cell == k && have.Name == f.Name })
		if i < 0 {
			i = len(p.figures)
			p.figures = append(p.figures, figure{f, k})
		}
		return ledger.Extra(strconv.Itoa(i), f.Name)
	})
	p.part.Cases = ledger.Only(of)
	return p
}

// ask is the part's answer to a session with one point a repeat.
func (p *planting) ask(session ...point) results.Answer {
	var runs []results.Run
	for repeat, at := range session {
		extra := map[string]float64{}
		for i, x := range at {
			extra[strconv.Itoa(i)] = x
		}
		for _, f := range p.figures {
			k := f.cell
			runs = append(runs, results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Repeat: repeat, Elapsed: 1, Extra: extra})
		}
	}
	alone := ledger.Family{Claims: []ledger.Claim{{Parts: []ledger.Part{p.part}}}}
	return alone.Judge(ledger.NewEvidence(runs, 1))[0].Answers[0]
}

// always is a session in which nothing changes.
func always(x point) []point { return slices.Repeat([]point{x}, judge.LeastFollow) }

func (p *planting) wrong() (out []string) {
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	for _, f := range p.figures {
		if f.Value == nil {
			continue // one of Extra
		}
		if got := f.Value(&results.Run{Elapsed: 1}); !math.IsNaN(got) {
			say("the %s of a run without figures is %v, not missing", f.Name, got)
		}
	}
	inside, okIn := p.find(true)
	outside, okOut := p.find(false)
	if !okIn || !okOut {
		say("no figures were found that are inside the rule (%v) and outside of it (%v)", okIn, okOut)
		return out
	}
	if got := p.ask(always(inside)...); got.Verdict != results.Holds {
		say("inside the rule it is %s: %s", got.Verdict, got.Why)
	}
	if got := p.ask(always(outside)...); got.Verdict != results.Fails {
		say("outside of the rule it is %s: %s", got.Verdict, got.Why)
	}
	mixed := p.ask(inside, outside, inside, outside, inside, outside, inside)
	// Best and Least choose over all repeats, so these may be on one side all the same.
	both := p.part.Rule.Contains(mixed.Low) != p.part.Rule.Contains(mixed.High)
	if both && (mixed.Verdict == results.Holds || mixed.Verdict == results.Fails && p.part.Kind != judge.Never) {
		say("with repeats on both sides of the rule it %s", mixed.Verdict)
	}
	if p.part.Kind == judge.Median {
		if got := p.ask(scattered(p.edge(inside, outside))...); got.Verdict != results.Inconclusive {
			say("at the edge of the rule it is %s: %s", got.Verdict, got.Why)
		}
	}
	for i, f := range p.figures {
		without := slices.Clone(inside)
		without[i] = math.NaN()
		if got := p.ask(always(without)...); got.Verdict != results.Inconclusive || !strings.Contains(got.Why, f.Name) {
			say("without the %s of %s it is %s: %s", f.Name, f.cell, got.Verdict, got.Why)
		}
	}
	return out
}

// scattered is a session whose repeats lie around x, by a percent.
func scattered(x point) []point {
	session := always(x)
	for repeat := range session {
		session[repeat] = slices.Clone(x)
		for i := range x {
			session[repeat][i] *= 1 + 0.01*float64(3*repeat%judge.LeastFollow-judge.LeastFollow/2)*float64(1-2*(i%2))
		}
	}
	return session
}

// find looks for figures on one side of the rule, clear of its edges.
func (p *planting) find(inside bool) (point, bool) {
	rule, bounded := p.part.Rule, p.part.Min < p.part.Max
	// A bound such as exactly 0, or none of what is never negative, is met by zeros only.
	x, zeros := make(point, len(p.figures)), make(point, len(p.figures))
	met := inside && rule.Contains(p.ask(zeros).Measured)
	if met && rule.Low == rule.Top {
		return zeros, true
	}
	for try := range 20_000 {
		spread := float64(1 + try%4)
		for i := range x {
			x[i] = math.Exp(p.rng.NormFloat64() * spread * 2)
			if try == 0 { // no difference at all
				x[i] = 1
			}
			if bounded && try%2 == 0 { // where the rule may leave little room
				x[i] = p.part.Min + p.rng.Float64()*(p.part.Max-p.part.Min)
			}
		}
		v := p.ask(x).Measured
		off := 3 * p.part.Spread
		if off == 0 {
			off = 0.05
		}
		if p.part.Unit == "x" {
			off *= v
		} else if p.part.Spread == 0 {
			off *= math.Abs(v)
		}
		if !math.IsNaN(v) && rule.Contains(v) == inside && rule.Contains(v-off) == inside && rule.Contains(v+off) == inside {
			return x, true
		}
	}
	return zeros, met
}

// edge is where the way from one point to the other crosses the rule.
func (p *planting) edge(inside, outside point) point {
	x := make(point, len(inside))
	low, high := 0.0, 1.0
	for range 60 {
		mid := (low + high) / 2
		for i := range x {
			x[i] = inside[i] + mid*(outside[i]-inside[i])
		}
		if p.part.Rule.Contains(p.ask(x).Measured) {
			low = mid
		} else {
			high = mid
		}
	}
	return x
}
