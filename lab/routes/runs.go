package routes

import (
	"math"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
)

// newRun makes a run of a contestant's blocks. Every block is net of the harness in the
// same round.
func (g *group) newRun(m Match, e Entry, readings, harness []turns.Reading) results.Run {
	run := results.Run{
		Process: results.Process{ReuseRate: -1}, Params: g.params(readings[0].N),
		Extra: map[string]float64{}, Blocks: map[string][]float64{},
	}
	net := func(key string, figure func(turns.Reading) float64) {
		totals, costs := turns.Each(readings, figure), turns.Each(harness, figure)
		total, cost := usage.Median(totals), usage.Median(costs)
		if m.Published {
			run.Extra[key+"_total"], run.Blocks[key+"_total"] = total, totals
		}
		if e.Name == Nothing { // it is the harness
			run.Extra[key], run.Blocks[key] = total, totals
			return
		}
		if m.Published && total > 0 {
			run.Extra[key+"_harness_share"] = 100 * cost / total
		}
		nets := slices.Clone(totals)
		for i := range nets {
			nets[i] -= costs[i]
		}
		run.Extra[key], run.Blocks[key] = usage.Median(nets), nets
	}
	net("cpu_ns", turns.AllNanos)
	net("allocs", turns.Mallocs)
	net("bytes", turns.Bytes)
	if g.table == TablePublished { // whose claims include one about contention
		net("wall_ns", turns.WallNanos)
	}
	var pauses []time.Duration
	for _, r := range readings {
		run.Elapsed += r.Wall.Seconds()
		run.Process.CPUSeconds += (r.Clock + r.Collector).Seconds()
		run.Process.Mallocs += r.Mallocs
		run.Process.AllocBytes += r.Bytes
		pauses = append(pauses, r.Pause)
	}
	if g.table == TablePublished && e.Name != Nothing {
		run.Process.GCPauseP99 = p99(pauses).Seconds()
		run.Extra["pause_p99_us"], run.Extra["pauses"] = run.Process.GCPauseP99*1e6, float64(len(pauses))
	}
	return run
}

// behind sets for every other contestant how many times longer Spillway takes, in the
// median of the rounds.
func behind(us results.Run, entries []Entry, runs []results.Run) {
	for i, r := range runs {
		if name := entries[i].Name; name == Nothing || name == SpillwayTimed || name == GinTyped || entries[i].Twin {
			continue
		}
		if ratios := us.Ratios(&r, "cpu_ns"); len(ratios) > 0 {
			r.Extra["behind"] = usage.Median(ratios)
		}
	}
}

// p99 is the 99th percentile.
func p99(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[int(math.Ceil(.99*float64(len(all))))-1]
}
