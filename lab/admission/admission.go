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
	storm    = "storm"    // 200 clients with retries, at three times the capacity
	leavers  = "leavers"  // the same, and a third of them leaves
	dryrun   = "dryrun"   // what a dry run predicts, and what is refused
	hostile  = "hostile"  // clients that mean harm
	capacity = "capacity" // what storm and leavers are compared with
)

var parts = []string{storm, leavers, dryrun, hostile}

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
}

// Config is what a user may set.
type Config struct {
	Part        []string      `placeholder:"NAME" help:"Only these parts: storm, leavers, dryrun, hostile. Claims about the others stay open."`
	WarmUp      time.Duration `group:"Size" default:"5s" quick:"2s" help:"How long the same load comes before each measurement."`
	Time        time.Duration `group:"Size" default:"8s" full:"10s" quick:"3s" help:"How long a measurement is."`
	Connections int           `group:"Size" default:"0" help:"Idle connections of hostile clients; 0: a third of the files that a process may open, at most 50,000."`
	MostLag     time.Duration `default:"50ms" help:"A run whose clients sent later than that (p99) is made again, and if they do again it does not count."`
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
	var p experiment.Plan
	for _, cast := range casts {
		if !c.plays(cast.part) {
			continue
		}
		for i, pattern := range cast.patterns {
			for _, backend := range backends(cast.part) {
				k := key(cast.part, backend, pattern)
				p.Cells = append(p.Cells, experiment.Cell{
					Setup: k.Setup, Load: k.Load, Pattern: pattern, Twin: slices.Contains(cast.patterns[:i], pattern),
					Beside: cast.part + ", " + strings.Join(cast.patterns, ", "), Expect: c.expect(cast.part),
					Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
						return c.measure(ctx, cast.part, service.Job{Pattern: pattern, Backend: backend, Work: c.Work, Seed: t.Seed})
					},
				})
			}
		}
	}
	return p, nil
}

func (c Config) plays(part string) bool {
	if part == capacity {
		return c.plays(storm) || c.plays(leavers)
	}
	return len(c.Part) == 0 || slices.Contains(c.Part, part)
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

func (c Config) measure(ctx context.Context, part string, j service.Job) (results.Run, error) {
	switch part {
	case capacity:
		return c.saturate(ctx, j)
	case hostile:
		return service.InTime(c.MostLag, func() (results.Run, error) { return c.hostile(ctx, j) })
	}
	return service.InTime(c.MostLag, func() (results.Run, error) { return c.storm(ctx, scenes[part], j) })
}

// key is the cell of a pattern in front of a backend.
func key(part, backend, pattern string) ledger.Key {
	loads := map[string]string{capacity: "closed loop", hostile: fmt.Sprintf("%gx", hostileLoad)}
	if s, ok := scenes[part]; ok {
		loads[part] = fmt.Sprintf("%gx", s.multiple)
	}
	return ledger.Key{Setup: in(part, backend), Load: loads[part], Pattern: pattern}
}

func in(part, backend string) string { return part + ", " + backend + " backend" }

// backends are those of a part.
func backends(part string) []string {
	if part == hostile {
		return []string{nWay}
	}
	return []string{nWay, degrading}
}

// start starts the service.
func (c Config) start(ctx context.Context, j service.Job) (context.Context, *service.Service, error) {
	return service.Start(ctx, contestant.Spec{Role: roleService, Input: j, MemoryCap: c.cap()})
}

func (c Config) cap() uint64 { return uint64(c.MemoryCap) << 20 }
