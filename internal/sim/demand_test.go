package sim

import (
	"math"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// The demand that a limiter reports for scaling is the offered load over the capacity of its slots,
// independent of refusals, their reasons and starved priorities. When MaxRefused admitted calls
// over the limit, the reported demand was once 50 instead of 2: the work took long because too much
// ran at once.
func TestDemandIsWhatIsOfferedOverTheCapacity(t *testing.T) {
	work := LogNormal(20*time.Millisecond, 0.3)
	for _, set := range []Settings{{}, {QueueSize: -1}, {MaxWait: 30 * time.Millisecond}, {MaxRefused: 0.1}} {
		for _, low := range []spillway.Priority{spillway.Low, spillway.Normal} {
			for _, load := range Few(0.5, 0.9, 1.2, 5, 10, 2) {
				s := Scenario{
					Seed: 1, Duration: 15 * time.Second, Backend: Degrading(10, 0.5),
					Classes: []Class{
						{Share: 0.2, Deadline: time.Second, Service: work, Priority: spillway.Critical},
						{Share: 0.8, Deadline: time.Second, Service: work, Priority: low},
					},
				}
				s.Arrivals = Poisson(load * s.Capacity())
				var p *gated
				law := Limiter(func() limit.Law { return limit.NewFixed(10) }, set)
				s.Policy = Policy{build: func(at *replica) (admitter, error) {
					d, err := law.build(at)
					p = d.(*gated)
					return d, err
				}}
				sum, n := 0.0, 0.0
				s.Record.Watch = func(at Point) {
					if at.At > 8*time.Second {
						sum, n = sum+p.gate.Demand(p.run.now), n+1
					}
				}
				played(t, s)
				if got := sum / n / load; got < 0.85 || got > 1.15 {
					t.Errorf("%+v, priority %v: at %v times the capacity the demand is %.2f", set, low, load, sum/n)
				}
			}
		}
	}
}

// The backend collapses before its capacity is known. The dry run once took the number of calls in
// flight for the limit, and the demand was 0.34 to 0.97.
func TestDemandOfADryRunTellsACollapse(t *testing.T) {
	for _, slots := range Few(8, 20) {
		for _, gamma := range Few(0.2, 0.5) {
			for _, service := range []Distribution{Exponential(20 * time.Millisecond), LogNormal(40*time.Millisecond, 0.3)} {
				for _, load := range []float64{0.5, 3} {
					s := Scenario{
						Seed: 1, Duration: 20 * time.Second, Backend: Degrading(slots, gamma),
						Classes: []Class{{Deadline: time.Second, Service: service}},
					}
					s.Arrivals = Poisson(load * s.Capacity())
					var p *dryRun
					s.Policy = dryPolicy(limit.NewPassive(), &p)
					least, most := math.Inf(1), 0.0
					s.Record.Watch = func(at Point) {
						if at.At > 4*time.Second {
							got := p.gate.Demand(p.run.now)
							least, most = min(least, got), max(most, got)
						}
					}
					played(t, s)
					if load > 1 && least < 2 || load < 1 && most > 1 {
						t.Errorf("%d slots, gamma %v, at %v times the capacity the demand is %.2f to %.2f", slots, gamma, load, least, most)
					}
				}
			}
		}
	}
}
