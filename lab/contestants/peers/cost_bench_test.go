package peers

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/alitto/pond/v2"
	xsync "golang.org/x/sync/semaphore"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/limiter/semaphore"
	"github.com/spillway-go/spillway/workerpool"
)

// What an operation costs in multiples of the same operation elsewhere. Both are played in turns of
// some milliseconds, in one run, and the first of a turn alternates. Reported are the median and the
// quartiles of the ratios of the turns.
//
//	go test ./lab/contestants/peers -run '^$' -bench Multiple -benchtime 1x
func BenchmarkMultiple(b *testing.B) {
	for _, q := range []float64{0.5, 0.99, 0.999} {
		b.Run("histogram/q="+strconv.FormatFloat(q, 'g', -1, 64)+"/of=HdrHistogram", func(b *testing.B) {
			var ours histogram.Histogram
			theirs := hdrhistogram.New(1, time.Hour.Nanoseconds(), 2) // steps of 0.8 %, as ours
			random := rand.New(rand.NewPCG(1, 2))
			for range 100_000 {
				v := int64(1e6 * math.Exp(random.NormFloat64()))
				ours.Record(v)
				_ = theirs.RecordValue(v)
			}
			multiple(b, times(func() { ours.Quantile(q) }), times(func() { theirs.ValueAtQuantile(100 * q) }))
		})
	}
	b.Run("semaphore/of=x-sync", func(b *testing.B) {
		ours, theirs := semaphore.NewWeighted(8), xsync.NewWeighted(8)
		multiple(b, times(func() { _ = ours.Acquire(none, 1); ours.Release(1) }), times(func() { _ = theirs.Acquire(none, 1); theirs.Release(1) }))
	})
	for name, config := range map[string]limiter.Config{"fixed": {Law: limit.NewFixed(8)}, "adaptive": {}} {
		b.Run("dryrun/law="+name+"/of=enforcing", func(b *testing.B) {
			dry, enforcing := must(limiter.New(config)), must(limiter.New(config))
			dry.SetMode(limiter.DryRun)
			multiple(b, permits(dry), permits(enforcing))
		})
	}
	for _, workers := range []int{2, 100} {
		b.Run("job/workers="+strconv.Itoa(workers)+"/of=pond", func(b *testing.B) {
			const room = 1024
			ours := must(workerpool.New(workerpool.Config{MinWorkers: workers, MaxWorkers: workers, QueueSize: room}))
			theirs := pond.NewPool(workers, pond.WithQueueSize(room))
			b.Cleanup(ours.Close)
			b.Cleanup(theirs.StopAndWait)
			multiple(b, func(n int) {
				var ended sync.WaitGroup
				ended.Add(n)
				job := func(context.Context) error { ended.Done(); return nil }
				for range n {
					_ = ours.Submit(none, job)
				}
				ended.Wait()
			}, func(n int) {
				var ended sync.WaitGroup
				ended.Add(n)
				job := func() { ended.Done() }
				for range n {
					_ = theirs.Go(job)
				}
				ended.Wait()
			})
		})
	}
}

func permits(l *limiter.Limiter) func(int) {
	return times(func() {
		p, _ := l.Acquire(none)
		p.Done(nil)
	})
}

func times(do func()) func(n int) {
	return func(n int) {
		for range n {
			do()
		}
	}
}

// multiple reports how many times as long n of ours take as n of theirs.
func multiple(b *testing.B, ours, theirs func(n int)) {
	const (
		turns = 100
		turn  = 3 * time.Millisecond
	)
	took := func(do func(int), n int) time.Duration {
		start := time.Now()
		do(n)
		return time.Since(start)
	}
	n := 1000
	for took(theirs, n) < turn {
		n *= 2
	}
	took(ours, n)
	for b.Loop() {
		var ratios []float64
		for i := range turns {
			var a, t time.Duration
			if i%2 == 0 {
				a = took(ours, n)
			}
			t = took(theirs, n)
			if i%2 == 1 {
				a = took(ours, n)
			}
			ratios = append(ratios, float64(a)/float64(t))
		}
		slices.Sort(ratios)
		b.ReportMetric(ratios[turns/4], "x-lower")
		b.ReportMetric(ratios[turns/2], "x-median")
		b.ReportMetric(ratios[3*turns/4], "x-upper")
		b.ReportMetric(0, "ns/op")
	}
}
