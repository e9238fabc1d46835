package shapes

import (
	"sync"
	"sync/atomic"

	"github.com/spillway-go/spillway/lab/burn"
)

// task computes some ten to twenty microseconds, and returns i+1.
func task(i int64) int64 {
	burn.Turns(10_000)
	return i + 1
}

// burnPool bounds tasks by a number of workers on one unbuffered channel.
func burnPool(bound int) Batch {
	var sum atomic.Int64
	var all sync.WaitGroup
	jobs := make(chan int64)
	for range bound {
		all.Go(func() {
			for i := range jobs {
				sum.Add(task(i))
			}
		})
	}
	return func(n int) int64 {
		for i := range n {
			jobs <- int64(i)
		}
		close(jobs)
		all.Wait()
		return sum.Load()
	}
}

// burnSemaphore starts a goroutine for each task, at most bound at a time.
func burnSemaphore(bound int) Batch {
	var sum atomic.Int64
	var all sync.WaitGroup
	slots := make(chan struct{}, bound)
	return func(n int) int64 {
		for i := range n {
			slots <- struct{}{}
			all.Go(func() {
				sum.Add(task(int64(i)))
				<-slots
			})
		}
		all.Wait()
		return sum.Load()
	}
}

// burnDispatch hands each task to a worker that has said it is idle, over that
// worker's own channel.
func burnDispatch(bound int) Batch {
	var sum atomic.Int64
	var all sync.WaitGroup
	idle := make(chan chan int64, bound)
	for range bound {
		own := make(chan int64)
		all.Go(func() {
			idle <- own
			for i := range own {
				sum.Add(task(i))
				idle <- own
			}
		})
	}
	return func(n int) int64 {
		for i := range n {
			worker := <-idle
			worker <- int64(i)
		}
		for range bound {
			close(<-idle)
		}
		all.Wait()
		return sum.Load()
	}
}
