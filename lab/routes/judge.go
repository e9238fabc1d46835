package routes

import (
	"fmt"
	"math"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim. Every figure is computed within a repeat, whose contestants
// took turns.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed}}
	out := e.scenarios()
	out = append(out, e.traffic()...)
	out = append(out, e.garbage()...)
	return append(out, e.own()...)
}

type cell = experiment.Key

// evidence is the runs of a session.
type evidence struct{ experiment.Evidence }

func extra(key string) experiment.Figure {
	return func(r results.Run) float64 { return r.Extra[key] }
}

// timeKey is the figure that a scenario is judged by, net of the harness or with it:
// time on the clock where the claim is about contention.
func timeKey(scenario, setup string) string {
	key := "cpu_ns"
	if scenario == Parallel {
		key = "wall_ns"
	}
	if setup == AsPublished {
		key += "_total"
	}
	return key
}

// asBuilt is the pair of builds of a set-up: as published they differ elsewhere.
func asBuilt(setup string) string {
	if setup == AsPublished {
		return PooledShort
	}
	return Pooled
}

// saved is what pooling saves in each repeat, in per cent of the fresh build.
func (e evidence) saved(setup, scenario, pooled string) judge.Input {
	return e.less(cell{Setup: setup, Load: scenario, Pattern: pooled}, cell{Setup: setup, Load: scenario, Pattern: Fresh})
}

// less is how much less a takes than b in each repeat, in per cent of b. Without a ratio
// there is none, which the judge refuses.
func (e evidence) less(a, b cell) judge.Input {
	in := e.Ratios(a, b, timeKey(a.Load, a.Setup))
	for _, p := range in.Pairs {
		if p.A <= 0 {
			p.A = math.NaN()
		}
		in.Values = append(in.Values, 100*(1-p.A))
	}
	in.Pairs = nil
	return in
}

// noise is the difference of the fresh build from its twin in per cent, over all
// repeats.
func (e evidence) noise(setup, scenario string) float64 {
	fresh := cell{Setup: setup, Load: scenario, Pattern: Fresh}
	twin := fresh
	twin.Twin = true
	sum, all := 0.0, e.less(twin, fresh).Values
	for _, v := range all {
		sum += v
	}
	return math.Abs(sum / float64(max(len(all), 1)))
}

// setups of the published claims, with their names.
var setups = []struct{ setup, words string }{
	{Net, "net of the harness"}, {AsPublished, "with the published harness and all that differed"},
}

func (e evidence) scenarios() (out []results.OldClaim) {
	for _, c := range []struct {
		claim    claims.Claim
		scenario string
		sign     float64
		words    string
	}{
		{claims.R1, JSON, 1, ""}, {claims.R2, Form, -1, ", with form tags"}, {claims.R2, Untagged, -1, ", answered 400"},
		{claims.R3, Large, 1, ""}, {claims.R4, Parallel, -1, ""}, {claims.R5, Get, 1, ""},
	} {
		for _, s := range setups {
			out = append(out, e.scenario(c.claim, s.setup, s.words+c.words, c.scenario, c.sign))
		}
	}
	return out
}

// scenario judges a claim about what pooling saves (sign 1) or costs (−1).
func (e evidence) scenario(claim claims.Claim, setup, words, scenario string, sign float64) results.OldClaim {
	in := e.saved(setup, scenario, asBuilt(setup))
	for i := range in.Values {
		in.Values[i] *= sign
	}
	c := claim.Judge(words, in)
	if in.Missing != "" {
		return c
	}
	c.NoiseFloor = e.noise(setup, scenario)
	c.Why += fmt.Sprintf(" Fresh takes %s, pooled %s; fresh differs from its own twin by %.1f %%.%s",
		e.time(setup, scenario, Fresh), e.time(setup, scenario, asBuilt(setup)), c.NoiseFloor, e.harness(setup, scenario))
	if c.Verdict == results.Holds && math.Abs(c.Measured) <= c.NoiseFloor {
		c.Verdict = results.Inconclusive
		c.Why += " That is as much as pooling seems to be worth: this machine was too busy to decide."
	}
	if procs := e.procs(); scenario == Parallel && procs < claims.ManyCores {
		c.Verdict, c.MoreRuns = results.NeedsHardware, 0
		c.Why += fmt.Sprintf(" The claim is about contention by %d cores, and GOMAXPROCS is %d here.", claims.ManyCores, procs)
	}
	return c
}

// time is the mean over the repeats, as text.
func (e evidence) time(setup, scenario, pattern string) string {
	return fmt.Sprintf("%.0f ns", e.mean(cell{Setup: setup, Load: scenario, Pattern: pattern}, extra(timeKey(scenario, setup))))
}

