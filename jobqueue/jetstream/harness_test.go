package jetstream

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

// within returns the context of a call that must be answered.
func within(t *testing.T) context.Context {
	return await.Context(t, "an answer")
}

// end calls f at the end of the test. A handler of a test that has failed may wait for ever: the test
// then ends without f.
func end(t *testing.T, what string, f func()) {
	t.Cleanup(func() {
		ended := make(chan struct{})
		go func() { f(); close(ended) }()
		await.Receive(t, what, ended)
	})
}

func serve(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Dir: dir})
	check(t, err)
	end(t, "the server is closed", func() { _ = s.Close(context.Background()) })
	return s
}

func open(t *testing.T, cfg Config) *queue {
	t.Helper()
	// On a busy disk an answer may take longer than the default. A request that a deleted consumer never answers has
	// to end before the test's own limit.
	cfg.Wait = cmp.Or(cfg.Wait, await.Limit/4)
	if cfg.Server == nil && cfg.URL == "" {
		cfg.Server = serve(t, t.TempDir())
	}
	var q jobqueue.Queue
	await.True(t, "the queue is open", func() bool { // Config.Wait may be short, and the disk slow
		var err error
		if q, err = Open(within(t), cfg); err != nil && !errors.Is(err, jobqueue.ErrUnavailable) {
			t.Fatal(err)
		}
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	end(t, "the queue is closed", func() { _ = q.Close() })
	return q.(*queue)
}

// work calls Work in the background until the test ends or the returned function is called. That
// function returns the error of Work.
func work(t *testing.T, q jobqueue.Queue, h jobqueue.Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- q.Work(ctx, h) }()
	stop = sync.OnceValue(func() error { cancel(); return <-result })
	end(t, "Work has ended", func() { _ = stop() })
	return stop
}

func enqueue(t *testing.T, q jobqueue.Queue, job jobqueue.Job) jobqueue.Receipt {
	t.Helper()
	r, err := q.Enqueue(within(t), job)
	check(t, err)
	return r
}

func stats(t *testing.T, q jobqueue.Queue) jobqueue.Stats {
	t.Helper()
	s, err := q.Stats(within(t))
	check(t, err)
	return s
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
