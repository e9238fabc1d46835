package shapes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/judge"
	"github.com/spillway-go/spillway/lab/results"
)

// Judge decides every claim of the family, those about channels for every size
// of their buffers that was run.
func (Experiment) Judge(runs []results.Run, seed uint64) []results.Claim {
	e := evidence{runs, seed}
	buffers := e.buffers()
	var out []results.Claim
	for _, of := range []func(evidence, int) []results.Claim{g1, g2, g3, g4, g5, g8} {
		for _, b := range buffers {
			out = append(out, of(e, b)...)
		}
	}
	out = append(out, g6(e)...)
	return append(out, g9(e, AsH), g9(e, AsB))
}

type cell struct {
	setup, load, pattern string
	twin                 bool
}

// evidence is the runs of a session.
type evidence struct {
	runs []results.Run
	seed uint64
}

// of returns the measured runs of a cell by their repeat.
func (e evidence) of(c cell) map[int]results.Run {
	out := map[int]results.Run{}
	for _, r := range e.runs {
		if r.Setup == c.setup && r.Load == c.load && r.Pattern == c.pattern && r.Twin == c.twin && r.Failed == "" && r.Killed == "" && r.Elapsed > 0 {
			out[r.Repeat] = r
		}
	}
	return out
}

func (e evidence) missing(cells ...cell) string {
	for _, c := range cells {
		if len(e.of(c)) > 0 {
			continue
		}
		for _, r := range e.runs {
			if why := r.Killed + r.Failed; why != "" && r.Setup == c.setup && r.Load == c.load && r.Pattern == c.pattern {
				return fmt.Sprintf("%s with %s has no measurement: %s.", c.pattern, c.load, why)
			}
		}
		return fmt.Sprintf("%s with %s was not run.", c.pattern, c.load)
	}
	return ""
}

// pairs asks the figure of two cells in the repeats that have both.
func (e evidence) pairs(a, b cell, figure func(results.Run) float64) judge.Input {
	in := judge.Input{Seed: e.seed, Missing: e.missing(a, b)}
	left, right := e.of(a), e.of(b)
	for _, n := range slices.Sorted(maps.Keys(left)) {
		if other, ok := right[n]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: figure(left[n]), B: figure(other)})
		}
	}
	return in
}

// The figures that runs are asked for.
func perOp(r results.Run) float64  { return r.Extra["ns_per_op"] }
func allocs(r results.Run) float64 { return r.Extra["allocs_per_op"] }
func tasks(r results.Run) float64  { return r.Rate("ok") }
func cpu(r results.Run) float64    { return r.Extra["cpu_us"] }

