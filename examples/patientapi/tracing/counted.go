package tracing

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/spillway-go/spillway/examples/patientapi/internal/discreet"
)

// counted is a batch processor that tells what became of each span. The one inside drops
// spans silently, when its queue is full; it never is, because no more wait here than
// it has room for.
type counted struct {
	sdk.SpanProcessor

	log                   *discreet.Log
	waiting               atomic.Int64
	sent, failed, dropped atomic.Uint64
}

func newCounted(to sdk.SpanExporter, logger *slog.Logger) *counted {
	c := &counted{log: discreet.NewLog(logger, slog.LevelWarn, "spans were not sent", "batches")}
	c.SpanProcessor = sdk.NewBatchSpanProcessor(uploads{to, c},
		sdk.WithMaxQueueSize(maxWaiting), sdk.WithBatchTimeout(batchEvery), sdk.WithExportTimeout(uploadTimeout))
	return c
}

// OnEnd implements sdk.SpanProcessor.
func (c *counted) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if c.waiting.Add(1) > maxWaiting {
		c.waiting.Add(-1)
		c.dropped.Add(1)
		return
	}
	c.SpanProcessor.OnEnd(s)
}

// uploads is an exporter whose batches are counted.
type uploads struct {
	sdk.SpanExporter
	c *counted
}

// ExportSpans implements sdk.SpanExporter. A batch that fails is lost, and not tried
// again: the next one is at the door. The error stays here: OpenTelemetry would write
// a line about each.
func (u uploads) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := u.SpanExporter.ExportSpans(ctx, spans)
	if n := uint64(len(spans)); err == nil {
		u.c.sent.Add(n)
	} else {
		u.c.failed.Add(n)
		u.c.log.Add(time.Now(), "error", err.Error())
	}
	u.c.waiting.Add(int64(-len(spans)))
	return nil
}

func (c *counted) stats() Stats {
	return Stats{c.sent.Load(), c.failed.Load(), c.dropped.Load(), int(c.waiting.Load())}
}

var (
	spansTotal   = prometheus.NewDesc("patientapi_trace_spans_total", "Spans that ended, by what became of them.", []string{"result"}, nil)
	spansWaiting = prometheus.NewDesc("patientapi_trace_spans_waiting", "Spans that wait to be sent.", nil, nil)
)

// Describe implements prometheus.Collector.
func (c *counted) Describe(ch chan<- *prometheus.Desc) { ch <- spansTotal; ch <- spansWaiting }

// Collect implements prometheus.Collector.
func (c *counted) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for result, n := range map[string]uint64{"sent": s.Sent, "failed": s.Failed, "dropped": s.Dropped} {
		ch <- prometheus.MustNewConstMetric(spansTotal, prometheus.CounterValue, float64(n), result)
	}
	ch <- prometheus.MustNewConstMetric(spansWaiting, prometheus.GaugeValue, float64(s.Waiting))
}
