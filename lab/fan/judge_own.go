package fan

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// rivals are the contestants from which the grid's best is chosen.
var rivals = []string{Sequential, Corrected, ErrGroup, Conc}

// gridCell is one cell of the grid: ours over the better of the rivals.
type gridCell struct {
	at     cell
	better string
	ratios map[int]float64 // by repeat
	twins  map[int]float64 // by repeat: ours over its twin
}

func (g gridCell) mean() float64 { return geometric(g.ratios) }

func geometric(by map[int]float64) float64 {
	sum := 0.0
	for _, x := range by {
		sum += math.Log(x)
	}
	return math.Exp(sum / float64(max(len(by), 1)))
}

// better judges the grid kind by kind. The better of the rivals in a cell is the
// one with the shortest mean time, so that the noise of each repeat
// does not change the choice.
func (e evidence) better() (out []results.OldClaim) {
	kinds := map[string][]gridCell{}
	var inOrder []string
	for _, g := range e.grids() {
		if !slices.Contains(inOrder, g.Pattern) {
			inOrder = append(inOrder, g.Pattern)
		}
		loads, _ := e.loads(g.Setup)
		for _, load := range loads {
			if c, ok := e.gridCell(g.Setup, load); ok {
				kinds[g.Pattern] = append(kinds[g.Pattern], c)
			}
		}
	}
	for _, kind := range inOrder {
		cells := kinds[kind]
		setup := fmt.Sprintf("%s, %d cells", kind, len(cells))
		if len(cells) == 0 {
			missing := judge.Input{Seed: e.Seed, Missing: "Ours and what it is compared with were not both run."}
			out = append(out, claims.FanoutMean.Judge(setup, missing), claims.FanoutWorst.Judge(setup, missing))
			continue
		}
		repeats, twins := map[int][]float64{}, map[int]float64{}
		noise := 0.0
		worst := cells[0]
		for i, c := range cells {
			for n, x := range c.ratios {
				repeats[n] = append(repeats[n], math.Log(x))
			}
			twins[i] = geometric(c.twins)
			noise = max(noise, math.Abs(twins[i]-1))
			if c.mean() > worst.mean() {
				worst = c
			}
		}
		means := map[int]float64{}
		for n, logs := range repeats {
			if len(logs) == len(cells) {
				sum := 0.0
				for _, x := range logs {
					sum += x
				}
				means[n] = math.Exp(sum / float64(len(logs)))
			}
		}
		over := 0
		for _, c := range cells {
			if c.mean() > 1.05 {
				over++
			}
		}
		mean := claims.FanoutMean.Judge(setup, e.input(means, 1, ""))
		mean.Why += fmt.Sprintf(" In %d of %d cells it is above 1.05.", over, len(cells))
		out = append(out, beyond(mean, math.Abs(geometric(twins)-1)))
		w := claims.FanoutWorst.Judge(setup, e.input(worst.ratios, 1, ""))
		w.Why += fmt.Sprintf(" It is %s, %s, where %s is the better.", strings.TrimPrefix(worst.at.Setup, gridPrefix), worst.at.Load, worst.better)
		out = append(out, beyond(w, noise))
	}
	return out
}

// beyond withdraws the verdict that a ratio is too large if Spillway and its twin
// differ by as much: of many cells one is always the worst, by noise alone.
func beyond(c results.OldClaim, noise float64) results.OldClaim {
	c.NoiseFloor = noise
	if c.Verdict == results.Fails && c.Measured-1 <= noise {
		c.Verdict = results.Inconclusive
		c.Why += fmt.Sprintf(" But Spillway differs from its own twin by %.0f %%: this machine was too busy to decide.", 100*noise)
	}
	return c
}

