package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

func TestBoundsHoldTheLimitWhateverTheLawSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 5, 10)
		if err := l.SetBounds(0, 1); err != nil || l.Limit() != 1 {
			t.Fatal(err, l.Limit())
		}
		p := acquire(t, l)
		var second Permit
		go func() { second = acquire(t, l) }()
		synctest.Wait()
		if s := l.Stats(); s.Queued != 1 || s.Limit != 1 {
			t.Fatalf("%+v", s)
		}
		if err := l.SetBounds(8, 0); err != nil || l.Limit() != 8 {
			t.Fatal(err, l.Limit())
		}
		synctest.Wait()
		holds(t, l, Stats{InFlight: 2})
		if l.SetBounds(2, 1) == nil || l.SetBounds(-1, 0) == nil {
			t.Fatal("bounds that make no sense")
		}
		_ = l.SetBounds(0, 0)
		if l.Limit() != 5 {
			t.Fatal(l.Limit())
		}
		finish(t, l, p, second)
	})
}

func TestAColdProcessTakesOnWorkInAStraightLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(100), SlowStart: 10 * time.Second})
		l.Stats()             // once used up the slow start
		time.Sleep(time.Hour) // the slow start begins only with the first arrival
		for i := range 12 {
			acquire(t, l).Done(nil)
			if got, want := l.Limit(), min(max(10*i, 1), 100); got != want {
				t.Fatalf("after %d s the limit is %d, want %d", i, got, want)
			}
			time.Sleep(time.Second)
		}
		atRest(t, l)
	})
}

// No caller arrives and no work ends while the limit grows. Waiters are served as soon
// as there is room.
func TestAWaiterIsServedWhenTimeAloneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(2), SlowStart: 6400 * time.Millisecond})
		first := acquire(t, l)
		start := time.Now()
		acquire(t, l).Done(nil)
		if got := time.Since(start); got != 6400*time.Millisecond {
			t.Errorf("the second slot came after %v", got)
		}
		finish(t, l, first)

		start = time.Now()
		l = configured(t, Config{Law: limit.NewFixed(2), Signals: []Signal{Gauge("g", func() float64 {
			if time.Since(start) < 3*time.Second {
				return 2
			}
			return 0
		}, 1)}})
		first = acquire(t, l)
		acquire(t, l).Done(nil)
		if got := time.Since(start); got < 3*time.Second || got > 3*time.Second+2*pollEvery {
			t.Errorf("released at 3 s, and served after %v", got)
		}
		finish(t, l, first)
	})
}

// A healthy service must not refuse work because its limiter begins to enforce.
func TestEnforcingAfterADryRunRefusesNothingOfAHealthyService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Mode: DryRun})
		call := func() {
			_ = l.Do(t.Context(), func(context.Context) error { time.Sleep(100 * time.Millisecond); return nil })
		}
		run := func(d time.Duration) {
			for range d / time.Millisecond { // 100 run at once
				go call()
				time.Sleep(time.Millisecond)
			}
		}
		run(5 * time.Second)
		l.SetMode(Enforce)
		run(10 * time.Second)
		time.Sleep(time.Minute)
		if s := l.Stats(); s.Rejected > 0 || s.WouldReject > 0 || time.Duration(s.QueueWait.Max()) > 100*time.Millisecond {
			t.Fatalf("%d refused, %d would have been, longest wait %v", s.Rejected, s.WouldReject, time.Duration(s.QueueWait.Max()))
		}
		atRest(t, l)
	})
}

func TestDryRunCountsWhatEnforcingWouldHaveRefused(t *testing.T) {
	for name, config := range map[string]Config{
		"alone, above the whole limit": {Law: limit.NewFixed(1), QueueSize: -1},
		"never waits":                  {Law: limit.NewFixed(1), QueueSize: 4},
	} {
		refused := func(mode Mode) (n uint64) {
			config.Mode = mode
			l := configured(t, config)
			p := take(t, l, Request{Cost: 2})
			q, _ := l.TryAcquire(t.Context())
			p.Done(nil)
			q.Done(nil)
			s := l.Stats()
			return s.Rejected + s.WouldReject
		}
		if would, did := refused(DryRun), refused(Enforce); would != did {
			t.Errorf("%s: %d would be refused, %d were", name, would, did)
		}
	}
}

