// Package patterns plays the roles of experiment H that need the patient API.
package patterns

import (
	"context"
	"maps"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/contestant"
	"github.com/spillway-go/spillway/lab/experiment"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/patterns/specimen"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/lab/usage"
	"github.com/spillway-go/spillway/loadgen"
)

// Roles are the roles of experiment H that need the patient API.
func Roles() map[string]contestant.Role {
	roles := map[string]contestant.Role{
		plan.RoleCall:      contestant.Func(call),
		plan.RoleServer:    server,
		plan.RoleAsPrinted: contestant.Func(asPrinted),
		plan.RoleReuse:     contestant.Func(reusing),
	}
	maps.Copy(roles, demonstrations.Roles())
	return roles
}

// job is the input of every contestant.
type job struct{ plan.Job }

// simulatedStore is the store of the published set-up.
func (j job) simulatedStore() (*simulated.Injected, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return nil, err
	}
	return j.slow(people)
}

// slow is a store with the latency and the errors of the job.
func (j job) slow(store simulated.Source) (*simulated.Injected, error) {
	return simulated.Inject(store, simulated.Config{
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	})
}

// runner is the service's pattern.
func (j job) runner() (*service.Runner, error) {
	return service.New(j.Pattern, service.Config{Workers: j.Workers, QueueSize: j.QueueSize, QueueWait: j.QueueWait})
}

// call is the contestant of the published set-up: load generator, pattern and
// simulated store in one process, joined by function calls.
func call(ctx context.Context, j job) (results.Run, error) {
	store, err := j.simulatedStore()
	if err != nil {
		return results.Run{}, err
	}
	runner, err := j.runner()
	if err != nil {
		return results.Run{}, err
	}
	look := func(ctx context.Context, n uint64) loadgen.Outcome {
		found, err := lookup(ctx, runner, store, j.ID(n))
		if err == nil {
			found.Release()
		}
		return loadgen.FromError(err)
	}
	run, err := j.measure(ctx, look, func() service.Stats { return runner.Stats() })
	if err != nil {
		return run, err
	}
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["store_latency_ms"] = float64(store.MeanLatency()) / float64(time.Millisecond)
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, runner.Drain(drain)
}

// lookup finds a patient under the runner's pattern.
func lookup(ctx context.Context, runner *service.Runner, store specimen.Patients, id string) (*service.Answer[patientapi.Patient], error) {
	return service.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
}

// measure sends the load to look and reads what the process used. Reuse is that
// of the load alone, without the warm-up.
func (j job) measure(ctx context.Context, look loadgen.TargetFunc, stats func() service.Stats) (results.Run, error) {
	if j.WarmUp {
		warm := loadgen.Config{Target: look, Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(2 * j.Clients)}}
		if _, err := loadgen.Run(ctx, warm); err != nil {
			return results.Run{}, err
		}
	}
	var before service.Stats
	if stats != nil {
		before = stats()
	}
	p := usage.Start()
	res, err := loadgen.Run(ctx, loadgen.Config{
		Target: look, Interval: plan.SeriesStep, Closed: &loadgen.Closed{Clients: j.Clients, Requests: uint64(j.Requests)},
	})
	used := p.Stop()
	if err != nil {
		return results.Run{}, err
	}
	if res.Partial {
		return results.Run{}, ctx.Err()
	}
	run := experiment.FromLoad(res)
	run.Params = j.Params()
	run.Process = experiment.Process(used)
	run.Extra = map[string]float64{}
	if stats != nil {
		if after := stats(); after.ReuseRate >= 0 {
			run.Process.ReuseRate = share(after.Reused-before.Reused, after.Responses-before.Responses)
		}
	}
	return run, nil
}

func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// asPrinted is the contestant of H4: the published response pool under the published
// load, with its own counters and the true figure.
func asPrinted(ctx context.Context, j job) (results.Run, error) {
	store, err := j.simulatedStore()
	if err != nil {
		return results.Run{}, err
	}
	slots := make(chan struct{}, j.Workers) // workers
	var pool specimen.CountedPool
	run, err := j.measure(ctx, func(ctx context.Context, n uint64) loadgen.Outcome {
		slots <- struct{}{}
		defer func() { <-slots }()
		_, err := pool.Look(ctx, store, j.ID(n))
		return loadgen.FromError(err)
	}, nil)
	if err != nil {
		return run, err
	}
	run.Process.ReuseRate = pool.TrueReuseRate()
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["reported_hit_rate"] = pool.ReportedHitRate()
	return run, nil
}
