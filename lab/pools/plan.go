package pools

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/turns"
)

// Set-ups, in the words of the report.
const (
	setupRefuse = "refusal by a full pool"
	setupCall   = "a typed result"
	setupBurst  = "burst"
)

func setupSubmit(work time.Duration) string {
	if work == 0 {
		return "no-op jobs"
	}
	return strings.Replace(work.String(), "µs", " µs", 1) + " jobs"
}

func boutLoad(producers, workers int) string { return fmt.Sprintf("%d→%d", producers, workers) }

func burstLoad(jobs int) string {
	return fmt.Sprintf("%d x %v, %d workers", jobs, burstWork, burstWorkers)
}

// What a burst is made of.
const (
	burstJobs    = 1_000_000 // that the claim is about
	burstWorkers = 5000
	burstWork    = 10 * time.Millisecond
)

// planner collects what is measured.
type planner struct {
	Config
	experiment.Plan
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	if len(c.Contestant) == 0 {
		c.Contestant = Names
	}
	c.Producers = slices.Clone(c.Producers)
	for i, n := range c.Producers {
		c.Producers[i] = cmp.Or(n, runtime.GOMAXPROCS(0))
	}
	c.Part, c.Work, c.Producers, c.Workers, c.Sizes = ascending(c.Part), ascending(c.Work), ascending(c.Producers), ascending(c.Workers), ascending(c.Sizes)
	p := &planner{Config: c, Plan: experiment.Plan{Programs: []contestant.Spec{c.spec(RoleSubmit, nil)}}}
	for _, part := range c.Part {
		switch part {
		case "submit":
			for _, work := range c.Work {
				p.bouts(setupSubmit(work), RoleSubmit, work, Submitters, c.Workers)
			}
		case "refuse": // the size of a full pool does not matter
			p.bouts(setupRefuse, RoleRefuse, 0, Refusers, c.Workers[:1])
		case "call":
			p.bouts(setupCall, RoleCall, 0, Callers, c.Workers[:min(2, len(c.Workers))])
		case "memory":
			for _, k := range p.keys("memory", "1,000 workers, 100,000 jobs", Submitters) {
				if !k.Twin {
					p.alone(k, RoleMemory, k.Pattern, 300*time.Millisecond)
				}
			}
		case "burst":
			for _, k := range p.keys(setupBurst, burstLoad(c.Jobs), flooded) {
				f := Flood{k.Pattern, c.Jobs, burstWorkers, c.Buffer, burstWork}
				p.alone(k, RoleBurst, f, f.Ideal()*5/4+3*Idle)
			}
		case "sizing":
			p.sizing()
		}
	}
	return p.Plan, nil
}

// spec starts a role of the program.
func (c Config) spec(role string, input any) contestant.Spec {
	return contestant.Spec{Program: "pools", Role: role, Input: input, MemoryCap: uint64(c.MemoryCap) << 20}
}

// keys are the cells of the chosen contestants that are able to do it, Spillway's twice.
func (c Config) keys(setup, load string, able []string) (out []ledger.Key) {
	for _, name := range able {
		if k := (ledger.Key{Setup: setup, Load: load, Pattern: name}); slices.Contains(c.Contestant, name) {
			out = append(out, k)
			if k.Twin = name == Spillway; k.Twin {
				out = append(out, k)
			}
		}
	}
	return out
}

// alone adds a cell whose process has the machine for itself.
func (p *planner) alone(k ledger.Key, role string, input any, expect time.Duration) {
	p.Cells = append(p.Cells, experiment.Cell{Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Expect: expect, Run: experiment.Alone(p.spec(role, input))})
}

// ascending are the values in order, each once.
func ascending[T cmp.Ordered](values []T) []T {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// bouts adds one for every number of producers, with every contestant and number of
// workers.
func (p *planner) bouts(setup, role string, work time.Duration, able []string, workers []int) {
	for _, producers := range p.Producers {
		b := Bout{Work: work, Producers: producers, Rounds: p.Rounds, Time: p.Time, Buffer: p.Buffer}
		if work == 0 && producers > runtime.GOMAXPROCS(0) {
			b.Warm = 4 // until nearly all producers have waited once, a submission is three times as slow and allocates
		}
		var keys []ledger.Key
		for _, n := range workers {
			for _, k := range p.keys(setup, boutLoad(producers, n), able) {
				keys, b.Entries = append(keys, k), append(b.Entries, Entry{k.Pattern, n})
			}
		}
		if len(keys) > 0 {
			p.Groups = append(p.Groups, p.bout(setup, role, b, keys))
		}
	}
}

// bout is the cells of one table.
func (p *planner) bout(setup, role string, b Bout, keys []ledger.Key) experiment.Group {
	// Each producer has two jobs at least. Finding out the size of a block takes four;
	// start, warm-up and collection as long as the block.
	block := max(b.Time, time.Duration(2*b.Producers)*b.Work/time.Duration(runtime.GOMAXPROCS(0)))
	return experiment.Group{
		Keys: keys, Label: fmt.Sprintf("%s by %d producers, %d contestants in turns", setup, b.Producers, len(keys)),
		Expect: time.Duration(len(keys)*(b.Rounds+4)*(2+b.Warm))*block + 200*time.Millisecond,
		Run: func(ctx context.Context, t experiment.Trial) ([]results.Run, error) {
			b.Seed = t.Seed
			var readings [][]turns.Reading
			exit, err := contestant.Run(ctx, p.spec(role, b), &readings)
			if err == nil && exit.Killed != "" { // which contestant was the cause is unknown
				err = fmt.Errorf("the process of all contestants was %s", exit.Killed)
			}
			runs := experiment.InTurns(keys, exit, readings, map[string]func(turns.Reading) float64{"ns": turns.Nanos, "allocs": turns.Mallocs, "bytes": turns.Bytes})
			for i, us := range keys {
				us.Pattern, us.Twin = Spillway, false
				if at := slices.Index(keys, us); at >= 0 && keys[i].Pattern != Spillway {
					ledger.Keep(&runs[i], "behind", runs[at].Ratios(&runs[i], "ns"))
				}
			}
			return runs, err
		},
	}
}
