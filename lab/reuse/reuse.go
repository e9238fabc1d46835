// Package reuse is the experiment that measures the value of reusing objects:
// allocated, from sync.Pool, from a channel, and from objectpool; in a steady cycle and
// in bursts; what is held afterwards, and the memory after one outlier.
package reuse

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleCycle:   contestant.Func(cycle),
	roleBursts:  contestant.Func(Bursts),
	roleOutlier: contestant.Func(outlier),
})

const (
	roleCycle   = "reuse-cycle"
	roleBursts  = "reuse-bursts"
	RoleIdle    = "reuse-idle" // Burst, figures: of the program virtual
	roleOutlier = "reuse-outlier"
)

const help = `Objects are made fresh, taken from sync.Pool, from a channel of 1,000, from objectpool.Pool and from objectpool.Buffers. In a steady cycle (get, write 1 KB, clear, put) all take turns in one process, at 1, GOMAXPROCS and 1,000 goroutines. In bursts, with two collections in every gap, all users hold 64 KiB each. Then it is measured what a pool holds after a minute without use, which passes in virtual time, and what one object of 64 MiB leaves in resident memory.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `placeholder:"NAME" help:"Only these: fresh, sync.Pool, channel, spillway, spillway-buffers. Claims that need another one stay open."`
	Size       []int         `group:"Size" default:"1024,65536,500000" help:"Sizes of the objects of the steady cycles, in bytes. Claims are about 1024 and 500000."`
	Rounds     int           `group:"Size" default:"15" full:"31" quick:"5" help:"How often every contestant has its turn in a steady cycle, in each repeat."`
	Time       time.Duration `group:"Size" default:"10ms" quick:"3ms" help:"How long a turn is."`
	Users      int           `group:"Size" default:"1000" help:"Goroutines of a burst, each holding an object of 64 KiB. Beside the outlier it is a fifth of them."`
	Bursts     int           `group:"Size" default:"6" full:"10" quick:"4" help:"How many bursts there are. The first one makes the objects and does not count."`
	On         time.Duration `group:"Size" default:"100ms" help:"How long a burst is."`
	Off        time.Duration `group:"Size" default:"300ms" help:"How long the gap after a burst is."`
	Idle       time.Duration `group:"Size" default:"1m" help:"How long a pool is not used before one looks at what it still holds."`
	MemoryCap  int           `default:"4096" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
}

func (c Config) check() error {
	switch {
	case len(c.Size) == 0 || slices.Min(c.Size) < 1 || slices.Max(c.Size) > 1<<20:
		return fmt.Errorf("size is %v: want bytes from 1 to %d, or leave the flag out for all sizes", c.Size, 1<<20)
	case c.Rounds < 3 || c.Time <= 0:
		return fmt.Errorf("rounds is %d and time %v: want at least 3, and more than 0s", c.Rounds, c.Time)
	case c.Users < 1 || c.Bursts < 2 || c.On <= 0 || c.Off < 0 || c.Idle <= 0:
		return fmt.Errorf("users is %d, bursts %d, on %v, off %v and idle %v: want at least 1, at least 2, more than 0s, at least 0s, and more than 0s", c.Users, c.Bursts, c.On, c.Off, c.Idle)
	case c.MemoryCap < 0:
		return fmt.Errorf("memory-cap is %d: want a number of MiB, or 0 for no limit", c.MemoryCap)
	}
	return experiment.Known("contestant", c.Contestant, names)
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	if len(c.Contestant) == 0 {
		c.Contestant = names
	}
	p := experiment.Plan{Programs: []contestant.Spec{c.spec(RoleIdle, nil)}}
	for _, crowd := range crowds {
		p.Groups = append(p.Groups, c.cycles(crowd))
	}
	add := func(k ledger.Key, role string, job any, expect time.Duration) {
		p.Cells = append(p.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: expect, Run: experiment.Alone(c.spec(role, job))})
	}
	for _, name := range c.Contestant {
		job := Burst{Contestant: name, Users: c.Users, Bursts: c.Bursts, On: c.On, Off: c.Off}
		add(burstKey(name), roleBursts, job, time.Duration(c.Bursts)*(c.On+c.Off))
		if name == spillway {
			job.Bursts, job.Idle = 2, c.Idle
			add(idleKey, RoleIdle, job, time.Second)
		}
		users := max(c.Users/5, 1)
		add(outlierKey(name, true), roleOutlier, outlierJob{name, true, users}, time.Second)
		without := outlierKey(name, false)
		add(without, roleOutlier, outlierJob{name, false, users}, time.Second)
		if ours(name) {
			without.Twin = true
			add(without, roleOutlier, outlierJob{name, false, users}, time.Second)
		}
	}
	return p, nil
}

func (c Config) spec(role string, job any) contestant.Spec {
	s := contestant.Spec{Role: role, Input: job, MemoryCap: uint64(c.MemoryCap) << 20}
	if role == RoleIdle {
		s.Program = "virtual"
	}
	return s
}

// crowds are who uses a pool in a steady cycle.
var crowds = []string{"1 goroutine", "GOMAXPROCS goroutines", "1,000 goroutines"}

// cycles are the steady cycles of all contestants and sizes, by the same goroutines.
func (c Config) cycles(crowd string) experiment.Group {
	goroutines := map[string]int{crowds[0]: 1, crowds[1]: runtime.GOMAXPROCS(0), crowds[2]: 1000}
	job := cycleJob{Goroutines: goroutines[crowd], Rounds: c.Rounds, Time: c.Time}
	g := experiment.Group{Label: "steady cycles by " + crowd + ", in turns"}
	for _, size := range c.Size {
		for _, name := range c.Contestant {
			k := cycleKey(name, size, crowd)
			g.Keys, job.Players = append(g.Keys, k), append(job.Players, player{name, size})
			if k.Twin = ours(name) && size == small; k.Twin {
				g.Keys, job.Players = append(g.Keys, k), append(job.Players, player{name, size})
			}
		}
	}
	const between = 3 * time.Millisecond // turns, for a collection
	g.Expect = time.Duration(len(g.Keys)*(c.Rounds+2)) * (c.Time + between)
	g.Run = func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
		job.Seed = t.Seed
		var readings [][]turns.Reading
		exit, err := contestant.Run(ctx, c.spec(roleCycle, job), &readings)
		runs := experiment.InTurns(g.Keys, exit, readings, map[string]func(turns.Reading) float64{"ns": turns.Nanos, "mallocs": turns.Mallocs})
		mine := map[int][]float64{} // Spillway's times, by size
		for i, of := range job.Players {
			if of.Contestant == spillway {
				mine[of.Size] = runs[i].Blocks["ns"]
			}
		}
		for i, of := range job.Players {
			if behind := slices.Clone(mine[of.Size]); behind != nil && !ours(of.Contestant) {
				for round, ns := range runs[i].Blocks["ns"] {
					behind[round] /= ns
				}
				ledger.Keep(&runs[i], "behind", behind)
			}
		}
		return runs, err
	}
	return g
}
