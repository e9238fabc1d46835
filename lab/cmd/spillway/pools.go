package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/pools"
)

type labPoolsCmd struct {
	Quick bool `env:"SPILLWAY_LAB_POOLS_QUICK" group:"Size" help:"Fewer producers and workers, short rounds, a small burst and no sizing, less than a minute."`

	Producers []int           `env:"SPILLWAY_LAB_POOLS_PRODUCERS" group:"Size" placeholder:"N" help:"Goroutines that submit; 0 is GOMAXPROCS. 1, 0, 64 and 1000 unless given."`
	Workers   []int           `env:"SPILLWAY_LAB_POOLS_WORKERS" group:"Size" placeholder:"N" help:"Workers of each pool; 2, 100 and 1000 unless given."`
	Work      []time.Duration `env:"SPILLWAY_LAB_POOLS_WORK" group:"Size" placeholder:"D" help:"What a submitted job computes, at most 1ms; 0s, 1µs and 20µs unless given."`
	Buffer    int             `env:"SPILLWAY_LAB_POOLS_BUFFER" group:"Size" default:"1024" help:"Places in the queue of every contestant with a bounded one, the plain channel included. It moves the figures more than the number of workers."`
	Rounds    int             `env:"SPILLWAY_LAB_POOLS_ROUNDS" group:"Size" placeholder:"N" help:"Turns of every contestant in each repeat; 5 unless given."`
	Time      time.Duration   `env:"SPILLWAY_LAB_POOLS_TIME" group:"Size" placeholder:"D" help:"How long each turn is; 6ms unless given."`

	Part       []string `env:"SPILLWAY_LAB_POOLS_PART" placeholder:"NAME" help:"Only these parts: submit, refuse, call, memory, burst, sizing."`
	Contestant []string `env:"SPILLWAY_LAB_POOLS_CONTESTANT" placeholder:"NAME" help:"Only these: spillway, channel, semaphore, errgroup, ants, pond, conc, gammazero, tunny. Claims that need another one stay open."`

	labRun `embed:"" set:"id=pools" set:"seeds=arrivals, the order of the turns" set:"subject=a process"`
}

// Help teaches.
func (labPoolsCmd) Help() string {
	return `What does a worker pool cost beside a bare channel, golang.org/x/sync/semaphore, errgroup, ants, pond, conc, gammazero/workerpool and tunny? Six parts:

submit: jobs that do nothing, compute 1 µs or 20 µs, handed over by 1 to 1,000 producers to 2 to 1,000 workers; time and allocations for each job. refuse: submissions to a full pool. call: results that a caller waits for. memory: of an idle worker and of a queued job. burst: a million jobs that wait 10 ms, on 5,000 workers. sizing: a pool without a number beside fixed sizes, under work that computes, waits, or both, 5 s after the start and after a change.

All contestants of a table take turns in one process; ratios are taken within a turn, and Spillway runs twice, so that its difference from itself shows the noise. On a machine with other load, trust ratios and allocations, not nanoseconds. A table lists where Spillway is slower.

Examples:
  spillway lab pools                               six minutes
  spillway lab pools --quick                       less than one
  spillway lab pools --part submit --buffer 16     is it the queue?
  spillway lab pools --part sizing --repeats 5
  spillway lab judge spillway-results/…            verdicts again, from the raw runs

The same contestants as plain benchmarks, for benchstat:
  go test ./lab/contestants/pools -run '^$' -bench Submit -count 10 | benchstat -col /pool -

` + labEnds
}

func (c *labPoolsCmd) Run(env *environment) error {
	config := pools.Defaults()
	if c.Quick {
		config = pools.Quick()
	}
	for _, list := range []struct {
		given []int
		into  *[]int
	}{{c.Producers, &config.Producers}, {c.Workers, &config.Workers}} {
		if list.given != nil {
			*list.into = list.given
		}
	}
	if c.Work != nil {
		config.Works = c.Work
	}
	if c.Part != nil {
		config.Parts = c.Part
	}
	if c.Contestant != nil {
		config.Contestants = c.Contestant
	}
	if c.Rounds != 0 {
		config.Rounds = c.Rounds
	}
	if c.Time != 0 {
		config.Time = c.Time
	}
	config.Buffer, config.MemoryCap = c.Buffer, c.bytes()
	return c.run(env, pools.Experiment{Config: config})
}
