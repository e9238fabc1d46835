// Package reuse is the experiment that measures the value of reusing objects:
// allocated, from sync.Pool, from a channel, and from objectpool; in a steady cycle and
// in bursts; what is held afterwards, and the memory after one outlier.
package reuse

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spillway-go/spillway/histogram"
	"github.com/spillway-go/spillway/lab/claims"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// The set-ups, in the words of the report.
const (
	Cycle   = "steady cycle"
	Bursts  = "bursts"
	Idle    = "a minute idle"
	Outlier = "one outlier"
)

// Experiment is experiment reuse.
type Classic struct{ Config Config }

// ID implements experiment.Experiment.
func (Classic) ID() string { return claims.Reuse.ID }

// Title implements experiment.Experiment.
func (Classic) Title() string { return claims.Reuse.Title }

const (
	roleCycle   = "reuse-cycle"
	roleBursts  = "reuse-bursts"
	roleOutlier = "reuse-outlier"
)

// Roles are the roles of its contestants.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		roleCycle:   contestant.Func(cycle),
		roleBursts:  contestant.Func(bursts),
		roleOutlier: contestant.Func(outlier),
	}
}

// Config is what a user may set.
type Config struct {
	Sizes     []int         // bytes
	Rounds    int           // of every contestant in a steady cycle
	Slice     time.Duration // of each round
	Users     int           // in bursts; beside an outlier a fifth of them
	Bursts    int
	On, Off   time.Duration
	Idle      time.Duration // after the bursts
	MemoryCap uint64        // bytes for each contestant; 0: none
}

// Defaults is the experiment at full size.
func Defaults() Config {
	return Config{
		Sizes: []int{1 << 10, 64 << 10, 500_000}, Rounds: 31, Slice: 10 * time.Millisecond,
		Users: 1000, Bursts: 10, On: 100 * time.Millisecond, Off: 300 * time.Millisecond, Idle: time.Minute, MemoryCap: 4 << 30,
	}
}

// Quick is a short run without the idle minute.
func Quick() Config {
	c := Defaults()
	c.Rounds, c.Slice, c.Bursts, c.Idle = 11, 3*time.Millisecond, 4, 0
	return c
}

func (c Config) check() error {
	for _, size := range c.Sizes {
		if size < 1 || size > 1<<20 {
			return fmt.Errorf("size is %d bytes: want 1 to %d", size, 1<<20)
		}
	}
	switch {
	case len(c.Sizes) == 0:
		return fmt.Errorf("no size: leave the flag out for all of them")
	case c.Rounds < 3 || c.Slice <= 0:
		return fmt.Errorf("%d rounds of %v: want at least 3, of more than 0s", c.Rounds, c.Slice)
	case c.Users < 1 || c.Bursts < 2 || c.On <= 0 || c.Off < 0 || c.Idle < 0:
		return fmt.Errorf("%d users, %d bursts, %v on, %v off, %v idle: want at least 1, 2, more than 0s, 0s, 0s", c.Users, c.Bursts, c.On, c.Off, c.Idle)
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
	own(fmt.Sprint(c.Sizes) != fmt.Sprint(d.Sizes), "sizes %v instead of %v", c.Sizes, d.Sizes)
	own(c.Rounds != d.Rounds || c.Slice != d.Slice, "%d rounds of %v instead of %d of %v", c.Rounds, c.Slice, d.Rounds, d.Slice)
	own(c.Users != d.Users || c.Bursts != d.Bursts, "%d bursts of %d users instead of %d of %d", c.Bursts, c.Users, d.Bursts, d.Users)
	own(c.On != d.On || c.Off != d.Off, "%v on and %v off instead of %v and %v", c.On, c.Off, d.On, d.Off)
	own(c.Idle != d.Idle, "%v idle instead of %v", c.Idle, d.Idle)
	return strings.Join(parts, "; ")
}

// Plan implements experiment.Experiment.
func (e Classic) Plan() (experiment.Plan, error) {
	c := e.Config
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	plan := experiment.Plan{Scaled: c.scaled()}
	add := func(setup, load, name string, expect time.Duration, run func(context.Context, experiment.Trial) (results.Run, error)) {
		plan.Cells = append(plan.Cells, experiment.Cell{Setup: setup, Load: load, Pattern: name, Expect: expect, Run: run})
	}
	for _, size := range c.Sizes {
		for _, users := range Goroutines() {
			all := &together{config: c, job: cycleJob{Size: size, Goroutines: users, Rounds: c.Rounds, Slice: c.Slice}}
			for _, name := range Names() {
				add(Cycle, CycleLoad(size, users), name, time.Duration(c.Rounds)*c.Slice*3/2, func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					return all.run(ctx, name, t.Repeat)
				})
			}
		}
	}
	job := burstJob{Size: burstSize, Users: c.Users, Bursts: c.Bursts, On: c.On, Off: c.Off}
	took := time.Duration(c.Bursts) * (c.On + c.Off)
	for _, name := range Names() {
		job.Name = name
		add(Bursts, burstLoad, name, took, c.burst(job))
		for _, with := range []bool{false, true} {
			add(Outlier, outlierLoad(with), name, 2*time.Second, c.outlier(outlierJob{name, with, max(c.Users/5, 1)}))
		}
	}
	if c.Idle > 0 {
		job.Name, job.Bursts, job.Idle = Spillway, 2, c.Idle
		add(Idle, burstLoad, Spillway, c.Idle+time.Second, c.burst(job))
	}
	return plan, nil
}

