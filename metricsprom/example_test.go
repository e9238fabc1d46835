package metricsprom_test

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/metricsprom"
)

func ExampleNew() {
	lim, err := limiter.New(limiter.Config{Name: "database", Law: limit.NewFixed(20)})
	if err != nil {
		panic(err)
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(metricsprom.New(metrics.Limiter(lim)))

	_ = lim.Do(context.Background(), func(context.Context) error { return nil })

	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "spillway_requests_total" {
			for _, m := range f.Metric {
				if n := m.Counter.GetValue(); n > 0 {
					for _, l := range m.Label {
						fmt.Printf("%s=%q ", l.GetName(), l.GetValue())
					}
					fmt.Println(n)
				}
			}
		}
	}
	// Output: key="" limiter="database" result="admitted" 1
}
