package shapes

import (
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/lab/burn"
)

// The shapes. A unit of work is the addition of two integers whose result must
// reach the caller, as part of a sum.
const (
	Serial        = "Serial"
	SpawnChan     = "SpawnPerRequestChan" // a goroutine and a channel for each
	SpawnWG       = "SpawnPerRequestWG"   // a goroutine for each, a WaitGroup, an atomic addition
	SpawnWGEach   = "SpawnPerRequestWG, a Wait for each"
	SharedChan    = "PoolSharedChan"    // workers on one channel
	PerWorker     = "PoolPerWorkerChan" // workers with a channel each, in turn
	Semaphore     = "Semaphore"         // a goroutine for each, once there is room: bounded, and nothing is reused
	boundPool     = "pool"              // of CPU-bound tasks: workers on one channel
	boundSem      = "semaphore"         // a goroutine for each, once there is room
	boundDispatch = "dispatch"          // a dispatcher gives each task to an idle worker
)

var mechanisms = []string{boundPool, boundSem, boundDispatch}

// Batch does n units of work on what was prepared and returns their sum. It may
// be called once.
type Batch func(n int) int64

// A batch adds i+1 for i from 0 to n-1.
func sumOf(n int) int64 { return int64(n) * int64(n+1) / 2 }

// Shape is one shape with its sizes.
type Shape struct {
	Kind    string
	Workers int `json:",omitempty"` // or the bound of tasks
	Buffer  int // of its channels
}

// preparing is what sets the shape up for a batch: it starts the workers, if any.
func (s Shape) preparing() (func() Batch, error) {
	bounded := func(by func(bound int, do work) Batch, do work) func() Batch {
		return func() Batch { return by(s.Workers, do) }
	}
	prepare, known := map[string]func() Batch{
		Serial:        func() Batch { return serial },
		SpawnChan:     func() Batch { return func(n int) int64 { return spawnChan(n, s.Buffer) } },
		SpawnWG:       func() Batch { return func(n int) int64 { return spawnWG(n, false) } },
		SpawnWGEach:   func() Batch { return func(n int) int64 { return spawnWG(n, true) } },
		SharedChan:    func() Batch { return sharedChan(s.Workers, s.Buffer) },
		PerWorker:     func() Batch { return perWorker(s.Workers, s.Buffer) },
		Semaphore:     bounded(spawned, func(i int64) int64 { return i + 1 }),
		boundPool:     bounded(pooled, compute),
		boundSem:      bounded(spawned, compute),
		boundDispatch: bounded(dispatched, compute),
	}[s.Kind]
	if !known {
		return nil, fmt.Errorf("unknown shape %q", s.Kind)
	}
	return prepare, nil
}

// label is how results call it: with its number of workers.
func (s Shape) label() string {
	if s.Workers == 0 {
		return s.Kind
	}
	return fmt.Sprintf("%s_%d", s.Kind, s.Workers)
}

func serial(n int) int64 {
	var sum int64
	for i := range n {
		sum += int64(i) + 1
	}
	return sum
}

func spawnChan(n, buffer int) int64 {
	var sum int64
	for i := range n {
		result := make(chan int64, buffer)
		go func(a, b int64) { result <- a + b }(int64(i), 1)
		sum += <-result
	}
	return sum
}

// spawnWG waits for each call before the next, or once at the end.
func spawnWG(n int, each bool) int64 {
	var sum atomic.Int64
	var all sync.WaitGroup
	for i := range n {
		all.Add(1)
		go func(a, b int64) {
			defer all.Done()
			sum.Add(a + b)
		}(int64(i), 1)
		if each {
			all.Wait()
		}
	}
	all.Wait()
	return sum.Load()
}

type addition struct{ a, b int64 }

// tally is a sum and those who add to it.
type tally struct {
	sum atomic.Int64
	all sync.WaitGroup
}

// add starts a worker that adds what it receives.
func (w *tally) add(from <-chan addition) {
	w.all.Go(func() {
		for job := range from {
			w.sum.Add(job.a + job.b)
		}
	})
}

func sharedChan(workers, buffer int) Batch {
	jobs := make(chan addition, buffer)
	w := new(tally)
	for range workers {
		w.add(jobs)
	}
	return func(n int) int64 {
		for i := range n {
			jobs <- addition{int64(i), 1}
		}
		close(jobs)
		w.all.Wait()
		return w.sum.Load()
	}
}

func perWorker(workers, buffer int) Batch {
	jobs := make([]chan addition, workers)
	w := new(tally)
	for i := range jobs {
		jobs[i] = make(chan addition, buffer)
		w.add(jobs[i])
	}
	return func(n int) int64 {
		next := 0
		for i := range n {
			jobs[next] <- addition{int64(i), 1}
			if next++; next == workers {
				next = 0
			}
		}
		for _, c := range jobs {
			close(c)
		}
		w.all.Wait()
		return w.sum.Load()
	}
}

// work is a task, long against a call. It returns i+1.
type work func(i int64) int64

// compute takes some ten to twenty microseconds.
func compute(i int64) int64 {
	burn.Turns(10_000)
	return i + 1
}

// pooled bounds tasks by a number of workers on one unbuffered channel.
func pooled(bound int, do work) Batch {
	t := new(tally)
	jobs := make(chan int64)
	for range bound {
		t.all.Go(func() {
			for i := range jobs {
				t.sum.Add(do(i))
			}
		})
	}
	return t.batch(func(i int64) { jobs <- i }, func() { close(jobs) })
}

// spawned starts a goroutine for each task, at most bound at a time.
func spawned(bound int, do work) Batch {
	t := new(tally)
	slots := make(chan struct{}, bound)
	return t.batch(func(i int64) {
		slots <- struct{}{}
		t.all.Go(func() {
			t.sum.Add(do(i))
			<-slots
		})
	}, func() {})
}

// dispatched hands each task to a worker that has said it is idle, over that worker's
// own channel.
func dispatched(bound int, do work) Batch {
	t := new(tally)
	idle := make(chan chan int64, bound)
	for range bound {
		own := make(chan int64)
		t.all.Go(func() {
			idle <- own
			for i := range own {
				t.sum.Add(do(i))
				idle <- own
			}
		})
	}
	return t.batch(func(i int64) { worker := <-idle; worker <- i }, func() {
		for range bound {
			close(<-idle)
		}
	})
}

// batch submits n tasks, says that there are no more and waits.
func (t *tally) batch(submit func(i int64), end func()) Batch {
	return func(n int) int64 {
		for i := range n {
			submit(int64(i))
		}
		end()
		t.all.Wait()
		return t.sum.Load()
	}
}
