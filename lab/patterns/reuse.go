package patterns

import (
	"bytes"
	"context"
	"encoding/json"
	"sync/atomic"

	"github.com/spillway-go/spillway/examples/patientapi"
	service "github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/lab/results"
	"github.com/spillway-go/spillway/loadgen"
)

// reusing is the contestant of H9: it answers from reused objects over a store
// without latency and compares every answer, byte for byte, with one that was
// made for this patient alone.
func reusing(ctx context.Context, j job) (results.Run, error) {
	people, err := simulated.New(j.Patients, 1)
	if err != nil {
		return results.Run{}, err
	}
	runner, err := service.New(j.Pattern, service.Config{Workers: j.Workers, QueueSize: j.Clients})
	if err != nil {
		return results.Run{}, err
	}
	defer func() { _ = runner.Drain(ctx) }()
	answer := answerOf(runner, people)
	var foreign atomic.Uint64
	run, err := j.measure(ctx, func(ctx context.Context, n uint64) loadgen.Outcome {
		id := j.id(n)
		got, err := answer(ctx, id)
		if err != nil {
			return loadgen.FromError(err)
		}
		var alone patientapi.Patient
		if err := people.Patient(ctx, id, &alone); err != nil {
			return loadgen.Error
		}
		if want, err := json.Marshal(&alone); err != nil || !bytes.Equal(got, want) {
			foreign.Add(1)
		}
		return loadgen.OK
	}, runner.Stats)
	if err != nil {
		return run, err
	}
	run.Extra["foreign"] = float64(foreign.Load())
	return run, nil
}

// answerOf encodes a response before it is given back, as the service does.
func answerOf(runner *service.Runner, store patients) func(context.Context, string) ([]byte, error) {
	return func(ctx context.Context, id string) ([]byte, error) {
		found, err := lookup(ctx, runner, store, id)
		if err != nil {
			return nil, err
		}
		defer found.Release()
		return json.Marshal(&found.Value)
	}
}
