package workerpool

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

// TestTheLedgerClosesAfterEverything sends 10⁵ submissions by Submit, TrySubmit
// and Do through one pool: cancelled ones, panics, Goexit, errors, and a Drain
// in the middle.
func TestTheLedgerClosesAfterEverything(t *testing.T) {
	const callers, each = 100, 1000
	var done, running, peak atomic.Int64
	p := pool(t, Config{MaxWorkers: 8, QueueSize: 32, OnDone: func(Result) { done.Add(1) }})
	var refused, left, ran atomic.Uint64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 2))
			for i := range each {
				ctx, cancel := context.WithCancel(context.Background())
				switch r.IntN(4) {
				case 0:
					cancel()
				case 1:
					go cancel()
				}
				kind := r.IntN(5)
				job := func(context.Context) error {
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
				}
				var err error
				switch r.IntN(3) {
				case 0:
					err = p.Submit(ctx, job)
				case 1:
					err = p.TrySubmit(ctx, job)
				case 2:
					outcomeOf(func() {
						_, e := Do(ctx, p, func(ctx context.Context) (int, error) { return 0, job(ctx) })
						if errors.Is(e, spillway.ErrRejected) {
							refused.Add(1)
						}
					})
				}
				switch {
				case errors.Is(err, spillway.ErrRejected):
					refused.Add(1)
				case err != nil:
					left.Add(1)
				}
				cancel()
				if c == 0 && i == each/2 {
					ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
					_ = p.Drain(ctx)
					cancel()
				}
			}
		})
	}
	wg.Wait()
	if err := p.Drain(context.Background()); err != nil {
		t.Fatal(err)
	}
	atRest(t, p)
	s := p.Stats()
	if s.Submitted != callers*each || s.Started != ran.Load() || s.Rejected+s.Dropped < refused.Load() {
		t.Fatalf("%d ran, %d refused; the ledger says %+v", ran.Load(), refused.Load(), s)
	}
	if peak.Load() > 8 {
		t.Fatalf("%d jobs ran at once on 8 workers", peak.Load())
	}
	// OnDone hears of accepted jobs only; a cancelled submission that was never
	// accepted is in Cancelled too.
	if got := uint64(done.Load()); got < s.Completed+s.Dropped || got > s.Completed+s.Dropped+s.Cancelled {
		t.Fatalf("OnDone was told %d times: %+v", got, s)
	}
}

func TestSubmitRacingDrainNeverLosesAJob(t *testing.T) {
	for round := range 200 {
		p, err := New(Config{MaxWorkers: 2, QueueSize: 4})
		if err != nil {
			t.Fatal(err)
		}
		var ran, accepted atomic.Int64
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 5 {
					if p.Submit(context.Background(), func(context.Context) error { ran.Add(1); return nil }) == nil {
						accepted.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			if err := p.Drain(context.Background()); err != nil {
				t.Errorf("round %d: %v", round, err)
			}
		})
		wg.Wait()
		if err := p.Drain(context.Background()); err != nil {
			t.Fatal(err)
		}
		if ran.Load() != accepted.Load() {
			t.Fatalf("round %d: %d accepted, %d ran", round, accepted.Load(), ran.Load())
		}
		atRest(t, p)
	}
}
