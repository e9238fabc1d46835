package patterns_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

func Example() {
	store, err := simulated.New(100, 1)
	if err != nil {
		panic(err)
	}
	runner, err := patterns.New(patterns.Optimized, patterns.Config{Workers: 20, QueueSize: 100})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer runner.Drain(ctx)

	found, err := patterns.Run(ctx, runner, func(ctx context.Context, p *patientapi.Patient) error {
		return store.Patient(ctx, "P000042", p)
	})
	if err != nil {
		panic(err) // a *spillway.Rejection when there is no room
	}
	fmt.Println(found.Value.ID, found.Value.BloodType)
	found.Release() // written: now it may become another patient's

	// Output: P000042 AB+
}
