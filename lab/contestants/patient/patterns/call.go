// Package patterns plays the roles of experiment H that need the patient API: our
// patterns, as function calls and as a server.
package patterns

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// Roles are the roles of experiment H that need the patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		plan.RoleCall:   contestant.Func(call),
		plan.RoleServer: server,
		plan.RoleReuse:  contestant.Func(reusing),
	}
}

// slow is a store with the latency and the errors of the job.
func slow(j plan.Job, store simulated.Source) (*simulated.Injected, error) {
	return simulated.Inject(store, simulated.Config{
		MinLatency: j.MinLatency, MaxLatency: j.MaxLatency, ErrorRate: j.ErrorRate, Seed: j.Seed,
	})
}

// runner is the service's pattern.
func runner(j plan.Job) (*service.Runner, error) {
	return service.New(j.Pattern, service.Config{Workers: j.Workers, QueueSize: j.QueueSize, QueueWait: j.QueueWait})
}

// call is the contestant of the set-up in process: load generator, pattern and
// simulated store in one process, joined by function calls.
func call(ctx context.Context, j plan.Job) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	store, err := slow(j, people)
	if err != nil {
		return results.Run{}, err
	}
	r, err := runner(j)
	if err != nil {
		return results.Run{}, err
	}
	run, err := j.Measure(ctx, func(ctx context.Context, n uint64) loadgen.Outcome {
		found, err := lookup(ctx, r, store, j.ID(n))
		if err == nil {
			found.Release()
		}
		return loadgen.FromError(err)
	}, replies(r))
	if err != nil {
		return run, err
	}
	run.Process.PeakStoreCalls = store.PeakCalls()
	run.Extra["store_latency_ms"] = plan.MS(store.MeanLatency())
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, r.Drain(drain)
}

// lookup finds a patient under the runner's pattern.
func lookup(ctx context.Context, r *service.Runner, store simulated.Source, id string) (*service.Answer[patientapi.Patient], error) {
	return service.Run(ctx, r, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
}

func replies(r *service.Runner) plan.Replies {
	return func() (gets, made uint64, ok bool) {
		s := r.Stats()
		return s.Responses, s.Responses - s.Reused, s.ReuseRate >= 0
	}
}

// reusing is the contestant of H9: it answers from reused objects, and encodes a
// response before it is given back, as the service does.
func reusing(ctx context.Context, j plan.Job) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	r, err := service.New(j.Pattern, service.Config{Workers: j.Workers, QueueSize: j.Clients})
	if err != nil {
		return results.Run{}, err
	}
	defer func() { _ = r.Drain(ctx) }()
	return j.Compare(ctx, func(ctx context.Context, id string) ([]byte, error) {
		found, err := lookup(ctx, r, people, id)
		if err != nil {
			return nil, err
		}
		defer found.Release()
		return json.Marshal(&found.Value)
	}, func(ctx context.Context, id string) ([]byte, error) {
		var alone patientapi.Patient
		if err := people.Patient(ctx, id, &alone); err != nil {
			return nil, err
		}
		return json.Marshal(&alone)
	}, replies(r))
}
