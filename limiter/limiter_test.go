package limiter

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"runtime"
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

func fixed(t testing.TB, n, queue int) *Limiter {
	t.Helper()
	return configured(t, Config{Law: limit.NewFixed(n), QueueSize: queue})
}

func acquire(t testing.TB, l *Limiter) Permit {
	t.Helper()
	return take(t, l, Request{})
}

// take is acquire for a request.
func take(t testing.TB, l *Limiter, r Request) Permit {
	t.Helper()
	p, err := l.AcquireWith(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// finish ends work, after which no other work is left.
func finish(t testing.TB, l *Limiter, permits ...Permit) {
	t.Helper()
	for _, p := range permits {
		p.Done(nil)
	}
	atRest(t, l)
}

// holds fails unless the limiter has as many slots in use, callers that wait, and work paused, parked and long as want.
func holds(t testing.TB, l *Limiter, want Stats, row ...any) {
	t.Helper()
	of := func(s Stats) string { return fmt.Sprint(s.InFlight, s.Queued, s.Paused, s.Parked, s.LongInFlight) }
	if g, w := of(l.Stats()), of(want); g != w {
		t.Errorf("%v: in flight, queued, paused, parked and long are %s, want %s", row, g, w)
	}
}

// atRest checks the counts once all work has ended.
func atRest(t testing.TB, l *Limiter) {
	t.Helper()
	s := l.Stats()
	if s.Offered != s.Admitted+s.Rejected+s.Cancelled || s.Admitted != s.Completed || s.InFlight != 0 || s.Queued != 0 {
		t.Fatalf("the ledger does not close: %+v", s)
	}
	var ended, byKind, rejected uint64
	for _, n := range s.Ended {
		ended += n
	}
	for kind, k := range s.ByKind {
		rejected += k.Rejected
		for _, n := range k.Ended {
			byKind += n
		}
		if k.InFlight != 0 || k.Parked != 0 {
			t.Fatalf("the ledger of kind %q does not close: %+v", kind, k)
		}
	}
	if ended != s.Completed || byKind != s.Completed || rejected != s.Rejected {
		t.Fatalf("ended %d, by kind %d, rejected %d of %+v", ended, byKind, rejected, s)
	}
	var sum PriorityStats
	for p, of := range s.ByPriority {
		if of.Offered != of.Admitted+of.Rejected+of.Cancelled || of.Admitted != of.Completed || of.InFlight != 0 || of.Queued != 0 {
			t.Fatalf("the ledger of %v does not close: %+v", p, of)
		}
		sum.Offered, sum.Rejected, sum.WouldReject = sum.Offered+of.Offered, sum.Rejected+of.Rejected, sum.WouldReject+of.WouldReject
	}
	if sum.Offered != s.Offered || sum.Rejected != s.Rejected || sum.WouldReject != s.WouldReject {
		t.Fatalf("by priority %+v, in all %+v", sum, s)
	}
}

func reason(err error) spillway.Reason {
	if rej, ok := errors.AsType[*spillway.Rejection](err); ok {
		return rej.Reason
	}
	return 0
}

// A wait ends exactly when its context or MaxWait does. Without a deadline the default bounds the wait
// also where what is predicted on arrival is short, because nobody knows that the work in the slots hangs.
func TestAWaitEndsWithItsContextOrAfterMaxWait(t *testing.T) {
	for name, c := range map[string]struct {
		most, deadline, want time.Duration
		reason               spillway.Reason
	}{
		"a deadline":                    {0, 3 * time.Second, 3 * time.Second, 0},
		"MaxWait":                       {2 * time.Second, 0, 2 * time.Second, spillway.ReasonWaitTooLong},
		"a deadline after MaxWait":      {2 * time.Second, time.Hour, 2 * time.Second, spillway.ReasonWaitTooLong},
		"no deadline and no MaxWait":    {0, 0, defaultMaxWait, spillway.ReasonWaitTooLong},
		"the longest MaxWait there is":  {math.MaxInt64, 24 * time.Hour, 24 * time.Hour, 0},
		"no bound, and too little time": {NoMaxWait, 5 * time.Millisecond, 5 * time.Millisecond, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			l := configured(t, Config{Law: limit.NewFixed(1), MaxWait: c.most})
			learn(t, l, 10*time.Millisecond)
			hangs := acquire(t, l)
			ctx, cancel := t.Context(), func() {}
			if c.deadline > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.deadline)
			}
			defer cancel()
			began := time.Now()
			_, err := l.Acquire(ctx)
			rej, _ := errors.AsType[*spillway.Rejection](err)
			if time.Since(began) != c.want || reason(err) != c.reason || rej == nil && !errors.Is(err, context.DeadlineExceeded) || rej != nil && rej.Waited != c.want {
				t.Errorf("%s: %v after %v", name, err, time.Since(began))
			}
			hangs.Done(nil)
			if s := l.Stats(); s.Cancelled+s.RejectedBy[spillway.ReasonWaitTooLong] != 1 {
				t.Errorf("%s: %+v", name, s)
			}
			atRest(t, l)
		})
	}
}

// Two published limiters lose the slot of a handler that panics. Once each slot has
// had a panic, such a limiter refuses for ever.
func TestPanicsGoexitAndAbortsNeverCostASlot(t *testing.T) {
	l := fixed(t, 2, -1)
	for range 3 {
		for name, end := range map[string]func(){
			"panic": func() { panic("bad") }, "Goexit": runtime.Goexit, "abort": func() { panic(http.ErrAbortHandler) },
		} {
			if apart(func() { _ = l.Do(t.Context(), func(context.Context) error { end(); return nil }) }) {
				t.Fatalf("the %s was swallowed", name)
			}
		}
	}
	if err := l.Do(t.Context(), nothing); err != nil {
		t.Fatal(err)
	}
	atRest(t, l)
}

// told is a law that records its samples and loads.
type told struct {
	limit.Law
	admitted int
	samples  []limit.Sample
	loads    []limit.Load
}

func (l *told) Admit(at time.Duration, load limit.Load) {
	l.admitted++
	l.loads = append(l.loads, load)
	l.Law.Admit(at, load)
}

func (l *told) Observe(s limit.Sample, load limit.Load) {
	l.samples = append(l.samples, s)
	l.loads = append(l.loads, load)
	l.Law.Observe(s, load)
}

// Large work that leaves the queue makes room for who waits behind it.
func TestWhenTheHeadOfTheQueueLeavesTheNextThatFitsIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := fixed(t, 4, 10)
		running := take(t, l, Request{Cost: 3})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = l.AcquireWith(ctx, Request{Cost: 4}) }()
		synctest.Wait()
		served := make(chan time.Time, 1)
		go func() { acquire(t, l).Done(nil); served <- time.Now() }()
		synctest.Wait()
		holds(t, l, Stats{InFlight: 3, Queued: 2}) // nobody overtakes the head of the queue
		left := time.Now()
		cancel()
		if !(<-served).Equal(left) {
			t.Error("a free slot and a caller that waits for it")
		}
		finish(t, l, running)
	})
}
