// Package burst is experiment B: a million jobs a second, offered to a goroutine
// for each job, to the shape of a published pool, to a plain channel and to
// Spillway. Each runs in a separate process under a memory cap.
package burst

import (
	"context"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment B.
var Experiment = experiment.Declare(family, help, Config.plan, Roles())

const help = `A thousand generators offer a million jobs a second. A job allocates 500 KB, touches every page of it and then takes another 20 ms. Nothing can do all of that; the question is what happens to the rest, and to the machine.

Each contestant is a process of its own, generators included, under a memory cap; naive is expected to be killed by it. They are: a goroutine for each job (naive); our rendition of the published pool (100 to 5,000 workers, a queue of 100,000, growing by a quarter a second while that is 70 % full, refusing by a timeout of 1 µs: published-shape); a channel with as many workers and places (channel); workerpool.New(workerpool.Config{}) (spillway), the same with buffers from objectpool (spillway-reused), and that told 4,600 workers and a queue of 1,000 (spillway-sized), which bounds its memory.

Generators are paced: each submits every 20 ms what has become due, so that the rate is really offered. Where it cannot be, the run says "generator-bound", what was reached, and why. Latency counts from the submission, refusals are timed apart, and processor time is read from the clocks of threads and from the runtime.

The published claims are about the published pool, so naive and it get the published 30 seconds. The others get one second, to stand beside it; the goals that are ours to reach are decided at the full size only.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `group:"Size" placeholder:"NAME" whole:"naive,published-shape" help:"Only these: naive, published-shape, channel, spillway, spillway-reused, spillway-sized. Claims that need another one stay open."`
	Time       time.Duration `group:"Size" default:"30s" quick:"1s" full:"30s" least:"10ms" most:"1h" help:"How long the burst is for naive and for the published shape, which grows for 18 seconds."`
	OthersTime time.Duration `group:"Size" default:"1s" quick:"500ms" full:"30s" least:"10ms" most:"1h" help:"How long the burst is for the other contestants."`
	Rate       float64       `group:"Size" default:"1000000" quick:"20000" full:"1000000" above:"0" most:"100000000" help:"Submissions a second, of all generators together."`
	Generators int           `group:"Size" default:"1000" least:"1" help:"Goroutines that submit."`
	Work       `embed:""`
	MemoryCap  int `placeholder:"MIB" default:"0" least:"0" help:"Memory that a contestant may use, in MiB; 0: half of the machine's."`
}

const (
	roleBurst     = "burst" // of every contestant
	setup         = "published"
	load          = "the burst"
	publishedTime = 30 * time.Second // of the burst
)

// at is the cell of a contestant.
func at(name string) ledger.Key { return ledger.Key{Setup: setup, Load: load, Pattern: name} }

// Roles are the roles of the contestants and of the demonstrations.
func Roles() map[string]contestant.Role {
	roles := demonstrations.Roles()
	roles[roleBurst] = contestant.Server(run)
	return roles
}

func (c Config) plan() (experiment.Plan, error) {
	plan := experiment.Plan{Demos: demonstrations.Demos()}
	for _, name := range Names() {
		if len(c.Contestant) > 0 && !slices.Contains(c.Contestant, name) {
			continue
		}
		burst := c.OthersTime
		if name == Naive || name == Published {
			burst = c.Time
		}
		cell := experiment.Cell{Setup: setup, Load: load, Pattern: name, Expect: c.expect(name, burst),
			Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) { return c.run(ctx, name, burst) }}
		plan.Cells = append(plan.Cells, cell)
		// One side of every comparison has a twin. The goals are decided only in a full burst.
		if cell.Twin = true; name == Naive || reuses(name) && c.OthersTime >= publishedTime {
			plan.Cells = append(plan.Cells, cell)
		}
	}
	return plan, experiment.Known("contestant", c.Contestant, Names())
}

// expect is roughly how long a contestant takes: naive until it is killed, those with
// the published queue until that is empty.
func (c Config) expect(name string, burst time.Duration) time.Duration {
	drain := min(c.Rate*burst.Seconds(), 100_000) / 25_000 // a second, on two processors
	switch name {
	case Naive:
		return min(burst+time.Second, 8*time.Second)
	case Published, Channel:
		return burst + time.Duration(drain*float64(time.Second))
	}
	return burst + 200*time.Millisecond
}
