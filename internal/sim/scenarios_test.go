package sim_test

import (
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/sim"
)

// bounds are the results that the limiter without configuration must reach in a scenario: as the
// median of five seeds, and for worst and peak in the worst seed. Goodput is relative to the better
// oracle.
type bounds struct {
	goodput  float64       // goodput of all classes
	worst    float64       // goodput of all classes, in the worst seed
	critical float64       // goodput of the first class
	p99      time.Duration // 99 % quantile of the latency of admitted calls
	peak     int           // most calls in the backend at once
	settles  time.Duration // longest time after a moment of settle until within 10 % of the oracle
}

// testCase is one of the twelve scenarios.
type testCase struct {
	name   string
	sc     sim.Scenario
	settle []time.Duration
	want   bounds
}

// service is the usual scenario: a fifth of the calls is critical, the rest low; all
// have a deadline of a second and take 50 to 100 ms.
func service(b sim.Backend, load float64) sim.Scenario {
	s := sim.Scenario{Duration: 40 * sec, Warmup: 10 * sec, Backend: b, Classes: mix(sec, sim.Uniform(50*ms, 100*ms))}
	s.Arrivals = sim.Poisson(load * s.Capacity())
	return s
}

func mix(deadline time.Duration, work sim.Distribution) []sim.Class {
	return []sim.Class{
		{Name: "critical", Share: 0.2, Priority: spillway.Critical, Deadline: deadline, Service: work},
		{Name: "low", Share: 0.8, Priority: spillway.Low, Deadline: deadline, Service: work},
	}
}

func twelve() []testCase {
	thrash := sim.Degrading(20, 0.5)

	heavy := service(sim.NWay(20), 1)
	heavy.Classes = mix(sec, sim.LogNormal(75*ms, 1.2))
	heavy.Arrivals = sim.Poisson(1.5 * heavy.Capacity())

	step := service(thrash, 1)
	step.Duration = 50 * sec
	step.Arrivals = sim.Steps(sim.Step{Rate: 0.5 * step.Capacity()}, sim.Step{From: 20 * sec, Rate: 5 * step.Capacity()}, sim.Step{From: 35 * sec, Rate: 0.5 * step.Capacity()})

	halved := service(thrash, 0.9)
	halved.Duration = 60 * sec
	halved.Changes = []sim.Change{{At: 20 * sec, Speed: 0.5}, {At: 40 * sec, Speed: 1}}

	burst := service(sim.NWay(20), 1)
	burst.Arrivals = sim.Bursts(0.3*burst.Capacity(), 5*burst.Capacity(), 100*ms, 2*sec)

	routes := service(sim.NWay(20), 1)
	routes.Classes = []sim.Class{
		{Name: "report", Share: 0.1, Priority: spillway.Critical, Deadline: 2 * sec, Service: sim.Uniform(200*ms, 400*ms)},
		{Name: "lookup", Share: 0.9, Priority: spillway.Low, Deadline: 2 * sec, Service: sim.Uniform(5*ms, 15*ms)},
	}
	routes.Arrivals = sim.Poisson(1.5 * routes.Capacity())

	database := service(sim.Database(40, 8), 1)
	database.Classes = mix(300*ms, sim.Exponential(10*ms))
	database.Arrivals = sim.Poisson(2 * database.Capacity())
	database.Duration, database.Warmup = 20*sec, 5*sec

	failing := service(sim.NWay(20), 1.5)
	for i := range failing.Classes {
		failing.Classes[i].ErrorRate = 0.05
	}

	long := service(thrash, 1.5)
	long.Duration = 10 * time.Minute

	large := service(sim.NWay(200), 2)
	large.Duration = 20 * sec

	cold := []time.Duration{0}
	return []testCase{
		{"steady at twice the capacity, thrashing", service(thrash, 2), cold, bounds{0.93, 0.90, 0.99, 750 * ms, 72, 2500 * ms}},
		{"heavy tail", heavy, nil, bounds{0.86, 0.45, 0.97, 900 * ms, 100, 0}},
		{"load step and back", step, []time.Duration{20 * sec}, bounds{0.92, 0.90, 0.93, 500 * ms, 48, 2 * sec}},
		{"backend halves and recovers", halved, []time.Duration{20 * sec, 40 * sec}, bounds{0.94, 0.90, 0.98, 950 * ms, 88, 3 * sec}},
		{"short bursts", burst, nil, bounds{0.97, 0.95, 0.98, 600 * ms, 56, 0}},
		{"two hundred slots", large, cold, bounds{0.97, 0.96, 0.98, 420 * ms, 800, 1500 * ms}},
		{"two routes of different cost", routes, nil, bounds{0.95, 0.88, 0.95, 1900 * ms, 150, 0}},
		{"database behind its pool", database, cold, bounds{0.94, 0.88, 0.98, 220 * ms, 72, 3 * sec}},
		{"one in twenty fails", failing, cold, bounds{0.97, 0.95, 0.98, 500 * ms, 60, 2 * sec}},
		{"ten minutes", long, nil, bounds{0.96, 0.95, 0.98, 280 * ms, 48, 0}},
		{"four slots", service(sim.NWay(4), 1.5), cold, bounds{0.95, 0.93, 0.98, 800 * ms, 72, sec}},
	}
}

