package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/lab/usage"
)

// weigh measures the memory of an idle worker and of a job that no worker has taken.
func weigh(ctx context.Context, f pools.Footprint) (map[string]float64, error) {
	out := map[string]float64{}
	worker, err := weighWorker(ctx, f)
	if err != nil {
		return nil, err
	}
	if worker >= 0 {
		out["worker_bytes"] = worker
	}
	if slices.Contains(pools.Queuers, f.Contestant) {
		out["job_bytes"], err = weighJob(f)
	}
	return out, err
}

// weighWorker is the memory of one that has run a job and waits for the next; -1 if none
// waits.
func weighWorker(ctx context.Context, f pools.Footprint) (float64, error) {
	before := inUse()
	s, err := newSubmitter(f.Contestant, f.Workers, 1, false)
	if err != nil {
		return 0, err
	}
	defer s.close()
	var all sync.WaitGroup
	all.Add(f.Workers)
	meet := newJob(func() { all.Done(); all.Wait() }) // all workers at once
	for range f.Workers {
		s.submit(meet)
	}
	all.Wait()
	select {
	case <-time.After(pools.Idle / 5): // too short for the idle timeout
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if runtime.NumGoroutine() < f.Workers/2 {
		return -1, nil
	}
	return max(0, inUse()-before) / float64(f.Workers), nil
}

// weighJob is the memory of one that no worker has taken yet.
func weighJob(f pools.Footprint) (float64, error) {
	before := inUse()
	s, err := newSubmitter(f.Contestant, 2, f.Jobs, false)
	if err != nil {
		return 0, err
	}
	hold := make(chan struct{})
	holding, nothing := newJob(func() { <-hold }), newJob(func() {})
	s.submit(holding)
	s.submit(holding)
	for range f.Jobs - 2 { // the two may not have been taken yet
		s.submit(nothing)
	}
	cost := max(0, inUse()-before) / float64(f.Jobs)
	close(hold)
	s.close()
	return cost, nil
}

// inUse is the memory of live objects and stacks.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // frees what a finalizer or a sync.Pool still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// flood submits many jobs that wait, all at once.
func flood(ctx context.Context, b pools.Flood) (map[string]float64, error) {
	before := runtime.NumGoroutine()
	p := usage.Start()
	s, err := newSubmitter(b.Contestant, b.Workers, b.Buffer, false)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	all.Add(b.Jobs)
	wait := newJob(func() { time.Sleep(b.Work); all.Done() })
	began := time.Now()
	for i := range b.Jobs {
		if i%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		s.submit(wait)
	}
	all.Wait()
	took := time.Since(began)
	u := p.Stop()
	if took < b.Ideal() {
		return nil, fmt.Errorf("%s took %v, less than %v: it ran more than %d jobs at once", b.Contestant, took, b.Ideal(), b.Workers)
	}
	// More than twice the idle timeout: some pools check it only now and then.
	for deadline := time.Now().Add(2*pools.Idle + pools.Idle/2); time.Now().Before(deadline) && runtime.NumGoroutine() > before; {
		select {
		case <-time.After(pools.Idle / 10):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	out := map[string]float64{
		"finish": took.Seconds() / b.Ideal().Seconds(), "cpu_seconds": u.CPUSeconds, "peak_goroutines": float64(u.PeakGoroutines),
		"left": float64(max(0, runtime.NumGoroutine()-before)),
	}
	if u.PeakRSS > 0 {
		out["peak_rss"] = float64(u.PeakRSS)
	}
	return out, nil
}
