// Package admission is the experiment with the HTTP middleware in front of a service:
// a storm of clients that retry, clients that leave, a dry run beside the real one,
// and hostile clients.
package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/overload"
	"github.com/spillway-go/spillway/lab/results"
)

// The parts of the experiment.
const (
	Storm   = "storm"   // 200 clients with retries, at three times the capacity
	Leavers = "leavers" // the same, and a third of them leaves
	Dry     = "dryrun"  // what a dry run predicts, and what is refused
	Hostile = "hostile" // clients that mean harm
)

// Parts lists them.
func Parts() []string { return []string{Storm, Leavers, Dry, Hostile} }

// scenes are those parts that are a crowd of clients.
var scenes = map[string]scene{
	Storm:   {load: 3, deadline: 5 * time.Second, retries: true},
	Leavers: {load: 3, deadline: 5 * time.Second, retries: true, leavers: true},
	Dry:     {load: 2, deadline: time.Second, ramps: true},
}

// Experiment is experiment admission.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.Admission.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.Admission.Title }

const (
	roleService   = "admission-service"
	roleAttackers = "admission-attackers"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{roleService: service, roleAttackers: attackers}
}

// Config is what a user may set.
type Config struct {
	Parts       []string
	WarmUp      time.Duration // before each measurement, at the same load
	Measure     time.Duration // of each measurement
	Work        overload.Work // what a request costs the backend
	Connections int           // idle ones of hostile clients; 0: a third of the files that may be open, at most 50,000
	MemoryCap   uint64        // bytes for each contestant; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{
		Parts: Parts(), WarmUp: 5 * time.Second, Measure: 10 * time.Second,
		Work:      overload.Work{Slots: 10, Min: 20 * time.Millisecond, Max: 60 * time.Millisecond},
		MemoryCap: 2 << 30,
	}
}

// Quick is a short run.
func Quick() Config {
	c := Defaults()
	c.WarmUp, c.Measure = 3*time.Second, 4*time.Second
	return c
}

// longestPart bounds the time that a service is watched.
const longestPart = 4 * time.Minute

func (c Config) check() error {
	for _, name := range c.Parts {
		if !slices.Contains(Parts(), name) {
			return fmt.Errorf("unknown part %q: want one of %s, or leave it out for all", name, strings.Join(Parts(), ", "))
		}
	}
	switch {
	case len(c.Parts) == 0:
		return fmt.Errorf("no part: leave the flag out for all of them")
	case c.WarmUp < 0 || c.Measure < 2*step || 4*c.WarmUp+c.Measure > longestPart:
		return fmt.Errorf("warm-up %v, measure %v: want at least 0s and %v, and four times the first and the second at most %v", c.WarmUp, c.Measure, 2*step, longestPart)
	case c.Connections < 0 || c.Connections > mostIdle:
		return fmt.Errorf("connections is %d: want at most %d, or 0 for as many as this session may open", c.Connections, mostIdle)
	case c.Work.Slots < 1 || c.Work.Min < time.Millisecond || c.Work.Max < c.Work.Min:
		return fmt.Errorf("a backend of %d slots and requests of %v to %v: want at least 1 slot and 1ms <= min <= max", c.Work.Slots, c.Work.Min, c.Work.Max)
	}
	return nil
}

// scaled says how this differs from the experiment at full size.
func (c Config) scaled() string {
	d := Defaults()
	var parts []string
	own := func(differs bool, format string, args ...any) {
		if differs {
			parts = append(parts, fmt.Sprintf(format, args...))
		}
	}
	own(c.WarmUp != d.WarmUp || c.Measure != d.Measure, "%v of warm-up and %v of measurement instead of %v and %v", c.WarmUp, c.Measure, d.WarmUp, d.Measure)
	own(c.Work != d.Work, "a backend of %d slots and %v to %v instead of %d and %v to %v",
		c.Work.Slots, c.Work.Min, c.Work.Max, d.Work.Slots, d.Work.Min, d.Work.Max)
	own(c.Connections != d.Connections, "%d idle connections", c.Connections)
	own(len(c.Parts) < len(d.Parts), "%s only", strings.Join(c.Parts, ", "))
	return strings.Join(parts, "; ")
}

// patterns are the contestants of a part.
func patterns(part string) []string {
	switch part {
	case Storm:
		return []string{Spillway, Saturated}
	case Leavers:
		return []string{Spillway, Fixed, Saturated}
	case Dry:
		return []string{DryRun, Spillway}
	}
	return []string{Spillway, Calm}
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	if err := e.Config.check(); err != nil {
		return experiment.Plan{}, err
	}
	plan := experiment.Plan{Scaled: e.Config.scaled()}
	for _, part := range e.Config.Parts {
		for _, pattern := range patterns(part) {
			for _, backend := range backends(part) {
				plan.Cells = append(plan.Cells, experiment.Cell{
					Setup: setup(part, backend), Load: loadName(part), Pattern: pattern,
					// Two backends at the same time: nearly all of a request is waiting.
					Beside: part + ", " + pattern,
					Expect: e.Config.expect(part, pattern),
					Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
						return e.Config.run(ctx, part, job{backend, pattern, e.Config.Work, t.Seed})
					},
				})
			}
		}
	}
	return plan, nil
}

func backends(part string) []string {
	if part == Hostile {
		return []string{NWay}
	}
	return []string{NWay, Degrading}
}

func setup(part, backend string) string { return part + ", " + backend + " backend" }

// hostileLoad is the load of ordinary clients beside hostile ones.
const hostileLoad = .5

func loadName(part string) string {
	if part == Hostile {
		return overload.LoadName(hostileLoad)
	}
	return overload.LoadName(scenes[part].load)
}

func (c Config) expect(part, pattern string) time.Duration {
	switch {
	case part == Hostile:
		return c.Measure + 4*time.Second
	case pattern == Saturated:
		return c.Measure + time.Second
	}
	all := scenes[part].deadline / 2
	for _, s := range scenes[part].stretches(c.WarmUp, c.Measure) {
		all += s.d
	}
	return all
}

func (c Config) run(ctx context.Context, part string, j job) (results.Run, error) {
	switch {
	case part == Hostile:
		return c.hostile(ctx, j)
	case j.Pattern == Saturated:
		return c.saturate(ctx, j)
	}
	return c.storm(ctx, scenes[part], j)
}
