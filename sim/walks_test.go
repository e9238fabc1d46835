package sim_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/sim"
)

// TestWalks prints the figures of the examples in docs/adr/0005 and 0006: the worst and the best of
// five seeds, and the first changes of the limit. It asserts nothing.
//
//	go test ./sim -v -run TestWalks
func TestWalks(t *testing.T) {
	skipUnlessNamed(t)
	for _, load := range []float64{.4, .8, 1.5} {
		for _, p := range []spillway.Priority{spillway.Normal, spillway.High} {
			s := sim.Scenario{Duration: 240 * sec, Warmup: 60 * sec, Backend: sim.NWay(32), Classes: kinds(.9, 20*ms, 1., sec, .1, 2*sec, 1., 10*sec)}
			s.Classes[0].Priority = p
			s.Arrivals = sim.Poisson(load * s.Capacity())
			walk(t, fmt.Sprintf("lookups (%v) beside reports at %v", p, load), s, 32)
		}
	}
	s := sim.Scenario{Duration: 180 * sec, Warmup: 60 * sec, Backend: sim.Degrading(60, 0), Classes: kinds(1., 20*ms, .3, sec)}
	s.Arrivals = sim.Poisson(.1 * s.Capacity())
	for at := s.Warmup; at < s.Duration; at += 300 * ms {
		s.Changes = append(s.Changes, sim.Change{At: at, Speed: 1e-6}, sim.Change{At: at + 250*ms, Speed: 1})
	}
	walk(t, "a lock that is held for 250 of every 300 ms", s, 60)
}

// walk simulates a scenario without a limit, with a fixed limit of the right size, and with the
// adaptive limiter.
func walk(t *testing.T, name string, s sim.Scenario, right int) {
	t.Helper()
	var law *changing
	for _, c := range []struct {
		name   string
		policy sim.Policy
	}{
		{"no limit", sim.Unlimited()},
		{"the right number", sim.Limiter(func() limit.Law { return limit.NewFixed(right) }, sim.Settings{})},
		{"adaptive", sim.Limiter(func() limit.Law { law = &changing{adaptiveLaw: limit.NewAdaptive().(adaptiveLaw)}; return law }, sim.Settings{})},
	} {
		s.Policy = c.policy
		answered, p50 := make([][]float64, len(s.Classes)), make([][]time.Duration, len(s.Classes))
		for seed := uint64(5); seed > 0; seed-- { // the log kept is that of seed 1, the last one
			s.Seed = seed
			for i, kind := range run(t, s).Classes {
				answered[i] = append(answered[i], kind.Served())
				p50[i] = append(p50[i], time.Duration(kind.Latency.Quantile(.5)).Round(ms))
			}
		}
		for i, kind := range s.Classes {
			t.Logf("%s, %s: of %s %.3f to %.3f are answered, half of them within %v to %v", name, c.name, kind.Name,
				slices.Min(answered[i]), slices.Max(answered[i]), slices.Min(p50[i]), slices.Max(p50[i]))
		}
	}
	t.Logf("of the first seed: %q", law.log[:min(len(law.log), 8)])
}

// changing is the adaptive law with a log of its changes.
type changing struct {
	adaptiveLaw
	log []string
}

func (l *changing) Observe(s limit.Sample, load limit.Load) {
	before := l.Limit()
	l.adaptiveLaw.Observe(s, load)
	if n := l.Limit(); n != before {
		l.log = append(l.log, fmt.Sprintf("%.1fs %d to %d: %s", s.End.Seconds(), before, n, l.Why()))
	}
}

// adaptiveLaw is all that the adaptive law can do.
type adaptiveLaw interface {
	limit.Law
	limit.Forgetter
	limit.Reporter
}
