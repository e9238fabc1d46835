package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/burst"
)

type labBurstCmd struct {
	Full       bool    `env:"SPILLWAY_LAB_FULL" group:"Size" help:"The published 30 seconds, some eight minutes for three repeats."`
	Seconds    float64 `env:"SPILLWAY_LAB_BURST_SECONDS" group:"Size" placeholder:"S" help:"How long the burst is; 10 unless given. Shorter bursts leave the published pool less time to grow."`
	Rate       float64 `env:"SPILLWAY_LAB_BURST_RATE" group:"Size" default:"1000000" help:"Submissions a second, of all generators together."`
	Generators int     `env:"SPILLWAY_LAB_BURST_GENERATORS" group:"Size" default:"1000" help:"Goroutines that submit."`
	Repeats    int     `env:"SPILLWAY_LAB_REPEATS" group:"Size" default:"3" help:"How often everything is run, interleaved; a verdict needs at least 3."`

	Contestant []string `env:"SPILLWAY_LAB_BURST_CONTESTANT" placeholder:"NAME" help:"Only these: naive, published-shape, channel, spillway, spillway-reused, spillway-sized. Claims that need another one stay open."`
	MemoryCap  int      `env:"SPILLWAY_LAB_BURST_MEMORY_CAP" default:"0" placeholder:"MIB" help:"Memory a contestant may use, in MiB (Linux only); above it is killed, which is a result. 0: half of the machine's."`
	Seed       uint64   `env:"SPILLWAY_LAB_SEED" default:"0" help:"Of the order of the runs and the judge's bootstrap; 0 picks one and says which."`
	Out        string   `env:"SPILLWAY_LAB_OUT" placeholder:"DIR" help:"Where the results go; ./spillway-results/B-<time> unless given. Must not hold results yet."`
	JSON       bool     `name:"json" env:"SPILLWAY_LAB_JSON" help:"Print results.json on standard output; progress stays on standard error."`
}

// Help teaches.
func (labBurstCmd) Help() string {
	return `A thousand generators offer a million jobs a second. A job allocates 500 KB, touches every page of it and then takes another 20 ms. Nothing can do all of that; the question is what becomes of the rest, and of the machine.

Each contestant is a process of its own, generators included, under a memory cap; naive is expected to be killed by it. They are: a goroutine for each job (naive); our rendition of the published pool (100 to 5,000 workers, a queue of 100,000, growing by a quarter a second while that is 70 % full, refusing by a timeout of 1 µs: published-shape); a channel with as many workers and places (channel); workerpool.New(workerpool.Config{}) (spillway), the same with buffers from objectpool (spillway-reused), and that told 4,000 workers and no queue (spillway-sized).

Generators are paced: each submits every 20 ms what has become due, so that the rate is really offered. Where it cannot be, the run says "generator-bound", what was reached, and why. Latency counts from the submission, refusals are timed apart, and processor time is read from the clocks of threads and from the runtime.

A burst is scaled by its length alone; rate, generators and sizes stay.

Examples:
  spillway lab B                          four minutes; up to half of the machine's memory
  spillway lab B --seconds 2 --memory-cap 3000
  spillway lab B --full                   the published 30 seconds
  spillway lab B --contestant spillway --contestant naive
  spillway lab judge spillway-results/…   verdicts again, from the raw runs

Files and exit codes: as in 'spillway lab run --help'.`
}

func (c *labBurstCmd) Run(env *environment) error {
	run := labRun{c.Out, c.Repeats, c.Seed, c.MemoryCap, c.JSON}
	if err := run.check(); err != nil {
		return badInput(err)
	}
	config := burst.Defaults()
	if c.Full {
		config = burst.Full()
	}
	if c.Seconds != 0 {
		config.Burst = time.Duration(c.Seconds * float64(time.Second))
	}
	if c.Contestant != nil {
		config.Contestants = c.Contestant
	}
	config.Rate, config.Generators, config.MemoryCap = c.Rate, c.Generators, uint64(c.MemoryCap)<<20
	return run.run(env, burst.Experiment{Config: config})
}
