package shapes

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/burst"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// What is reused, in the set-ups of G9.
const (
	Spawn     = "spawn"      // nothing: a goroutine and an object for each request
	Pool      = "pool"       // goroutines
	PoolReuse = "pool-reuse" // goroutines and objects
)

// ReuseJob is the input of a contestant of G9: a number of requests, and how many at
// once.
type ReuseJob struct {
	Pattern         string
	Requests, Bound int
	Work            burst.Work // in the set-up of B
	Patients        int        // in the set-up of H
	Seed            uint64
}

// reuseB does the work of experiment B.
func reuseB(ctx context.Context, j ReuseJob) (results.Run, error) {
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
	p := usage.Start()
	do(j.Requests, j.Bound, one)
	used := p.Stop()
	n := uint64(j.Requests)
	run := results.Run{
		Elapsed: used.Seconds, Offered: n,
		Outcomes: []results.Outcome{{Kind: "ok", Count: n, Latency: &histogram.Histogram{}}},
	}
	j.Fill(&run, used)
	return run, ctx.Err()
}

// Fill adds what the process used to a run.
func (j ReuseJob) Fill(run *results.Run, used usage.Usage) {
	run.Params = map[string]any{"requests": j.Requests, "bound": j.Bound, "gomaxprocs": runtime.GOMAXPROCS(0)}
	run.Process = experiment.Process(used)
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
