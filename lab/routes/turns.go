package routes

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// measure starts every contestant of the group and lets them take turns. The first round
// is a warm-up.
func (g *group) measure(ctx context.Context, seed uint64) (map[cellOf]results.Run, error) {
	servers := map[entry]*remote{}
	exits := map[entry]contestant.Exit{}
	var failed error
	stop := func() {
		for e, a := range servers {
			exit, err := a.stop(ctx)
			if exits[e] = exit; err != nil && failed == nil {
				failed = err
			}
		}
		clear(servers)
	}
	defer stop()
	program := ""
	if g.program != nil {
		program = *g.program
	}
	for _, e := range entries(g.table) {
		a, err := ask(ctx, contestant.Spec{Role: roleServer, Input: job{g.table, e.name}, MemoryCap: g.config.MemoryCap, Program: program})
		if err != nil {
			return nil, err
		}
		servers[e] = a
	}
	todo := g.todo()
	all, gone := map[cellOf][]measured{}, map[entry]bool{}
	rng := rand.New(rand.NewPCG(seed, 11))
	for round := range g.config.Rounds + 1 {
		for _, i := range rng.Perm(len(todo)) {
			c := todo[i]
			if gone[c.entry] {
				continue
			}
			m, died, err := servers[c.entry].run(ctx, block{c.scenario, g.requests(c.scenario), c.published})
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.entry.name, err)
			}
			if gone[c.entry] = died; !died && round > 0 {
				all[c] = append(all[c], m)
			}
		}
	}
	stop()
	if failed != nil {
		return nil, failed
	}
	runs := map[cellOf]results.Run{}
	for _, c := range todo {
		runs[c] = g.newRun(c, all)
		r := runs[c]
		r.Killed, r.Process.PeakRSS = exits[c.entry].Killed, exits[c.entry].PeakRSS
		runs[c] = r
	}
	g.behind(runs)
	return runs, nil
}

// newRun makes a run of a cell's turns, net of the cost of the harness in the same
// repeat.
func (g *group) newRun(c cellOf, all map[cellOf][]measured) results.Run {
	n := float64(g.requests(c.scenario))
	run := results.Run{Process: results.Process{ReuseRate: -1}, Params: g.params(int(n))}
	if len(all[c]) == 0 {
		return run // killed before its first turn
	}
	each := func(of cellOf, f func(measured) float64) []float64 {
		var out []float64
		for _, m := range all[of] {
			out = append(out, f(m)/n)
		}
		return out
	}
	harness := c
	harness.entry = entry{name: Nothing}
	cpuNS := func(m measured) float64 { return m.CPU * 1e9 }
	wallNS := func(m measured) float64 { return m.Wall * 1e9 }
	mallocs := func(m measured) float64 { return float64(m.Mallocs) }
	bytes := func(m measured) float64 { return float64(m.Bytes) }
	x := map[string]float64{}
	net := func(key string, of func([]float64) float64, f func(measured) float64) {
		total, cost := of(each(c, f)), of(each(harness, f))
		if x[key] = total - cost; c.entry.name == Nothing { // it is the harness
			x[key] = total
		} else if c.published && total > 0 {
			x[key+"_harness_share"] = 100 * cost / total
		}
		if c.published {
			x[key+"_total"] = total
		}
	}
	net("cpu_ns", midmean, cpuNS)
	net("allocs", median, mallocs)
	net("bytes", median, bytes)
	if g.table == tablePublished { // whose claims include one about contention
		net("wall_ns", midmean, wallNS)
	}
	run.Extra = x
	run.Params["cpu_ns_by_round"], run.Params["wall_ns_by_round"] = each(c, cpuNS), each(c, wallNS)
	for _, m := range all[c] {
		run.Elapsed += m.Wall
		run.Process.CPUSeconds += m.CPU
		run.Process.Mallocs += m.Mallocs
		run.Process.AllocBytes += m.Bytes
	}
	if p99, collections := pauseP99(all[c]); collections > 0 && g.table == tablePublished && c.entry.name != Nothing {
		run.Process.GCPauseP99 = p99
		x["pause_p99_us"], x["pauses"] = p99*1e6, float64(collections)
	}
	return run
}

// behind sets for every contestant how much longer Spillway takes.
func (g *group) behind(runs map[cellOf]results.Run) {
	for c, r := range runs {
		base := c
		base.entry = entry{name: Spillway}
		us := runs[base]
		other := c.entry.name != Nothing && c.entry.name != SpillwayTimed && c.entry.name != GinTyped && !c.entry.twin
		if other && us.Extra["cpu_ns"] > 0 && r.Extra["cpu_ns"] > 0 {
			r.Extra["behind"] = us.Extra["cpu_ns"] / r.Extra["cpu_ns"]
		}
	}
}

// pauseP99 is the upper bound of the bucket in which the 99th percentile of all
// pauses lies, in seconds.
func pauseP99(all []measured) (p99 float64, n uint64) {
	counts := map[float64]uint64{}
	for _, m := range all {
		for i, count := range m.Pauses {
			counts[m.Bounds[i]] += count
			n += count
		}
	}
	bounds := make([]float64, 0, len(counts))
	for b := range counts {
		bounds = append(bounds, b)
	}
	slices.Sort(bounds)
	rank := uint64(math.Ceil(.99 * float64(n)))
	for _, b := range bounds {
		if rank <= counts[b] {
			return b, n
		}
		rank -= counts[b]
	}
	return 0, n
}

// midmean is the mean of the middle half: a turn disturbed by other load does not count,
// and unlike the median it does not depend on how many collections the middle turn had.
func midmean(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	cut := len(v) / 4
	v = v[cut : len(v)-cut]
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}
