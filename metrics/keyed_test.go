package metrics

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

func newFamily(t *testing.T, cfg limiter.KeyedConfig) *limiter.Keyed {
	t.Helper()
	f, err := limiter.NewKeyed(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func keyedSource(t *testing.T, cfg KeyedConfig) *Source {
	t.Helper()
	s, err := Keyed(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func use(t *testing.T, f *limiter.Keyed, keys ...string) {
	t.Helper()
	for _, key := range keys {
		if err := f.Do(t.Context(), key, func(context.Context) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
}

// A recreated limiter was mistaken for the evicted one if it had counted more. The counts of the
// evicted limiter were then subtracted.
func TestALimiterThatCountedMoreThanTheOneBeforeItIsAnotherOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // all requests take the same time
		f := newFamily(t, limiter.KeyedConfig{MaxKeys: 1})
		source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f})
		times := func(key string, n int) {
			for range n {
				use(t, f, key)
			}
		}
		times("a", 100)
		read(t, source)
		times("b", 1) // makes room by evicting a
		times("a", 150)
		for range 2 {
			v := read(t, source)
			if v["spillway.requests a admitted"] != 250 || v["spillway.request.duration a "] != 250 || v["spillway.priority.requests a normal admitted"] != 250 {
				t.Errorf("of 250 requests are shown %v, %v and %v", v["spillway.requests a admitted"], v["spillway.request.duration a "], v["spillway.priority.requests a normal admitted"])
			}
		}
	})
}

// Prometheus treats a sum that falls by a rounding error as a restart, and adds the whole sum once
// more.
func TestNoSumFallsByRounding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, limiter.KeyedConfig{MaxKeys: 3})
		source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f, Label: func(string) string { return "all" }})
		sum := func() (seconds float64) {
			for _, s := range source.Read() {
				if s.Metric == duration {
					seconds += s.Value
				}
			}
			return seconds
		}
		for i, last := 0, 0.0; i < 300; i++ {
			_ = f.Do(t.Context(), fmt.Sprint(i%7), func(context.Context) error { time.Sleep(time.Duration(i*i%97) * time.Microsecond); return nil })
			for range 3 {
				now := sum()
				if now < last {
					t.Fatalf("after %d requests the sum falls from %v to %v", i+1, last, now)
				}
				last = now
			}
		}
	})
}

// The demand of a label is the demand of its limiters over their total limit: ten tenants, one of
// them overloaded, are not an overloaded group.
func TestTheDemandOfALabelIsThatOfAllItsLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, limiter.KeyedConfig{New: func(key string) limiter.Config {
			size := map[string]int{"small": 1, "large": 9}[key]
			return limiter.Config{Law: limit.NewFixed(size), QueueSize: -1}
		}})
		source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f, Label: func(string) string { return "all" }})
		use(t, f, "large")
		var wg sync.WaitGroup
		defer wg.Wait()
		for range 400 {
			wg.Go(func() {
				_ = f.Do(t.Context(), "small", func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
			})
			time.Sleep(20 * time.Millisecond)
		}
		small, err := f.Get("small")
		if err != nil {
			t.Fatal(err)
		}
		alone := small.Stats().Demand
		v := read(t, source)
		if alone <= 1 || v["spillway.demand all"] > alone/5 || v["spillway.limit all"] != 10 {
			t.Errorf("%v of ten slots; the small one says %v", v["spillway.demand all"], alone)
		}
	})
}

func TestTheOldestOfALabelIsTheOldestOfItsLimiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFamily(t, limiter.KeyedConfig{})
		source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f, Label: func(string) string { return "all" }})
		for i := range 3 {
			go func() {
				_ = f.Do(t.Context(), fmt.Sprint(i), func(context.Context) error { time.Sleep(10 * time.Second); return nil })
			}()
			time.Sleep(time.Second)
		}
		if v := read(t, source); v["spillway.oldest_active_request all"] != 3 {
			t.Errorf("%v", v)
		}
		time.Sleep(time.Minute)
		if v := read(t, source); v["spillway.oldest_active_request all"] != 0 || v["spillway.active_requests all"] != 0 {
			t.Errorf("at rest: %v", v)
		}
	})
}

// Two adapters may read one source.
func TestReadersDoNotTakeCountsFromEachOther(t *testing.T) {
	f := newFamily(t, limiter.KeyedConfig{})
	source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			last := 0.0
			for range 50 {
				use(t, f, "a")
				n := read(t, source)["spillway.requests a admitted"]
				if n < last {
					t.Errorf("fell from %v to %v", last, n)
				}
				last = n
			}
		})
	}
	wg.Wait()
	if n := read(t, source)["spillway.requests a admitted"]; n != 200 {
		t.Errorf("%v requests, want 200", n)
	}
}

// Samples do not change after they are read.
func TestASampleDoesNotChangeAfterItWasRead(t *testing.T) {
	f := newFamily(t, limiter.KeyedConfig{})
	source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f})
	use(t, f, "a")
	finished := func(all []Sample) (n uint64) {
		for _, s := range all {
			if s.Metric == duration {
				for _, c := range s.Counts {
					n += c
				}
			}
		}
		return n
	}
	before := source.Read()
	use(t, f, "a", "a")
	if after := source.Read(); finished(before) != 1 || finished(after) != 3 {
		t.Errorf("one request had finished, and the sample says %d; then three, and it says %d", finished(before), finished(after))
	}
}

// The shared limiter for excess keys has its own label, whatever Label returns, and does not count
// against MaxLabels.
func TestTheSharedLimiterHasALabelOfItsOwn(t *testing.T) {
	f := newFamily(t, limiter.KeyedConfig{})
	source := keyedSource(t, KeyedConfig{Name: "tenants", Family: f, MaxLabels: 1, Label: func(key string) string { return "plan of " + key }})
	use(t, f, limiter.Overflow)
	read(t, source)
	use(t, f, "a")
	read(t, source)
	use(t, f, "b", "b")
	for _, want := range []struct {
		label string
		n     float64
	}{{limiter.Overflow, 1}, {"plan of a", 1}, {other, 2}} {
		if n := read(t, source)["spillway.requests "+want.label+" admitted"]; n != want.n {
			t.Errorf("%s: %v requests, want %v", want.label, n, want.n)
		}
	}
}

func TestKeyedSaysWhatIsWrong(t *testing.T) {
	for want, cfg := range map[string]KeyedConfig{"needs a Family": {}, "MaxLabels is -1": {Family: newFamily(t, limiter.KeyedConfig{}), MaxLabels: -1}} {
		if _, err := Keyed(cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