// TestTwelveScenarios checks eleven scenarios. The twelfth is TestARetryStormEndsWithItsCause.
func TestTwelveScenarios(t *testing.T) {
	for _, e := range sim.Few(twelve()...) {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			var goodput, critical, p99, settles []float64
			peak := 0
			for seed := range uint64(5) {
				e.sc.Seed = seed + 1
				ref, err := yardstick(e.sc)
				if err != nil {
					t.Fatal(err)
				}
				got := run(t, e.sc)
				goodput = append(goodput, got.Total.Goodput/ref.Total.Goodput)
				critical = append(critical, got.Classes[0].Goodput/ref.Classes[0].Goodput)
				p99 = append(p99, float64(got.Total.Latency.Quantile(0.99)))
				peak = max(peak, got.Peak)
				slowest := 0.0
				for _, at := range e.settle {
					took, ok := converged(&got, &ref, at, 0.9)
					if !ok {
						took = time.Hour
					}
					slowest = max(slowest, float64(took))
				}
				settles = append(settles, slowest)
			}
			got := bounds{median(goodput), slices.Min(goodput), median(critical), time.Duration(median(p99)), peak, time.Duration(median(settles))}
			t.Logf("goodput %.3f (worst %.3f), critical %.3f (worst %.3f), p99 %v, peak %d, settles in %v", got.goodput, got.worst, got.critical, slices.Min(critical), got.p99.Round(ms), got.peak, got.settles)
			if w := e.want; got.goodput < w.goodput || got.worst < w.worst || got.critical < w.critical || got.p99 > w.p99 || got.peak > w.peak || got.settles > w.settles {
				t.Errorf("got %+v, want at least the first three and at most the others of %+v", got, w)
			}
		})
	}
}

// TestARetryStormEndsWithItsCause: in a burst of five seconds callers start to retry, up to three
// times and soon. Without a limiter the retries alone keep the service down: it only works for
// callers that have left. With a limiter the service recovers at once.
func TestARetryStormEndsWithItsCause(t *testing.T) {
	const (
		before = 0.75 // load
		back   = 20 * sec
		within = 3 * sec
		up     = 0.98 // share of the later calls that are served with the limiter
		down   = 0.05
	)
	for _, seed := range sim.Few[uint64](0, 1, 2) {
		s := service(sim.NWay(20), 1)
		s.Seed = seed + 1
		s.Warmup, s.Duration = back+within, 80*sec
		s.Retry = sim.Retry{Attempts: 4, Backoff: 100 * ms}
		rate := before * s.Capacity()
		s.Arrivals = sim.Steps(sim.Step{Rate: rate}, sim.Step{From: 15 * sec, Rate: 4 * rate}, sim.Step{From: back, Rate: rate})
		served := func(p sim.Policy) float64 {
			s.Policy = p
			r := run(t, s)
			return r.Total.Served()
		}
		without, with := served(sim.Unlimited()), served(sim.Policy{})
		t.Logf("seed %d: %.3f of the calls are served without a limiter, %.3f with it", s.Seed, without, with)
		if without > down {
			t.Errorf("seed %d: without a limiter %.3f of the calls are served: this is no storm", s.Seed, without)
		}
		if with < up {
			t.Errorf("seed %d: with the limiter %.3f of the calls are served, want %.3f", s.Seed, with, up)
		}
	}
}

