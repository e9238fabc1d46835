package limiter

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

func configured(t testing.TB, cfg Config) *Limiter {
	t.Helper()
	l, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// learn lets the limiter see how long work takes.
func learn(t testing.TB, l *Limiter, took time.Duration) {
	t.Helper()
	for range 30 {
		p := acquire(t, l)
		time.Sleep(took)
		p.Done(nil)
	}
}

func TestTheMoreImportantGoFirstWhateverTheOrderOfArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		first := acquire(t, l)
		var order []string
		for _, p := range []spillway.Priority{spillway.Low, spillway.Normal, spillway.Critical, spillway.High} {
			go func() {
				ctx := spillway.WithPriority(t.Context(), p)
				_ = l.Do(ctx, func(context.Context) error { order = append(order, p.String()); return nil })
			}()
			synctest.Wait()
		}
		if by := l.Stats().QueuedBy; len(by) != 4 || by[spillway.Low] != 1 {
			t.Fatalf("waiting: %v", by)
		}
		first.Done(nil)
		synctest.Wait()
		if got := strings.Join(order, " "); got != "critical high normal low" {
			t.Fatal(got)
		}
		atRest(t, l)
	})
}

func TestARequestSaysItsPriorityItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		p := acquire(t, l)
		go func() {
			q, _ := l.AcquireWith(spillway.WithPriority(t.Context(), spillway.Low), Request{Priority: spillway.High})
			q.Done(nil)
		}()
		synctest.Wait()
		if by := l.Stats().QueuedBy; by[spillway.High] != 1 {
			t.Fatalf("%v", by)
		}
		p.Done(nil)
		synctest.Wait()
		atRest(t, l)
	})
}

func TestTheLeastImportantWaiterLosesItsPlaceWhenTheQueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 1)
		learn(t, l, 10*time.Millisecond)
		p := acquire(t, l)
		var low error
		go func() { _, low = l.AcquireWith(t.Context(), Request{Priority: spillway.Low}) }()
		synctest.Wait()
		time.Sleep(5 * time.Millisecond)
		go func() { acquire(t, l).Done(nil) }()
		synctest.Wait()
		rej, _ := errors.AsType[*spillway.Rejection](low)
		if rej == nil || rej.Reason != spillway.Preempted || rej.Waited != 5*time.Millisecond || rej.RetryAfter == 0 {
			t.Fatalf("%+v", low)
		}
		p.Done(nil)
		synctest.Wait()
		atRest(t, l)
	})
}

func TestWorkThatCannotMeetItsDeadlineIsRefusedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, 10)
		learn(t, l, 100*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx); reason(err) != spillway.DeadlineTooClose || time.Since(start) != 0 {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		// While it waits the time may run out as well.
		p := acquire(t, l)
		late, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		var err error
		go func() { _, err = l.Acquire(late) }()
		synctest.Wait()
		time.Sleep(230 * time.Millisecond)
		p.Done(nil)
		synctest.Wait()
		if reason(err) != spillway.DeadlineTooClose {
			t.Fatal(err)
		}
		atRest(t, l)
	})
}

func TestALaterDeadlineDoesNotLiftMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(1), MaxWait: 2 * time.Second})
		p := acquire(t, l)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if _, err := l.Acquire(ctx); reason(err) != spillway.WaitTooLong || time.Since(start) != 2*time.Second {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		p.Done(nil)
		atRest(t, l)
	})
}

func TestAdviceDiffersBetweenThoseRefusedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 1, -1)
		learn(t, l, time.Second)
		p := acquire(t, l)
		seen := map[time.Duration]int{}
		for range 100 {
			_, err := l.TryAcquire(t.Context())
			rej, _ := errors.AsType[*spillway.Rejection](err)
			seen[rej.RetryAfter]++
		}
		if len(seen) < 2 {
			t.Fatalf("all told to come back together: %v", seen)
		}
		p.Done(nil)
		atRest(t, l)
	})
}

func TestRepeatedRefusalsAreAllCounted(t *testing.T) {
	l := fixed(t, 1, -1)
	p := acquire(t, l)
	for i := range uint64(1000) {
		if _, err := l.Acquire(t.Context()); reason(err) != spillway.QueueFull {
			t.Fatal(err)
		}
		if i%100 == 0 {
			if s := l.Stats(); s.Offered != i+2 || s.Rejected != i+1 {
				t.Fatalf("after %d: %+v", i+1, s)
			}
		}
	}
	p.Done(nil)
	if q, err := l.Acquire(t.Context()); err != nil {
		t.Fatal("refused although the slot is free again")
	} else {
		q.Done(nil)
	}
	if s := l.Stats(); s.Rejected != 1000 || s.Offered != 1002 {
		t.Fatalf("%+v", s)
	}
	atRest(t, l)
}

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
		if s := l.Stats(); s.Queued != 0 || s.InFlight != 2 {
			t.Fatalf("room was made and nobody woken: %+v", s)
		}
		if l.SetBounds(2, 1) == nil || l.SetBounds(-1, 0) == nil {
			t.Fatal("bounds that make no sense")
		}
		_ = l.SetBounds(0, 0)
		if l.Limit() != 5 {
			t.Fatal(l.Limit())
		}
		p.Done(nil)
		second.Done(nil)
		atRest(t, l)
	})
}

