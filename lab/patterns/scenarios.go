package patterns

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/postgres"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/load/loadgen"
)

const (
	OnSQLite   = "SQLite" // in words, and how the set-ups begin
	OnPostgres = "PostgreSQL"
)

// The scenarios that the source tells of services without a bound, as set-ups.
const (
	Crowd           = OnPostgres + ", a database of 100 connections" // H6
	Lock            = OnPostgres + ", a query that takes 30 s"       // H7-adaptive
	Neighbours      = OnPostgres + ", two services on one database"  // H8
	NeighboursAlike = OnSQLite + ", two services on one database"    // H8
)

// The contestants there: the service's own API, which bounds nothing, or as many as the
// published pool has workers, or what it finds out.
const (
	Unprotected = "unprotected"           // a goroutine for every request, and as many connections as there are queries
	Unqueued    = "unprotected, queueing" // a goroutine for every request, which waits for one of the connections
	Pooled      = "pooled"                // a pool of the published size
	Told        = "pooled, told"          // a pool that was told how many connections there are
	Adaptive    = "adaptive"              // no number given
	Nobody      = "nobody"                // the neighbour has the database for itself
)

// scenario is one of them.
type scenario struct {
	name, setup, load string // the name is that of --scenario; empty: over SQLite
	contestants       []string
	takes             func(c Config, contestant string) time.Duration
	play              func(context.Context, *stage) (results.Run, error)
	beside            string // those of one name play at the same time, because nearly all of it is waiting
}

const besideOf = "beside 5,000 clients of"

var scenarios = []scenario{
	{"crowd", Crowd, "all users at once", []string{Unprotected, Pooled, Told, Adaptive}, crowdTakes, crowd, ""},
	{"stall", Lock, "333 requests a second", []string{Unqueued, Pooled, Adaptive}, lockTakes, lock, Lock},
	{"neighbours", Neighbours, besideOf, []string{Nobody, Unprotected, Pooled, Adaptive}, neighboursTake, neighbours, ""},
	{"", NeighboursAlike, besideOf, []string{Nobody, Unqueued, Pooled}, alikeTakes, neighbours, ""},
}

// find is the scenario that is this set-up.
func find(setup string) scenario {
	return scenarios[slices.IndexFunc(scenarios, func(s scenario) bool { return s.setup == setup })]
}

// keyOf is a cell of the scenario that is this set-up.
func keyOf(setup, contestant string) ledger.Key {
	return ledger.Key{Setup: setup, Load: find(setup).load, Pattern: contestant}
}

// keys are the cells that the user wants. What the neighbour does alone on PostgreSQL has a
// twin, and is nothing without one to compare it with.
func (s scenario) keys(c Config) (out []ledger.Key) {
	for _, name := range s.contestants {
		if name == Nobody && slices.ContainsFunc(s.contestants[1:], c.wants) || name != Nobody && c.wants(name) {
			out = append(out, keyOf(s.setup, name).AndTwin(name == Nobody && s.name != "")...)
		}
	}
	return out
}

// scenes are the cells of the scenarios: those over SQLite, whose file is made by then, and
// with a server those on PostgreSQL.
func (c Config) scenes(file *string) (out []experiment.Cell) {
	for _, s := range scenarios {
		if s.name == "" && len(c.Scenario) > 0 || s.name != "" && (c.Postgres == "" || !experiment.Wanted(c.Scenario, s.name)) {
			continue
		}
		for _, k := range s.keys(c) {
			out = append(out, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: s.beside, Expect: process + s.takes(c, k.Pattern),
				Run: func(ctx context.Context, _ experiment.Trial) (run results.Run, err error) {
					ctx, end := context.WithCancel(ctx)
					defer end() // of the services, too, if the run fails
					play := func(d *postgres.Database) error {
						run, err = s.play(ctx, &stage{c, k.Pattern, d, *file})
						run.Params = c.params()
						return err
					}
					if s.name == "" {
						err = play(nil)
					} else {
						err = c.Postgres.With(ctx, postgres.Population{Patients: scarcePatients}, play)
					}
					return run, cmp.Or(err, ctx.Err())
				}})
		}
	}
	return out
}

// params are the settings that the claims need.
func (c Config) params() map[string]any {
	return map[string]any{"users": float64(c.Users), "workers": float64(cmp.Or(c.Workers, someWorkers))}
}

