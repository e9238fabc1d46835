package stories

import (
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

const (
	slower   = 5               // times, that the database is
	settling = 5 * time.Second // after the trigger, until the protected service has to be back
)

// metastable is a short trouble that retries turn into a lasting one.
var metastable = story{
	name: "metastable", load: "0.5x", waits: true,
	service: func(j job, f *front) (http.Handler, error) {
		store := service.NewDatabase(j.Work, j.Seed)
		begin := sync.OnceFunc(func() { // with the first request
			time.AfterFunc(j.WarmUp, func() { store.Slow(slower) })
			time.AfterFunc(j.WarmUp+j.Trigger, func() { store.Slow(1) })
		})
		admit, err := f.admit(limiter.Config{}, 0)
		if err != nil {
			return nil, err
		}
		ask := admit(answering(func(r *http.Request) error { return store.Ask(r.Context()) }))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin()
			ask.ServeHTTP(w, r)
		}), nil
	},
	crowd: func(Config) manners { return retrying(func(uint64) string { return "/" }) },
	sends: func(c Config) service.Load {
		return service.Load{Stretches: []service.Stretch{{Rate: .5 * c.Capacity(), For: c.WarmUp + c.Trigger + c.After}}}
	},
	figures: func(c Config, seen *crowd, _ *results.Run) map[string]float64 {
		over := c.WarmUp + c.Trigger
		return present(map[string]float64{
			"before":  seen.all.share(c.WarmUp/3, 2*c.WarmUp/3), // what is under way when the trouble begins is lost
			"after":   seen.all.share(over, over+c.After),
			"settled": seen.all.share(over+min(settling, c.After/2), over+c.After),
		})
	},
	expect: func(c Config, _ string) time.Duration { return c.WarmUp + c.Trigger + c.After + 4*time.Second },
}

// retrying are clients that wait a second and try three times.
func retrying(path func(n uint64) string) manners {
	return manners{path: path, patience: time.Second, tries: 3}
}
