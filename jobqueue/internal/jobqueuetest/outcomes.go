package jobqueuetest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func doneOnce(w *world) {
	q := w.queue()
	const jobs = 20
	began := time.Now()
	header := map[string]string{"traceparent": "00-x", "Weird: name\n": " value \r\n"}
	for i := range jobs {
		key := fmt.Sprint("a key\nof two lines, 100 % ü ", i)
		w.put(q, jobqueue.Job{Key: key, Priority: spillway.High, Payload: []byte("payload\x00\r\n" + key), Header: header})
	}
	if s := w.ready(q, jobs); s.Enqueued != jobs || s.Dead != 0 {
		w.Errorf("before any work: %+v", s)
	}
	var seen journal
	w.work(q, func(ctx context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		if string(d.Payload) != "payload\x00\r\n"+d.Key || !maps.Equal(d.Header, header) || d.Attempt != 1 || d.Priority != spillway.High || spillway.PriorityFrom(ctx) != spillway.High || d.Delay != 0 {
			w.Errorf("delivered %+v", d)
		}
		// The engine's clock may differ.
		if now := time.Now(); d.Enqueued.Before(began.Add(-time.Minute)) || d.Enqueued.After(now.Add(time.Minute)) {
			w.Errorf("enqueued at %v, the test began at %v, and it is %v", d.Enqueued, began, now)
		}
		return nil
	})
	w.until("all are done", func() bool { return w.stats(q).Done == jobs })
	w.empty(q)
	keys := seen.keys()
	slices.Sort(keys)
	if len(keys) != jobs || len(slices.Compact(keys)) != jobs {
		w.Errorf("%d runs of %d jobs: %v", seen.len(), jobs, keys)
	}
}

func backoff(w *world) {
	q := w.queue()
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		if d.Attempt < 3 {
			return errFailed
		}
		return nil
	})
	w.keys(q, "a")
	w.until("it is done", func() bool { return w.stats(q).Done == 1 })
	if got := seen.attempts(); !slices.Equal(got, []int{1, 2, 3}) {
		w.Fatalf("attempts %v", got)
	}
	runs := seen.all()
	if first := runs[1].at.Sub(runs[0].at); first < w.options.Policy.Backoff {
		w.Errorf("the second attempt came after %v, the back-off is %v", first, w.options.Policy.Backoff)
	}
	if s := w.stats(q); s.Retried != 2 || s.Buried != 0 {
		w.Errorf("%+v", s)
	}
}

func retryAfter(w *world) {
	q := w.queue()
	const after = 400 * time.Millisecond
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		if d.Attempt == 1 {
			return fmt.Errorf("not now: %w", jobqueue.RetryAfter(after, errFailed))
		}
		return nil
	})
	w.keys(q, "a")
	w.until("it is done", func() bool { return w.stats(q).Done == 1 })
	runs := seen.all()
	if got := seen.attempts(); !slices.Equal(got, []int{1, 2}) {
		w.Fatalf("attempts %v", got)
	}
	if waited := runs[1].at.Sub(runs[0].at); waited < after {
		w.Errorf("tried again after %v, it asked for %v", waited, after)
	}
}

func lastAttempt(w *world) {
	q := w.queue()
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		return fmt.Errorf("failure %d", d.Attempt)
	})
	w.put(q, jobqueue.Job{Key: "a", Payload: []byte("p"), Header: map[string]string{"h": "v"}, Priority: spillway.Low})
	d := w.buried(q, 1)[0]
	if d.Job.Key != "a" || string(d.Job.Payload) != "p" || d.Job.Header["h"] != "v" || d.Job.Priority != spillway.Low || d.Reason != "failure 3" || d.Attempts != 3 || d.Died.IsZero() {
		w.Errorf("dead letter %+v", d)
	}
	if got := seen.attempts(); !slices.Equal(got, []int{1, 2, 3}) {
		w.Errorf("attempts %v", got)
	}
	w.empty(q)
	if s := w.stats(q); s.Dead != 1 || s.Buried != 1 || s.Retried != 2 {
		w.Errorf("%+v", s)
	}
}