// TestFollowingTheAdviceHelps: callers that follow the advice make fewer attempts, and calls that
// were refused in a burst are served after the burst.
func TestFollowingTheAdviceHelps(t *testing.T) {
	measure := func(s sim.Scenario, respect bool) (goodput, served, perSecond float64) {
		s.Seed = 1
		s.Retry.Backoff, s.Retry.Respect = 100*ms, respect
		r := run(t, s)
		for _, c := range r.Classes {
			perSecond += float64(c.Offered) / s.Duration.Seconds()
		}
		return r.Total.Goodput, r.Total.Served(), perSecond
	}
	steady := service(sim.NWay(20), 3)
	steady.Retry.Attempts = 8
	good, _, tries := measure(steady, false)
	goodFollowing, _, triesFollowing := measure(steady, true)
	t.Logf("steadily three times too much: %.0f a second and %.0f attempts; following the advice %.0f and %.0f", good, tries, goodFollowing, triesFollowing)
	if goodFollowing < 0.97*good || triesFollowing > tries/3 {
		t.Error("following the advice costs goodput or saves too few attempts")
	}
	burst := service(sim.NWay(20), 1)
	burst.Duration, burst.Warmup, burst.Retry.Attempts = 60*sec, 0, 4
	calm := 0.6 * burst.Capacity()
	burst.Arrivals = sim.Steps(sim.Step{Rate: calm}, sim.Step{From: 10 * sec, Rate: 5 * calm}, sim.Step{From: 20 * sec, Rate: calm})
	_, served, tries := measure(burst, false)
	_, servedFollowing, triesFollowing := measure(burst, true)
	t.Logf("a burst: %.3f served and %.0f attempts; following the advice %.3f and %.0f", served, tries, servedFollowing, triesFollowing)
	if servedFollowing < served+0.15 || triesFollowing > tries {
		t.Error("following the advice does not spread a burst")
	}
}

// yardstick runs the scenario with both oracles and returns the better report, which shows what a
// policy with complete knowledge can reach.
func yardstick(s sim.Scenario) (sim.Report, error) {
	s.Policy = sim.Oracle()
	a, err := sim.Run(s)
	if err != nil {
		return a, err
	}
	s.Policy = sim.OracleNewestFirst()
	b, err := sim.Run(s)
	if err == nil && b.Total.Goodput > a.Total.Goodput {
		a = b
	}
	return a, err
}

// converged returns how long after a time r becomes as good as another report: the goodput of the
// next second, and of the next three seconds, is at least share of the other's. It searches twenty
// seconds. False: not found. Both reports need the same Interval, which must divide a second.
func converged(r, other *sim.Report, after time.Duration, share float64) (time.Duration, bool) {
	step := r.Interval
	if step <= 0 || step > time.Second {
		return 0, false
	}
	good := func(points []sim.Point, n int) (sum float64) {
		for _, p := range points[:n] {
			sum += float64(p.OK)
		}
		return sum
	}
	second := int(time.Second / step)
	from := int(after / step)
	for k := from; k-from <= 17*second; k++ {
		if k+3*second > min(len(r.Timeline), len(other.Timeline)) {
			break
		}
		a, b := r.Timeline[k:], other.Timeline[k:]
		if good(a, second) >= share*good(b, second) && good(a, 3*second) >= share*good(b, 3*second) {
			return time.Duration(k-from) * step, true
		}
	}
	return 0, false
}
