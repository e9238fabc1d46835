package routes

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// lateRequests is how many contexts are read after their handler has returned.
const lateRequests = 20_000

func demos() []experiment.Demo {
	const id, title = "use-after-return", "the goroutine that looks at its request's context after the handler has returned, as database/sql does with rows"
	return []experiment.Demo{{ID: id, Title: title, Expect: 2 * time.Second, Run: func(ctx context.Context) (results.Demo, error) {
		demo := results.Demo{ID: id, Title: title}
		for _, name := range []string{Pooled, Fresh, Spillway, GinTyped} {
			if name == Pooled && usage.Race {
				continue // the detector would stop the program at the fault
			}
			var got Seen
			if _, err := contestant.Run(ctx, spec(RoleLate, StdJSON, LateJob{name, lateRequests}, 0), &got); err != nil {
				return demo, err
			}
			demo.Outcome += fmt.Sprintf("%s: %d of %d saw another request's value, %d panicked. ", name, got.Wrong, lateRequests, got.Panics)
			demo.Counts = append(demo.Counts,
				results.NamedCount{Name: "another request's value, " + name, N: float64(got.Wrong)},
				results.NamedCount{Name: "panics, " + name, N: float64(got.Panics)})
		}
		demo.Outcome += "All contexts but the pooled one belong to one request only; Spillway's routes pool what no handler sees."
		return demo, nil
	}}}
}