// buffers are the sizes that pools were run with; the smallest if none was.
func (e evidence) buffers() []int {
	var out []int
	for _, r := range e.runs {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Load, "buffer ")); err == nil && isPool(r.Pattern) {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		return []int{0}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func pool(shape string, workers, buffer int) cell {
	return cell{setup: Auto, load: bufferLabel(buffer), pattern: label(shape, workers)}
}

// spawnWithChan is the shape with the channel, which carries a single value: any
// buffer beyond 1 would be the same.
func spawnWithChan(buffer int) cell {
	return cell{setup: Auto, load: bufferLabel(min(buffer, 1)), pattern: SpawnChan}
}

var (
	serially    = cell{setup: Auto, load: noBuffer, pattern: Serial}
	spawnWithWG = cell{setup: Auto, load: noBuffer, pattern: SpawnWG}
)

func g1(e evidence, buffer int) []results.Claim {
	base := e.of(serially)
	in := judge.Input{Seed: e.seed, Missing: e.missing(serially)}
	fastest := map[int]results.Run{}
	for _, r := range e.runs {
		concurrent := r.Setup == Auto && r.Pattern != Serial && !r.Twin && r.Failed == "" && r.Killed == "" &&
			(r.Load == bufferLabel(buffer) || r.Load == noBuffer || r.Pattern == SpawnChan && r.Load == bufferLabel(min(buffer, 1)))
		if best, ok := fastest[r.Repeat]; concurrent && (!ok || perOp(r) < perOp(best)) {
			fastest[r.Repeat] = r
		}
	}
	which := ""
	for _, n := range slices.Sorted(maps.Keys(base)) {
		if r, ok := fastest[n]; ok {
			in.Pairs = append(in.Pairs, judge.Pair{A: perOp(r), B: perOp(base[n])})
			which = fmt.Sprintf(" In repeat %d %s was the fastest, with %.3g ns against %.3g.", n+1, r.Pattern, perOp(r), perOp(base[n]))
		}
	}
	c := claims.G1.Judge(bufferLabel(buffer), in)
	c.Why += which
	return []results.Claim{c}
}

func g2(e evidence, buffer int) []results.Claim {
	if buffer > 1 {
		return nil
	}
	return []results.Claim{claims.G2.Judge(bufferLabel(buffer), e.pairs(spawnWithWG, spawnWithChan(buffer), perOp))}
}

// procs is GOMAXPROCS of the runs.
func (e evidence) procs() int {
	for _, r := range e.runs {
		if n := number(r.Params["gomaxprocs"]); n > 0 {
			return int(n)
		}
	}
	return 0
}

func g3(e evidence, buffer int) []results.Claim {
	sizes := []int{10}
	if n := e.procs(); n > 0 && n != 10 {
		sizes = []int{n, 10}
	}
	var out []results.Claim
	for _, workers := range sizes {
		c := pool(SharedChan, workers, buffer)
		setup := fmt.Sprintf("%d workers, %s", workers, bufferLabel(buffer))
		none := judge.Input{Seed: e.seed, Missing: e.missing(c)}
		for _, r := range e.of(c) {
			none.Values = append(none.Values, allocs(r))
		}
		out = append(out, claims.G3Faster.Judge(setup, e.pairs(c, spawnWithWG, perOp)), claims.G3Allocs.Judge(setup, none))
	}
	return out
}

func g4(e evidence, buffer int) []results.Claim {
	c := pool(SharedChan, 1000, buffer)
	return []results.Claim{
		claims.G4Loses.Judge(bufferLabel(buffer), e.pairs(c, spawnWithWG, perOp)),
		claims.G4Wins.Judge(bufferLabel(buffer), e.pairs(c, spawnWithChan(buffer), perOp)),
	}
}

func g5(e evidence, buffer int) []results.Claim {
	in := e.pairs(pool(PerWorker, 100, buffer), pool(SharedChan, 100, buffer), perOp)
	return []results.Claim{e.onSeveral(claims.G5.Judge(bufferLabel(buffer), in))}
}

// onSeveral answers claims about contention, which one processor cannot have.
func (e evidence) onSeveral(c results.Claim) results.Claim {
	if e.procs() == 1 {
		c.Verdict, c.MoreRuns = results.NeedsHardware, 0
		c.Why += " The claim is about goroutines that run at the same time, and GOMAXPROCS is 1 here."
	}
	return c
}

func g6(e evidence) []results.Claim {
	var out []results.Claim
	for _, mechanism := range mechanisms {
		out = append(out, e.onSeveral(e.bestBound(mechanism)))
	}
	return out
}

func (e evidence) bestBound(mechanism string) results.Claim {
	procs := float64(e.procs())
	mean := func(bound int) float64 { // of the logarithms
		sum, runs := 0.0, e.of(cell{setup: CPUBound, load: boundLabel(bound), pattern: mechanism})
		for _, r := range runs {
			sum += math.Log(tasks(r))
		}
		return sum / float64(max(len(runs), 1))
	}
	inside, outside := 0, 0
	for _, bound := range e.boundsOf(mechanism) {
		best := &outside
		if float64(bound) >= procs/2 && float64(bound) <= 2*procs {
			best = &inside
		}
		if *best == 0 || mean(bound) > mean(*best) {
			*best = bound
		}
	}
	claim := claims.G6Of(mechanism)
	if inside == 0 || outside == 0 {
		return claim.Judge(CPUBound, judge.Input{Missing: mechanism + " was not run with bounds on both sides of the rule."})
	}
	a, b := cell{setup: CPUBound, load: boundLabel(inside), pattern: mechanism}, cell{setup: CPUBound, load: boundLabel(outside), pattern: mechanism}
	in := e.pairs(a, b, tasks)
	same := cell{setup: CPUBound, load: boundLabel(int(procs)), pattern: mechanism}
	twin := same
	twin.twin = true
	in.AA = e.pairs(same, twin, tasks).Pairs
	c := claim.Judge(CPUBound, in)
	c.Why += fmt.Sprintf(" The best bound within the rule is %d, the best other one %d; GOMAXPROCS is %d.", inside, outside, int(procs))
	return c
}

func (e evidence) boundsOf(mechanism string) []int {
	var out []int
	for _, r := range e.runs {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Load, "bound ")); err == nil && r.Setup == CPUBound && r.Pattern == mechanism {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// g8 compares the methods by the ratio of spawning to pools of the published
// sizes.
func g8(e evidence, buffer int) []results.Claim {
	var out []results.Claim
	for _, workers := range []int{10, 100, 1000} {
		ratios := func(setup string, twin bool) map[int]float64 {
			spawn, p := spawnWithChan(buffer), pool(SharedChan, workers, buffer)
			spawn.setup, p.setup, spawn.twin, p.twin = setup, setup, twin, twin
			out := map[int]float64{}
			left, right := e.of(spawn), e.of(p)
			for n, r := range left {
				if other, ok := right[n]; ok && perOp(other) > 0 {
					out[n] = perOp(r) / perOp(other)
				}
			}
			return out
		}
		clock, auto, twins := ratios(Clock, false), ratios(Auto, false), ratios(Clock, true)
		in := judge.Input{Seed: e.seed, Pairs: join(clock, auto), AA: join(clock, twins)}
		if len(in.Pairs) == 0 {
			in.Missing = fmt.Sprintf("PoolSharedChan_%d with %s was not measured by both methods.", workers, bufferLabel(buffer))
		}
		setup := fmt.Sprintf("pool of %d, %s", workers, bufferLabel(buffer))
		c := claims.G8(claims.G8Higher.Judge(setup, in), claims.G8Lower.Judge(setup, in))
		if len(in.Pairs) > 0 {
			c.Why += fmt.Sprintf(" Spawning over the pool is %.2fx by the wall clock and %.2fx auto-scaled.", middle(clock), middle(auto))
		}
		out = append(out, c)
	}
	return out
}

func join(a, b map[int]float64) []judge.Pair {
	var out []judge.Pair
	for _, n := range slices.Sorted(maps.Keys(a)) {
		if other, ok := b[n]; ok {
			out = append(out, judge.Pair{A: a[n], B: other})
		}
	}
	return out
}

// middle is the median.
func middle(m map[int]float64) float64 {
	all := slices.Sorted(maps.Values(m))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

func g9(e evidence, setup string) results.Claim {
	at := func(pattern string, twin bool) cell {
		return cell{setup: setup, load: e.reuseLoad(setup), pattern: pattern, twin: twin}
	}
	spawn, pool, reuse := e.of(at(Spawn, false)), e.of(at(Pool, false)), e.of(at(PoolReuse, false))
	in := judge.Input{
		Seed: e.seed, Missing: e.missing(at(Spawn, false), at(Pool, false), at(PoolReuse, false)),
		AA: e.pairs(at(Pool, false), at(Pool, true), cpu).Pairs,
	}
	objects, goroutines := map[int]float64{}, map[int]float64{}
	for n, p := range pool {
		a, okA := spawn[n]
		b, okB := reuse[n]
		if okA && okB {
			objects[n], goroutines[n] = cpu(p)-cpu(b), cpu(a)-cpu(p)
		}
	}
	in.Pairs = join(objects, goroutines)
	c := claims.G9.Judge(setup, in)
	if len(in.Pairs) > 0 {
		c.Why += fmt.Sprintf(" Object reuse saves %.3g µs a request, goroutine reuse %.3g µs (medians).", middle(objects), middle(goroutines))
	}
	return c
}

func (e evidence) reuseLoad(setup string) string {
	for _, r := range e.runs {
		if r.Setup == setup {
			return r.Load
		}
	}
	return "its load"
}

// number reads a parameter, which comes back from disk as a float64.
func number(v any) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	}
	return 0
}
