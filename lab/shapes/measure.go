package shapes

import (
	"context"
	"fmt"
	"runtime"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/results"
)

// job is the input of a contestant.
type job struct {
	Shape           string
	Workers, Buffer int
	Ops             int           // one batch of that size, by the wall clock; 0: auto-scaled
	For             time.Duration // auto-scaled: until a batch takes at least that long
}

// measured is one measurement.
type measured struct {
	ops            int
	took           time.Duration
	mallocs, bytes uint64
}

// measure is the contestant of the shapes.
func measure(ctx context.Context, j job) (results.Run, error) {
	m, err := j.byTheClock(j.Ops)
	if j.Ops == 0 {
		m, err = j.autoScaled(ctx)
	}
	if err != nil {
		return results.Run{}, err
	}
	n := uint64(m.ops)
	return results.Run{
		Elapsed: m.took.Seconds(), Offered: n,
		Outcomes: []results.Outcome{{Kind: "ok", Count: n, Latency: &histogram.Histogram{}}},
		Process:  results.Process{Mallocs: m.mallocs, AllocBytes: m.bytes, ReuseRate: -1},
		Params:   map[string]any{"shape": j.Shape, "workers": j.Workers, "buffer": j.Buffer, "gomaxprocs": runtime.GOMAXPROCS(0)},
		Extra:    map[string]float64{"ns_per_op": float64(m.took) / float64(m.ops), "allocs_per_op": float64(m.mallocs / n)},
	}, ctx.Err()
}

// batch does n units of work. The time is that of the work alone, or with the
// start of the workers in it.
func (j job) batch(n int, withStart bool) (measured, error) {
	started := time.Now()
	run, err := Prepare(j.Shape, j.Workers, j.Buffer)
	if err != nil {
		return measured{}, err
	}
	var before, after runtime.MemStats
	if !withStart {
		runtime.ReadMemStats(&before)
		started = time.Now()
	}
	sum := run(n)
	m := measured{ops: n, took: time.Since(started)}
	if !withStart {
		runtime.ReadMemStats(&after)
		m.mallocs, m.bytes = after.Mallocs-before.Mallocs, after.TotalAlloc-before.TotalAlloc
	}
	if sum != sumOf(n) {
		return m, fmt.Errorf("%s lost results: the sum over %d is %d, want %d", label(j.Shape, j.Workers), n, sum, sumOf(n))
	}
	return m, nil
}

// byTheClock times one batch with two calls of time.Now: cold, once, including all
// set-up.
func (j job) byTheClock(n int) (measured, error) {
	if n == 0 {
		return measured{}, nil
	}
	return j.batch(n, true)
}

// autoScaled does larger and larger batches until one takes long enough, each
// after a collection, with the start of the workers left out. It predicts sizes
// as package testing does for benchmarks.
func (j job) autoScaled(ctx context.Context) (measured, error) {
	for n := 1; ; {
		runtime.GC()
		m, err := j.batch(n, false)
		if err != nil || m.took >= j.For || n >= 1e9 || ctx.Err() != nil {
			return m, err
		}
		perOp := max(float64(m.took)/float64(n), 1e-3)
		n = int(min(max(1.2*float64(j.For)/perOp, float64(n+1)), 100*float64(n), 1e9))
	}
}
