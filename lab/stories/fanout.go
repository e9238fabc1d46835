package stories

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/fanout"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

const (
	sources    = 20 // that every request asks
	sourceTime = 200 * time.Millisecond
	sourceSize = 512 << 10 // that each sends
	fanOutRate = 400       // requests a second

	// The protected service is told these.
	sourcesAtOnce  = 64
	requestsAtOnce = 8
)

// fanOut is requests that each ask many others, and nothing that says how many at once.
var fanOut = story{
	name: "fanout", load: "400 a second",
	service: func(_ job, f *front) (http.Handler, error) {
		admit, err := f.admit(limiter.Config{}, requestsAtOnce)
		if err != nil {
			return nil, err
		}
		ask := askAll
		if f.protected {
			budget, err := fanout.NewBudget(sourcesAtOnce)
			if err != nil {
				return nil, err
			}
			ask = func(ctx context.Context) error {
				_, err := fanout.Map(ctx, fanout.MapConfig{Budget: budget}, make([]struct{}, sources), askOne)
				return err
			}
		}
		return admit(answering(func(r *http.Request) error { return ask(r.Context()) })), nil
	},
	crowd: func(Config) manners {
		return manners{path: func(uint64) string { return "/" }, patience: 5 * time.Second, tries: 1}
	},
	sends: func(c Config) service.Load {
		return service.Load{Stretches: []service.Stretch{{Rate: fanOutRate, For: c.Time}}}
	},
	figures: func(Config, *crowd, *results.Run) map[string]float64 { return map[string]float64{} },
	expect: func(c Config, pattern string) time.Duration {
		if pattern == unprotected {
			return min(c.Time, 2*time.Second) // then it is killed
		}
		return c.Time + 2*time.Second
	},
}

// askOne asks a source. Its answer is in memory until the end.
func askOne(ctx context.Context, _ struct{}) (int, error) {
	answer := make([]byte, sourceSize)
	touch(answer)
	err := service.Pause(ctx, sourceTime)
	return len(answer) + int(answer[0]), err
}

// askAll asks every source on a goroutine of its own.
func askAll(ctx context.Context) error {
	errs := make([]error, sources)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { _, errs[i] = askOne(ctx, struct{}{}) })
	}
	all.Wait()
	return errors.Join(errs...)
}
