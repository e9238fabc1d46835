package burst

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/workerpool"
)

// demonstrations run faulty code and ours.
var demonstrations = experiment.Staged{Role: "burst-demo-", Acts: []experiment.Act{
	{ID: "request-context", Title: "go process(r.Context()) gets a context that ends when the handler returns", Run: requestContext},
	{ID: "shutdown-race", Title: "Submit that races Shutdown", Run: shutdownRace},
}}

// requestContext answers requests and does their work in the background, once with
// the request's context and once with one that outlives the request.
func requestContext(ctx context.Context) (results.Demo, error) {
	const requests = 200
	pool, err := workerpool.New(workerpool.Config{MaxWorkers: requests, QueueSize: requests})
	if err != nil {
		return results.Demo{}, err
	}
	defer pool.Close()
	var printed, ours background
	handOver := map[string]func(context.Context){
		"/printed": func(ctx context.Context) { go printed.process(ctx) },
		"/ours": func(ctx context.Context) {
			err := pool.Submit(context.WithoutCancel(ctx), func(ctx context.Context) error { ours.process(ctx); return nil })
			if err != nil {
				ours.end(err)
			}
		},
	}
	mux := http.NewServeMux()
	for path, hand := range handOver {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			hand(r.Context())
			w.WriteHeader(http.StatusAccepted)
		})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return results.Demo{}, err
	}
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	defer web.Close()
	go func() { _ = web.Serve(listener) }()
	for path, b := range map[string]*background{"/printed": &printed, "/ours": &ours} {
		b.all.Add(requests)
		for range requests {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+listener.Addr().String()+path, http.NoBody)
			if err != nil {
				return results.Demo{}, err
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				return results.Demo{}, err
			}
			resp.Body.Close()
		}
		b.all.Wait()
	}
	return results.Demo{
		Outcome: fmt.Sprintf("Of %d jobs that were answered with 202 Accepted, go process(r.Context()) finished %d: the context ended with the handler. "+
			"Submitted with context.WithoutCancel, the pool finished %d of %d.", requests, printed.finished.Load(), ours.finished.Load(), requests),
		Counts: []results.NamedCount{
			{Name: "requests to each", N: requests},
			{Name: "cut off, as printed", N: float64(printed.cutOff.Load())}, {Name: "cut off, ours", N: float64(ours.cutOff.Load())},
		},
	}, nil
}

// background is work that outlives its request and respects its context.
type background struct {
	finished, cutOff atomic.Int64
	all              sync.WaitGroup
}

func (b *background) process(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Millisecond):
	}
	b.end(ctx.Err())
}

func (b *background) end(err error) {
	defer b.all.Done()
	if err != nil {
		b.cutOff.Add(1)
		return
	}
	b.finished.Add(1)
}

// shutdownRace shuts pools down while goroutines submit to them.
func shutdownRace(ctx context.Context) (results.Demo, error) {
	const rounds, submitters = 200, 8
	if usage.Race {
		return results.Demo{Outcome: "Not shown: this program was built with the race detector, and the fault is a data race."}, nil
	}
	var printed, ours struct{ panics, lost atomic.Int64 }
	for range rounds {
		cfg := specimen.Config{MinWorkers: 1, MaxWorkers: 1, QueueSize: 1, GrowAt: .7, Every: time.Second, IdleTimeout: time.Second}
		pool := specimen.New(cfg)
		race(submitters, &printed.panics, func() bool {
			return pool.Submit(ctx, func(context.Context) error { return nil }) == nil
		}, func() { _ = pool.Shutdown(ctx) })

		var ran, accepted atomic.Int64
		sound, err := workerpool.New(workerpool.Config{MaxWorkers: 1, QueueSize: 1})
		if err != nil {
			return results.Demo{}, err
		}
		race(submitters, &ours.panics, func() bool {
			ok := sound.Submit(ctx, func(context.Context) error { ran.Add(1); return nil }) == nil
			if ok {
				accepted.Add(1)
			}
			return ok
		}, func() { _ = sound.Drain(ctx) })
		ours.lost.Add(accepted.Load() - ran.Load())
	}
	return results.Demo{
		Outcome: fmt.Sprintf("In %d shutdowns under load, Submit of the published shape panicked in %d goroutines (send on a closed channel). "+
			"Ours panicked in %d and lost %d accepted jobs.", rounds, printed.panics.Load(), ours.panics.Load(), ours.lost.Load()),
		Counts: []results.NamedCount{
			{Name: "shutdowns of each", N: rounds}, {Name: "panics, as printed", N: float64(printed.panics.Load())},
			{Name: "panics, ours", N: float64(ours.panics.Load())}, {Name: "accepted jobs lost, ours", N: float64(ours.lost.Load())},
		},
	}, ctx.Err()
}

// race submits from many goroutines until a submission is refused, shuts the pool
// down meanwhile, and counts the goroutines that panicked.
func race(submitters int, panics *atomic.Int64, submit func() bool, shutdown func()) {
	var all sync.WaitGroup
	begun := make(chan struct{}, submitters)
	for range submitters {
		all.Go(func() {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			for n := 0; submit(); n++ {
				if n == 10 {
					begun <- struct{}{}
				}
			}
		})
	}
	<-begun
	shutdown()
	all.Wait()
}
