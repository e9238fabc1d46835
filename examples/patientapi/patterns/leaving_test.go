package patterns

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
)

func TestCallerWhoLeavesIsLetGo(t *testing.T) {
	for _, name := range []string{Naive, WorkerPool, Optimized} { // limiter runs on the caller's goroutine
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				stuck := func(context.Context, string) error { time.Sleep(time.Minute); return nil } // ignores its context
				r := newRunner(t, name, setup{Store: store(t, stuck), Workers: 1, QueueSize: 1})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := r.Lookup(ctx, "P000001")
				if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != time.Second {
					t.Errorf("%v after %v", err, took)
				}
				assert.NoError(t, r.Drain(t.Context()))
				if took := time.Since(start); took != time.Minute {
					t.Errorf("drained after %v: the lookup was lost sight of", took)
				}
			})
		})
	}
}

func TestQueuedCallerWhoLeavesIsNeverLookedUp(t *testing.T) {
	for _, name := range bounded {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				looked := map[string]bool{}
				var mu sync.Mutex
				r := newRunner(t, name, setup{Workers: 1, QueueSize: 5, Store: store(t, func(ctx context.Context, id string) error {
					mu.Lock()
					looked[id] = true
					mu.Unlock()
					return second(ctx, id)
				})})
				var wg sync.WaitGroup
				wg.Go(func() { _, _ = r.Lookup(t.Context(), "P000001") })
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
				defer cancel()
				if _, err := r.Lookup(ctx, "P000002"); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				wg.Wait()
				assert.NoError(t, r.Drain(t.Context()))
				if looked["P000002"] || r.Stats().Cancelled != 1 {
					t.Errorf("looked up %v, stats %+v", looked, r.Stats())
				}
			})
		})
	}
}

func TestDrainRefusesWhatComesLaterAndFinishesTheRest(t *testing.T) {
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRunner(t, name, setup{Store: store(t, second), Workers: 2, QueueSize: 10})
				var wg sync.WaitGroup
				wg.Go(func() {
					if ok, _, _ := flood(t.Context(), r, 6); ok != 6 {
						t.Errorf("%d of 6 accepted requests were answered", ok)
					}
				})
				synctest.Wait()
				wg.Go(func() {
					assert.NoError(t, r.Drain(t.Context()))
				})
				synctest.Wait()
				rej, ok := errors.AsType[*spillway.Rejection](lookupErr(r))
				if !ok || rej.Reason != spillway.ReasonDraining {
					t.Errorf("while draining: %v", rej)
				}
				wg.Wait()
			})
		})
	}
}

func lookupErr(r *tested) error {
	_, err := r.Lookup(context.Background(), "P000001")
	return err
}
