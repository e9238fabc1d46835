package fanout

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// sleeps is a branch that takes the time that its call gives, and ends with its context.
func sleeps(ctx context.Context, takes time.Duration) (uint64, error) {
	select {
	case <-time.After(takes):
		return 1, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// within makes a call with the given time left; never: no deadline.
func within[Req, Res any](t *testing.T, f *Fanout[Req, Res], left time.Duration, req Req) (Result[Res], error) {
	ctx, cancel := t.Context(), context.CancelFunc(func() {})
	if left != never {
		ctx, cancel = context.WithTimeout(ctx, left)
	}
	defer cancel()
	return f.Do(ctx, req)
}

// everywhere runs a test in each mode, and in the caller for lack of a goroutine.
func everywhere(t *testing.T, test func(t *testing.T, cfg Config)) {
	for _, name := range []string{"auto", "sequential", "parallel", "without a token"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := Config{Mode: map[string]Mode{"sequential": Sequential, "parallel": Parallel, "without a token": Parallel}[name]}
				if name == "without a token" {
					cfg.Bulkhead, _ = NewBulkhead(1)
					cfg.Bulkhead.take()
				}
				test(t, cfg)
			})
		})
	}
}

// The times of all calls together once ruled out quick calls after slow ones: in a process that did
// nothing else, 15 of 16 failed.
func TestQuickCallsAfterSlowOnesAreAnswered(t *testing.T) {
	for name, of := range map[string]func(string, func(context.Context, time.Duration) (uint64, error), func(*uint64, uint64)) Branch[time.Duration, uint64]{
		"required": Required[time.Duration, uint64, uint64], "optional": Optional[time.Duration, uint64, uint64],
	} {
		for history, left := range map[string]time.Duration{"in time": never, "late": 30 * ms} {
			t.Run(name+" after calls that were "+history, func(t *testing.T) {
				everywhere(t, func(t *testing.T, cfg Config) {
					f := made(t, cfg, of("a", sleeps, add))
					for range 500 {
						_, _ = within(t, f, left, 50*ms)
					}
					for i := range 500 {
						if got, err := within(t, f, 10*ms, ms); err != nil || got.Missing != nil {
							t.Fatalf("quick call %d: %v, %v", i, got, err)
						}
					}
				})
			})
		}
	}
}

func TestARequiredBranchIsStartedWhileThereIsTime(t *testing.T) {
	everywhere(t, func(t *testing.T, cfg Config) {
		var started atomic.Int64
		f := same(t, cfg, 1, func(ctx context.Context, _ int) (uint64, error) {
			started.Add(1)
			return sleeps(ctx, 50*ms)
		})
		for _, left := range []time.Duration{never, 20 * ms} {
			for range 200 {
				if _, err := within(t, f, left, 0); left != never && !errors.Is(err, context.DeadlineExceeded) {
					t.Fatal(err)
				}
			}
		}
		if n := started.Load(); n != 400 {
			t.Errorf("started %d times in 400 calls", n)
		}
	})
}

// slowCache is a lookup whose cache may be too slow.
type slowCache struct {
	*Fanout[int, uint64]
	takes   func(call int) time.Duration
	started atomic.Int64
}

