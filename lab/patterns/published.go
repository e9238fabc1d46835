package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

func (j Job) specimen(store specimen.Store) (*specimen.Service, error) {
	return specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
}

// published is the contestant in the published shape: load, pattern and store in one
// process.
func published(ctx context.Context, j Job) (results.Run, error) {
	store := &specimen.Simulated{MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed}
	service, err := j.specimen(store)
	if err != nil {
		return results.Run{}, err
	}
	defer service.Close()
	run, err := j.Measure(ctx, func(_ context.Context, n uint64) loadgen.Outcome {
		reply, err := service.Look(j.ID(n))
		switch {
		case errors.Is(err, specimen.ErrFull):
			return loadgen.Rejected
		case err != nil:
			return loadgen.Error
		}
		service.Release(reply)
		return loadgen.OK
	}, service.Replies)
	if err != nil {
		return run, err
	}
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["store_latency_ms"] = MS(store.MeanLatency())
	return run, nil
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

// reusing is the contestant of H9 in the published shape: replies that are cleared and
// given back by their receiver, or patients that are reused without clearing.
func reusing(ctx context.Context, j Job) (results.Run, error) {
	var store specimen.Simulated
	alone := func(_ context.Context, id string) ([]byte, error) {
		patient, err := store.Patient(id)
		if err != nil {
			return nil, err
		}
		return json.Marshal(specimen.Reply{Success: true, Patient: patient})
	}
	if j.Pattern == Uncleared {
		reused := specimen.Uncleared{Store: &store}
		return j.Compare(ctx, func(_ context.Context, id string) ([]byte, error) { return reused.Answer(id) }, alone, nil)
	}
	service, err := j.specimen(&store)
	if err != nil {
		return results.Run{}, err
	}
	defer service.Close()
	return j.Compare(ctx, func(_ context.Context, id string) ([]byte, error) { return service.Answer(id, func() {}) }, alone, service.Replies)
}
