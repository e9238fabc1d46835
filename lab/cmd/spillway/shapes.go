package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/shapes"
)

type labShapesCmd struct {
	BenchTime time.Duration `env:"SPILLWAY_LAB_SHAPES_BENCHTIME" name:"benchtime" group:"Size" default:"300ms" help:"Auto-scaled: batches grow until one takes at least that long."`
	Ops       int           `env:"SPILLWAY_LAB_SHAPES_OPS" group:"Size" default:"1000000" help:"By the wall clock: units of work in the one batch."`
	Buffer    []int         `env:"SPILLWAY_LAB_SHAPES_BUFFER" group:"Size" placeholder:"N" help:"Only these buffers of the channels; 0, 1 and 128 unless given."`
	Workers   []int         `env:"SPILLWAY_LAB_SHAPES_WORKERS" group:"Size" placeholder:"N" help:"Only pools of these sizes; 10, 100 and 1000 unless given. Claims that speak of others stay open."`
	Requests  int           `env:"SPILLWAY_LAB_SHAPES_REQUESTS" group:"Size" default:"6000" help:"Requests where the reuse of objects and of goroutines is compared."`

	labRun `embed:"" set:"id=G" set:"repeats=5"`
}

// Help teaches.
func (labShapesCmd) Help() string {
	return `The smallest work there is, an integer addition whose result must reach the caller, in five shapes: done at once (Serial), by a goroutine for each with a channel (SpawnPerRequestChan) or a WaitGroup (SpawnPerRequestWG), by N workers on one channel (PoolSharedChan_N) or with a channel each (PoolPerWorkerChan_N). What is measured is the handing over. The size of the channels' buffers moves the pools more than their number of workers, so it is a set-up of its own.

Every shape is measured twice: auto-scaled, as package testing does it, with the start of the workers left out; and as one batch by the wall clock, cold, with everything. Whether the two disagree is one of the claims.

Two more questions are about real work: under which bound CPU-bound tasks of some 15 µs are done fastest, by a pool, a semaphore or a dispatcher; and whether the reuse of objects saves more processor time a request than the reuse of goroutines, for the patient API of experiment H and for the 500 KB jobs of experiment B.

Examples:
  spillway lab G                              four minutes on two cores
  spillway lab G --benchtime 1s --repeats 10  narrower intervals
  spillway lab G --buffer 0 --workers 10
  spillway lab judge spillway-results/…       verdicts again, from the raw runs

The same as plain benchmarks, for benchstat: go test ./lab/shapes -run '^$' -bench . -benchmem -count 10

` + labEnds
}

func (c *labShapesCmd) Run(env *environment) error {
	config := shapes.Defaults()
	if c.Buffer != nil {
		config.Buffers = c.Buffer
	}
	if c.Workers != nil {
		config.Workers = c.Workers
	}
	config.BenchTime, config.Ops, config.Requests, config.MemoryCap = c.BenchTime, c.Ops, c.Requests, c.bytes()
	return c.run(env, shapes.Experiment{Config: config})
}
