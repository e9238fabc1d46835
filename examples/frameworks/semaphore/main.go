// Command semaphore does the same work behind golang.org/x/sync/semaphore and behind
// limiter/semaphore. The code of the work is the same: a program changes one import line, and
// back. Behind the second, a limiter has measured the waits.
//
//	go run ./semaphore
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	xsync "golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/limiter/semaphore"
)

// slots is what code uses of a semaphore.
type slots interface {
	Acquire(ctx context.Context, n int64) error
	TryAcquire(n int64) bool
	Release(n int64)
}

func main() {
	ours := semaphore.NewWeighted(8)
	for _, s := range []slots{xsync.NewWeighted(8), ours} {
		if err := Work(context.Background(), s, 200, func(context.Context) { time.Sleep(5 * time.Millisecond) }); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	stats := ours.Limiter().Stats()
	fmt.Printf("done %d, half of them waited longer than %v\n", stats.Completed, time.Duration(stats.QueueWait.Quantile(0.5)).Round(time.Millisecond))
}

// Work runs n pieces of work behind s. Work is code as it was written for a semaphore.
func Work(ctx context.Context, s slots, n int, piece func(context.Context)) (err error) {
	var once sync.Once
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if e := s.Acquire(ctx, 1); e != nil {
				once.Do(func() { err = e })
				return
			}
			defer s.Release(1)
			piece(ctx)
		})
	}
	all.Wait()
	return err
}
