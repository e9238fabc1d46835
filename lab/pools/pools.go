// Package pools is the experiment that compares worker pools: the cost of submitting a
// job, of a refusal, of waiting for a result; the memory of idle workers and waiting
// jobs; a burst; and a pool without a configured size against the best fixed size.
//
// Here are the plan and the claims, and sizing, which needs no pool but Spillway's. The
// others are the program lab/contestants/pools, which the lab builds and starts.
package pools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleSizing: contestant.Func(func(ctx context.Context, s sized) ([]results.Run, error) { return s.play(ctx) }),
})

const roleSizing = "pools-sizing"

const help = `What does a worker pool cost beside a bare channel, golang.org/x/sync/semaphore, errgroup, ants, pond, conc, gammazero/workerpool and tunny? There are six parts.

submit: jobs that do nothing, compute 1 µs or 20 µs, handed over by 1 to 1,000 producers to 2 to 1,000 workers; time and allocations for each job. refuse: submissions to a full pool. call: results that a caller waits for. memory: of an idle worker and of a queued job. burst: a million jobs that wait 10 ms, on 5,000 workers. sizing: a pool without a number beside fixed sizes, under work that computes, waits, or both, 5 s after the start and after a change; it takes longer than all others together, and runs with --full or --part sizing.

All contestants of a table take turns in one process; ratios are taken within a turn, and Spillway runs twice, so that its difference from itself shows the noise. On a machine with other load, trust ratios and allocations, not nanoseconds. A table lists where Spillway is slower.

The same contestants are plain benchmarks, for benchstat: go test ./lab/contestants/pools -run '^$' -bench Submit -count 10 | benchstat -col /pool -`

var parts = []string{"submit", "refuse", "call", "memory", "burst", "sizing"}

