package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/await"
	"github.com/spillway-go/spillway/limit"
)

// TestTheLedgerClosesAfterEverything sends 10⁵ submissions through one limiter:
// cancelled ones, panics, Goexit, errors, and a Drain and a Close in the middle.
func TestTheLedgerClosesAfterEverything(t *testing.T) {
	const callers, each = 100, 1000
	l := configured(t, Config{Law: &clockwork{Law: limit.NewFixed(8), t: t}, QueueSize: 32})
	var running, peak atomic.Int64
	var ran, refused, left atomic.Uint64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for i := range each {
				ctx, cancel := context.WithCancel(context.Background())
				switch r.IntN(4) {
				case 0:
					cancel()
				case 1:
					go cancel()
				}
				kind := r.IntN(5)
				var call sync.WaitGroup
				call.Go(func() {
					defer func() { _ = recover() }()
					err := l.Do(ctx, func(context.Context) error {
						defer running.Add(-1)
						if n := running.Add(1); n > peak.Load() {
							peak.Store(n)
						}
						ran.Add(1)
						switch kind {
						case 0:
							panic("bad")
						case 1:
							runtime.Goexit()
						case 2:
							runtime.Gosched()
						}
						return nil
					})
					switch {
					case errors.Is(err, spillway.ErrRejected):
						refused.Add(1)
					case err != nil:
						left.Add(1)
					}
				})
				call.Wait()
				cancel()
				if c == 0 && i == each/2 {
					ctx, pass := await.Deadline(context.Background())
					go pass()
					_ = l.Drain(ctx)
				}
			}
		})
	}
	wg.Wait()
	if err := l.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	atRest(t, l)
	s := l.Stats()
	if s.Offered != callers*each || s.Admitted != ran.Load() || s.Rejected != refused.Load() || s.Cancelled != left.Load() {
		t.Fatalf("the callers saw %d run, %d refused, %d left; the ledger says %+v", ran.Load(), refused.Load(), left.Load(), s)
	}
	if peak.Load() > 8 {
		t.Fatalf("%d ran at once under a limit of 8", peak.Load())
	}
	if got := s.QueueWait.Count(); got != s.Admitted {
		t.Fatalf("%d queue waits recorded for %d admitted", got, s.Admitted)
	}
}

func TestAcquireRacingDrainNeverLosesAPermit(t *testing.T) {
	for range 200 {
		l := fixed(t, 2, 4)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					_ = l.Do(t.Context(), func(context.Context) error { runtime.Gosched(); return nil })
				}
			})
		}
		if err := l.Drain(t.Context()); err != nil {
			t.Error(err)
		}
		wg.Wait()
		atRest(t, l)
	}
}

// TestNoCountEverFalls: metrics export the counts as counters, and a counter
// that falls looks like a restart.
func TestNoCountEverFalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 200 {
			l := fixed(t, 1, 1)
			p := acquire(t, l)
			ctx, cancel := context.WithCancel(t.Context())
			go func() { _ = l.Do(ctx, func(context.Context) error { return nil }) }()
			synctest.Wait()
			cancel()
			p.Release() // grants a waiter that is about to leave
			before := l.Stats()
			synctest.Wait()
			if after := l.Stats(); after.Admitted < before.Admitted || after.Cancelled < before.Cancelled {
				t.Fatalf("round %d: %d admitted and %d cancelled, then %d and %d",
					round, before.Admitted, before.Cancelled, after.Admitted, after.Cancelled)
			}
			atRest(t, l)
		}
	})
}

// TestOffFreesAlsoACallerThatIsJustComing: an arrival that races SetMode(Off) is admitted
// before or after the change.
func TestOffFreesAlsoACallerThatIsJustComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 20_000 {
			l := fixed(t, 1, 1)
			p := acquire(t, l)
			var admitted atomic.Bool
			go func() {
				q, err := l.Acquire(t.Context())
				admitted.Store(err == nil)
				q.Release()
			}()
			go l.SetMode(Off)
			synctest.Wait()
			if !admitted.Load() {
				t.Fatalf("round %d: waits although the limiter is off", round)
			}
			p.Release()
		}
	})
}