// checkScenarios says what is wrong with what was asked of PostgreSQL.
func (c Config) checkScenarios() error {
	if len(c.Scenario) > 0 && c.Postgres == "" {
		return errors.New("scenario is for a real database: name its server with --postgres, or set " + postgres.Env + " (scripts/ensure-postgres.sh starts one)")
	}
	return cmp.Or(c.Postgres.Check(), experiment.Known("scenario", c.Scenario, []string{"crowd", "stall", "neighbours"}))
}

// errSilent is of a service that did not even answer when all was well.
var errSilent = errors.New("the service answered nothing before anything happened")

// calmBefore is longer for a service that has to find out how much it can do.
func (c Config) calmBefore(contestant string) time.Duration {
	if contestant == Adaptive {
		return 3 * c.Calm
	}
	return c.Calm
}

// crowdLasts is four fifths of what the connections need for all users, so that there is
// always somebody left to answer.
func (c Config) crowdLasts() time.Duration {
	return max(time.Duration(float64(c.Users)/MaxConnections*float64(c.MinLatency+c.MaxLatency)/2*4/5), time.Second)
}

func crowdTakes(c Config, contestant string) time.Duration {
	return c.calmBefore(contestant) + c.crowdLasts()
}

const criticalRate = 50 // look-ups a second for patients at hand, all the time

// crowd is the scenario of H6. First as many clients search as there are connections: the
// capacity. Then all users search at the same moment, and each does so again until it is
// answered. Meanwhile some look-ups are critical.
func crowd(ctx context.Context, s *stage) (run results.Run, err error) {
	r, err := s.start(ctx, s.contestant, someConnections, 0)
	if err != nil {
		return run, err
	}
	calm, lasts := s.calmBefore(s.contestant), s.crowdLasts()
	before, err := loadgen.Run(r.Loading, loadgen.Config{Target: r.search, Closed: &loadgen.Closed{Clients: someConnections, Duration: calm}, Interval: service.Step})
	if err != nil {
		return run, err
	}
	crowded, end := context.WithTimeout(r.Loading, lasts)
	defer end()
	critical, users := &counted{target: r.lookup}, &counted{target: r.search}
	var beside sync.WaitGroup
	var failed error
	beside.Go(func() {
		_, failed = loadgen.Run(crowded, loadgen.Config{Target: critical, Open: loadgen.Constant(criticalRate, lasts-min(inTime, lasts/2)), Timeout: inTime})
	})
	res, err := loadgen.Run(crowded, loadgen.Config{Target: loadgen.TargetFunc(users.insist), Closed: &loadgen.Closed{Clients: s.Users, Requests: uint64(s.Users)}, Interval: service.Step})
	beside.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return run, err
	}
	run.Series, run.Elapsed, run.Extra = experiment.FromLoad(res).Series, lasts.Seconds(), map[string]float64{
		fairGood.Key: experiment.GoodSince(before, calm-s.Calm/2),
		ownGood.Key:  float64(users.good.Load()+critical.good.Load()) / lasts.Seconds(),
	}
	critical.addShare(&run)
	if run.Extra[fairGood.Key] == 0 {
		return run, errSilent
	}
	return run, r.stop(ctx, &run)
}

const (
	lockRate  = 333 // requests a second: 10,000 in 30 s
	slowOneIn = 33  // of them asks for what is locked
)

func lockTakes(c Config, _ string) time.Duration { return 2*c.Calm + c.Stalled + 3*inTime }

// lock is the scenario of H7. Of the requests a few read a table. After a while somebody else
// locks that table, as a migration does, and they wait for it, as long as they may.
func lock(ctx context.Context, s *stage) (run results.Run, err error) {
	r, err := s.start(ctx, s.contestant, someConnections, 0)
	if err != nil {
		return run, err
	}
	if _, err = r.arrive(s.Calm); err != nil {
		return run, err
	}
	before, err := r.arrive(s.Calm)
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
	during, err := r.arrive(s.Stalled)
	if err := errors.Join(err, unlock()); err != nil {
		return run, err
	}
	run.Elapsed, run.Extra = s.Stalled.Seconds(), map[string]float64{
		fairGood.Key: before.good() / s.Calm.Seconds(), ownGood.Key: during.good() / s.Stalled.Seconds(),
	}
	during.lookups.addShare(&run)
	return run, r.stop(ctx, &run)
}

