package sim_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/sim"
	"github.com/spillway-go/spillway/limit"
)

// Each of these worlds once broke the adaptive law. The field before is the goodput that the law
// then reached. Goodput counts the callers that stay, after the disturbance, relative to the better
// of two oracles with the same arrivals.
func TestTheLawHoldsInItsSurroundings(t *testing.T) {
	const slots = 40
	work := func(mean time.Duration, b sim.Backend, load func(time.Duration) float64, from, to time.Duration) sim.Scenario {
		sc := sim.Scenario{
			Seed: 5, Duration: to, Warmup: from, Backend: b,
			Classes: []sim.Class{{Name: "stay", Deadline: sec, Service: sim.LogNormal(mean, 0.1)}},
		}
		capacity := sc.Capacity()
		sc.Arrivals = sim.Varying(3*capacity, func(t time.Duration) float64 { return load(t) * capacity })
		return sc
	}
	always := func(load float64) func(time.Duration) float64 { return func(time.Duration) float64 { return load } }
	worlds := map[string]struct {
		before float64
		least  float64
		build  func(b func(int) sim.Backend) *world
	}{
		"learned high, then quiet, then slow": {0, 0.9, func(b func(int) sim.Backend) *world {
			sc := work(100*ms, b(100), func(t time.Duration) float64 {
				if t < 10*sec {
					return 1.5
				}
				return 0.045
			}, 30*sec, 50*sec)
			sc.Changes = []sim.Change{{At: 14 * sec, Slots: 4}}
			return &world{sc: sc, slots: 100}
		}},
		"40 % leave": {0.5, 0.9, func(b func(int) sim.Backend) *world {
			sc := work(20*ms, b(slots), always(1.5), 5*sec, 30*sec)
			leave(&sc, 0.4)
			return &world{sc: sc, slots: slots}
		}},
		"half of the callers leave, and there is room": {0.3, 0.98, func(b func(int) sim.Backend) *world {
			sc := work(20*ms, b(slots), always(0.75), 5*sec, 30*sec)
			leave(&sc, 0.5)
			return &world{sc: sc, slots: slots}
		}},
		"a floor below which the backend falls": {0.25, 0.93, func(b func(int) sim.Backend) *world {
			sc := work(20*ms, b(slots), always(1.5), 15*sec, 25*sec)
			sc.Changes = []sim.Change{{At: 3 * sec, Slots: 3}, {At: 8 * sec, Slots: slots}}
			return &world{sc: sc, slots: slots, floor: 10, to: never}
		}},
		"a cap that is lifted": {0, 0.93, func(b func(int) sim.Backend) *world {
			return &world{sc: work(20*ms, b(slots), always(1.5), 7*sec, 20*sec), slots: slots, cap: 10, to: 4 * sec}
		}},
		"much less capacity for a while": {0.9, 0.93, func(b func(int) sim.Backend) *world {
			sc := work(20*ms, b(slots), always(1.5), 15*sec, 25*sec)
			sc.Changes = []sim.Change{{At: 3 * sec, Slots: 3}, {At: 8 * sec, Slots: slots}}
			return &world{sc: sc, slots: slots}
		}},
		"a backend that hangs for ten seconds": {1, 0.95, func(b func(int) sim.Backend) *world {
			sc := work(20*ms, b(slots), always(0.6), 28*sec, 45*sec)
			sc.Changes = []sim.Change{{At: 10 * sec, Speed: 0.004}, {At: 20 * sec, Speed: 1}}
			return &world{sc: sc, slots: slots}
		}},
	}
	type kind struct {
		name string
		of   func(slots int) sim.Backend
	}
	kinds := sim.Few(kind{"degrades", func(n int) sim.Backend { return sim.Degrading(n, 0.5) }}, kind{"queues", sim.NWay})
	for _, name := range sim.Few(slices.Sorted(maps.Keys(worlds)), []string{"40 % leave", "a cap that is lifted"})[0] {
		w := worlds[name]
		for _, b := range kinds {
			t.Run(name+"/"+b.name, func(t *testing.T) {
				t.Parallel()
				var state string
				if ours, fixed := w.build(b.of).play(t, &state); ours < w.least || ours < fixed-0.05 {
					t.Errorf("goodput %.3f, want %.2f; it once was %.1f, a fixed limit reaches %.3f\n\t%s", ours, w.least, w.before, fixed, state)
				}
			})
		}
	}
}

const never = 1000 * time.Hour

// leave makes a share of the callers give up within the time of their work.
func leave(sc *sim.Scenario, share float64) {
	c := sc.Classes[0]
	c.Name, c.Share, c.LeaveAfter = "leave", share, sim.Uniform(0, 20*ms)
	sc.Classes[0].Share = 1 - share
	sc.Classes = append(sc.Classes, c)
}

// TestAFloodBeneathACapDoesNotRaiseTheLimit: under a cap the law's limit once doubled with every
// cohort of samples, to 100,000.
func TestAFloodBeneathACapDoesNotRaiseTheLimit(t *testing.T) {
	w := &world{slots: 40, cap: 10, to: never}
	w.sc = sim.Scenario{
		Duration: 30 * sec, Backend: sim.NWay(40),
		Classes: []sim.Class{{Name: "stay", Deadline: sec, Service: sim.LogNormal(20*ms, 0.1)}},
	}
	w.sc.Arrivals = sim.Poisson(1.5 * w.sc.Capacity())
	var law *bounded
	w.sc.Policy = sim.Limiter(func() limit.Law { law = &bounded{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw), w: w}; return law }, sim.Settings{})
	run(t, w.sc)
	if got := law.adaptiveLaw.Limit(); got > 32 { // the initial limit
		t.Errorf("the law wants %d, though no more than 10 ever ran", got)
	}
}

// The work of some callers is longer than their deadlines, at any limit. At a lower limit fewer of
// these calls are admitted, so fewer are lost. The law once took that for a gain: it cut the limit
// again and again, and refused other callers while most of the backend was idle.
func TestDeadlinesThatTheWorkMissesAnywayCostOthersNothing(t *testing.T) {
	for _, load := range sim.Few(0.6, 0.9) {
		for _, share := range sim.Few(0.4, 0.6) {
			sc := sim.Scenario{
				Seed: 3, Duration: 60 * sec, Warmup: 20 * sec, Backend: sim.Degrading(20, 0.5),
				Classes: []sim.Class{
					{Name: "stay", Share: 1 - share, Deadline: sec, Service: sim.LogNormal(20*ms, 0.2)},
					{Name: "late", Share: share, Deadline: 22 * ms, Service: sim.LogNormal(25*ms, 0.2)},
				},
				Arrivals: sim.Poisson(load * 950),
			}
			goodput := func(law func() limit.Law) float64 {
				sc := sc
				sc.Policy = sim.Limiter(law, sim.Settings{})
				r := run(t, sc)
				return r.Class("stay").Goodput
			}
			ours := goodput(func() limit.Law { return limit.NewAdaptive() })
			if fixed := goodput(func() limit.Law { return limit.NewFixed(20) }); ours < 0.95*fixed {
				t.Errorf("load %.1f, %.0f %% with too short a deadline: goodput %.0f, a fixed limit %.0f", load, 100*share, ours, fixed)
			}
		}
	}
}
