//go:build !race

package loadgen

import (
	"context"
	"runtime"
	"testing"
	"time"
)

// The race detector allocates too, so this file is not built with it.

func TestARequestOfAClosedLoopAllocatesNothing(t *testing.T) {
	target := TargetFunc(func(context.Context, uint64) Outcome { return OK })
	perRequest(t, 0, func(n uint64) Config {
		return Config{Target: target, Closed: &Closed{Clients: 4, Requests: n}}
	})
}

func TestARequestOfAnOpenLoopAllocatesNothing(t *testing.T) {
	target := TargetFunc(func(context.Context, uint64) Outcome { return OK })
	perRequest(t, 0, func(n uint64) Config { // all due at once; one goroutine sends them
		return Config{Target: target, Open: Constant(1e9, time.Duration(n)), MaxInFlight: 1}
	})
}

// perRequest compares a long run with a short one: what a run costs besides its
// requests cancels out, except for histograms that grow.
func perRequest(t *testing.T, want float64, cfg func(n uint64) Config) {
	t.Helper()
	mallocs := func(n uint64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := Run(t.Context(), cfg(n)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	const few, many = 1_000, 101_000
	base := mallocs(few)
	if got := (float64(mallocs(many)) - float64(base)) / (many - few); got > want+0.005 {
		t.Errorf("%.3f allocations per request, want %v", got, want)
	}
}
