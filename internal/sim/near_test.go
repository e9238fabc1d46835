package sim_test

import (
	"testing"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// Work takes 0.7 to 0.9 s, and its callers wait for a second: 40 slots, at twice and at sixty times what
// they can do. Of the callers that could not be served in time, one in sixteen was once let in to try. At
// sixty times the load these took every slot, none could finish, and 0 to 12 in 50 were answered. A
// caller that left while its work ran was no loss to the law, so the limit stayed above the slots.
func TestWorkThatTakesNearlyAsLongAsCallersWait(t *testing.T) {
	soak.WithoutRace(t)
	for _, load := range []float64{2, 12, 60} {
		for name, c := range map[string]sim.Class{"a deadline": {Deadline: sec}, "callers that leave": {LeaveAfter: sim.Fixed(sec)}} {
			c.Share, c.Service = 1, sim.Uniform(700*ms, 900*ms)
			s := sim.Scenario{Duration: 150 * sec, Warmup: 30 * sec, Backend: sim.NWay(40), Classes: []sim.Class{c}, Arrivals: sim.Poisson(load * 50)}
			served := func(law func() limit.Law) (part float64) {
				s.Policy = sim.Limiter(law, sim.Settings{})
				seeds := sim.Few[uint64](1, 2, 3)
				for _, s.Seed = range seeds {
					part += run(t, s).Total.Goodput / 50 / float64(len(seeds))
				}
				return part
			}
			known, own := served(func() limit.Law { return limit.NewFixed(40) }), served(limit.NewAdaptive)
			t.Logf("%s, %.0fx: 40 slots answer %.2f of what can be done, the adaptive limit %.2f", name, load, known, own)
			if known < .93 || own < .6 {
				t.Errorf("%s, %.0fx: 40 slots answer %.2f of what can be done, the adaptive limit %.2f, want 0.93 and 0.6", name, load, known, own)
			}
		}
	}
}
