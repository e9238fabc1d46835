// Package fan is experiment F: a lookup in a database and caches, one after the other
// or at once. It compares a published parallel version as printed, the same corrected,
// usual code with errgroup and conc, and package fanout; and it measures the
// break-even of this machine.
//
// Here are the plan and the claims. What is measured is the program
// lab/contestants/fan, which the lab builds and starts.
package fan

import (
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/experiment"
)

// Experiment is the declaration. This program plays none of its roles.
var Experiment = experiment.Declare(family, help, plan, nil)

const help = `A store asks a database and caches for users and merges what they answer. Asked one after the other (sequential) it takes the sum of their times, asked at once the longest, plus what goroutines cost. Which is faster depends on how long a source takes, on whether it waits or computes, and on whether a second processor is free.

The other contestants are: a published parallel version, which reads the cache's answer before it has waited for it (as-printed; what it loses is counted), the same with that one mistake fixed (corrected), errgroup, conc, and fanout.New(fanout.Config{}) (spillway), which chooses between the two by itself.

The published sizes, 50/50 ms, 500/100 µs and 5/1 µs, are run in virtual time, where waiting is exact and computing free, and computing in real time, with all processors and with one. A grid of equal branches gives the break-even of this machine: how long each must take for goroutines to pay. Claims about a free second processor use only rounds in which there was one. Further: allocations, fan-out within fan-out, a workload that changes, and hedging of stragglers.

All contestants of a table take turns in one process; ratios are taken within a turn. Spillway and the corrected code run twice, so that what they differ from themselves shows the noise. A table lists where Spillway is slower.`

// Config is what a user may set.
type Config struct {
	Grid    bool            `env:"SPILLWAY_LAB_FAN_GRID" group:"Size" full:"true" help:"Branches of the grid from 0.5 µs to 50 ms, in virtual time too."`
	Sources []int           `short:"n" env:"SPILLWAY_LAB_FAN_SOURCES" group:"Size" default:"2,8,64" quick:"2,8" help:"Sources of a lookup: one database, the rest caches."`
	Branch  []time.Duration `env:"SPILLWAY_LAB_FAN_BRANCH" group:"Size" quick:"1µs,20µs,100µs,1ms" placeholder:"D" help:"How long each source of the grid takes; 1µs to 1ms unless given, 0.5µs to 50ms with --grid."`
	Rounds  int             `env:"SPILLWAY_LAB_FAN_ROUNDS" group:"Size" default:"5" quick:"3" help:"Turns of every contestant in each repeat."`
	Time    time.Duration   `env:"SPILLWAY_LAB_FAN_TIME" group:"Size" default:"3ms" quick:"1ms" full:"5ms" help:"How long each turn is."`
	Calls   int             `env:"SPILLWAY_LAB_FAN_CALLS" group:"Size" default:"20000" quick:"5000" help:"Lookups with hedging, in virtual time."`

	Contestant []string `env:"SPILLWAY_LAB_FAN_CONTESTANT" placeholder:"NAME" help:"Only these: spillway, sequential, as-printed, corrected, errgroup, conc. Claims that need another one stay open."`
	MemoryCap  int      `env:"SPILLWAY_LAB_FAN_MEMORY_CAP" default:"2048" help:"Memory that a process may use, in MiB (Linux only); above it is killed. 0: no cap."`
}

// branches are the durations of the grid, ascending.
func (c Config) branches() []time.Duration {
	const µs = time.Microsecond
	switch {
	case len(c.Branch) > 0:
		return slices.Sorted(slices.Values(c.Branch))
	case c.Grid:
		return []time.Duration{µs / 2, µs, 2 * µs, 5 * µs, 10 * µs, 20 * µs, 50 * µs, 100 * µs, 200 * µs, 500 * µs, 1000 * µs, 5000 * µs, 10_000 * µs, 50_000 * µs}
	}
	return []time.Duration{µs, 5 * µs, 20 * µs, 50 * µs, 100 * µs, 200 * µs, 500 * µs, 1000 * µs}
}

// kinds are the kinds of work of the grid.
var kinds = []string{Computing, OneProc, Yielding, Virtual}

func (c Config) check() error {
	switch {
	case len(c.Sources) == 0 || slices.Min(c.Sources) < 2 || slices.Max(c.Sources) > 256:
		return fmt.Errorf("sources is %d: want numbers from 2 to 256", c.Sources)
	case len(c.Branch) > 0 && (slices.Min(c.Branch) < 100*time.Nanosecond || slices.Max(c.Branch) > time.Second):
		return fmt.Errorf("branch is %v: want durations from 100ns to 1s", c.Branch)
	case c.Rounds < 1 || c.Time <= 0:
		return fmt.Errorf("rounds is %d and time %v: want at least 1 and more than 0s", c.Rounds, c.Time)
	case c.Calls < 500:
		return fmt.Errorf("calls is %d: want at least 500, for a p99", c.Calls)
	case c.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d MiB: want 0 or more", c.MemoryCap)
	}
	return experiment.Known("contestant", c.Contestant, Names)
}
