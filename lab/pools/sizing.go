package pools

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/burn"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
	"github.com/spillway-go/spillway/workerpool"
)

// workKind is a kind of work, before and after the change.
type workKind struct {
	name   string
	phases []phase
	beside string // pools that run side by side, because they hardly use a processor
}

// phase is a load: a rate of jobs that compute, then wait.
type phase struct {
	PerSecond     float64
	Compute, Wait time.Duration
}

// deadline is how soon a job has to end, to count.
const deadline = 200 * time.Millisecond

// workKinds compute, wait, or both. The computing load is more than the processors can
// do, so that a pool that is too large starts jobs that it cannot finish in time.
func workKinds() []workKind {
	procs, ms := float64(runtime.GOMAXPROCS(0)), time.Millisecond
	return []workKind{
		{"CPU-bound", []phase{{1.5 * procs * 250, 4 * ms, 0}, {1.5 * procs * 250, 8 * ms, 0}}, ""},
		{"I/O-bound", []phase{{1000, 0, 20 * ms}, {1000, 0, 80 * ms}}, "sizing, I/O-bound"},
		{"mixed", []phase{{1.3 * procs * 500, 2 * ms, 20 * ms}, {1.3 * procs * 500, 2 * ms, 80 * ms}}, ""},
	}
}

var phaseNames = []string{"from the start", "after the change"}

// key names a pool by its number of workers; 0 is Spillway without a number.
func (w workKind) key(phase string, workers int) ledger.Key {
	k := ledger.Key{Setup: "sizing, " + w.name, Load: phase, Pattern: Spillway}
	if workers > 0 {
		k.Pattern = "fixed " + strconv.Itoa(workers)
	}
	return k
}

// The goal gives a pool so long to settle, and compares it with these multiples of GOMAXPROCS.
const (
	settle  = 5 * time.Second
	measure = time.Second
)

var multiples = []int{1, 2, 4, 8, 16, 32, 64}

// sizing adds each kind of work under each fixed size, and twice without one.
func sizing(p *experiment.Plan) {
	turnsMS := 0
	p.Prepare = func(context.Context) error { turnsMS = turnsAvailable(); return nil }
	for _, kind := range workKinds() {
		for _, multiple := range multiples {
			kind.sized(p, multiple*runtime.GOMAXPROCS(0), false, &turnsMS)
		}
		kind.sized(p, 0, false, &turnsMS)
		kind.sized(p, 0, true, &turnsMS)
	}
}

// sized adds a pool of so many workers, or without a number.
func (w workKind) sized(p *experiment.Plan, workers int, twin bool, turnsMS *int) {
	job := sized{Workers: workers, Phases: w.phases, Settle: settle, Measure: measure}
	if workers > 0 {
		job.Settle = 2 * deadline // a fixed size has nothing to adapt
	}
	g := experiment.Group{Beside: w.beside, Expect: 2 * (job.Settle + job.Measure + deadline/2)}
	for _, phase := range phaseNames {
		k := w.key(phase, workers)
		k.Twin = twin
		g.Keys = append(g.Keys, k)
	}
	g.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		job.Seed, job.TurnsMS = t.Seed, *turnsMS
		runs := make([]results.Run, len(phaseNames))
		exit, err := contestant.Run(ctx, spec(roleSizing, job), &runs)
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
	const turns = 20_000_000 // some 20 ms
	quickest := time.Hour
	for range 20 {
		var all sync.WaitGroup
		began := time.Now()
		for range runtime.GOMAXPROCS(0) {
			all.Go(func() { burn.Turns(turns) })
		}
		all.Wait()
		quickest = min(quickest, time.Since(began))
	}
	return max(1, int(turns/quickest.Seconds()/1000))
}

// sized is one pool under work that changes once. Jobs arrive in an open loop and count
// only if they end before their deadline; a full pool refuses.
type sized struct {
	Workers         int // 0: not configured
	Phases          []phase
	TurnsMS         int           // of the spin in a millisecond of computing
	Settle, Measure time.Duration // in each phase
	Seed            uint64
}

// playSized returns a run for each phase.
func playSized(ctx context.Context, s sized) (out []results.Run, err error) {
	p, err := workerpool.New(workerpool.Config{MinWorkers: s.Workers, MaxWorkers: s.Workers})
	if err != nil {
		return nil, err
	}
	defer p.Close()
	for i, ph := range s.Phases {
		stream := []service.Stretch{{Rate: ph.PerSecond, For: s.Settle}, {Rate: ph.PerSecond, For: s.Measure}}
		load := service.Load{Stretches: stream, Measured: 1, Timeout: deadline, Seed: s.Seed + uint64(2*i)}
		res, err := load.Send(ctx, func(ctx context.Context, _ uint64, _ bool) loadgen.Outcome { return ph.do(ctx, p, s.TurnsMS) })
		if err != nil {
			return nil, err
		}
		run := experiment.FromLoad(res)
		run.Elapsed, run.Series = s.Measure.Seconds(), nil // jobs intended in this time, whenever they ended
		run.Params = map[string]any{"gomaxprocs": runtime.GOMAXPROCS(0), "workers_then": p.Stats().Workers, "generator": res.Why}
		out = append(out, run)
	}
	return out, ctx.Err()
}

// slice is how long a job computes before it checks its context and yields. The
// generator is in the same process: behind jobs that keep a processor for as long as
// the runtime allows it was late by half a second, which distorted all sizes.
const slice = 100 * time.Microsecond

// do submits a job to a pool and waits for its end.
func (ph phase) do(ctx context.Context, pool *workerpool.Pool, turnsMS int) loadgen.Outcome {
	ended := make(chan struct{})
	err := pool.TrySubmit(ctx, func(ctx context.Context) error {
		defer close(ended)
		for left := ph.Compute; left > 0 && ctx.Err() == nil; left -= slice {
			burn.Turns(int(min(left, slice).Seconds() * 1000 * float64(turnsMS)))
			runtime.Gosched()
		}
		if ph.Wait > 0 {
			_ = service.Pause(ctx, ph.Wait)
		}
		return ctx.Err()
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
