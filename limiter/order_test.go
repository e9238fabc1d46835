package limiter

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// Regression: AcquireWith took the zero priority as Normal and ignored the context.
func TestARequestThatSaysNoPriorityHasThatOfItsContext(t *testing.T) {
	l := fixed(t, 1, -1)
	defer acquire(t, l).Release()
	var refused []spillway.Priority
	l.observer = &Observer{Rejected: func(p spillway.Priority, _ *spillway.Rejection) { refused = append(refused, p) }}
	for _, r := range []Request{{}, {Cost: 1}, {Priority: spillway.Low}, {Priority: spillway.Critical}} {
		ctx := spillway.WithPriority(t.Context(), spillway.High)
		_, _ = l.AcquireWith(ctx, r)
		_ = l.do(ctx, r, nothing)
		r.noWait = true
		_, _ = l.AcquireWith(ctx, r)
	}
	_, _ = l.AcquireWith(spillway.WithPriority(spillway.WithPriority(t.Context(), spillway.High), spillway.Normal), Request{})
	h, low, c := spillway.High, spillway.Low, spillway.Critical
	if want := []spillway.Priority{h, h, h, h, h, h, low, low, low, c, c, c, spillway.Normal}; !slices.Equal(refused, want) {
		t.Errorf("refused as %v, want %v", refused, want)
	}
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
		if rej == nil || rej.Reason != spillway.ReasonPreempted || rej.Waited != 5*time.Millisecond || rej.RetryAfter == 0 {
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
		for range 30 { // the kind of work with a quarter of a second left
			ctx, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
			p, err := l.Acquire(ctx)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(100 * time.Millisecond)
			p.Done(nil)
			cancel()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		start := time.Now()
		p := acquire(t, l)
		if _, err := l.Acquire(ctx); reason(err) != spillway.ReasonDeadlineTooClose || time.Since(start) != 0 {
			t.Fatalf("after %v: %v", time.Since(start), err)
		}
		// The time may also run out while the caller waits.
		late, cancel := context.WithTimeout(t.Context(), 250*time.Millisecond)
		defer cancel()
		var err error
		go func() { _, err = l.Acquire(late) }()
		synctest.Wait()
		go func() { acquire(t, l).Done(nil) }() // this caller has enough time
		synctest.Wait()
		time.Sleep(230 * time.Millisecond)
		p.Done(nil)
		synctest.Wait()
		if reason(err) != spillway.ReasonDeadlineTooClose {
			t.Fatal(err)
		}
		atRest(t, l)
	})
}

// Free slots are gathered for large work. If running work hangs and no more callers arrive, no
// event ends the gathering, only a timer.
func TestWhoWaitsForGatheredSlotsIsWokenByTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 10, 1000)
		learn(t, l, 10*time.Millisecond)
		hung := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			_, _ = l.AcquireWith(ctx, Request{Cost: 10, Priority: spillway.Low})
		}()
		synctest.Wait()
		longest := time.Duration(0)
		for range 600 {
			began := time.Now()
			acquire(t, l).Done(nil) // one after the other: nobody else arrives during the wait
			longest = max(longest, time.Since(began))
		}
		if longest == 0 || longest > 250*time.Millisecond {
			t.Errorf("with eight slots free a caller waited for up to %v", longest)
		}
		cancel()
		hung.Done(nil)
		synctest.Wait()
		atRest(t, l)
	})
}

// Regression: a caller that asked for all slots while one slot hung made all work of its
// priority wait. Nine in ten calls were refused, with nine of ten slots free.
func TestLargeWorkDoesNotBlockItsPriorityForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := configured(t, Config{Law: limit.NewFixed(10)})
		hung := acquire(t, l)
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for ctx.Err() == nil {
				if p, err := l.AcquireWith(ctx, Request{Cost: 10}); err == nil {
					p.Done(nil)
				}
				time.Sleep(10 * time.Millisecond)
			}
		}()
		var done atomic.Int32
		const calls = 3000
		for range calls {
			time.Sleep(10 * time.Millisecond)
			go func() {
				ctx, stop := context.WithTimeout(ctx, time.Second)
				defer stop()
				if l.Do(ctx, func(context.Context) error { time.Sleep(20 * time.Millisecond); return nil }) == nil {
					done.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		cancel()
		hung.Done(nil)
		if n := done.Load(); n < calls*9/10 {
			t.Errorf("of %d calls %d were done", calls, n)
		}
		time.Sleep(time.Minute)
		atRest(t, l)
	})
}
