package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// The load steps from half to three times the capacity and stays there. Over the next five hundred
// service times, the median latency of served calls is a few service times, for any deadline, at
// full goodput. Callers without a deadline used to wait for seconds, and callers with a deadline
// until shortly before it.
func TestAStepOfLoadDoesNotFillTheQueueForLong(t *testing.T) {
	type step struct {
		slots            int
		work             time.Duration
		deadline, longer time.Duration // the caller's deadline, zero: none; MaxWait, zero: the default
		p50              float64       // most median latency, in service times
	}
	for _, s := range []step{
		{10, 20 * ms, sec, 0, 3}, {10, 20 * ms, 200 * ms, 0, 3}, {10, 20 * ms, 5 * sec, 0, 3}, {10, 20 * ms, 0, 0, 3},
		{10, 20 * ms, sec, 60 * ms, 3}, {10, 20 * ms, 0, 60 * ms, 3}, {1, 20 * ms, 0, 0, 5},
		{4, 100 * ms, 5 * sec, 0, 3}, {4, 100 * ms, 0, 0, 3}, {50, 5 * ms, 5 * sec, 0, 3}, {50, 5 * ms, 0, 0, 3},
		{20, sec, 20 * sec, 0, 3}, {20, sec, 0, 0, 3},
	} {
		for name, backend := range map[string]sim.Backend{"n-way": sim.NWay(s.slots), "thrashing": sim.Degrading(s.slots, 0.5)} {
			t.Run(fmt.Sprintf("%s, %d slots, %v, deadline %v, at most %v", name, s.slots, s.work, s.deadline, s.longer), func(t *testing.T) {
				t.Parallel()
				sc := sim.Scenario{
					Seed: 1, Warmup: 100 * s.work, Duration: 600 * s.work, Backend: backend,
					Classes: []sim.Class{{Service: sim.LogNormal(s.work, 0.1), Deadline: s.deadline}},
					Policy:  sim.Limiter(func() limit.Law { return limit.NewFixed(s.slots) }, sim.Settings{MaxWait: s.longer}),
				}
				sc.Arrivals = sim.Steps(sim.Step{Rate: 0.5 * sc.Capacity()}, sim.Step{From: sc.Warmup, Rate: 3 * sc.Capacity()})
				r := run(t, sc)
				if got := float64(r.Total.Latency.Quantile(0.5)) / float64(s.work); got > s.p50 {
					t.Errorf("the median is %.1f service times, want at most %v", got, s.p50)
				}
				if got := time.Duration(r.Total.Refusal.Quantile(0.5)); got > 10*ms {
					t.Errorf("half of the refusals took %v and more", got)
				}
				if got := r.Total.Goodput / sc.Capacity(); got < 0.97 {
					t.Errorf("%.3f of the capacity was used", got)
				}
			})
		}
	}
}
