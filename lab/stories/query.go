package stories

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/admissionhttp"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

const (
	reportTime = 100 * time.Millisecond // before it is slow

	// The paths: a tenth of the requests asks for a report, a fifth is critical.
	report, lookup, list = "/report", "/lookup", "/list"
	queryShare           = .35 // of the capacity is what they send
)

// query is one kind of query that becomes slow and takes the connections from the others.
var query = story{
	name: "query", load: "0.35x", waits: true,
	service: func(j job, f *front) (http.Handler, error) {
		pool := make(connections, j.Slots)
		var slow atomic.Bool
		begin := sync.OnceFunc(func() { time.AfterFunc(j.WarmUp, func() { slow.Store(true) }) })
		reports, err := f.admit(limiter.Config{Law: limit.NewFixed(reportsAtOnce(j.Slots)), QueueSize: reportsAtOnce(j.Slots)}, 0)
		if err != nil {
			return nil, err
		}
		others, err := f.admit(limiter.Config{QueueSize: othersAtOnce(j.Slots)}, othersAtOnce(j.Slots))
		if err != nil {
			return nil, err
		}
		quick := others(answering(func(r *http.Request) error { return pool.query(r.Context(), (j.Min+j.Max)/2) }))
		mux := http.NewServeMux()
		mux.Handle(report, reports(answering(func(r *http.Request) error {
			takes := reportTime
			if slow.Load() {
				takes = j.Query
			}
			return pool.query(r.Context(), takes)
		})))
		mux.Handle(lookup, admissionhttp.WithPriority(spillway.Critical, quick))
		mux.Handle(list, quick)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			begin()
			mux.ServeHTTP(w, r)
		}), nil
	},
	crowd: func(c Config) manners {
		path := func(n uint64) string {
			switch {
			case n%10 == 0:
				return report
			case n%5 == 1:
				return lookup
			}
			return list
		}
		return manners{path: path, critical: lookup, patience: c.Query, tries: 1}
	},
	sends: func(c Config) service.Load {
		return service.Load{Stretches: []service.Stretch{{Rate: queryShare * c.Capacity(), For: c.WarmUp + 2*c.Query}}}
	},
	figures: func(c Config, seen *crowd, _ *results.Run) map[string]float64 {
		return present(map[string]float64{
			"critical": seen.vital.share(c.WarmUp, c.WarmUp+2*c.Query),
			"backlog":  queryShare * c.Capacity() * c.Query.Seconds(),
			"bound":    float64(2 * (reportsAtOnce(c.Slots) + othersAtOnce(c.Slots))), // as many may wait as run
		})
	},
	expect: func(c Config, _ string) time.Duration { return c.WarmUp + 3*c.Query + time.Second },
}

// The protected service is told these: reports get half of the connections, and all others
// together are no more than twice as many as there are.
func reportsAtOnce(connections int) int { return max(1, connections/2) }
func othersAtOnce(connections int) int  { return 2 * connections }

// connections are those of a pool: so many queries at a time, the others wait.
type connections chan struct{}

func (c connections) query(ctx context.Context, takes time.Duration) error {
	select {
	case c <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-c }()
	return service.Pause(ctx, takes)
}
