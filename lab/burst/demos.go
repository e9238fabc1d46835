package burst

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/load/usage"
	"github.com/spillway-go/spillway/workerpool"
)

// demonstrations run faulty code and ours.
var demonstrations = experiment.Staged{Role: "burst-demo-", Acts: []experiment.Act{
	{ID: "request-context", Title: "go process(r.Context()) gets a context that ends when the handler returns", Run: requestContext},
	{ID: "shutdown-race", Title: "Submit that races Shutdown", Run: shutdownRace},
}}

// requestContext answers requests and does their work in the background, once with
// the request's context and once with one that outlives the request.
func requestContext(context.Context) (demo results.Demo, err error) {
	const requests = 200
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: requests, QueueSize: requests})
	if err != nil {
		return demo, err
	}
	defer pool.Close()
	// cutOff counts the jobs that did not finish, of those that requests started.
	cutOff := func(start func(context.Context, task) error) (n int, err error) {
		ended := make(chan error, requests)
		web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if err := start(r.Context(), func(ctx context.Context) error { ended <- process(ctx); return nil }); err != nil {
				ended <- err
			}
		}))
		defer web.Close()
		for range requests {
			resp, err := web.Client().Get(web.URL)
			if err != nil {
				return 0, err
			}
			resp.Body.Close()
		}
		for range requests {
			if <-ended != nil {
				n++
			}
		}
		return n, nil
	}
	printed, err1 := cutOff(func(ctx context.Context, t task) error { go func() { _ = t(ctx) }(); return nil })
	ours, err2 := cutOff(func(ctx context.Context, t task) error { return pool.Submit(context.WithoutCancel(ctx), t) })
	demo.Outcome = fmt.Sprintf("Of %d jobs whose requests were answered, go process(r.Context()) finished %d: the context ended with the handler. Submitted with context.WithoutCancel, the pool finished %d of %d.",
		requests, requests-printed, requests-ours, requests)
	demo.Counts = []results.NamedCount{
		{Name: "requests to each", N: requests}, {Name: "cut off, as printed", N: float64(printed)}, {Name: "cut off, ours", N: float64(ours)},
	}
	return demo, errors.Join(err1, err2)
}

// process is work that outlives its request and respects its context.
func process(ctx context.Context) error {
	time.Sleep(20 * time.Millisecond)
	return ctx.Err()
}

// shutdownRace shuts pools down while goroutines submit to them.
func shutdownRace(ctx context.Context) (demo results.Demo, err error) {
	const rounds = 200
	if usage.Race {
		demo.Outcome = "Not shown: this program was built with the race detector, and the fault is a data race."
		return demo, nil
	}
	var printed, ours, lost int64
	for range rounds {
		pool := specimen.New(specimen.Config{MinWorkers: 1, MaxWorkers: 1, QueueSize: 1, GrowAt: .7, Every: time.Second, IdleTimeout: time.Second})
		panics, _ := race(ctx, func(t task) error { return pool.Submit(ctx, t) }, pool.Shutdown)
		printed += panics
		sound, err := workerpool.New(workerpool.Config{MaxWorkers: 1, QueueSize: 1})
		if err != nil {
			return demo, err
		}
		panics, left := race(ctx, func(t task) error { return sound.Submit(ctx, t) }, sound.Drain)
		ours, lost = ours+panics, lost+left
	}
	demo.Outcome = fmt.Sprintf("In %d shutdowns under load, Submit of the published shape panicked in %d goroutines (send on a closed channel). Ours panicked in %d and lost %d accepted jobs.",
		rounds, printed, ours, lost)
	demo.Counts = []results.NamedCount{
		{Name: "shutdowns of each", N: rounds}, {Name: "panics, as printed", N: float64(printed)},
		{Name: "panics, ours", N: float64(ours)}, {Name: "accepted jobs lost, ours", N: float64(lost)},
	}
	return demo, ctx.Err()
}

// race submits from eight goroutines until a submission is refused and shuts the pool
// down meanwhile. It counts the goroutines that panicked, and the accepted jobs that
// did not run.
func race(ctx context.Context, submit func(task) error, shutdown func(context.Context) error) (panics, lost int64) {
	var all sync.WaitGroup
	var panicked, accepted, ran atomic.Int64
	begun := make(chan struct{}, 1)
	for range 8 {
		all.Go(func() {
			defer func() {
				if recover() != nil {
					panicked.Add(1)
				}
			}()
			for submit(func(context.Context) error { ran.Add(1); return nil }) == nil {
				if accepted.Add(1) == 10 {
					begun <- struct{}{}
				}
			}
		})
	}
	<-begun
	_ = shutdown(ctx)
	all.Wait()
	return panicked.Load(), accepted.Load() - ran.Load()
}
