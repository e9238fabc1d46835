package memory_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

func Example() {
	queue, err := memory.Open(memory.Config{})
	if err != nil {
		panic(err)
	}
	defer queue.Close()
	ctx, stop := context.WithCancel(context.Background())
	for range 2 { // the second time it is a duplicate
		receipt, err := queue.Enqueue(ctx, jobqueue.Job{Key: "order-17", Payload: []byte("two tins of paint")})
		fmt.Println(receipt, err)
	}
	err = queue.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
		defer stop() // an application would keep working
		fmt.Printf("%s: %s\n", d.Key, d.Payload)
		return nil
	})
	fmt.Println(err)
	// Output:
	// {order-17 false} <nil>
	// {order-17 true} <nil>
	// order-17: two tins of paint
	// context canceled
}
