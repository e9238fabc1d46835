package metricsprom

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/workerpool"
)

// gather returns every sample by name and labels, and histograms as _count and _sum.
func gather(t *testing.T, c prometheus.Collector) map[string]float64 {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(c)
	return scrape(t, registry)
}

// scrape leaves empty labels out, as Prometheus does.
func scrape(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families := must(registry.Gather())
	samples := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			var labels []string
			for _, l := range m.Label {
				if l.GetValue() == "" {
					continue
				}
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			switch {
			case m.Histogram != nil:
				samples[name+"_count"] = float64(m.Histogram.GetSampleCount())
				samples[name+"_sum"] = m.Histogram.GetSampleSum()
			case m.Counter != nil:
				samples[name] = m.Counter.GetValue()
			default:
				samples[name] = m.Gauge.GetValue()
			}
		}
	}
	return samples
}

// total sums the samples of a metric over all labels.
func total(samples map[string]float64, name string) (sum float64) {
	for sample, v := range samples {
		if strings.HasPrefix(sample, name+"{") {
			sum += v
		}
	}
	return sum
}

func nap(ctx context.Context) error {
	select {
	case <-time.After(time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func expect(t *testing.T, samples, want map[string]float64) {
	t.Helper()
	for sample, n := range want {
		if got, ok := samples[sample]; !ok || got != n {
			t.Errorf("%s is %v, want %v", sample, got, n)
		}
	}
}

func TestOfferedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(limiter.Config{Name: "db", Law: limit.NewFixed(2), QueueSize: 3, MaxWait: 1500 * time.Millisecond})
		leaving, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 9 {
			ctx := t.Context()
			if i == 4 {
				ctx = leaving
			}
			wg.Go(func() { _ = lim.Do(ctx, nap) })
			synctest.Wait() // in this order: 2 run, 3 wait, 4 are refused
		}
		s := gather(t, New(metrics.Limiter(lim)))
		expect(t, s, map[string]float64{
			"spillway_requests_total{limiter=db,result=admitted}":   2,
			"spillway_requests_total{limiter=db,result=queue_full}": 4,
			"spillway_requests_total{limiter=db,result=memory}":     0,
			"spillway_queued_requests{limiter=db}":                  3,
			"spillway_active_requests{limiter=db}":                  2,
			"spillway_limit{limiter=db}":                            2,
			"spillway_demand{limiter=db}":                           0,
			"spillway_mode{limiter=db,mode=enforce}":                1,
			"spillway_mode{limiter=db,mode=dryrun}":                 0,
		})
		cancel() // the last in the queue leaves; the other two are admitted after a second
		wg.Wait()
		s = gather(t, New(metrics.Limiter(lim)))
		expect(t, s, map[string]float64{
			"spillway_requests_total{limiter=db,result=cancelled}":     1,
			"spillway_requests_total{limiter=db,result=admitted}":      4,
			"spillway_request_duration_seconds{limiter=db}_count":      4,
			"spillway_request_duration_seconds{limiter=db}_sum":        4,
			"spillway_request_time_in_queue_seconds{limiter=db}_count": 4,
			"spillway_request_time_in_queue_seconds{limiter=db}_sum":   2, // two waited for a second
		})
		if sum := total(s, "spillway_requests_total"); sum != 9 || sum != float64(lim.Stats().Offered) {
			t.Errorf("at rest the results sum up to %v, offered are %d: %v", sum, lim.Stats().Offered, s)
		}
	})
}

func TestSubmittedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool := newPool(workerpool.Config{Name: "mail", MaxWorkers: 2, QueueSize: 3, MaxWait: -1, OnDone: func(workerpool.Result) {}})
		leaving, cancel := context.WithCancel(t.Context())
		ends := func(how func() error) workerpool.Job {
			return func(ctx context.Context) error { _ = nap(ctx); return how() }
		}
		for i, job := range []workerpool.Job{nap, ends(func() error { panic("a bug") }), ends(func() error { return errors.New("no route") }), nap, nap, nap, nap} {
			ctx := t.Context()
			if i == 4 {
				ctx = leaving
			}
			_ = pool.Submit(ctx, job)
		}
		synctest.Wait()
		expect(t, gather(t, New(metrics.Pool(pool))), map[string]float64{
			"spillway_pool_workers{pool=mail,state=busy}":           2,
			"spillway_pool_workers{pool=mail,state=idle}":           0,
			"spillway_pool_queued_jobs{pool=mail}":                  3,
			"spillway_pool_limit{pool=mail}":                        2,
			"spillway_pool_jobs_total{pool=mail,result=completed}":  0,
			"spillway_pool_jobs_total{pool=mail,result=queue_full}": 2,
		})
		cancel()
		check(t, pool.Drain(t.Context()))
		s := gather(t, New(metrics.Pool(pool)))
		for result, want := range map[string]float64{"completed": 2, "failed": 1, "panicked": 1, "cancelled": 1, "dropped": 0, "queue_full": 2} {
			expect(t, s, map[string]float64{"spillway_pool_jobs_total{pool=mail,result=" + result + "}": want})
		}
		if sum := total(s, "spillway_pool_jobs_total"); sum != 7 || sum != float64(pool.Stats().Offered) {
			t.Errorf("at rest the results sum up to %v, submitted are %d", sum, pool.Stats().Offered)
		}
		expect(t, s, map[string]float64{"spillway_pool_job_duration_seconds{pool=mail}_count": 3}) // those that returned
	})
}

func TestMetricsPassTheLinter(t *testing.T) {
	lim, pool := newLimiter(limiter.Config{Name: "a"}), newPool(workerpool.Config{Name: "a"})
	for _, c := range []prometheus.Collector{New(metrics.Limiter(lim)), New(metrics.Pool(pool)), keyed(t, metrics.KeyedConfig{Family: family(t, "a")})} {
		problems, err := testutil.CollectAndLint(c)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}

// Two kinds whose names differ in bytes that are no UTF-8 made one series twice, which fails a scrape.
func TestKindsWithEqualLabelsAreOneSeries(t *testing.T) {
	lim := newLimiter(limiter.Config{Name: "db"})
	for _, kind := range []string{"\xff", "\xfe", "GET /"} {
		p := must(lim.Acquire(spillway.WithKind(t.Context(), kind)))
		p.Done(nil)
	}
	s := gather(t, New(metrics.Limiter(lim)))
	for label, want := range map[string]float64{"\ufffd": 2, "GET /": 1} {
		name := "spillway_kind_requests_total{kind=" + label + ",limiter=db,outcome=ok}"
		if got, ok := s[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
