package shapes

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// What is reused, in the set-ups of G9.
const (
	Spawn     = "spawn"      // nothing: a goroutine and an object for each request
	Pool      = "pool"       // goroutines
	PoolReuse = "pool-reuse" // goroutines and objects
)

// reuseJob is the input of a contestant of G9: a number of requests, and how many at
// once.
type reuseJob struct {
	Pattern         string
	Requests, Bound int
	Work            burst.Work // in the set-up of B
	Patients        int        // in the set-up of H
	Seed            uint64
}

// reuseH answers requests by the patterns of experiment H, over its simulated store at
// a tenth of its latency: the question is the processor time of a request, and waiting
// uses none.
func reuseH(ctx context.Context, j reuseJob) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	store, err := simulated.Inject(people, simulated.Config{
		MinLatency: 5 * time.Millisecond, MaxLatency: 10 * time.Millisecond, ErrorRate: 0.05, Seed: j.Seed,
	})
	if err != nil {
		return results.Run{}, err
	}
	name := map[string]string{Spawn: service.Naive, Pool: service.WorkerPool, PoolReuse: service.Optimized}[j.Pattern]
	runner, err := service.New(name, service.Config{Workers: j.Bound, QueueSize: j.Bound})
	if err != nil {
		return results.Run{}, err
	}
	load := func(requests int) (*loadgen.Result, error) {
		return loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: j.Bound, Requests: uint64(requests)},
			Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
				id := patientapi.FormatID(1 + int(n*7919%uint64(j.Patients)))
				found, err := service.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error {
					return store.Patient(ctx, id, p)
				})
				if err == nil {
					found.Release()
				}
				return loadgen.FromError(err)
			}),
		})
	}
	if _, err := load(2 * j.Bound); err != nil { // starts the workers, fills the pools
		return results.Run{}, err
	}
	p := probe.Start()
	res, err := load(j.Requests)
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	j.fill(&run, used)
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, runner.Drain(drain)
}

// reuseB does the work of experiment B.
func reuseB(ctx context.Context, j reuseJob) (results.Run, error) {
	memory := burst.NewMemory(j.Work.Bytes, j.Pattern == PoolReuse)
	one := func() {
		b := memory.Take()
		time.Sleep(j.Work.Wait)
		memory.Give(b)
	}
	do := pooled
	if j.Pattern == Spawn {
		do = spawned
	}
	do(2*j.Bound, j.Bound, one)
	if ctx.Err() != nil {
		return results.Run{}, ctx.Err()
	}
	runtime.GC()
	p := probe.Start()
	do(j.Requests, j.Bound, one)
	used := p.Stop()
	n := uint64(j.Requests)
	run := results.Run{
		Elapsed: used.Seconds, Offered: n,
		Outcomes: []results.Outcome{{Kind: "ok", Count: n, Latency: &histogram.Histogram{}}},
	}
	j.fill(&run, used)
	return run, ctx.Err()
}

func (j reuseJob) fill(run *results.Run, used probe.Usage) {
	run.Params = map[string]any{"requests": j.Requests, "bound": j.Bound, "gomaxprocs": runtime.GOMAXPROCS(0)}
	run.Process = results.Process{
		Mallocs: used.Mallocs, AllocBytes: used.AllocBytes, PeakGoroutines: used.PeakGoroutines, PeakRSS: used.PeakRSS,
		CPUSeconds: used.CPUSeconds, GCShare: used.GCShare, GCPauseP99: used.GCPauseP99, ReuseRate: -1,
	}
	run.Extra = map[string]float64{"cpu_us": 1e6 * used.CPUSeconds / float64(j.Requests)}
}

// spawned does one n times, in a goroutine each.
func spawned(n, bound int, one func()) {
	var all sync.WaitGroup
	slots := make(chan struct{}, bound)
	for range n {
		slots <- struct{}{}
		all.Go(func() {
			one()
			<-slots
		})
	}
	all.Wait()
}

// pooled does one n times, on reused goroutines.
func pooled(n, bound int, one func()) {
	var all sync.WaitGroup
	jobs := make(chan func())
	for range bound {
		all.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	for range n {
		jobs <- one
	}
	close(jobs)
	all.Wait()
}

// boundLabel is how results call a bound.
func boundLabel(n int) string { return fmt.Sprintf("bound %d", n) }
