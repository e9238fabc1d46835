package jobqueuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func full(w *world) {
	q := w.queue()
	taken := 0
	var err error
	for err == nil && taken <= w.options.MaxQueued {
		if _, err = q.Enqueue(w.Context(), jobqueue.Job{Key: fmt.Sprint(taken)}); err == nil {
			taken++
		}
	}
	r, ok := errors.AsType[*spillway.Rejection](err)
	if !ok || r.Reason != spillway.ReasonQueueFull || r.RetryAfter <= 0 || taken != w.options.MaxQueued {
		w.Fatalf("after %d jobs: %v", taken, err)
	}
	if s := w.ready(q, taken); s.Refused != 1 || s.Enqueued != uint64(taken) {
		w.Errorf("%+v", s)
	}
	if receipt, err := q.Enqueue(w.Context(), jobqueue.Job{Key: "0"}); err == nil && !receipt.Duplicate {
		w.Errorf("a job that is stored was stored again: %+v", receipt)
	}
	stop := w.work(q, nothing)
	w.empty(q)
	_ = stop()
	w.keys(q, "room again")
	w.until("there is one job", func() bool { // the worker's last request may have taken it, and given it back
		s := w.stats(q)
		return s.Ready+s.Delayed+s.InFlight == 1
	})
	if s := w.stats(q); s.Done != uint64(taken) {
		w.Errorf("%+v", s)
	}
}

func oversized(w *world) {
	q := w.queue()
	if _, err := q.Enqueue(w.Context(), jobqueue.Job{Payload: make([]byte, w.engine.TooLarge)}); !errors.Is(err, jobqueue.ErrTooLarge) {
		w.Errorf("too large: %v", err)
	}
	largest := bytes.Repeat([]byte("x"), w.engine.Largest)
	w.put(q, jobqueue.Job{Key: "a", Payload: largest})
	intact := make(chan bool, 1)
	w.work(q, func(_ context.Context, d *jobqueue.Delivery) error {
		intact <- bytes.Equal(d.Payload, largest)
		return nil
	})
	if !await.Receive(w, "the largest job runs", intact) {
		w.Error("the largest payload was changed")
	}
}

func badJobs(w *world) {
	q := w.queue()
	for name, job := range map[string]jobqueue.Job{
		"a priority that is none": {Priority: spillway.Critical + 1},
		"a negative delay":        {Delay: -1},
		"the engine's header":     {Header: map[string]string{"Nats-Msg-Id": "x"}},
		"a key that is too long":  {Key: strings.Repeat("k", 513)},
		"a key of bytes":          {Key: "\xff"},
		"a header of bytes":       {Header: map[string]string{"x": "\xff"}},
	} {
		_, err := q.Enqueue(w.Context(), job)
		if err == nil || errors.Is(err, spillway.ErrRejected) || errors.Is(err, jobqueue.ErrUnavailable) {
			w.Errorf("%s: %v", name, err)
		}
	}
	if s := w.stats(q); s.Enqueued != 0 || s.Ready != 0 {
		w.Errorf("%+v", s)
	}
}

// crowd counts the handlers that run at once, and blocks each until out releases it.
type crowd struct {
	mu        sync.Mutex
	now, most int
	out       chan bool
}

func newCrowd() *crowd { return &crowd{out: make(chan bool)} }

func (c *crowd) handle(ctx context.Context, _ *jobqueue.Delivery) error {
	c.add(1)
	defer c.add(-1)
	select {
	case <-c.out:
	case <-ctx.Done():
	}
	return nil
}

func (c *crowd) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now += n
	c.most = max(c.most, c.now)
}

func (c *crowd) size() (now, most int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.most
}

// pass checks that allowed jobs run at a time, and never more.
func (c *crowd) pass(w *world, q jobqueue.Queue, allowed, jobs int) {
	w.Helper()
	for range jobs {
		w.put(q, jobqueue.Job{})
	}
	for left := jobs; left > 0; left-- {
		w.until("as many run as may run", func() bool { now, _ := c.size(); return now >= min(allowed, left) })
		c.out <- true
	}
	w.empty(q)
	if _, most := c.size(); most != allowed {
		w.Errorf("%d ran at once, %d may", most, allowed)
	}
}

func inFlight(w *world) {
	c := newCrowd()
	var q jobqueue.Queue
	for range 3 {
		q = w.queue()
		w.work(q, c.handle)
		w.work(q, c.handle)
	}
	c.pass(w, q, w.options.MaxInFlight, 40)
}

func limited(w *world) {
	lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(2)})
	if err != nil {
		w.Fatal(err)
	}
	w.open, w.restart = w.engine.New(w.T, Options{Limiter: lim})
	q, c := w.queue(), newCrowd()
	w.work(q, c.handle)
	c.pass(w, q, 2, 12)
	w.until("all permits are back", func() bool { return lim.Stats().InFlight == 0 })
}
