package metrics_test

import (
	"context"
	"fmt"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
)

// An adapter to another library is a loop.
func ExampleSource_Read() {
	lim, err := limiter.New(limiter.Config{Name: "database", Law: limit.NewFixed(20)})
	if err != nil {
		panic(err)
	}
	_ = lim.Do(context.Background(), func(context.Context) error { return nil })

	source := metrics.Limiter(lim)
	label, name := source.Label()
	all := source.Metrics()
	for _, s := range source.Read() {
		m := all[s.Metric]
		switch {
		case m.Kind == metrics.Histogram:
			fmt.Printf("%s{%s=%s} in %d buckets\n", m.Name, label, name, len(s.Counts))
		case s.Value == 1 || m.Name == "spillway.limit":
			fmt.Printf("%s{%s=%s} %v %q\n", m.Name, label, name, s.Value, s.Labels)
		}
	}
	// Output:
	// spillway.requests{limiter=database} 1 ["" "admitted"]
	// spillway.limit{limiter=database} 20 [""]
	// spillway.request.time_in_queue{limiter=database} in 17 buckets
	// spillway.request.duration{limiter=database} in 17 buckets
	// spillway.kind.requests{limiter=database} 1 ["" "" "ok"]
	// spillway.priority.requests{limiter=database} 1 ["" "normal" "admitted"]
	// spillway.mode{limiter=database} 1 ["" "enforce"]
}