// newSlowCache makes a lookup whose cache has its own time limit; zero: none.
func newSlowCache(t *testing.T, cfg Config, own time.Duration) *slowCache {
	t.Helper()
	a := &slowCache{takes: func(int) time.Duration { return 50 * ms }}
	var err error
	a.Fanout, err = New(cfg,
		Required("database", func(ctx context.Context, _ int) (uint64, error) { return sleeps(ctx, ms) }, add),
		Optional("cache", func(ctx context.Context, call int) (uint64, error) {
			a.started.Add(1)
			return sleeps(ctx, a.takes(call))
		}, add).Within(own))
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestABranchThatIsTooSlowIsTriedOneCallInSixteen(t *testing.T) {
	for _, own := range []time.Duration{0, 20 * ms} {
		t.Run(fmt.Sprintf("within %v", own), func(t *testing.T) {
			everywhere(t, func(t *testing.T, cfg Config) {
				a, left := newSlowCache(t, cfg, own), never
				if own == 0 {
					left = 20 * ms
				}
				for range 100 {
					_, _ = within(t, a.Fanout, left, 0)
				}
				a.started.Store(0)
				for i := range 1600 {
					before, began := a.started.Load(), time.Now()
					got, err := within(t, a.Fanout, left, 0)
					if err != nil || len(got.Missing) != 1 {
						t.Fatalf("call %d: %v, %v", i, got, err)
					}
					rej, refused := errors.AsType[*spillway.Rejection](got.Missing[0].Err)
					started := a.started.Load()
					if refused != (started == before) || refused && (rej.Reason != spillway.ReasonDeadlineTooClose || time.Since(began) != ms) {
						t.Fatalf("call %d: %v after %v, started %d times", i, got.Missing, time.Since(began), started-before)
					}
					if most := int64(i+1)/16 + 2; started > most || started < most-3 {
						t.Fatalf("started %d times in %d calls", started, i+1)
					}
				}
			})
		})
	}
}

// A call that is not started is no evidence, so a probe or the clock must end the evidence.
func TestABranchThatWasSlowForAMinuteIsAskedAgain(t *testing.T) {
	for _, idle := range []time.Duration{0, evidenceLasts} {
		t.Run(fmt.Sprint("after ", idle), func(t *testing.T) {
			everywhere(t, func(t *testing.T, cfg Config) {
				a := newSlowCache(t, cfg, 20*ms)
				for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(5 * ms) {
					_, _ = a.Do(t.Context(), 0)
				}
				a.takes = func(int) time.Duration { return ms }
				time.Sleep(idle)
				partial := 0
				for range 1000 {
					if got, _ := a.Do(t.Context(), 0); got.Missing != nil {
						partial++
					}
				}
				if most := 30; partial > most || idle > 0 && partial > 0 {
					t.Errorf("%d answers were partial after it had recovered", partial)
				}
			})
		})
	}
}

// If calls come in a pattern, a probe at every sixteenth call could hit a slow call each time.
func TestProbesDoNotKeepStepWithCalls(t *testing.T) {
	for _, period := range []int{3, 8, 16, 32} {
		for phase := 0; phase < period; phase += 1 + period/4 {
			synctest.Test(t, func(t *testing.T) {
				a := newSlowCache(t, Config{}, 20*ms)
				for range 100 {
					_, _ = a.Do(t.Context(), 0)
				}
				a.takes = func(call int) time.Duration {
					if call%period == phase {
						return ms
					}
					return 50 * ms
				}
				partial := 0
				for i := range 2000 {
					if got, _ := a.Do(t.Context(), i); i%period == phase && got.Missing != nil {
						partial++
					}
				}
				if quick := 2000 / period; partial > quick/2 {
					t.Errorf("every %dth call is quick, from the %dth: %d of %d were partial", period, phase, partial, quick)
				}
			})
		}
	}
}

// Quick calls that are one in ten of the calls with about the same remaining time lose almost no
// answers. The same holds for bursts, in which all slow calls end after the quick ones.
func TestFewQuickCallsAmongSlowOnesKeepTheirAnswers(t *testing.T) {
	for name, burst := range map[string]int{"one by one": 1, "in bursts": 200} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := made(t, Config{Mode: Parallel, Bulkhead: &Bulkhead{size: 1 << 20}}, Optional("cache", sleeps, add).Within(20*ms))
				rng := rand.New(rand.NewPCG(1, uint64(burst)))
				quick, partial := 0, make(chan bool, 8_000)
				for i := range 8_000 {
					takes := 50 * ms
					if rng.IntN(10) == 0 {
						takes = ms
						quick++
					}
					go func() {
						got, _ := f.Do(t.Context(), takes)
						partial <- takes == ms && got.Missing != nil
					}()
					if i%burst == burst-1 {
						time.Sleep(time.Duration(burst) * ms)
					}
				}
				lost := 0
				for range cap(partial) {
					if <-partial {
						lost++
					}
				}
				if lost > quick/20 {
					t.Errorf("%d of %d quick calls were partial", lost, quick)
				}
			})
		})
	}
}

func TestLatenessIsOfOneKindAndForgottenByTheClock(t *testing.T) {
	const left = 20 * ms
	type event struct {
		after time.Duration
		made  bool
		left  time.Duration
	}
	late := func(n int, after, left time.Duration) (all []event) {
		for range n {
			all = append(all, event{after, false, left})
		}
		return all
	}
	for _, c := range []struct {
		name     string
		events   []event
		then     time.Duration
		left     time.Duration
		hopeless bool
	}{
		{"nothing is known", nil, 0, left, false},
		{"late often enough", late(minLate, left, left), 0, left, true},
		{"not often enough", late(minLate-1, left, left), 0, left, false},
		{"almost as much time is the same kind", late(minLate, left, left), 0, left * 9 / 10, true},
		{"more time", late(minLate, left, left), 0, 4 * left, false},
		{"less time", late(minLate, left, left), 0, left / 4, false},
		{"no deadline", late(minLate, left, left), 0, forever, false},
		{"no time at all", late(minLate, left, left), 0, 0, false},
		{"an answer", append(late(minLate, left, left), event{left, true, left}), 0, left, false},
		{"an answer to another kind", append(late(minLate, left, left), event{left, true, 4 * left}), 0, left, true},
		{"long ago", late(minLate, left, left), evidenceLasts, left, false},
		{"not so long ago", late(minLate, left, left), evidenceLasts - 1, left, true},
		{"long ago, for calls that are longer", late(minLate, time.Second, time.Second), 20*time.Second - 1, time.Second, true},
		{"longer ago", late(minLate, time.Second, time.Second), 20 * time.Second, time.Second, false},
		{"seldom", late(2*minLate, evidenceLasts, left), 0, left, false},
		{"those that began before an answer", append([]event{{time.Second, true, left}}, late(minLate, ms/10, left)...), 0, left, false},
	} {
		var l lateness
		now := time.Hour
		l.late(now, 0) // a call whose remaining time was not determined
		for _, e := range c.events {
			if now += e.after; e.made {
				l.inTime(now, e.left)
			} else {
				l.late(now, e.left)
			}
		}
		now += c.then
		if got := l.hopeless(now, c.left); got != c.hopeless {
			t.Errorf("%s: hopeless is %v", c.name, got)
		}
	}
}
