package metrics

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Keys are random, including reserved names, while limiters are evicted and the metrics are read.
// No counter falls, and each request is counted once.
func TestMadeUpKeysAreCountedOnce(t *testing.T) {
	family := newFamily(t, limiter.KeyedConfig{MaxKeys: 3, New: func(string) limiter.Config { return limiter.Config{Law: limit.NewFixed(1)} }})
	source := keyedSource(t, KeyedConfig{Name: "tenants", Family: family, MaxLabels: 4})
	keys := []string{limiter.Overflow, other, "", "a", "b", "\xff", strings.Repeat("x", 200)}
	for i := range 20 {
		keys = append(keys, fmt.Sprint("k", i))
	}
	var callers sync.WaitGroup
	const each = 500
	for c := range 4 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 5))
			for range each {
				_ = family.Do(t.Context(), keys[r.IntN(len(keys))], func(context.Context) error { return nil })
			}
		})
	}
	done := make(chan struct{})
	go func() { defer close(done); callers.Wait() }()
	before := map[string]float64{}
	for last := false; ; {
		now, sum := read(t, source), 0.0
		for name, v := range now {
			if strings.HasPrefix(name, "spillway.requests ") {
				sum += v
				if v < before[name] {
					t.Errorf("%s falls from %v to %v", name, before[name], v)
				}
			}
		}
		if sum > 4*each {
			t.Fatalf("%v requests are shown, of %d", sum, 4*each)
		}
		before = now
		if last {
			if sum != 4*each {
				t.Errorf("in the end %v requests are shown, of %d", sum, 4*each)
			}
			break
		}
		select {
		case <-done:
			last = true
		default:
		}
	}
}
