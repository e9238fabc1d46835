package fanout

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// replica is a source with stragglers, which counts its attempts.
type replica struct {
	mu        sync.Mutex
	rng       *rand.Rand
	attempts  int
	cancelled int // attempts ended by their context
	latest    int // latest call
	straggler int // index of the straggler in each hundred calls; second attempts straggle at random
	down      error
	hang      bool
}

func newReplica(straggler int) *replica {
	return &replica{rng: rand.New(rand.NewPCG(1, 2)), straggler: straggler, latest: -1}
}

// find takes about 10 ms, a straggler a second.
func (r *replica) find(ctx context.Context, call int) (int, error) {
	r.mu.Lock()
	r.attempts++
	again := call == r.latest
	r.latest = call
	elapsed := 8*ms + time.Duration(r.rng.ExpFloat64()*float64(2*ms))
	if again && r.rng.IntN(100) == 0 || !again && call%100 == r.straggler || r.hang {
		elapsed = time.Second
	}
	err := r.down
	r.mu.Unlock()
	select {
	case <-time.After(elapsed):
		return 1, err
	case <-ctx.Done():
		r.mu.Lock()
		defer r.mu.Unlock()
		r.cancelled++
		return 0, ctx.Err()
	}
}

func newHedged(t *testing.T, cfg Config, r *replica) *Fanout[int, int] {
	t.Helper()
	return newReplicated(t, cfg, r, true)
}

func newReplicated(t *testing.T, cfg Config, r *replica, hedged bool) *Fanout[int, int] {
	t.Helper()
	branch := Required("replica", r.find, func(sum *int, v int) { *sum += v })
	if hedged {
		branch = branch.Hedged(nil)
	}
	f := made(t, cfg, branch)
	return f
}

// p99 makes calls and returns the 99th percentile of their times.
func p99(t *testing.T, f *Fanout[int, int], calls int) time.Duration {
	var times []time.Duration
	for call := range calls {
		began := time.Now()
		got, err := f.Do(t.Context(), call)
		if err == nil && got.Value != 1 {
			t.Fatalf("merged %d times", got.Value)
		}
		times = append(times, time.Since(began))
	}
	slices.Sort(times)
	return times[len(times)*99/100]
}

func TestHedgingCutsTheTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const calls = 20_000
		plain := newReplica(50)
		slow := p99(t, newReplicated(t, Config{}, plain, false), calls)
		r := newReplica(50)
		f := newHedged(t, Config{}, r)
		fast := p99(t, f, calls)
		synctest.Wait()
		t.Logf("p99 %v without, %v with hedging; %d extra attempts of %d; %+v", slow, fast, r.attempts-calls, calls, f.Stats())
		if slow < 8*fast {
			t.Errorf("p99 went from %v to %v", slow, fast)
		}
		if extra := r.attempts - calls; extra > calls*2/100 {
			t.Errorf("%d extra attempts for %d calls", extra, calls)
		}
		// Each hedge cancels the losing attempt, and nothing else is cancelled.
		if s := f.Stats(); r.cancelled != int(s.Hedges) || s.Failed > 0 || s.Partial > 0 {
			t.Errorf("%d attempts were cancelled, %+v", r.cancelled, s)
		}
	})
}

func TestHedgingEndsInAnOutage(t *testing.T) {
	for name, hang := range map[string]bool{"errors": false, "hangs": true} {
		synctest.Test(t, func(t *testing.T) {
			r := newReplica(50)
			f := newHedged(t, Config{}, r)
			p99(t, f, 2000)
			r.mu.Lock()
			before := r.attempts
			r.down, r.hang = errDown, hang
			r.mu.Unlock()
			p99(t, f, 1000)
			if extra := r.attempts - before - 1000; extra > 50 {
				t.Errorf("%s: %d extra attempts in 1000 calls", name, extra)
			}
		})
	}
}

func TestAHedgeThatFailsDisturbsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		attempts, straggles := 0, false
		f := made(t, Config{}, Required("replica", func(ctx context.Context, _ int) (int, error) {
			mu.Lock()
			attempts++
			first := !straggles || attempts == 101
			mu.Unlock()
			if !first {
				return 0, errDown // the hedge, at once
			}
			d := 10 * ms
			if straggles {
				d = time.Second
			}
			select {
			case <-time.After(d):
				return 1, nil
			case <-ctx.Done():
				t.Error("the original was cancelled")
				return 0, ctx.Err()
			}
		}, func(sum *int, v int) { *sum += v }).Hedged(nil))
		p99(t, f, 100)
		mu.Lock()
		straggles = true
		mu.Unlock()
		began := time.Now()
		got, err := f.Do(t.Context(), 0)
		if got.Value != 1 || err != nil || time.Since(began) != time.Second || attempts != 102 {
			t.Errorf("%v, %v after %v, %d attempts", got, err, time.Since(began), attempts)
		}
	})
}

