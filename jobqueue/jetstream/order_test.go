package jetstream

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestDelayedJobWaitsForItsTime(t *testing.T) {
	q := open(t, Config{})
	const delay = 300 * time.Millisecond
	enqueue(t, q, jobqueue.Job{Key: "later", Delay: delay})
	enqueue(t, q, jobqueue.Job{Key: "now"})
	got := make(chan string, 2)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if waited := q.clock.now().Sub(d.Enqueued); d.Key == "later" && waited < delay {
			t.Errorf("run after %s", waited)
		}
		if d.Attempt != 1 || d.Delay != 0 {
			t.Errorf("%+v", d)
		}
		got <- d.Key
		return nil
	})
	if a, b := await.Receive(t, "a job runs", got), await.Receive(t, "the other job runs", got); a == b {
		t.Errorf("%s twice", a)
	}
}

func TestPriorityIsStrict(t *testing.T) {
	q := open(t, Config{MaxInFlight: 1})
	for i := range 8 {
		for p := spillway.Low; p <= spillway.Critical; p++ {
			enqueue(t, q, jobqueue.Job{Key: fmt.Sprint(p, i), Priority: p})
		}
	}
	// Normal is the zero value: the context's priority counts.
	if _, err := q.Enqueue(spillway.WithPriority(within(t), spillway.Critical), jobqueue.Job{Key: "by context"}); err != nil {
		t.Fatal(err)
	}
	await.True(t, "all are ready", func() bool { return stats(t, q).Ready == 33 }) // the server counts them a moment later
	got := make(chan spillway.Priority, 100)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { got <- d.Priority; return nil })
	last := spillway.Critical
	for range 33 {
		p := await.Receive(t, "a job runs", got)
		if p > last {
			t.Fatalf("%s after %s", p, last)
		}
		last = p
	}
}

func TestLowestPriorityHasAFloor(t *testing.T) {
	q := open(t, Config{MaxInFlight: 1})
	enqueue(t, q, jobqueue.Job{Key: "low", Priority: spillway.Low})
	var all sync.WaitGroup
	for range 3 * floorEvery {
		all.Go(func() { enqueue(t, q, jobqueue.Job{}) })
	}
	all.Wait()
	await.True(t, "all are ready", func() bool { return stats(t, q).Ready == 3*floorEvery+1 }) // as above
	order := make(chan string, 4*floorEvery)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { order <- d.Key; return nil })
	for i := range 3*floorEvery + 1 {
		if await.Receive(t, "a job runs", order) == "low" {
			if i < floorEvery || i > 2*floorEvery {
				t.Errorf("the low job was number %d", i)
			}
			return
		}
	}
}
