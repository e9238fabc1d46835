package loadgen

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sent holds when each request was sent, since the begin.
type sent struct {
	mu sync.Mutex
	at map[uint64]time.Duration
}

// paced is a target whose delay and outcome depend on the request's number alone.
func (s *sent) paced(t *testing.T, begin time.Time) Target {
	return TargetFunc(func(_ context.Context, n uint64) Outcome {
		s.mu.Lock()
		if _, twice := s.at[n]; twice {
			t.Errorf("request %d was sent twice", n)
		}
		s.at[n] = time.Since(begin)
		s.mu.Unlock()
		time.Sleep(time.Duration(scramble(1, n) % uint64(50*time.Millisecond)))
		return Outcome(scramble(2, n) % uint64(outcomes))
	})
}

// shared runs a load in of shares that begin together. It returns when every request was sent, and
// the merged result.
func shared(t *testing.T, of int, cfg Config) (map[uint64]time.Duration, *Result) {
	t.Helper()
	cfg.Begin = time.Now().Add(time.Minute)
	requests := &sent{at: map[uint64]time.Duration{}}
	target := requests.paced(t, cfg.Begin)
	cfg.Target = must(Mix(3, Part{"common", 3, target}, Part{"rare", 1, target}))
	results, done := make([]*Result, of), sync.WaitGroup{}
	for i := range of {
		own := cfg
		own.Share = Share{i, of}
		done.Go(func() { results[i] = mustRun(t, t.Context(), own) })
	}
	done.Wait()
	sum, err := Merge(results...)
	if err != nil {
		t.Fatal(err)
	}
	return requests.at, sum
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// text returns a result as JSON, with all its contents.
func text(t *testing.T, r *Result) string {
	t.Helper()
	b, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestSharesTogetherAreOneSchedule(t *testing.T) {
	legs := []Leg{{0, 400, time.Second}, Steady(0, time.Second), {200, 100, time.Second}}
	for name, s := range map[string]Schedule{
		"constant": Constant(333, 2*time.Second), "Poisson": Poisson(333, 2*time.Second, 7), "even": Even(legs...), "random": Random(7, legs...),
		"trace": Trace([]time.Duration{3, 1, 4, 1, 5, 9e9}), "at only": onlyAt{Constant(50, time.Second)}, "few": Constant(2, time.Second),
	} {
		t.Run(name, func(t *testing.T) {
			for _, of := range []int{1, 2, 8} {
				synctest.Test(t, func(t *testing.T) {
					got, _ := shared(t, of, Config{Open: s})
					want := slices.Collect(Times(s))
					if len(got) != len(want) {
						t.Fatalf("%d shares sent %d requests, want %d", of, len(got), len(want))
					}
					for n, at := range want {
						if got[uint64(n)] != at {
							t.Fatalf("%d shares: request %d was sent at %v, want %v", of, n, got[uint64(n)], at)
						}
					}
				})
			}
		})
	}
}

// The results of eight agents equal those of one process: every bucket of every histogram, every
// class, every step.
func TestMergedResultsAreThatOfOneProcess(t *testing.T) {
	for name, cfg := range map[string]Config{
		"open":   {Open: Poisson(2000, 3*time.Second, 5), Interval: 100 * time.Millisecond},
		"closed": {Closed: &Closed{Clients: 20, Requests: 3007}, Interval: 100 * time.Millisecond},
		"timed":  {Closed: &Closed{Clients: 20, Duration: 3 * time.Second}, Timeout: 40 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				oneAt, one := shared(t, 1, cfg)
				want := text(t, one)
				for _, of := range []int{2, 8} {
					at, merged := shared(t, of, cfg)
					if got := text(t, merged); got != want {
						t.Errorf("%d shares:\n%.600s, want\n%.600s", of, got, want)
					}
					if len(at) != len(oneAt) {
						t.Errorf("%d shares sent %d requests, want %d", of, len(at), len(oneAt))
					}
				}
			})
		})
	}
}

func TestMoreSharesThanClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if at, r := shared(t, 5, Config{Closed: &Closed{Clients: 2, Requests: 7}}); len(at) != 7 || r.Offered != 7 || r.Partial {
			t.Errorf("%d requests, result %+v", len(at), r)
		}
	})
}

