// Package pools is the experiment that compares worker pools: the cost of submitting a
// job, of a refusal, of waiting for a result; the memory of idle workers and waiting
// jobs; a burst; and a pool without a configured size against the best fixed size.
//
// Here are the plan and the claims, and sizing, which needs no pool but Spillway's. The
// others are the program lab/contestants/pools, which the lab builds and starts.
package pools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
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

	Work      []time.Duration `group:"Size" default:"0s,1µs,20µs" help:"What a submitted job computes, at most 1ms."`
	Producers []int           `group:"Size" default:"1,0,1000" full:"1,0,64,1000" quick:"1,1000" help:"Goroutines that submit; 0 is GOMAXPROCS."`
	Workers   []int           `group:"Size" default:"2,100,1000" quick:"2,1000" help:"Workers of each pool."`
	Buffer    int             `group:"Size" default:"1024" help:"Places in the queue of every contestant with a bounded one, the plain channel included. It moves the figures more than the number of workers."`
	Rounds    int             `group:"Size" default:"5" quick:"3" help:"Turns of every contestant in each repeat."`
	Time      time.Duration   `group:"Size" default:"4ms" quick:"3ms" full:"6ms" help:"How long each turn is."`
	Jobs      int             `group:"Size" default:"1000000" quick:"100000" help:"Jobs of the burst. The claim is about a million."`
	Sizes     []int           `group:"Size" default:"1,2,4,8,16,32,64" help:"Fixed sizes that sizing compares with, in multiples of GOMAXPROCS. The claim needs all of them."`
	Settle    time.Duration   `group:"Size" default:"5s" help:"How long a pool without a number has to settle, before sizing measures it. The claim is about 5s."`
	Measure   time.Duration   `group:"Size" default:"1s" help:"How long sizing measures each pool, before and after the change."`
	MemoryCap int             `default:"2048" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

func (c Config) check() error {
	if err := experiment.Known("contestant", c.Contestant, Names); err != nil {
		return err
	}
	if err := experiment.Known("part", c.Part, parts); err != nil {
		return err
	}
	for _, f := range []struct {
		flag      string
		values    []int
		low, high int
	}{
		{"producers", c.Producers, 0, 100_000}, {"workers", c.Workers, 1, 100_000}, {"sizes", c.Sizes, 1, 1000},
		{"buffer", []int{c.Buffer}, 1, 1 << 30}, {"rounds", []int{c.Rounds}, 1, 1000}, {"jobs", []int{c.Jobs}, 1, 1 << 30}, {"memory-cap", []int{c.MemoryCap}, 0, 1 << 30},
	} {
		if len(f.values) == 0 || slices.Min(f.values) < f.low || slices.Max(f.values) > f.high {
			return fmt.Errorf("%s is %s: want numbers from %d to %d", f.flag, strings.Trim(fmt.Sprint(f.values), "[]"), f.low, f.high)
		}
	}
	switch {
	case len(c.Part) == 0:
		return fmt.Errorf("there is no part: leave the flag out for those that are usual")
	case len(c.Work) == 0 || slices.Min(c.Work) < 0 || slices.Max(c.Work) > time.Millisecond:
		return fmt.Errorf("work is %v: want durations from 0s to 1ms", c.Work)
	case c.Time <= 0 || c.Settle <= 0 || c.Measure < 100*time.Millisecond:
		return fmt.Errorf("time is %v, settle %v, measure %v: want more than 0s, more than 0s, and at least 100ms", c.Time, c.Settle, c.Measure)
	}
	return nil
}
