package memory

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/internal/jobqueuetest"
)

func TestItKeepsTheWordsOfAQueue(t *testing.T) {
	jobqueuetest.Run(t, jobqueuetest.Engine{
		Largest:  1 << 10,
		TooLarge: 1<<10 + 1,
		Around:   synctest.Test,
		New: func(t *testing.T, o jobqueuetest.Options) (func() jobqueue.Queue, func()) {
			first, err := newQueue(Config{MaxQueued: o.MaxQueued, MaxInFlight: o.MaxInFlight, AckWait: o.AckWait, Dedupe: o.Dedupe,
				Policy: o.Policy, Limiter: o.Limiter, MaxPayload: 1 << 10})
			if err != nil {
				t.Fatal(err)
			}
			return func() jobqueue.Queue { return first.another() }, nil
		},
	})
}

// A limiter that rejects many requests may advise a retry in a minute. It can have room long before
// then, if other callers stop.
func TestTheLimiterIsSoonAskedAgain(t *testing.T) {
	for advised, want := range map[time.Duration]time.Duration{0: 10 * time.Millisecond, time.Second / 2: time.Second / 2, time.Minute: limiterAgain} {
		if got := advice(&spillway.Rejection{RetryAfter: advised}); got != want {
			t.Errorf("advised %s: asked again after %s", advised, got)
		}
	}
}

// The context of Work is user code. Work used to call its methods while the queue was locked: a
// context method that called Stats deadlocked.
func TestTheContextOfWorkMayLookAtTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := newQueue(Config{AckWait: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		inner, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() {
			ended <- q.Work(looking{inner, q}, func(ctx context.Context, d *jobqueue.Delivery) error {
				if d.Key == "silent" {
					<-ctx.Done()
				}
				return nil
			})
		}()
		for _, key := range []string{"a", "silent"} {
			if _, err := q.Enqueue(t.Context(), jobqueue.Job{Key: key}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if s, err := q.Stats(t.Context()); s.Done == 0 || s.Lost == 0 || err != nil {
			t.Errorf("%+v, %v", s, err)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// looking is a context whose methods call Stats.
type looking struct {
	context.Context
	q *queue
}

func (l looking) look() { _, _ = l.q.Stats(context.Background()) }

func (l looking) Done() <-chan struct{} { l.look(); return l.Context.Done() }

func (l looking) Err() error { l.look(); return l.Context.Err() }

func (l looking) Value(key any) any { l.look(); return l.Context.Value(key) }

func (l looking) Deadline() (time.Time, bool) { l.look(); return l.Context.Deadline() }

// A context derived from a user-defined context ends slightly later than its parent. Work used to
// retake, again and again, a job that was handed back in between.
func TestNoJobIsTakenOnceTheContextOfWorkHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q, err := newQueue(Config{MaxInFlight: 1})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := q.Enqueue(t.Context(), jobqueue.Job{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx := &untold{Context: t.Context(), done: make(chan struct{})}
		tell := sync.OnceFunc(func() { close(ctx.done) })
		ran := 0
		err = q.Work(ctx, func(context.Context, *jobqueue.Delivery) error {
			if ran++; ran > 1 {
				tell()
			}
			ctx.ended.Store(true)
			return nil
		})
		if ran != 1 || !errors.Is(err, context.Canceled) {
			t.Errorf("%d jobs were taken, and Work returned %v", ran, err)
		}
		tell()
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// untold is a context that has ended, while contexts derived from it have not ended yet.
type untold struct {
	context.Context
	ended atomic.Bool
	done  chan struct{}
}

func (u *untold) Done() <-chan struct{} { return u.done }

func (u *untold) Err() error {
	if u.ended.Load() {
		return context.Canceled
	}
	return nil
}
