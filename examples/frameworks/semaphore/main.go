// Command semaphore shows a limiter in the place of golang.org/x/sync/semaphore, and
// back: one line. weighted.go is the adapter, to be copied.
//
//	go run ./semaphore
//	go run ./semaphore -adaptive
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// slots is what code uses of a semaphore.
type slots interface {
	Acquire(ctx context.Context, n int64) error
	TryAcquire(n int64) bool
	Release(n int64)
}

func main() {
	adaptive := flag.Bool("adaptive", false, "use a limiter, which finds out how much may run at once")
	flag.Parse()
	lim, err := limiter.New(limiter.Config{})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}

	var s slots = semaphore.NewWeighted(8)
	if *adaptive {
		s = NewWeighted(lim) // the one line
	}

	done, refused, err := Work(context.Background(), s, 200, func(context.Context) { time.Sleep(5 * time.Millisecond) })
	fmt.Printf("done %d, refused %d\n", done, refused)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// Work runs n pieces of work behind s. It is code as it was written for a semaphore;
// only that work may be refused is new.
func Work(ctx context.Context, s slots, n int, piece func(context.Context)) (done, refused int64, err error) {
	var finished, rejected atomic.Int64
	var once sync.Once
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if e := s.Acquire(ctx, 1); errors.Is(e, spillway.ErrRejected) {
				rejected.Add(1)
				return
			} else if e != nil {
				once.Do(func() { err = e })
				return
			}
			defer s.Release(1)
			piece(ctx)
			finished.Add(1)
		})
	}
	all.Wait()
	return finished.Load(), rejected.Load(), err
}
