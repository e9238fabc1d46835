// Package budget is the experiment that puts one budget above the limiters of several
// replicas: leased, asked for at each admission, or not at all.
package budget

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Config.plan, nil)

const help = `Several replicas of a service, each a process of its own, may admit so many pieces of work at a time and so many a second together. Leases of clusterlimit on NATS JetStream are compared with asking the engine for each admission, and with no shared budget, where each replica has a limiter with the whole number.

First the work takes no time, and admissions are counted. Then it takes some milliseconds, more of it comes than may run, and a referee in memory that the processes share counts what truly runs at a time: undisturbed, while one replica is cut off from the engine, and after one was stopped by SIGSTOP for longer than its lease and goes on.`

// The contestants.
const (
	Leases = "leases"
	Closed = "leases, failing closed"
	Each   = "asking for each"
	Alone  = "no shared budget"
)

var contestants = []string{Leases, Closed, Each, Alone}

// The roles of the program: an engine is ready with its URL, a replica takes a Replica.
const (
	RoleEngine  = "budget-engine"
	RoleReplica = "budget-replica"
	program     = "budget"
)

// Config is what a user may set.
type Config struct {
	Replicas int           `group:"Size" default:"8" quick:"3" least:"3" most:"64" help:"How many there are. The goal is about 8."`
	Slots    int           `group:"Size" default:"100" least:"1" most:"10000" help:"How much may run at a time."`
	Rate     int           `group:"Size" default:"2000000" least:"1" most:"100000000" help:"How much may be admitted in a second, where the work takes no time."`
	Clients  int           `group:"Size" default:"32" least:"1" most:"1000" help:"How many clients of each replica ask at a time, where the work takes time."`
	Work     time.Duration `group:"Size" default:"5ms" above:"0s" help:"How long it takes."`
	Lease    time.Duration `group:"Size" default:"1s" quick:"500ms" least:"300ms" help:"For how long a lease is good."`
	Time     time.Duration `group:"Size" default:"1s" full:"3s" quick:"500ms" above:"0s" help:"How long each measurement is."`
}

// Replica is the input of one.
type Replica struct {
	Contestant  string
	URL         string // of the engine
	Referee     string // the file of the memory that all share
	Index       int
	Slots, Rate int
	Clients     int
	Work, Lease time.Duration
}

const (
	setupRate  = "work that takes no time"
	setupWork  = "work that takes time"
	load       = "more than may be admitted"
	warmUp     = 2 // leases
	restClient = 4 // of each replica, where the work takes no time
)

func key(setup, contestant string) ledger.Key {
	return ledger.Key{Setup: setup, Load: load, Pattern: contestant}
}

func (c Config) plan() (experiment.Plan, error) {
	p := experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleReplica}}}
	for _, g := range []struct {
		setup, label string
		takes        time.Duration // of one contestant
		run          func(Config, context.Context, string) (results.Run, error)
	}{
		{setupRate, "admissions a second", warmUp*c.Lease + c.Time + time.Second, Config.rates},
		{setupWork, "what runs at a time", (warmUp+cutLeases+backLeases+stopLeases)*c.Lease + 2*c.Time + time.Second, Config.works},
	} {
		group := experiment.Group{Label: g.label}
		var names []string
		for _, name := range contestants {
			if g.setup == setupRate && name == Closed {
				continue // differs only while it is cut off
			}
			for _, k := range key(g.setup, name).AndTwin(g.setup == setupRate && name == Leases) {
				group.Keys, names = append(group.Keys, k), append(names, name)
				group.Expect += g.takes
			}
		}
		group.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			runs := make([]results.Run, len(names))
			for _, i := range rand.New(rand.NewPCG(t.Seed, 5)).Perm(len(names)) {
				var err error
				if runs[i], err = g.run(c, ctx, names[i]); err != nil {
					return nil, fmt.Errorf("%s: %w", names[i], err)
				}
				runs[i].Params = map[string]any{"replicas": c.Replicas, "slots": c.Slots, "rate": c.Rate, "lease_s": c.Lease.Seconds()}
			}
			return runs, nil
		}
		p.Groups = append(p.Groups, group)
	}
	return p, nil
}

// Measure runs everything once.
func (c Config) Measure(ctx context.Context, seed uint64) (all []results.Run, err error) {
	p, err := c.plan()
	for _, g := range p.Groups {
		if err == nil {
			var runs []results.Run
			runs, err = g.Run(ctx, experiment.Trial{Seed: seed})
			for i, r := range runs {
				r.Setup, r.Load, r.Pattern, r.Twin = g.Keys[i].Setup, g.Keys[i].Load, g.Keys[i].Pattern, g.Keys[i].Twin
				all = append(all, r)
			}
		}
	}
	return all, err
}
