package limiter

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A limit that nothing tested follows what ran. It once forgot a burst after a few seconds, and refused the
// next.
func TestABurstThatCameBeforeIsNotRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{IgnoreProcessors: true})
		var all sync.WaitGroup
		var refused atomic.Int64
		const period = 20 * time.Second
		for now := time.Duration(0); now < 3*time.Minute; now += 50 * time.Millisecond {
			calls := 1
			if now%period == 0 {
				calls = 24
			}
			for range calls {
				all.Go(func() {
					p, err := l.TryAcquire(t.Context())
					if err != nil {
						refused.Add(1)
						return
					}
					time.Sleep(50 * time.Millisecond)
					p.Done(nil)
				})
			}
			time.Sleep(50 * time.Millisecond)
		}
		all.Wait()
		if n := refused.Load(); n > 0 {
			t.Errorf("%d refused, limit %d", n, l.Limit())
		}
	})
}

// Under a lower bound no cut can be tested. The law once suspected a queue again and again, and raised
// nothing.
func TestALowerBoundKeepsNoLimitLow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{IgnoreProcessors: true, MaxAside: -1})
		if err := l.SetBounds(70, 0); err != nil {
			t.Fatal(err)
		}
		var takes atomic.Int64
		takes.Store(int64(50 * time.Millisecond))
		backend := make(chan struct{}, 1000)
		for range 940 { // leaves 60 slots
			backend <- struct{}{}
		}
		var all sync.WaitGroup
		for i := range 60_000 { // 1500 a second
			if i == 30_000 { // slower, with many slots: 225 are needed
				takes.Store(int64(150 * time.Millisecond))
				for range 940 {
					<-backend
				}
			}
			all.Go(func() {
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				_ = l.Do(ctx, func(context.Context) error { // refusals are expected before the change
					backend <- struct{}{}
					time.Sleep(time.Duration(takes.Load()) * time.Duration(90+i%21) / 100)
					<-backend
					return nil
				})
			})
			time.Sleep(time.Second / 1500)
		}
		if l.Limit() < 200 {
			t.Errorf("limit %d: %s", l.Limit(), l.Stats().State)
		}
		all.Wait()
	})
}