// harness says how much of it is the harness.
func (e evidence) harness(setup, scenario string) string {
	if setup != AsPublished {
		return ""
	}
	fresh, nothing := cell{Setup: setup, Load: scenario, Pattern: Fresh}, cell{Setup: setup, Load: scenario, Pattern: Nothing}
	if e.Missing(nothing) != "" {
		return ""
	}
	return fmt.Sprintf(" Of the fresh build's, %.0f %% and %.0f of %.0f allocations are the harness.",
		e.mean(fresh, extra(timeKey(scenario, Net)+"_harness_share")), e.mean(nothing, extra("allocs_total")), e.mean(fresh, extra("allocs_total")))
}

func (e evidence) mean(k cell, figure experiment.Figure) float64 {
	runs := e.InOrder(k)
	sum := 0.0
	for _, r := range runs {
		sum += figure(r)
	}
	return sum / float64(max(len(runs), 1))
}

// procs is GOMAXPROCS of the runs.
func (e evidence) procs() int {
	for _, r := range e.Runs {
		if n := experiment.Number(r.Params["gomaxprocs"]); n > 0 {
			return int(n)
		}
	}
	return 0
}

// traffic judges the mixture in both ways of averaging.
func (e evidence) traffic() []results.OldClaim {
	var out []results.OldClaim
	for _, s := range setups {
		times, ratios := e.mixture(s.setup)
		out = append(out, claims.R6.Judge(s.words+", ratio of the mean times", times), claims.R6.Judge(s.words+", mean of the ratios", ratios))
	}
	return out
}

func (e evidence) mixture(setup string) (times, ratios judge.Input) {
	times, ratios = judge.Input{Seed: e.Seed}, judge.Input{Seed: e.Seed}
	fresh, pooled, ratio, parts := map[int]float64{}, map[int]float64{}, map[int]float64{}, map[int]int{}
	for _, scenario := range Scenarios {
		a, b := cell{Setup: setup, Load: scenario, Pattern: Fresh}, cell{Setup: setup, Load: scenario, Pattern: asBuilt(setup)}
		if m := e.Missing(a, b); m != "" {
			times.Missing, ratios.Missing = m, m
			return times, ratios
		}
		figure, other, w := extra(timeKey(scenario, setup)), e.Of(b), weights[scenario]/100
		for n, r := range e.Of(a) {
			if o, ok := other[n]; ok {
				fresh[n] += w * figure(r)
				pooled[n] += w * figure(o)
				ratio[n] += w * figure(r) / figure(o)
				parts[n]++
			}
		}
	}
	for _, r := range e.InOrder(cell{Setup: setup, Load: JSON, Pattern: Fresh}) {
		if n := r.Repeat; parts[n] == len(Scenarios) {
			times.Values = append(times.Values, fresh[n]/pooled[n])
			ratios.Values = append(ratios.Values, ratio[n])
		}
	}
	return times, ratios
}

// garbage judges allocations and pauses, and the claim about both.
func (e evidence) garbage() []results.OldClaim {
	var parts []results.OldClaim
	for _, scenario := range Scenarios {
		fresh, pooled := cell{Setup: Net, Load: scenario, Pattern: Fresh}, cell{Setup: Net, Load: scenario, Pattern: Pooled}
		c := claims.R7Allocs.Judge(scenario, e.Pairs(fresh, pooled, whole))
		if e.Missing(fresh, pooled) == "" {
			c.Why += fmt.Sprintf(" Not rounded: %.2f pooled, %.2f fresh.", e.mean(pooled, extra("allocs")), e.mean(fresh, extra("allocs")))
		}
		parts = append(parts, c)
	}
	for _, scenario := range []string{JSON, Large} {
		fresh, pooled := cell{Setup: Net, Load: scenario, Pattern: Fresh}, cell{Setup: Net, Load: scenario, Pattern: Pooled}
		twin := fresh
		twin.Twin = true
		in := e.Pairs(pooled, fresh, extra("pause_p99_us"))
		in.AA = e.Pairs(twin, fresh, extra("pause_p99_us")).Pairs
		c := claims.R7Pause.Judge(scenario, in)
		if in.Missing == "" {
			c.Why += fmt.Sprintf(" %.0f µs pooled, %.0f fresh, of %.0f and %.0f pauses in each repeat.",
				e.mean(pooled, extra("pause_p99_us")), e.mean(fresh, extra("pause_p99_us")), e.mean(pooled, extra("pauses")), e.mean(fresh, extra("pauses")))
		}
		parts = append(parts, c)
	}
	return append([]results.OldClaim{claims.R7(parts...)}, parts...)
}
