package patterns

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/probe"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// Warm is a pattern of the published shape only: pooled replies that the receiver really
// gives back, measured after a warm-up.
const Warm = specimen.Warm

// shape adds the published code. The patterns under one load run side by side, each in a
// process of its own: they wait, on two processors their figures differ no more than from
// run to run. Under the short loads naive runs alone, since all of it falls into the second
// in which the others start.
func (p *planner) shape() {
	for _, load := range []string{Low, High, Sustained} {
		for _, pattern := range []string{specimen.Naive, specimen.WorkerPool, specimen.Optimized, Warm} {
			if !slices.Contains(p.Patterns, pattern) && !(pattern == Warm && slices.Contains(p.Patterns, specimen.Optimized)) {
				continue
			}
			if c := p.child(Shape, load, pattern, rolePublished); pattern != specimen.Naive || load == Sustained {
				c.Beside = Shape + ", " + load
			}
		}
	}
}

// published is the contestant in the published shape: load, pattern and store in one
// process. Its Extra has the figures as the source computes them, which counts refusals
// as answers and as errors; the outcomes keep them apart.
func published(ctx context.Context, j job) (results.Run, error) {
	store := &specimen.Simulated{MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed}
	service, err := specimen.New(j.Pattern, store, specimen.Config{Workers: j.Workers, Queue: j.QueueSize, Wait: j.QueueWait})
	if err != nil {
		return results.Run{}, err
	}
	defer service.Close()
	look := func(_ context.Context, n uint64) loadgen.Outcome {
		reply, err := service.Look(specimen.ID(j.number(n)))
		switch {
		case errors.Is(err, specimen.ErrFull):
			return loadgen.Rejected
		case err != nil:
			return loadgen.Error
		}
		service.Release(reply)
		return loadgen.OK
	}
	if j.Pattern == Warm {
		if err := j.warmUp(ctx, look); err != nil {
			return results.Run{}, err
		}
	}
	before, pooled := service.Reuse()
	run, err := j.sendLoad(ctx, look)
	if err != nil {
		return run, err
	}
	run.Extra = asCounted(run)
	if pooled {
		after, _ := service.Reuse()
		reuse := after.Since(before)
		run.Process.ReuseRate = reuse.True()
		run.Extra["reuse_true"], run.Extra["reuse_reported"] = reuse.True(), reuse.Reported()
	}
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["store_latency_ms"] = ms(store.MeanLatency())
	return run, nil
}

// asCounted are the figures of a run as the source computes them: every answer is
// throughput and in the latencies, every refusal is an error. Beside them are goodput and
// the refused share.
func asCounted(run results.Run) map[string]float64 {
	var all histogram.Histogram
	for _, o := range run.Outcomes {
		all.Merge(o.Latency)
	}
	quantile := func(q float64) float64 { return ms(time.Duration(all.Quantile(q))) }
	return map[string]float64{
		"throughput": float64(all.Count()) / run.Elapsed, "goodput": run.Rate("ok"),
		"error_share": 1 - run.Share("ok"), "refused_share": run.Share("rejected"),
		"mean_ms": all.Mean() / float64(time.Millisecond), "median_ms": quantile(0.5),
		"p95_ms": quantile(0.95), "p99_ms": quantile(0.99), "max_ms": quantile(1),
	}
}

// asPrinted is the contestant of H4: the published reply pool and its own counters.
func asPrinted(ctx context.Context, j job) (results.Run, error) {
	j.Pattern = specimen.Optimized
	run, err := published(ctx, j)
	if err == nil {
		run.Extra["reported_hit_rate"] = run.Extra["reuse_reported"]
	}
	return run, err
}

// uncleared is the contestant of H9 whose replies are reused without clearing. Every
// answer is compared, byte for byte, with one that was made for this patient alone.
func uncleared(ctx context.Context, j job) (results.Run, error) {
	var store specimen.Simulated
	var foreign atomic.Uint64
	reused := specimen.Uncleared{Store: &store}
	run, err := j.sendLoad(ctx, func(_ context.Context, n uint64) loadgen.Outcome {
		id := specimen.ID(j.number(n))
		got, err := reused.Answer(id)
		alone, errAlone := store.Patient(id)
		want, errJSON := json.Marshal(alone)
		if errors.Join(err, errAlone, errJSON) != nil {
			return loadgen.Error
		}
		if !bytes.Equal(got, want) {
			foreign.Add(1)
		}
		return loadgen.OK
	})
	if err != nil {
		return run, err
	}
	run.Extra["foreign"] = float64(foreign.Load())
	return run, nil
}

// number is the patient that request n asks for: neighbours are far apart.
func (j job) number(n uint64) int { return 1 + int((n*7919+j.Seed%1000)%uint64(j.Patients)) }

// seriesStep is the resolution of the time lines in the report.
const seriesStep = 100 * time.Millisecond

// sendLoad sends the load to look, each client its share of the requests back to back,
// and reads what the process used.
func (j job) sendLoad(ctx context.Context, look loadgen.TargetFunc) (results.Run, error) {
	p := probe.Start()
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
	run.Params, run.Process, run.Extra = j.params(), process(used), map[string]float64{}
	return run, nil
}

// warmUp sends two requests of each client.
func (j job) warmUp(ctx context.Context, look loadgen.TargetFunc) error {
	_, err := loadgen.Run(ctx, loadgen.Config{Target: look, Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(2 * j.Clients)}})
	return err
}
