package reuse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim from the raw runs.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{cells: map[cell]map[int]*results.Run{}, seed: seed}
	for i := range runs {
		r := &runs[i]
		if r.Failed != "" || r.Killed != "" || r.Elapsed <= 0 {
			continue
		}
		c := cell{r.Setup, r.Load, r.Pattern}
		if e.cells[c] == nil {
			e.cells[c] = map[int]*results.Run{}
		}
		e.cells[c][r.Repeat] = r
	}
	var out []results.OldClaim
	for _, name := range []string{Spillway, Buffers} {
		c := cell{Bursts, burstLoad, name}
		out = append(out,
			claims.ReuseHits.Judge(name, e.values(c, "hits")),
			claims.ReuseStrong.Judge(name, e.values(c, "held", "peak")),
			claims.ReuseCounted.Judge(name, e.values(c, "off_by")))
	}
	// The other contestants in the same bursts, to show what they lose.
	for i := range out {
		if out[i].ID == claims.ReuseHits.ID {
			out[i].Why += e.rivals("hits", "%.1f %%")
		}
	}
	idle := e.values(cell{Idle, burstLoad, Spillway}, "idle", "peak")
	for i := range idle.Values {
		idle.Values[i] *= 100
	}
	out = append(out, claims.ReuseIdle.Judge(Spillway, idle))
	for _, users := range e.cycles() {
		setup := fmt.Sprintf("by %d", users)
		load := CycleLoad(dirty, users)
		out = append(out, claims.ReuseCycle.Judge(setup, e.behind(cell{Cycle, load, SyncPool})))
		allocs := e.values(cell{Cycle, load, Spillway}, "mallocs")
		for i := range allocs.Values {
			allocs.Values[i] *= 1000
		}
		out = append(out,
			claims.ReuseAllocs.Judge(setup, allocs),
			claims.ReuseDirty.Judge(setup, e.pairs(cell{Cycle, CycleLoad(500_000, users), Buffers}, "ns", cell{Cycle, load, Buffers}, "ns")))
	}
	out = append(out, claims.ReuseMisuse.Judge("by tests", judge.Input{
		Missing: "It is proven by tests, not here: go test -race ./objectpool runs every seeded bug twenty times.",
	}))
	for _, name := range []string{Spillway, Buffers} {
		out = append(out, claims.ReuseOutlier.Judge(name,
			e.pairs(cell{Outlier, outlierLoad(true), name}, "rss", cell{Outlier, outlierLoad(false), name}, "rss")))
	}
	return out
}

type cell struct{ setup, load, pattern string }

// evidence is the measured runs by cell and repeat.
type evidence struct {
	cells map[cell]map[int]*results.Run
	seed  uint64
}

func missing(c cell) string {
	return fmt.Sprintf("%s was not measured in %s, %s.", c.pattern, c.setup, c.load)
}

// values takes one figure of each repeat, or its ratio to a second one.
func (e evidence) values(c cell, figure ...string) judge.Input {
	in := judge.Input{Seed: e.seed}
	for _, n := range slices.Sorted(maps.Keys(e.cells[c])) {
		v := e.cells[c][n].Extra[figure[0]]
		if len(figure) > 1 {
			v /= e.cells[c][n].Extra[figure[1]]
		}
		in.Values = append(in.Values, v)
	}
	if len(in.Values) == 0 {
		in.Missing = missing(c)
	}
	return in
}

// pairs takes a figure of two cells from each repeat that has both.
func (e evidence) pairs(a cell, ofA string, b cell, ofB string) judge.Input {
	in := judge.Input{Seed: e.seed}
	for _, n := range slices.Sorted(maps.Keys(e.cells[a])) {
		if other := e.cells[b][n]; other != nil {
			in.Pairs = append(in.Pairs, judge.Pair{A: e.cells[a][n].Extra[ofA], B: other.Extra[ofB]})
		}
	}
	if len(in.Pairs) == 0 {
		in.Missing = missing(a)
		if len(e.cells[a]) > 0 {
			in.Missing = missing(b)
		}
	}
	return in
}

// behind takes our time over that of a cell from each repeat.
func (e evidence) behind(c cell) judge.Input {
	in := judge.Input{Seed: e.seed}
	for _, n := range slices.Sorted(maps.Keys(e.cells[c])) {
		if ratio := e.cells[c][n].Extra["behind"]; ratio > 0 {
			in.Pairs = append(in.Pairs, judge.Pair{A: ratio, B: 1})
		}
	}
	if len(in.Pairs) == 0 {
		in.Missing = missing(c)
	}
	return in
}

// cycles lists by how many goroutines 1 KB was cycled.
func (e evidence) cycles() []int {
	var all []int
	for c, runs := range e.cells {
		for _, r := range runs {
			if users, ok := number(r.Params["goroutines"]); ok && c.setup == Cycle {
				all = append(all, users)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// number reads a parameter, which is a float64 when read from disk.
func number(v any) (int, bool) {
	switch v := v.(type) {
	case int:
		return v, true
	case float64:
		return int(v), true
	}
	return 0, false
}

// rivals returns a figure's mean for every contestant that is not ours, in words.
func (e evidence) rivals(figure, format string) string {
	text := ""
	rivals := []string{SyncPool, Channel}
	slices.SortFunc(rivals, cmp.Compare[string])
	for _, name := range rivals {
		in := e.values(cell{Bursts, burstLoad, name}, figure)
		sum := 0.0
		for _, v := range in.Values {
			sum += v
		}
		if len(in.Values) > 0 {
			text += fmt.Sprintf(" %s: "+format+".", name, sum/float64(len(in.Values)))
		}
	}
	return text
}
