package burst

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides the published claims for every bounded contestant that was run,
// and our own promises.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed, WithKilled: true}}
	var bounded []string
	for _, name := range Names() {
		if name != Naive && slices.ContainsFunc(runs, func(r results.Run) bool { return r.Pattern == name }) {
			bounded = append(bounded, name)
		}
	}
	if len(bounded) == 0 {
		bounded = []string{Published} // the verdict then says that it was not run
	}
	var out []results.OldClaim
	for _, of := range []func(evidence, string) []results.OldClaim{memory, jobs, latency, goroutines, refusals, work} {
		for _, name := range bounded {
			out = append(out, of(e, name)...)
		}
	}
	out = append(out, claims.B6Naive.Judge(Naive, e.Values(at(Naive), percent("work_share"))))
	return append(out, goals(e)...)
}

// evidence is the runs of a session. Killed ones count with what they did until then.
type evidence struct{ experiment.Evidence }

// at is the cell of a contestant.
func at(name string) experiment.Key {
	return experiment.Key{Setup: setup, Load: load, Pattern: name}
}

// The figures of a run.
func rss(r results.Run) float64      { return float64(r.Process.PeakRSS) }
func finished(r results.Run) float64 { return max(1, float64(r.Of("ok").Count)) }
func mean(r results.Run) float64     { return r.Of("ok").Latency.Mean() }
func rate(r results.Run) float64     { return r.Rate("ok") }

func percent(of string) func(results.Run) float64 {
	return func(r results.Run) float64 { return 100 * r.Extra[of] }
}

func memory(e evidence, name string) []results.OldClaim {
	killed := judge.Input{Seed: e.Seed, Missing: e.Missing(at(Naive), at(name))}
	naive, pool := e.Of(at(Naive)), e.Of(at(name))
	for _, n := range slices.Sorted(maps.Keys(naive)) {
		if other, ok := pool[n]; ok {
			v := 0.0
			if naive[n].Killed != "" && other.Killed == "" {
				v = 100
			}
			killed.Values = append(killed.Values, v)
		}
	}
	byMemory, byKill := claims.B1Memory.Judge(name, e.Pairs(at(Naive), at(name), rss)), claims.B1Killed.Judge(name, killed)
	return []results.OldClaim{claims.B1(byMemory, byKill)}
}

func jobs(e evidence, name string) []results.OldClaim {
	return []results.OldClaim{e.because(claims.B2.Judge(name, e.Pairs(at(name), at(Naive), finished)), Naive, name)}
}

func latency(e evidence, name string) []results.OldClaim {
	in := e.Pairs(at(Naive), at(name), mean)
	for _, r := range e.Of(at(Naive)) {
		if r.Of("ok").Count == 0 && in.Missing == "" {
			in.Missing = fmt.Sprintf("naive was %s, before it had finished a single job: it has no latency.", r.Killed)
		}
	}
	return []results.OldClaim{e.because(claims.B3.Judge(name, in), Naive)}
}

func goroutines(e evidence, name string) []results.OldClaim {
	claim := claims.B4Of(5000, 1000)
	for _, r := range e.Of(at(name)) {
		claim = claims.B4Of(int(experiment.Number(r.Params["max_workers"])), int(experiment.Number(r.Params["generators"])))
	}
	return []results.OldClaim{claim.Judge(name, e.Values(at(name), func(r results.Run) float64 { return float64(r.Process.PeakGoroutines) }))}
}

func refusals(e evidence, name string) []results.OldClaim {
	return []results.OldClaim{
		e.because(claims.B5Refused.Judge(name, e.Values(at(name), func(r results.Run) float64 { return 100 * r.Share("rejected") })), name),
		claims.B5Prompt.Judge(name, e.Values(at(name), func(r results.Run) float64 { return float64(r.Of("rejected").Latency.Quantile(.99)) / 1e6 })),
	}
}

func work(e evidence, name string) []results.OldClaim {
	c := claims.B6Pool.Judge(name, e.Values(at(name), percent("work_share")))
	gc, each, cpus, n := 0.0, 0.0, 0.0, 0.0
	for _, r := range e.Of(at(name)) {
		gc, each, cpus, n = gc+r.Process.GCShare, each+r.Extra["work_us"], cpus+r.Extra["cpus"], n+1
	}
	if n > 0 {
		c.Why += fmt.Sprintf(" A job took %.0f µs of a processor, the collector %.0f %% of the processor time, all together %.1f processors.", each/n, 100*gc/n, cpus/n)
	}
	return []results.OldClaim{c}
}

func goals(e evidence) []results.OldClaim {
	var out []results.OldClaim
	for _, name := range []string{Reused, Sized} {
		if name == Sized && len(e.Of(at(name))) == 0 {
			continue
		}
		jobs, memory := claims.BJobs.Judge(name, e.Pairs(at(name), at(Published), rate)), claims.BMemory.Judge(name, e.Pairs(at(name), at(Published), rss))
		memory.Why += e.growth()
		out = append(out, e.because(jobs, Published), memory)
	}
	for _, name := range []string{Spillway, Reused, Sized} {
		if len(e.Of(at(name))) == 0 && name != Reused {
			continue
		}
		alone := judge.Input{Seed: e.Seed, Missing: e.Missing(at(name))}
		for _, r := range e.InOrder(at(name)) {
			alone.Pairs = append(alone.Pairs, judge.Pair{A: mean(r) / 1e6, B: experiment.Number(r.Params["work_ms"])})
		}
		out = append(out, claims.BLatency.Judge(name, alone), e.because(claims.BRefusals.Judge(name, e.Values(at(name), percent("submit_share"))), name))
	}
	return out
}

// growth says how far the published shape can have grown in a short burst: with
// fewer workers it has fewer buffers.
func (e evidence) growth() string {
	for _, r := range e.Of(at(Published)) {
		burst := time.Duration(experiment.Number(r.Params["burst_seconds"]) * float64(time.Second))
		if n := grown(burst); burst > 0 && n < grown(Full().Burst) {
			return fmt.Sprintf(" In a burst of %v the published shape has at most %d of its %d workers, and as many buffers.", burst, n, grown(Full().Burst))
		}
	}
	return ""
}

// because adds what happened to the contestants of a claim: that they were killed,
// or that the planned load was not offered.
func (e evidence) because(c results.OldClaim, names ...string) results.OldClaim {
	if c.Runs == 0 {
		return c
	}
	for _, name := range names {
		for _, r := range e.InOrder(at(name)) {
			var said []string
			if r.Killed != "" {
				said = append(said, fmt.Sprintf("%s was %s, with %d jobs done", name, r.Killed, r.Of("ok").Count))
			}
			if why, _ := r.Params["generator"].(string); why != "" {
				said = append(said, name+" was "+why)
			}
			if len(said) > 0 {
				c.Why += fmt.Sprintf(" In repeat %d %s.", r.Repeat+1, strings.Join(said, "; "))
				break
			}
		}
	}
	return c
}
