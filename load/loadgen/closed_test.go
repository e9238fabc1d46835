package loadgen

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachClientSendsItsOwnQuotaBackToBack(t *testing.T) {
	for _, c := range []struct {
		clients  int
		requests uint64
	}{{1, 1}, {1, 100}, {4, 10}, {10, 4}, {7, 1000}, {1000, 1000}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			sent := make([]int, c.requests)
			r := mustRun(t, t.Context(), Config{
				Closed: &Closed{Clients: c.clients, Requests: c.requests},
				Target: TargetFunc(func(_ context.Context, n uint64) Outcome {
					mu.Lock()
					sent[n]++
					mu.Unlock()
					// Client 0 is slow: its quota must not pass to others.
					if n%uint64(c.clients) == 0 {
						time.Sleep(time.Second)
					}
					return OK
				}),
			})
			for n, times := range sent {
				if times != 1 {
					t.Fatalf("request %d was sent %d times", n, times)
				}
			}
			quota := (c.requests + uint64(c.clients) - 1) / uint64(c.clients)
			if want := time.Duration(quota) * time.Second; r.Offered != c.requests || r.Elapsed != want {
				t.Errorf("%d requests of %d clients: %d in %v, want the slow client's %d in %v", c.requests, c.clients, r.Offered, r.Elapsed, quota, want)
			}
		})
	}
}

func TestAClosedLoopEndsByItsDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRun(t, t.Context(), Config{
			Closed: &Closed{Clients: 3, Duration: time.Second},
			Target: takes(300 * time.Millisecond),
		})
		if r.Offered != 12 || r.Elapsed != 1200*time.Millisecond || r.Partial || r.Lag.Max() != 0 {
			t.Errorf("%d in %v, partial %v, lag %d: want 4 each, the last one finished", r.Offered, r.Elapsed, r.Partial, r.Lag.Max())
		}
		if g := r.Goodput(); !within(g, 10, 1e-9) {
			t.Errorf("goodput %v, want 12 in 1.2 s", g)
		}
	})
}
