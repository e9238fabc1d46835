package metricsotel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/workerpool"
)

// bench returns a meter and the reader that collects from it.
func bench(t testing.TB) (metric.Meter, *sdk.ManualReader) {
	reader := sdk.NewManualReader()
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	t.Cleanup(func() { _ = provider.Shutdown(context.Background()) })
	return provider.Meter("test"), reader
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLimiter(t testing.TB, cfg limiter.Config) *limiter.Limiter {
	lim, err := limiter.New(cfg)
	noError(t, err)
	return lim
}

func newPool(t testing.TB, cfg workerpool.Config) *workerpool.Pool {
	pool, err := workerpool.New(cfg)
	noError(t, err)
	return pool
}

func registered(t testing.TB, meter metric.Meter, sources ...*metrics.Source) {
	_, err := Register(meter, sources...)
	noError(t, err)
}

func observerOf(t testing.TB, meter metric.Meter, name string) *limiter.Observer {
	observer, err := Observer(meter, name)
	noError(t, err)
	return observer
}

func timed(t testing.TB, meter metric.Meter, name string) func(workerpool.Result) {
	times, err := JobTimes(meter, name)
	noError(t, err)
	return times
}

// collect returns every point by its name and attributes; histograms as _count and
// _sum.
func collect(t *testing.T, reader *sdk.ManualReader) (map[string]float64, []metricdata.Metrics) {
	t.Helper()
	var data metricdata.ResourceMetrics
	noError(t, reader.Collect(t.Context(), &data))
	points := map[string]float64{}
	var all []metricdata.Metrics
	for _, scope := range data.ScopeMetrics {
		all = append(all, scope.Metrics...)
	}
	for _, m := range all {
		name := func(set attribute.Set) string { return m.Name + "{" + set.Encoded(attribute.DefaultEncoder()) + "}" }
		switch d := m.Data.(type) {
		case metricdata.Sum[float64]:
			for _, p := range d.DataPoints {
				points[name(p.Attributes)] = p.Value
			}
		case metricdata.Gauge[float64]:
			for _, p := range d.DataPoints {
				points[name(p.Attributes)] = p.Value
			}
		case metricdata.Histogram[float64]:
			for _, p := range d.DataPoints {
				points[name(p.Attributes)+"_count"], points[name(p.Attributes)+"_sum"] = float64(p.Count), p.Sum
			}
		default:
			t.Errorf("%s is a %T", m.Name, d)
		}
	}
	return points, all
}

func total(points map[string]float64, prefix string) (sum float64) {
	for point, v := range points {
		if strings.HasPrefix(point, prefix) {
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

func expect(t *testing.T, points map[string]float64, want map[string]float64) {
	t.Helper()
	for point, n := range want {
		if got, ok := points[point]; !ok || got != n {
			t.Errorf("%s is %v (there: %v), want %v", point, got, ok, n)
		}
	}
}

func TestOfferedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter, reader := bench(t)
		observer := observerOf(t, meter, "db")
		lim := newLimiter(t, limiter.Config{Name: "db", Law: limit.NewFixed(2), QueueSize: 3, MaxWait: 1500 * time.Millisecond, Observer: observer})
		registered(t, meter, metrics.Limiter(lim))
		low := spillway.WithPriority(t.Context(), spillway.Low)
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				ctx := t.Context()
				if i == 4 {
					ctx = low
				}
				_ = lim.Do(ctx, nap)
			})
			synctest.Wait() // in this order: 2 run, 3 wait, 4 are refused or displace the low one
		}
		points, _ := collect(t, reader)
		expect(t, points, map[string]float64{
			"spillway.queued_requests{limiter=db}":                                3,
			"spillway.active_requests{limiter=db}":                                2,
			"spillway.limit{limiter=db}":                                          2,
			"spillway.requests{limiter=db,result=admitted}":                       2,
			"spillway.requests{limiter=db,result=queue_full}":                     3,
			"spillway.requests{limiter=db,result=preempted}":                      1,
			"spillway.requests{limiter=db,result=memory}":                         0,
			"spillway.priority.requests{limiter=db,priority=low,result=rejected}": 1,
		})
		if sum := total(points, "spillway.requests{") + points["spillway.queued_requests{limiter=db}"]; sum != 9 {
			t.Errorf("%v offered by the metrics, want 9", sum)
		}
		wg.Wait() // two are admitted after a second, and one times out in the queue
		points, _ = collect(t, reader)
		for _, metric := range []string{"spillway.requests{", "spillway.priority.requests{"} {
			if sum := total(points, metric); sum != 9 || sum != float64(lim.Stats().Offered) {
				t.Errorf("at rest %s sums up to %v, offered are %d", metric, sum, lim.Stats().Offered)
			}
		}
		expect(t, points, map[string]float64{
			"spillway.request.duration{limiter=db}_count":      4,
			"spillway.request.duration{limiter=db}_sum":        4,
			"spillway.request.time_in_queue{limiter=db}_count": 4,
			"spillway.request.time_in_queue{limiter=db}_sum":   2,
		})
	})
}

func TestSubmittedEqualsTheSumOverResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		meter, reader := bench(t)
		times := timed(t, meter, "mail")
		pool := newPool(t, workerpool.Config{Name: "mail", MaxWorkers: 2, QueueSize: 3, MaxWait: -1, OnDone: times})
		registered(t, meter, metrics.Pool(pool))
		for _, job := range []workerpool.Job{
			nap,
			func(ctx context.Context) error { _ = nap(ctx); panic("a bug") },
			func(ctx context.Context) error { _ = nap(ctx); return errors.New("no route") },
			nap, nap, nap, nap,
		} {
			_ = pool.Submit(t.Context(), job)
		}
		noError(t, pool.Drain(t.Context()))
		points, _ := collect(t, reader)
		expect(t, points, map[string]float64{
			"spillway.pool.jobs{pool=mail,result=completed}":   3,
			"spillway.pool.jobs{pool=mail,result=failed}":      1,
			"spillway.pool.jobs{pool=mail,result=panicked}":    1,
			"spillway.pool.jobs{pool=mail,result=queue_full}":  2,
			"spillway.pool.limit{pool=mail}":                   2,
			"spillway.pool.job.duration{pool=mail}_count":      4,
			"spillway.pool.job.time_in_queue{pool=mail}_count": 5,
		})
		if sum := total(points, "spillway.pool.jobs{"); sum != 7 {
			t.Errorf("%v jobs, want 7", sum)
		}
	})
}

// The two adapters show the same metrics, with the kinds, units and buckets of package metrics.
func TestEveryMetricIsThereAsItIsDescribed(t *testing.T) {
	meter, reader := bench(t)
	observer := observerOf(t, meter, "a")
	times := timed(t, meter, "a")
	lim := newLimiter(t, limiter.Config{Name: "a", Observer: observer})
	pool := newPool(t, workerpool.Config{Name: "a", OnDone: times})
	registered(t, meter, metrics.Limiter(lim), metrics.Pool(pool))
	_ = lim.Do(t.Context(), func(context.Context) error { return nil })
	_ = pool.Submit(t.Context(), func(context.Context) error { return nil })
	_ = pool.Drain(t.Context())
	_, got := collect(t, reader)
	there := map[string]metricdata.Metrics{}
	for _, m := range got {
		there[m.Name] = m
	}
	want := append(metrics.Limiter(lim).Metrics(), metrics.Pool(pool).Metrics()...)
	if len(there) != len(want) {
		t.Errorf("%d metrics, want %d", len(there), len(want))
	}
	for _, m := range want {
		got := there[m.Name]
		ok := false
		switch d := got.Data.(type) {
		case metricdata.Sum[float64]:
			ok = d.IsMonotonic && m.Kind == metrics.Counter || !d.IsMonotonic && m.Kind == metrics.UpDownCounter
		case metricdata.Gauge[float64]:
			ok = m.Kind == metrics.Gauge
		case metricdata.Histogram[float64]:
			ok = m.Kind == metrics.Histogram && len(d.DataPoints) == 1 && len(d.DataPoints[0].Bounds) == len(metrics.Bounds())
		}
		if !ok || got.Unit != m.Unit || got.Description != m.Help {
			t.Errorf("%s, a %v in %q, is %T in %q: %s", m.Name, m.Kind, m.Unit, got.Data, got.Unit, got.Description)
		}
	}
}

