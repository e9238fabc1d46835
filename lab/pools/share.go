package pools

import (
	"context"
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
)

// run plays a bout in a process of its own and makes a run of each entry.
func (b bout) run(ctx context.Context, seed, memoryCap uint64) ([]results.Run, error) {
	b.Seed = seed
	var readings [][]reading
	exit, err := contestant.Run(ctx, contestant.Spec{Role: roleBout, Input: b, MemoryCap: memoryCap}, &readings)
	if err != nil {
		return nil, err
	}
	if exit.Killed != "" { // which contestant was the cause is unknown
		return nil, fmt.Errorf("the process of all contestants was %s", exit.Killed)
	}
	runs := make([]results.Run, len(b.Entries))
	for i, e := range b.Entries {
		us := slices.IndexFunc(b.Entries, func(other entry) bool {
			return other.Contestant == Spillway && other.Workers == e.Workers && !other.Twin
		})
		runs[i] = b.asRun(e, readings[i])
		if us >= 0 {
			var behind []float64
			for n := range readings[i] {
				behind = append(behind, readings[us][n].NS/readings[i][n].NS)
			}
			runs[i].Extra["behind"] = median(behind)
		}
	}
	return runs, nil
}

// asRun keeps every round, because ratios are taken within a round.
func (b bout) asRun(e entry, readings []reading) results.Run {
	run := results.Run{
		Params: map[string]any{"producers": float64(b.Producers), "workers": float64(e.Workers), "buffer": float64(b.Buffer), "work_us": b.Work.Seconds() * 1e6},
		Extra:  map[string]float64{},
	}
	var ns, allocs, bytes []float64
	for i, r := range readings {
		run.Extra[roundKey(i)] = r.NS
		ns, allocs, bytes = append(ns, r.NS), append(allocs, r.Allocs), append(bytes, r.Bytes)
	}
	run.Extra["ns"], run.Extra["allocs"], run.Extra["bytes"] = median(ns), median(allocs), median(bytes)
	return run
}

func roundKey(i int) string { return fmt.Sprintf("ns_round_%d", i+1) }

// median is 0 for no values.
func median(xs []float64) float64 {
	if len(xs) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(xs))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}
