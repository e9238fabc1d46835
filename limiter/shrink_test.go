package limiter

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func TestShrunkWorkRunsOnWithTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(4)})
		p := take(t, l, Request{Cost: 4, Priority: spillway.High})
		waited := make(chan Permit)
		go func() { waited <- acquire(t, l) }()
		synctest.Wait()
		for _, c := range []struct{ slots, left int }{{0, 4}, {-3, 4}, {2, 2}} {
			p.Shrink(c.slots)
			if s := l.Stats(); s.ByPriority[spillway.High].InFlight != c.left {
				t.Fatalf("%d slots are back: %+v", c.slots, s)
			}
		}
		other := <-waited
		p.Shrink(9) // one slot stays
		holds(t, l, Stats{InFlight: 2})
		p.Done(nil)
		p.Shrink(1)
		q, _ := l.AcquireWith(t.Context(), Request{Cost: 3}) // in the slot of p
		p.Shrink(1)
		holds(t, l, Stats{InFlight: 4})
		q.Shrink(1)
		q.Long()
		q.Shrink(1)
		holds(t, l, Stats{InFlight: 1, LongInFlight: 1})
		q.Done(nil)
		other.Done(nil)
		Permit{}.Shrink(1)
		atRest(t, l)
	})
}

// Regression: each of many waiters for several slots looked every 100 ms whether there was room.
func TestManyLargeWaitersSeldomLookForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(2), MaxWait: NoMaxWait})
		p := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		for range 1000 {
			go func() { _, _ = l.AcquireWith(ctx, Request{Cost: 2}) }()
		}
		synctest.Wait()
		l.lock(l.now())
		every := l.recheckEvery(2, 0)
		l.unlock()
		if every != time.Second {
			t.Errorf("each of 1000 looks every %v", every)
		}
		cancel()
		synctest.Wait()
		finish(t, l, p)
	})
}

// Regression: while slots were gathered for large work, a free slot stayed free for a millisecond
// for each waiter, whatever its cost.
func TestALongQueueOfSmallWorkIsNotHeldUpByLargeWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const small = 5000
		l := configured(t, Config{Law: limit.NewFixed(2), MaxWait: NoMaxWait})
		hangs := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		var all, large sync.WaitGroup
		for range small {
			all.Go(func() {
				p := acquire(t, l)
				time.Sleep(time.Millisecond)
				p.Done(nil)
			})
		}
		synctest.Wait()
		large.Go(func() { _, _ = l.AcquireWith(ctx, Request{Cost: 2, Priority: spillway.Low}) })
		start := time.Now()
		all.Wait()
		if took := time.Since(start); took > small*time.Millisecond+time.Second {
			t.Errorf("%d ms of work took %v", small, took)
		}
		cancel()
		large.Wait()
		finish(t, l, hangs)
	})
}
