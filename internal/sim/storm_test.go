package sim_test

import (
	"strings"
	"testing"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/internal/soak"
)

// storm is a scenario in which every replica has a fifth of its speed for three seconds, and
// callers try three times. The bits of protections select the protections.
func storm(backend sim.Backend, load float64, protections int) sim.Scenario {
	s := fleet(load, sim.Unlimited())
	s.Backend, s.Oblivious = backend, true
	s.Retry = sim.Retry{Attempts: 3, Backoff: 100 * ms, Clients: 200}
	s.Changes = []sim.Change{{At: 8 * sec, Speed: 0.2}, {At: 11 * sec, Speed: 1}}
	s.Arrivals = sim.Poisson(load * s.Capacity())
	if protections&1 > 0 {
		s.Policy = adaptive()
	}
	if protections&2 > 0 {
		s.Oblivious = false
	}
	if protections&4 > 0 {
		s.Retry.Budget = 0.1
	}
	return s
}

// A storm of retries outlives its cause. If the backend thrashes, only a set with the limiter ends
// the storm. If the backend only queues, a budget for retries is enough, too. Deadlines alone end
// neither storm. Together with the limiter, deadlines raise the share of answered calls during the
// trouble.
func TestWhichProtectionsEndAStorm(t *testing.T) {
	soak.WithoutRace(t)
	names := []string{"limiter", "deadlines", "budget"}
	const slots = 10
	for _, test := range []struct {
		name    string
		backend sim.Backend
		load    float64
		ends    func(set string) bool
	}{
		{"thrashing", sim.Degrading(slots, 0.5), 0.5, func(set string) bool { return strings.Contains(set, "limiter") }},
		{"queueing", sim.NWay(slots), 0.7, func(set string) bool {
			return strings.Contains(set, "limiter") || strings.Contains(set, "budget")
		}},
	} {
		during := map[int]float64{}
		for _, m := range sim.Few([]int{0, 1, 2, 3, 4, 5, 6, 7}, []int{0, 1, 3})[0] {
			var set []string
			for i, name := range names {
				if m&(1<<i) > 0 {
					set = append(set, name)
				}
			}
			name := strings.Join(set, "+")
			r := run(t, storm(test.backend, test.load, m))
			before, end := r.Answered(3*sec, 8*sec), r.Answered(20*sec, 30*sec)
			during[m] = r.Answered(8*sec, 11*sec)
			t.Logf("%s, with [%s]: before %.2f, during %.2f, at the end %.2f", test.name, name, before, during[m], end)
			if before < 0.99 {
				t.Errorf("%s, with [%s]: before there are %.2f", test.name, name, before)
			}
			if test.ends(name) && end < 0.95 || !test.ends(name) && end > 0.2 {
				t.Errorf("%s, with [%s]: long after, %.2f are answered", test.name, name, end)
			}
		}
		if test.name == "thrashing" && during[1] < 0.1 {
			t.Errorf("while the replicas are slow, %.2f are answered: more is let in than ever ran before", during[1])
		}
		if during[3] < during[1] {
			t.Errorf("%s: with deadlines the limiter answers %.2f in the trouble, without them %.2f", test.name, during[3], during[1])
		}
	}
}
