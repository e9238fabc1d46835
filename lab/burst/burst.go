// Package burst is experiment B: a million jobs a second, offered to a goroutine
// for each job, to the shape of a published pool, to a plain channel and to
// Spillway. Each runs in a separate process under a memory cap.
package burst

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/burst/specimen"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is experiment B.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.B.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.B.Title }

// setup is the one set-up, and load the one load, of the runs.
const (
	setup = "published"
	load  = "the burst"
)

const (
	roleBurst = "burst"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	roles := map[string]contestant.Role{roleBurst: run}
	maps.Copy(roles, demonstrations.Roles())
	return roles
}

// Config is what a user may set.
type Config struct {
	Contestants []string      // nil: all
	Rate        float64       // submissions a second
	Generators  int           // goroutines that submit
	Burst       time.Duration // how long
	Work        Work
	MemoryCap   uint64 // bytes for each contestant; 0: half of the machine's
}

// Full is the published burst.
func Full() Config {
	return Config{Contestants: Names(), Rate: 1e6, Generators: 1_000, Burst: 30 * time.Second, Work: PublishedWork}
}

// Defaults is a shorter burst. Rate, generators and sizes are never scaled.
func Defaults() Config {
	c := Full()
	c.Burst = 10 * time.Second
	return c
}

func (c Config) check() error {
	for i, name := range c.Contestants {
		if !slices.Contains(Names(), name) {
			return fmt.Errorf("unknown contestant %q: want one of %s; or leave it out for all", name, strings.Join(quoted(Names()), ", "))
		}
		if slices.Contains(c.Contestants[:i], name) {
			return fmt.Errorf("contestant %q is named twice: once is enough", name)
		}
	}
	switch {
	case len(c.Contestants) == 0:
		return fmt.Errorf("no contestant: leave the flag out for all of them")
	case !(c.Rate > 0 && c.Rate <= 1e8):
		return fmt.Errorf("rate is %v: want submissions a second, above 0 and at most 100,000,000", c.Rate)
	case c.Generators < 1:
		return fmt.Errorf("generators is %d: want at least 1", c.Generators)
	case c.Burst < 10*time.Millisecond || c.Burst > time.Hour:
		return fmt.Errorf("the burst is %v: want 0.01 to 3600 seconds", c.Burst)
	case c.Work.Bytes < page || c.Work.Wait < 0:
		return fmt.Errorf("the work is %d bytes and %v: want at least %d bytes and no negative time", c.Work.Bytes, c.Work.Wait, page)
	}
	return nil
}

func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = fmt.Sprintf("%q", n)
	}
	return out
}

// scaled says how this differs from the published burst.
func (c Config) scaled() string {
	full := Full()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.Burst != full.Burst, "%v instead of %v, in which the published pool grows from %d workers to %d at most instead of %d",
		c.Burst, full.Burst, specimen.Published().MinWorkers, grown(c.Burst), grown(full.Burst))
	own(c.Rate != full.Rate, "%.0f submissions a second instead of %.0f", c.Rate, full.Rate)
	own(c.Generators != full.Generators, "%d generators instead of %d", c.Generators, full.Generators)
	own(c.Work != full.Work, "jobs of %d bytes and %v instead of %d and %v", c.Work.Bytes, c.Work.Wait, full.Work.Bytes, full.Work.Wait)
	own(len(c.Contestants) < len(full.Contestants), "%s only", strings.Join(c.Contestants, "; "))
	return strings.Join(parts, "; ")
}

// grown is how many workers the published pool can have after that time.
func grown(d time.Duration) int {
	cfg := specimen.Published()
	n := cfg.MinWorkers
	for range int(d / cfg.Every) {
		n += max(1, n/4)
	}
	return min(n, cfg.MaxWorkers)
}

// cap is the memory that a contestant may use.
func (c Config) cap() uint64 {
	if c.MemoryCap > 0 {
		return c.MemoryCap
	}
	return uint64(experiment.ThisMachine().MemoryMiB) << 20 / 2
}

// patience is how long accepted jobs may take after the burst.
const patience = time.Minute

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	c := e.Config
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	plan := experiment.Plan{Scaled: c.scaled(), Demos: demonstrations.Demos()}
	for _, name := range c.Contestants {
		plan.Cells = append(plan.Cells, experiment.Cell{
			Setup: setup, Load: load, Pattern: name, Expect: c.expect(name),
			Run: func(ctx context.Context, _ experiment.Trial) (results.Run, error) { return c.run(ctx, name) },
		})
	}
	return plan, nil
}

// expect is roughly how long a contestant takes.
func (c Config) expect(name string) time.Duration {
	switch name {
	case Naive:
		return min(c.Burst, 5*time.Second)
	case Published, Channel:
		return c.Burst + min(c.Burst, 8*time.Second) // until the queue is empty
	}
	return c.Burst + 200*time.Millisecond
}