// Config is what a user may set.
type Config struct {
	Part       []string `default:"submit,refuse,call,memory,burst" full:"submit,refuse,call,memory,burst,sizing" placeholder:"NAME" help:"Only these: submit, refuse, call, memory, burst, sizing."`
	Contestant []string `placeholder:"NAME" help:"Only these: spillway, channel, semaphore, errgroup, ants, pond, conc, gammazero, tunny. Claims that need another one stay open."`

	Work      []time.Duration `group:"Size" default:"0s,1µs,20µs" least:"0s" most:"1ms" help:"What a submitted job computes, at most 1ms."`
	Producers []int           `group:"Size" default:"1,0,1000" full:"1,0,64,1000" quick:"1,1000" least:"0" most:"100000" help:"Goroutines that submit; 0 is GOMAXPROCS."`
	Workers   []int           `group:"Size" default:"2,100,1000" quick:"2,1000" least:"1" most:"100000" help:"Workers of each pool."`
	Buffer    int             `group:"Size" default:"1024" least:"1" most:"1073741824" help:"Places in the queue of every contestant with a bounded one, the plain channel included. It moves the figures more than the number of workers."`
	Rounds    int             `group:"Size" default:"5" quick:"3" whole:"4" least:"1" most:"1000" help:"Turns of every contestant in each repeat."`
	Time      time.Duration   `group:"Size" default:"4ms" quick:"3ms" whole:"3ms" full:"6ms" above:"0s" help:"How long each turn is."`
	Jobs      int             `group:"Size" default:"1000000" quick:"100000" least:"1" most:"1073741824" help:"Jobs of the burst. The claim is about a million."`
	Sizes     []int           `group:"Size" default:"1,2,4,8,16,32,64" least:"1" most:"1000" help:"Fixed sizes that sizing compares with, in multiples of GOMAXPROCS. The claim needs all of them."`
	Settle    time.Duration   `group:"Size" default:"5s" above:"0s" help:"How long a pool without a number has to settle, before sizing measures it. The claim is about 5s."`
	Measure   time.Duration   `group:"Size" default:"1s" least:"100ms" help:"How long sizing measures each pool, before and after the change."`
	MemoryCap int             `default:"2048" placeholder:"MIB" least:"0" most:"1073741824" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
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

// planner collects what is measured.
type planner struct {
	Config
	experiment.Plan
}

func plan(c Config) (experiment.Plan, error) {
	names, err := experiment.Chosen(c.Contestant, Names)
	switch err = cmp.Or(err, experiment.Known("part", c.Part, parts)); {
	case err != nil:
		return experiment.Plan{}, err
	case len(c.Part) == 0:
		return experiment.Plan{}, errors.New("there is no part: leave the flag out for those that are usual")
	}
	c.Contestant, c.Producers = names, slices.Clone(c.Producers)
	for i, n := range c.Producers {
		c.Producers[i] = cmp.Or(n, runtime.GOMAXPROCS(0))
	}
	c.Part, c.Work, c.Producers, c.Workers, c.Sizes = ascending(c.Part), ascending(c.Work), ascending(c.Producers), ascending(c.Workers), ascending(c.Sizes)
	p := &planner{Config: c, Plan: experiment.Plan{Programs: []contestant.Spec{c.spec(RoleSubmit, nil)}}}
	for _, part := range c.Part {
		switch part {
		case "submit":
			for _, work := range c.Work {
				p.bouts(setupSubmit(work), RoleSubmit, work, Submitters, c.Workers)
			}
		case "refuse": // the size of a full pool does not matter
			p.bouts(setupRefuse, RoleRefuse, 0, Refusers, c.Workers[:1])
		case "call":
			p.bouts(setupCall, RoleCall, 0, Callers, c.Workers[:min(2, len(c.Workers))])
		case "memory":
			for _, k := range p.keys("memory", "1,000 workers, 100,000 jobs", Submitters) {
				if !k.Twin {
					p.Alone(k, 300*time.Millisecond, p.spec(RoleMemory, k.Pattern))
				}
			}
		case "burst":
			for _, k := range p.keys(setupBurst, burstLoad(c.Jobs), flooded) {
				f := Flood{k.Pattern, c.Jobs, burstWorkers, c.Buffer, burstWork}
				p.Alone(k, f.Ideal()*5/4+3*Idle, p.spec(RoleBurst, f))
			}
		case "sizing":
			p.sizing()
		}
	}
	return p.Plan, nil
}

// spec starts a role of the program.
func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "pools", Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20}
}

// keys are the cells of the chosen contestants that are able to do it, Spillway's twice.
func (c Config) keys(setup, load string, able []string) (out []ledger.Key) {
	for _, name := range able {
		if slices.Contains(c.Contestant, name) {
			out = append(out, ledger.Key{Setup: setup, Load: load, Pattern: name}.AndTwin(name == Spillway)...)
		}
	}
	return out
}

// ascending are the values in order, each once.
func ascending[T cmp.Ordered](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// bouts adds a table for every number of producers, with every contestant and number of
// workers.
func (p *planner) bouts(setup, role string, work time.Duration, able []string, workers []int) {
	procs := runtime.GOMAXPROCS(0)
	for _, producers := range p.Producers {
		b := Bout{Work: work, Producers: producers, Rounds: p.Rounds, Time: p.Time, Buffer: p.Buffer}
		if role == RoleSubmit && producers > procs {
			// Until nearly all producers have waited once, a submission is up to three times
			// as slow and allocates. In a longer turn that is a small part.
			b.Rounds, b.Time = min(p.Rounds, 3), 5*p.Time
			if work == 0 {
				b.Time *= 2
			}
		}
		var keys []ledger.Key
		for _, n := range workers {
			for _, k := range p.keys(setup, boutLoad(producers, n), able) {
				keys, b.Entries = append(keys, k), append(b.Entries, Entry{k.Pattern, n})
			}
		}
		if len(keys) == 0 {
			continue
		}
		// Each producer has two jobs at least. Finding out the size of a block takes four;
		// start, warm-up and collection as long as the block.
		block := max(b.Time, time.Duration(2*producers)*work/time.Duration(procs))
		p.Groups = append(p.Groups, experiment.Group{
			Keys: keys, Label: fmt.Sprintf("%s by %d producers, %d contestants in turns", setup, producers, len(keys)),
			Expect: time.Duration(len(keys)*(b.Rounds+4)*2)*block + 200*time.Millisecond,
			Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
				b.Seed = t.Seed
				runs, err := experiment.Play(ctx, keys, p.spec(role, b), experiment.Figures{"ns": turns.Nanos, "allocs": turns.Mallocs, "bytes": turns.Bytes})
				experiment.Behind(keys, runs, "ns")
				return runs, err
			},
		})
	}
}
