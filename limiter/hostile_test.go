package limiter

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// Requests with all options, in every mode, while modes and bounds change. In each snapshot the
// counts of every priority balance and add up to the totals, and no count falls. In the end no
// work is left.
func TestTheLedgerOfEachPriorityClosesInEveryMode(t *testing.T) {
	var would, ended, admitted, rejected, polls atomic.Uint64
	l := configured(t, Config{
		QueueSize: 6, MaxRefused: 0.9, LeakAfter: time.Hour, SlowStart: 20 * time.Millisecond,
		Signals: []Signal{Gauge("g", func() float64 { return float64(polls.Add(1) % 2) }, 1)},
		Observer: Observers(
			&Observer{WouldReject: func(spillway.Priority, *spillway.Rejection) { would.Add(1) }},
			nil,
			&Observer{Ended: func(End) { ended.Add(1) }},
			&Observer{
				Admitted: func(spillway.Priority, time.Duration) { admitted.Add(1) },
				Rejected: func(spillway.Priority, *spillway.Rejection) { rejected.Add(1) },
			},
		)})
	closes := func(s, before Stats) {
		var sum PriorityStats
		for p, b := range s.ByPriority {
			if b.Offered != b.Admitted+b.Rejected+b.Cancelled+uint64(b.Queued) || b.InFlight < 0 || b.Admitted < b.Completed {
				t.Errorf("the ledger of %v does not close: %+v", p, b)
			}
			sum.Offered += b.Offered
			sum.Admitted += b.Admitted
			sum.Completed += b.Completed
			sum.Rejected += b.Rejected
			sum.Cancelled += b.Cancelled
			sum.WouldReject += b.WouldReject
			sum.Queued += b.Queued
			sum.InFlight += b.InFlight
			if a := before.ByPriority[p]; b.Offered < a.Offered || b.Admitted < a.Admitted || b.Completed < a.Completed ||
				b.Rejected < a.Rejected || b.Cancelled < a.Cancelled || b.WouldReject < a.WouldReject {
				t.Errorf("a count of %v falls: %+v, then %+v", p, a, b)
			}
		}
		if all := (PriorityStats{s.Offered, s.Admitted, s.Completed, s.Rejected, s.Cancelled, s.WouldReject, s.Queued, s.InFlight}); all != sum {
			t.Errorf("the priorities add up to %+v, the whole is %+v", sum, all)
		}
		if s.LongInFlight < 0 || s.Admitted-s.Completed < uint64(s.LongInFlight) && s.Queued == 0 {
			t.Errorf("%d long in flight: %+v", s.LongInFlight, s)
		}
	}
	_ = l.SetBounds(0, 1)
	p := take(t, l, Request{DryRun: true})
	_, _ = l.TryAcquire(t.Context()) // refused
	q, err := l.AcquireWith(t.Context(), Request{noWait: true, DryRun: true})
	if err != nil || would.Load() != 1 {
		t.Fatalf("%v, told of %d refusals of a dry run", err, would.Load())
	}
	p.Done(nil)
	q.Done(nil)
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 11))
			var before Stats
			for i := range 300 {
				switch {
				case c == 0 && i%5 == 0:
					l.SetMode(Mode(i / 5 % 3))
				case c == 1 && i%7 == 0:
					_ = l.SetBounds(0, i%9+1)
				case c == 2:
					s := l.Stats()
					closes(s, before)
					before = s
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(3000))*time.Microsecond)
				req := Request{
					Priority: spillway.Priority(r.IntN(6) - 2), Cost: r.IntN(4) - 1,
					Long: r.IntN(4) == 0, DryRun: r.IntN(3) == 0, OverShare: r.IntN(3) == 0, noWait: r.IntN(4) == 0,
				}
				p, err := l.acquire(ctx, &req)
				if err == nil {
					var both sync.WaitGroup
					if r.IntN(2) == 0 {
						both.Go(p.Long)
						both.Go(p.Long)
					}
					runtime.Gosched()
					both.Go(func() { p.Done(ctx.Err()) })
					p.Release()
					both.Wait()
					p.Long()
				}
				cancel()
			}
		})
	}
	callers.Wait()
	l.SetMode(Enforce)
	if err := l.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	atRest(t, l)
	s := l.Stats()
	closes(s, Stats{})
	if ended.Load() != s.Completed || admitted.Load() != s.Admitted || rejected.Load() != s.Rejected {
		t.Errorf("%d starts, %d ends and %d refusals were told: %+v", admitted.Load(), ended.Load(), rejected.Load(), s)
	}
	if n := would.Load(); n > s.WouldReject {
		t.Errorf("%d refusals of a dry run were told: %+v", n, s)
	}
}

// Regression: a limiter with mode Off admitted after Close and during Drain.
func TestNothingIsAdmittedOnceTheIntakeIsClosed(t *testing.T) {
	for _, reason := range []spillway.Reason{spillway.ReasonClosed, spillway.ReasonDraining} {
		for _, mode := range []Mode{Enforce, DryRun, Off} {
			l := configured(t, Config{Mode: mode})
			k := keyedBy(t, KeyedConfig{New: func(string) Config { return Config{Mode: mode} }})
			if _, err := k.Acquire(t.Context(), "used"); err != nil {
				t.Fatal(err)
			}
			shut, shutAll := l.Close, k.Close
			if reason == spillway.ReasonDraining {
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				shut, shutAll = func() { _ = l.Drain(ended) }, func() { _ = k.Drain(ended) }
			}
			if mode == Off {
				if p, err := l.Acquire(t.Context()); err != nil || p != (Permit{}) {
					t.Errorf("%v, %v before", p, err)
				}
			}
			shut()
			shutAll()
			for name, err := range map[string]error{
				"Acquire": second(l.Acquire(t.Context())), "TryAcquire": second(l.TryAcquire(t.Context())),
				"a dry run's": second(l.AcquireWith(t.Context(), Request{DryRun: true})), "long": second(l.AcquireWith(t.Context(), Request{noWait: true, Long: true})),
				"Do":    l.Do(t.Context(), func(context.Context) error { t.Error("work ran"); return nil }),
				"keyed": second(k.Acquire(t.Context(), "used")), "keyed anew": second(k.AcquireWith(t.Context(), "new", Request{noWait: true})),
			} {
				if rej, _ := errors.AsType[*spillway.Rejection](err); rej == nil || rej.Reason != reason {
					t.Errorf("%s, %v, %v: %v", name, mode, reason, err)
				}
			}
			if s := l.Stats(); s.Rejected != 5 || s.RejectedBy[reason] != 5 {
				t.Errorf("%v, %v: %+v", mode, reason, s)
			}
			l.SetMode(Off) // does not reopen the intake
			if _, err := l.Acquire(t.Context()); err == nil {
				t.Errorf("%v, %v: admitted after a change of the mode", mode, reason)
			}
		}
	}
}

func second(_ Permit, err error) error { return err }
