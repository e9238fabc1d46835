package jobqueuetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func workEnds(w *world) {
	q := w.queue()
	running, released := make(chan bool, 1), make(chan bool)
	var returned atomic.Bool
	stop := w.work(q, func(ctx context.Context, _ *jobqueue.Delivery) error {
		running <- true
		<-ctx.Done()
		<-released
		returned.Store(true)
		return nil
	})
	w.keys(q, "a")
	await.Receive(w, "the job runs", running)
	ended := make(chan error, 1)
	go func() { ended <- stop() }()
	close(released)
	if err := await.Receive(w, "Work returns", ended); !errors.Is(err, context.Canceled) || !returned.Load() {
		w.Errorf("Work returned %v, its handler had returned: %v", err, returned.Load())
	}
	w.until("the job is done, because its handler said so", func() bool { return w.stats(q).Done == 1 })
}

// expired is a context that ends with DeadlineExceeded when the test closes done.
type expired struct {
	context.Context
	done chan struct{}
}

func (e expired) Deadline() (time.Time, bool) { return time.Now().Add(time.Hour), true }

func (e expired) Done() <-chan struct{} { return e.done }

func (e expired) Err() error {
	select {
	case <-e.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// endedWork checks that a run that fails after the end of Work counts no attempt, for any error and
// any end of Work.
func endedWork(w *world) {
	for _, end := range []string{"a cancel", "a deadline"} {
		for name, fail := range map[string]func(ctx context.Context) error{
			"the context's error": func(ctx context.Context) error { return fmt.Errorf("interrupted: %w", ctx.Err()) },
			"an error of its own": func(context.Context) error { return errors.New("query cancelled on user request") },
			"another time":        func(context.Context) error { return jobqueue.RetryAfter(time.Hour, errFailed) },
			"a panic":             func(context.Context) error { panic("no connection") },
		} {
			q, other := w.open(), w.open()
			ctx, cancel := context.WithCancel(context.Background())
			if end == "a deadline" {
				e := expired{context.Background(), make(chan struct{})}
				ctx, cancel = e, sync.OnceFunc(func() { close(e.done) })
			}
			running, ended := make(chan bool, 1), make(chan error, 1)
			go func() {
				ended <- q.Work(ctx, func(ctx context.Context, _ *jobqueue.Delivery) error {
					running <- true
					<-ctx.Done()
					return fail(ctx)
				})
			}()
			w.Cleanup(cancel)
			w.put(q, jobqueue.Job{})
			await.Receive(w, "the job runs", running)
			cancel()
			if err := await.Receive(w, "Work returns", ended); !errors.Is(err, ctx.Err()) {
				w.Errorf("Work that ended by %s: %v", end, err)
			}
			if s := w.stats(q); s.Retried+s.Deferred+s.Buried+s.Lost != 0 || s.Dead != 0 {
				w.Fatalf("ended by %s, the handler by %s: %+v", end, name, s)
			}
			w.again(other)
			if err := errors.Join(q.Close(), other.Close()); err != nil { // so that neither queue receives the next job
				w.Errorf("Close: %v", err)
			}
		}
	}
}

// again checks that another worker does the job, as the first attempt.
func (w *world) again(other jobqueue.Queue) {
	w.Helper()
	attempts := make(chan int, 9)
	w.work(other, func(_ context.Context, d *jobqueue.Delivery) error {
		attempts <- d.Attempt
		return nil
	})
	if n := await.Receive(w, "another worker does it", attempts); n != 1 {
		w.Errorf("a job that was handed back says attempt %d", n)
	}
	w.empty(other)
}

// refused checks the reason for which a queue refuses jobs.
func (w *world) refused(q jobqueue.Queue, reason spillway.Reason) {
	w.Helper()
	_, err := q.Enqueue(w.Context(), jobqueue.Job{})
	if r, ok := errors.AsType[*spillway.Rejection](err); !ok || r.Reason != reason {
		w.Errorf("Enqueue: %v, want %v", err, reason)
	}
	if q.Open() {
		w.Errorf("it is open, and refuses jobs for %v", reason)
	}
}

func drain(w *world) {
	q, other := w.queue(), w.queue()
	if !q.Open() {
		w.Error("it is not open")
	}
	running, gate := make(chan bool, 9), make(chan bool)
	var ran atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	w.Cleanup(cancel)
	worked := make(chan error, 1)
	go func() {
		worked <- q.Work(ctx, func(ctx context.Context, _ *jobqueue.Delivery) error {
			ran.Add(1)
			running <- true
			<-gate
			return ctx.Err()
		})
	}()
	w.keys(q, "a", "b", "c")
	await.Receive(w, "a job runs", running)
	drained := make(chan error, 1)
	go func() { drained <- q.Drain(context.Background()) }()
	w.until("the intake is closed", func() bool {
		_, err := q.Enqueue(w.Context(), jobqueue.Job{Key: "a"})
		return err != nil
	})
	w.refused(q, spillway.ReasonDraining)
	select {
	case err := <-drained:
		w.Fatalf("Drain did not wait: %v", err)
	default:
	}
	close(gate)
	if err := await.Receive(w, "Drain returns", drained); err != nil {
		w.Errorf("Drain: %v", err)
	}
	if err := await.Receive(w, "Work returns", worked); err != nil {
		w.Errorf("Work after Drain: %v", err)
	}
	if s := w.ready(other, 2); ran.Load() != 1 {
		w.Errorf("%d ran, two must be left: %+v", ran.Load(), s)
	}
	w.work(other, nothing)
	w.until("the other queue does the rest", func() bool { return w.stats(other).Done == 2 })
}

func drainTooShort(w *world) {
	q := w.queue()
	running, gate := make(chan bool, 1), make(chan bool)
	w.work(q, func(context.Context, *jobqueue.Delivery) error {
		running <- true
		<-gate
		return nil
	})
	w.keys(q, "a")
	await.Receive(w, "the job runs", running)
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(-time.Second)) // a deadline in the past
	defer cancel()
	err := q.Drain(ctx)
	if d, ok := errors.AsType[*spillway.DrainError](err); !ok || d.Running != 1 || d.Dropped != 0 || !errors.Is(err, context.DeadlineExceeded) {
		w.Errorf("Drain: %v", err)
	}
	close(gate)
	if err := q.Drain(context.Background()); err != nil {
		w.Errorf("Drain again: %v", err)
	}
	if s := w.stats(q); s.Done != 1 || s.Running != 0 {
		w.Errorf("%+v", s)
	}
}

// drainRace enqueues from several goroutines while the queue drains.
func drainRace(w *world) {
	q, other := w.queue(), w.queue()
	var stored atomic.Int64
	some := make(chan bool)
	var producers sync.WaitGroup
	for i := range 8 {
		producers.Go(func() {
			for n := 0; ; n++ {
				_, err := q.Enqueue(context.Background(), jobqueue.Job{Key: fmt.Sprint(i, "-", n)})
				if errors.Is(err, spillway.ErrRejected) {
					return
				}
				if err != nil {
					w.Errorf("Enqueue: %v", err)
					return
				}
				if stored.Add(1) == 50 {
					close(some)
				}
			}
		})
	}
	w.work(q, nothing)
	await.Receive(w, "some are stored", some)
	if err := q.Drain(context.Background()); err != nil {
		w.Errorf("Drain: %v", err)
	}
	producers.Wait()
	w.work(other, nothing)
	w.empty(other)
	w.until("all that was acknowledged is done", func() bool { return w.stats(q).Done+w.stats(other).Done == uint64(stored.Load()) })
}

func closing(w *world) {
	q, other := w.open(), w.queue()
	running, cause := make(chan bool, 1), make(chan error, 1)
	worked := make(chan error, 1)
	go func() {
		worked <- q.Work(context.Background(), func(ctx context.Context, _ *jobqueue.Delivery) error {
			running <- true
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return context.Cause(ctx)
		})
	}()
	w.keys(q, "a")
	await.Receive(w, "the job runs", running)
	if err := q.Close(); err != nil {
		w.Errorf("Close: %v", err)
	}
	if err := await.Receive(w, "the handler is released", cause); !errors.Is(err, jobqueue.ErrLost) {
		w.Errorf("the context's cause: %v", err)
	}
	if err := await.Receive(w, "Work returns", worked); err != nil {
		w.Errorf("Work after Close: %v", err)
	}
	w.refused(q, spillway.ReasonClosed)
	if err := q.Work(context.Background(), nothing); err != nil {
		w.Errorf("Work once closed: %v", err)
	}
	if err := q.Close(); err != nil {
		w.Errorf("Close again: %v", err)
	}
	w.again(other)
}
