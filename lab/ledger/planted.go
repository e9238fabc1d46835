package ledger

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/results"
)

// Planted asks the family's claims about figures that are made up, over the cells of
// the runs given: clearly inside each rule, clearly outside of it, at its edge, and with
// each figure missing. It returns a complaint for every answer that is wrong, so that a
// row whose verdict ignores its figures is found by a test.
func (f *Family) Planted(runs []results.Run) (complaints []string) {
	for _, c := range f.Claims {
		if len(c.Parts) == 0 {
			complaints = append(complaints, c.ID+": no parts")
		}
		for _, p := range c.Parts {
			e := NewEvidence(runs, 1)
			deciding := 0
			for _, k := range p.Cases(e) {
				if !k.Beside {
					deciding++
				}
				k.Open, k.Needs = "", ""
				pl := &planting{part: p, of: k, name: strings.TrimSuffix(fmt.Sprintf("%s/%s (%s)", c.ID, p.ID, k.Setup), "/"), evidence: e}
				complaints = append(complaints, pl.all()...)
			}
			if deciding == 0 {
				complaints = append(complaints, fmt.Sprintf("%s/%s: no set-up decides it", c.ID, p.ID))
			}
		}
	}
	return complaints
}

// planting is one part in one set-up. A point gives each figure a value.
type planting struct {
	part     Part
	of       Case
	name     string
	evidence *Evidence
	leaves   []Term
	rng      *rand.Rand
}

type point []float64

func (p *planting) all() (complaints []string) {
	say := func(format string, args ...any) {
		complaints = append(complaints, p.name+": "+fmt.Sprintf(format, args...))
	}
	p.leaves = p.of.Value.leaves(nil)
	p.rng = rand.New(rand.NewPCG(7, 7))
	p.evidence.repeats = judge.MinRepeats
	for _, l := range p.leaves {
		for repeat := range judge.MinRepeats {
			p.run(l.key, repeat)
		}
		if got := l.figure.of(&results.Run{Elapsed: 1}); !math.IsNaN(Median(got)) {
			say("the %s of a run without figures is %v, not missing", l.figure.Name, got)
		}
	}
	inside, okIn := p.find(true)
	outside, okOut := p.find(false)
	if !okIn || !okOut {
		say("no figures were found that are inside the rule (%v) and outside of it (%v)", okIn, okOut)
		return complaints
	}
	if got := p.verdict(p.every(inside)); got.Verdict != results.Holds {
		say("inside the rule it is %s: %s", got.Verdict, got.Why)
	}
	if got := p.verdict(p.every(outside)); got.Verdict != results.Fails {
		say("outside of the rule it is %s: %s", got.Verdict, got.Why)
	}
	mixed := func(repeat int) point {
		if repeat%2 == 0 {
			return inside
		}
		return outside
	}
	got := p.verdict(mixed).Verdict
	values := p.evidence.perRepeat(p.of.Value, false)
	// Best and Least choose over all repeats, so these may be on one side all the same.
	both := slices.ContainsFunc(values, p.part.Rule.Contains) && slices.ContainsFunc(values, func(v float64) bool { return !p.part.Rule.Contains(v) })
	if both && (got == results.Holds || got == results.Fails && p.part.Kind != judge.Never) {
		say("with repeats on both sides of the rule it %s", got)
	}
	if p.part.Kind == judge.Median {
		edge := p.edge(inside, outside)
		if got := p.verdict(p.noisy(edge)); got.Verdict != results.Inconclusive {
			say("at the edge of the rule it is %s: %s", got.Verdict, got.Why)
		}
	}
	for i, l := range p.leaves {
		without := append(point(nil), inside...)
		without[i] = math.NaN()
		got := p.verdict(p.every(without))
		if got.Verdict != results.Inconclusive || !strings.Contains(got.Why, l.figure.Name) {
			say("without the %s of %s it is %s: %s", l.figure.Name, l.key, got.Verdict, got.Why)
		}
	}
	return complaints
}

// run makes sure that a cell counts as run.
func (p *planting) run(k Key, repeat int) {
	if p.evidence.runs[k] == nil {
		p.evidence.runs[k] = map[int]*results.Run{}
	}
	if p.evidence.runs[k][repeat] == nil {
		p.evidence.runs[k][repeat] = &results.Run{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Repeat: repeat, Elapsed: 1}
	}
}

func (p *planting) every(x point) func(int) point { return func(int) point { return x } }

// noisy scatters the repeats by a percent around x.
func (p *planting) noisy(x point) func(int) point {
	return func(repeat int) point {
		out := append(point(nil), x...)
		for i := range out {
			out[i] *= 1 + 0.01*float64(repeat-judge.MinRepeats/2)*float64(1-2*(i%2))
		}
		return out
	}
}

func (p *planting) plant(at func(repeat int) point) {
	p.evidence.plant = func(k Key, f Figure, repeat int) []float64 {
		for i, l := range p.leaves {
			if l.key.Setup == k.Setup && l.key.Load == k.Load && l.key.Pattern == k.Pattern && l.figure.Name == f.Name {
				return []float64{at(repeat)[i]}
			}
		}
		return []float64{math.NaN()}
	}
}

func (p *planting) verdict(at func(int) point) results.Answer {
	p.plant(at)
	return p.part.judge(p.evidence, p.of)
}

func (p *planting) value(x point) float64 {
	p.plant(p.every(x))
	return Median(p.evidence.perRepeat(p.of.Value, false))
}

// find looks for figures on one side of the rule, clear of its edges.
func (p *planting) find(inside bool) (point, bool) {
	rule := p.part.Rule
	bounded := p.part.Min < p.part.Max
	for try := range 20_000 {
		x := make(point, len(p.leaves))
		spread := float64(1 + try%4)
		for i := range x {
			x[i] = math.Exp(p.rng.NormFloat64() * spread * 2)
			if bounded && try%2 == 0 { // where the rule may leave little room
				x[i] = p.part.Min + p.rng.Float64()*(p.part.Max-p.part.Min)
			}
		}
		v := p.value(x)
		off := 3 * p.part.Spread
		if off == 0 {
			off = 0.05
		}
		if p.part.Unit == "x" {
			off *= v
		} else if p.part.Spread == 0 {
			off *= math.Abs(v)
		}
		possible := !bounded || v >= p.part.Min && v <= p.part.Max
		if possible && !math.IsNaN(v) && rule.Contains(v) == inside && rule.Contains(v-off) == inside && rule.Contains(v+off) == inside {
			return x, true
		}
	}
	// A rule of one value, such as exactly 0, is met by zeros only.
	x := make(point, len(p.leaves))
	return x, inside && rule.Contains(p.value(x))
}

// edge is where the way from one point to the other crosses the rule.
func (p *planting) edge(inside, outside point) point {
	low, high := 0.0, 1.0
	at := func(s float64) point {
		x := make(point, len(inside))
		for i := range x {
			x[i] = inside[i] + s*(outside[i]-inside[i])
		}
		return x
	}
	for range 60 {
		if mid := (low + high) / 2; p.part.Rule.Contains(p.value(at(mid))) {
			low = mid
		} else {
			high = mid
		}
	}
	return at(high)
}
