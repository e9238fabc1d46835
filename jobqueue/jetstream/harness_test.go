package jetstream

import (
	"cmp"
	"context"
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

func serve(t *testing.T, dir string) *embedded.Server {
	t.Helper()
	s, err := embedded.Start(embedded.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

func open(t *testing.T, cfg Config) *queue {
	t.Helper()
	cfg.Wait = cmp.Or(cfg.Wait, await.Limit) // on a busy disk an answer may take longer than the default
	if cfg.Server == nil && cfg.URL == "" {
		cfg.Server = serve(t, t.TempDir())
	}
	q, err := Open(within(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = q.Close() })
	return q.(*queue)
}

// work calls Work in the background until the test ends or the returned function is called. That
// function returns the error of Work.
func work(t *testing.T, q jobqueue.Queue, h jobqueue.Handler) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- q.Work(ctx, h) }()
	end := sync.OnceValue(func() error { cancel(); return <-result })
	t.Cleanup(func() { _ = end() })
	return end
}

func enqueue(t *testing.T, q jobqueue.Queue, job jobqueue.Job) jobqueue.Receipt {
	t.Helper()
	r, err := q.Enqueue(within(t), job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func stats(t *testing.T, q jobqueue.Queue) jobqueue.Stats {
	t.Helper()
	s, err := q.Stats(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