// A panic of one attempt was once lost if the other attempt went on and answered.
func TestAPanicOfAnAttemptIsReportedThoughTheOtherAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var attempts atomic.Int64
		var reported []string
		f := made(t, Config{OnLate: func(e *BranchError) { reported = append(reported, e.Error()) }}, Required("replica", func(context.Context, int) (int, error) {
			switch time.Sleep(10 * ms); attempts.Add(1) {
			case 101: // the first attempt, while the second runs
				time.Sleep(10 * ms)
				panic("nil map")
			case 102:
				time.Sleep(time.Second)
			}
			return 1, nil
		}, func(sum *int, v int) { *sum += v }).Hedged(nil))
		if p99(t, f, 101); attempts.Load() != 102 {
			t.Fatalf("%d attempts", attempts.Load())
		}
		if len(reported) != 1 || firstLine(errors.New(reported[0])) != "fanout: branch replica: panic: nil map" || f.Stats().LatePanics != 1 {
			t.Errorf("reported: %q, %+v", reported, f.Stats())
		}
	})
}

// No second attempts are made while a limiter refuses: a limiter that a branch uses, or
// Config.Limiter.
func TestNothingIsHedgedWhileSomethingSheds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(-1)
		shed := false
		f := made(t, Config{}, Required("replica", r.find, func(sum *int, v int) { *sum += v }).Hedged(nil),
			Optional("other", func(context.Context, int) (int, error) {
				if shed {
					return 0, &spillway.Rejection{Reason: spillway.ReasonQueueFull}
				}
				return 0, nil
			}, func(*int, int) {}))
		p99(t, f, 200)
		r.hang, shed = true, true
		before := f.Stats()
		p99(t, f, 5)
		after := f.Stats()
		if after.Hedges != before.Hedges {
			t.Errorf("while shedding: from %+v to %+v", before, after)
		}
		r.hang, shed = false, false
		time.Sleep(2 * shedPause)
		p99(t, f, 400)
		r.hang = true
		before = f.Stats()
		p99(t, f, 1)
		if f.Stats().Hedges != before.Hedges+1 {
			t.Errorf("afterwards: %+v", f.Stats())
		}
	})
}

func TestGoroutinesMayBeTakenFromALimiter(t *testing.T) {
	// The caller runs branches too if fewer helpers are admitted than processors could run.
	for processors, most := range map[int32]int{1: 2, 2: 2, 3: 3, 8: 3} {
		synctest.Test(t, func(t *testing.T) {
			lim, err := limiter.New(limiter.Config{Law: limit.NewFixed(2), QueueSize: -1})
			if err != nil {
				t.Fatal(err)
			}
			var p peak
			f := same(t, Config{Mode: Parallel, Limiter: lim}, 4, func(context.Context, int) (uint64, error) {
				p.enter()
				defer p.leave()
				time.Sleep(ms)
				return 1, nil
			})
			f.procs.Store(processors)
			began := time.Now()
			if got, err := f.Do(t.Context(), 0); err != nil || got.Value != 4 || int(p.most) != most || time.Since(began) != 2*ms {
				t.Errorf("%d processors: %v, %v, %d at once, %v", processors, got, err, p.most, time.Since(began))
			}
			synctest.Wait()
			if s := lim.Stats(); s.InFlight != 0 || s.Queued != 0 {
				t.Errorf("%d slots are not given back", s.InFlight)
			}
			// With a closed limiter, the caller does the work.
			lim.Close()
			p.most = 0
			if got, err := f.Do(t.Context(), 0); err != nil || got.Value != 4 || p.most != 1 {
				t.Errorf("%v, %v, %d at once", got, err, p.most)
			}
		})
	}
}

// A second attempt is extra work. The learned times show when a second attempt would be too late;
// then none is made, and no token is taken.
func TestNoSecondAttemptIsMadeWithTooLittleTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newReplica(-1)
		f := newHedged(t, Config{}, r)
		p99(t, f, 200)
		r.hang = true
		for left, hedges := range map[time.Duration]uint64{f.branches[0].times.slow() + 5*ms: 0, 40 * ms: 1} {
			before := f.Stats()
			_, _ = within(t, f, left, 0)
			if after := f.Stats(); after.Hedges-before.Hedges != hedges {
				t.Errorf("with %v: %+v, before %+v", left, after, before)
			}
		}
	})
}
