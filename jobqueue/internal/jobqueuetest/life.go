package jobqueuetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// heartbeats has a job report progress for two and a half times AckWait. If the machine stalls for
// AckWait between two reports, the engine is not at fault: the job is delivered again and repeats
// the check.
func heartbeats(w *world) {
	const signs = 25
	q := w.queue()
	var mu sync.Mutex
	runs, undisturbed, disturbed := 0, 0, 0
	handler := func(ctx context.Context, d *jobqueue.Delivery) error {
		last, longest := time.Now(), time.Duration(0)
		mu.Lock()
		runs++
		mu.Unlock()
		var err error
		for range signs {
			next := time.NewTimer(w.options.AckWait / 10)
			select {
			case <-next.C:
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
			next.Stop()
			asked := time.Now() // before the report reaches the engine
			if err == nil {
				err = d.Progress(ctx)
			}
			now := time.Now()
			longest, last = max(longest, now.Sub(last)), asked
			if err != nil {
				break
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if longest > w.options.AckWait*3/4 { // an engine may be early, but not by a quarter
			disturbed++
			return nil
		}
		if undisturbed++; err != nil {
			w.Errorf("a job with signs of life, at most %v apart: %v", longest, err)
		}
		return nil
	}
	w.work(q, handler)
	w.work(w.queue(), handler)
	w.keys(q, "a")
	w.until("a job has run undisturbed", func() bool {
		mu.Lock()
		well, allOver := undisturbed > 0, runs > 0 && runs == disturbed
		mu.Unlock()
		if allOver && w.stats(q).Depth == (jobqueue.Depth{}) {
			w.put(q, jobqueue.Job{})
		}
		return well
	})
	w.empty(q)
	mu.Lock()
	defer mu.Unlock()
	if runs != 1+disturbed {
		w.Errorf("it ran %d times, %d of them disturbed", runs, disturbed)
	}
}

func silent(w *world) {
	q, other := w.queue(), w.queue()
	caught, again, gate := make(chan error, 1), make(chan int, 100), make(chan bool)
	var runs, attempts atomic.Uint64
	second := func(_ context.Context, d *jobqueue.Delivery) error {
		runs.Add(1)
		attempts.Store(uint64(d.Attempt))
		again <- d.Attempt
		return nil
	}
	var first atomic.Bool
	w.work(q, func(ctx context.Context, d *jobqueue.Delivery) error {
		if !first.CompareAndSwap(false, true) {
			return second(ctx, d)
		}
		runs.Add(1)
		<-ctx.Done()
		if err := d.Progress(context.WithoutCancel(ctx)); !errors.Is(err, jobqueue.ErrLost) {
			w.Errorf("Progress of a job that is lost: %v", err)
		}
		caught <- context.Cause(ctx)
		<-gate
		return errFailed // too late: the run has lost the job
	})
	release := sync.OnceFunc(func() { close(gate) })
	w.Cleanup(release)
	w.keys(q, "a")
	w.until("the job runs", func() bool { return w.stats(q).Running == 1 })
	w.work(other, second)
	if attempt := await.Receive(w, "another worker has the job", again); attempt < 2 {
		w.Errorf("attempt %d", attempt)
	}
	if err := await.Receive(w, "the silent worker is told", caught); !errors.Is(err, jobqueue.ErrLost) {
		w.Errorf("the context's cause: %v", err)
	}
	release()
	w.empty(q)
	// If the machine stalls for AckWait, a later run is lost too, the run that does the job among them, and a
	// job before its run.
	w.until("the first run is lost, and the last one is done", func() bool {
		a, b := w.stats(q), w.stats(other)
		lost := a.Lost + b.Lost
		return a.Lost > 0 && lost >= runs.Load()-1 && lost <= attempts.Load() && a.Done+b.Done == 1
	})
}

// lateSuccess has a worker run a job for too long. Another worker does the job meanwhile.
func lateSuccess(w *world) {
	for _, after := range []bool{true, false} { // the first run ends after the second one, or during it
		q, other := w.open(), w.queue()
		gate, second, over := make(chan bool), make(chan bool), make(chan bool)
		var runs atomic.Uint64
		handler := func(context.Context, *jobqueue.Delivery) error {
			if runs.Add(1) == 1 {
				<-gate
				return nil
			}
			for range 2 { // the first send reports the run, the second ends it
				select {
				case second <- true:
				case <-over:
				}
			}
			return nil
		}
		release, let := sync.OnceFunc(func() { close(gate) }), sync.OnceFunc(func() { close(over) })
		stop := w.work(q, handler)
		w.put(q, jobqueue.Job{})
		w.until("the job runs", func() bool { return w.stats(q).Running == 1 })
		end := w.work(other, handler)
		w.Cleanup(func() { release(); let() }) // before the workers stop, because they wait for their handlers
		if after {
			let()
			w.until("another run is done", func() bool { return w.stats(q).Done+w.stats(other).Done == 1 })
			release()
		} else {
			await.Receive(w, "the job runs again", second)
			release()
			w.until("the first run is lost", func() bool { return w.stats(q).Lost > 0 })
			let()
		}
		w.empty(q)
		w.until("nothing runs", func() bool { return w.stats(q).Running+w.stats(other).Running == 0 })
		a, b := w.stats(q), w.stats(other)
		// If the machine stalls for AckWait, a later run is lost too.
		if lost := a.Lost + b.Lost; a.Done+b.Done != 1 || lost < 1 || lost > runs.Load() || a.Retried+b.Retried+a.Buried+b.Buried != 0 {
			w.Errorf("the first run ended after the second: %t, %d runs: %+v and %+v", after, runs.Load(), a, b)
		}
		_, _ = stop(), end()
		if err := q.Close(); err != nil {
			w.Errorf("Close: %v", err)
		}
	}
}

// lastRunLost has the only permitted run of a job report no progress.
func lastRunLost(w *world) {
	q, other := w.queue(), w.queue()
	gate := make(chan bool)
	release := sync.OnceFunc(func() { close(gate) })
	handler := func(context.Context, *jobqueue.Delivery) error {
		<-gate
		return errFailed
	}
	w.work(q, handler)
	w.work(other, handler)
	w.Cleanup(release)
	w.keys(q, "a")
	if d := w.buried(q, 1)[0]; d.Attempts != 1 {
		w.Errorf("dead letter %+v", d)
	}
	release()
	w.until("the run is lost, and the burial counted once", func() bool {
		a, b := w.stats(q), w.stats(other)
		return a.Lost+b.Lost == 1 && a.Buried+b.Buried == 1
	})
	w.empty(q)
}

func deadOrDone(_ context.Context, d *jobqueue.Delivery) error {
	if strings.HasPrefix(d.Key, "dead") {
		return jobqueue.Dead(d.Key)
	}
	return nil
}

func contexts(w *world) {
	q := w.queue()
	cancelled, cancel := context.WithCancel(w.Context())
	cancel()
	late := expired{w.Context(), make(chan struct{})}
	close(late.done)
	for _, ended := range []context.Context{cancelled, late} {
		w.ends(q, ended)
	}
}

// ends checks that each call with a context that has ended returns the context's error.
func (w *world) ends(q jobqueue.Queue, ended context.Context) {
	for name, call := range map[string]func() error{
		"Enqueue":   func() error { _, err := q.Enqueue(ended, jobqueue.Job{Key: "a"}); return err },
		"Work":      func() error { return q.Work(ended, nothing) },
		"Dead":      func() error { _, err := q.Dead(ended, 1); return err },
		"Replay":    func() error { return q.Replay(ended, 1) },
		"Purge":     func() error { _, err := q.Purge(ended); return err },
		"PurgeDead": func() error { _, err := q.PurgeDead(ended); return err },
		"Stats":     func() error { _, err := q.Stats(ended); return err },
	} {
		if err := call(); !errors.Is(err, ended.Err()) {
			w.Errorf("%s with a context that has ended with %v: %v", name, ended.Err(), err)
		}
	}
}

func purge(w *world) {
	q := w.queue()
	w.keys(q, "a", "b")
	w.put(q, jobqueue.Job{Key: "c", Delay: time.Hour})
	if n, err := q.Purge(w.Context()); n != 3 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	w.empty(q)
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error { return jobqueue.Dead(d.Key) })
	w.keys(q, "d", "e")
	w.buried(q, 2)
	if n, err := q.PurgeDead(w.Context()); n != 2 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	w.buried(q, 0)
	if s := w.stats(q); s.Dead != 0 || s.Done != 0 {
		w.Errorf("%+v", s)
	}
}

// purgedRunning checks that Purge does not count the jobs that run: they end.
func purgedRunning(w *world) {
	q := w.queue()
	running, release := make(chan bool, w.options.MaxInFlight), make(chan bool)
	w.work(q, func(context.Context, *jobqueue.Delivery) error {
		running <- true
		<-release
		return nil
	})
	w.Cleanup(sync.OnceFunc(func() { close(release) }))
	for range w.options.MaxInFlight {
		w.put(q, jobqueue.Job{})
		await.Receive(w, "a job runs", running)
	}
	w.put(q, jobqueue.Job{})
	w.put(q, jobqueue.Job{Delay: time.Hour})
	if n, err := q.Purge(w.Context()); n != 2 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
}

// purgedHeld purges jobs that a worker has rejected and will try again. Only jobs that the worker
// was about to run at that moment may still run.
func purgedHeld(w *world) {
	q := w.queue()
	const after = 200 * time.Millisecond
	jobs := 5 * w.options.MaxInFlight
	for i := range jobs {
		w.keys(q, fmt.Sprint(i))
	}
	var purged atomic.Bool
	var late atomic.Int32
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		switch {
		case d.Key == "later":
			return nil
		case purged.Load():
			late.Add(1)
		}
		return &spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: after}
	})
	w.until("all are rejected", func() bool { return w.stats(q).Deferred >= uint64(jobs) })
	if _, err := w.queue().Purge(w.Context()); err != nil {
		w.Fatal(err)
	}
	purged.Store(true)
	w.put(q, jobqueue.Job{Key: "later", Delay: 3 * after})
	w.until("a later job is done", func() bool { return w.stats(q).Done == 1 })
	w.empty(q)
	if n := late.Load(); int(n) > w.options.MaxInFlight {
		w.Errorf("%d of %d jobs ran after Purge", n, jobs)
	}
}