func TestABoundOnRequestsInFlightIsDivided(t *testing.T) {
	for _, c := range []struct{ n, of, sum int }{{10_000, 1, 10_000}, {10_000, 3, 10_000}, {7, 8, 8}} {
		sum := 0
		for i := range c.of {
			sum += Share{i, c.of}.of(c.n)
		}
		if sum != c.sum {
			t.Errorf("%d in %d shares are %d, want %d", c.n, c.of, sum, c.sum)
		}
	}
}

func TestALateBeginIsLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRun(t, t.Context(), Config{Target: takes(time.Millisecond), Open: Constant(100, time.Second), Begin: time.Now().Add(-200 * time.Millisecond)})
		if late := time.Duration(r.Lag.Max()); r.Offered != 100 || late != 200*time.Millisecond || r.Elapsed != time.Second || !r.GeneratorBound {
			t.Errorf("%d requests, at most %v late, in %v; %s", r.Offered, late, r.Elapsed, r.Why)
		}
	})
}

// A Begin that another process has sent has no monotonic reading. All latencies of the run were once
// differences of the wall clock, and a step of that clock was in them.
func TestARunCountsFromAMonotonicReading(t *testing.T) {
	for name, begin := range map[string]time.Time{
		"now":     {},
		"own":     time.Now().Add(time.Hour),
		"decoded": time.Unix(time.Now().Unix()+3600, 0),
	} {
		if at := (Config{Begin: begin}).beginning(); at == at.Round(0) {
			t.Errorf("%s: no monotonic reading in %v", name, at)
		}
	}
}

func TestAContextThatEndsBeforeTheBeginEndsTheRun(t *testing.T) {
	for name, cfg := range map[string]Config{"open": {Open: Constant(10, time.Second)}, "closed": {Closed: &Closed{Clients: 2, Requests: 10}}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			began := time.Now()
			cfg.Target, cfg.Begin = takes(0), began.Add(time.Hour)
			if r := mustRun(t, ctx, cfg); r.Offered != 0 || !r.Partial || r.Elapsed != 0 || time.Since(began) > time.Minute {
				t.Errorf("%s: %+v after %v", name, r, time.Since(began))
			}
		})
	}
}

func TestWhatAPartSaysOfItsGeneratorIsKept(t *testing.T) {
	part := func(lag time.Duration) *Result {
		r := &Result{Offered: 1000}
		r.Lag.RecordN(int64(lag), 1000)
		r.Outcomes[OK].Count = 1000
		r.Outcomes[OK].Latency.RecordN(int64(50*time.Millisecond), 1000)
		r.judge()
		return r
	}
	parts := []*Result{part(20 * time.Millisecond)}
	for range 150 {
		parts = append(parts, part(0))
	}
	sum, err := Merge(parts...)
	if want := "Part 1 of 151: " + parts[0].Why; err != nil || !sum.GeneratorBound || sum.Why != want {
		t.Errorf("%v, %q, want %q", err, sum.Why, want)
	}
	if sum, err = Merge(parts[1:]...); err != nil || sum.GeneratorBound {
		t.Errorf("%v, %q", err, sum.Why)
	}
}

func TestResultsOfDifferentLoadsAreNotMerged(t *testing.T) {
	if _, err := Merge(); err == nil {
		t.Error("nothing was merged")
	}
	if _, err := Merge(&Result{}, &Result{Classes: []ClassResult{{Name: "a"}}}); err == nil {
		t.Error("classes that one has were merged")
	}
	if _, err := Merge(&Result{Series: make([]Point, 2)}, &Result{Series: []Point{{}, {At: 1}}}); err == nil {
		t.Error("steps of different lengths were merged")
	}
}

// For the largest int as MaxInFlight, the bound of each share was once 1.
func TestSharesOfTheLargestNumber(t *testing.T) {
	for of := range 9 {
		for index := range max(of, 1) {
			for n := range 40 {
				want := 0
				for i := range n {
					if of < 2 || i%of == index {
						want++
					}
				}
				if got := (Share{index, of}).of(n); got != want && (of < 2 || got != max(want, 1)) {
					t.Errorf("share %d of %d of %d is %d, want %d", index, of, n, got, want)
				}
			}
		}
	}
	for share, want := range map[Share]int{{}: math.MaxInt, {0, 2}: math.MaxInt/2 + 1, {1, 2}: math.MaxInt / 2, {math.MaxInt - 1, math.MaxInt}: 1} {
		if got := share.of(math.MaxInt); got != want {
			t.Errorf("%+v of the largest number is %d, want %d", share, got, want)
		}
	}
}