func deadAndReplayed(w *world) {
	q := w.queue()
	var seen journal
	var mu sync.Mutex
	broken := true
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		mu.Lock()
		defer mu.Unlock()
		if broken {
			return fmt.Errorf("it is useless: %w", jobqueue.Dead("no such patient "+d.Key))
		}
		return nil
	})
	w.keys(q, "a")
	w.buried(q, 1)
	w.keys(q, "b", "c")
	w.buried(q, 3)
	if some, err := q.Dead(w.Context(), 1); err != nil || len(some) != 1 || some[0].Job.Key != "a" {
		w.Errorf("the oldest dead letter: %v, %v", some, err)
	}
	dead := w.buried(q, 3)
	for _, d := range dead {
		if d.Attempts != 1 || !strings.Contains(d.Reason, "no such patient "+d.Job.Key) {
			w.Errorf("dead letter %+v", d)
		}
	}
	mu.Lock()
	broken = false
	mu.Unlock()
	if err := q.Replay(w.Context(), dead[1].ID); err != nil {
		w.Fatalf("Replay: %v", err)
	}
	w.until("it is done", func() bool { return w.stats(q).Done == 1 })
	runs := seen.all()
	if last := runs[len(runs)-1]; len(runs) != 4 || last.key != dead[1].Job.Key || last.attempt != 1 {
		w.Errorf("runs %+v", runs)
	}
	w.buried(q, 2)
	for _, id := range []uint64{dead[1].ID, 1 << 40} {
		if err := q.Replay(w.Context(), id); !errors.Is(err, jobqueue.ErrNotFound) {
			w.Errorf("Replay of %d, which is none: %v", id, err)
		}
	}
}

func rejected(w *world) {
	const after = 120 * time.Millisecond
	deferred(w, &spillway.Rejection{Reason: spillway.ReasonWaitTooLong, RetryAfter: after}, after)
}

func notYet(w *world) {
	const after = 300 * time.Millisecond
	deferred(w, jobqueue.NotYet(after, nil), after)
}

// deferred has a handler return an error that counts no attempt.
func deferred(w *world, err error, after time.Duration) {
	q := w.queue()
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		if seen.len() <= 3 {
			return fmt.Errorf("below: %w", err)
		}
		return nil
	})
	w.keys(q, "a")
	w.until("it is done", func() bool { return w.stats(q).Done == 1 })
	if got := seen.attempts(); !slices.Equal(got, []int{1, 1, 1, 1}) {
		w.Fatalf("attempts %v", got)
	}
	for i, runs := 1, seen.all(); i < len(runs); i++ {
		if waited := runs[i].at.Sub(runs[i-1].at); waited < after {
			w.Errorf("run %d came after %v, it asked for %v", i+1, waited, after)
		}
	}
	if s := w.stats(q); s.Deferred != 3 || s.Retried != 0 || s.Dead != 0 {
		w.Errorf("%+v", s)
	}
}

// crowded has more jobs that must wait than a worker holds, before a job that need not.
func crowded(w *world) {
	q := w.queue()
	for range 10 * w.options.MaxInFlight {
		w.put(q, jobqueue.Job{Priority: spillway.Critical})
	}
	w.put(q, jobqueue.Job{Key: "fine", Priority: spillway.Low})
	var early atomic.Int32
	stop := w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key == "fine" {
			return nil
		}
		early.Add(1)
		return jobqueue.NotYet(100*time.Millisecond, nil)
	})
	const most = 1000 // after 200 runs a lower priority has its turn
	w.until("the job that need not wait is done", func() bool { return w.stats(q).Done == 1 || early.Load() > most })
	if w.stats(q).Done == 0 {
		w.Errorf("%d runs of jobs that must wait, and none of the job that need not", early.Load())
	}
	_ = stop()
}

