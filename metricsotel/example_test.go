package metricsotel_test

import (
	"context"
	"fmt"

	sdk "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/metricsotel"
)

func Example() {
	reader := sdk.NewManualReader() // a program uses a periodic reader with an exporter
	provider := sdk.NewMeterProvider(sdk.WithReader(reader))
	meter := provider.Meter("example.com/service")

	observer, err := metricsotel.Observer(meter, "database")
	if err != nil {
		panic(err)
	}
	lim, err := limiter.New(limiter.Config{Name: "database", Law: limit.NewFixed(20), Observer: observer})
	if err != nil {
		panic(err)
	}
	if _, err := metricsotel.Register(meter, metrics.Limiter(lim)); err != nil {
		panic(err)
	}

	_ = lim.Do(context.Background(), func(context.Context) error { return nil })

	var data metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &data); err != nil {
		panic(err)
	}
	for _, m := range data.ScopeMetrics[0].Metrics {
		switch d := m.Data.(type) {
		case metricdata.Histogram[float64]:
			fmt.Println(m.Name, d.DataPoints[0].Count)
		case metricdata.Sum[float64]:
			if m.Name == "spillway.limit" {
				fmt.Println(m.Name, d.DataPoints[0].Value)
			}
		}
	}
	// Unordered output:
	// spillway.limit 20
	// spillway.request.time_in_queue 1
	// spillway.request.duration 1
}
