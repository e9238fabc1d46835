package patterns

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// renewed is when a service closes a connection and opens another: services do so after
// minutes, so that a server that was away for a while gets its share again.
const renewed = 2 * time.Second

func realNeighboursTake(c Config, _ string) time.Duration { return c.Calm + c.Beside }

// realNeighbours is the scenario of H8 on a real database: two services, each in a process
// of its own, ask one database as one role. The one that is looked at has a pool of the
// published size; what the other has is the contestant.
func realNeighbours(ctx context.Context, s *stage) (run results.Run, err error) {
	looked, err := s.start(ctx, Pooled, 0, renewed)
	if err != nil {
		return run, err
	}
	var other *running
	if s.contestant != Nobody {
		if other, err = s.start(ctx, s.contestant, shared, renewed); err != nil {
			return run, err
		}
	}
	lasts := s.Calm + s.Beside
	loading, end := context.WithTimeout(looked.Loading, lasts+inTime)
	defer end()
	users, crowd := new(counted), new(counted)
	var beside sync.WaitGroup
	var failed error
	if other != nil {
		crowd.target = other.search
		beside.Go(func() { failed = crowdOf(loading, crowd, lasts) })
	}
	users.target = looked.search
	res, err := loadgen.Run(loading, loadgen.Config{Target: users, Closed: &loadgen.Closed{Clients: fewClients, Duration: lasts}, Interval: service.Step})
	end() // of the crowd's last requests
	beside.Wait()
	if err == nil && users.good.Load() == 0 && s.contestant == Nobody {
		err = errSilent
	}
	if err := cmp.Or(err, failed); err != nil {
		return run, err
	}
	run.Series, run.Elapsed, run.Extra = experiment.FromLoad(res).Series, s.Beside.Seconds(), map[string]float64{neighbourGood.Key: experiment.GoodSince(res, s.Calm)}
	if other != nil {
		run.Extra["beside_good"] = float64(crowd.good.Load()) / lasts.Seconds()
		if err := other.stop(ctx, &run); err != nil {
			return run, err
		}
	}
	besideRefused, process, killed := run.Extra[refusedConnections.Key], run.Process, run.Killed
	if err := looked.stop(ctx, &run); err != nil {
		return run, err
	}
	if other != nil {
		run.Process, run.Killed = process, killed
		run.Extra[refusedConnections.Key] += besideRefused
	}
	return run, nil
}

// crowdOf is clients that ask one after the other, and less often while they are refused.
func crowdOf(ctx context.Context, users *counted, d time.Duration) error {
	ctx, end := context.WithTimeout(ctx, d)
	defer end()
	_, err := loadgen.Run(ctx, loadgen.Config{
		Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome { return persistent(ctx, users, n) }),
		Closed: &loadgen.Closed{Clients: manyClients, Duration: d},
	})
	return err
}
