package jetstream

import (
	"context"
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
