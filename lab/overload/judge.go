package overload

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim under every load that was run.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{cells: map[cell]map[int]*results.Run{}, seed: seed}
	for i := range runs {
		e.add(&runs[i])
	}
	var out []results.OldClaim
	for _, of := range []func(float64) results.OldClaim{e.goodput, e.critical, e.rival} {
		for _, x := range e.loads() {
			out = append(out, of(x))
		}
	}
	return out
}

type cell struct {
	load    float64
	pattern string
}

// evidence is the measured runs by cell and repeat.
type evidence struct {
	cells map[cell]map[int]*results.Run
	seed  uint64
}

func (e evidence) add(r *results.Run) {
	x, ok := r.Params["load"].(float64)
	if !ok || r.Failed != "" || r.Elapsed <= 0 {
		return
	}
	c := cell{x, r.Pattern}
	if e.cells[c] == nil {
		e.cells[c] = map[int]*results.Run{}
	}
	e.cells[c][r.Repeat] = r
}

func (e evidence) loads() []float64 {
	var all []float64
	for c := range e.cells {
		all = append(all, c.load)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// mean is the mean goodput of a cell, good answers a second.
func (e evidence) mean(c cell) float64 {
	sum := 0.0
	for _, r := range e.cells[c] {
		sum += r.Rate("ok")
	}
	return sum / float64(max(len(e.cells[c]), 1))
}

// best is the best mean goodput that any contestant reached under any load.
func (e evidence) best() (most float64, by cell) {
	for _, c := range e.sorted() {
		if m := e.mean(c); m > most {
			most, by = m, c
		}
	}
	return most, by
}

// sorted lists the cells in an order that does not change.
func (e evidence) sorted() []cell {
	return slices.SortedFunc(maps.Keys(e.cells), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.load, b.load), cmp.Compare(a.pattern, b.pattern))
	})
}

// repeats walks the repeats of a cell in order.
func (e evidence) repeats(c cell) []int { return slices.Sorted(maps.Keys(e.cells[c])) }

// missing says why a cell has no figure; empty if it has one.
func (e evidence) missing(c cell) string {
	if len(e.cells[c]) > 0 {
		return ""
	}
	return fmt.Sprintf("%s was not measured at %s.", c.pattern, LoadName(c.load))
}

func setup(x float64) string { return "at " + LoadName(x) }

func offered(r *results.Run) float64 { return float64(r.Offered) / r.Elapsed }

func (e evidence) goodput(x float64) results.OldClaim {
	c := cell{x, Spillway}
	in := judge.Input{Seed: e.seed, Missing: e.missing(c)}
	best, by := e.best()
	for _, n := range e.repeats(c) {
		r := e.cells[c][n]
		in.Pairs = append(in.Pairs, judge.Pair{A: r.Rate("ok"), B: min(best, offered(r))})
	}
	out := claims.OverloadGoodput.Judge(setup(x), in)
	if in.Missing == "" {
		out.Why += fmt.Sprintf(" It answered %.0f/s well of %.0f/s offered; the best any contestant answered under any load was %.0f/s (%s at %s).",
			e.mean(c), e.offered(c), best, by.pattern, LoadName(by.load))
	}
	return out
}

func (e evidence) offered(c cell) float64 {
	sum := 0.0
	for _, r := range e.cells[c] {
		sum += offered(r)
	}
	return sum / float64(max(len(e.cells[c]), 1))
}

func (e evidence) critical(x float64) results.OldClaim {
	c := cell{x, Spillway}
	in := judge.Input{Seed: e.seed, Missing: e.missing(c)}
	best, _ := e.best()
	crowded, answered, important := false, 0.0, 0.0
	for _, n := range e.repeats(c) {
		r := e.cells[c][n]
		fits := min(r.Extra["critical_offered"], best*r.Elapsed)
		if fits > 0 {
			in.Values = append(in.Values, 100*r.Extra["critical_ok"]/fits)
		}
		crowded = crowded || fits < r.Extra["critical_offered"]
		answered += float64(r.Of("ok").Count)
		important += r.Extra["critical_ok"]
	}
	out := claims.OverloadCritical.Judge(setup(x), in)
	if crowded && answered > 0 {
		out.Why += fmt.Sprintf(" More critical requests were sent than the best contestant could answer; of the good answers %.1f %% were to critical ones.", 100*important/answered)
	}
	return out
}

func (e evidence) rival(x float64) results.OldClaim {
	us, rival := cell{x, Spillway}, cell{load: x}
	for _, c := range e.sorted() {
		if c.load == x && c.pattern != Spillway && (rival.pattern == "" || e.mean(c) > e.mean(rival)) {
			rival = c
		}
	}
	in := judge.Input{Seed: e.seed, Missing: e.missing(us)}
	if rival.pattern == "" {
		in.Missing = "No other contestant was measured " + setup(x) + "."
	}
	for _, n := range e.repeats(us) {
		if r, ok := e.cells[rival][n]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: r.Rate("ok"), B: e.cells[us][n].Rate("ok")})
		}
	}
	out := claims.OverloadRival.Judge(setup(x), in)
	if in.Missing == "" {
		out.Why += fmt.Sprintf(" The best rival is %s with %.0f/s; Spillway answers %.0f/s.", rival.pattern, e.mean(rival), e.mean(us))
	}
	return out
}
