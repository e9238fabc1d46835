package stories

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limiter"
)

const (
	backWithin = 100 * time.Millisecond // all clients come back
	healthy    = 90                     // per cent of the requests answered
)

// herd is a restart with an empty cache, for which all clients wait.
var herd = story{
	name: "herd", load: "1.5x", waits: true,
	service: func(j job, f *front) (http.Handler, error) {
		store := service.NewDatabase(j.Work, j.Seed)
		var cached sync.Map
		admit, err := f.admit(limiter.Config{}, 0)
		if err != nil {
			return nil, err
		}
		return admit(answering(func(r *http.Request) error {
			if _, hit := cached.Load(r.URL.Path); hit {
				return nil
			}
			err := store.Ask(r.Context())
			if err == nil {
				cached.Store(r.URL.Path, true)
			}
			return err
		})), nil
	},
	crowd: func(c Config) manners {
		keys := uint64(4 * c.Capacity()) // the database needs four seconds for them
		return retrying(func(n uint64) string { return fmt.Sprintf("/%d", n*7919%max(keys, 1)) })
	},
	sends: func(c Config) service.Load {
		return service.Load{Measured: 1, Stretches: []service.Stretch{
			{Rate: clientCount / backWithin.Seconds(), For: backWithin}, {Rate: 1.5 * c.Capacity(), For: 2 * c.Time},
		}}
	},
	figures: func(_ Config, seen *crowd, _ *results.Run) map[string]float64 {
		at, ever := seen.all.recovered(healthy)
		never := 1.
		if ever {
			never = 0
		}
		return map[string]float64{"recovery_s": at.Seconds(), "never": never}
	},
	expect: func(c Config, _ string) time.Duration { return 2*c.Time + 4*time.Second },
}
