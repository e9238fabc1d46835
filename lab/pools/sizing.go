package pools

import (
	"context"
	"errors"
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
	"github.com/spillway-go/spillway/loadgen"
	"github.com/spillway-go/spillway/workerpool"
)

// sized is one pool under work that changes once. Jobs arrive in an open loop and
// count only if they end before their deadline; a full pool refuses.
type sized struct {
	Workers  int // 0: not configured
	Phases   []phase
	TurnsMS  int // of the spin in a millisecond of computing
	Deadline time.Duration
	Settle   time.Duration // at the start of each phase
	Measure  time.Duration
	Seed     uint64
}

// phase is a load: a rate of jobs that compute, then wait.
type phase struct {
	PerSecond     float64
	Compute, Wait time.Duration
}

// step is the least time to measure for.
const step = 100 * time.Millisecond

// size returns a run for each phase.
func size(ctx context.Context, s sized) ([]results.Run, error) {
	cfg := workerpool.Config{}
	if s.Workers > 0 {
		cfg = workerpool.Config{MinWorkers: s.Workers, MaxWorkers: s.Workers}
	}
	p, err := workerpool.New(cfg)
	if err != nil {
		return nil, err
	}
	defer p.Close()
	var out []results.Run
	for i, ph := range s.Phases {
		res, err := s.settleThenMeasure(ctx, target{p, ph, s.TurnsMS}, s.Seed+uint64(2*i))
		if err != nil {
			return nil, err
		}
		run, stats := experiment.FromLoad(res), p.Stats()
		run.Elapsed = s.Measure.Seconds() // jobs intended in this time, whenever they ended
		run.Series = nil
		run.Params = map[string]any{"workers_then": stats.Workers, "queue": stats.QueueSize, "generator": res.Why}
		out = append(out, run)
	}
	return out, ctx.Err()
}

// settleThenMeasure sends one continuous stream and returns the result of its second
// part.
func (s sized) settleThenMeasure(ctx context.Context, t target, seed uint64) (*loadgen.Result, error) {
	stream := func(d time.Duration, seed uint64) (*loadgen.Result, error) {
		return loadgen.Run(ctx, loadgen.Config{Target: t, Timeout: s.Deadline, Open: loadgen.Poisson(t.PerSecond, d, seed)})
	}
	settled := make(chan error, 1)
	if s.Settle > 0 {
		go func() {
			_, err := stream(s.Settle, seed)
			settled <- err
		}()
		select {
		case <-time.After(s.Settle): // its last jobs end later
		case <-ctx.Done():
		}
	} else {
		settled <- nil
	}
	res, err := stream(s.Measure, seed+1)
	return res, errors.Join(err, <-settled)
}

// slice is how long a job computes before it checks its context and yields. The
// generator is in the same process: behind jobs that keep a processor for as long as
// the runtime allows it was late by half a second, which distorted all sizes.
const slice = 100 * time.Microsecond

// target submits jobs to a pool and waits for their end.
type target struct {
	pool *workerpool.Pool
	phase
	turnsMS int
}

func (t target) Do(ctx context.Context, _ uint64) loadgen.Outcome {
	ended := make(chan struct{})
	err := t.pool.TrySubmit(ctx, func(ctx context.Context) error {
		defer close(ended)
		for left := t.Compute; left > 0 && ctx.Err() == nil; left -= slice {
			burn.Turns(int(min(left, slice).Seconds() * 1000 * float64(t.turnsMS)))
			runtime.Gosched()
		}
		if t.Wait == 0 {
			return ctx.Err()
		}
		timer := time.NewTimer(t.Wait)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if err != nil {
		return loadgen.FromError(err)
	}
	select {
	case <-ended:
	case <-ctx.Done(): // may be before the job starts; then it never starts
	}
	return loadgen.FromError(ctx.Err())
}

// workKind is a kind of work, before and after the change.
type workKind struct {
	name    string
	phases  [2]phase
	waiting bool // hardly uses a processor: pools can run side by side
	largest int  // fixed size that is of interest, in multiples of GOMAXPROCS
}

const sizingDeadline = 200 * time.Millisecond

// workKinds compute, wait, or both. The computing load is more than the processors can
// do, so that a pool that is too large starts jobs that it cannot finish in time.
func workKinds() []workKind {
	procs, ms := float64(runtime.GOMAXPROCS(0)), time.Millisecond
	return []workKind{
		{"CPU-bound", [2]phase{{1.5 * procs * 250, 4 * ms, 0}, {1.5 * procs * 250, 8 * ms, 0}}, false, 16},
		{"I/O-bound", [2]phase{{1000, 0, 20 * ms}, {1000, 0, 80 * ms}}, true, 64},
		{"mixed", [2]phase{{1.3 * procs * 500, 2 * ms, 20 * ms}, {1.3 * procs * 500, 2 * ms, 80 * ms}}, false, 64},
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
			s := sized{Workers: workers, Phases: kind.phases[:], Deadline: sizingDeadline, Settle: p.Settle, Measure: p.Measure}
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
							exit, err := contestant.Run(ctx, contestant.Spec{Role: roleSizing, Input: s, MemoryCap: p.MemoryCap}, &all)
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
