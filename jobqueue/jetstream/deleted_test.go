package jetstream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
)

// The stream of the jobs is deleted, and the dead letters stay: jobs have the numbers of
// those that are buried.
func TestJobsOfAStreamMadeAgainAreNotTakenForDead(t *testing.T) {
	server := serve(t, t.TempDir())
	q := open(t, Config{Server: server})
	enqueue(t, q, jobqueue.Job{Key: "old"})
	stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("broken") })
	await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
	_ = stop()
	if err := q.js.DeleteStream(within(t), q.names.jobs); err != nil {
		t.Fatal(err)
	}
	_ = q.Close()
	q = open(t, Config{Server: server, Policy: jobqueue.Policy{MaxAttempts: 2, Backoff: time.Millisecond}})
	enqueue(t, q, jobqueue.Job{Key: "new"})
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return errors.New("not today") })
	// The engine counts a job a moment after it has acknowledged it: no depth may also mean not yet.
	await.True(t, "the second job is buried too", func() bool {
		s := stats(t, q)
		return s.Buried == 1 && s.Dead == 2 && s.Depth == jobqueue.Depth{}
	})
}

// The stream of the dead letters is deleted: new ones have the numbers of those that were
// replayed a moment ago.
func TestDeadLettersOfAStreamMadeAgainCanBeReplayed(t *testing.T) {
	server := serve(t, t.TempDir())
	for _, key := range []string{"first", "second"} {
		q := open(t, Config{Server: server})
		enqueue(t, q, jobqueue.Job{Key: key})
		stop := work(t, q, func(context.Context, *jobqueue.Delivery) error { return jobqueue.Dead("broken") })
		await.True(t, "a dead letter", func() bool { return stats(t, q).Dead == 1 })
		_ = stop()
		if err := q.Replay(within(t), 1); err != nil {
			t.Fatal(err)
		}
		await.True(t, key+" is a job again", func() bool { return stats(t, q).Ready == 1 })
		if _, err := q.Purge(within(t), jobqueue.Waiting); err != nil {
			t.Fatal(err)
		}
		if err := q.js.DeleteStream(within(t), q.names.dead); err != nil {
			t.Fatal(err)
		}
		_ = q.Close()
	}
}
