package jetstream

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/internal/local"
)

// narrow is a server whose disk is full for a while.
type narrow struct {
	inside
	full atomic.Bool
}

type inside = local.Engine

func (n *narrow) Engine() local.Engine { return n }

func (n *narrow) Room() error {
	if n.full.Load() {
		return errors.New("the disk of jobs has 1 MiB left")
	}
	return nil
}

// noDisk checks that a job is rejected because the disk is full.
func noDisk(t *testing.T, q jobqueue.Queue) {
	t.Helper()
	_, err := q.Enqueue(within(t), jobqueue.Job{Key: "refused"})
	r, rejected := errors.AsType[*spillway.Rejection](err)
	if !errors.Is(err, jobqueue.ErrDiskFull) || !rejected || r.Reason != spillway.ReasonQueueFull || r.RetryAfter <= 0 {
		t.Errorf("Enqueue on a full disk: %v", err)
	}
}

// Config.Wait is longer than await.Limit in these tests: a full disk must not cause a wait.

func TestJobsAreRejectedBeforeTheDiskIsFull(t *testing.T) {
	server := &narrow{inside: serve(t, t.TempDir()).Engine()}
	q := open(t, Config{Server: server, Wait: 10 * await.Limit})
	enqueue(t, q, jobqueue.Job{Key: "stored"})
	server.full.Store(true)
	noDisk(t, q)
	work(t, q, func(context.Context, *jobqueue.Delivery) error { return nil })
	await.True(t, "jobs are still done", func() bool { return stats(t, q).Done == 1 })
	server.full.Store(false)
	if r := enqueue(t, q, jobqueue.Job{Key: "refused"}); r.Duplicate {
		t.Error("a job that was rejected was stored")
	}
}

func TestAServerThatHasStoredAsMuchAsItMaySaysSo(t *testing.T) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxBytes: 4 << 20})
	check(t, err)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	q := open(t, Config{Server: server, MaxBytes: 2 << 20, Wait: 10 * await.Limit})
	others, err := q.js.CreateStream(within(t), js.StreamConfig{Name: "others", Storage: js.FileStorage})
	check(t, err)
	for err == nil {
		_, err = q.js.Publish(within(t), "others", make([]byte, 256<<10))
	}
	noDisk(t, q)
	check(t, others.Purge(within(t)))
	if r := enqueue(t, q, jobqueue.Job{Key: "refused"}); r.Duplicate {
		t.Error("a job that was rejected was stored")
	}
}

func TestAQueueTakesTheRoomThatThereIs(t *testing.T) {
	server, err := embedded.Start(embedded.Config{Dir: t.TempDir(), MaxBytes: 40 << 20})
	check(t, err)
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	if _, err := Open(within(t), Config{Server: server, MaxBytes: 1 << 30, Wait: await.Limit}); !errors.Is(err, jobqueue.ErrDiskFull) || !strings.Contains(err.Error(), "MaxBytes") {
		t.Errorf("more than there is: %v", err)
	}
	q := open(t, Config{Server: server})
	if n := q.jobs.CachedInfo().Config.MaxBytes; n != 32<<20 {
		t.Errorf("it takes %d bytes", n)
	}
	enqueue(t, q, jobqueue.Job{})
	if _, err := Open(within(t), Config{Server: server, Name: "second", MaxBytes: 1 << 30, Wait: await.Limit}); errors.Is(err, jobqueue.ErrUnavailable) {
		t.Errorf("a server that answers cannot be reached: %v", err)
	}
}
