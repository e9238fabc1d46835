package fan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim in every set-up that was run.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed}}
	var out []results.OldClaim
	for _, of := range []func() []results.OldClaim{e.f1, e.f2, e.f3, e.f4, e.better, e.changes, e.allocs, e.nested, e.hedging} {
		out = append(out, of()...)
	}
	slices.SortStableFunc(out, func(a, b results.OldClaim) int { return cmp.Compare(order(a.ID), order(b.ID)) })
	return out
}

// order is the claim's position in the ledger.
func order(id string) int {
	return slices.IndexFunc(claims.F.Claims, func(c claims.Claim) bool { return c.ID == id })
}

type cell = experiment.Key

// evidence is the runs of a session.
type evidence struct{ experiment.Evidence }

func extra(key string) experiment.Figure {
	return func(r results.Run) float64 { return r.Extra[key] }
}

// rounds are the times of a run in the rounds that satisfy want.
func rounds(r results.Run, want func(r results.Run, i int) bool) map[int]float64 {
	out := map[int]float64{}
	for i := 0; ; i++ {
		ns, ok := r.Extra[roundKey(i)]
		if !ok {
			return out
		}
		if want(r, i) {
			out[i] = ns
		}
	}
}

func every(results.Run, int) bool { return true }

// hadBoth are rounds in which a second processor was free.
func hadBoth(r results.Run, i int) bool { return r.Extra[freeKey(i)] >= free }

// wanted selects the rounds that a claim about a kind of work may use: for some, a
// free second processor is part of the set-up.
func wanted(kind string) func(results.Run, int) bool {
	if kind == Computing {
		return hadBoth
	}
	return every
}

// over compares two cells repeat by repeat: the median over the rounds of f.
func (e evidence) over(a, b cell, want func(results.Run, int) bool, f func(a, b float64) float64) map[int]float64 {
	out := map[int]float64{}
	other := e.Of(b)
	for n, r := range e.Of(a) {
		s, ok := other[n]
		if !ok {
			continue
		}
		theirs := rounds(s, want)
		var each []float64
		for i, x := range rounds(r, want) {
			if y := theirs[i]; x > 0 && y > 0 {
				each = append(each, f(x, y))
			}
		}
		if len(each) > 0 {
			out[n] = median(each)
		}
	}
	return out
}

func ratio(a, b float64) float64      { return a / b }
func difference(a, b float64) float64 { return (a - b) / 1000 } // in µs

// input makes pairs from values that are already ratios, with 1, or differences, with
// 0.
func (e evidence) input(by map[int]float64, b float64, missing string) judge.Input {
	in := judge.Input{Seed: e.Seed, Missing: missing}
	for _, n := range slices.Sorted(maps.Keys(by)) {
		in.Pairs = append(in.Pairs, judge.Pair{A: by[n], B: b})
	}
	return in
}

const busy = "In no round did the machine have a second processor to spare: run it again while nothing else computes."

// spare says in how many rounds of a kind a second processor was free; empty if in
// all.
func (e evidence) spare(kind string, of func(results.Run) bool) string {
	if kind != Computing {
		return ""
	}
	had, all := 0, 0
	for _, r := range e.Runs {
		if of(r) {
			had += len(rounds(r, hadBoth))
			all += len(rounds(r, every))
		}
	}
	if had == 0 || had == all {
		return ""
	}
	return fmt.Sprintf(" A second processor was free in %.0f %% of the rounds, and only these count.", 100*float64(had)/float64(all))
}

// compare judges two cells of one load in each kind of work that was run.
func (e evidence) compare(claim claims.Claim, kinds []string, load string, neutral float64, f func(a, b float64) float64) (out []results.OldClaim) {
	for _, kind := range kinds {
		a, b := cell{Setup: kind, Load: load, Pattern: Sequential}, cell{Setup: kind, Load: load, Pattern: Corrected}
		by := e.over(a, b, wanted(kind), f)
		missing := e.Missing(a, b)
		if missing == "" && len(by) == 0 {
			missing = busy
		}
		c := claim.Judge(setupWords(kind), e.input(by, neutral, missing))
		if missing == "" {
			c.Why += fmt.Sprintf(" %s %s, corrected %s.%s%s", sentence(Sequential), nanos(e.mean(a, "ns")), nanos(e.mean(b, "ns")), e.lost(kind, load),
				e.spare(kind, func(r results.Run) bool { return r.Setup == kind && r.Load == load }))
		}
		out = append(out, c)
	}
	return out
}

func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

func setupWords(kind string) string {
	if kind == Computing {
		return "computing, a processor free"
	}
	return kind
}

func (e evidence) mean(c cell, key string) float64 {
	runs := e.InOrder(c)
	sum := 0.0
	for _, r := range runs {
		sum += r.Extra[key]
	}
	return sum / float64(max(len(runs), 1))
}

// lost says what the printed code lost there.
func (e evidence) lost(kind, load string) string {
	c := cell{Setup: kind, Load: load, Pattern: AsPrinted}
	if len(e.Of(c)) == 0 {
		return ""
	}
	return fmt.Sprintf(" As printed it takes %s and loses %.0f %% of the caches' answers.", nanos(e.mean(c, "ns")), 100*e.mean(c, "lost"))
}

func (e evidence) f1() []results.OldClaim {
	return e.compare(claims.F1, []string{Virtual, Sleeping}, lookupLoad(2, published[0]), 1, ratio)
}

