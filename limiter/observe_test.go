package limiter

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func TestTheObserverIsToldOfEachDecisionOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var admitted, rejected atomic.Uint64
		var changes []limit.Decision
		var l *Limiter
		l = configured(t, Config{Law: limit.NewFixed(2), QueueSize: 2, MaxWait: time.Second, Observer: &Observer{
			Admitted:     func(_ spillway.Priority, _ time.Duration) { admitted.Add(1); l.Stats() },
			Rejected:     func(_ spillway.Priority, r *spillway.Rejection) { rejected.Add(1); l.Stats() },
			LimitChanged: func(d limit.Decision) { changes = append(changes, d); l.Stats() },
		}})
		for i := range 40 {
			go func() {
				ctx := spillway.WithPriority(t.Context(), spillway.Priority(i%3))
				_ = l.Do(ctx, func(context.Context) error { time.Sleep(900 * time.Millisecond); return nil })
			}()
			time.Sleep(50 * time.Millisecond)
			if i == 20 {
				_ = l.SetBounds(3, 0)
			}
		}
		time.Sleep(10 * time.Second)
		s := l.Stats()
		if admitted.Load() != s.Admitted || rejected.Load() != s.Rejected || s.RejectedBy[spillway.ReasonPreempted] == 0 || s.Rejected == 0 {
			t.Errorf("told of %d and %d: %+v", admitted.Load(), rejected.Load(), s)
		}
		if len(changes) != 1 || changes[0].From != 2 || changes[0].To != 3 {
			t.Errorf("%+v", changes)
		}
		atRest(t, l)
	})
}

func TestTheObserverIsToldHowLongWorkWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits, ends := make(chan time.Duration, 2), make(chan End, 2)
		l := configured(t, Config{Law: limit.NewFixed(1), Observer: &Observer{
			Admitted: func(_ spillway.Priority, waited time.Duration) { waits <- waited },
			Ended:    func(e End) { ends <- e },
		}})
		time.AfterFunc(3*time.Second, acquire(t, l).Release)
		acquire(t, l).Done(nil)
		a, b := <-ends, <-ends
		if waited := max(<-waits, <-waits); waited != 3*time.Second || max(a.Took, b.Took) != 3*time.Second {
			t.Errorf("told %v, %+v and %+v", waited, a, b)
		}
		if w := l.Stats().QueueWait; w.Count() != 2 || time.Duration(w.Max()) < 3*time.Second {
			t.Errorf("%d waits, the longest of %v", w.Count(), time.Duration(w.Max()))
		}
		atRest(t, l)
	})
}

// A caller that is admitted, begins to wait or is granted reports a new limit.
func TestAnObserverOfTheLimitThatPanicsCostsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		l := configured(t, Config{Law: limit.NewFixed(2), SlowStart: time.Minute, Observer: &Observer{
			LimitChanged: func(limit.Decision) { panics++; panic("bug") },
		}})
		use := func() {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = l.Do(ctx, func(context.Context) error { time.Sleep(time.Second); return nil })
		}
		for i := range 40 {
			go apart(use)
			go apart(use)
			time.Sleep(2 * time.Second)
			apart(func() { _ = l.SetBounds(i%2, 0) })
		}
		time.Sleep(time.Minute)
		if panics == 0 {
			t.Fatal("nothing was told")
		}
		atRest(t, l)
	})
}

// A caller that waits while a signal presses polls the signal from time to time.
func TestASignalThatPanicsLeavesNoWaiterInTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		l := configured(t, Config{Law: limit.NewFixed(10), Signals: []Signal{Gauge("g", func() float64 {
			if broken.Load() {
				panic("bug")
			}
			return 2
		}, 1)}})
		p := acquire(t, l)
		time.Sleep(pollEvery)
		recovered := make(chan any)
		go func() {
			defer func() { recovered <- recover() }()
			acquire(t, l).Done(nil)
		}()
		synctest.Wait()
		holds(t, l, Stats{InFlight: 1, Queued: 1})
		broken.Store(true)
		if r := <-recovered; r == nil {
			t.Fatal("the panic was swallowed")
		}
		broken.Store(false)
		p.Done(nil)
		time.Sleep(time.Second)
		acquire(t, l).Done(nil)
		atRest(t, l)
	})
}

func loseAPermit(l *Limiter) { _, _ = l.Acquire(context.Background()) }

func TestAPermitNeverEndedIsReportedOnceWithItsSite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(4), LeakAfter: time.Minute})
		go func() {
			_ = l.Do(t.Context(), func(context.Context) error { time.Sleep(2 * time.Minute); return nil })
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		loseAPermit(l)
		for i := range 200 {
			time.Sleep(time.Second)
			acquire(t, l).Done(nil)
			if i != 90 { // the work of Do still runs
				continue
			}
			if s := l.Stats(); s.Leaked != 2 || len(s.Leaks) != 2 || !strings.Contains(s.Leaks[1].Site, "loseAPermit") || s.Leaks[1].Age < time.Minute {
				t.Fatalf("%+v", s)
			} else if !strings.Contains(s.Leaks[0].Site, "TestAPermitNeverEnded") {
				t.Errorf("the site of Do: %s", s.Leaks[0].Site)
			}
		}
		s := l.Stats()
		if s.Leaked != 2 || len(s.Leaks) != 1 || !strings.Contains(s.Leaks[0].Site, "observe_test.go:") || s.OldestInFlight != 200*time.Second {
			t.Fatalf("%+v", s)
		}
	})
}

func TestStatsTellTheAgeOfTheOldestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 3, 1)
		a := acquire(t, l)
		time.Sleep(time.Second)
		b := acquire(t, l)
		time.Sleep(time.Second)
		c := acquire(t, l)
		ages := []time.Duration{l.Stats().OldestInFlight}
		for _, p := range []Permit{b, a, c} {
			p.Done(nil)
			ages = append(ages, l.Stats().OldestInFlight)
		}
		if !slices.Equal(ages, []time.Duration{2 * time.Second, 2 * time.Second, 0, 0}) {
			t.Fatal(ages)
		}
	})
}

// Each leak is counted once. Regression: a leak was lost if the observer panicked.
func TestALeakIsCountedAlthoughTheObserverPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(9), SlowStart: 10 * time.Minute, LeakAfter: time.Minute,
			Observer: &Observer{LimitChanged: func(limit.Decision) { panic("bug") }},
		})
		apart(func() { loseAPermit(l) })
		time.Sleep(5 * time.Minute) // the limit has grown meanwhile
		for range 5 {               // the first calls count leaks, report the limit and panic
			apart(func() { loseAPermit(l) })
		}
		time.Sleep(3 * time.Minute)
		for range 3 {
			apart(func() { l.Stats() })
		}
		if s := l.Stats(); s.Leaked != 4 || len(s.Leaks) != 4 {
			t.Errorf("%d leaks: %+v", s.Leaked, s.Leaks)
		}
	})
}
