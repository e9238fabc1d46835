package loadgen

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spillway-go/spillway"
)

// mustRun runs cfg and checks the invariants of every result.
func mustRun(t *testing.T, ctx context.Context, cfg Config) *Result {
	t.Helper()
	r := must(Run(ctx, cfg))(t)
	var sum, stepsSent uint64
	var steps [outcomes]uint64
	for _, p := range r.Series {
		stepsSent += p.Sent
		for o, n := range p.Outcomes {
			steps[o] += n
		}
	}
	for o, part := range r.Outcomes {
		sum += part.Count
		if part.Count != part.Latency.Count() || part.Count != steps[o] {
			t.Errorf("%v: counted %d, %d latencies, %d in the series", Outcome(o), part.Count, part.Latency.Count(), steps[o])
		}
	}
	if r.Offered != sum+r.Aborted || r.Offered != stepsSent || r.Offered != r.Lag.Count() {
		t.Errorf("offered %d: outcomes %d + aborted %d, sent by the series %d, lags %d", r.Offered, sum, r.Aborted, stepsSent, r.Lag.Count())
	}
	return r
}

// instant is a target that answers at once.
var instant = TargetFunc(func(context.Context, uint64) Outcome { return OK })

// takes is a target that answers after d. Its callers' time is virtual.
func takes(d time.Duration) TargetFunc {
	return func(context.Context, uint64) Outcome {
		time.Sleep(d)
		return OK
	}
}

func within(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

func TestEveryErrorHasItsOutcome(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Outcome
	}{
		{nil, OK},
		{&spillway.Rejection{Reason: spillway.ReasonQueueFull}, Rejected},
		{fmt.Errorf("store: %w", spillway.ErrRejected), Rejected},
		{fmt.Errorf("store: %w", context.DeadlineExceeded), Timeout},
		{context.Canceled, Error},
		{errors.New("broken"), Error},
	} {
		if got := FromError(c.err); got != c.want {
			t.Errorf("FromError(%v) = %v, want %v", c.err, got, c.want)
		}
	}
}

func TestBadConfigurationIsRefusedBeforeAnythingIsSent(t *testing.T) {
	target := TargetFunc(func(context.Context, uint64) Outcome { panic("sent") })
	one := &Closed{Clients: 1, Requests: 1}
	for want, cfg := range map[string]Config{
		"no Target":         {Closed: one},
		"either Closed":     {Target: target},
		"or Open":           {Target: target, Closed: one, Open: Constant(1, time.Second)},
		"0 clients":         {Target: target, Closed: &Closed{Requests: 1}},
		"Requests, Duratio": {Target: target, Closed: &Closed{Clients: 1}},
		"a duration of -1s": {Target: target, Closed: &Closed{Clients: 1, Duration: -time.Second}},
		"a rate of 0":       {Target: target, Open: Constant(0, time.Second)},
		"a rate of NaN":     {Target: target, Open: Poisson(math.NaN(), time.Second, 1)},
		"a rate of +Inf":    {Target: target, Open: Constant(math.Inf(1), time.Second)},
		"a schedule of 0s":  {Target: target, Open: Poisson(1, 0, 1)},
		"a timeout of -1s":  {Target: target, Closed: one, Timeout: -time.Second},
		"at most -1":        {Target: target, Open: Constant(1, time.Second), MaxInFlight: -1},
		"an interval of 1":  {Target: target, Closed: one, Interval: 1},
	} {
		if _, err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}

func TestOutcomesAreNeverMixed(t *testing.T) {
	delays := [outcomes]time.Duration{10 * time.Millisecond, time.Millisecond, 20 * time.Millisecond, 30 * time.Millisecond}
	for name, cfg := range map[string]Config{
		"closed": {Closed: &Closed{Clients: 7, Requests: 1000}},
		"open":   {Open: Constant(1000, time.Second)},
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg.Target = TargetFunc(func(_ context.Context, n uint64) Outcome {
				o := Outcome(n % uint64(outcomes))
				time.Sleep(delays[o])
				return o
			})
			r := mustRun(t, t.Context(), cfg)
			for o, part := range r.Outcomes {
				low, high := time.Duration(part.Latency.Min()), time.Duration(part.Latency.Max())
				if part.Count != 250 || low != delays[o] || high != delays[o] {
					t.Errorf("%s %v: %d from %v to %v, want 250 of %v", name, Outcome(o), part.Count, low, high, delays[o])
				}
			}
			if r.Partial || r.GeneratorBound || r.Share(Rejected) != 0.25 {
				t.Errorf("%s: partial %v, generator-bound %v, share %v", name, r.Partial, r.GeneratorBound, r.Share(Rejected))
			}
		})
	}
}

func TestAnAnswerAfterTheTimeoutIsATimeoutWhateverTheTargetSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRun(t, t.Context(), Config{
			Timeout: time.Second,
			Closed:  &Closed{Clients: 1, Requests: 4},
			Target: TargetFunc(func(ctx context.Context, n uint64) Outcome {
				switch n {
				case 0: // in time
					time.Sleep(900 * time.Millisecond)
				case 1: // ignores its context
					time.Sleep(1500 * time.Millisecond)
				case 2: // respects its context
					<-ctx.Done()
					return FromError(ctx.Err())
				case 3: // ignores its context and returns an error
					time.Sleep(2 * time.Second)
					return Error
				}
				return OK
			}),
		})
		if r.Outcomes[OK].Count != 1 || r.Outcomes[Timeout].Count != 3 {
			t.Errorf("ok %d, timeout %d, want 1 and 3", r.Outcomes[OK].Count, r.Outcomes[Timeout].Count)
		}
		if got := time.Duration(r.Outcomes[Timeout].Latency.Max()); got != 2*time.Second {
			t.Errorf("the late answer took %v, want 2s", got)
		}
	})
}

