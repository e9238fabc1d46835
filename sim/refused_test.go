package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
)

// However work is refused, no more is refused than allowed: by a full queue, by a
// wait that is too long (with and without a deadline), by preemption.
func TestMaxRefusedBoundsEveryKindOfRefusal(t *testing.T) {
	for _, deadline := range []time.Duration{0, 200 * time.Millisecond} {
		for _, queue := range []int{-1, 1, 5, 50, 0} {
			for _, most := range []float64{0.1, 0.5} {
				for _, load := range []float64{3, 10} {
					s := Scenario{
						Seed: 1, Duration: 10 * time.Second, Warmup: 3 * time.Second,
						Classes: []Class{
							{Priority: spillway.Low, Deadline: deadline, Service: Exponential(20 * time.Millisecond)},
							{Priority: spillway.High, Deadline: deadline, Service: Exponential(20 * time.Millisecond)},
						},
						Arrivals: Poisson(load * 500), // of what ten slots serve
						Backend:  NWay(100_000),
						Policy: Limiter(func() *limit.Fixed { return limit.NewFixed(10) },
							Settings{QueueSize: queue, MaxRefused: most}),
					}
					t.Run(fmt.Sprintf("deadline %v, queue %d, at most %v of %v times the capacity", deadline, queue, most, load), func(t *testing.T) {
						r, err := Run(s)
						if err != nil {
							t.Fatal(err)
						}
						if got := float64(r.Total.Refused) / float64(r.Total.Offered); got > most+0.05 {
							t.Errorf("%.2f refused: %v", got, r.RefusedBy)
						}
					})
				}
			}
		}
	}
}