func TestRegisterSaysWhatIsWrongAndCanBeUndone(t *testing.T) {
	meter, reader := bench(t)
	a, b := newLimiter(t, limiter.Config{Name: "a"}), newLimiter(t, limiter.Config{Name: "a"})
	if _, err := Register(meter, metrics.Limiter(a), metrics.Limiter(b)); err == nil || !strings.Contains(err.Error(), `two limiters are named "a"`) {
		t.Error(err)
	}
	registration, err := Register(meter, metrics.Limiter(a))
	noError(t, err)
	if points, _ := collect(t, reader); len(points) == 0 {
		t.Error("nothing is shown")
	}
	if _, err := Register(meter, metrics.Limiter(a)); err == nil || !strings.Contains(err.Error(), `two limiters are named "a"`) {
		t.Errorf("a second time: %v", err)
	}
	other, _ := bench(t)
	for _, elsewhere := range []metric.Meter{other, noop.Meter{}, noop.Meter{}} {
		if _, err := Register(elsewhere, metrics.Limiter(a)); err != nil {
			t.Errorf("with another meter: %v", err)
		}
	}
	noError(t, registration.Unregister())
	if points, _ := collect(t, reader); len(points) != 0 {
		t.Errorf("still shown: %v", points)
	}
	if _, err := Register(meter, metrics.Limiter(b)); err != nil {
		t.Errorf("a name that is free again: %v", err)
	}
}

// The page says how many series a limiter makes, and each kind of its work, for the SDK has a bound.
func TestTheSeriesOfALimiter(t *testing.T) {
	none, one := seriesOf(t, ""), seriesOf(t, "a")
	total := func(series map[string]int) (sum int) {
		for _, n := range series {
			sum += n
		}
		return sum
	}
	const metric = "spillway.kind.requests"
	kind := one[metric] - none[metric]
	pages.Says(t, "docs/operate/metrics.md", fmt.Sprintf("A limiter makes %d series, and %d for each kind of its work; %d of a limiter, and %d of each kind, are of one metric (`%s`)",
		total(none), total(one)-total(none), none[metric], kind, metric))
	const kinds = 32 // of a limiter at most, beside the rest
	pages.Says(t, "docs/operate/metrics.md", fmt.Sprintf("with %d kinds %d limiters fit", kinds, (2000-1)/(none[metric]+kinds*kind)))
}

// seriesOf counts the series of each metric of a limiter that does work of a kind.
func seriesOf(t *testing.T, kind string) map[string]int {
	meter, reader := bench(t)
	observer := observerOf(t, meter, "a")
	lim := newLimiter(t, limiter.Config{Name: "a", Observer: observer})
	registered(t, meter, metrics.Limiter(lim))
	for range 1000 { // so that the kind is told apart
		for _, k := range []string{"", kind} {
			noError(t, lim.Do(spillway.WithKind(t.Context(), k), func(context.Context) error { return nil }))
		}
	}
	_, all := collect(t, reader)
	series := map[string]int{}
	for _, m := range all {
		switch d := m.Data.(type) {
		case metricdata.Sum[float64]:
			series[m.Name] = len(d.DataPoints)
		case metricdata.Gauge[float64]:
			series[m.Name] = len(d.DataPoints)
		case metricdata.Histogram[float64]:
			series[m.Name] = len(d.DataPoints)
		}
	}
	return series
}

// A limiter stayed in memory for ever if its provider was shut down without Unregister.
func TestWhatAMeterHasEndsWithTheMeter(t *testing.T) {
	gone := func() weak.Pointer[limiter.Limiter] {
		lim := newLimiter(t, limiter.Config{Name: "a"})
		provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()))
		registered(t, provider.Meter("m"), metrics.Limiter(lim))
		noError(t, provider.Shutdown(t.Context()))
		return weak.Make(lim)
	}()
	for i := 0; gone.Value() != nil; i++ {
		if i == 1000 {
			t.Fatal("the limiter is kept")
		}
		runtime.GC()
		runtime.Gosched()
	}
}

// An observer of a family is told of the kinds of many limiters, which made more series than the SDK keeps.
func TestAnObserverBoundsItsKinds(t *testing.T) {
	reader := sdk.NewManualReader()
	observer := observerOf(t, sdk.NewMeterProvider(sdk.WithReader(reader)).Meter("m"), "tenants")
	for i := range 500 {
		observer.Ended(limiter.End{Kind: strconv.Itoa(i), Took: 1000})
	}
	var all metricdata.ResourceMetrics
	noError(t, reader.Collect(t.Context(), &all))
	for _, m := range all.ScopeMetrics[0].Metrics {
		if h, ok := m.Data.(metricdata.Histogram[float64]); ok && len(h.DataPoints) != mostKinds+1 {
			t.Errorf("%d series of %s", len(h.DataPoints), m.Name)
		}
	}
}
