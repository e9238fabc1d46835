package loadgen_test

import (
	"context"
	"fmt"
	"time"

	"github.com/spillway-go/spillway/loadgen"
)

func ExampleRun() {
	result, err := loadgen.Run(context.Background(), loadgen.Config{
		Closed: &loadgen.Closed{Clients: 3, Requests: 10},
		Target: loadgen.TargetFunc(func(ctx context.Context, n uint64) loadgen.Outcome {
			if n%5 == 4 {
				return loadgen.Rejected
			}
			return loadgen.OK
		}),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, o := range loadgen.Outcomes() {
		fmt.Println(o, result.Outcomes[o].Count)
	}
	// Output:
	// ok 8
	// rejected 2
	// error 0
	// timeout 0
}

func ExampleTimes() {
	for at := range loadgen.Times(loadgen.Constant(4, time.Second)) {
		fmt.Println(at)
	}
	// Output:
	// 0s
	// 250ms
	// 500ms
	// 750ms
}

func ExampleParseExpectation() {
	result, err := loadgen.Run(context.Background(), loadgen.Config{
		Open:   loadgen.Poisson(1000, 20*time.Millisecond, 1),
		Target: loadgen.TargetFunc(func(context.Context, uint64) loadgen.Outcome { return loadgen.OK }),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"ok>=99%", "error<1%", "p98<200ms"} {
		bound, err := loadgen.ParseExpectation(text)
		if err != nil {
			fmt.Println(err)
			continue
		}
		ok, measured := bound.Check(result)
		fmt.Println(bound, ok, measured)
	}
	// Output:
	// ok>=99% true 100.00%
	// error<1% true 0.00%
	// loadgen: expectation "p98<200ms": no metric "p98": want p50, p90, p95, p99, p99.9, mean, min or max, also of another outcome as in rejected.p99; goodput; or ok, rejected, error or timeout
}
