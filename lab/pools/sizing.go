package pools

import (
	"context"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// workKind is a kind of work, before and after the change.
type workKind struct {
	name    string
	phases  []Phase
	waiting bool // hardly uses a processor: pools can run side by side
	largest int  // fixed size that is of interest, in multiples of GOMAXPROCS
}

const sizingDeadline = 200 * time.Millisecond

// What the claim is about: the fixed sizes, in multiples of GOMAXPROCS, and the time that
// a pool without a number has.
var (
	multiples    = []int{1, 2, 4, 8, 16, 32, 64}
	sizingSettle = 5 * time.Second
)

// workKinds compute, wait, or both. The computing load is more than the processors can
// do, so that a pool that is too large starts jobs that it cannot finish in time.
func workKinds() []workKind {
	procs, ms := float64(runtime.GOMAXPROCS(0)), time.Millisecond
	return []workKind{
		{"CPU-bound", []Phase{{1.5 * procs * 250, 4 * ms, 0}, {1.5 * procs * 250, 8 * ms, 0}}, false, 16},
		{"I/O-bound", []Phase{{1000, 0, 20 * ms}, {1000, 0, 80 * ms}}, true, 64},
		{"mixed", []Phase{{1.3 * procs * 500, 2 * ms, 20 * ms}, {1.3 * procs * 500, 2 * ms, 80 * ms}}, false, 64},
	}
}

// among are those of the multiples of GOMAXPROCS that are of interest.
func (w workKind) among(multiples []int) []int {
	return slices.DeleteFunc(slices.Clone(multiples), func(n int) bool { return n > w.largest })
}

// phaseNames are the loads of the report.
var phaseNames = []string{"from the start", "after the change"}

// key names a pool by its number of workers; 0 is Spillway without a number.
func (w workKind) key(phase string, workers int) ledger.Key {
	k := ledger.Key{Setup: "sizing, " + w.name, Load: phase, Pattern: Spillway}
	if workers > 0 {
		k.Pattern = "fixed " + strconv.Itoa(workers)
	}
	return k
}

func (p *planner) sizing() {
	p.Prepare = func(context.Context) error { p.turnsMS = turnsAvailable(); return nil }
	for _, kind := range workKinds() {
		p.sized(kind, 0, false)
		p.sized(kind, 0, true)
		for _, multiple := range kind.among(p.Sizes) {
			p.sized(kind, multiple*runtime.GOMAXPROCS(0), false)
		}
	}
}

// sized adds one pool under both phases.
func (p *planner) sized(kind workKind, workers int, twin bool) {
	s := Sized{Workers: workers, Phases: kind.phases, Deadline: sizingDeadline, Settle: p.Settle, Measure: p.Measure}
	if workers > 0 {
		s.Settle = min(p.Settle, 2*sizingDeadline) // a fixed size has nothing to adapt
	}
	g := experiment.Group{Expect: 2 * (s.Settle + s.Measure + sizingDeadline/2)}
	for _, phase := range phaseNames {
		k := kind.key(phase, workers)
		k.Twin = twin
		g.Keys = append(g.Keys, k)
	}
	if kind.waiting {
		g.Beside = g.Keys[0].Setup
	}
	g.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		s := s
		s.Seed, s.TurnsMS = t.Seed, p.turnsMS
		runs := make([]results.Run, len(g.Keys))
		exit, err := contestant.Run(ctx, p.spec(RoleSizing, s), &runs)
		for i := range runs {
			runs[i].Killed = exit.Killed
		}
		return runs, err
	}
	p.Groups = append(p.Groups, g)
}

// turnsAvailable is how many turns a processor does in a millisecond while all of them
// compute: the most of several short tries on the machine as it is. A machine busy with
// other work can do less, and would otherwise be offered many times its capacity.
func turnsAvailable() int {
	const chunk, window = 20_000, 100 * time.Millisecond
	most := 0.0
	for range 5 {
		var all sync.WaitGroup
		var turns atomic.Int64
		began := time.Now()
		for range runtime.GOMAXPROCS(0) {
			all.Go(func() {
				for time.Since(began) < window {
					burn.Turns(chunk)
					turns.Add(chunk)
				}
			})
		}
		all.Wait()
		most = max(most, float64(turns.Load())/time.Since(began).Seconds()/1000/float64(runtime.GOMAXPROCS(0)))
	}
	return max(1, int(most))
}
