package jobqueuetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/jobqueue"
)

func heartbeats(w *world) {
	q := w.queue()
	var seen journal
	ended := make(chan error, 9)
	handler := func(ctx context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		var err error
		for range 25 { // two and a half times as long as it may be silent
			select {
			case <-time.After(w.options.AckWait / 10):
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			if err == nil {
				err = d.Progress(ctx)
			}
		}
		ended <- err
		return nil
	}
	w.work(q, handler)
	w.work(w.queue(), handler)
	w.keys(q, "a")
	if err := wait(w, "the job ends", ended); err != nil {
		w.Errorf("a job with signs of life: %v", err)
	}
	w.empty(q)
	if seen.len() != 1 {
		w.Errorf("it ran %d times", seen.len())
	}
}

func silent(w *world) {
	q, other := w.queue(), w.queue()
	caught, again, gate := make(chan error, 1), make(chan int, 9), make(chan bool)
	second := func(_ context.Context, d *jobqueue.Delivery) error {
		again <- d.Attempt
		return nil
	}
	var first atomic.Bool
	w.work(q, func(ctx context.Context, d *jobqueue.Delivery) error {
		if !first.CompareAndSwap(false, true) {
			return second(ctx, d)
		}
		<-ctx.Done()
		if err := d.Progress(context.WithoutCancel(ctx)); !errors.Is(err, jobqueue.ErrLost) {
			w.Errorf("Progress of a job that is lost: %v", err)
		}
		caught <- context.Cause(ctx)
		<-gate
		return errFailed // too late
	})
	release := sync.OnceFunc(func() { close(gate) })
	w.Cleanup(release)
	w.keys(q, "a")
	w.until("the job runs", func() bool { return w.stats(q).Running == 1 })
	w.work(other, second)
	if attempt := wait(w, "another worker has the job", again); attempt != 2 {
		w.Errorf("attempt %d", attempt)
	}
	if err := wait(w, "the silent worker is told", caught); !errors.Is(err, jobqueue.ErrLost) {
		w.Errorf("the context's cause: %v", err)
	}
	release()
	w.empty(q)
	w.until("one run is lost and one is done", func() bool {
		a, b := w.stats(q), w.stats(other)
		return a.Lost == 1 && a.Done+b.Done == 1 && b.Lost == 0
	})
}

func contexts(w *world) {
	q := w.queue()
	ended, cancel := context.WithCancel(w.Context())
	cancel()
	for name, call := range map[string]func() error{
		"Enqueue": func() error { _, err := q.Enqueue(ended, jobqueue.Job{Key: "a"}); return err },
		"Work":    func() error { return q.Work(ended, nothing) },
		"Dead":    func() error { _, err := q.Dead(ended, 1); return err },
		"Replay":  func() error { return q.Replay(ended, 1) },
		"Purge":   func() error { _, err := q.Purge(ended, jobqueue.Waiting); return err },
		"Stats":   func() error { _, err := q.Stats(ended); return err },
	} {
		if err := call(); !errors.Is(err, context.Canceled) {
			w.Errorf("%s with a context that has ended: %v", name, err)
		}
	}
}

func purge(w *world) {
	q := w.queue()
	w.keys(q, "a", "b")
	w.put(q, jobqueue.Job{Key: "c", Delay: time.Hour})
	if n, err := q.Purge(w.Context(), jobqueue.Waiting); n != 3 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	w.empty(q)
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error { return jobqueue.Dead(d.Key) })
	w.keys(q, "d", "e")
	w.buried(q, 2)
	if n, err := q.Purge(w.Context(), jobqueue.DeadLetters); n != 2 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	w.buried(q, 0)
	if s := w.stats(q); s.Dead != 0 || s.Done != 0 {
		w.Errorf("%+v", s)
	}
}
