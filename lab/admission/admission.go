// Package admission is the experiment with the HTTP middleware in front of a service:
// a storm of clients that retry, clients that leave, a dry run beside the real one,
// hostile clients, and requests that only wait.
package admission

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/ledger"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/service"
	"github.com/spillway-go/spillway/loadgen"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, plan, map[string]contestant.Role{
	roleService: contestant.Server(serve), roleHeld: contestant.Server(held), roleAttackers: contestant.Server(attackers),
})

const (
	roleService   = "admission-service"
	roleHeld      = "admission-held"
	roleAttackers = "admission-attackers"
)

const help = `A small HTTP service behind admissionhttp, told no number, in a process of its own. It waits for a backend of ten slots, 20 to 60 ms a request, some 250 a second: one that lets more wait (N-way) and one that gets less done the more it is asked (degrading).

In the part storm 200 clients with admissionhttp/client send three times the capacity (open loop, Poisson) and retry within five seconds what was refused; a fifth is critical. What counts is goodput beside the capacity, and whether the retries come in waves. In leavers every third client leaves after half of the service time: what do the others get? In dryrun twice the capacity comes without retries, in a dry run and for real: is the share that is refused of each priority the predicted one? In hostile a third process sends slow headers, headers of 1 MB, endless and trickling bodies, half-closed connections and HTTP/2 streams that are reset at once, and holds thousands of idle connections: how long do health probes take, and how much memory?

In holders lookups come at a fifth of the capacity, and then a hundred clients that ask the backend for nothing: slow readers, bodies that stop, long polls, or calls of a dependency that hangs. What share of the lookups is answered within a second, behind our limiter with the README's deadlines (spillway), a semaphore of the backend's size (semaphore), failsafe-go's adaptive limiter (failsafe), and nothing (none)?`

// The parts of the experiment.
const (
	storm    = "storm"    // 200 clients with retries, at three times the capacity
	leavers  = "leavers"  // the same, and a third of them leaves
	dryrun   = "dryrun"   // what a dry run predicts, and what is refused
	hostile  = "hostile"  // clients that mean harm
	holders  = "holders"  // requests that only wait, beside lookups
	capacity = "capacity" // what storm and leavers are compared with
)

var parts = []string{storm, leavers, dryrun, hostile, holders}

// casts are who plays in each part: a second time as its own twin. Those of a cast play
// at the same time, in front of each backend. Nearly all of a request is waiting.
var casts = []struct {
	part     string
	patterns []string
}{
	{storm, []string{ours, ours}},
	{leavers, []string{ours, ours}},
	{leavers, []string{fixed}},
	{capacity, []string{saturated}},
	{dryrun, []string{dry, dry, ours}},
	{hostile, []string{ours}},
	{hostile, []string{calm}},
	{holders, []string{ours, ours, none, shortly, failsafe}},
}

// Config is what a user may set.
type Config struct {
	Part        []string      `placeholder:"NAME" help:"Only these parts: storm, leavers, dryrun, hostile, holders. Claims about the others stay open."`
	WarmUp      time.Duration `group:"Size" default:"5s" quick:"2s" whole:"3s" least:"0s" help:"How long the same load comes before each measurement."`
	Time        time.Duration `group:"Size" default:"8s" full:"10s" quick:"3s" whole:"6s" least:"200ms" help:"How long a measurement is."`
	Connections int           `group:"Size" default:"0" least:"0" most:"50000" help:"Idle connections of hostile clients; 0: a third of the files that a process may open, at most 50,000."`
	service.Flags
}

