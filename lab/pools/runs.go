package pools

import (
	"context"
	"fmt"
	"slices"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
	"github.com/spillway-go/spillway/lab/usage"
)

// play plays a bout in a process of its own and makes a run of each entry.
func (c Config) play(ctx context.Context, b Bout, seed uint64) ([]results.Run, error) {
	b.Seed = seed
	var readings [][]turns.Reading
	exit, err := contestant.Run(ctx, c.spec(RoleBout, b), &readings)
	if err != nil {
		return nil, err
	}
	if exit.Killed != "" { // which contestant was the cause is unknown
		return nil, fmt.Errorf("the process of all contestants was %s", exit.Killed)
	}
	runs := make([]results.Run, len(b.Entries))
	for i, e := range b.Entries {
		runs[i] = b.asRun(e, readings[i])
	}
	for i, e := range b.Entries {
		if us := slices.Index(b.Entries, Entry{Spillway, e.Workers, false}); us >= 0 {
			runs[i].Extra["behind"] = usage.Median(runs[us].Ratios(&runs[i], "ns"))
		}
	}
	return runs, nil
}

// asRun keeps every round, because ratios are taken within a round.
func (b Bout) asRun(e Entry, readings []turns.Reading) results.Run {
	ns := turns.Each(readings, turns.Nanos)
	return results.Run{
		Params: map[string]any{"producers": float64(b.Producers), "workers": float64(e.Workers), "buffer": float64(b.Buffer), "work_us": b.Work.Seconds() * 1e6},
		Blocks: map[string][]float64{"ns": ns},
		Extra: map[string]float64{
			"ns": usage.Median(ns), "allocs": usage.Median(turns.Each(readings, turns.Mallocs)), "bytes": usage.Median(turns.Each(readings, turns.Bytes)),
		},
	}
}
