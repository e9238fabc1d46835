// Package burst is experiment B: a hundred thousand jobs a second for each processor,
// offered to a goroutine for each job, to the shape of a published pool, to a plain channel
// and to Spillway. Each runs in a separate process under a memory cap.
package burst

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment B.
var Experiment = experiment.Declare(family, help, Config.plan, Roles())

const help = `A thousand generators offer a hundred thousand jobs a second for each processor: a million on ten, as published. A job allocates 500 KB, touches every page of it and then takes another 20 ms. Nothing can do all of that; the question is what happens to the rest, and to the machine.

Each contestant is a process of its own, generators included, under a memory cap. A goroutine for each job (naive) is expected to be killed by the cap: 11 times what the pool took in the same repeat, or half of the machine's memory where that is less. The published naive run sleeps after each submission and stops itself above 12 GB (naive-stopped). The others are: our rendition of the published pool (100 to 5,000 workers, a queue of 100,000, growing by a quarter a second while that is 70 % full, refusing by a timeout of 1 µs: published-shape); a channel with 1,000 workers and as many places (channel); workerpool.New(workerpool.Config{}) (spillway) and that told the numbers of the channel (spillway-sized). What ends with reused, and spillway-sized, reuses the buffers.

The generators share one schedule: whichever is free submits what has become due. What could not be offered in time is counted, and the run says "generator-bound" where it was more than a twentieth. Latency counts from the submission, refusals are timed apart, and processor time is read from the clocks of threads and from the runtime. Jobs that are not done a second after the burst are left.

The published claims are about the published pool, so naive and it get the published 30 seconds. The others get half a second, to stand beside it; the goals that are ours to reach are decided at the full size only.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `group:"Size" placeholder:"NAME" whole:"naive,published-shape" help:"Only these: naive, naive-stopped, published-shape, published-shape-reused, channel, channel-reused, spillway, spillway-reused, spillway-sized. Claims that need another one stay open."`
	Time       time.Duration `group:"Size" default:"30s" quick:"1s" full:"30s" least:"10ms" most:"1h" help:"How long the burst is for naive and for the published shape, which grows for 18 seconds."`
	OthersTime time.Duration `group:"Size" default:"500ms" full:"30s" least:"10ms" most:"1h" help:"How long the burst is for the other contestants."`
	Rate       float64       `group:"Size" default:"0" quick:"20000" least:"0" most:"100000000" help:"Submissions a second, of all generators together; 0: 100,000 for each processor (GOMAXPROCS), as published."`
	Generators int           `group:"Size" default:"1000" least:"1" help:"Goroutines that submit."`
	Work       `embed:""`
	MemoryCap  int `placeholder:"MIB" default:"0" least:"0" help:"Memory that a contestant may use, in MiB; 0: half of the machine's, and for naive 11 times that of the published pool if that is less."`
}

const (
	roleBurst  = "burst"  // of every contestant
	roleShrink = "shrink" // of what becomes of a pool's workers
	setup      = "published"
	load       = "the burst"
)

// What the published figures were measured with.
const (
	publishedTime       = 30 * time.Second // of the burst
	publishedRate       = 100_000          // jobs a second for each processor
	publishedProcessors = 10
	publishedMemory     = 48_500         // MiB that the naive run took
	publishedStop       = 12_000_000_000 // bytes above which the naive run stops itself
)

// at is the cell of a contestant.
func at(name string) ledger.Key { return ledger.Key{Setup: setup, Load: load, Pattern: name} }

// Roles are the roles of the contestants and of the demonstrations.
func Roles() map[string]contestant.Role {
	roles := demonstrations.Roles()
	roles[roleBurst], roles[roleShrink] = contestant.Server(run), contestant.Func(shrink)
	return roles
}

func (c Config) plan() (experiment.Plan, error) {
	chosen, err := experiment.Chosen(c.Contestant, Names())
	if err != nil {
		return experiment.Plan{}, err
	}
	if c.Rate == 0 {
		c.Rate = publishedRate * float64(runtime.GOMAXPROCS(0))
	}
	plan := experiment.Plan{Demos: demonstrations.Demos()}
	first := experiment.Group{Label: "published-shape, then naive"} // whose memory cap depends on the former
	if slices.Contains(chosen, Published) {
		first.Keys, first.Expect = append(first.Keys, at(Published)), c.Time+patience
	}
	if slices.Contains(chosen, Naive) { // one side of every comparison has a twin
		first.Keys, first.Expect = append(first.Keys, at(Naive).AndTwin(true)...), first.Expect+2*min(c.Time, naiveLives)
	}
	if first.Run = func(ctx context.Context, _ experiment.Trial) ([]results.Run, error) { return c.turns(ctx, first.Keys) }; first.Keys != nil {
		plan.Groups = append(plan.Groups, first)
	}
	for _, name := range chosen {
		burst, expect := c.OthersTime, c.OthersTime+200*time.Millisecond
		switch name {
		case Naive, Published:
			continue
		case Stopped:
			burst, expect = c.Time, min(c.Time, naiveLives)
		case PublishedReused:
			expect = burst + patience
		}
		cell := experiment.Cell{Setup: setup, Load: load, Pattern: name, Expect: expect,
			Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
				w, err := c.run(ctx, name, burst, nil)
				if err != nil {
					return results.Run{}, err
				}
				return w.out, nil
			}}
		plan.Cells = append(plan.Cells, cell)
		// The goals are decided only in a full burst.
		if cell.Twin = true; (name == Reused || name == Sized) && burst >= publishedTime {
			plan.Cells = append(plan.Cells, cell)
		}
	}
	for _, name := range []string{Published, Spillway} {
		if slices.Contains(chosen, name) {
			plan.Alone(shrunk(name), 1700*time.Millisecond, contestant.Spec{Role: roleShrink, Input: name})
		}
	}
	return plan, nil
}

// naiveLives is roughly how long a goroutine for each job goes on until it is killed.
const naiveLives = 5 * time.Second
