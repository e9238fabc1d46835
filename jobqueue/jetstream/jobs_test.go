package jetstream

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

func TestForeignMessageBecomesADeadLetter(t *testing.T) {
	q := open(t, Config{})
	foreign := []nats.Header{nil, {headerJob: {"{"}}, {headerJob: {`{"k":"k","p":"urgent"}`}}, {headerJob: {`{"k":"x","d":-1}`}}, {headerJob: {`{}`, `{}`}}}
	for _, header := range foreign {
		if _, err := q.js.PublishMsg(within(t), &nats.Msg{Subject: q.names.ready(0), Header: header, Data: make([]byte, 1<<20-100)}); err != nil {
			t.Fatal(err)
		}
	}
	enqueue(t, q, jobqueue.Job{Key: "good"})
	work(t, q, func(_ context.Context, d *jobqueue.Delivery) error {
		if d.Key != "good" {
			t.Errorf("got %+v", d)
		}
		return nil
	})
	await.True(t, "they are dead letters, and the job is done", func() bool {
		s := stats(t, q)
		return s.Dead == len(foreign) && s.Done == 1 && s.Depth == jobqueue.Depth{}
	})
	letters, err := q.Dead(within(t), 9)
	for _, d := range letters {
		if !strings.Contains(d.Reason, "not a job") || d.Attempts != 1 {
			t.Errorf("dead letter %d: %q after %d attempts", d.ID, d.Reason, d.Attempts)
		}
	}
	if err != nil {
		t.Error(err)
	}
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