func (e evidence) gridCell(setup, load string) (gridCell, bool) {
	at := func(pattern string) cell { return cell{Setup: setup, Load: load, Pattern: pattern} }
	g := gridCell{at: at(Spillway)}
	for _, name := range rivals {
		if len(e.Of(at(name))) > 0 && (g.better == "" || e.mean(at(name), "ns") < e.mean(at(g.better), "ns")) {
			g.better = name
		}
	}
	if g.better == "" {
		return g, false
	}
	g.ratios = e.over(g.at, at(g.better), every, ratio)
	twin := g.at
	twin.Twin = true
	g.twins = e.over(g.at, twin, every, ratio)
	return g, len(g.ratios) > 0
}

func (e evidence) changes() []results.OldClaim {
	for _, r := range e.Runs {
		if r.Setup == changeSetup {
			c := cell{Setup: r.Setup, Load: r.Load, Pattern: r.Pattern}
			return []results.OldClaim{
				claims.FanoutToParallel.Judge(r.Load, e.Values(c, extra("to_parallel"))),
				claims.FanoutToSequential.Judge(r.Load, e.Values(c, extra("to_sequential"))),
			}
		}
	}
	return nil
}

func (e evidence) allocs() (out []results.OldClaim) {
	for _, load := range []string{"n = 2", "n = 8"} {
		for _, name := range []string{Spillway, InParallel, Borrowed} {
			us, them := cell{Setup: allocSetup, Load: load, Pattern: name}, cell{Setup: allocSetup, Load: load, Pattern: Sequential}
			if len(e.Of(us)) == 0 {
				continue
			}
			more := judge.Input{Seed: e.Seed, Missing: e.Missing(us, them)}
			for _, p := range e.Pairs(us, them, extra("allocs")).Pairs {
				more.Values = append(more.Values, p.A-p.B)
			}
			setup := name + ", " + load
			bytes := claims.FanoutBytes.Judge(setup, e.Pairs(us, them, extra("bytes")))
			bytes.Why += fmt.Sprintf(" %.0f bytes, sequential %.0f.", e.mean(us, "bytes"), e.mean(them, "bytes"))
			out = append(out, claims.FanoutAllocs.Judge(setup, more), bytes)
		}
	}
	return out
}

func (e evidence) nested() []results.OldClaim {
	for _, r := range e.Runs {
		if r.Setup != nestSetup {
			continue
		}
		us, unbounded := cell{Setup: r.Setup, Load: r.Load, Pattern: Spillway}, cell{Setup: r.Setup, Load: r.Load, Pattern: Corrected}
		goroutines := claims.FanoutGoroutines.Judge(r.Load, e.Values(us, extra("goroutines")))
		nested := claims.FanoutNested.Judge(r.Load, e.input(e.over(us, unbounded, every, ratio), 1, e.Missing(us, unbounded)))
		if e.Missing(unbounded) == "" {
			goroutines.Why += fmt.Sprintf(" A WaitGroup at every level needs %.0f.", e.mean(unbounded, "goroutines"))
		}
		return []results.OldClaim{goroutines, nested}
	}
	return nil
}

func (e evidence) hedging() []results.OldClaim {
	for _, r := range e.Runs {
		if r.Setup != hedgeSetup {
			continue
		}
		with, without := cell{Setup: r.Setup, Load: r.Load, Pattern: Hedged}, cell{Setup: r.Setup, Load: r.Load, Pattern: NotHedged}
		p99 := claims.FanoutHedgedP99.Judge(Virtual, e.Pairs(without, with, extra("p99")))
		if e.Missing(with, without) == "" {
			p99.Why += fmt.Sprintf(" P99 is %s, not hedged %s.", nanos(e.mean(with, "p99")), nanos(e.mean(without, "p99")))
		}
		return []results.OldClaim{
			p99,
			claims.FanoutHedgedLoad.Judge(Virtual, e.Values(with, extra("extra"))),
			claims.FanoutHedgedOutage.Judge(Virtual, e.Values(with, extra("outage"))),
			claims.FanoutHedgedOriginals.Judge(Virtual, e.Values(with, extra("cancelled"))),
		}
	}
	return nil
}
