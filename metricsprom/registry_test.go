package metricsprom

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/workerpool"
)

// must returns v, and panics if there is an error.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// check ends the test if there is an error.
func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newLimiter(cfg limiter.Config) *limiter.Limiter { return must(limiter.New(cfg)) }

func newPool(cfg workerpool.Config) *workerpool.Pool { return must(workerpool.New(cfg)) }

// A repeated name is an error at registration. It used to be an error of every scrape, which then
// showed no metrics at all.
func TestANameThatIsThereTwiceIsRefusedAtOnce(t *testing.T) {
	a, again := newLimiter(limiter.Config{Name: "a"}), newLimiter(limiter.Config{Name: "a"})
	p, q := newPool(workerpool.Config{Name: "a"}), newPool(workerpool.Config{Name: "a"})
	for _, pair := range [][2]prometheus.Collector{
		{New(metrics.Limiter(a)), New(metrics.Limiter(again))},
		{New(metrics.Limiter(a)), keyed(t, metrics.KeyedConfig{Name: "a", Family: family(t)})},
		{keyed(t, metrics.KeyedConfig{Family: family(t)}), keyed(t, metrics.KeyedConfig{Family: family(t)})},
		{New(metrics.Pool(p)), New(metrics.Pool(q))},
	} {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(pair[0])
		if err := registry.Register(pair[1]); err == nil {
			t.Error("a name that is there twice was accepted")
		}
		scrape(t, registry)
	}
	for want, c := range map[string]prometheus.Collector{`two limiters are named "a"`: New(metrics.Limiter(a), metrics.Limiter(again)), `two pools are named "a"`: New(metrics.Pool(p), metrics.Pool(q))} {
		if err := prometheus.NewRegistry().Register(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The registry's own error said that a collector was there twice, and not what to do.
func TestTwoLimitersWithoutANameAreToldToHaveOne(t *testing.T) {
	one := New(metrics.Limiter(newLimiter(limiter.Config{})))
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(one)
	for want, second := range map[string]prometheus.Collector{
		"two limiters have no name: give them names (limiter.Config.Name)": New(metrics.Limiter(newLimiter(limiter.Config{}))),
		"two pools have no name: give them names (workerpool.Config.Name)": New(metrics.Pool(newPool(workerpool.Config{})), metrics.Pool(newPool(workerpool.Config{}))),
	} {
		if err := registry.Register(second); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if again := (prometheus.AlreadyRegisteredError{}); !errors.As(registry.Register(one), &again) || !registry.Unregister(one) {
		t.Error("a collector is not known again")
	}
	scrape(t, registry)
}

func TestANameThatIsNotUTF8IsMended(t *testing.T) {
	s := gather(t, New(metrics.Limiter(newLimiter(limiter.Config{Name: "a\xff" + strings.Repeat("b", 1000)}))))
	if s["spillway_limit{limiter=a\uFFFD"+strings.Repeat("b", 121)+"…}"] == 0 {
		t.Errorf("%v", s)
	}
}

func TestADryRunShowsWhatItWouldHaveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(limiter.Config{Name: "db", Law: limit.NewFixed(1), QueueSize: -1, Mode: limiter.DryRun})
		for range 3 {
			go func() { _ = lim.Do(t.Context(), nap) }()
		}
		synctest.Wait()
		expect(t, gather(t, New(metrics.Limiter(lim))), map[string]float64{
			"spillway_would_reject_total{limiter=db,reason=queue_full}": 2,
			"spillway_requests_total{limiter=db,result=admitted}":       3,
			"spillway_mode{limiter=db,mode=dryrun}":                     1,
			"spillway_mode{limiter=db,mode=enforce}":                    0,
			"spillway_mode{limiter=db,mode=off}":                        0,
		})
		time.Sleep(time.Second)
	})
}

func TestPermitsThatNeverEndedAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := newLimiter(limiter.Config{Name: "db", LeakAfter: time.Minute})
		defer lim.Close()
		permit := must(lim.Acquire(t.Context()))
		time.Sleep(90 * time.Second)
		c := New(metrics.Limiter(lim))
		s := gather(t, c)
		if s["spillway_oldest_active_request_seconds{limiter=db}"] != 90 || s["spillway_leaked_permits_total{limiter=db}"] != 1 || s["spillway_overdue_permits{limiter=db}"] != 1 {
			t.Errorf("%v", s)
		}
		permit.Release()
		s = gather(t, c)
		if s["spillway_oldest_active_request_seconds{limiter=db}"] != 0 || s["spillway_leaked_permits_total{limiter=db}"] != 1 || s["spillway_overdue_permits{limiter=db}"] != 0 {
			t.Errorf("once it has ended: %v", s)
		}
	})
}
