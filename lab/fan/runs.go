package fan

import (
	"math"
	"slices"

	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// free is the number of processors from which a second one counts as free. Waking it
// takes time too.
const free = 1.6

// runs makes a run of each contestant in each table. Every round is kept, because
// ratios are taken within a round.
func (l Lookups) runs(figures [][]Figures) (out []results.Run) {
	us := slices.Index(l.Contestants, Spillway)
	for i, t := range l.Tables {
		table := make([]results.Run, len(figures[i]))
		for j, f := range figures[i] {
			table[j].Params = map[string]any{"kind": l.Kind, "sources": t.Sources, "database_us": micros(t.Database), "cache_us": micros(t.Cache)}
			for key, rounds := range f {
				ledger.Keep(&table[j], key, rounds)
			}
			for n, processors := range f["free"] {
				if processors >= free {
					table[j].Blocks["ns_free"] = append(table[j].Blocks["ns_free"], f["ns"][n])
				}
			}
		}
		for j := range table {
			if us >= 0 {
				ledger.Keep(&table[j], "behind", table[us].Ratios(&table[j], "ns"))
			}
		}
		out = append(out, table...)
	}
	return out
}

// timeOf is the time that a claim about a kind of work may use: for some, a free second
// processor is part of the set-up.
func timeOf(kind string) ledger.Figure {
	if kind == Computing {
		return ledger.Extra("ns_free", "time while a second processor was free")
	}
	return ns
}

// breakEven makes a run of the break-even of corrected, or its twin.
func (l Lookups) breakEven(runs []results.Run, corrected int) results.Run {
	run := results.Run{Params: map[string]any{"kind": l.Kind}, Extra: map[string]float64{}}
	var curve []point
	for i, t := range l.Tables {
		table := runs[i*len(l.Contestants):]
		ratios := table[corrected].Ratios(&table[slices.Index(l.Contestants, Sequential)], timeOf(l.Kind).Key)
		if len(ratios) > 0 {
			curve = append(curve, point{micros(t.Cache), ledger.Median(ratios)})
		}
	}
	if x, known := breakEven(curve); known {
		run.Extra["break_even"] = x
	}
	return run
}

// point is the time of corrected over that of sequential, where each branch takes so
// many µs.
type point struct{ at, ratio float64 }

// won is the ratio below which a difference is a gain and not noise.
const won = .98

// breakEven is where parallel/sequential falls below 1 for good, between two points on
// logarithmic scales; not known if parallel wins everywhere or nowhere.
func breakEven(curve []point) (at float64, known bool) {
	last := -1 // where it is still no gain
	for i, p := range curve {
		if p.ratio >= won {
			last = i
		}
	}
	if last < 0 || last == len(curve)-1 {
		return 0, false
	}
	a, b := curve[last], curve[last+1]
	if a.ratio <= 1 {
		return a.at, true
	}
	share := math.Log(a.ratio) / (math.Log(a.ratio) - math.Log(b.ratio))
	return a.at * math.Pow(b.at/a.at, share), true
}
