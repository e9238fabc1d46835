// Package pools is the experiment that compares worker pools: the cost of submitting a
// job, of a refusal, of waiting for a result; the memory of idle workers and waiting
// jobs; a burst; and a pool without a configured size against the best fixed size.
//
// Here are the plan and the claims, and sizing, which needs no pool but Spillway's. The
// others are the program lab/contestants/pools, which the lab builds and starts.
package pools

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/bouts"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleSizing: contestant.Func(playSized),
})

const roleSizing = "pools-sizing"

const help = `What does a worker pool cost beside a bare channel, golang.org/x/sync/semaphore, errgroup, ants, pond, conc, gammazero/workerpool and tunny? Measured are jobs that do nothing, compute 1 µs or 20 µs, handed over by 1 or 1,000 producers to 2 to 1,000 workers; submissions to a full pool; results that a caller waits for; the memory of an idle worker and of a queued job; and a burst of a million jobs that wait 10 ms, on 5,000 workers.

With --sizing, or --full, a pool without a number also stands beside fixed sizes, under work that computes, waits, or both, 5 s after the start and after a change, which takes longer than all the rest together.

All contestants of a table take turns in one process; ratios are taken within a turn, and Spillway runs twice, so that its difference from itself shows the noise. On a machine with other load, trust ratios and allocations, not nanoseconds. A table lists where Spillway is slower.

The same contestants are plain benchmarks, for benchstat: go test ./lab/contestants/pools -run '^$' -bench Submit -count 10 | benchstat -col /pool -`

// Config is what a user may set.
type Config struct {
	Rounds int           `group:"Size" default:"5" quick:"3" whole:"4" least:"1" most:"1000" help:"Turns of every contestant in each repeat."`
	Time   time.Duration `group:"Size" default:"4ms" quick:"3ms" whole:"3ms" full:"6ms" above:"0s" help:"How long each turn is."`
	Jobs   int           `group:"Size" default:"1000000" quick:"100000" least:"1" most:"1073741824" help:"Jobs of the burst. The claim is about a million."`
	Sizing bool          `group:"Size" full:"true" help:"Also compare a pool without a number with fixed sizes."`
}

// Set-ups, in the words of the report.
const (
	setupRefuse = "refusal by a full pool"
	setupCall   = "a typed result"
	setupBurst  = "burst"
)

func setupSubmit(work time.Duration) string {
	if work == 0 {
		return "no-op jobs"
	}
	return strings.Replace(work.String(), "µs", " µs", 1) + " jobs"
}

func boutLoad(producers, workers int) string { return fmt.Sprintf("%d→%d", producers, workers) }

func burstLoad(jobs int) string {
	return fmt.Sprintf("%d x %v, %d workers", jobs, burstWork, burstWorkers)
}

// What a burst is made of.
const (
	burstJobs    = 1_000_000 // that the claim is about
	burstWorkers = 5000
	burstWork    = 10 * time.Millisecond
)

func plan(c Config) (experiment.Plan, error) {
	p := experiment.Plan{Programs: []contestant.Spec{spec(RoleSubmit, nil)}}
	for _, producers := range oneOrCrowd {
		for _, work := range []time.Duration{0, time.Microsecond, 20 * time.Microsecond} {
			c.bouts(&p, setupSubmit(work), RoleSubmit, Submitters, Bout{Producers: producers, Work: work}, all...)
		}
		c.bouts(&p, setupRefuse, RoleRefuse, Refusers, Bout{Producers: producers}, 2) // the size of a full pool does not matter
	}
	for _, producers := range slices.Compact([]int{1, runtime.GOMAXPROCS(0), 1000}) {
		c.bouts(&p, setupCall, RoleCall, Callers, Bout{Producers: producers}, few...)
	}
	for _, name := range Submitters {
		p.Alone(ledger.Key{Setup: "memory", Load: "1,000 workers, 100,000 jobs", Pattern: name}, 300*time.Millisecond, spec(RoleMemory, name))
	}
	for _, name := range flooded {
		f := Flood{name, c.Jobs, burstWorkers, burstWork}
		for _, k := range (ledger.Key{Setup: setupBurst, Load: burstLoad(c.Jobs), Pattern: name}).AndTwin(name == Spillway) {
			p.Alone(k, f.Ideal()*5/4+3*Idle, spec(RoleBurst, f))
		}
	}
	if c.Sizing {
		sizing(&p)
	}
	return p, nil
}

// spec starts a role of the program.
func spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "pools", Role: role, Input: input, MemoryCap: 2 << 30}
}

// bouts adds a table of contestants who do the same with every number of workers.
func (c Config) bouts(p *experiment.Plan, setup, role string, able []string, b Bout, workers ...int) {
	t := bouts.Table[Bout]{
		Config: turns.Config{Rounds: c.Rounds, Time: c.Time, Least: 2 * b.Producers}, Spec: spec(role, nil), Versus: ns.Key,
		Figures: experiment.Figures{ns.Key: turns.Nanos, allocs.Key: turns.Mallocs, "bytes": turns.Bytes},
	}
	procs := runtime.GOMAXPROCS(0)
	if role == RoleSubmit && b.Producers > procs {
		// Until nearly all producers have waited once, a submission is up to three times
		// as slow and allocates. In a longer turn that is a small part.
		t.Rounds, t.Time = min(c.Rounds, 3), 5*c.Time
		if b.Work == 0 {
			t.Time *= 2
		}
	}
	for _, b.Workers = range workers {
		for _, b.Contestant = range able {
			t.Add(ledger.Key{Setup: setup, Load: boutLoad(b.Producers, b.Workers), Pattern: b.Contestant}, b.Contestant == Spillway, b)
		}
	}
	t.Label = fmt.Sprintf("%s by %d producers, contestants in turns", setup, b.Producers)
	// Start, warm-up and collection take as long as the block, in which each producer has two jobs at least.
	t.Takes = 2 * max(t.Time, time.Duration(t.Least)*b.Work/time.Duration(procs))
	t.To(p)
}
