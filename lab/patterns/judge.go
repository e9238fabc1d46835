package patterns

import (
	"fmt"
	"maps"
	"slices"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim of the family in every set-up that has its runs.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{runs, seed}
	var out []results.OldClaim
	for _, claimsOf := range []func(evidence, string) []results.OldClaim{h1, h2, h3} {
		out = append(append(out, claimsOf(e, Published)...), claimsOf(e, Real)...)
	}
	out = append(out, h4(e)...)
	out = append(out, h9(e)...)
	out = append(append(out, h10(e, Published)...), h10(e, Real)...)
	return append(out, h11(e)...)
}

// setupName is a set-up in the words of the report.
func setupName(setup string) string {
	switch setup {
	case Published:
		return "as published"
	case Real:
		return "for real"
	}
	return setup
}

func h1(e evidence, setup string) []results.OldClaim {
	c := claims.H1.Judge(setupName(setup), e.pairs(cell{setup, Low, Naive}, cell{setup, Low, WorkerPool}, throughput))
	return []results.OldClaim{because(c, "The sizes decide it: %s.", e.sizes(cell{setup, Low, WorkerPool}))}
}

func h2(e evidence, setup string) []results.OldClaim {
	pool := cell{setup, High, WorkerPool}
	law := e.law(pool)
	goodput := claims.H2Goodput.Judge(setupName(setup), e.values(pool, goodput))
	lawful := e.pairs(pool, pool, nil)
	for _, run := range e.of(pool) {
		lawful.Pairs = append(lawful.Pairs, judge.Pair{A: run.Rate("ok"), B: littlesLaw(run)})
	}
	return []results.OldClaim{
		because(claims.H2Refused.Judge(setupName(setup), e.values(pool, refused)), "%s.", e.share(pool)),
		because(goodput, "The published figure counts refusals as answers. By Little's law %s, whatever the load.", law),
		because(claims.H2Law.Judge(setupName(setup), lawful), "By Little's law %s.", law),
	}
}

func h3(e evidence, setup string) []results.OldClaim {
	naive, pool := cell{setup, Sustained, Naive}, cell{setup, Sustained, WorkerPool}
	return []results.OldClaim{
		because(claims.H3Refused.Judge(setupName(setup), e.values(pool, refused)), "%s.", e.share(pool)),
		claims.H3Throughput.Judge(setupName(setup), e.pairs(naive, pool, throughput)),
		because(claims.H3Goodput.Judge(setupName(setup), e.values(pool, goodput)),
			"The published figure counts refusals as answers. By Little's law %s, whatever the load.", e.law(pool)),
	}
}

func h4(e evidence) []results.OldClaim {
	printed, warm := cell{Published, Low, AsPrinted}, cell{Published, Brisk, Optimized}
	published := claims.H4Published.Judge(setupName(Published), e.values(printed, reuse))
	if runs := e.of(printed); len(runs) > 0 {
		reported := 0.0
		for _, run := range runs {
			reported += 100 * run.Extra["reported_hit_rate"] / float64(len(runs))
		}
		published = because(published, "Its own counter shows %.1f %%, because it counts every Get as a hit; only failed look-ups put an object back.", reported)
	}
	return []results.OldClaim{
		published,
		because(claims.H4Warm.Judge("as published, corrected", e.values(warm, reuse)),
			"Every response is given back once it is written, so nearly every Get finds one; more reuse than claimed fails the rule as less does."),
	}
}

func h9(e evidence) []results.OldClaim {
	return []results.OldClaim{
		claims.H9Uncleared.Judge(setupName(Published), e.values(cell{Published, Reuse, Uncleared}, foreign)),
		claims.H9Cleared.Judge(setupName(Published), e.values(cell{Published, Reuse, Optimized}, foreign)),
	}
}

// briskEnough is the claim's bound: more requests a second than this.
const briskEnough = 1000

func h10(e evidence, setup string) []results.OldClaim {
	optimized, pool := cell{setup, Brisk, Optimized}, cell{setup, Brisk, WorkerPool}
	ask := func(figure func(results.Run) float64) judge.Input {
		in := e.pairs(optimized, pool, figure)
		in.AA = e.twins(pool, figure)
		for _, c := range []cell{optimized, pool} {
			for _, run := range e.of(c) {
				if rate := throughput(run); rate <= briskEnough && in.Missing == "" {
					in.Missing = fmt.Sprintf("The claim speaks of more than %d requests a second; %s answered %.0f.", briskEnough, c.pattern, rate)
				}
			}
		}
		return in
	}
	p99 := claims.H10P99.Judge(setupName(setup), ask(p99))
	gc := claims.H10GC.Judge(setupName(setup), ask(gcShare))
	return []results.OldClaim{claims.H10(p99, gc), p99, gc}
}

func h11(e evidence) []results.OldClaim {
	stack := func(run results.Run) float64 { return run.Extra["stack_kb"] }
	out := []results.OldClaim{
		claims.H11Stack.Judge("goroutines that only wait", e.values(cell{Published, Parked, Naive}, stack)),
		because(claims.H11Stack.Judge(setupName(Real), e.values(cell{Real, High, Naive}, stack)),
			"HTTP and the store grow the stacks; a request also keeps its connection's goroutine."),
	}
	for _, setup := range []string{Published, Real} {
		workers, peaks := 0, judge.Input{Seed: e.seed}
		repeats := map[int]float64{}
		for _, load := range []string{Low, High, Sustained} {
			for n, run := range e.repeats(cell{setup, load, WorkerPool}, false) {
				workers = int(number(run.Params["workers"]))
				repeats[n] = max(repeats[n], float64(run.Process.PeakStoreCalls))
			}
		}
		peaks.Values = slices.Collect(maps.Values(repeats))
		if workers == 0 {
			workers, peaks.Missing = publishedWorkers, e.missing(cell{setup, High, WorkerPool})
		}
		out = append(out, claims.H11ConnectionsOf(workers).Judge(setupName(setup), peaks))
	}
	return out
}

// The figures of a run.
func throughput(r results.Run) float64 { return float64(r.Offered) / r.Elapsed } // as the source counts it
func goodput(r results.Run) float64    { return r.Rate("ok") }
func refused(r results.Run) float64    { return 100 * r.Share("rejected") }
func reuse(r results.Run) float64      { return 100 * r.Process.ReuseRate }
func foreign(r results.Run) float64    { return r.Extra["foreign"] }
func p99(r results.Run) float64        { return float64(r.Of("ok").Latency.Quantile(0.99)) }
func gcShare(r results.Run) float64    { return 100 * r.Process.GCShare }

// littlesLaw is the goodput that workers over such a store can have: each
// worker has one look-up in progress, each lasts the store's mean latency.
func littlesLaw(r results.Run) float64 {
	mean := (number(r.Params["min_latency_ms"]) + number(r.Params["max_latency_ms"])) / 2
	return number(r.Params["workers"]) * (1 - number(r.Params["error_rate"])) / mean * 1000
}

// number reads a parameter, which is a float64 when read from disk.
func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}
