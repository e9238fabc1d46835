// Package metricsotel exports limiters and worker pools to OpenTelemetry. It uses the metric API
// only: the program chooses the SDK and the exporter.
//
//	observer, err := metricsotel.Observer(meter, "database")
//	lim, err := limiter.New(limiter.Config{Name: "database", Observer: observer})
//	registration, err := metricsotel.Register(meter, metrics.Limiter(lim))
//
// Register exports all counts and levels of package metrics. The SDK reads them when it collects,
// so the measured work pays nothing. OpenTelemetry cannot read histograms in this way: Observer and
// JobTimes record each duration when it is known. Recording allocates nothing (go test
// ./metricsotel -run Alloc; -bench Observer for the time). The observer is made before the limiter,
// the registration after it, both with the same name.
//
// Names and labels are those of package metrics. An exporter to Prometheus converts them to the
// names of package metricsprom, whose dashboard then works as well. With Prometheus alone, use
// package metricsprom: its histograms cost the work nothing either.
package metricsotel

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/spillway-go/spillway/metrics"
)

// Register exports sources until the registration is unregistered. All sources of one kind and one
// meter provider must have different names: their counts would be added up. Equal names of one meter
// are an error.
func Register(meter metric.Meter, sources ...*metrics.Source) (metric.Registration, error) {
	taken, err := take(meter, sources)
	if err != nil {
		return nil, err
	}
	registration, err := register(meter, sources)
	if err != nil {
		taken.free()
		return nil, err
	}
	taken.Registration = registration
	return taken, nil
}

func register(meter metric.Meter, sources []*metrics.Source) (metric.Registration, error) {
	var all []observed
	var observables []metric.Observable
	for _, source := range sources {
		o := observed{Source: source, metrics: source.Metrics()}
		for _, m := range o.metrics {
			instrument, err := instrument(meter, m)
			if err != nil {
				return nil, fmt.Errorf("metricsotel: %w", err)
			}
			o.instruments = append(o.instruments, instrument)
			if instrument != nil {
				observables = append(observables, instrument)
			}
		}
		all = append(all, o)
	}
	registration, err := meter.RegisterCallback(func(_ context.Context, to metric.Observer) error {
		for _, o := range all {
			o.observe(to)
		}
		return nil
	}, observables...)
	if err != nil {
		return nil, fmt.Errorf("metricsotel: %w", err)
	}
	return registration, nil
}

// observed is a source with the instruments of its metrics. A histogram's instrument is nil.
type observed struct {
	*metrics.Source
	metrics     []metrics.Metric
	instruments []metric.Float64Observable
}

// instrument returns the instrument of a metric, or nil for a histogram.
func instrument(meter metric.Meter, m metrics.Metric) (metric.Float64Observable, error) {
	switch m.Kind {
	case metrics.Counter:
		return meter.Float64ObservableCounter(m.Name, metric.WithDescription(m.Help), metric.WithUnit(m.Unit))
	case metrics.UpDownCounter:
		return meter.Float64ObservableUpDownCounter(m.Name, metric.WithDescription(m.Help), metric.WithUnit(m.Unit))
	case metrics.Gauge:
		return meter.Float64ObservableGauge(m.Name, metric.WithDescription(m.Help), metric.WithUnit(m.Unit))
	}
	return nil, nil
}

func (o *observed) observe(to metric.Observer) {
	label, name := o.Label()
	for _, s := range o.Read() {
		instrument := o.instruments[s.Metric]
		if instrument == nil {
			continue
		}
		attributes := []attribute.KeyValue{attribute.String(label, name)}
		for i, value := range s.Labels {
			if value != "" {
				attributes = append(attributes, attribute.String(o.metrics[s.Metric].Labels[i], value))
			}
		}
		to.ObserveFloat64(instrument, s.Value, metric.WithAttributes(attributes...))
	}
}
