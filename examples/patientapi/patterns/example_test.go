package patterns_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

func Example() {
	store, err := simulated.New(100, 1)
	if err != nil {
		panic(err)
	}
	runner, err := patterns.New(patterns.Optimized, patterns.Config{Store: store, Workers: 20, QueueSize: 100})
	if err != nil {
		panic(err)
	}
	ctx := context.Background()
	defer runner.Drain(ctx)

	resp, err := runner.Lookup(ctx, "P000042")
	if err != nil {
		panic(err) // a *spillway.Rejection when there is no room
	}
	fmt.Println(resp.Patient.ID, resp.Patient.BloodType)
	resp.Release() // written: now it may become another patient's

	// Output: P000042 AB+
}
