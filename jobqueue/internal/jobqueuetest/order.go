package jobqueuetest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func nothing(context.Context, *jobqueue.Delivery) error { return nil }

func keyOnce(w *world) {
	q, other := w.queue(), w.queue()
	var stored atomic.Int64
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			receipt, err := []jobqueue.Queue{q, other}[i%2].Enqueue(w.Context(), jobqueue.Job{Key: "a"})
			if err != nil || receipt.Key != "a" {
				w.Errorf("Enqueue: %+v, %v", receipt, err)
			}
			if !receipt.Duplicate {
				stored.Add(1)
			}
		})
	}
	all.Wait()
	if s := w.ready(q, 1); stored.Load() != 1 {
		w.Errorf("one key was stored %d times: %+v", stored.Load(), s)
	}
	if a, b := w.stats(q), w.stats(other); a.Enqueued+b.Enqueued != 1 || a.Duplicates+b.Duplicates != 7 {
		w.Errorf("counted %+v and %+v", a, b)
	}
	w.work(q, nothing)
	w.empty(q)
	if receipt := w.put(q, jobqueue.Job{Key: "a", Priority: spillway.High}); !receipt.Duplicate {
		w.Errorf("the key of a job that was done: %+v", receipt)
	}
	w.empty(q)
	w.until("one is done", func() bool { return w.stats(q).Done == 1 })
}

func keyForgotten(w *world) {
	q := w.queue()
	w.work(q, nothing)
	w.keys(q, "a")
	w.until("the key is taken again", func() bool { return !w.put(q, jobqueue.Job{Key: "a"}).Duplicate })
	w.until("both are done", func() bool { return w.stats(q).Done == 2 })
}

// keysPurged checks that a key is free once Purge has removed its job, and that the key then
// belongs to the next job. It repeats this several times.
func keysPurged(w *world) {
	q, other := w.queue(), w.queue()
	stop := w.work(q, deadOrDone)
	w.keys(q, "dead", "done")
	w.buried(q, 1)
	w.until("one is done", func() bool { return w.stats(q).Done == 1 })
	_ = stop()
	jobs := []jobqueue.Job{{Key: "ready"}, {Key: "later", Delay: time.Hour}, {Key: "high", Priority: spillway.High}}
	for _, job := range jobs {
		w.put(q, job)
	}
	for range 2 {
		if n, err := other.Purge(w.Context()); n != len(jobs) || err != nil {
			w.Fatalf("Purge: %d, %v", n, err)
		}
		for i, job := range jobs {
			if r := w.put([]jobqueue.Queue{q, other}[i%2], job); r.Duplicate {
				w.Errorf("the key of a job that was removed: %+v", r)
			}
			if r := w.put([]jobqueue.Queue{other, q}[i%2], job); !r.Duplicate {
				w.Errorf("a job that was enqueued again after Purge is stored twice: %+v", r)
			}
		}
		for _, key := range []string{"dead", "done"} {
			if r := w.put(q, jobqueue.Job{Key: key}); !r.Duplicate {
				w.Errorf("the key of a job that Purge did not remove: %+v", r)
			}
		}
	}
	if n, err := q.PurgeDead(w.Context()); n != 1 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	for _, duplicate := range []bool{false, true} {
		if r := w.put(q, jobqueue.Job{Key: "dead"}); r.Duplicate != duplicate {
			w.Errorf("the key of a dead letter that was removed: %+v", r)
		}
		if r := w.put(q, jobqueue.Job{Key: "ready"}); !r.Duplicate {
			w.Errorf("the key of a job that waits: %+v", r)
		}
	}
	w.work(q, deadOrDone)
	dead := w.buried(q, 1)[0]
	if err := q.Replay(w.Context(), dead.ID); err != nil {
		w.Fatal(err)
	}
	if r := w.put(q, jobqueue.Job{Key: "dead"}); !r.Duplicate {
		w.Errorf("the key of a job that was replayed: %+v", r)
	}
	w.until("it is dead again", func() bool { return w.stats(q).Buried == 3 })
	if n, err := q.PurgeDead(w.Context()); n != 1 || err != nil {
		w.Errorf("Purge: %d, %v", n, err)
	}
	if r := w.put(q, jobqueue.Job{Key: "dead"}); r.Duplicate {
		w.Errorf("the key of a dead letter that was replayed, died again and was removed: %+v", r)
	}
}

