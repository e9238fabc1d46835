package sim_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// plain is a scenario of one class to start from: 20 slots, 75 ms of work.
func plain(load float64) sim.Scenario {
	s := sim.Scenario{
		Seed:     1,
		Duration: 20 * sec,
		Warmup:   5 * sec,
		Classes:  []sim.Class{{Name: "only", Deadline: sec, Service: sim.Uniform(50*ms, 100*ms)}},
		Backend:  sim.NWay(20),
	}
	s.Arrivals = sim.Poisson(load * s.Capacity())
	return s
}

func run(t *testing.T, s sim.Scenario) sim.Report {
	t.Helper()
	r, err := sim.Run(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// near fails the test unless got is within a share of want.
func near(t *testing.T, what string, got, want, share float64) {
	t.Helper()
	if math.Abs(got-want) > share*want {
		t.Errorf("%s is %.4g, want %.4g within %.0f %%", what, got, want, 100*share)
	}
}

func latency(r sim.Report) float64 { return r.Total.Latency.Mean() / 1e6 }

func TestCapacityIsSlotsOverMeanWork(t *testing.T) {
	s := plain(1)
	near(t, "capacity", s.Capacity(), 20/0.075, 1e-9)
	s.Backend = sim.Database(5, 20)
	near(t, "capacity of few connections", s.Capacity(), 5/0.075, 1e-9)
	s.Classes = []sim.Class{
		{Share: 1, Service: sim.Fixed(300 * ms)},
		{Share: 9, Service: sim.Mixture(sim.Part{Share: 3, Service: sim.Fixed(5 * ms)}, sim.Part{Share: 1, Service: sim.Fixed(25 * ms)})},
	}
	near(t, "capacity of two routes", s.Capacity(), 5/0.039, 1e-9)
}

// The models must reproduce known results of queueing theory.

func TestManyServersWaitAsErlangSays(t *testing.T) {
	const c, mean, rho = 4, 20.0, 0.8
	s := sim.Scenario{
		Seed: 3, Duration: 20 * time.Minute, Warmup: 10 * sec,
		Arrivals: sim.Poisson(rho * c / mean * 1000),
		Classes:  []sim.Class{{Service: sim.Exponential(mean * ms)}},
		Backend:  sim.NWay(c), Policy: sim.Unlimited(),
	}
	a, term, sum := rho*c, 1.0, 0.0
	for k := range c {
		sum += term
		term *= a / float64(k+1)
	}
	waits := term / (1 - rho) / (sum + term/(1-rho)) // Erlang's C
	want := mean + waits*mean/(c*(1-rho))
	near(t, "M/M/4 mean latency", latency(run(t, s)), want, 0.03)
	s.Backend, s.Policy = sim.NWay(c+10), sim.Semaphore(c) // the same queue, in the semaphore
	near(t, "the same behind a semaphore", latency(run(t, s)), want, 0.03)
}

func TestOneServerWithConstantWorkWaitsHalfAsLong(t *testing.T) {
	const mean, rho = 10.0, 0.7
	s := sim.Scenario{
		Seed: 4, Duration: 20 * time.Minute,
		Arrivals: sim.Poisson(rho / mean * 1000),
		Classes:  []sim.Class{{Service: sim.Fixed(mean * ms)}},
		Backend:  sim.NWay(1), Policy: sim.Unlimited(),
	}
	near(t, "M/D/1 mean latency", latency(run(t, s)), mean+rho*mean/(2*(1-rho)), 0.03)
}

func TestProcessorSharingDoesNotCareForTheDistribution(t *testing.T) {
	const mean, rho = 10.0, 0.7
	for _, work := range sim.Few(sim.Exponential(mean*ms), sim.Fixed(mean*ms), sim.LogNormal(mean*ms, 1)) {
		s := sim.Scenario{
			Seed: 5, Duration: 30 * time.Minute,
			Arrivals: sim.Poisson(rho / mean * 1000),
			Classes:  []sim.Class{{Service: work}},
			Backend:  sim.Degrading(1, 0), Policy: sim.Unlimited(),
		}
		near(t, "M/G/1-PS mean latency", latency(run(t, s)), mean/(1-rho), 0.04)
	}
}

func TestThroughputBeyondTheKnee(t *testing.T) {
	s := plain(3)
	s.Classes[0].Deadline = 0
	full := s.Capacity()
	for _, c := range []struct {
		what    string
		backend sim.Backend
		n       int
		want    float64
	}{
		{"N-way, half used", sim.NWay(20), 10, 0.5},
		{"N-way, four times too many", sim.NWay(20), 80, 1},
		{"degrading, half used", sim.Degrading(20, 0.5), 10, 0.5},
		{"degrading, at the knee", sim.Degrading(20, 0.5), 20, 1},
		{"degrading, four times too many", sim.Degrading(20, 0.5), 80, 0.5},
		{"degrading hard", sim.Degrading(20, 1), 80, 0.25},
		{"database, cpu rules", sim.Database(50, 20), 80, 1},
		{"database, connections rule", sim.Database(5, 20), 80, 0.25},
	} {
		s.Backend, s.Policy = c.backend, sim.Semaphore(c.n)
		near(t, c.what, run(t, s).Total.Goodput, c.want*full, 0.02)
	}
}

func TestABackendChangesWhileItRuns(t *testing.T) {
	for _, b := range []sim.Backend{sim.NWay(20), sim.Degrading(20, 0), sim.Database(30, 20)} {
		s := plain(3)
		s.Classes[0].Deadline = 0
		s.Backend, s.Policy = b, sim.Semaphore(30)
		s.Changes = []sim.Change{{At: 20 * sec, Slots: 20, Speed: 1}, {At: 10 * sec, Slots: 10, Speed: 0.5}}
		s.Duration, s.Warmup = 30*sec, 0
		r := run(t, s)
		for i, want := range []float64{1, 0.25, 1} {
			ok := 0
			for _, p := range r.Timeline[100*i+10 : 100*i+100] {
				ok += p.OK
			}
			near(t, "goodput of a phase", float64(ok)/9, want*s.Capacity(), 0.05)
		}
	}
}

func TestTheSameScenarioGivesTheSameReport(t *testing.T) {
	s := plain(1.5)
	s.Retry = sim.Retry{Attempts: 3, Backoff: 50 * ms, Respect: true}
	s.Record = sim.Record{}.WithEvents()
	a, b := run(t, s), run(t, s)
	if !reflect.DeepEqual(a, b) {
		t.Error("two runs differ")
	}
	s.Seed++
	if c := run(t, s); reflect.DeepEqual(sim.Recorded(a), sim.Recorded(c)) {
		t.Error("another seed gives the same run")
	}
}

func TestARecordedTraceIsReplayed(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Policy = 0, sim.Unlimited()
	s.Classes = append(s.Classes, s.Classes[0])
	s.Arrivals = sim.Replay([]sim.Request{{At: sec, Work: 10 * ms}, {At: sec, Class: 1, Work: 30 * ms}, {At: 2 * sec}, {At: time.Hour}})
	r := run(t, s)
	if r.Total.OK != 3 || r.Classes[1].OK != 1 {
		t.Errorf("%d ok, %d of them of the second class; want 3 and 1: the fourth comes after the end", r.Total.OK, r.Classes[1].OK)
	}
	if got := time.Duration(r.Classes[1].Latency.Max()); got != 30*ms {
		t.Errorf("the work of the second took %v, want the 30ms of the trace", got)
	}
	if p := r.Timeline[10]; p.Offered != 2 || p.OK != 2 {
		t.Errorf("the interval from 1 s has %+v, want 2 offered and 2 ok", p)
	}
}

// A retry of a recorded call takes the recorded time, not a new draw from the class.
func TestARecordedCallIsTheSameWorkWhenTriedAgain(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Policy, s.Retry = 0, sim.Unlimited(), sim.Retry{Attempts: 3}
	s.Classes[0].Deadline, s.Classes[0].Service = 20*ms, sim.Fixed(ms)
	s.Arrivals = sim.Replay([]sim.Request{{At: sec, Work: 30 * ms}})
	if r := run(t, s); r.Total.Offered != 3 || r.Total.OK != 0 || r.Total.Late != 3 {
		t.Errorf("%d attempts, %d ok, %d late; want 3, none and 3", r.Total.Offered, r.Total.OK, r.Total.Late)
	}
}

func TestEvenArrivalsAreEven(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Arrivals = 0, sim.Constant(50)
	for _, p := range run(t, s).Timeline {
		if p.Offered != 5 {
			t.Fatalf("%d calls in the tenth of a second from %v, want 5", p.Offered, p.At)
		}
	}
}

func TestArrivalsFollowTheirRate(t *testing.T) {
	arrivals := map[string]sim.Arrivals{
		"steps":  sim.Steps(sim.Step{From: 5 * sec, Rate: 1000}, sim.Step{From: 10 * sec, Rate: 3000}),
		"ramp":   sim.Ramp(0, 2000, 10*sec),
		"bursts": sim.Bursts(500, 2500, 5*sec, 10*sec),
	}
	wants := map[string][]float64{ // calls a second, in each period of five seconds
		"steps":  {0, 1000, 3000, 3000},
		"ramp":   {500, 1500, 2000, 2000},
		"bursts": {2500, 500, 2500, 500},
	}
	for name, a := range arrivals {
		s := plain(1)
		s.Arrivals = a
		r := run(t, s)
		for i, want := range wants[name] {
			n := 0
			for _, p := range r.Timeline[50*i : 50*i+50] {
				n += p.Offered
			}
			near(t, name, float64(n)/5, want, 0.06)
		}
	}
}

func TestDistributionsHaveTheMeanTheySay(t *testing.T) {
	var h histogram.Histogram
	r := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		h.Record(int64(sim.LogNormal(40*ms, 1).Draw(r)))
	}
	for name, d := range map[string]sim.Distribution{
		"fixed": sim.Fixed(3 * ms), "uniform": sim.Uniform(ms, 9*ms), "exponential": sim.Exponential(7 * ms),
		"lognormal": sim.LogNormal(75*ms, 1.2), "measured": sim.Measured(&h),
		"mixture": sim.Mixture(sim.Part{Share: 9, Service: sim.Fixed(ms)}, sim.Part{Share: 1, Service: sim.Exponential(100 * ms)}),
	} {
		sum := 0.0
		for range 400_000 {
			sum += float64(d.Draw(r))
		}
		near(t, name, sum/400_000, float64(d.Mean()), 0.02)
	}
}

func TestCallersTryAgain(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Policy = 0, sim.Limiter(func() limit.Law { return limit.NewFixed(1) }, sim.Settings{QueueSize: -1})
	s.Classes[0].Service = sim.Fixed(sec / 2)
	s.Arrivals = sim.Replay([]sim.Request{{At: 0}, {At: 100 * ms}, {At: 200 * ms}})

	r := run(t, s)
	if r.Total.OK != 1 || r.Total.Refused != 2 || r.RefusedBy[spillway.ReasonQueueFull] != 2 {
		t.Errorf("without retries: %d ok, %d refused, by reason %v; want 1 and 2, queue_full", r.Total.OK, r.Total.Refused, r.RefusedBy)
	}
	s.Retry = sim.Retry{Attempts: 5, Backoff: 200 * ms}
	r = run(t, s)
	if tot := &r.Total; tot.OK != 3 || tot.Calls() != 3 || tot.Retries == 0 || tot.Offered != tot.Calls()+tot.Retries {
		t.Errorf("with retries: %d of %d calls ok, %d attempts, %d of them retries", tot.OK, tot.Calls(), tot.Offered, tot.Retries)
	}
	s.Retry.Attempts, s.Retry.Backoff = 1000, 0
	s.Retry.Budget = 0.001
	if r = run(t, s); r.Total.Retries != 10 {
		t.Errorf("%d retries, want the ten of the budget's reserve", r.Total.Retries)
	}
	s.Retry = sim.Retry{Attempts: 3, Backoff: 200 * ms}
	s.Classes[0].ErrorRate = 1
	s.Arrivals = sim.Replay([]sim.Request{{At: 0}})
	if r = run(t, s); r.Total.Failed != 3 {
		t.Errorf("%d failures, want 3 attempts that all failed", r.Total.Failed)
	}
}

func TestCallersMayRespectTheAdvice(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Policy = 0, sim.Limiter(func() limit.Law { return limit.NewFixed(1) }, sim.Settings{QueueSize: -1})
	s.Classes[0].Service = sim.Fixed(sec / 2)
	s.Arrivals = sim.Replay([]sim.Request{{}, {At: sec}, {At: sec + 100*ms}}) // the third is refused at first
	s.Retry = sim.Retry{Attempts: 3, Backoff: ms}
	if r := run(t, s); r.Total.OK != 2 || r.Total.Refused != 3 {
		t.Errorf("callers that ignore the advice: %d ok, %d refused, want 2 and 3", r.Total.OK, r.Total.Refused)
	}
	s.Retry.Respect = true
	if r := run(t, s); r.Total.OK != 3 {
		t.Errorf("callers that follow the advice: %d ok of 3", r.Total.OK)
	}
}

func TestWhatBecomesOfWorkWhoseCallerLeft(t *testing.T) {
	s := plain(1)
	s.Warmup, s.Policy = 0, sim.Unlimited()
	s.Classes[0].Deadline = 100 * ms
	s.Arrivals = sim.Replay([]sim.Request{{Work: sec}, {At: ms, Work: 10 * ms}})
	for _, c := range []struct {
		what     string
		backend  sim.Backend
		ok, late uint64
		longest  time.Duration
	}{
		{"N-way serves to the end", sim.NWay(1), 0, 2, sec},
		{"a database drops the query", sim.Database(1, 1), 0, 2, 100 * ms},
		{"sharing serves both", sim.Degrading(1, 0), 1, 1, 100 * ms},
	} {
		s.Backend = c.backend
		r := run(t, s)
		if r.Total.OK != c.ok || r.Total.Late != c.late {
			t.Errorf("%s: %d ok and %d late, want %d and %d", c.what, r.Total.OK, r.Total.Late, c.ok, c.late)
		}
		near(t, c.what, float64(r.Total.Latency.Max()), float64(c.longest), 0.01)
	}
}

func TestWatchSeesTheTimelineGrow(t *testing.T) {
	s := plain(2)
	var seen []sim.Point
	s.Record.Watch = func(p sim.Point) { seen = append(seen, p) }
	r := run(t, s)
	if !reflect.DeepEqual(seen, r.Timeline) || len(seen) != 200 {
		t.Errorf("watched %d points, the timeline has %d, want 200 of both", len(seen), len(r.Timeline))
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	s := plain(2)
	ctx, cancel := context.WithCancel(t.Context())
	seen := 0
	s.Record.Watch = func(sim.Point) {
		if seen++; seen == 20 {
			cancel()
		}
	}
	if _, err := sim.RunContext(ctx, s); !errors.Is(err, context.Canceled) || seen > 150 {
		t.Errorf("cancelled after 20 points of 200, it went on to %d: %v", seen, err)
	}
}

func TestABadScenarioSaysWhatToDo(t *testing.T) {
	class := func(change func(c *sim.Class)) func(s *sim.Scenario) {
		return func(s *sim.Scenario) {
			c := s.Classes[0]
			change(&c)
			s.Classes = []sim.Class{c}
		}
	}
	work := func(d sim.Distribution) func(s *sim.Scenario) {
		return class(func(c *sim.Class) { c.Service = d })
	}
	nan := math.NaN()
	for want, spoil := range map[string]func(s *sim.Scenario){
		"say how long calls arrive":                    func(s *sim.Scenario) { s.Duration = 0 },
		"shorter than Duration":                        func(s *sim.Scenario) { s.Warmup = s.Duration },
		"use for example Poisson":                      func(s *sim.Scenario) { s.Arrivals = nil },
		"add at least one":                             func(s *sim.Scenario) { s.Classes = nil },
		"the rate is NaN":                              func(s *sim.Scenario) { s.Arrivals = sim.Poisson(nan) },
		"use more than 0":                              func(s *sim.Scenario) { s.Arrivals = sim.Constant(0) },
		"give a function":                              func(s *sim.Scenario) { s.Arrivals = sim.Varying(5, nil) },
		"sort them by time":                            func(s *sim.Scenario) { s.Arrivals = sim.Steps(sim.Step{From: 2}, sim.Step{From: 1}) },
		"not exceed the period":                        func(s *sim.Scenario) { s.Arrivals = sim.Bursts(1, 2, 3, 2) },
		"the trace is empty":                           func(s *sim.Scenario) { s.Arrivals = sim.Replay(nil) },
		"sort the trace":                               func(s *sim.Scenario) { s.Arrivals = sim.Replay([]sim.Request{{At: 2}, {At: 1}}) },
		"neither can be negative":                      func(s *sim.Scenario) { s.Arrivals = sim.Replay([]sim.Request{{Work: -1}}) },
		"counted from 0":                               func(s *sim.Scenario) { s.Arrivals = sim.Replay([]sim.Request{{Class: 1}}) },
		"million points":                               func(s *sim.Scenario) { s.Record.Interval = 1 },
		"zero means 100ms":                             func(s *sim.Scenario) { s.Record.Interval = -1 },
		"use NWay, NewestFirst, Degrading or Database": func(s *sim.Scenario) { s.Backend = sim.Backend{} },
		"give it at least 1":                           func(s *sim.Scenario) { s.Backend = sim.NWay(0) },
		"it has 0 connections":                         func(s *sim.Scenario) { s.Backend = sim.Database(0, 4) },
		"gamma is -1":                                  func(s *sim.Scenario) { s.Backend = sim.Degrading(4, -1) },
		"Semaphore(0)":                                 func(s *sim.Scenario) { s.Policy = sim.Semaphore(0) },
		"the law is nil":                               func(s *sim.Scenario) { s.Policy = sim.Limiter[limit.Law](nil, sim.Settings{}) },
		"returned no law": func(s *sim.Scenario) {
			s.Policy = sim.Limiter(func() *changing { return nil }, sim.Settings{})
		},
		"MaxWait is -1ns":        func(s *sim.Scenario) { s.Policy = sim.Limiter(limit.NewAdaptive, sim.Settings{MaxWait: -1}) },
		"MaxRefused is 1":        func(s *sim.Scenario) { s.Policy = sim.Limiter(limit.NewAdaptive, sim.Settings{MaxRefused: 1}) },
		"Attempts is -1":         func(s *sim.Scenario) { s.Retry.Attempts = -1 },
		"Backoff is -1ns":        func(s *sim.Scenario) { s.Retry.Backoff = -1 },
		"Budget is NaN":          func(s *sim.Scenario) { s.Retry.Budget = nan },
		"changes nothing":        func(s *sim.Scenario) { s.Changes = []sim.Change{{At: sec}} },
		"count from the start":   func(s *sim.Scenario) { s.Changes = []sim.Change{{At: -1, Slots: 1}} },
		"speed NaN":              func(s *sim.Scenario) { s.Changes = []sim.Change{{Speed: nan}} },
		"Share is -1":            class(func(c *sim.Class) { c.Share = -1 }),
		"Priority is 9":          class(func(c *sim.Class) { c.Priority = 9 }),
		"Deadline is -1ns":       class(func(c *sim.Class) { c.Deadline = -1 }),
		"Service is nil":         work(nil),
		"Cost is -1":             class(func(c *sim.Class) { c.Cost = -1 }),
		"ErrorRate is 1.5":       class(func(c *sim.Class) { c.ErrorRate = 1.5 }),
		"Fixed(0s)":              work(sim.Fixed(0)),
		"must be the longer one": work(sim.Uniform(2, 1)),
		"use a positive mean":    work(sim.Exponential(0)),
		"a sigma above 0":        work(sim.LogNormal(ms, 0)),
		"at least one Part":      work(sim.Mixture()),
		"part 0 has the share 0": work(sim.Mixture(sim.Part{Service: sim.Fixed(1)})),
		"part 0: Fixed(0s)":      work(sim.Mixture(sim.Part{Share: 1, Service: sim.Fixed(0)})),
		"the histogram is empty": work(sim.Measured(nil)),
	} {
		s := plain(1)
		spoil(&s)
		r, err := sim.Run(s)
		if err == nil || !strings.HasPrefix(err.Error(), "sim: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
		if r.Timeline != nil {
			t.Errorf("%q: a report comes with the error", want)
		}
	}
}