func TestAColdProcessTakesOnWorkInAStraightLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(100), SlowStart: 10 * time.Second})
		time.Sleep(time.Hour) // before the first arrival nothing is warmed up
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

// Nobody comes and nothing ends while the limit grows: who waits is served all
// the same, as soon as there is room.
func TestWhoWaitsIsServedWhenTimeAloneMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(2), SlowStart: 6400 * time.Millisecond})
		first := acquire(t, l)
		start := time.Now()
		acquire(t, l).Done(nil)
		if got := time.Since(start); got != 6400*time.Millisecond {
			t.Errorf("the second slot came after %v", got)
		}
		first.Done(nil)
		atRest(t, l)

		level := 2.0
		l = configured(t, Config{Law: limit.NewFixed(2), Signals: []Signal{Gauge("g", func() float64 { return level }, 1)}})
		first = acquire(t, l)
		time.AfterFunc(3*time.Second, func() { level = 0 })
		start = time.Now()
		acquire(t, l).Done(nil)
		if got := time.Since(start); got < 3*time.Second || got > 3*time.Second+2*pollEvery {
			t.Errorf("released at 3 s, and served after %v", got)
		}
		first.Done(nil)
		atRest(t, l)
	})
}

func TestASignalPressesTheLimitDownAndLetsItGoAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := 0.0
		l := configured(t, Config{Law: limit.NewFixed(100), QueueSize: -1, Signals: []Signal{
			Gauge("calm", func() float64 { return 1 }, 10),
			Gauge("pool", func() float64 { return level * 5 }, 5),
		}})
		var permits []Permit
		for range 60 {
			permits = append(permits, acquire(t, l))
		}
		poll := func(n int) {
			for range n {
				time.Sleep(pollEvery)
				if p, err := l.TryAcquire(t.Context()); err == nil {
					p.Done(nil)
				}
			}
		}
		if poll(1); l.Limit() != 100 {
			t.Fatalf("%d without pressure", l.Limit())
		}
		level = 1.2
		if poll(1); l.Limit() != 48 {
			t.Fatalf("%d, want four fifths of what runs", l.Limit())
		}
		_, err := l.TryAcquire(t.Context())
		if rej, _ := errors.AsType[*spillway.Rejection](err); rej == nil || rej.Reason != spillway.Signal || rej.Cause != "pool" {
			t.Fatalf("%+v", err)
		}
		if s := l.Stats(); s.Pressure != (Pressure{Signal: "pool", Level: 1.2, Cap: 48, By: "pool"}) {
			t.Fatalf("%+v", s.Pressure)
		}
		if poll(50); l.Limit() != 1 {
			t.Fatalf("%d, want 1 in the end", l.Limit())
		}
		level = 0.95
		if poll(50); l.Limit() != 1 {
			t.Fatalf("%d: not quite calm yet", l.Limit())
		}
		level = 0.5
		if poll(10); l.Limit() < 5 || l.Limit() > 20 {
			t.Fatalf("%d: a second later, want a gradual release", l.Limit())
		}
		if poll(50); l.Limit() != 100 || l.Stats().Pressure.Cap != 0 {
			t.Fatalf("%d, want all", l.Limit())
		}
		for _, p := range permits {
			p.Done(nil)
		}
		atRest(t, l)
	})
}

func TestSignalsAreAskedAtMostTenTimesASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		l := configured(t, Config{Law: limit.NewFixed(1), QueueSize: -1, Signals: []Signal{Gauge("g", func() float64 { asked++; return 0 }, 1)}})
		for range 2000 {
			p := acquire(t, l)
			_, _ = l.TryAcquire(t.Context())
			time.Sleep(time.Millisecond)
			p.Done(nil)
		}
		if asked != 21 {
			t.Fatalf("asked %d times in 2 s", asked)
		}
		time.Sleep(time.Hour)
		if asked != 21 {
			t.Fatal("asked while nothing happened")
		}
	})
}

func TestOutsideEnforcementEverybodyPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Mode: DryRun})
		if s := l.Stats(); s.Law != limit.NewPassive().Name() {
			t.Fatalf("a dry run has the law %q", s.Law)
		}
		var permits []Permit
		for range 1000 {
			permits = append(permits, acquire(t, l))
		}
		l.SetMode(Enforce)
		if s := l.Stats(); s.Law != limit.NewAdaptive().Name() || s.InFlight != 1000 {
			t.Fatalf("%+v", s)
		}
		if s := l.Stats(); s.Limit < 1000 {
			t.Fatalf("1000 ran without harm, and the limit is %d", s.Limit)
		}
		time.Sleep(handover)
		if _, err := l.TryAcquire(t.Context()); reason(err) != spillway.QueueFull {
			t.Fatalf("enforcing, with 1000 in flight and nothing that ever ended: %v", err)
		}
		for _, p := range permits { // the new law never saw them start
			p.Done(nil)
		}
		for range 100 {
			p := acquire(t, l)
			time.Sleep(time.Millisecond)
			p.Done(nil)
		}
		l.SetMode(DryRun)
		acquire(t, l).Done(nil)
		if l.Limit() < 1 {
			t.Fatal(l.Limit())
		}
		atRest(t, l)
	})
}

// A healthy service must not refuse anybody because its limiter begins to enforce.
func TestEnforcingAfterADryRunRefusesNobodyWhoseServiceIsHealthy(t *testing.T) {
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

func TestALawOfOnesOwnStaysInEveryMode(t *testing.T) {
	law := &recorder{Law: limit.NewFixed(3)}
	l := configured(t, Config{Law: law, Mode: DryRun})
	acquire(t, l).Done(nil)
	l.SetMode(Enforce)
	acquire(t, l).Done(nil)
	if len(law.samples) != 2 || law.samples[1].Seq != 2 {
		t.Fatalf("%+v", law.samples)
	}
}

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
		if admitted.Load() != s.Admitted || rejected.Load() != s.Rejected || s.RejectedBy[spillway.Preempted] == 0 || s.Rejected == 0 {
			t.Errorf("told of %d and %d: %+v", admitted.Load(), rejected.Load(), s)
		}
		if len(changes) != 1 || changes[0].From != 2 || changes[0].To != 3 {
			t.Errorf("%+v", changes)
		}
		atRest(t, l)
	})
}

func TestAnObserverThatPanicsCostsNoSlot(t *testing.T) {
	l := configured(t, Config{Law: limit.NewFixed(1), Observer: &Observer{
		Admitted: func(spillway.Priority, time.Duration) { panic("bug") },
	}})
	for range 3 {
		func() {
			defer func() { _ = recover() }()
			_, _ = l.TryAcquire(t.Context())
		}()
	}
	if s := l.Stats(); s.Admitted != 3 {
		t.Fatalf("%+v", s)
	}
	atRest(t, l)
}

func loseAPermit(l *Limiter) { _, _ = l.Acquire(context.Background()) }

func TestAPermitNeverEndedIsReportedOnceWithWhoTookIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reports []Leak
		l := configured(t, Config{Law: limit.NewFixed(4), LeakAfter: time.Minute, OnLeak: func(k Leak) { reports = append(reports, k) }})
		go func() {
			_ = l.Do(t.Context(), func(context.Context) error { time.Sleep(2 * time.Minute); return nil })
		}()
		synctest.Wait()
		time.Sleep(time.Second)
		loseAPermit(l)
		for range 200 {
			time.Sleep(time.Second)
			acquire(t, l).Done(nil)
		}
		if len(reports) != 2 || !strings.Contains(reports[1].Site, "loseAPermit") || reports[1].Age < time.Minute {
			t.Fatalf("%+v", reports)
		}
		if !strings.Contains(reports[0].Site, "TestAPermitNeverEnded") {
			t.Errorf("the site of Do: %s", reports[0].Site)
		}
		s := l.Stats()
		if s.Leaked != 2 || len(s.Leaks) != 1 || !strings.Contains(s.Leaks[0].Site, "policy_test.go:") || s.OldestInFlight != 200*time.Second {
			t.Fatalf("%+v", s)
		}
	})
}

func TestDemandIsOfferedWorkOverTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 10, -1)
		for range 10000 { // 1000 a second of 20 ms each: 20 slots' worth
			go func() {
				_ = l.Do(t.Context(), func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil })
			}()
			time.Sleep(time.Millisecond)
		}
		if got := l.Stats().Demand; got < 1.9 || got > 2.1 {
			t.Errorf("demand %v, want 2", got)
		}
		time.Sleep(time.Minute)
		if got := l.Stats().Demand; got > 0.01 {
			t.Errorf("demand %v a minute later", got)
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
