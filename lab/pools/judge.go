package pools

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// Judge decides every claim in every cell that it speaks of.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{cells: map[cell]map[int]*results.Run{}, seed: seed}
	for i := range runs {
		e.add(&runs[i])
	}
	var out []results.OldClaim
	for _, part := range []func() []results.OldClaim{e.many, e.one, e.refusals, e.calls, e.busy, e.burst, e.sizing} {
		out = append(out, part()...)
	}
	slices.SortStableFunc(out, func(a, b results.OldClaim) int { return order(a.ID) - order(b.ID) })
	return out
}

// order is the claim's position in the ledger.
func order(id string) int {
	return slices.IndexFunc(claims.Pools.Claims, func(c claims.Claim) bool { return c.ID == id })
}

// place is a set-up and a load: what one table compares.
type place struct {
	setup, load        string
	producers, workers float64
	work               float64 // µs
}

// String names a place in a verdict.
func (p place) String() string {
	s := "s"
	if p.producers == 1 {
		s = ""
	}
	return fmt.Sprintf("%.0f producer%s, %.0f workers", p.producers, s, p.workers)
}

type cell struct {
	place
	pattern string
	twin    bool
}

// evidence is the measured runs by cell and repeat.
type evidence struct {
	cells map[cell]map[int]*results.Run
	seed  uint64
}

func (e evidence) add(r *results.Run) {
	if r.Failed != "" || r.Killed != "" {
		return
	}
	param := func(name string) float64 { v, _ := r.Params[name].(float64); return v }
	c := cell{place{setup: r.Setup, load: r.Load}, r.Pattern, r.Twin}
	if param("producers") > 0 {
		c.producers, c.workers, c.work = param("producers"), param("workers"), param("work_us")
	}
	if e.cells[c] == nil {
		e.cells[c] = map[int]*results.Run{}
	}
	e.cells[c][r.Repeat] = r
}

// sorted lists the cells in an order that does not change.
func (e evidence) sorted() []cell {
	return slices.SortedFunc(maps.Keys(e.cells), func(a, b cell) int {
		return cmp.Or(cmp.Compare(a.setup, b.setup), cmp.Compare(a.work, b.work), cmp.Compare(a.producers, b.producers),
			cmp.Compare(a.workers, b.workers), cmp.Compare(a.load, b.load), cmp.Compare(a.pattern, b.pattern))
	})
}

// places are those of a set-up that satisfy want.
func (e evidence) places(want func(place) bool) []place {
	var out []place
	for _, c := range e.sorted() {
		if want(c.place) && !slices.Contains(out, c.place) {
			out = append(out, c.place)
		}
	}
	return out
}

// mean is the mean of a figure over a cell's repeats.
func (e evidence) mean(c cell, key string) float64 {
	sum := 0.0
	for _, r := range e.cells[c] {
		sum += r.Extra[key]
	}
	return sum / float64(max(len(e.cells[c]), 1))
}

// quickest is the contestant with the shortest mean time among those wanted.
func (e evidence) quickest(at place, want func(string) bool) (best cell) {
	for _, c := range e.sorted() {
		if c.place == at && want(c.pattern) && (best.pattern == "" || e.mean(c, "ns") < e.mean(best, "ns")) {
			best = c
		}
	}
	return best
}

func rival(name string) bool   { return name != Spillway }
func library(name string) bool { return name != Spillway && name != Channel }

// ratios are a pair for each repeat that has both: the median over its rounds
// of a's time over b's.
func (e evidence) ratios(a, b cell) []judge.Pair {
	var out []judge.Pair
	for _, n := range slices.Sorted(maps.Keys(e.cells[a])) {
		other, ok := e.cells[b][n]
		if !ok {
			continue
		}
		out = append(out, judge.Pair{A: usage.Median(e.cells[a][n].Ratios(other, "ns")), B: 1})
	}
	return out
}

