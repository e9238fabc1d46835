package workerpool

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// The benchmarks compare the pool with what people write by hand: a buffered channel that workers
// read, a goroutine for each job, a queue behind a mutex. All queues have the same size, because
// the size affects the results.
const benchQueue = 1024

// contestant runs jobs that end by themselves.
type contestant struct {
	name   string
	submit func(job func())
	stop   func()
}

func bareChannel(workers, queue int) contestant {
	jobs := make(chan func(), queue)
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for job := range jobs {
				job()
			}
		})
	}
	return contestant{"channel", func(job func()) { jobs <- job }, func() { close(jobs); wg.Wait() }}
}

func spawning() contestant {
	var wg sync.WaitGroup
	return contestant{"spawn", func(job func()) { wg.Go(job) }, wg.Wait}
}

func behindMutex(workers, queue int) contestant {
	var mu sync.Mutex
	room, work := sync.NewCond(&mu), sync.NewCond(&mu)
	jobs, closed := []func(){}, false
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			mu.Lock()
			defer mu.Unlock()
			for {
				for len(jobs) == 0 {
					if closed {
						return
					}
					work.Wait()
				}
				job := jobs[0]
				jobs = jobs[1:]
				room.Signal()
				mu.Unlock()
				job()
				mu.Lock()
			}
		})
	}
	return contestant{"mutex", func(job func()) {
		mu.Lock()
		for len(jobs) >= queue {
			room.Wait()
		}
		jobs = append(jobs, job)
		work.Signal()
		mu.Unlock()
	}, func() { mu.Lock(); closed = true; work.Broadcast(); mu.Unlock(); wg.Wait() }}
}

// ours submits one Job value, made once, which ignores its context.
func ours(b *testing.B, workers, queue int, job func()) contestant {
	p, err := New(Config{MaxWorkers: workers, QueueSize: queue})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	run := Job(func(context.Context) error { job(); return nil })
	return contestant{"ours", func(func()) { _ = p.Submit(ctx, run) }, func() { _ = p.Drain(ctx); cancel() }}
}

// burn returns a function that computes for about d. The number of steps is fixed, so that all
// contestants do the same work.
func burn(d time.Duration) func() {
	steps := int(d.Nanoseconds() * 10 / 13)
	return func() { spin(steps) }
}

var sink atomic.Uint64

//go:noinline
func spin(n int) {
	x := uint64(n) | 1
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
	}
	if x == 0 {
		sink.Add(1)
	}
}

// BenchmarkSubmit measures the time from the first submission to the end of the last job, per job.
func BenchmarkSubmit(b *testing.B) {
	for _, c := range []struct {
		work               time.Duration
		producers, workers int
	}{
		{0, 1, 2}, {0, 1, 100}, {0, 1, 1000}, {0, 1000, 2}, {0, 1000, 100},
		{time.Microsecond, 1, 2}, {time.Microsecond, 1000, 2}, {20 * time.Microsecond, 1, 2}, {20 * time.Microsecond, 1000, 2},
	} {
		job := burn(c.work)
		for _, who := range []string{"channel", "ours", "mutex", "spawn"} {
			b.Run(fmt.Sprintf("work=%v/producers=%d/workers=%d/%s", c.work, c.producers, c.workers, who), func(b *testing.B) {
				var x contestant
				switch who {
				case "channel":
					x = bareChannel(c.workers, benchQueue)
				case "ours":
					x = ours(b, c.workers, benchQueue, job)
				case "mutex":
					x = behindMutex(c.workers, benchQueue)
				case "spawn":
					x = spawning()
				}
				b.ReportAllocs()
				b.ResetTimer()
				var wg sync.WaitGroup
				for i := range c.producers {
					wg.Go(func() {
						for range b.N*(i+1)/c.producers - b.N*i/c.producers {
							x.submit(job)
						}
					})
				}
				wg.Wait()
				x.stop()
			})
		}
	}
}

// BenchmarkBurst submits jobs of 10 ms as fast as 5,000 workers take them.
func BenchmarkBurst(b *testing.B) {
	const workers, wait = 5000, 10 * time.Millisecond
	for _, who := range []string{"channel", "ours"} {
		b.Run(who, func(b *testing.B) {
			job := func() { time.Sleep(wait) }
			x := bareChannel(workers, benchQueue)
			if who == "ours" {
				x.stop()
				x = ours(b, workers, benchQueue, job)
			}
			b.ResetTimer()
			for range b.N {
				x.submit(job)
			}
			x.stop()
			b.ReportMetric(float64(b.Elapsed())/(float64(b.N)/workers*float64(wait)), "x-ideal")
		})
	}
}

// BenchmarkRefusal offers jobs to full queues.
func BenchmarkRefusal(b *testing.B) {
	for _, producers := range []int{1, 1000} {
		offer := func(b *testing.B, try func()) {
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range producers {
				wg.Go(func() {
					for range b.N*(i+1)/producers - b.N*i/producers {
						try()
					}
				})
			}
			wg.Wait()
		}
		b.Run(fmt.Sprintf("producers=%d/channel", producers), func(b *testing.B) {
			jobs := make(chan func(), benchQueue)
			for range benchQueue {
				jobs <- nil
			}
			offer(b, func() {
				select {
				case jobs <- nil:
				default:
				}
			})
		})
		b.Run(fmt.Sprintf("producers=%d/ours", producers), func(b *testing.B) {
			p, _ := New(Config{MaxWorkers: 1, QueueSize: benchQueue})
			hold := make(chan struct{})
			ctx := context.Background()
			for range benchQueue + 1 {
				_ = p.Submit(ctx, func(context.Context) error { <-hold; return nil })
			}
			offer(b, func() { _ = p.TrySubmit(ctx, nothing) })
			close(hold)
			_ = p.Drain(ctx)
		})
	}
}

// BenchmarkDo measures a result computed on a worker, against a channel of jobs with one result
// channel for each caller.
func BenchmarkDo(b *testing.B) {
	type job struct {
		fn     func(context.Context) (int, error)
		result chan int
	}
	fn := func(context.Context) (int, error) { return 1, nil }
	for _, callers := range []int{1, 64} {
		each := func(b *testing.B, call func(n int)) {
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() { call(b.N*(i+1)/callers - b.N*i/callers) })
			}
			wg.Wait()
		}
		b.Run(fmt.Sprintf("callers=%d/channel", callers), func(b *testing.B) {
			jobs := make(chan job, benchQueue)
			var wg sync.WaitGroup
			for range 2 {
				wg.Go(func() {
					for j := range jobs {
						n, _ := j.fn(context.Background())
						j.result <- n
					}
				})
			}
			each(b, func(n int) {
				result := make(chan int, 1)
				for range n {
					jobs <- job{fn, result}
					<-result
				}
			})
			close(jobs)
			wg.Wait()
		})
		b.Run(fmt.Sprintf("callers=%d/ours", callers), func(b *testing.B) {
			p, _ := New(Config{MaxWorkers: 2, QueueSize: benchQueue})
			each(b, func(n int) {
				for range n {
					_, _ = Do(context.Background(), p, fn)
				}
			})
			p.Close()
		})
	}
}
