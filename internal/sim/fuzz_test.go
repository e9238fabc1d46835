package sim_test

import (
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// anything draws a small scenario.
func anything(seed uint64) sim.Scenario {
	r := rand.New(rand.NewPCG(seed, 1))
	one := func(n int) bool { return r.IntN(n) == 0 }
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) + 1 }
	s := sim.Scenario{Seed: seed, Duration: upTo(4 * sec), Record: sim.Record{Interval: upTo(sec)}}
	if one(2) {
		s.Record = s.Record.WithEvents()
	}
	if one(2) {
		s.Warmup = time.Duration(r.Int64N(int64(s.Duration)))
	}
	for range 1 + r.IntN(3) {
		work := []sim.Distribution{
			sim.Fixed(upTo(50 * ms)), sim.Uniform(upTo(10*ms), 20*ms), sim.Exponential(upTo(50 * ms)),
			sim.LogNormal(upTo(50*ms), 2*r.Float64()+0.01), sim.Mixture(sim.Part{Share: 1, Service: sim.Fixed(1)}, sim.Part{Share: 2, Service: sim.Fixed(40 * ms)}),
		}
		c := sim.Class{Share: r.Float64(), Priority: spillway.Low + spillway.Priority(r.IntN(4)), Service: work[r.IntN(len(work))], Cost: r.IntN(4)}
		if one(2) {
			c.Deadline = upTo(300 * ms)
		}
		if one(2) {
			c.ErrorRate, c.FastErrors = r.Float64(), one(2)
		}
		s.Classes = append(s.Classes, c)
	}
	n := 1 + r.IntN(20)
	s.Backend = []sim.Backend{sim.NWay(n), sim.Degrading(n, 2*r.Float64()), sim.Database(1+r.IntN(30), n)}[r.IntN(3)]
	settings := sim.Settings{QueueSize: r.IntN(40) - 5, MaxWait: upTo(200 * ms), MaxRefused: max(0, r.Float64()*2-1)}
	s.Policy = []sim.Policy{
		{}, sim.Unlimited(), sim.Semaphore(1 + r.IntN(30)), sim.Oracle(), sim.OracleNewestFirst(), sim.Limiter(limit.NewAdaptive, settings),
		sim.Limiter(func() limit.Law { return limit.NewFixed(n) }, settings),
	}[r.IntN(7)]
	rate := min(3*r.Float64()*s.Capacity()+1, 3000)
	s.Arrivals = []sim.Arrivals{
		sim.Poisson(rate), sim.Constant(rate), sim.Ramp(0, rate, sec), sim.Bursts(rate/3, rate, upTo(sec), 2*sec), sim.Steps(sim.Step{From: upTo(sec), Rate: rate}),
		sim.Replay([]sim.Request{{}, {Work: 5}, {At: sec, Class: len(s.Classes) - 1, Work: sec}}),
	}[r.IntN(6)]
	for range r.IntN(3) {
		s.Changes = append(s.Changes, sim.Change{At: upTo(5 * sec), Slots: 1 + r.IntN(2*n), Speed: r.Float64() + 0.05})
	}
	if one(2) {
		s.Retry = sim.Retry{Attempts: r.IntN(5), Backoff: upTo(100 * ms), MaxBackoff: upTo(200 * ms), Respect: one(2), Budget: max(0, r.Float64()*2-1)}
	}
	if one(2) {
		anyFleet(&s, r)
	}
	return s
}

// anyFleet adds several replicas that come and go to the scenario.
func anyFleet(s *sim.Scenario, r *rand.Rand) {
	upTo := func(d time.Duration) time.Duration { return time.Duration(r.Int64N(int64(d))) }
	n := 1 + r.IntN(9)
	s.Fleet = sim.Fleet{
		Replicas: n, Zones: 1 + r.IntN(n), Balancer: sim.Balancer(r.IntN(3)), Notice: upTo(300 * ms), Drain: upTo(300 * ms), Boot: upTo(300 * ms),
		Cold: r.Float64(), Warm: upTo(sec), SlowStart: upTo(sec),
	}
	s.Oblivious = r.IntN(2) == 0
	s.Retry.Clients = r.IntN(5)
	for range r.IntN(6) {
		c := sim.Change{At: upTo(4 * sec), Zone: r.IntN(s.Fleet.Zones + 1), Count: r.IntN(n + 1)}
		switch r.IntN(4) {
		case 0:
			c.Stop = true
		case 1:
			c.Start = true
		case 2:
			c.Restart = 1 + r.IntN(n)
		default:
			c.Speed = r.Float64() + 0.05
		}
		s.Changes = append(s.Changes, c)
	}
}

// FuzzRun checks the invariants of every scenario.
func FuzzRun(f *testing.F) {
	for seed := range sim.Few[uint64](200, 30)[0] { // 30 under the race detector
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		s := anything(seed)
		r := run(t, s)
		if again := run(t, s); !reflect.DeepEqual(r, again) {
			t.Error("the same scenario gave another report")
		}
		var sum sim.Tally
		goodput := 0.0
		for i := range r.Classes {
			c := &r.Classes[i]
			if c.Offered != c.OK+c.Late+c.Failed+c.Refused+c.Left {
				t.Errorf("class %d: %d offered are not %d ok + %d late + %d failed + %d refused + %d left", i, c.Offered, c.OK, c.Late, c.Failed, c.Refused, c.Left)
			}
			if c.Latency.Count() != c.OK+c.Late+c.Failed || c.Refusal.Count() != c.Refused+c.Left {
				t.Errorf("class %d: the histograms hold %d and %d", i, c.Latency.Count(), c.Refusal.Count())
			}
			if d := s.Classes[i].Deadline; d > 0 && time.Duration(c.Refusal.Max()) > d || d == 0 && c.Late+c.Left > 0 {
				t.Errorf("class %d: a caller with the deadline %v waited %v, %d late, %d left", i, d, time.Duration(c.Refusal.Max()), c.Late, c.Left)
			}
			if c.Retries > c.Calls()*uint64(max(s.Retry.Attempts-1, 0)) {
				t.Errorf("class %d: %d calls made %d retries", i, c.Calls(), c.Retries)
			}
			sum.Offered += c.Offered
			sum.OK += c.OK
			goodput += c.Goodput
		}
		if sum.Offered != r.Total.Offered || sum.OK != r.Total.OK || goodput-r.Total.Goodput > 1e-6 {
			t.Errorf("the total %+v is not the sum of the classes", r.Total)
		}
		why := uint64(0)
		for _, n := range r.RefusedBy {
			why += n
		}
		if why != r.Total.Refused {
			t.Errorf("%d refused, %d with a reason: %v", r.Total.Refused, why, r.RefusedBy)
		}
		if len(r.Timeline) != int((s.Duration+s.Record.Interval-1)/s.Record.Interval) {
			t.Errorf("%d points of %v in %v", len(r.Timeline), s.Record.Interval, s.Duration)
		}
		for _, p := range r.Timeline {
			if p.InFlight < 0 || p.Queued < 0 || p.InBackend < 0 || p.InBackend > r.Peak {
				t.Fatalf("impossible: %+v, the peak was %d", p, r.Peak)
			}
		}
	})
}
