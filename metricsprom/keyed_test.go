package metricsprom

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/internal/pages"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
)

// The page says how many series a further key makes.
func TestTheSeriesOfAKey(t *testing.T) {
	series := func(keys ...string) (n int) {
		registry := prometheus.NewPedanticRegistry()
		registry.MustRegister(keyed(t, metrics.KeyedConfig{Name: "a", Family: family(t, keys...)}))
		all := must(registry.Gather())
		for _, metric := range all {
			for _, m := range metric.GetMetric() {
				n++
				if h := m.GetHistogram(); h != nil {
					n += len(h.GetBucket()) + len([]string{"+Inf", "sum"})
				}
			}
		}
		return n
	}
	pages.Says(t, "docs/operate/metrics.md", fmt.Sprintf("A key costs %d series with Prometheus", series("k", "l")-series("k")))
}

// family returns a family in which each key was used once.
func family(t *testing.T, keys ...string) *limiter.Keyed {
	t.Helper()
	f := must(limiter.NewKeyed(limiter.KeyedConfig{}))
	use(t, f, keys...)
	return f
}

func use(t *testing.T, f *limiter.Keyed, keys ...string) {
	t.Helper()
	for _, key := range keys {
		check(t, f.Do(t.Context(), key, func(context.Context) error { return nil }))
	}
}

func keyed(t *testing.T, cfg metrics.KeyedConfig) prometheus.Collector {
	t.Helper()
	return New(must(metrics.Keyed(cfg)))
}

func admitted(s map[string]float64, key string) float64 {
	return s["spillway_requests_total{key="+key+",limiter=tenants,result=admitted}"]
}

// Each of these keys failed every scrape of the whole registry.
func TestNoKeyFailsAScrape(t *testing.T) {
	long := strings.Repeat("ä", 1000)
	keys := []string{"\xff", "\xfe\xff", "", "a\nb\"c\\", "\x00", long + "1", long + "2", limiter.Overflow, "(other)"}
	s := gather(t, keyed(t, metrics.KeyedConfig{Name: "tenants", Family: family(t, keys...)}))
	sum := 0.0
	for sample, n := range s {
		if strings.HasPrefix(sample, "spillway_requests_total{") {
			sum += n
		}
		if len(sample) > 300 {
			t.Errorf("a label of %d bytes", len(sample))
		}
	}
	if sum != float64(len(keys)) {
		t.Errorf("%v requests are shown of %d", sum, len(keys))
	}
}

func TestKeysFromOutsideAreABoundedLabel(t *testing.T) {
	f := family(t, "first", "second")
	c := keyed(t, metrics.KeyedConfig{Name: "tenants", Family: f, MaxLabels: 2})
	gather(t, c)
	for i := range 500 {
		use(t, f, fmt.Sprint("made up ", i), "first")
	}
	s := gather(t, c)
	if admitted(s, "first") != 501 || admitted(s, "second") != 1 || admitted(s, "(other)") != 500 {
		t.Errorf("first %v, second %v, others %v", admitted(s, "first"), admitted(s, "second"), admitted(s, "(other)"))
	}
	series := 0
	for sample := range s {
		if strings.HasPrefix(sample, "spillway_limit{") {
			series++
		}
	}
	if series != 3 {
		t.Errorf("%d series, want 3", series)
	}
}
