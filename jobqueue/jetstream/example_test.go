package jetstream_test

import (
	"context"
	"fmt"
	"os"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/embedded"
	"github.com/spillway-go/spillway/jobqueue/jetstream"
)

func Example() {
	dir, err := os.MkdirTemp("", "jobs")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	server, err := embedded.Start(embedded.Config{Dir: dir})
	if err != nil {
		panic(err)
	}
	defer server.Close(context.Background())
	queue, err := jetstream.Open(ctx, jetstream.Config{Server: server})
	if err != nil {
		panic(err)
	}
	defer queue.Close()

	job := jobqueue.Job{Key: "order 17", Priority: spillway.High, Payload: []byte("two of those")}
	receipt, err := queue.Enqueue(ctx, job) // nil: it is on disk
	fmt.Println("stored:", receipt.Key, err)
	receipt, err = queue.Enqueue(ctx, job)
	fmt.Println("duplicate:", receipt.Duplicate, err)

	err = queue.Work(ctx, func(ctx context.Context, d *jobqueue.Delivery) error {
		fmt.Printf("attempt %d of %s: %s\n", d.Attempt, d.Key, d.Payload)
		if d.Attempt == 1 {
			return jobqueue.RetryAfter(0, nil) // any other error: run again after a back-off
		}
		cancel() // this example ends with its only job
		return nil
	})
	fmt.Println(err)
	// Output:
	// stored: order 17 <nil>
	// duplicate: true <nil>
	// attempt 1 of order 17: two of those
	// attempt 2 of order 17: two of those
	// context canceled
}
