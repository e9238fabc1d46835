// Package admission is the experiment with the HTTP middleware in front of a service:
// a storm of clients that retry, clients that leave, a dry run beside the real one,
// and hostile clients.
package admission

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{roleService: serve, roleAttackers: attackers})

const (
	roleService   = "admission-service"
	roleAttackers = "admission-attackers"
)

const help = `A small HTTP service behind admissionhttp, told no number, in a process of its own. It waits for a backend of ten slots, 20 to 60 ms a request, some 250 a second: one that lets more wait (N-way) and one that gets less done the more it is asked (degrading).

In the part storm 200 clients with admissionhttp/client send three times the capacity (open loop, Poisson) and retry within five seconds what was refused; a fifth is critical. What counts is goodput beside the capacity, and whether the retries come in waves. In leavers every third client leaves after half of the service time: what do the others get? In dryrun twice the capacity comes without retries, in a dry run and for real: is the share that is refused of each priority the predicted one? In hostile a third process sends slow headers, headers of 1 MB, endless and trickling bodies, half-closed connections and HTTP/2 streams that are reset at once, and holds thousands of idle connections: how long do health probes take, and how much memory?`

// The parts of the experiment.
const (
	storm   = "storm"   // 200 clients with retries, at three times the capacity
	leavers = "leavers" // the same, and a third of them leaves
	dryrun  = "dryrun"  // what a dry run predicts, and what is refused
	hostile = "hostile" // clients that mean harm
)

var parts = []string{storm, leavers, dryrun, hostile}

// Config is what a user may set.
type Config struct {
	Part        []string      `placeholder:"NAME" help:"Only these parts: storm, leavers, dryrun, hostile. Claims about the others stay open."`
	WarmUp      time.Duration `group:"Size" default:"5s" quick:"3s" help:"How long the same load comes before each measurement."`
	Time        time.Duration `group:"Size" default:"8s" full:"10s" quick:"4s" help:"How long a measurement is."`
	Connections int           `group:"Size" default:"0" help:"Idle connections of hostile clients; 0: a third of the files that a process may open, at most 50,000."`
	MemoryCap   int           `default:"2048" placeholder:"MIB" help:"A contestant that needs more memory than that is killed; 0 sets no limit."`
	service.Work
}

func (c Config) check() error {
	switch {
	case c.WarmUp < 0 || c.Time < 2*service.Step || 4*c.WarmUp+c.Time > longest/2:
		return fmt.Errorf("warm-up is %v and time %v: want at least 0s and %v, and four times the first and the second at most %v", c.WarmUp, c.Time, 2*service.Step, longest/2)
	case c.Connections < 0 || c.Connections > mostIdle || c.MemoryCap < 0:
		return fmt.Errorf("connections is %d and memory-cap %d: want at most %d, or 0 for as many as this session may open; and a number of MiB, or 0 for no limit", c.Connections, c.MemoryCap, mostIdle)
	}
	if err := c.Work.Check(); err != nil {
		return err
	}
	return experiment.Known("part", c.Part, parts)
}

func plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	if len(c.Part) == 0 {
		c.Part = parts
	}
	var p experiment.Plan
	add := func(part, pattern string, beside string, twin bool, expect time.Duration, measure func(context.Context, service.Job) (results.Run, error)) {
		for _, backend := range backends {
			if part == hostile && backend == degrading {
				continue
			}
			k := key(part, backend, pattern)
			p.Cells = append(p.Cells, experiment.Cell{
				Setup: k.Setup, Load: k.Load, Pattern: pattern, Twin: twin, Beside: beside, Expect: expect,
				Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
					return measure(ctx, service.Job{Pattern: pattern, Backend: backend, Work: c.Work, Seed: t.Seed})
				},
			})
		}
	}
	crowd := func(part string, patterns ...string) {
		s := scenes[part]
		run := func(ctx context.Context, j service.Job) (results.Run, error) {
			return service.InTime(mostLag, func() (results.Run, error) { return c.storm(ctx, s, j) })
		}
		expect := s.deadline / 2
		for _, stretch := range s.load(c).Stretches {
			expect += stretch.For
		}
		for _, pattern := range patterns {
			add(part, pattern, part, false, expect, run)
		}
		add(part, patterns[0], part, true, expect, run)
	}
	has := func(part string) bool { return slices.Contains(c.Part, part) }
	if has(storm) {
		crowd(storm, ours)
	}
	if has(leavers) {
		crowd(leavers, ours, fixed)
	}
	if has(storm) || has(leavers) {
		add(alone, saturated, alone, false, c.Time+time.Second, c.saturate)
	}
	if has(dryrun) {
		crowd(dryrun, dry, ours)
	}
	if has(hostile) {
		for _, pattern := range []string{ours, calm} {
			add(hostile, pattern, "", false, c.Time+4*time.Second, c.hostile)
		}
	}
	return p, nil
}

// alone is the capacity: what the backend can do for as many clients as keep it busy.
const alone = "capacity"

// key is the cell of a pattern in front of a backend.
func key(part, backend, pattern string) ledger.Key {
	load := "closed loop"
	switch part {
	case hostile:
		load = fmt.Sprintf("%gx", hostileLoad)
	case storm, leavers, dryrun:
		load = fmt.Sprintf("%gx", scenes[part].multiple)
	}
	return ledger.Key{Setup: in(part, backend), Load: load, Pattern: pattern}
}

func in(part, backend string) string { return part + ", " + backend + " backend" }

// start starts the service.
func (c Config) start(ctx context.Context, j service.Job) (context.Context, *service.Service, error) {
	return service.Start(ctx, contestant.Spec{Role: roleService, Input: j, MemoryCap: c.cap()})
}

func (c Config) cap() uint64 { return uint64(c.MemoryCap) << 20 }
