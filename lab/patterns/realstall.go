package patterns

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

const (
	stallRate = heldByThen / 30 // requests a second: 10,000 while the query takes
	slowOneIn = 33              // of them asks for what is locked
)

func realStallTakes(c Config, _ string) time.Duration { return 2*c.Calm + c.Stalled + 3*inTime }

// realStall is the scenario of H7 on a real database. Requests arrive at an even pace, of
// which a few read a table. After a while somebody else locks that table, as a migration
// does, and they wait for it, as long as they may.
func realStall(ctx context.Context, s *stage) (run results.Run, err error) {
	r, err := s.start(ctx, s.contestant, someConnections, 0)
	if err != nil {
		return run, err
	}
	var callers sync.WaitGroup
	loading, leave := context.WithCancel(r.Loading)
	defer func() { leave(); callers.Wait() }()
	if _, err = arrive(loading, &callers, r.clients, s.Calm); err != nil {
		return run, err
	}
	before, err := arrive(loading, &callers, r.clients, s.Calm)
	if err != nil {
		return run, err
	}
	if before.good() == 0 {
		return run, errSilent
	}
	unlock, err := s.database.Lock(ctx, "directory")
	if err != nil {
		return run, err
	}
	locked := time.Now()
	during, err := arrive(loading, &callers, r.clients, s.Stalled)
	leave()
	callers.Wait() // who were not answered in time
	if err := errors.Join(err, unlock()); err != nil {
		return run, err
	}
	run.Series, run.Elapsed, run.Extra = during.line, s.Stalled.Seconds(), map[string]float64{
		fairGood.Key: before.rate(s.Calm), ownGood.Key: during.rate(s.Stalled),
	}
	during.lookups.addShare(&run)
	if err := r.stop(ctx, &run); err != nil || run.Killed != "" {
		return run, err
	}
	addHeld(&run, r.Samples, locked, locked.Add(s.Stalled))
	addSamples(run.Series, r.Samples, locked)
	return run, nil
}

// arrivals is what became of what was sent in a while.
type arrivals struct {
	lookups, searches, directory counted

	line []results.Point
}

func (a *arrivals) good() uint64 { return a.lookups.good.Load() + a.searches.good.Load() }

func (a *arrivals) rate(d time.Duration) float64 { return float64(a.good()) / d.Seconds() }

// arrive sends requests for so long, and then waits for as long as the last of them has to
// be answered. Callers that are not answered go on waiting until ctx ends.
func arrive(ctx context.Context, callers *sync.WaitGroup, c *clients, d time.Duration) (*arrivals, error) {
	a := &arrivals{lookups: counted{target: c.lookup}, searches: counted{target: c.search}, directory: counted{target: c.directory}}
	which := func(n uint64) *counted {
		switch {
		case n%slowOneIn == 0:
			return &a.directory
		case n%5 == 1:
			return &a.lookups
		}
		return &a.searches
	}
	var before uint64
	_, err := loadgen.Run(ctx, loadgen.Config{
		Open: loadgen.Constant(stallRate, d), Interval: service.Step,
		Target: loadgen.TargetFunc(func(_ context.Context, n uint64) loadgen.Outcome {
			callers.Go(func() { which(n).Do(ctx, n) })
			return loadgen.OK // sent
		}),
		Progress: func(p loadgen.Snapshot) {
			good := a.good()
			a.line = append(a.line, results.Point{At: p.Elapsed.Seconds(), OK: good - before})
			before = good
		},
	})
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(inTime):
	case <-ctx.Done():
	}
	return a, nil
}

// addHeld adds how many operations a service held: the most, and how many more with each
// request that arrived in the last third of the time, when there are no connections left.
func addHeld(run *results.Run, samples []service.Sample, from, to time.Time) {
	from = to.Add(-to.Sub(from) / 3)
	var first, last *service.Sample
	most := 0
	for i := range samples {
		s := &samples[i]
		if most = max(most, s.InFlight); s.At.Before(from) || s.At.After(to) {
			continue
		}
		if last = s; first == nil {
			first = s
		}
	}
	if len(samples) > 0 {
		run.Extra[mostGoroutines.Key] = float64(most)
	}
	if last != nil && last.At.After(first.At) {
		run.Extra[growth.Key] = float64(last.InFlight-first.InFlight) / (last.At.Sub(first.At).Seconds() * stallRate)
	}
}
