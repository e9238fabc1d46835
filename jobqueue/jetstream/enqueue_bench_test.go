//go:build unix

package jetstream

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	js "github.com/nats-io/nats.go/jetstream"

	"github.com/spillway-go/spillway/jobqueue"
)

// BenchmarkEnqueue stores jobs from many goroutines, each job by a call of its own, and compares
// that with the client library: raw publishes messages of the same size to the same stream, each
// with its answer, and with a message ID if the jobs have keys. The two ways take turns: an
// iteration is a turn of raw, two of the queue and one of raw. x-raw is the median over the
// iterations of jobs a second divided by raw messages a second. cpu-x-raw is that of processor time
// for each job, user and system, of this process, which is also the server's.
func BenchmarkEnqueue(b *testing.B) {
	for _, mode := range []struct {
		name string
		sync Sync
		turn int // messages
	}{{"always", GroupCommit, 50}, {"interval", Interval, 2000}} {
		for _, bytes := range []int{128, 4096} {
			for _, keys := range []bool{false, true} {
				for _, callers := range []int{1, 8, 64, 512} {
					b.Run(fmt.Sprintf("sync=%s/bytes=%d/keys=%t/callers=%d", mode.name, bytes, keys, callers), func(b *testing.B) {
						compareWithRaw(b, benchQueue(b, Config{Sync: mode.sync}), max(mode.turn, 2*callers), callers, bytes, keys)
					})
				}
			}
		}
	}
}

func compareWithRaw(b *testing.B, q *queue, messages, callers, bytes int, keys bool) {
	payload, ctx := make([]byte, bytes), context.Background()
	ours := func() error {
		job := jobqueue.Job{Payload: payload}
		if keys {
			job.Key = newKey()
		}
		_, err := q.Enqueue(ctx, job)
		return err
	}
	raw := func() error {
		msg := &nats.Msg{Subject: q.names.ready(0), Data: payload}
		var err error
		if keys {
			_, err = q.js.PublishMsg(ctx, msg, js.WithMsgID(newKey()))
		} else {
			_, err = q.js.PublishMsg(ctx, msg)
		}
		return err
	}
	var rates, costs, rate, cost []float64
	for b.Loop() {
		var library, queue used
		library.turn(b, messages, callers, raw)
		queue.turn(b, messages, callers, ours)
		queue.turn(b, messages, callers, ours)
		library.turn(b, messages, callers, raw)
		rate, cost = append(rate, queue.rate()), append(cost, queue.cost())
		rates, costs = append(rates, queue.rate()/library.rate()), append(costs, queue.cost()/library.cost())
		if err := q.jobs.Purge(ctx); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median(rate), "jobs/s")
	b.ReportMetric(1e6*median(cost), "cpu-µs/job")
	b.ReportMetric(median(rates), "x-raw")
	b.ReportMetric(median(costs), "cpu-x-raw")
}

// used is what a number of messages took.
type used struct {
	stored         float64
	time, computed time.Duration
}

func (u *used) rate() float64 { return u.stored / u.time.Seconds() }
func (u *used) cost() float64 { return u.computed.Seconds() / u.stored }

// turn adds the storing of messages by callers, each of whom stores one message after the other.
func (u *used) turn(b *testing.B, messages, callers int, store func() error) {
	b.Helper()
	var left atomic.Int64
	left.Store(int64(messages))
	var all sync.WaitGroup
	began, computed := time.Now(), processorTime(b)
	for range callers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				if err := store(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	u.stored += float64(messages)
	u.time += time.Since(began)
	u.computed += processorTime(b) - computed
}

func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
