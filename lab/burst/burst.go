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

The published claims are about the published pool: naive and published-shape decide them, and by default nothing else is run. The goals that are ours to reach take --full, or the names of the contestants.`

// Config is what a user may set.
type Config struct {
	Contestant []string      `group:"Size" default:"naive,published-shape" quick:"naive,naive-stopped,published-shape,published-shape-reused,channel,channel-reused,spillway,spillway-reused,spillway-sized" full:"naive,naive-stopped,published-shape,published-shape-reused,channel,channel-reused,spillway,spillway-reused,spillway-sized" placeholder:"NAME" help:"Which: naive, naive-stopped, published-shape, published-shape-reused, channel, channel-reused, spillway, spillway-reused, spillway-sized. Claims that need another one stay open."`
	Time       time.Duration `group:"Size" default:"30s" quick:"500ms" least:"10ms" most:"1h" help:"How long the burst is. The published shape grows for 18 seconds."`
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

// Roles are the roles of the contestants.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleBurst: contestant.Server(run), roleShrink: contestant.Func(shrink)}
}

func (c Config) plan() (experiment.Plan, error) {
	chosen, err := experiment.Chosen(c.Contestant, Names())
	if err != nil {
		return experiment.Plan{}, err
	}
	if c.Rate == 0 {
		c.Rate = publishedRate * float64(runtime.GOMAXPROCS(0))
	}
	var plan experiment.Plan
	group := func(keys ...ledger.Key) {
		var expect time.Duration
		for _, k := range keys {
			expect += c.expect(k.Pattern)
		}
		plan.Groups = append(plan.Groups, experiment.Group{Keys: keys, Expect: expect,
			Run: func(ctx context.Context, _ experiment.Trial) ([]results.Run, error) { return c.inOrder(ctx, keys) }})
	}
	both := slices.Contains(chosen, Published) && slices.Contains(chosen, Naive)
	for _, name := range chosen {
		switch {
		case name == Published && both: // naive's memory cap depends on it
			group(at(Published), at(Naive))
		case name != Naive || !both:
			group(at(name))
		}
		if name == Reused || name == Sized { // one side of every comparison that has noise
			group(ledger.Key{Setup: setup, Load: load, Pattern: name, Twin: true})
		}
		if name == Published || name == Spillway {
			plan.Alone(shrunk(name), 1700*time.Millisecond, contestant.Spec{Role: roleShrink, Input: name})
		}
	}
	return plan, nil
}

// expect is roughly how long a contestant takes: naive until it is killed.
func (c Config) expect(name string) time.Duration {
	if name == Naive {
		return min(c.Time+time.Second, 10*time.Second)
	}
	return c.Time + patience
}
