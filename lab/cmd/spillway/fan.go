package main

import (
	"time"

	"github.com/spillway-go/spillway/lab/fan"
)

type labFanCmd struct {
	Grid  bool `env:"SPILLWAY_LAB_FAN_GRID" group:"Size" help:"Branches from 0.5 µs to 50 ms, computing and waiting, with a heat map in the report."`
	Quick bool `env:"SPILLWAY_LAB_FAN_QUICK" group:"Size" help:"Two and eight sources, five durations, short rounds, a minute or two."`

	N      []int           `short:"n" env:"SPILLWAY_LAB_FAN_N" group:"Size" placeholder:"N" help:"Sources of a lookup, one database and the rest caches; 2, 8 and 64 unless given."`
	Branch []time.Duration `env:"SPILLWAY_LAB_FAN_BRANCH" group:"Size" placeholder:"D" help:"How long each source of the grid takes; 1µs to 1ms unless given, 0.5µs to 50ms with --grid."`
	Rounds int             `env:"SPILLWAY_LAB_FAN_ROUNDS" group:"Size" placeholder:"N" help:"Turns of every contestant in each repeat; 5 unless given."`
	Time   time.Duration   `env:"SPILLWAY_LAB_FAN_TIME" group:"Size" placeholder:"D" help:"How long each turn is; 5ms unless given."`
	Calls  int             `env:"SPILLWAY_LAB_FAN_CALLS" group:"Size" placeholder:"N" help:"Lookups with hedging, in virtual time; 20000 unless given."`

	Contestant []string `env:"SPILLWAY_LAB_FAN_CONTESTANT" placeholder:"NAME" help:"Only these: spillway, sequential, as-printed, corrected, errgroup, conc. Claims that need another one stay open."`

	labRun `embed:"" set:"id=F" set:"seeds=stragglers, the order of the turns" set:"subject=a process"`
}

// Help teaches.
func (labFanCmd) Help() string {
	return `A store asks a database and caches for users and merges what they answer. Asked one after the other (sequential) it takes the sum of their times, asked at once the longest, plus what goroutines cost. Which is faster depends on how long a source takes, on whether it waits or computes, and on whether a second processor is free.

The other contestants are: a published parallel version, which reads the cache's answer before it has waited for it (as-printed; what it loses is counted), the same with that one mistake fixed (corrected), errgroup, conc, and fanout.New(fanout.Config{}) (spillway), which chooses between the two by itself.

The published sizes, 50/50 ms, 500/100 µs and 5/1 µs, are run in virtual time, where waiting is exact and computing free, and computing in real time, with all processors and with one. A grid of equal branches gives the break-even of this machine: how long each must take for goroutines to pay. Figures for a free second processor use only rounds in which there was one. Further: allocations, fan-out within fan-out, a workload that changes, and hedging of stragglers.

All contestants of a table take turns in one process; ratios are taken within a turn, and Spillway runs twice, so that its difference from itself shows the noise. A table lists where Spillway is slower.

Examples:
  spillway lab F                        three to four minutes
  spillway lab F --quick                about a minute
  spillway lab F --grid                 six to eight minutes, with heat maps
  spillway lab F --grid --quick         a short run of it
  spillway lab F --grid -n 2            a slice of it: so too -n 8, -n 64, --branch
  spillway lab F -n 2 --branch 30µs --branch 300µs
  spillway lab judge spillway-results/… verdicts again, from the raw runs

The same contestants as plain benchmarks, for benchstat:
  go test ./lab/fan -run '^$' -bench Lookup -count 10 | benchstat -col /contestant -

` + labEnds
}

func (c *labFanCmd) Run(env *environment) error {
	config := fan.Defaults()
	if c.Quick {
		config = fan.Quick()
	}
	config.Grid = c.Grid
	if c.N != nil {
		config.Sources = c.N
	}
	if c.Branch != nil {
		config.Branches = c.Branch
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
	if c.Calls != 0 {
		config.Calls = c.Calls
	}
	config.MemoryCap = c.bytes()
	return c.run(env, fan.Experiment{Config: config})
}
