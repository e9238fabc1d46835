package shapes

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/experiment"
	judge "github.com/spillway-go/spillway/lab/oldjudge"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// Judge decides every claim of the family, those about channels for every size
// of their buffers that was run.
func (Classic) Judge(runs []results.Run, seed uint64) []results.OldClaim {
	e := evidence{experiment.Evidence{Runs: runs, Seed: seed}}
	buffers := e.buffers()
	var out []results.OldClaim
	for _, of := range []func(evidence, int) []results.OldClaim{g1, g2, g3, g4, g5, g8} {
		for _, b := range buffers {
			out = append(out, of(e, b)...)
		}
	}
	out = append(out, g6(e)...)
	return append(out, g9(e, AsH), g9(e, AsB))
}

// cell names a cell of the plan.
type cell = experiment.Key

// evidence is the runs of a session.
type evidence struct{ experiment.Evidence }

// The figures of a run.
func perOp(r results.Run) float64  { return r.Extra["ns_per_op"] }
func allocs(r results.Run) float64 { return r.Extra["allocs_per_op"] }
func tasks(r results.Run) float64  { return r.Rate("ok") }
func cpu(r results.Run) float64    { return r.Extra["cpu_us"] }

// buffers are the sizes that pools were run with; the smallest if none was.
func (e evidence) buffers() []int {
	var out []int
	for _, r := range e.Runs {
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
	return cell{Setup: Auto, Load: bufferLabel(buffer), Pattern: label(shape, workers)}
}

// spawnWithChan is the shape with the channel, which carries a single value: any
// buffer beyond 1 would be the same.
func spawnWithChan(buffer int) cell {
	return cell{Setup: Auto, Load: bufferLabel(min(buffer, 1)), Pattern: SpawnChan}
}

var (
	serially    = cell{Setup: Auto, Load: noBuffer, Pattern: Serial}
	spawnWithWG = cell{Setup: Auto, Load: noBuffer, Pattern: SpawnWG}
)

func g1(e evidence, buffer int) []results.OldClaim {
	base := e.Of(serially)
	in := judge.Input{Seed: e.Seed, Missing: e.Missing(serially)}
	fastest := map[int]results.Run{}
	for _, r := range e.Runs {
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
	return []results.OldClaim{c}
}

func g2(e evidence, buffer int) []results.OldClaim {
	if buffer > 1 {
		return nil
	}
	return []results.OldClaim{claims.G2.Judge(bufferLabel(buffer), e.Pairs(spawnWithWG, spawnWithChan(buffer), perOp))}
}

// procs is GOMAXPROCS of the runs.
func (e evidence) procs() int {
	for _, r := range e.Runs {
		if n := experiment.Number(r.Params["gomaxprocs"]); n > 0 {
			return int(n)
		}
	}
	return 0
}

func g3(e evidence, buffer int) []results.OldClaim {
	sizes := []int{10}
	if n := e.procs(); n > 0 && n != 10 {
		sizes = []int{n, 10}
	}
	var out []results.OldClaim
	for _, workers := range sizes {
		c := pool(SharedChan, workers, buffer)
		setup := fmt.Sprintf("%d workers, %s", workers, bufferLabel(buffer))
		out = append(out, claims.G3Faster.Judge(setup, e.Pairs(c, spawnWithWG, perOp)), claims.G3Allocs.Judge(setup, e.Values(c, allocs)))
	}
	return out
}

func g4(e evidence, buffer int) []results.OldClaim {
	c := pool(SharedChan, 1000, buffer)
	return []results.OldClaim{
		claims.G4Loses.Judge(bufferLabel(buffer), e.Pairs(c, spawnWithWG, perOp)),
		claims.G4Wins.Judge(bufferLabel(buffer), e.Pairs(c, spawnWithChan(buffer), perOp)),
	}
}

func g5(e evidence, buffer int) []results.OldClaim {
	in := e.Pairs(pool(PerWorker, 100, buffer), pool(SharedChan, 100, buffer), perOp)
	return []results.OldClaim{e.onSeveral(claims.G5.Judge(bufferLabel(buffer), in))}
}

// onSeveral judges claims about contention, which one processor cannot have.
func (e evidence) onSeveral(c results.OldClaim) results.OldClaim {
	if e.procs() == 1 {
		c.Verdict, c.MoreRuns = results.NeedsHardware, 0
		c.Why += " The claim is about goroutines that run at the same time, and GOMAXPROCS is 1 here."
	}
	return c
}

func g6(e evidence) []results.OldClaim {
	var out []results.OldClaim
	for _, mechanism := range mechanisms {
		out = append(out, e.onSeveral(e.bestBound(mechanism)))
	}
	return out
}

func (e evidence) bestBound(mechanism string) results.OldClaim {
	procs := float64(e.procs())
	mean := func(bound int) float64 { // of the logarithms
		sum, runs := 0.0, e.Of(cell{Setup: CPUBound, Load: boundLabel(bound), Pattern: mechanism})
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
	a, b := cell{Setup: CPUBound, Load: boundLabel(inside), Pattern: mechanism}, cell{Setup: CPUBound, Load: boundLabel(outside), Pattern: mechanism}
	in := e.Pairs(a, b, tasks)
	same := cell{Setup: CPUBound, Load: boundLabel(int(procs)), Pattern: mechanism}
	twin := same
	twin.Twin = true
	in.AA = e.Pairs(same, twin, tasks).Pairs
	c := claim.Judge(CPUBound, in)
	c.Why += fmt.Sprintf(" The best bound within the rule is %d, the best other one %d; GOMAXPROCS is %d.", inside, outside, int(procs))
	return c
}

func (e evidence) boundsOf(mechanism string) []int {
	var out []int
	for _, r := range e.Runs {
		if n, err := strconv.Atoi(strings.TrimPrefix(r.Load, "bound ")); err == nil && r.Setup == CPUBound && r.Pattern == mechanism {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// g8 compares the methods by the ratio of spawning to pools of the published
// sizes.
func g8(e evidence, buffer int) []results.OldClaim {
	var out []results.OldClaim
	for _, workers := range []int{10, 100, 1000} {
		ratios := func(setup string, twin bool) map[int]float64 {
			spawn, p := spawnWithChan(buffer), pool(SharedChan, workers, buffer)
			spawn.Setup, p.Setup, spawn.Twin, p.Twin = setup, setup, twin, twin
			out := map[int]float64{}
			left, right := e.Of(spawn), e.Of(p)
			for n, r := range left {
				if other, ok := right[n]; ok && perOp(other) > 0 {
					out[n] = perOp(r) / perOp(other)
				}
			}
			return out
		}
		clock, auto, twins := ratios(Clock, false), ratios(Auto, false), ratios(Clock, true)
		in := judge.Input{Seed: e.Seed, Pairs: join(clock, auto), AA: join(clock, twins)}
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

func middle(m map[int]float64) float64 { return usage.Median(slices.Collect(maps.Values(m))) }

func g9(e evidence, setup string) results.OldClaim {
	at := func(pattern string, twin bool) cell {
		return cell{Setup: setup, Load: e.reuseLoad(setup), Pattern: pattern, Twin: twin}
	}
	spawn, pool, reuse := e.Of(at(Spawn, false)), e.Of(at(Pool, false)), e.Of(at(PoolReuse, false))
	in := judge.Input{
		Seed: e.Seed, Missing: e.Missing(at(Spawn, false), at(Pool, false), at(PoolReuse, false)),
		AA: e.Pairs(at(Pool, false), at(Pool, true), cpu).Pairs,
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
	for _, r := range e.Runs {
		if r.Setup == setup {
			return r.Load
		}
	}
	return "its load"
}
