package jetstream

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
)

func benchQueue(b *testing.B, cfg Config) *queue {
	server, err := embedded.Start(embedded.Config{Dir: b.TempDir(), NoSync: cfg.NoSync})
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

// BenchmarkEnqueue stores jobs from many goroutines, each job by a call of its own. The lab's experiment
// durable compares Enqueue with the client library.
func BenchmarkEnqueue(b *testing.B) {
	for _, noSync := range []bool{false, true} {
		for _, callers := range []int{1, 8, 64, 512} {
			b.Run(fmt.Sprintf("nosync=%t/callers=%d", noSync, callers), func(b *testing.B) {
				q := benchQueue(b, Config{NoSync: noSync})
				b.SetParallelism(max(1, callers/runtime.GOMAXPROCS(0)))
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := q.Enqueue(context.Background(), jobqueue.Job{Payload: make([]byte, 128)}); err != nil {
							b.Error(err)
						}
					}
				})
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
			})
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
