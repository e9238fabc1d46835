package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/pools"
	"github.com/spillway-go/spillway/load/usage"
)

// weigh measures the memory of an idle worker and of a job that no worker has taken.
func weigh(_ context.Context, name string) (map[string]float64, error) {
	out := map[string]float64{}
	err := weighWorker(name, out)
	if err == nil && slices.Contains(pools.Queuers, name) {
		err = weighJob(name, out)
	}
	return out, err
}

// weighWorker is the memory of one that has run a job and waits for the next, if one does.
func weighWorker(name string, out map[string]float64) error {
	const workers = 1000
	before := inUse()
	s, err := newSubmitter(name, workers, 1, false)
	if err != nil {
		return err
	}
	defer s.close()
	var all sync.WaitGroup
	all.Add(workers)
	meet := newJob(func() { all.Done(); all.Wait() }) // all workers at once
	for range workers {
		s.submit(meet)
	}
	all.Wait()
	time.Sleep(pools.Idle / 5) // too short for the idle timeout
	if runtime.NumGoroutine() >= workers/2 {
		out["worker_bytes"] = max(0, inUse()-before) / workers
	}
	return nil
}

// weighJob is the memory of one that no worker has taken yet.
func weighJob(name string, out map[string]float64) error {
	const jobs = 100_000
	before := inUse()
	s, err := newSubmitter(name, 2, jobs, false)
	if err != nil {
		return err
	}
	hold := make(chan struct{})
	holding, nothing := newJob(func() { <-hold }), newJob(func() {})
	s.submit(holding)
	s.submit(holding)
	for range jobs - 2 { // the two may not have been taken yet
		s.submit(nothing)
	}
	out["job_bytes"] = max(0, inUse()-before) / jobs
	close(hold)
	s.close()
	return nil
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
func flood(_ context.Context, b pools.Flood) (map[string]float64, error) {
	before := runtime.NumGoroutine()
	p := usage.Start()
	s, err := newSubmitter(b.Contestant, b.Workers, pools.Buffer, false)
	if err != nil {
		return nil, err
	}
	var all sync.WaitGroup
	all.Add(b.Jobs)
	wait := newJob(func() { time.Sleep(b.Work); all.Done() })
	began := time.Now()
	for range b.Jobs {
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
		time.Sleep(pools.Idle / 10)
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
