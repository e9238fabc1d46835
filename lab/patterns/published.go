package patterns

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// published is the contestant in the published shape: load, pattern and store in one
// process.
func published(ctx context.Context, j Job) (results.Run, error) {
	if j.Load == Parked {
		return parked(ctx, j)
	}
	store := &specimen.Simulated{MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed}
	service, err := specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	if err != nil {
		return results.Run{}, err
	}
	defer service.Close()
	return j.Play(ctx, Subject{
		Answer: func(_ context.Context, id string) ([]byte, error) {
			if j.Load == Reuse {
				return service.Answer(id, func() {})
			}
			reply, err := service.Look(id)
			if err == nil {
				service.Release(reply)
			}
			return nil, err
		},
		Alone: func(_ context.Context, id string) ([]byte, error) {
			return json.Marshal(specimen.Reply{Success: true, Patient: specimen.Made(id)})
		},
		Replies: service.Replies, Store: store,
	})
}

// asCounted are the figures of a run as the source computes them: every answer is
// throughput and in the latencies, every refusal is an error. The outcomes keep them apart.
func asCounted(run *results.Run) map[string]float64 {
	var all histogram.Histogram
	for _, o := range run.Outcomes {
		all.Merge(o.Latency)
	}
	if all.Count() == 0 {
		return map[string]float64{}
	}
	quantile := func(q float64) float64 { return MS(time.Duration(all.Quantile(q))) }
	return map[string]float64{
		"throughput": float64(all.Count()) / run.Elapsed, "error_share": 1 - run.Share("ok"),
		"mean_ms": all.Mean() / float64(time.Millisecond), "median_ms": quantile(0.5),
		"p95_ms": quantile(0.95), "p99_ms": quantile(0.99), "max_ms": quantile(1),
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
	AddStack(&run, used)
	return run, ctx.Err()
}