func (e evidence) f2() []results.OldClaim {
	return e.compare(claims.F2, []string{Virtual, Computing, OneProc}, lookupLoad(2, published[1]), 0, difference)
}

func (e evidence) f3() []results.OldClaim {
	at := func(pattern string) cell { return cell{Setup: allocSetup, Load: "n = 2", Pattern: pattern} }
	c := claims.F3.Judge("n = 2", e.Pairs(at(Corrected), at(Sequential), extra("allocs")))
	if e.Missing(at(Corrected), at(Sequential)) == "" {
		var all []string
		for _, name := range []string{Sequential, Corrected, ErrGroup, Conc, Spillway, InParallel, Borrowed} {
			if len(e.Of(at(name))) > 0 {
				all = append(all, fmt.Sprintf("%s %.0f (%.0f bytes)", name, e.mean(at(name), "allocs"), e.mean(at(name), "bytes")))
			}
		}
		c.Why += " " + sentence(strings.Join(all, ", ")) + "."
	}
	return []results.OldClaim{c}
}

// grids are the set-ups of the grid, in the order of the runs' kinds and sizes.
func (e evidence) grids() (out []cell) {
	seen := map[string]bool{}
	for _, r := range e.Runs {
		if strings.HasPrefix(r.Setup, gridPrefix) && !seen[r.Setup] {
			seen[r.Setup] = true
			kind, _ := r.Params["kind"].(string)
			out = append(out, cell{Setup: r.Setup, Pattern: kind})
		}
	}
	slices.SortFunc(out, func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.Pattern, b.Pattern), cmp.Compare(len(a.Setup), len(b.Setup)), cmp.Compare(a.Setup, b.Setup))
	})
	return out
}

// loads of a set-up by the duration of a branch, in µs, ascending.
func (e evidence) loads(setup string) (loads []string, us []float64) {
	at := map[float64]string{}
	for _, r := range e.Runs {
		if r.Setup == setup && r.Failed == "" {
			at[experiment.Number(r.Params["cache_us"])] = r.Load
		}
	}
	us = slices.Sorted(maps.Keys(at))
	for _, d := range us {
		loads = append(loads, at[d])
	}
	return loads, us
}

// f4 looks for the break-even in each set-up of the grid.
func (e evidence) f4() (out []results.OldClaim) {
	for _, g := range e.grids() {
		if g.Pattern == Virtual {
			continue // computing is free there
		}
		loads, us := e.loads(g.Setup)
		curves := map[int][]point{} // by repeat
		for i, load := range loads {
			a, b := cell{Setup: g.Setup, Load: load, Pattern: Corrected}, cell{Setup: g.Setup, Load: load, Pattern: Sequential}
			for n, x := range e.over(a, b, wanted(g.Pattern), ratio) {
				curves[n] = append(curves[n], point{us[i], x})
			}
		}
		in := judge.Input{Seed: e.Seed}
		never, always := 0, 0
		for _, n := range slices.Sorted(maps.Keys(curves)) {
			if len(curves[n]) < 2 {
				continue
			}
			x, side := breakEven(curves[n])
			in.Values = append(in.Values, x)
			switch side {
			case 1:
				never++
			case -1:
				always++
			}
		}
		if len(in.Values) == 0 {
			in.Missing = "The corrected and the sequential code were not both run."
			if g.Pattern == Computing && len(e.Of(cell{Setup: g.Setup, Load: loads[0], Pattern: Corrected})) > 0 {
				in.Missing = busy
			}
		}
		c := claims.F4.Judge(strings.Replace(strings.TrimPrefix(g.Setup, gridPrefix), Computing+", n", setupWords(Computing)+", n", 1), in)
		if never > 0 {
			c.Why += fmt.Sprintf(" In %d of %d repeats parallel won at no duration up to %v µs.", never, len(in.Values), us[len(us)-1])
		}
		if always > 0 {
			c.Why += fmt.Sprintf(" In %d of %d repeats it won at every duration from %v µs.", always, len(in.Values), us[0])
		}
		c.Why += e.spare(g.Pattern, func(r results.Run) bool { return r.Setup == g.Setup })
		out = append(out, c)
	}
	return out
}

type point struct{ at, ratio float64 }

// won is the ratio below which a difference is a gain and not noise.
const won = .98

// breakEven is where parallel/sequential falls below 1 for good, between two
// points on logarithmic scales. The side is 0 if that is inside; otherwise −1 at
// the first point or 1 at the last.
func breakEven(curve []point) (at float64, side int) {
	last := -1 // where it is still no gain
	for i, p := range curve {
		if p.ratio >= won {
			last = i
		}
	}
	switch {
	case last < 0:
		return curve[0].at, -1
	case last == len(curve)-1:
		return curve[last].at, 1
	}
	a, b := curve[last], curve[last+1]
	if a.ratio <= 1 {
		return a.at, 0
	}
	share := math.Log(a.ratio) / (math.Log(a.ratio) - math.Log(b.ratio))
	return math.Exp(math.Log(a.at) + share*(math.Log(b.at)-math.Log(a.at))), 0
}

func nanos(ns float64) string {
	switch {
	case ns < 1e4:
		return fmt.Sprintf("%.0f ns", ns)
	case ns < 1e6:
		return fmt.Sprintf("%.1f µs", ns/1e3)
	}
	return fmt.Sprintf("%.2f ms", ns/1e6)
}