// against judges our time over another cell's.
func (e evidence) against(claim claims.Claim, at place, other cell) results.OldClaim {
	us := cell{place: at, pattern: Spillway}
	in := judge.Input{Seed: e.seed, Pairs: e.ratios(us, other)}
	if len(e.cells[us]) == 0 || len(e.cells[other]) == 0 {
		in.Missing = "Spillway or what it is to be compared with was not measured."
	}
	out := claim.Judge(at.String(), in)
	if in.Missing == "" {
		floor := 0.0
		for _, p := range e.ratios(cell{place: at, pattern: Spillway, twin: true}, us) {
			floor = max(floor, math.Abs(p.A/p.B-1))
		}
		out.NoiseFloor = floor
		out.Why += fmt.Sprintf(" Spillway takes %s, %s %s.", nanos(e.mean(us, "ns")), named(other, at), nanos(e.mean(other, "ns")))
		if floor > 0 {
			out.Why += fmt.Sprintf(" Twins of Spillway differ by up to %.0f %%.", 100*floor)
		}
	}
	return out
}

func named(c cell, at place) string {
	if c.place == at {
		return c.pattern
	}
	return fmt.Sprintf("with %.0f workers", c.workers)
}

func nanos(ns float64) string {
	switch {
	case ns < 100:
		return fmt.Sprintf("%.1f ns", ns)
	case ns < 10e3:
		return fmt.Sprintf("%.0f ns", ns)
	}
	return fmt.Sprintf("%.1f µs", ns/1e3)
}

// figures are a figure of each repeat of a cell.
func (e evidence) figures(c cell, key string) (out []float64) {
	for _, n := range slices.Sorted(maps.Keys(e.cells[c])) {
		out = append(out, e.cells[c][n].Extra[key])
	}
	return out
}

// allocs judges allocations for one job.
func (e evidence) allocs(claim claims.Claim, at place) results.OldClaim {
	in := judge.Input{Seed: e.seed}
	for _, x := range e.figures(cell{place: at, pattern: Spillway}, "allocs") {
		in.Values = append(in.Values, math.Round(100*x)/100)
	}
	if len(in.Values) == 0 {
		in.Missing = "Spillway was not measured."
	}
	return claim.Judge(at.String(), in)
}

// submitted selects the places of submitted jobs of that work by that many.
func submitted(work, producers float64) func(place) bool {
	return func(p place) bool {
		return strings.HasSuffix(p.setup, setupJobs) && p.work == work && p.producers == producers
	}
}

func (e evidence) many() (out []results.OldClaim) {
	for _, at := range e.places(submitted(0, 1000)) {
		out = append(out, e.against(claims.PoolsMany, at, e.quickest(at, rival)),
			e.against(claims.PoolsManyLibrary, at, e.quickest(at, library)), e.allocs(claims.PoolsManyAllocs, at))
	}
	return out
}

func (e evidence) one() (out []results.OldClaim) {
	all := e.places(submitted(0, 1))
	for _, at := range all {
		claim := claims.PoolsOne
		if at.workers >= 1000 {
			claim = claims.PoolsOneWide
		}
		out = append(out, e.against(claim, at, e.quickest(at, rival)))
	}
	if len(all) > 1 {
		out = append(out, e.against(claims.PoolsFlat, all[len(all)-1], cell{place: all[0], pattern: Spillway}))
	}
	return out
}

func (e evidence) refusals() (out []results.OldClaim) {
	for _, at := range e.places(func(p place) bool { return p.setup == setupRefuse && (p.producers == 1 || p.producers == 1000) }) {
		time := judge.Input{Seed: e.seed, Values: e.figures(cell{place: at, pattern: Spillway}, "ns")}
		out = append(out, e.against(claims.PoolsRefusal, at, cell{place: at, pattern: Channel}),
			e.against(claims.PoolsRefusalAnts, at, cell{place: at, pattern: Ants}),
			claims.PoolsRefusalTime.Judge(at.String(), time), e.allocs(claims.PoolsRefusalAllocs, at))
	}
	return out
}

