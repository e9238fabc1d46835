package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/internal/soak"
	"github.com/spillway-go/spillway/limit"
)

// MaxRefused bounds refusals of every kind: by a full queue, by a wait that is too long (with and
// without a deadline), and by preemption.
func TestMaxRefusedBoundsEveryKindOfRefusal(t *testing.T) {
	soak.WithoutRace(t)
	for _, deadline := range []time.Duration{0, 200 * time.Millisecond} {
		for _, queue := range []int{-1, 1, 5, 50, 0} {
			for _, most := range Few(0.1, 0.5) {
				for _, load := range Few(10.0, 3) {
					s := Scenario{
						Seed: 1, Duration: 10 * time.Second, Warmup: 3 * time.Second,
						Classes: []Class{
							{Priority: spillway.Low, Deadline: deadline, Service: Exponential(20 * time.Millisecond)},
							{Priority: spillway.High, Deadline: deadline, Service: Exponential(20 * time.Millisecond)},
						},
						Arrivals: Poisson(load * 500), // load times the capacity of ten slots
						Backend:  NWay(100_000),
						Policy: Limiter(func() limit.Law { return limit.NewFixed(10) },
							Settings{QueueSize: queue, MaxRefused: most}),
					}
					t.Run(fmt.Sprintf("deadline %v, queue %d, at most %v of %v times the capacity", deadline, queue, most, load), func(t *testing.T) {
						r := played(t, s)
						if got := float64(r.Total.Refused) / float64(r.Total.Offered); got > most+0.05 {
							t.Errorf("%.2f refused: %v", got, r.RefusedBy)
						}
					})
				}
			}
		}
	}
}

// The load is four percent above the capacity, and five percent may be refused. By chance, the
// share of refusals in a second and a half once exceeded five percent. The calls that were then
// admitted over the limit filled the backend to nine times its slots. Calls that waited for a slot
// in vain were refused after most of a second.
func TestMaxRefusedDoesNotFillTheBackendByChance(t *testing.T) {
	for name, backend := range map[string]Backend{"n-way": NWay(40), "thrashing": Degrading(40, 0.5)} {
		for _, seed := range Few[uint64](0, 1, 2) {
			s := Scenario{
				Seed: seed, Duration: 20 * time.Second, Warmup: 5 * time.Second, Backend: backend,
				Classes:  []Class{{Deadline: time.Second, Service: LogNormal(20*time.Millisecond, 0.1)}},
				Arrivals: Poisson(1.04 * 2000),
				Policy:   Limiter(func() limit.Law { return limit.NewFixed(40) }, Settings{MaxRefused: 0.05}),
			}
			r := played(t, s)
			if half := time.Duration(r.Total.Refusal.Quantile(0.5)); r.Peak > 80 || half > 100*time.Millisecond || r.Total.Goodput < 1900 {
				t.Errorf("%s, seed %d: %d in the backend, half of the refusals after %v, %.0f served a second of 2000", name, seed, r.Peak, half, r.Total.Goodput)
			}
		}
	}
}
