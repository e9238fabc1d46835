package loadgen

import (
	"context"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	stallEvery = 10 * time.Second
	stallFor   = time.Second // the server stalls at the end of each period
)

// stallEnd returns when work that is ready at now can start.
func stallEnd(now time.Duration) time.Duration {
	if phase := now % stallEvery; phase >= stallEvery-stallFor {
		return now + stallEvery - phase
	}
	return now
}

// stalling is a server that takes service for each request and stalls for one second in every ten.
// A serial server has a queue and serves one request at a time.
func stalling(service time.Duration, serial bool) TargetFunc {
	begin := time.Now()
	var mu sync.Mutex
	var busyUntil time.Duration
	return func(context.Context, uint64) Outcome {
		start := time.Since(begin)
		if serial {
			mu.Lock()
			start = stallEnd(max(start, busyUntil))
			busyUntil = start + service
			mu.Unlock()
		}
		time.Sleep(stallEnd(start) + service - time.Since(begin))
		return OK
	}
}

// truth returns the latencies of callers that arrive by the schedule, without a generator.
func truth(s Schedule, service time.Duration, serial bool) []time.Duration {
	var felt []time.Duration
	var end time.Duration
	for at := range Times(s) {
		start := at
		if serial {
			start = max(at, end)
		}
		end = stallEnd(start) + service
		felt = append(felt, end-at)
	}
	slices.Sort(felt)
	return felt
}

func nearestRank(sorted []time.Duration, q float64) float64 {
	return float64(sorted[int(math.Ceil(q*float64(len(sorted))))-1])
}

func TestAnOpenLoopTellsTheTruthAboutStalls(t *testing.T) {
	const length = 20 * time.Second
	for _, c := range []struct {
		name     string
		schedule Schedule
		service  time.Duration
		serial   bool
		inFlight int
	}{
		{"constant", Constant(1000, length), time.Millisecond, false, 0},
		{"poisson", Poisson(1000, length, 1), time.Millisecond, false, 0},
		{"constant, one server", Constant(1000, length), 800 * time.Microsecond, true, 0},
		{"poisson, one server", Poisson(1000, length, 2), 800 * time.Microsecond, true, 0},
		// The queue moves from the server into the generator; the latency is the same.
		{"poisson, one server, bound", Poisson(1000, length, 2), 800 * time.Microsecond, true, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := mustRun(t, t.Context(), Config{Target: stalling(c.service, c.serial), Open: c.schedule, MaxInFlight: c.inFlight})
				felt := truth(c.schedule, c.service, c.serial)
				if r.Offered != uint64(len(felt)) || r.GeneratorBound != (c.inFlight > 0) {
					t.Errorf("offered %d of %d, generator-bound: %v %s", r.Offered, len(felt), r.GeneratorBound, r.Why)
				}
				h := &r.Outcomes[OK].Latency
				for _, q := range []float64{0.5, 0.9, 0.95, 0.99, 0.999, 1} {
					if got, want := float64(h.Quantile(q)), nearestRank(felt, q); !within(got, want, 0.01) {
						t.Errorf("quantile %v: %v, the truth is %v", q, time.Duration(got), time.Duration(want))
					}
				}
				if c.name == "constant" && !within(float64(h.Quantile(0.99)), 900e6, 0.01) { // known in advance
					t.Errorf("p99 %v, want 900ms: a tenth of the callers wait up to a second", time.Duration(h.Quantile(0.99)))
				}
			})
		})
	}
}

func TestAnOpenLoopNeverWaitsForItsTarget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := mustRun(t, t.Context(), Config{Target: takes(time.Hour), Open: Constant(1000, time.Second)})
		if r.Offered != 1000 || r.Lag.Max() != 0 || r.Series[0].Sent != 1000 {
			t.Errorf("offered %d, lag up to %v, sent in the first second %d", r.Offered, time.Duration(r.Lag.Max()), r.Series[0].Sent)
		}
	})
}

func TestAtMaxInFlightRequestsWaitAndTheResultSaysSo(t *testing.T) {
	const bound, service = 10, time.Second
	synctest.Test(t, func(t *testing.T) {
		var inFlight, peak atomic.Int64
		schedule := Constant(100, time.Second)
		r := mustRun(t, t.Context(), Config{
			Open:        schedule,
			MaxInFlight: bound,
			Target: TargetFunc(func(context.Context, uint64) Outcome {
				peak.Store(max(peak.Load(), inFlight.Add(1)))
				time.Sleep(service)
				inFlight.Add(-1)
				return OK
			}),
		})
		if n := peak.Load(); n != bound {
			t.Errorf("%d in flight at one time, want %d", n, bound)
		}
		if !r.GeneratorBound || !strings.HasPrefix(r.Why, "90 of 100 requests") || !strings.Contains(r.Why, "MaxInFlight") {
			t.Errorf("generator-bound %v: %s", r.GeneratorBound, r.Why)
		}
		var ends, felt []time.Duration
		for at := range Times(schedule) {
			start := at
			if n := len(ends); n >= bound {
				start = max(at, ends[n-bound])
			}
			ends = append(ends, start+service)
			felt = append(felt, start+service-at)
		}
		slices.Sort(felt)
		for _, q := range []float64{0.1, 0.5, 0.99} {
			if got, want := float64(r.Outcomes[OK].Latency.Quantile(q)), nearestRank(felt, q); !within(got, want, 0.01) {
				t.Errorf("quantile %v from the intended start: %v, want %v", q, time.Duration(got), time.Duration(want))
			}
		}
		if r.Lag.Max() != int64(felt[len(felt)-1]-service) {
			t.Errorf("lag up to %v, want %v", time.Duration(r.Lag.Max()), felt[len(felt)-1]-service)
		}
	})
}

func TestLagThatDominatesIsSaid(t *testing.T) {
	for _, c := range []struct {
		late, service time.Duration
		bound         bool
	}{
		{0, 10 * time.Millisecond, false},
		{time.Millisecond, 20 * time.Millisecond, false},
		{5 * time.Millisecond, 10 * time.Millisecond, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := mustRun(t, t.Context(), Config{Target: takes(c.service), Open: late{Constant(100, time.Second), c.late, time.Sleep}})
			if r.GeneratorBound != c.bound || (r.Why != "") != c.bound {
				t.Errorf("%v late with a service of %v: generator-bound %v %q", c.late, c.service, r.GeneratorBound, r.Why)
			}
			if got := time.Duration(r.Lag.Quantile(0.5)); !within(float64(got), float64(c.late), 0.01) {
				t.Errorf("lag %v, want %v", got, c.late)
			}
		})
	}
}

// late is a schedule that returns each start only after it has passed: it models a
// generator that cannot keep up.
type late struct {
	Schedule
	by    time.Duration
	sleep func(time.Duration)
}

func (l late) walk() func() (time.Duration, bool) {
	next, begin := walk(l.Schedule), time.Now()
	return func() (time.Duration, bool) {
		at, ok := next()
		l.sleep(at + l.by - time.Since(begin))
		return at, ok
	}
}
