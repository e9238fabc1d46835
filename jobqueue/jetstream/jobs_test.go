package jetstream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestJobComesBackAsItWasEnqueued(t *testing.T) {
	q := open(t, Config{})
	job := jobqueue.Job{
		Key: "a key\nof two lines, 100 % ü", Priority: spillway.High, Payload: []byte{0, 1, 2, '\r', '\n'},
		Header: map[string]string{"traceparent": "00-x", "Weird: name\n": " value \r\n"},
	}
	r := enqueue(t, q, job)
	if r.Key != job.Key || r.Duplicate {
		t.Errorf("receipt %+v", r)
	}
	if r := enqueue(t, q, job); !r.Duplicate {
		t.Errorf("the same key again: %+v", r)
	}
	got := make(chan jobqueue.Delivery, 2)
	work(t, q, func(ctx context.Context, d *jobqueue.Delivery) error {
		if p := spillway.PriorityFrom(ctx); p != spillway.High {
			t.Errorf("the context carries priority %s", p)
		}
		got <- *d
		return nil
	})
	d := await.Receive(t, "the job runs", got)
	if fmt.Sprint(d.Job) != fmt.Sprint(job) || d.Attempt != 1 || d.Enqueued.IsZero() {
		t.Errorf("got %+v", d)
	}
	await.True(t, "the queue is empty", func() bool { s := stats(t, q); return s.Ready+s.InFlight+s.Delayed == 0 && s.Done == 1 })
}

func TestJobsThatFailAreTriedAgainAndThenDead(t *testing.T) {
	q := open(t, Config{Policy: jobqueue.Policy{MaxAttempts: 3, Backoff: time.Millisecond}})
	enqueue(t, q, jobqueue.Job{Key: "fails"})
	enqueue(t, q, jobqueue.Job{Key: "panics"})
	enqueue(t, q, jobqueue.Job{Key: "dead"})
	enqueue(t, q, jobqueue.Job{Key: "third time"})
	var runs sync.Map
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		n, _ := runs.LoadOrStore(d.Key, new(atomic.Int32))
		if run := n.(*atomic.Int32).Add(1); int(run) != d.Attempt {
			t.Errorf("%s: run %d says attempt %d", d.Key, run, d.Attempt)
		}
		switch {
		case d.Key == "panics":
			panic("at the disco")
		case d.Key == "dead":
			return jobqueue.Dead("no such patient")
		case d.Key == "third time" && d.Attempt == 3:
			return nil
		case d.Key == "third time":
			return jobqueue.RetryAfter(time.Millisecond, nil)
		}
		return errors.New("not today")
	})
	await.True(t, "three dead letters", func() bool { s := stats(t, q); return s.Dead == 3 && s.Done == 1 && s.Buried == 3 })
	letters, err := q.Dead(within(t), 10)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range letters {
		want := map[string]int{"fails": 3, "panics": 3, "dead": 1}[l.Job.Key]
		if l.Attempts != want || l.Reason == "" || l.Died.IsZero() {
			t.Errorf("%+v, want %d attempts", l, want)
		}
	}
	if first, err := q.Dead(within(t), 1); err != nil || len(first) != 1 || first[0].Job.Key != "dead" {
		t.Errorf("first dead letter: %+v, %v", first, err)
	}
}

func TestReplayedDeadLetterIsAJobAgain(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "k", Payload: []byte("body")})
	stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("broken") })
	await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
	if err := stop(); !errors.Is(err, context.Canceled) {
		t.Errorf("Work returned %v", err)
	}
	letters, _ := q.Dead(within(t), 1)
	if err := q.Replay(within(t), letters[0].ID); err != nil {
		t.Fatal(err)
	}
	if err := q.Replay(within(t), letters[0].ID); !errors.Is(err, jobqueue.ErrNotFound) {
		t.Errorf("replayed twice: %v", err)
	}
	got := make(chan jobqueue.Delivery, 1)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { got <- *d; return nil })
	if d := await.Receive(t, "the job runs", got); d.Key != "k" || string(d.Payload) != "body" || d.Attempt != 1 {
		t.Errorf("got %+v", d)
	}
	await.True(t, "nothing is left", func() bool { s := stats(t, q); return s.Dead+s.Ready+s.InFlight+s.Delayed == 0 })
}

func TestRejectedJobIsDeferredWithoutAnAttempt(t *testing.T) {
	q := open(t, Config{MaxInFlight: 1, Policy: jobqueue.Policy{MaxAttempts: 1}})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	var runs atomic.Int32
	done := make(chan int, 1)
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if runs.Add(1) < 4 {
			return fmt.Errorf("below: %w", &spillway.Rejection{Reason: spillway.ReasonQueueFull, RetryAfter: time.Millisecond})
		}
		done <- d.Attempt
		return nil
	})
	if attempt := await.Receive(t, "the job is done", done); attempt != 1 {
		t.Errorf("attempt %d", attempt)
	}
	await.True(t, "it is counted", func() bool { s := stats(t, q); return s.Deferred == 3 && s.Done == 1 && s.Dead == 0 })
}

func TestForeignMessageBecomesADeadLetter(t *testing.T) {
	q := open(t, Config{})
	for _, header := range []nats.Header{nil, {headerJob: {"not json"}}, {headerJob: {`{"k":"k","p":"urgent"}`}}, {headerJob: {`{}`, `{}`}}} {
		if _, err := q.js.PublishMsg(within(t), &nats.Msg{Subject: q.names.ready(0), Header: header, Data: make([]byte, 1<<20-100)}); err != nil {
			t.Fatal(err)
		}
	}
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error { t.Errorf("got %+v", d); return nil })
	await.True(t, "four dead letters", func() bool { s := stats(t, q); return s.Dead == 4 && s.InFlight+s.Ready+s.Delayed == 0 })
}

func TestJobsSurviveTheServer(t *testing.T) {
	dir := t.TempDir()
	server := serve(t, dir)
	q := open(t, Config{Server: server})
	for i := range 5 {
		enqueue(t, q, jobqueue.Job{Key: fmt.Sprint(i)})
	}
	_ = q.Close()
	if _, err := q.Enqueue(within(t), jobqueue.Job{}); !errors.Is(err, spillway.ErrRejected) {
		t.Errorf("closed: %v", err)
	}
	if err := server.Close(within(t)); err != nil {
		t.Fatal(err)
	}
	q = open(t, Config{Server: serve(t, dir)})
	if r := enqueue(t, q, jobqueue.Job{Key: "3"}); !r.Duplicate {
		t.Error("keys are forgotten")
	}
	await.True(t, "five are ready", func() bool { return stats(t, q).Ready == 5 })
}

func TestWorkWithoutAHandlerTouchesNoJob(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{Key: "k"})
	if err := q.Work(within(t), nil); err == nil || within(t).Err() != nil {
		t.Errorf("Work returned %v", err)
	}
	await.True(t, "it is ready", func() bool { return stats(t, q).Ready == 1 })
}

// Of reports from several goroutines of a handler, one in 180 said that the job was lost.
func TestReportsOfProgressMayCoincide(t *testing.T) {
	q := open(t, Config{})
	enqueue(t, q, jobqueue.Job{})
	work(t, q, func(ctx context.Context, d *jobqueue.Delivery) error {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 500 {
					if err := d.Progress(ctx); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		return nil
	})
	await.True(t, "the job is done", func() bool { return q.counters.done.Load() == 1 })
}
