// Package shapes plays the role of experiment G that needs the patient API.
package shapes

import (
	"context"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	"github.com/spillway-go/spillway/lab/results"
	plan "github.com/spillway-go/spillway/lab/shapes"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// Roles are the roles of experiment G that need the patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{plan.RoleReuseH: contestant.Func(reuseH)}
}

// reuseH answers requests by the patterns of experiment H, over its simulated store at
// a tenth of its latency: the question is the processor time of a request, and waiting
// uses none.
func reuseH(ctx context.Context, j plan.ReuseJob) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	store, err := simulated.Inject(people, simulated.Config{
		MinLatency: 5 * time.Millisecond, MaxLatency: 10 * time.Millisecond, ErrorRate: 0.05, Seed: j.Seed,
	})
	if err != nil {
		return results.Run{}, err
	}
	name := map[string]string{plan.Spawn: service.Naive, plan.Pool: service.WorkerPool, plan.PoolReuse: service.Optimized}[j.Pattern]
	runner, err := service.New(name, service.Config{Workers: j.Bound, QueueSize: j.Bound})
	if err != nil {
		return results.Run{}, err
	}
	load := func(requests int) (*loadgen.Result, error) {
		return loadgen.Run(ctx, loadgen.Config{
			Closed: &loadgen.Closed{Clients: j.Bound, Requests: uint64(requests)},
			Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
				id := patientapi.FormatID(1 + int(n*7919%uint64(j.Patients)))
				found, err := service.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error {
					return store.Patient(ctx, id, p)
				})
				if err == nil {
					found.Release()
				}
				return loadgen.FromError(err)
			}),
		})
	}
	if _, err := load(2 * j.Bound); err != nil { // starts the workers, fills the pools
		return results.Run{}, err
	}
	p := usage.Start()
	res, err := load(j.Requests)
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	run := experiment.FromLoad(res)
	j.Fill(&run, used)
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, runner.Drain(drain)
}
