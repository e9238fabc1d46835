package periodic_test

import (
	"context"
	"fmt"
	"time"
	_ "time/tzdata" // for machines without a zone database

	"github.com/spillway-go/spillway/jobqueue"
	"github.com/spillway-go/spillway/jobqueue/memory"
	"github.com/spillway-go/spillway/jobqueue/periodic"
)

func Example() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	nightly, err := periodic.Parse("0 3 * * *", berlin)
	if err != nil {
		panic(err)
	}
	queue, err := memory.Open(memory.Config{Dedupe: 26 * time.Hour}) // more than CatchUp
	if err != nil {
		panic(err)
	}
	defer queue.Close()
	// Every process of a service does this.
	scheduler, err := periodic.New(periodic.Config{Queue: queue, Entries: []periodic.Entry{{
		Name: "report", Schedule: nightly,
		CatchUp: 25 * time.Hour, // so that last night's report is made now, unless it was made
		Job: func(at time.Time) jobqueue.Job {
			return jobqueue.Job{Payload: []byte("report of " + at.Format("15:04 o'clock"))}
		},
	}}})
	if err != nil {
		panic(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- scheduler.Run(ctx) }()
	_ = queue.Work(ctx, func(_ context.Context, d *jobqueue.Delivery) error {
		fmt.Println(string(d.Payload))
		stop() // an application would keep working
		return nil
	})
	fmt.Println(<-ended)
	// Output:
	// report of 03:00 o'clock
	// context canceled
}

func ExampleSchedule_Next() {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		panic(err)
	}
	for _, spec := range []string{"30 2 * * *", "30 * * * *"} {
		schedule, err := periodic.Parse(spec, berlin)
		if err != nil {
			panic(err)
		}
		at := time.Date(2026, 3, 29, 0, 45, 0, 0, berlin) // at 2 o'clock it will be 3
		for range 3 {
			at = schedule.Next(at)
			fmt.Println(spec, at)
		}
	}
	// Output:
	// 30 2 * * * 2026-03-29 03:00:00 +0200 CEST
	// 30 2 * * * 2026-03-30 02:30:00 +0200 CEST
	// 30 2 * * * 2026-03-31 02:30:00 +0200 CEST
	// 30 * * * * 2026-03-29 01:30:00 +0100 CET
	// 30 * * * * 2026-03-29 03:30:00 +0200 CEST
	// 30 * * * * 2026-03-29 04:30:00 +0200 CEST
}
