package handoff

import (
	"fmt"
	"sync"
	"testing"
)

// job has six words. An entry of package workerpool has four.
type job struct {
	f func()
	_ [5]uintptr
}

// BenchmarkHandoff measures jobs that do nothing, through the queue alone.
func BenchmarkHandoff(b *testing.B) {
	for _, c := range [][2]int{{1, 2}, {1, 100}, {1, 1000}, {1000, 2}, {1000, 100}} {
		b.Run(fmt.Sprintf("producers=%d/workers=%d", c[0], c[1]), func(b *testing.B) {
			b.ReportAllocs()
			var q Queue[job]
			var workers sync.WaitGroup
			q.Init(1024, c[1], func(w *Worker) {
				workers.Go(func() {
					var j job
					for {
						for {
							if _, ok := q.Take(w, Ran, &j); !ok {
								break
							}
							j.f()
						}
						if !w.Sleep() {
							return
						}
					}
				})
			})
			q.SetLow(512)
			var producers sync.WaitGroup
			f := func() {}
			for i := range c[0] {
				producers.Go(func() {
					w := NewWaiter[job]()
					for range b.N*(i+1)/c[0] - b.N*i/c[0] {
						j := job{f: f}
						if v, _ := q.Offer(&j, 1); v == Full {
							if q.Wait(w, j, 1, true) == Waiting {
								<-w.Ready()
								q.EndWait(w, true, false)
							}
						}
					}
				})
			}
			producers.Wait()
			q.Close()
			<-q.Drained()
			workers.Wait()
		})
	}
}
