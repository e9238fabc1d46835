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
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
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

func TestOfferedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := limiter.New(limiter.Config{Name: "db", Law: limit.NewFixed(2), QueueSize: 3, MaxWait: 1500 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		collector := NewLimiter(lim)
		leaving, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				ctx := t.Context()
				if i == 4 {
					ctx = leaving
				}
				_ = lim.Do(ctx, nap)
			})
			synctest.Wait() // in this order: 2 run, 3 wait, 4 are refused
		}
		s := gather(t, collector)
		for sample, want := range map[string]float64{
			"spillway_requests_total{limiter=db,result=admitted}":   2,
			"spillway_requests_total{limiter=db,result=queue_full}": 4,
			"spillway_requests_total{limiter=db,result=memory}":     0,
			"spillway_queued_requests{limiter=db}":                  3,
			"spillway_active_requests{limiter=db}":                  2,
			"spillway_limit{limiter=db}":                            2,
			"spillway_demand{limiter=db}":                           0,
		} {
			if got, ok := s[sample]; !ok || got != want {
				t.Errorf("%s is %v, want %v", sample, got, want)
			}
		}
		if sum := total(s, "spillway_requests_total") + s["spillway_queued_requests{limiter=db}"]; sum != 9 {
			t.Errorf("%v offered by the metrics, want 9", sum)
		}
		cancel() // the last in the queue leaves; the other two are admitted after a second
		wg.Wait()
		s = gather(t, collector)
		if sum := total(s, "spillway_requests_total"); sum != 9 || sum != float64(lim.Stats().Offered) {
			t.Errorf("at rest the results sum up to %v, offered are %d: %v", sum, lim.Stats().Offered, s)
		}
		if s["spillway_requests_total{limiter=db,result=cancelled}"] != 1 || s["spillway_requests_total{limiter=db,result=admitted}"] != 4 {
			t.Errorf("%v", s)
		}
		if n, sum := s["spillway_request_duration_seconds{limiter=db}_count"], s["spillway_request_duration_seconds{limiter=db}_sum"]; n != 4 || sum != 4 {
			t.Errorf("%v requests took %v s; want 4 of a second each", n, sum)
		}
		if n, sum := s["spillway_request_time_in_queue_seconds{limiter=db}_count"], s["spillway_request_time_in_queue_seconds{limiter=db}_sum"]; n != 4 || sum != 2 {
			t.Errorf("%v requests waited %v s; want 4, two of them a second", n, sum)
		}
	})
}

func TestSubmittedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pool, err := workerpool.New(workerpool.Config{Name: "mail", MaxWorkers: 2, QueueSize: 3, MaxWait: -1, OnDone: func(workerpool.Result) {}})
		if err != nil {
			t.Fatal(err)
		}
		collector := NewPool(pool)
		jobs := []workerpool.Job{
			nap,
			func(ctx context.Context) error { _ = nap(ctx); panic("a bug") },
			func(ctx context.Context) error { _ = nap(ctx); return errors.New("no route") },
			nap, nap, nap, nap,
		}
		leaving, cancel := context.WithCancel(t.Context())
		for i, job := range jobs {
			ctx := t.Context()
			if i == 4 {
				ctx = leaving
			}
			_ = pool.Submit(ctx, job)
		}
		synctest.Wait()
		s := gather(t, collector)
		for sample, want := range map[string]float64{
			"spillway_pool_workers{pool=mail,state=busy}":           2,
			"spillway_pool_workers{pool=mail,state=idle}":           0,
			"spillway_pool_queued_jobs{pool=mail}":                  3,
			"spillway_pool_jobs_total{pool=mail,result=completed}":  0,
			"spillway_pool_jobs_total{pool=mail,result=queue_full}": 2,
		} {
			if got, ok := s[sample]; !ok || got != want {
				t.Errorf("%s is %v, want %v", sample, got, want)
			}
		}
		cancel()
		if err := pool.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		s = gather(t, collector)
		for result, want := range map[string]float64{"completed": 2, "failed": 1, "panicked": 1, "cancelled": 1, "dropped": 0, "queue_full": 2} {
			if got := s["spillway_pool_jobs_total{pool=mail,result="+result+"}"]; got != want {
				t.Errorf("%s: %v, want %v", result, got, want)
			}
		}
		if sum := total(s, "spillway_pool_jobs_total"); sum != 7 || sum != float64(pool.Stats().Offered) {
			t.Errorf("at rest the results sum up to %v, submitted are %d", sum, pool.Stats().Offered)
		}
		if n := s["spillway_pool_job_duration_seconds{pool=mail}_count"]; n != 3 {
			t.Errorf("%v jobs were timed, want the 3 that returned", n)
		}
	})
}

func TestManyOfAKindShareTheirMetrics(t *testing.T) {
	a, _ := limiter.New(limiter.Config{Name: "a"})
	b, _ := limiter.New(limiter.Config{Name: "b"})
	s := gather(t, NewLimiter(a, b))
	if s["spillway_limit{limiter=a}"] == 0 || s["spillway_limit{limiter=b}"] == 0 {
		t.Errorf("%v", s)
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	lim, _ := limiter.New(limiter.Config{Name: "a"})
	pool, _ := workerpool.New(workerpool.Config{Name: "a"})
	for _, c := range []prometheus.Collector{NewLimiter(lim), NewPool(pool), keyed(t, KeyedConfig{Family: family(t, "a")})} {
		problems, err := testutil.CollectAndLint(c)
		if err != nil || len(problems) > 0 {
			t.Errorf("%v, %v", problems, err)
		}
	}
}

// A long wait must fall into some bucket below infinity, and a short one must
// not look long.
func TestBucketsCoverWhatCallersWait(t *testing.T) {
	bounds := metrics.Bounds()
	if bounds[0] > 0.001 || bounds[len(bounds)-1] < 10 {
		t.Errorf("from %v to %v seconds", bounds[0], bounds[len(bounds)-1])
	}
	for i := 1; i < len(bounds); i++ {
		if bounds[i] <= bounds[i-1] {
			t.Errorf("bound %d does not rise", i)
		}
	}
}

// Two kinds whose names differ in bytes that are no UTF-8 made one series twice, which fails a scrape.
func TestKindsWithEqualLabelsAreOneSeries(t *testing.T) {
	lim, err := limiter.New(limiter.Config{Name: "db"})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"\xff", "\xfe", "GET /"} {
		p, err := lim.Acquire(spillway.WithKind(t.Context(), kind))
		if err != nil {
			t.Fatal(err)
		}
		p.Done(nil)
	}
	s := gather(t, NewLimiter(lim))
	for label, want := range map[string]float64{"\ufffd": 2, "GET /": 1} {
		name := "spillway_kind_requests_total{kind=" + label + ",limiter=db,outcome=ok}"
		if got, ok := s[name]; !ok || got != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
}
