package metricsotel

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/metrics"
	"github.com/spillway-go/spillway/workerpool"
)

// Observer returns an observer that records how long requests of a limiter wait and take, under the
// limiter's name. A family has one name for all its keys, since external keys are not a bounded
// label. limiter.Observers combines it with other observers.
func Observer(meter metric.Meter, name string) (*limiter.Observer, error) {
	waited, err := newTimes(meter, "spillway.request.time_in_queue", "How long admitted requests waited.", "limiter", name)
	if err != nil {
		return nil, err
	}
	times, err := newTimes(meter, "spillway.request.duration", "How long finished requests took, by kind, without the wait and without long work.", "limiter", name)
	if err != nil {
		return nil, err
	}
	return &limiter.Observer{
		Admitted: func(_ spillway.Priority, d time.Duration) { waited.record(d) },
		Ended: func(e limiter.End) {
			if !e.Long {
				times.recordOf(e.Kind, e.Took)
			}
		},
	}, nil
}

// JobTimes returns a function that records how long a job of a pool waited and, if it returned, how
// long it ran. Call the function in workerpool.Config.OnDone, which must still handle the job's
// error.
func JobTimes(meter metric.Meter, name string) (func(workerpool.Result), error) {
	waited, err := newTimes(meter, "spillway.pool.job.time_in_queue", "How long started jobs waited.", "pool", name)
	if err != nil {
		return nil, err
	}
	times, err := newTimes(meter, "spillway.pool.job.duration", "How long jobs that returned took, without the wait.", "pool", name)
	if err != nil {
		return nil, err
	}
	return func(r workerpool.Result) {
		if !r.Started {
			return
		}
		waited.record(r.Waited)
		if _, panicked := errors.AsType[*spillway.PanicError](r.Err); !panicked && !errors.Is(r.Err, workerpool.ErrGoexit) {
			times.record(r.Ran)
		}
	}, nil
}

// times is a histogram under one label. Recording allocates nothing, apart from the first record of a kind.
type times struct {
	histogram metric.Float64Histogram
	own       attribute.KeyValue
	label     []metric.RecordOption
	kinds     sync.Map // []metric.RecordOption by kind
	known     atomic.Int64
}

// mostKinds is how many kinds have a series of their own, as those of one limiter. The limiters of a family
// may have others each.
const mostKinds = 32

// newTimes makes a histogram. Its name and its help are those of package metrics.
func newTimes(meter metric.Meter, name, help, label, value string) (*times, error) {
	h, err := meter.Float64Histogram(name, metric.WithDescription(help), metric.WithUnit("s"),
		metric.WithExplicitBucketBoundaries(metrics.Bounds()...))
	if err != nil {
		return nil, fmt.Errorf("metricsotel: %w", err)
	}
	own := attribute.String(label, clean(value))
	return &times{histogram: h, own: own, label: options(own)}, nil
}

// clean returns s as a valid label value: New cleans the name of a source.
func clean(s string) string {
	_, value := metrics.New("", s, nil, nil).Label()
	return value
}

func options(attributes ...attribute.KeyValue) []metric.RecordOption {
	return []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(attributes...))}
}

// recordOf records a time of work of a kind.
func (t *times) recordOf(kind string, d time.Duration) {
	if kind == "" {
		t.record(d)
		return
	}
	known, ok := t.kinds.Load(kind)
	if !ok {
		if t.known.Add(1) > mostKinds {
			t.known.Add(-1)
			t.record(d)
			return
		}
		known, _ = t.kinds.LoadOrStore(kind, options(t.own, attribute.String("kind", clean(kind))))
	}
	t.histogram.Record(context.Background(), d.Seconds(), known.([]metric.RecordOption)...)
}

func (t *times) record(d time.Duration) {
	t.histogram.Record(context.Background(), d.Seconds(), t.label...)
}
