package limiter

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
)

// Everything that a request can say, in every mode, while modes and bounds change: at
// each look every priority's ledger closes, they add up to the whole, no count falls,
// and in the end nothing is left.
func TestTheLedgerOfEachPriorityClosesInEveryMode(t *testing.T) {
	var would, ended atomic.Uint64
	l := configured(t, Config{QueueSize: 6, Observer: Observers(
		&Observer{WouldReject: func(spillway.Priority, *spillway.Rejection) { would.Add(1) }},
		nil,
		&Observer{Ended: func(End) { ended.Add(1) }},
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
	p, err := l.AcquireWith(t.Context(), Request{DryRun: true})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = l.TryAcquireWith(t.Context(), Request{}) // refused
	q, err := l.TryAcquireWith(t.Context(), Request{DryRun: true})
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
					Long: r.IntN(4) == 0, DryRun: r.IntN(3) == 0, OverShare: r.IntN(3) == 0,
				}
				p, err := l.acquire(ctx, req, r.IntN(4) > 0)
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
	if ended.Load() != s.Completed || s.Completed != s.Admitted || s.InFlight != 0 {
		t.Errorf("%d ends were told: %+v", ended.Load(), s)
	}
	if n := would.Load(); n > s.WouldReject {
		t.Errorf("%d refusals of a dry run were told: %+v", n, s)
	}
}