// keysKept checks the keys of jobs that have not ended.
func keysKept(w *world) {
	q := w.open()
	w.keys(q, "ready")
	w.put(q, jobqueue.Job{Key: "later", Delay: time.Hour})
	if err := q.Close(); err != nil {
		w.Fatal(err)
	}
	if w.restart != nil {
		w.restart()
	}
	q = w.queue()
	for _, key := range []string{"ready", "later"} {
		if r := w.put(q, jobqueue.Job{Key: key}); !r.Duplicate {
			w.Errorf("the key of a job that waits: %+v", r)
		}
	}
	w.work(q, nothing)
	w.until("the job that is ready is done", func() bool { return w.stats(q).Done == 1 })
}

func keysMade(w *world) {
	q := w.queue()
	a, b := w.put(q, jobqueue.Job{}), w.put(q, jobqueue.Job{})
	if a.Key == "" || a.Key == b.Key || a.Duplicate || b.Duplicate {
		w.Errorf("%+v and %+v", a, b)
	}
	var seen journal
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		seen.add(d)
		return nil
	})
	w.until("both are done", func() bool { return w.stats(q).Done == 2 })
	if keys := seen.keys(); !slices.Contains(keys, a.Key) || !slices.Contains(keys, b.Key) {
		w.Errorf("ran %v", keys)
	}
}

// held starts a worker that is busy with a first job until release is called, so that all further
// jobs wait.
func (w *world) held(q jobqueue.Queue, handler jobqueue.Handler) (release func()) {
	busy, gate := make(chan bool, 1), make(chan bool)
	w.keys(q, "first")
	w.work(q, func(ctx context.Context, d *jobqueue.Delivery) error {
		if d.Key != "first" {
			return handler(ctx, d)
		}
		busy <- true
		<-gate
		return nil
	})
	release = sync.OnceFunc(func() { close(gate) })
	w.Cleanup(release) // before the worker stops, because it waits for the handler
	await.Receive(w, "the worker takes the first job", busy)
	return release
}

func priorities(w *world) {
	q := w.queue()
	var mu sync.Mutex
	var order []spillway.Priority
	release := w.held(q, func(_ context.Context, d *jobqueue.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		order = append(order, d.Priority)
		return nil
	})
	for i := range 3 {
		for p := spillway.Low; p <= spillway.Critical; p++ {
			w.put(q, jobqueue.Job{Key: fmt.Sprint(p, i), Priority: p})
		}
	}
	s := w.ready(q, 12)
	for p := spillway.Low; p <= spillway.Critical; p++ {
		if d, known := s.Priorities[p]; known && d.Ready != 3 {
			w.Errorf("%v: %+v, three wait", p, d)
		}
	}
	release()
	w.empty(q)
	if !slices.IsSortedFunc(order, func(a, b spillway.Priority) int { return cmp.Compare(b, a) }) || len(order) != 12 {
		w.Errorf("order %v", order)
	}
}

// floor counts how many jobs of lower priorities ran before the last job of the highest.
func floor(w *world) {
	const high, low = 850, 10 // of each of two lower priorities
	q := w.queue()
	var mu sync.Mutex
	lows, highs, before := map[spillway.Priority]int{}, 0, map[spillway.Priority]int{}
	release := w.held(q, func(_ context.Context, d *jobqueue.Delivery) error {
		mu.Lock()
		defer mu.Unlock()
		if d.Priority != spillway.High {
			lows[d.Priority]++
			return nil
		}
		if highs++; highs == high {
			before = maps.Clone(lows)
		}
		return nil
	})
	var producers sync.WaitGroup
	for i := range 8 {
		producers.Go(func() {
			for n := i; n < high+2*low; n += 8 {
				p := spillway.High
				if n < 2*low {
					p = spillway.Low + spillway.Priority(n%2)
				}
				if _, err := q.Enqueue(w.Context(), jobqueue.Job{Priority: p}); err != nil {
					w.Errorf("Enqueue: %v", err)
				}
			}
		})
	}
	producers.Wait()
	w.ready(q, high+2*low)
	release()
	w.empty(q)
	for _, p := range []spillway.Priority{spillway.Low, spillway.Normal} {
		if most := (high+2*low)/400 + 1; before[p] < 1 || before[p] > most {
			w.Errorf("%d jobs of priority %v ran before the last of %d others, want 1 to %d", before[p], p, high, most)
		}
		if lows[p] != low {
			w.Errorf("%d jobs of priority %v ran", lows[p], p)
		}
	}
	if highs != high {
		w.Errorf("%d jobs ran", highs)
	}
}

func contextPriority(w *world) {
	q := w.queue()
	got := make(chan spillway.Priority, 1)
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		got <- d.Priority
		return nil
	})
	if _, err := q.Enqueue(spillway.WithPriority(w.Context(), spillway.Critical), jobqueue.Job{}); err != nil {
		w.Fatal(err)
	}
	if p := await.Receive(w, "the job runs", got); p != spillway.Critical {
		w.Errorf("priority %v", p)
	}
}
