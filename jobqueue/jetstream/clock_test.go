package jetstream

import (
	"context"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// A process reads the server's clock now and then. The clock is set an hour ahead between two
// readings: jobs enqueued after the change seem to come from the future.
func TestAServersClockThatIsSetHoldsUpNoDelayedJob(t *testing.T) {
	q := open(t, Config{})
	q.clock.set(time.Now().Add(-time.Hour))
	const delay = 300 * time.Millisecond
	due := time.Now().Add(delay)
	enqueue(t, q, jobqueue.Job{Key: "later", Delay: delay})
	got := make(chan int, 1)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if now := time.Now(); now.Before(due) {
			t.Errorf("run %s early", due.Sub(now))
		}
		got <- d.Attempt
		return nil
	})
	if attempt := await.Receive(t, "the job runs", got); attempt != 1 {
		t.Errorf("attempt %d", attempt)
	}
}

// The server's clock is set an hour back after a process has read it.
func TestAServersClockThatIsSetBackMakesNoJobEarly(t *testing.T) {
	q := open(t, Config{})
	q.clock.set(time.Now().Add(time.Hour))
	q.clock.local = q.clock.local.Add(-2 * lookEach) // the last reading is old
	const delay = 300 * time.Millisecond
	ran := make(chan time.Time, 1)
	due := time.Now().Add(delay)
	enqueue(t, q, jobqueue.Job{Key: "later", Delay: delay})
	work(t, q, func(context.Context, *jobqueue.Delivery) error { ran <- time.Now(); return nil })
	if now := await.Receive(t, "the job runs", ran); now.Before(due) {
		t.Errorf("run %s early", due.Sub(now))
	}
}

// A job enqueued before the server's clock was set back seems to come from the future. It waits for
// its delay once more, and no longer.
func TestAJobFromTheFutureWaitsForItsDelayOnly(t *testing.T) {
	q := open(t, Config{})
	const delay = 300 * time.Millisecond
	enqueue(t, q, jobqueue.Job{Key: "later", Delay: delay})
	q.clock.set(time.Now().Add(-time.Hour))
	due := time.Now().Add(delay)
	ran := make(chan time.Time, 1)
	work(t, q, func(context.Context, *jobqueue.Delivery) error { ran <- time.Now(); return nil })
	if now := await.Receive(t, "the job runs", ran); now.Before(due) {
		t.Errorf("run %s early", due.Sub(now))
	}
}

// The answer about the time was slow, so a delayed job seems to be early. The job is put back,
// which is no attempt.
func TestADelayedJobThatSeemsEarlyKeepsItsOnlyAttempt(t *testing.T) {
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 1}})
	enqueue(t, q, jobqueue.Job{Key: "later", Delay: 300 * time.Millisecond})
	got := make(chan int, 1)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { got <- d.Attempt; return nil })
	await.True(t, "the engine has its timer", func() bool { return stats(t, q).Ready == 0 })
	q.clock.set(time.Now().Add(-50 * time.Millisecond))
	if attempt := await.Receive(t, "the job runs", got); attempt != 1 {
		t.Errorf("attempt %d", attempt)
	}
}
