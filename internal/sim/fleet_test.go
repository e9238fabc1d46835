package sim_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// fleet is twenty replicas with ten slots each.
func fleet(load float64, policy sim.Policy) sim.Scenario {
	s := sim.Scenario{
		Seed: 1, Duration: 30 * sec, Policy: policy, Backend: sim.Degrading(10, 0.5),
		Classes: []sim.Class{{Deadline: sec, Service: sim.Uniform(20*ms, 60*ms)}},
		Fleet:   sim.Fleet{Replicas: 20, Zones: 3, Balancer: sim.PowerOfTwo},
	}
	s.Arrivals = sim.Poisson(load * s.Capacity())
	return s
}

func adaptive() sim.Policy { return sim.Limiter(limit.NewAdaptive, sim.Settings{}) }

func TestAFleetOfOneIsAsNoFleet(t *testing.T) {
	for name, s := range traced {
		want := run(t, s)
		for _, b := range sim.Few(sim.RoundRobin, sim.LeastLoaded, sim.PowerOfTwo) {
			s.Fleet = sim.Fleet{Replicas: 1, Zones: 1, Balancer: b}
			s.Retry.Clients = 1
			if got := run(t, s); !reflect.DeepEqual(got, want) {
				t.Errorf("%s, %v: another report", name, b)
			}
		}
	}
}

func TestAFleetServesWhatItsReplicasCan(t *testing.T) {
	for _, b := range sim.Few(sim.RoundRobin, sim.LeastLoaded, sim.PowerOfTwo) {
		for load, want := range map[float64]float64{0.7: 0.999, 2: 0.45} {
			s := fleet(load, adaptive())
			s.Backend = sim.Degrading(sim.Few(10, 4)[0], 0.5) // 4 under the race detector
			s.Arrivals = sim.Poisson(load * s.Capacity())
			s.Fleet.Balancer, s.Warmup = b, 10*sec
			r := run(t, s)
			if got := r.Total.Served(); got < want {
				t.Errorf("%v at %v times the capacity: %.3f are served, want %.3f", b, load, got, want)
			}
		}
	}
}

// RoundRobin sends a full share of the calls to a replica at a tenth of its speed.
func TestASlowReplicaHurtsWhereTheBalancerDoesNotLook(t *testing.T) {
	lost := map[sim.Balancer]float64{}
	for _, b := range []sim.Balancer{sim.RoundRobin, sim.LeastLoaded, sim.PowerOfTwo} {
		s := fleet(0.6, sim.Unlimited())
		s.Fleet.Balancer = b
		s.Changes = []sim.Change{{At: 5 * sec, Count: 1, Speed: 0.1}}
		r := run(t, s)
		lost[b] = 1 - r.Answered(10*sec, 30*sec)
	}
	if lost[sim.RoundRobin] < 0.04 || lost[sim.LeastLoaded] > 0.005 || lost[sim.PowerOfTwo] > 0.005 {
		t.Errorf("lost: %v", lost)
	}
}

// Drained replicas lose no call. Replicas that crash lose their calls, and the calls that the
// balancer sends them until it notices.
func TestADrainedRestartLosesNothing(t *testing.T) {
	failed := func(drain time.Duration, c sim.Change) uint64 {
		s := fleet(0.4, adaptive())
		s.Fleet.Drain, s.Fleet.Boot, s.Fleet.Notice = drain, sec, sec
		s.Fleet.Cold, s.Fleet.Warm, s.Fleet.SlowStart = 0.2, 2*sec, 2*sec
		c.At = 5 * sec
		s.Changes = []sim.Change{c}
		r := run(t, s)
		if end := r.Answered(25*sec, 30*sec); end < 0.99 {
			t.Errorf("%+v: at the end %.3f are answered", c, end)
		}
		return r.Total.Failed
	}
	if n := failed(sec, sim.Change{Restart: 4}); n != 0 {
		t.Errorf("a rolling restart that drains lost %d calls", n)
	}
	if n := failed(0, sim.Change{Restart: 4}); n < 20 {
		t.Errorf("one that does not drain lost %d calls", n)
	}
	// A zone of seven is down for a second before the balancer notices. A replica that fails calls
	// at once looks idle, so it wins each choice of two. So more than half of 2,000 calls fail, not
	// seven in twenty.
	if n := float64(failed(0, sim.Change{Zone: 1, Stop: true})); n < 1000 || n > 1400 {
		t.Errorf("a lost zone lost %v calls", n)
	}
}

func TestAZoneThatComesBackServesAgain(t *testing.T) {
	s := fleet(0.8, adaptive())
	s.Changes = []sim.Change{{At: 10 * sec, Zone: 2, Stop: true}, {At: 20 * sec, Zone: 2, Start: true}}
	r := run(t, s)
	during, after := r.Answered(12*sec, 20*sec), r.Answered(25*sec, 30*sec)
	if during < 0.75 || during > 0.83 || after < 0.99 { // 13 of 20 replicas do the work of 16
		t.Errorf("during %.3f, after %.3f", during, after)
	}
	s.Changes = []sim.Change{{At: 10 * sec, Stop: true}}
	if r := run(t, s); r.Answered(12*sec, 30*sec) != 0 {
		t.Error("there is no replica, and calls are answered")
	}
}

func TestWhatIsWrongWithAFleetIsSaid(t *testing.T) {
	for want, spoil := range map[string]func(*sim.Scenario){
		"Replicas is -1":           func(s *sim.Scenario) { s.Fleet.Replicas = -1 },
		"Zones is 21":              func(s *sim.Scenario) { s.Fleet.Zones = 21 },
		"Balancer is 9":            func(s *sim.Scenario) { s.Fleet.Balancer = 9 },
		"Drain -1s":                func(s *sim.Scenario) { s.Fleet.Drain = -sec },
		"Cold is 2":                func(s *sim.Scenario) { s.Fleet.Cold = 2 },
		"its Zone is 4":            func(s *sim.Scenario) { s.Changes = []sim.Change{{Zone: 4, Stop: true}} },
		"2 things to the same":     func(s *sim.Scenario) { s.Changes = []sim.Change{{Stop: true, Start: true}} },
		"Count is -1":              func(s *sim.Scenario) { s.Changes = []sim.Change{{Count: -1, Stop: true}} },
		"changes nothing":          func(s *sim.Scenario) { s.Changes = []sim.Change{{Count: 3}} },
		"Clients is -1":            func(s *sim.Scenario) { s.Retry.Clients = -1 },
		"Replicas is 1000000: use": func(s *sim.Scenario) { s.Fleet.Replicas = 1e6 },
	} {
		s := fleet(0.5, adaptive())
		spoil(&s)
		if _, err := sim.Run(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
