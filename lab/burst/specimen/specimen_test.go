package specimen

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestItGrowsByAQuarterASecondWhileItsQueueIsFullAndShrinksWhenIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{MinWorkers: 8, MaxWorkers: 11, QueueSize: 100, GrowAt: .7, Every: time.Second, Cooldown: 500 * time.Millisecond, IdleTimeout: time.Minute})
		release := make(chan struct{})
		for range 8 + 100 {
			if err := p.Submit(t.Context(), func(context.Context) error { <-release; return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for after, want := range []int{8, 10, 11, 11} {
			if got := p.Workers(); got != want {
				t.Errorf("%d workers after %d s, want %d", got, after, want)
			}
			time.Sleep(time.Second)
			synctest.Wait()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Microsecond)
		defer cancel()
		for err := error(nil); !errors.Is(err, context.DeadlineExceeded); { // there was room for what the new workers took
			err = p.Submit(ctx, func(context.Context) error { <-release; return nil })
		}
		close(release)
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := p.Workers(); got > 8 || p.Queued() != 0 {
			t.Errorf("%d workers and %d jobs after two idle minutes, want at most 8 and 0", got, p.Queued())
		}
		if err := p.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := p.Submit(t.Context(), nil); !errors.Is(err, ErrShutdown) {
			t.Errorf("after the shutdown: %v", err)
		}
	})
}

// A submitter that waits for room panics in its own goroutine when the pool is shut down.
func TestASubmitThatMeetsTheShutdownPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, release := New(Config{MinWorkers: 1, MaxWorkers: 1, QueueSize: 1, GrowAt: .7, Every: time.Second, IdleTimeout: time.Minute}), make(chan struct{})
		job := func(context.Context) error { <-release; return nil }
		for range 2 {
			if err := p.Submit(t.Context(), job); err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // the worker has the first
		}
		panicked := make(chan any, 1)
		go func() {
			defer func() { panicked <- recover() }()
			_ = p.Submit(t.Context(), job)
		}()
		synctest.Wait()
		go func() { _ = p.Shutdown(t.Context()) }()
		if v := <-panicked; v == nil {
			t.Error("no panic: the queue was not closed under a submitter")
		}
		close(release)
	})
}

// As printed, go process(r.Context()) is cut off when the handler returns; the pool runs
// such a job all the same.
func TestAJobRunsWhoseContextHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := New(Config{MinWorkers: 1, MaxWorkers: 1, QueueSize: 1, GrowAt: .7, Every: time.Second, IdleTimeout: time.Minute})
		ctx, cancel := context.WithCancel(t.Context())
		var ran error
		if err := p.Submit(ctx, func(ctx context.Context) error { time.Sleep(time.Second); ran = ctx.Err(); return nil }); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := p.Shutdown(t.Context()); err != nil || !errors.Is(ran, context.Canceled) {
			t.Errorf("%v, %v", ran, err)
		}
	})
}