func (e evidence) calls() (out []results.OldClaim) {
	for _, at := range e.places(func(p place) bool { return p.setup == setupCall }) {
		out = append(out, e.against(claims.PoolsCall, at, cell{place: at, pattern: Channel}),
			e.against(claims.PoolsCallTunny, at, cell{place: at, pattern: Tunny}),
			e.against(claims.PoolsCallPond, at, cell{place: at, pattern: Pond}), e.allocs(claims.PoolsCallAllocs, at))
	}
	return out
}

func (e evidence) busy() (out []results.OldClaim) {
	for _, producers := range []float64{1, 1000} {
		for _, at := range e.places(submitted(1, producers)) {
			out = append(out, e.against(claims.PoolsShort, at, e.quickest(at, rival)))
		}
		for _, at := range e.places(submitted(20, producers)) {
			out = append(out, e.against(claims.PoolsLong, at, e.quickest(at, rival)))
		}
	}
	return out
}

func (e evidence) burst() (out []results.OldClaim) {
	for _, at := range e.places(func(p place) bool { return p.setup == setupBurst }) {
		us, channel := cell{place: at, pattern: Spillway}, cell{place: at, pattern: Channel}
		missing := ""
		if len(e.cells[us]) == 0 {
			missing = "Spillway was not measured, or killed."
		}
		finish, left := judge.Input{Seed: e.seed, Missing: missing}, judge.Input{Seed: e.seed, Missing: missing, Values: e.figures(us, "left")}
		for _, x := range e.figures(us, "finish") {
			finish.Pairs = append(finish.Pairs, judge.Pair{A: x, B: 1})
		}
		out = append(out, claims.PoolsBurstFinish.Judge(at.load, finish),
			e.pair(claims.PoolsBurstCPU, us, channel, "cpu_seconds", "%.2f s"), e.pair(claims.PoolsBurstMemory, us, channel, "peak_rss", "%.0f bytes"),
			claims.PoolsBurstLeft.Judge(at.load, left))
	}
	return out
}

// pair judges a figure of a over that of b, repeat by repeat.
func (e evidence) pair(claim claims.Claim, a, b cell, key, format string) results.OldClaim {
	in := judge.Input{Seed: e.seed}
	for _, n := range slices.Sorted(maps.Keys(e.cells[a])) {
		if r, ok := e.cells[b][n]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: e.cells[a][n].Extra[key], B: r.Extra[key]})
		}
	}
	if len(in.Pairs) == 0 {
		in.Missing = fmt.Sprintf("%s and %s were not both measured.", a.pattern, b.pattern)
	}
	out := claim.Judge(a.load, in)
	if in.Missing == "" {
		out.Why += fmt.Sprintf(" %s "+format+", %s "+format+".", a.pattern, e.mean(a, key), b.pattern, e.mean(b, key))
	}
	return out
}

func (e evidence) sizing() (out []results.OldClaim) {
	good := func(c cell) float64 {
		sum := 0.0
		for _, r := range e.cells[c] {
			sum += r.Rate("ok")
		}
		return sum / float64(max(len(e.cells[c]), 1))
	}
	for _, at := range e.places(func(p place) bool { return strings.HasPrefix(p.setup, setupSizing("")) }) {
		us, best := cell{place: at, pattern: Spillway}, cell{}
		for _, c := range e.sorted() {
			if c.place == at && rival(c.pattern) && (best.pattern == "" || good(c) > good(best)) {
				best = c
			}
		}
		in := judge.Input{Seed: e.seed}
		for _, n := range slices.Sorted(maps.Keys(e.cells[us])) {
			if r, ok := e.cells[best][n]; ok {
				if most := r.Rate("ok"); most > 0 {
					in.Values = append(in.Values, 100*e.cells[us][n].Rate("ok")/most)
				}
			}
		}
		if len(in.Values) == 0 {
			in.Missing = "The pool without a number was not measured, or with no fixed size did a job end in time."
		}
		c := claims.PoolsSizing.Judge(strings.TrimPrefix(at.setup, setupSizing(""))+", "+at.load, in)
		if in.Missing == "" {
			c.Why += fmt.Sprintf(" Without a number %.0f/s ended in time, with the best fixed size (%s) %.0f/s.", good(us), best.pattern, good(best))
		}
		out = append(out, c)
	}
	return out
}
