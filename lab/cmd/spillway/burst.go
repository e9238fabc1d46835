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

	Contestant []string `env:"SPILLWAY_LAB_BURST_CONTESTANT" placeholder:"NAME" help:"Only these: naive, published-shape, channel, spillway, spillway-reused, spillway-sized. Claims that need another one stay open."`

	labRun `embed:"" set:"id=B" set:"memory=0" set:"no_cap=half of the machine's" set:"memory_env=SPILLWAY_LAB_BURST_MEMORY_CAP"`
}

// Help teaches.
func (labBurstCmd) Help() string {
	return `A thousand generators offer a million jobs a second. A job allocates 500 KB, touches every page of it and then takes another 20 ms. Nothing can do all of that; the question is what happens to the rest, and to the machine.

Each contestant is a process of its own, generators included, under a memory cap; naive is expected to be killed by it. They are: a goroutine for each job (naive); our rendition of the published pool (100 to 5,000 workers, a queue of 100,000, growing by a quarter a second while that is 70 % full, refusing by a timeout of 1 µs: published-shape); a channel with as many workers and places (channel); workerpool.New(workerpool.Config{}) (spillway), the same with buffers from objectpool (spillway-reused), and that told 4,600 workers and a queue of 1,000 (spillway-sized), which bounds its memory.

Generators are paced: each submits every 20 ms what has become due, so that the rate is really offered. Where it cannot be, the run says "generator-bound", what was reached, and why. Latency counts from the submission, refusals are timed apart, and processor time is read from the clocks of threads and from the runtime.

A burst is scaled by its length alone; rate, generators and sizes stay.

Examples:
  spillway lab B                          four minutes; up to half of the machine's memory
  spillway lab B --seconds 2 --memory-cap 3000
  spillway lab B --full                   the published 30 seconds
  spillway lab B --contestant spillway --contestant naive
  spillway lab judge spillway-results/…   verdicts again, from the raw runs

` + labEnds
}

func (c *labBurstCmd) Run(env *environment) error {
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
	config.Rate, config.Generators, config.MemoryCap = c.Rate, c.Generators, c.bytes()
	return c.run(env, burst.Experiment{Config: config})
}
