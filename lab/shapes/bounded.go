package shapes

import "github.com/spillway-go/spillway/lab/burn"

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
