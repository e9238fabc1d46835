// Package patterns plays the roles of experiment H that need the patient API: our
// patterns, as function calls and as a server.
package patterns

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/contestant"
	plan "github.com/spillway-go/spillway/lab/patterns"
	"github.com/spillway-go/spillway/lab/results"
)

// Roles are the roles of experiment H that need the patient API.
func Roles() map[string]contestant.Role {
	return map[string]contestant.Role{
		plan.RoleCall:   contestant.Func(call),
		plan.RoleServer: server,
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
	run, err := j.Play(ctx, plan.Subject{
		Answer: func(ctx context.Context, id string) ([]byte, error) {
			found, err := service.Run(ctx, r, func(ctx context.Context, p *patientapi.Patient) error { return store.Patient(ctx, id, p) })
			if err != nil {
				return nil, err
			}
			defer found.Release() // after it is encoded, as the service does
			if j.Load == plan.Reuse {
				return json.Marshal(&found.Value)
			}
			return nil, nil
		},
		Alone: func(ctx context.Context, id string) ([]byte, error) {
			var p patientapi.Patient
			if err := people.Patient(ctx, id, &p); err != nil {
				return nil, err
			}
			return json.Marshal(&p)
		},
		Replies: func() (gets, made uint64, ok bool) {
			s := r.Stats()
			return s.Responses, s.Responses - s.Reused, s.ReuseRate >= 0
		},
		PeakCalls: store.PeakCalls,
	})
	drain, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return run, errors.Join(err, r.Drain(drain))
}