func rejectedHere(w *world) {
	goes(w, &spillway.Rejection{Reason: spillway.ReasonQuota, RetryAfter: 50 * time.Millisecond})
}

func notHere(w *world) { goes(w, jobqueue.NotHere(errFailed)) }

// goes has a worker refuse all jobs with err, for as long as the worker lives. Another worker gets
// the jobs, including those that the first one had.
func goes(w *world, err error) {
	q, other := w.queue(), w.queue()
	jobs := 5 * w.options.MaxInFlight
	for i := range jobs {
		w.keys(q, fmt.Sprint(i))
	}
	w.work(q, func(context.Context, *jobqueue.Delivery) error { return err })
	w.until("all that it takes are refused", func() bool { return w.stats(q).Deferred >= uint64(jobs) })
	w.work(other, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Attempt != 1 {
			w.Errorf("a job that was refused elsewhere is at attempt %d", d.Attempt)
		}
		return nil
	})
	w.until("the other does all", func() bool { return w.stats(other).Done == uint64(jobs) })
	w.empty(q)
	if s := w.stats(q); s.Done != 0 || s.Dead != 0 || s.Retried != 0 {
		w.Errorf("%+v", s)
	}
}

func panics(w *world) { ends(w, func() { panic("boom") }, "boom") }

func exits(w *world) { ends(w, runtime.Goexit, "Goexit") }

// ends checks a handler that ends in an unusual way.
func ends(w *world, end func(), reason string) {
	q := w.queue()
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		if d.Key == "a" {
			end()
		}
		return nil
	})
	w.keys(q, "a")
	if d := w.buried(q, 1)[0]; d.Attempts != 2 || !strings.Contains(d.Reason, reason) {
		w.Errorf("dead letter %+v", d)
	}
	w.keys(q, "b")
	w.until("the worker goes on", func() bool { return w.stats(q).Done == 1 })
	if s := w.stats(q); s.Running != 0 || s.Retried != 1 {
		w.Errorf("%+v", s)
	}
}

// badErrors has a handler return errors whose methods panic. The queue has a limiter, which calls
// the methods too.
func badErrors(w *world) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(2)})
	if err != nil {
		w.Fatal(err)
	}
	o := quick(2)
	o.Limiter = lim
	w.open, w.restart = w.engine.New(w.T, o)
	q := w.queue()
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		switch d.Key {
		case "is":
			return panicking{}
		case "nil":
			return (*absent)(nil)
		}
		return nil
	})
	w.keys(q, "is", "nil")
	for _, d := range w.buried(q, 2) {
		if d.Attempts != 2 || !strings.Contains(d.Reason, "panics") {
			w.Errorf("dead letter %+v", d)
		}
	}
	w.keys(q, "b")
	w.until("the worker goes on", func() bool { return w.stats(q).Done == 1 })
	w.until("all permits are back", func() bool { return lim.Stats().InFlight == 0 })
}

type panicking struct{}

func (panicking) Error() string { return "an error" }

func (panicking) Is(error) bool { panic("boom") }

type absent struct{ cause error }

func (a *absent) Error() string { return a.cause.Error() }

func (a *absent) Unwrap() error { return a.cause }

func delayed(w *world) {
	q := w.queue()
	const delay = 600 * time.Millisecond
	var seen journal
	began := time.Now()
	w.put(q, jobqueue.Job{Key: "later", Delay: delay})
	w.keys(q, "now")
	w.until("two are waiting", func() bool { // an engine may count late, and count a delayed job as ready
		s := w.stats(q)
		return s.Delayed+s.Ready == 2
	})
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		return nil
	})
	w.empty(q)
	for _, run := range seen.all() {
		if early := run.key == "later" && run.at.Sub(began) < delay; early || run.attempt != 1 {
			w.Errorf("%q ran after %v, attempt %d", run.key, run.at.Sub(began), run.attempt)
		}
	}
	if keys := seen.keys(); len(keys) != 2 {
		w.Errorf("runs %v", keys)
	}
}