func plan(c Config) (experiment.Plan, error) {
	if 4*c.WarmUp+c.Time > longest/2 {
		return experiment.Plan{}, fmt.Errorf("warm-up is %v and time %v: want four times the first and the second at most %v", c.WarmUp, c.Time, longest/2)
	}
	if err := cmp.Or(c.Work.Check(), experiment.Known("part", c.Part, parts)); err != nil {
		return experiment.Plan{}, err
	}
	var p experiment.Plan
	if c.plays(holders) {
		p.Programs = []contestant.Spec{{Program: failsafeProgram, Role: RoleFailsafe}}
	}
	for _, cast := range casts {
		if !c.plays(cast.part) {
			continue
		}
		for i, pattern := range cast.patterns {
			for _, backend := range backends(cast.part) {
				k, beside := key(cast.part, backend, pattern), cast.part+", "+strings.Join(cast.patterns, ", ")
				if cast.part == dryrun || cast.part == holders { // more at once would make their clients late
					beside += ", " + backend
				}
				p.Cells = append(p.Cells, experiment.Cell{
					Setup: k.Setup, Load: k.Load, Pattern: pattern, Twin: slices.Contains(cast.patterns[:i], pattern),
					Beside: beside, Uses: uses(cast.part), Expect: c.expect(cast.part),
					Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
						job := service.Job{Pattern: pattern, Backend: backend, Work: c.Work, Seed: t.Seed}
						return c.InTime(func() (results.Run, error) { return c.measure(ctx, cast.part, job) })
					},
				})
			}
		}
	}
	return p, nil
}

// uses is the share of the processors that a contestant needs, with its clients. Those
// that mean harm compute, and run alone.
func uses(part string) float64 {
	if part == hostile {
		return 0
	}
	return .1
}

func (c Config) plays(part string) bool {
	if part == capacity {
		return c.plays(storm) || c.plays(leavers)
	}
	return experiment.Wanted(c.Part, part)
}

func (c Config) expect(part string) time.Duration {
	switch part {
	case capacity:
		return c.Time + time.Second
	case hostile:
		return c.Time + 4*time.Second
	}
	all := scenes[part].deadline / 2
	for _, s := range scenes[part].load(c).Stretches {
		all += s.For
	}
	return all
}

// measure is one run of a cell.
func (c Config) measure(ctx context.Context, part string, j service.Job) (results.Run, error) {
	ctx, end := context.WithCancel(ctx)
	defer end() // of the service, too, if the run fails
	program, role := "", roleService
	switch {
	case j.Pattern == failsafe:
		program, role = failsafeProgram, RoleFailsafe
	case part == holders:
		role = roleHeld
	}
	srv, err := service.Start(ctx, c.Spec(program, role, j))
	if err != nil {
		return results.Run{}, err
	}
	switch part {
	case capacity:
		return c.saturate(ctx, srv)
	case hostile:
		return c.hostile(ctx, srv, j)
	case holders:
		return c.hold(ctx, srv, j)
	}
	return c.storm(ctx, srv, scenes[part], j.Seed)
}

// saturate measures the capacity, without a limit.
func (c Config) saturate(ctx context.Context, srv *service.Service) (results.Run, error) {
	target, err := loadgen.NewHTTP(loadgen.HTTPConfig{URL: "http://" + srv.Address + "/work"})
	if err != nil {
		return results.Run{}, err
	}
	defer target.Close()
	best, err := service.Saturate(srv.Loading, target, c.Slots, c.Time, 0)
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(best)
	run.Extra = map[string]float64{"goodput": best.Goodput()}
	_, err = srv.End(ctx, &run, time.Now())
	return run, err
}

// key is the cell of a pattern in front of a backend.
func key(part, backend, pattern string) ledger.Key {
	load := "closed loop"
	if x := scenes[part].multiple; x > 0 {
		load = fmt.Sprintf("%gx", x)
	}
	setup := part + ", " + backend
	if part != holders {
		setup += " backend"
	}
	return ledger.Key{Setup: setup, Load: load, Pattern: pattern}
}

// backends are those of a part; of holders, the kinds of them in front of the N-way one.
func backends(part string) []string {
	switch part {
	case hostile:
		return []string{nWay}
	case holders:
		return slices.Sorted(maps.Keys(holderKinds))
	}
	return []string{nWay, degrading}
}