func TestAnEndedContextLeavesAPartialResult(t *testing.T) {
	for name, cfg := range map[string]Config{
		"closed": {Closed: &Closed{Clients: 10, Duration: time.Minute}},
		"open":   {Open: Constant(100, time.Minute)},
		"bound":  {Open: Constant(1000, time.Minute), MaxInFlight: 10},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 5050*time.Millisecond)
				defer cancel()
				var last atomic.Int64
				begin := time.Now()
				cfg.Target = TargetFunc(func(ctx context.Context, n uint64) Outcome {
					last.Store(int64(time.Since(begin)))
					if n == 30 { // hangs until it is cut off
						<-ctx.Done()
						return FromError(ctx.Err())
					}
					time.Sleep(100 * time.Millisecond)
					return OK
				})
				r := mustRun(t, ctx, cfg)
				if !r.Partial || r.Aborted != 1 || r.Outcomes[Error].Count != 0 {
					t.Errorf("partial %v, aborted %d, errors %d, want true, 1, 0", r.Partial, r.Aborted, r.Outcomes[Error].Count)
				}
				if r.Elapsed != 6050*time.Millisecond {
					t.Errorf("ended after %v, want the context's 5.05s and a second of grace", r.Elapsed)
				}
				if d := time.Duration(last.Load()); d > 5050*time.Millisecond {
					t.Errorf("a request was sent at %v", d)
				}
				if n := r.Outcomes[OK].Count; n < 440 || n > 510 {
					t.Errorf("%d answers in 5 s at about 100 a second", n)
				}
			})
		})
	}
}

func TestAContextEndedBeforehandSendsNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, cfg := range []Config{
		{Closed: &Closed{Clients: 3, Requests: 10}},
		{Open: Constant(10, time.Hour)},
	} {
		cfg.Target = TargetFunc(func(context.Context, uint64) Outcome { panic("sent") })
		if r := mustRun(t, ctx, cfg); !r.Partial || r.Offered != 0 {
			t.Errorf("partial %v, offered %d", r.Partial, r.Offered)
		}
	}
}

func TestAPanicOfTheTargetReachesTheCallerOfRunWithItsValue(t *testing.T) {
	boom := errors.New("boom")
	for name, cfg := range map[string]Config{
		"closed": {Closed: &Closed{Clients: 4, Duration: time.Hour}},
		"open":   {Open: Constant(100, time.Hour)},
	} {
		synctest.Test(t, func(t *testing.T) {
			var inFlight atomic.Int64
			defer func() {
				if v := recover(); v != boom {
					t.Errorf("%s: recovered %v, want the original value", name, v)
				}
				if n := inFlight.Load(); n != 0 {
					t.Errorf("%s: %d requests still in flight", name, n)
				}
			}()
			cfg.Target = TargetFunc(func(ctx context.Context, n uint64) Outcome {
				if n == 50 {
					panic(boom)
				}
				inFlight.Add(1)
				defer inFlight.Add(-1)
				select {
				case <-time.After(10 * time.Second):
					return OK
				case <-ctx.Done():
					return Error
				}
			})
			_, _ = Run(t.Context(), cfg)
			t.Errorf("%s: Run returned", name)
		})
	}
}

func TestGoexitOfTheTargetEndsTheCallerOfRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		returned, ended := false, make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = Run(context.Background(), Config{
				Closed: &Closed{Clients: 2, Requests: 10},
				Target: TargetFunc(func(context.Context, uint64) Outcome { runtime.Goexit(); return OK }),
			})
			returned = true
		}()
		<-ended
		if returned {
			t.Error("Run returned")
		}
	})
}

func TestProgressRisesAndEndsWithTheResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []Snapshot
		r := mustRun(t, t.Context(), Config{
			Target:   takes(50 * time.Millisecond),
			Open:     Constant(100, 1950*time.Millisecond),
			Interval: 500 * time.Millisecond,
			Progress: func(s Snapshot) { seen = append(seen, s) }, // the race detector watches
		})
		if len(seen) != 4 {
			t.Fatalf("%d calls in 1.99s, want one each 500ms and one at the end", len(seen))
		}
		for i, s := range seen {
			if s.Sent != s.InFlight+s.Outcomes[OK] {
				t.Errorf("sent %d, in flight %d, answered %d", s.Sent, s.InFlight, s.Outcomes[OK])
			}
			if i > 0 && (s.Sent < seen[i-1].Sent || s.Elapsed < seen[i-1].Elapsed) {
				t.Errorf("progress went back: %+v after %+v", s, seen[i-1])
			}
		}
		if last := seen[len(seen)-1]; last.Sent != r.Offered || last.InFlight != 0 || last.Outcomes[OK] != r.Outcomes[OK].Count {
			t.Errorf("the last progress %+v is not the result", last)
		}
		if n := len(r.Series); n != 4 || r.Series[1].At != 500*time.Millisecond || r.Series[1].Sent != 50 {
			t.Errorf("the series has %d steps: %+v", n, r.Series)
		}
	})
}

func TestAPanicOfProgressStopsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // fails if a goroutine is left behind
		defer func() {
			if recover() != "enough" {
				t.Error("the panic was lost")
			}
		}()
		_, _ = Run(t.Context(), Config{
			Target:   takes(time.Millisecond),
			Closed:   &Closed{Clients: 3, Duration: time.Hour},
			Progress: func(Snapshot) { panic("enough") },
		})
	})
}

// must is a value that has to be there.
func must[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
