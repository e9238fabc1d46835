package jetstream

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// A process that stalls for longer than AckWait reports no progress. Other processes take its
// share: MaxInFlight of their handlers run. The stalled process's own handlers get ended contexts.
func TestAStalledProcessLosesItsShare(t *testing.T) {
	server := serve(t, t.TempDir())
	cfg := Config{Server: server, MaxInFlight: 2, AckWait: 2 * time.Second} // jobs must be acknowledged within AckWait
	stalled, other := open(t, cfg), open(t, cfg)
	var logged, running, most atomic.Int32
	release := make(chan struct{})
	defer close(release)
	work(t, stalled, func(ctx context.Context, _ *jobqueue.Delivery) error {
		<-ctx.Done()
		if errors.Is(context.Cause(ctx), jobqueue.ErrLost) {
			logged.Add(1)
		}
		<-release // stalls
		return ctx.Err()
	})
	for range 6 {
		enqueue(t, other, jobqueue.Job{})
	}
	await.True(t, "two jobs run", func() bool { return stalled.counters.running.Load() == 2 })
	stalled.mu.Lock()
	for w := range stalled.workers {
		w.kept.mu.Lock() // no progress
		defer w.kept.mu.Unlock()
	}
	stalled.mu.Unlock()
	work(t, other, func(context.Context, *jobqueue.Delivery) error {
		now := running.Add(1)
		for p := most.Load(); now > p && !most.CompareAndSwap(p, now); p = most.Load() {
		}
		defer running.Add(-1)
		return nil
	})
	await.True(t, "the other process does all", func() bool { return other.counters.done.Load() >= 6 }) // more if it stalled too
	if n := most.Load(); n > 2 {
		t.Errorf("%d ran in one process", n)
	}
	await.True(t, "both handlers are told", func() bool { return logged.Load() == 2 })
	if n := stalled.counters.running.Load(); n != 2 {
		t.Errorf("%d handlers stall", n)
	}
}

// Jobs that a worker holds when Work ends count no attempt: a rejected job that waits, and a
// running job.
func TestJobsThatAreHandedBackWereNotTried(t *testing.T) {
	server := serve(t, t.TempDir())
	cfg := Config{Server: server, Policy: jobqueue.Policy{MaxAttempts: 1}}
	for i := range 3 { // each round takes all jobs and gives them back
		var rejected, again atomic.Bool
		var running atomic.Int32
		q := open(t, cfg)
		if i == 0 {
			enqueue(t, q, jobqueue.Job{Key: "rejected"})
			enqueue(t, q, jobqueue.Job{Key: "runs"})
			enqueue(t, q, jobqueue.Job{Key: "delayed", Delay: time.Millisecond})
		}
		stop := work(t, q, func(ctx context.Context, d *jobqueue.Delivery) error {
			if d.Attempt != 1 {
				t.Errorf("%s: attempt %d", d.Key, d.Attempt)
			}
			if d.Key == "rejected" {
				if rejected.Swap(true) {
					again.Store(true)
				}
				return &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Millisecond}
			}
			running.Add(1)
			<-ctx.Done()
			return ctx.Err()
		})
		await.True(t, "all are in its hands", func() bool { return again.Load() && running.Load() == 2 })
		_ = stop()
		_ = q.Close()
	}
	q := open(t, cfg)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Attempt != 1 {
			t.Errorf("%s: attempt %d", d.Key, d.Attempt)
		}
		return nil
	})
	await.True(t, "all are done", func() bool { s := stats(t, q); return s.Done == 3 && s.Dead == 0 })
}

// A job at its last attempt runs alone if nobody knows how the attempt before ended. The handler of such
// a job never returned: its process took no other job, for ever.
func TestAHandlerThatNeverReturnsHoldsUpNoOtherJob(t *testing.T) {
	q := open(t, Config{AckWait: time.Second, Policy: jobqueue.Policy{MaxAttempts: 2}})
	var hangs atomic.Bool // in the last attempt
	release := make(chan struct{})
	defer close(release)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key != "fine" {
			if d.Attempt == 2 {
				hangs.Store(true)
			}
			<-release
		}
		return nil
	})
	tried := 0
	await.True(t, "the last attempt runs", func() bool {
		if !hangs.Load() && stats(t, q).Dead == tried { // a machine that stalls for AckWait loses a job before its run
			enqueue(t, q, jobqueue.Job{})
			tried++
		}
		return hangs.Load()
	})
	enqueue(t, q, jobqueue.Job{Key: "fine"})
	await.True(t, "the other job is done", func() bool { return q.counters.done.Load() == 1 })
}
