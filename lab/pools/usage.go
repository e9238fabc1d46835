package pools

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/usage"
)

// footprint measures the memory of an idle worker and of a job that no worker has
// taken.
type footprint struct {
	Contestant    string
	Workers, Jobs int
}

// bytesOf is the memory of each, in heap and stacks; -1 if there is none.
type bytesOf struct{ Worker, Job float64 }

func weigh(ctx context.Context, f footprint) (bytesOf, error) {
	worker, err := f.worker(ctx)
	if err != nil || !queues(f.Contestant) {
		return bytesOf{worker, -1}, err
	}
	job, err := f.job()
	return bytesOf{worker, job}, err
}

// worker is the memory of one that has run a job and waits for the next; -1 if none
// waits.
func (f footprint) worker(ctx context.Context) (float64, error) {
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
	case <-time.After(idle / 5): // too short for the idle timeout
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	if runtime.NumGoroutine() < f.Workers/2 {
		return -1, nil
	}
	return max(0, inUse()-before) / float64(f.Workers), nil
}

// job is the memory of one that no worker has taken yet.
func (f footprint) job() (float64, error) {
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

// queues reports whether a submitter can submit jobs that no worker takes yet.
func queues(name string) bool { return !is(Semaphore, Errgroup, Ants, Conc)(name) }

// inUse is the memory of live objects and stacks.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // frees what a finalizer or a sync.Pool still held
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc + m.StackInuse)
}

// burst is many jobs that wait, all at once.
type burst struct {
	Contestant            string
	Jobs, Workers, Buffer int
	Work                  time.Duration
}

type burstUsage struct {
	Seconds, CPUSeconds float64
	PeakRSS             uint64
	PeakGoroutines      int
	Left                int // workers still there after the idle timeout
}

// ideal is how long the burst takes if every worker is always busy.
func (b burst) ideal() time.Duration {
	return time.Duration((b.Jobs+b.Workers-1)/b.Workers) * b.Work
}

func flood(ctx context.Context, b burst) (burstUsage, error) {
	before := runtime.NumGoroutine()
	p := usage.Start()
	s, err := newSubmitter(b.Contestant, b.Workers, b.Buffer, false)
	if err != nil {
		return burstUsage{}, err
	}
	var all sync.WaitGroup
	all.Add(b.Jobs)
	wait := newJob(func() { time.Sleep(b.Work); all.Done() })
	began := time.Now()
	for i := range b.Jobs {
		if i%1024 == 0 && ctx.Err() != nil {
			return burstUsage{}, ctx.Err()
		}
		s.submit(wait)
	}
	all.Wait()
	took := time.Since(began)
	u := p.Stop()
	if took < b.ideal() {
		return burstUsage{}, fmt.Errorf("%s took %v, less than %v: it ran more than %d jobs at once", b.Contestant, took, b.ideal(), b.Workers)
	}
	// More than twice the idle timeout: some pools check it only now and then.
	for deadline := time.Now().Add(2*idle + idle/2); time.Now().Before(deadline) && runtime.NumGoroutine() > before; {
		select {
		case <-time.After(idle / 10):
		case <-ctx.Done():
			return burstUsage{}, ctx.Err()
		}
	}
	return burstUsage{
		Seconds: took.Seconds(), CPUSeconds: u.CPUSeconds, PeakRSS: u.PeakRSS, PeakGoroutines: u.PeakGoroutines,
		Left: max(0, runtime.NumGoroutine()-before),
	}, nil
}
