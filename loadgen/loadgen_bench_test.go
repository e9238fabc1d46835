package loadgen

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// benchmark runs cfg, which sends n requests, and reports per request.
func benchmark(b *testing.B, n uint64, cfg Config) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var runs float64
	for b.Loop() {
		if _, err := Run(b.Context(), cfg); err != nil {
			b.Fatal(err)
		}
		runs++
	}
	runtime.ReadMemStats(&after)
	requests := runs * float64(n)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/requests, "ns/request")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/requests, "allocs/request")
	b.ReportMetric(0, "ns/op") // ns/op of a whole run has no meaning
}

var atOnce = TargetFunc(func(context.Context, uint64) Outcome { return OK })

func BenchmarkClosedFunc(b *testing.B) {
	benchmark(b, 100_000, Config{Target: atOnce, Closed: &Closed{Clients: 2, Requests: 100_000}})
}

func BenchmarkClosedFuncWithTimeout(b *testing.B) {
	benchmark(b, 100_000, Config{Target: atOnce, Timeout: time.Minute, Closed: &Closed{Clients: 2, Requests: 100_000}})
}

// All requests are due at once: the rate is the generator's maximum.
func BenchmarkOpenFunc(b *testing.B) {
	benchmark(b, 100_000, Config{Target: atOnce, Open: Constant(1e9, 100*time.Microsecond), MaxInFlight: 64})
}

// The figures include the server, which shares the process.
func BenchmarkClosedHTTP(b *testing.B) {
	url := frugal(b)
	for _, way := range []string{"raw", "net/http"} {
		b.Run(way, func(b *testing.B) {
			h, err := NewHTTP(HTTPConfig{URL: url, Timeout: time.Minute})
			if err != nil {
				b.Fatal(err)
			}
			if way == "net/http" {
				h.raw = nil
			}
			defer h.Close()
			benchmark(b, 2_000, Config{Target: h, Closed: &Closed{Clients: 64, Requests: 2_000}})
		})
	}
}
