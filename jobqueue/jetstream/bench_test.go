package jetstream

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

func benchQueue(b *testing.B, cfg Config) *queue {
	every := embedded.Always
	if cfg.Sync == Interval {
		every = embedded.Interval
	}
	server, err := embedded.Start(embedded.Config{Dir: b.TempDir(), Sync: every})
	if err != nil {
		b.Fatal(err)
	}
	cfg.Server, cfg.MaxQueued, cfg.MaxBytes = server, 10_000_000, 8<<30
	q, err := Open(context.Background(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = q.Close()
		_ = server.Close(context.Background())
	})
	return q.(*queue)
}

// BenchmarkEnqueue stores jobs, each by a call of its own, from many goroutines. raw publishes the
// same messages with the client library, each with its answer.
func BenchmarkEnqueue(b *testing.B) {
	for _, mode := range []struct {
		name string
		sync Sync
	}{{"sync=always", GroupCommit}, {"sync=interval", Interval}} {
		for _, callers := range []int{1, 8, 64, 512} {
			for _, way := range []string{"queue", "raw"} {
				b.Run(fmt.Sprintf("%s/callers=%d/%s", mode.name, callers, way), func(b *testing.B) {
					q := benchQueue(b, Config{Sync: mode.sync})
					payload := make([]byte, 256)
					store := func() error {
						_, err := q.Enqueue(context.Background(), jobqueue.Job{Payload: payload})
						return err
					}
					if way == "raw" {
						store = func() error {
							msg, err := encode(jobqueue.Job{Key: newKey(), Payload: payload})
							if err == nil {
								msg.Subject = q.names.ready(0)
								_, err = q.js.PublishMsg(context.Background(), msg)
							}
							return err
						}
					}
					var left atomic.Int64
					left.Store(int64(b.N))
					var all sync.WaitGroup
					b.ResetTimer()
					for range callers {
						all.Go(func() {
							for left.Add(-1) >= 0 {
								if err := store(); err != nil {
									b.Error(err)
								}
							}
						})
					}
					all.Wait()
					b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
				})
			}
		}
	}
}

// BenchmarkWork runs jobs that do nothing.
func BenchmarkWork(b *testing.B) {
	q := benchQueue(b, Config{MaxInFlight: 64})
	b.SetParallelism(256)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := q.Enqueue(context.Background(), jobqueue.Job{}); err != nil {
				b.Error(err)
			}
		}
	})
	var done atomic.Int64
	ctx, cancel := context.WithCancel(context.Background())
	b.ResetTimer()
	_ = q.Work(ctx, func(context.Context, *jobqueue.Delivery) error {
		if done.Add(1) == int64(b.N) {
			cancel()
		}
		return nil
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}
