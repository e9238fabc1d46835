package routes

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
)

// So many contexts are read after their handler has returned.
const (
	lateRequests = 20_000
	lateLoad     = "20,000 requests"
)

func seen(ctx context.Context, name string, memoryCap int) (got Seen, err error) {
	exit, err := contestant.Run(ctx, spec(RoleLate, StdJSON, LateJob{name, lateRequests}, memoryCap), &got)
	if err == nil && exit.Killed != "" {
		err = fmt.Errorf("%s was %s", name, exit.Killed)
	}
	return got, err
}

func lateKey(name string) ledger.Key {
	return ledger.Key{Setup: late, Load: lateLoad, Pattern: name}
}

func (c Config) lateCell(name string) experiment.Cell {
	k := lateKey(name)
	return experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Expect: time.Second, Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
		got, err := seen(ctx, name, c.MemoryCap)
		return results.Run{
			Process: results.Process{ReuseRate: -1},
			Extra:   map[string]float64{wrong.Key: float64(got.Wrong), panics.Key: float64(got.Panics)},
		}, err
	}}
}

func demos() []experiment.Demo {
	const id, title = "use-after-return", "the goroutine that looks at its request's context after the handler has returned, as database/sql does with rows"
	return []experiment.Demo{{ID: id, Title: title, Expect: 4 * time.Second, Run: func(ctx context.Context) (results.Demo, error) {
		demo := results.Demo{ID: id, Title: title}
		for _, name := range []string{Pooled, Fresh, Spillway, GinTyped} {
			if name == Pooled && usage.Race {
				continue // the detector would stop the program at the fault
			}
			got, err := seen(ctx, name, 0)
			if err != nil {
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
