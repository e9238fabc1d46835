// Package patterns is experiment H: a patient API under three published concurrency
// patterns, in the published shape; beside it ours, in process and for real.
package patterns

import (
	"context"

	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
)

// Experiment is the declaration.
var Experiment = experiment.Declare(family, help, Plan, Roles())

const help = `A patient is looked up by id, in a store that takes 50 to 100 ms and fails 5 % of the time. It is done under the published patterns (naive: a goroutine for every request; workerpool: 20 workers and a queue of 100, refusing when full; optimized: the same with reused response objects) and by a limiter of ours. Three set-ups are measured. The published shape is the published code, rebuilt, at its published size, and decides the claims. Ours stand beside it: in process, as function calls over a simulated store, and for real, over HTTP to a server with a SQLite file that has the same latency and errors added and refuses at once.

Clients send back to back, each its share of the requests: 1,000 by 100 clients (low), 10,000 by 1,000 (high), 50,000 by 500 (sustained). Fewer requests for each client would have other answers, so a claim that is about the sizes is open when others were run. Every contestant runs in a process of its own under a memory cap. Refusals, errors and successes are never mixed.`

// program plays every role that needs the patient API.
const program = "patient"

// The roles of its contestants. Each has a Job as its input.
const (
	RoleCall     = "patterns-call"
	RoleServer   = "patterns-server"
	RoleDatabase = "patterns-database" // of a number of patients: the path of its file

	rolePublished = "patterns-published"
)

// Roles are the roles that need no patient API.
func Roles() map[string]contestant.Role {
	roles := demonstrations.Roles()
	roles[rolePublished] = contestant.Func(published)
	return roles
}

// Plan is what a session with these settings runs.
func Plan(c Config) (experiment.Plan, error) {
	if err := c.check(); err != nil {
		return experiment.Plan{}, err
	}
	p := experiment.Plan{Programs: []contestant.Spec{{Program: program, Role: RoleServer}}, Demos: demonstrations.Demos()}
	var database string
	p.Prepare = func(ctx context.Context) error { // makes it once, or finds that of an earlier session
		_, err := contestant.Run(ctx, contestant.Spec{Program: program, Role: RoleDatabase, Input: c.Patients}, &database)
		return err
	}
	for _, k := range c.keys() {
		p.Cells = append(p.Cells, experiment.Cell{
			Setup: k.Setup, Load: k.Load, Pattern: k.Pattern, Twin: k.Twin, Beside: c.beside(k), Expect: c.expect(k),
			Run: func(ctx context.Context, t experiment.Trial) (results.Run, error) {
				j := c.job(k, t.Seed)
				if j.Database = database; k.Setup == Real {
					return j.serveAndLoad(ctx)
				}
				return j.alone(ctx, k.Setup)
			},
		})
	}
	return p, nil
}

func (c Config) memory() uint64 { return uint64(c.MemoryCap) << 20 }

// alone runs a contestant that loads itself.
func (j Job) alone(ctx context.Context, setup string) (results.Run, error) {
	spec := contestant.Spec{Role: rolePublished, Input: j, MemoryCap: j.memory()}
	if setup == Process {
		spec.Program, spec.Role = program, RoleCall
	}
	var run results.Run
	exit, err := contestant.Run(ctx, spec, &run)
	if exit.Killed != "" {
		run.Killed, run.Params = exit.Killed, j.Params()
	}
	run.Process.PeakRSS = max(run.Process.PeakRSS, exit.PeakRSS)
	return run, err
}
