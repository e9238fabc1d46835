package patterns

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// Job is the input of a contestant.
type Job struct {
	Pattern    string
	Requests   int
	Clients    int
	Workers    int
	QueueSize  int
	QueueWait  time.Duration
	MinLatency time.Duration
	MaxLatency time.Duration
	ErrorRate  float64
	Patients   int
	Seed       uint64
	Database   string // path of the SQLite file; empty: the simulated store
	WarmUp     bool   // send two requests of each client before measuring
}

// Params are the settings that the claims need.
func (j Job) Params() map[string]any {
	return map[string]any{
		"requests": j.Requests, "clients": j.Clients, "workers": j.Workers, "queue_size": j.QueueSize,
		"queue_wait_ms": MS(j.QueueWait), "min_latency_ms": MS(j.MinLatency), "max_latency_ms": MS(j.MaxLatency),
		"error_rate": j.ErrorRate,
	}
}

// MS is a duration in milliseconds.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// ID is the patient that request n asks for: neighbours are far apart.
func (j Job) ID(n uint64) string {
	return specimen.ID(1 + int((n*7919+j.Seed%1000)%uint64(j.Patients)))
}

// Replies says how often a pool of replies was asked for one so far, and how often it had
// to make one; ok is false where there is no pool. Nil: there is none.
type Replies func() (gets, made uint64, ok bool)

// Measure sends the load to look, each client its share of the requests back to back, and
// reads what the process used. Reuse is that of the load alone, without the warm-up.
func (j Job) Measure(ctx context.Context, look loadgen.TargetFunc, replies Replies) (results.Run, error) {
	if replies == nil {
		replies = func() (uint64, uint64, bool) { return 0, 0, false }
	}
	if j.WarmUp {
		if _, err := loadgen.Run(ctx, loadgen.Config{Target: look, Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(2 * j.Clients)}}); err != nil {
			return results.Run{}, err
		}
	}
	getsBefore, madeBefore, _ := replies()
	p := usage.Start()
	res, err := loadgen.Run(ctx, loadgen.Config{
		Target: look, Interval: seriesStep, Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	if res.Partial {
		return results.Run{}, ctx.Err()
	}
	run := experiment.FromLoad(res)
	run.Params, run.Process, run.Extra = j.Params(), experiment.Process(used), asCounted(&run)
	if gets, made, ok := replies(); ok && gets > getsBefore {
		all, fresh := float64(gets-getsBefore), float64(made-madeBefore)
		run.Process.ReuseRate = (all - fresh) / all
		run.Extra["reuse_reported"] = all / (all + fresh) // the published hit rate: every Get is a hit, every reply made a miss
	}
	return run, nil
}

// Compare is Measure over a store without latency. Every answer is compared, byte for
// byte, with one that was made for this patient alone.
func (j Job) Compare(ctx context.Context, answer, alone func(ctx context.Context, id string) ([]byte, error), replies Replies) (results.Run, error) {
	var foreign atomic.Uint64
	run, err := j.Measure(ctx, func(ctx context.Context, n uint64) loadgen.Outcome {
		got, err := answer(ctx, j.ID(n))
		if err != nil {
			return loadgen.FromError(err)
		}
		want, err := alone(ctx, j.ID(n))
		if !bytes.Equal(got, want) {
			foreign.Add(1)
		}
		return loadgen.FromError(err)
	}, replies)
	if err == nil {
		run.Extra["foreign"] = float64(foreign.Load())
	}
	return run, err
}

// seriesStep is the resolution of the time lines in the report.
const seriesStep = 100 * time.Millisecond

// addStack adds the measured stack of a goroutine, in KB of 1,024 bytes.
func addStack(run *results.Run, u usage.Usage) {
	if u.PeakStacks > 0 {
		run.Extra["stack_kb"] = float64(u.PeakStackBytes) / float64(u.PeakStacks) / 1024
	}
}

// parked is the contestant of H11: goroutines that only wait, like those of a naive
// service while the store works.
func parked(ctx context.Context, j Job) (results.Run, error) {
	p := usage.Start()
	time.Sleep(50 * time.Millisecond) // its first sample, of other stacks, is before that
	release := make(chan struct{})
	var all sync.WaitGroup
	for range j.Clients {
		all.Go(func() { <-release })
	}
	select {
	case <-time.After(100 * time.Millisecond): // several samples of the probe
	case <-ctx.Done():
	}
	close(release)
	all.Wait()
	used := p.Stop()
	run := results.Run{Elapsed: used.Seconds, Params: map[string]any{"goroutines": j.Clients}, Process: experiment.Process(used), Extra: map[string]float64{}}
	addStack(&run, used)
	return run, ctx.Err()
}
