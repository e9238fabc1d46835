package pools

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// step is the least time to measure for.
const step = 100 * time.Millisecond

// workKind is a kind of work, before and after the change.
type workKind struct {
	name    string
	phases  [2]Phase
	waiting bool // hardly uses a processor: pools can run side by side
	largest int  // fixed size that is of interest, in multiples of GOMAXPROCS
}

const sizingDeadline = 200 * time.Millisecond

// workKinds compute, wait, or both. The computing load is more than the processors can
// do, so that a pool that is too large starts jobs that it cannot finish in time.
func workKinds() []workKind {
	procs, ms := float64(runtime.GOMAXPROCS(0)), time.Millisecond
	return []workKind{
		{"CPU-bound", [2]Phase{{1.5 * procs * 250, 4 * ms, 0}, {1.5 * procs * 250, 8 * ms, 0}}, false, 16},
		{"I/O-bound", [2]Phase{{1000, 0, 20 * ms}, {1000, 0, 80 * ms}}, true, 64},
		{"mixed", [2]Phase{{1.3 * procs * 500, 2 * ms, 20 * ms}, {1.3 * procs * 500, 2 * ms, 80 * ms}}, false, 64},
	}
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

// Phases, as loads of the report.
var phaseNames = [2]string{"from the start", "after the change"}

func setupSizing(kind string) string { return "sizing, " + kind }

func (p *planner) sizing() {
	p.prepare = func(context.Context) error { p.turnsMS = turnsAvailable(); return nil }
	for _, kind := range workKinds() {
		for _, share := range append([]int{0}, p.Sizes...) {
			if share > kind.largest {
				continue
			}
			workers := share * runtime.GOMAXPROCS(0)
			s := Sized{Workers: workers, Phases: kind.phases[:], Deadline: sizingDeadline, Settle: p.Settle, Measure: p.Measure}
			name := Spillway
			if workers > 0 {
				name = "fixed " + strconv.Itoa(workers)
				s.Settle = min(p.Settle, 2*sizingDeadline) // a fixed size has nothing to adapt
			}
			beside := fmt.Sprintf("%s, %s", setupSizing(kind.name), name)
			if kind.waiting {
				beside = setupSizing(kind.name)
			}
			var once experiment.Shared[[]results.Run]
			for i, phase := range phaseNames {
				p.cells = append(p.cells, experiment.Cell{
					Setup: setupSizing(kind.name), Load: phase, Pattern: name, Beside: beside,
					Expect: 2 * (s.Settle + s.Measure + sizingDeadline/2),
					Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
						all, err := once.Of(t.Repeat, func() (all []results.Run, err error) {
							s := s
							s.Seed, s.TurnsMS = t.Seed, p.turnsMS
							exit, err := contestant.Run(ctx, p.spec(RoleSizing, s), &all)
							if err == nil && exit.Killed != "" {
								err = fmt.Errorf("the pool was %s", exit.Killed)
							}
							return all, err
						})
						if err != nil {
							return results.Run{}, err
						}
						return all[i], nil
					},
				})
			}
		}
	}
}