// arrivals is what became of what was sent in a while.
type arrivals struct{ lookups, searches, directory counted }

func (a *arrivals) good() float64 { return float64(a.lookups.good.Load() + a.searches.good.Load()) }

// arrive sends requests for so long, and then waits for as long as the last of them has to
// be answered. What is not answered by then is given up.
func (r *running) arrive(d time.Duration) (*arrivals, error) {
	a := &arrivals{lookups: counted{target: r.lookup}, searches: counted{target: r.search}, directory: counted{target: r.directory}}
	ctx, end := context.WithTimeout(r.Loading, d+inTime)
	defer end()
	_, err := loadgen.Run(ctx, loadgen.Config{Open: loadgen.Constant(lockRate, d), Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
		switch {
		case n%slowOneIn == 0:
			return a.directory.Do(ctx, n)
		case n%5 == 1:
			return a.lookups.Do(ctx, n)
		}
		return a.searches.Do(ctx, n)
	})})
	return a, err
}

const (
	fewClients  = 40    // of the neighbour: they keep its pool busy
	manyClients = 5_000 // of the service beside it

	// renewed is when a service closes a connection of PostgreSQL and opens another: services
	// do so after minutes, so that a server that was away for a while gets its share again.
	renewed = 2 * time.Second
)

func neighboursTake(c Config, _ string) time.Duration { return c.Calm + c.Beside }

// alikeTakes is shorter: over SQLite nobody has to find out how much the service can do.
func alikeTakes(c Config, _ string) time.Duration { return c.Calm/8 + c.Beside/5 }

// neighbours is the scenario of H8: two services, each in a process of its own, ask one
// database, as one role. The one that is looked at has a pool of the published size; what the
// other has is the contestant. It may be nobody.
func neighbours(ctx context.Context, s *stage) (run results.Run, err error) {
	looked, err := s.start(ctx, Pooled, 0, renewed)
	if err != nil {
		return run, err
	}
	calm, lasts := s.Calm, neighboursTake(s.Config, "")
	if s.database == nil {
		calm, lasts = s.Calm/8, alikeTakes(s.Config, "")
	}
	loading, end := context.WithTimeout(looked.Loading, lasts+inTime)
	defer end()
	stops := []*running{looked}
	var others sync.WaitGroup
	var failed error
	run.Extra = map[string]float64{}
	if s.contestant != Nobody {
		other, err := s.start(ctx, s.contestant, shared, renewed)
		if err != nil {
			return run, err
		}
		stops = append(stops, other)
		crowd := &counted{target: other.search}
		others.Go(func() {
			ctx, end := context.WithTimeout(loading, lasts)
			defer end()
			_, failed = loadgen.Run(ctx, loadgen.Config{Target: loadgen.TargetFunc(crowd.insist), Closed: &loadgen.Closed{Clients: manyClients, Duration: lasts}})
			run.Extra["beside_good"] = float64(crowd.good.Load()) / lasts.Seconds()
		})
	}
	users := &counted{target: looked.search}
	res, err := loadgen.Run(loading, loadgen.Config{Target: users, Closed: &loadgen.Closed{Clients: fewClients, Duration: lasts}, Interval: service.Step})
	end() // of the crowd's last requests
	others.Wait()
	if err := cmp.Or(err, failed); err != nil {
		return run, err
	}
	if users.good.Load() == 0 && s.contestant == Nobody {
		return run, errSilent
	}
	run.Series, run.Elapsed, run.Extra[neighbourGood.Key] = experiment.FromLoad(res).Series, (lasts - calm).Seconds(), experiment.GoodSince(res, calm)
	for _, r := range stops { // the contestant's process and whether it was killed stay
		if err := r.stop(ctx, &run); err != nil {
			return run, err
		}
	}
	return run, nil
}

// The figures.
var (
	withoutConnection  = ledger.Extra("without_connection", "requests without a connection")
	refusedConnections = ledger.Extra("refused_connections", "connections that PostgreSQL refused")
	fairGood           = ledger.Extra("fair_good", "good answers a second without it")
	ownGood            = ledger.Extra("own_good", "good answers a second")
	criticalShare      = ledger.Extra("critical_share", "share of the critical look-ups answered well in time")
	neighbourGood      = ledger.Extra("neighbour_good", "the neighbour's good answers a second")
)