func TestOffAdmitsAtOnceAndFreesTheWaiters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		var got atomic.Int64
		for range 3 {
			go func() { acquire(t, l).Done(nil); got.Add(1) }()
			synctest.Wait()
		}
		l.SetMode(Off)
		synctest.Wait()
		if got.Load() != 3 {
			t.Fatalf("%d of 3 waiting callers were let through", got.Load())
		}
		if _, err := l.Acquire(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s := l.Stats(); s.Offered != 4 {
			t.Fatalf("off counts: %+v", s)
		}
		finish(t, l, p)
	})
}

func TestDrainServesWaitersAndRefusesArrivals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		go func() {
			q := acquire(t, l)
			time.Sleep(time.Second)
			q.Done(nil)
		}()
		synctest.Wait()
		go func() {
			time.Sleep(time.Second)
			if _, err := l.Acquire(t.Context()); reason(err) != spillway.ReasonDraining {
				t.Errorf("while draining: %v", err)
			}
			p.Done(nil)
		}()
		start := time.Now()
		if err := l.Drain(t.Context()); err != nil || time.Since(start) != 2*time.Second || l.Open() {
			t.Fatalf("drained after %v: %v", time.Since(start), err)
		}
		if err := l.Drain(t.Context()); err != nil {
			t.Fatalf("draining again: %v", err)
		}
		atRest(t, l)
	})
}

func TestDrainEndsWithItsContextAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		var waiting error
		go func() { _, waiting = l.Acquire(context.Background()) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		err := l.Drain(ctx)
		d, ok := errors.AsType[*spillway.DrainError](err)
		if !ok || d.Dropped != 1 || d.Running != 1 || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("%v", err)
		}
		synctest.Wait()
		if reason(waiting) != spillway.ReasonDraining {
			t.Fatalf("the waiting caller got %v", waiting)
		}
		p.Done(nil)
		if err := l.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
		atRest(t, l)
	})
}

func TestCloseRefusesAllAndLeavesRunningWorkAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		var waiting error
		go func() { _, waiting = l.Acquire(context.Background()) }()
		synctest.Wait()
		for range 2 { // the second time without asking the gate
			if _, err := l.TryAcquire(t.Context()); reason(err) != spillway.ReasonQueueFull || !l.Open() {
				t.Fatal(err)
			}
		}
		l.Close()
		l.Close()
		synctest.Wait()
		if _, err := l.TryAcquire(t.Context()); reason(err) != spillway.ReasonClosed || reason(waiting) != spillway.ReasonClosed || l.Open() {
			t.Fatalf("arrival %v, waiting %v", err, waiting)
		}
		finish(t, l, p)
	})
}

// In an overload a second kind appears. Its first times hold the queue that all work meets. The dry run
// once took them for another backend, forgot what it had measured, and let in more and more.
func TestANewKindInAnOverloadDoesNotBlindADryRun(t *testing.T) {
	soak.WithoutRace(t)
	synctest.Test(t, func(t *testing.T) {
		s := serve(t, 8, Config{Mode: DryRun})
		r, began, c := rand.New(rand.NewPCG(1, 2)), time.Now(), &count{}
		for passed := time.Duration(0); passed < 40*time.Second; passed = time.Since(began) {
			rate, kind := 200., "main" // half of what 8 slots can do
			if passed > 10*time.Second {
				rate = 480
			}
			if passed > 20*time.Second && r.IntN(10) == 0 {
				kind = "new"
			}
			time.Sleep(time.Duration(r.ExpFloat64() * float64(time.Second) / rate))
			takes := time.Duration((0.5 + r.Float64()) * float64(20*time.Millisecond))
			sendOne(spillway.WithKind(t.Context(), kind), s, traffic{takes: takes, patience: 5 * time.Second}, 0, time.Second, c)
		}
		if st := s.Stats(); s.Limit() > 12 || st.WouldReject == 0 {
			t.Errorf("8 slots are right, and the limit is %d; %d of %d would be refused", s.Limit(), st.WouldReject, st.Offered)
		}
		s.all.Wait()
	})
}
