package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway/internal/gate"
	"github.com/spillway-go/spillway/internal/refusal"
	"github.com/spillway-go/spillway/limit"
)

// dryRun is the limiter in dry-run mode: it admits every call and counts.
type dryRun struct {
	gated
	refused, offered int // after the warm-up
}

func (p *dryRun) arrive(c *call) {
	before := p.gate.Counts().WouldReject
	p.gate.Force(p.run.now, gate.Arrival{Cost: c.class.Cost, Priority: c.class.Priority, Deadline: c.deadline}, true)
	if c.tally != nil {
		p.offered++
		p.refused += int(p.gate.Counts().WouldReject - before)
	}
	p.admit(c)
}

// dry runs s without enforcement and returns the share that would have been refused.
func dry(t *testing.T, s Scenario, law limit.Law) float64 {
	t.Helper()
	var p *dryRun
	s.Policy = Policy{build: func(r *run) (admitter, error) {
		p = &dryRun{gated: gated{run: r, advice: refusal.NewTable(1), maxWait: defaultMaxWait, gate: gate.New(gate.Config{
			Law: law, QueueSize: defaultQueue, MaxWait: defaultMaxWait,
		})}}
		return p, nil
	}}
	if _, err := Run(s); err != nil {
		t.Fatal(err)
	}
	return float64(p.refused) / float64(p.offered)
}

// The share that a dry run predicts is close to the share refused once the limit is
// enforced, although the dry run refuses nothing and the backend always has a queue.
// A backend that thrashes collapses before its capacity is known: there the
// prediction may be too high, never too low.
func TestADryRunPredictsWhatEnforcingRefuses(t *testing.T) {
	sudden := func(c, load float64) Arrivals { return Steps(Step{0, c / 4}, Step{20 * time.Second, load * c}) }
	slow := func(c, load float64) Arrivals {
		return Varying(max(load, 1)*c, func(t time.Duration) float64 {
			return c * (0.25 + (load-0.25)*min(t.Seconds()/25, 1))
		})
	}
	for _, on := range []struct {
		name     string
		backend  Backend
		arrivals func(capacity, load float64) Arrivals
		above    float64 // how much it may predict too much: 0.1 is the aim, more is what is
	}{
		{"8-way", NWay(8), sudden, 0.1},
		{"8-way, slowly", NWay(8), slow, 0.1},
		{"sharing", Degrading(8, 0), sudden, 0.1},
		{"sharing, slowly", Degrading(8, 0), slow, 0.1},
		{"degrading, slowly", Degrading(8, 0.2), slow, 0.2},
		{"thrashing", Degrading(8, 0.5), sudden, 0.8},
		{"thrashing, slowly", Degrading(8, 0.5), slow, 0.4},
	} {
		for _, load := range []float64{0.5, 0.9, 1.2, 2, 5} {
			s := Scenario{
				Seed: 1, Duration: 45 * time.Second, Warmup: 30 * time.Second, Backend: on.backend,
				Classes: []Class{{Deadline: time.Second, Service: Exponential(20 * time.Millisecond)}},
			}
			s.Arrivals = on.arrivals(s.Capacity(), load)
			t.Run(fmt.Sprintf("%s at %v", on.name, load), func(t *testing.T) {
				law := limit.NewPassive()
				would := dry(t, s, law)
				r, err := Run(s)
				if err != nil {
					t.Fatal(err)
				}
				did := float64(r.Total.Refused+r.Total.Left) / float64(r.Total.Offered)
				told := fmt.Sprintf("a dry run says %.2f would be refused, enforcing refuses %.2f: %s", would, did, law.State())
				t.Log(told)
				if would < did-0.1 || would > did+on.above {
					t.Error(told)
				}
			})
		}
	}
}

// The same with a custom law, whose limit fits the backend, is too small or is too
// large.
func TestADryRunPredictsForAnyLaw(t *testing.T) {
	for _, slots := range []int{8, 4, 40} {
		for _, load := range []float64{0.9, 2, 5} {
			s := Scenario{
				Seed: 1, Duration: 45 * time.Second, Warmup: 30 * time.Second, Backend: NWay(8),
				Classes: []Class{{Deadline: time.Second, Service: Exponential(20 * time.Millisecond)}},
			}
			s.Arrivals = Steps(Step{0, 0.25 * s.Capacity()}, Step{20 * time.Second, load * s.Capacity()})
			would := dry(t, s, limit.NewFixed(slots))
			s.Policy = Limiter(func() *limit.Fixed { return limit.NewFixed(slots) }, Settings{})
			r, err := Run(s)
			if err != nil {
				t.Fatal(err)
			}
			if did := float64(r.Total.Refused+r.Total.Left) / float64(r.Total.Offered); would < did-0.1 || would > did+0.1 {
				t.Errorf("limit %d at %v: a dry run says %.2f would be refused, enforcing refuses %.2f", slots, load, would, did)
			}
		}
	}
}