// Goroutines is the numbers of goroutines of the steady cycles.
func Goroutines() []int {
	if procs := runtime.GOMAXPROCS(0); procs > 1 {
		return []int{1, procs, 1000}
	}
	return []int{1, 1000}
}

// CycleLoad names a steady cycle.
func CycleLoad(size, goroutines int) string {
	return fmt.Sprintf("%s by %d", bytes(size), goroutines)
}

func bytes(n int) string {
	if n%1024 == 0 {
		return fmt.Sprint(n>>10, " KiB")
	}
	return fmt.Sprint(n, " B")
}

// together measures all contestants of a repeat in one process, in turns, when the
// first of them is needed: between processes, differences of a few nanoseconds would
// be lost.
type together struct {
	config Config
	job    cycleJob

	mu     sync.Mutex
	repeat int
	have   map[string]cycled
}

func (m *together) run(ctx context.Context, name string, repeat int) (results.Run, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.have == nil || m.repeat != repeat {
		var have map[string]cycled
		exit, err := contestant.Run(ctx, contestant.Spec{Role: roleCycle, Input: m.job, MemoryCap: m.config.MemoryCap}, &have)
		if err != nil || exit.Killed != "" {
			return results.Run{Killed: exit.Killed}, err
		}
		m.have, m.repeat = have, repeat
	}
	got := m.have[name]
	run := newRun(got.Ops, got.Seconds)
	run.Params = map[string]any{"size": m.job.Size, "goroutines": m.job.Goroutines}
	run.Process.Mallocs = got.Mallocs
	run.Extra = map[string]float64{"ns": got.Median, "behind": got.Behind, "mallocs": float64(got.Mallocs) / float64(max(got.Ops, 1))}
	return run, nil
}

func newRun(ops uint64, seconds float64) results.Run {
	return results.Run{
		Offered: ops, Elapsed: seconds, Process: results.Process{ReuseRate: -1},
		Outcomes: []results.Outcome{{Kind: "ok", Count: ops, Latency: &histogram.Histogram{}}},
	}
}

func (c Config) burst(job burstJob) func(context.Context, experiment.Trial) (results.Run, error) {
	return func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
		var got bursted
		exit, err := contestant.Run(ctx, contestant.Spec{Role: roleBursts, Input: job, MemoryCap: c.MemoryCap}, &got)
		if err != nil {
			return results.Run{}, err
		}
		run := newRun(got.Gets, got.Seconds)
		run.Killed, run.Process.PeakRSS = exit.Killed, exit.PeakRSS
		run.Process.Mallocs, run.Process.ReuseRate = got.Mallocs, got.hits()
		run.Extra = map[string]float64{
			"hits": 100 * got.hits(), "peak": float64(got.Peak), "held": float64(got.Held),
			"idle": float64(got.AfterIdle), "off_by": got.OffBy,
		}
		return run, nil
	}
}

func (c Config) outlier(job outlierJob) func(context.Context, experiment.Trial) (results.Run, error) {
	return func(ctx context.Context, _ experiment.Trial) (results.Run, error) {
		var got outlived
		exit, err := contestant.Run(ctx, contestant.Spec{Role: roleOutlier, Input: job, MemoryCap: c.MemoryCap}, &got)
		if err != nil {
			return results.Run{}, err
		}
		run := newRun(got.Ops, got.Seconds)
		run.Killed, run.Process.PeakRSS = exit.Killed, exit.PeakRSS
		run.Extra = map[string]float64{"rss": float64(got.RSS)}
		return run, nil
	}
}
