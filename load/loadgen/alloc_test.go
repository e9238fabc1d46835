//go:build !race

package loadgen

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// The race detector allocates too, so this file is not built with it.

func TestARequestOfAClosedLoopAllocatesNothing(t *testing.T) {
	target := TargetFunc(func(context.Context, uint64) Outcome { return OK })
	perRequest(t, 100_000, func(n uint64) Config {
		return Config{Target: target, Closed: &Closed{Clients: 4, Requests: n}}
	})
}

func TestARequestOfAnOpenLoopAllocatesNothing(t *testing.T) {
	target := TargetFunc(func(context.Context, uint64) Outcome { return OK })
	perRequest(t, 100_000, func(n uint64) Config { // all due at once; one goroutine sends them
		return Config{Target: target, Open: Constant(1e9, time.Duration(n)), MaxInFlight: 1}
	})
}

func TestAnHTTPRequestAllocatesNothing(t *testing.T) {
	url := frugal(t)
	other := url + "/other?x=y"
	data := must(ReadCSV(strings.NewReader("id\nP1\nP2\n")))(t)
	for name, cfg := range map[string]HTTPConfig{
		"alike":    {URL: url, Timeout: time.Minute},
		"checked":  {URL: url, Check: func(uint64, int, []byte) error { return nil }},
		"filled":   {URL: url + "/{{.id}}?n={{n}}", Header: http.Header{"X-Id": {"{{.id}}"}}, Data: data},
		"at a URL": {URLFor: func(uint64) string { return other }},
		"bounded":  {URL: url, MaxConns: 4},
		"posted":   {URL: url, Method: "POST"}, // looks at its connection
	} {
		t.Run(name, func(t *testing.T) {
			target := newHTTP(t, cfg)
			perRequest(t, 10_000, func(n uint64) Config {
				return Config{Target: target, Closed: &Closed{Clients: 4, Requests: n}}
			})
			if err := target.FirstError(); err != nil {
				t.Error(err)
			}
		})
	}
}

// perRequest compares a run of many more requests with a short run. The fixed costs of a run cancel
// out, except for histograms that grow.
func perRequest(t *testing.T, more uint64, cfg func(n uint64) Config) {
	t.Helper()
	mallocs := func(n uint64) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		must(Run(t.Context(), cfg(n)))(t)
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs
	}
	const few, chance = 1_000, 0.1 // a collection empties pools, and a connection may be made anew
	base := mallocs(few)
	if got := (float64(mallocs(few+more)) - float64(base)) / float64(more); got > chance {
		t.Errorf("%.3f allocations per request, want none", got)
	}
}
