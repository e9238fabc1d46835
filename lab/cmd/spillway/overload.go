package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/overload"
)

type labOverloadCmd struct {
	Quick bool `env:"SPILLWAY_LAB_OVERLOAD_QUICK" group:"Size" help:"Three loads and two seconds each, about three minutes."`

	Load     []float64     `env:"SPILLWAY_LAB_OVERLOAD_LOAD" group:"Size" placeholder:"X" help:"Only these loads, as multiples of the measured capacity; 0.5, 0.9, 1.5, 2, 5 and 10 unless given."`
	WarmUp   time.Duration `env:"SPILLWAY_LAB_OVERLOAD_WARM_UP" group:"Size" placeholder:"D" help:"The same load before each measurement; 3s unless given."`
	Measure  time.Duration `env:"SPILLWAY_LAB_OVERLOAD_MEASURE" group:"Size" placeholder:"D" help:"How long each measurement is; 5s unless given."`
	Deadline time.Duration `env:"SPILLWAY_LAB_OVERLOAD_DEADLINE" group:"Size" default:"1s" help:"How long a client waits for its answer; it tells the service so."`
	Slots    int           `env:"SPILLWAY_LAB_OVERLOAD_SLOTS" group:"Size" default:"10" help:"Lookups that the database does at full speed at one time; with c of them its total falls to √(slots/c)."`
	MinWork  time.Duration `env:"SPILLWAY_LAB_OVERLOAD_MIN_WORK" group:"Size" default:"20ms" help:"Least time a lookup takes alone."`
	MaxWork  time.Duration `env:"SPILLWAY_LAB_OVERLOAD_MAX_WORK" group:"Size" default:"60ms" help:"Most time a lookup takes alone."`
	Patients int           `env:"SPILLWAY_LAB_OVERLOAD_PATIENTS" group:"Size" default:"10000" help:"Patients in the SQLite file, which is made on first use and kept in your cache folder."`

	Contestant []string `env:"SPILLWAY_LAB_OVERLOAD_CONTESTANT" placeholder:"NAME" help:"Only these: none, semaphore, semaphore-try, semaphore-4x, workerpool, failsafe, spillway. Claims that need another one stay open."`

	labRun `embed:"" set:"id=overload" set:"seeds=arrivals, lookups, the order of the runs"`
}

// Help teaches.
func (labOverloadCmd) Help() string {
	return `The patient API over HTTP and SQLite, in a process of its own, is offered 0.5 to 10 times what it can do, by clients that do not wait for each other (open loop, Poisson). Each waits a second for its answer and says so in a header; every fifth request is critical and says so too. The bottleneck is a database with a knee: ten lookups at a time run at full speed, some 250 a second; beyond that they share it, and the sharing costs, so that four times too many halve the total.

The contestants bound the lookup by: nothing (none); golang.org/x/sync/semaphore of exactly the right size, waiting as long as the deadline allows (semaphore) or refusing at once (semaphore-try), and four times too large (semaphore-4x); a worker pool of the right size (workerpool); failsafe-go's adaptive limiter with priorities (failsafe); limiter.New(limiter.Config{}) (spillway).

Examples:
  spillway lab overload                     ten minutes on two cores
  spillway lab overload --quick             three minutes
  spillway lab overload --load 2 --contestant semaphore --contestant spillway
  spillway lab judge spillway-results/…     verdicts again, from the raw runs

` + labEnds
}

func (c *labOverloadCmd) Run(env *environment) error {
	config := overload.Defaults()
	if c.Quick {
		config = overload.Quick()
	}
	if c.Load != nil {
		config.Loads = c.Load
	}
	if c.Contestant != nil {
		config.Contestants = c.Contestant
	}
	if c.WarmUp != 0 {
		config.WarmUp = c.WarmUp
	}
	if c.Measure != 0 {
		config.Measure = c.Measure
	}
	config.Deadline, config.Patients, config.MemoryCap = c.Deadline, c.Patients, c.bytes()
	config.Work = overload.Work{Slots: c.Slots, Min: c.MinWork, Max: c.MaxWork}
	return c.run(env, overload.Experiment{Config: config})
}
