// Package tracing sends the spans of the service to an OTLP endpoint, over HTTP. It
// never delays a request: spans wait in bounded memory for a batch, those that find it
// full are dropped, and what became of each span is counted.
//
// Of OpenTelemetry it takes all but the client of the wire, which is small here: the
// one for HTTP of OpenTelemetry brings gRPC along.
package tracing

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Config says what is sent, and where.
type Config struct {
	// Endpoint is the base URL of the collector, such as http://127.0.0.1:4318. The
	// path /v1/traces is added to it.
	Endpoint string

	// Headers go with every batch, as OTEL_EXPORTER_OTLP_HEADERS has them:
	// name=value,name=value, percent-encoded. They may be secret.
	Headers string

	// Sample is the share of traces that are sent, 0 to 1.
	Sample float64

	// Logger is told of batches that could not be sent, in at most one line a
	// second. Nil means that nothing is logged.
	Logger *slog.Logger
}

const (
	maxWaiting    = 4096            // spans, of about a kilobyte each
	batchEvery    = time.Second     // at the latest
	uploadTimeout = 5 * time.Second // of one batch
)

// Tracing sends spans. It is safe for concurrent use. A nil Tracing makes none.
type Tracing struct {
	provider *sdk.TracerProvider
	spans    *counted
}

// New starts sending. The endpoint is not asked: a service is not to fail because its
// collector is away. Call Close.
func New(cfg Config) (*Tracing, error) {
	if !(cfg.Sample >= 0 && cfg.Sample <= 1) {
		return nil, fmt.Errorf("the share of traces is %v: want 0 to 1", cfg.Sample)
	}
	client, err := newClient(cfg.Endpoint, cfg.Headers)
	if err != nil {
		return nil, err
	}
	spans := newCounted(otlptrace.NewUnstarted(client), cfg.Logger)
	return &Tracing{provider: newProvider(spans, cfg.Sample), spans: spans}, nil
}

// newProvider decides which traces are sent. A caller may leave its trace out, by the
// flag of its traceparent, and cannot force it in: that would let strangers choose how
// much is sent.
func newProvider(spans sdk.SpanProcessor, sample float64) *sdk.TracerProvider {
	share := sdk.TraceIDRatioBased(sample)
	return sdk.NewTracerProvider(
		sdk.WithSpanProcessor(spans),
		sdk.WithSampler(sdk.ParentBased(share, sdk.WithRemoteParentSampled(share))),
		sdk.WithResource(describe()),
	)
}

// describe says which process it is. The environment may say more, by
// OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES. The command line is not told.
func describe() *resource.Resource {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		version = info.Main.Version
	}
	// Of an error there is still a part, which is as good as it gets.
	res, _ := resource.New(context.Background(), resource.WithHost(), resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", "patientapi"), attribute.String("service.version", version)),
		resource.WithFromEnv())
	return res
}

// Tracer makes the spans; nil where there are none.
func (t *Tracing) Tracer() trace.Tracer {
	if t == nil {
		return nil
	}
	return t.provider.Tracer("github.com/spillway-go/spillway/examples/patientapi")
}

// Collectors show in Prometheus what became of spans.
func (t *Tracing) Collectors() []prometheus.Collector {
	if t == nil {
		return nil
	}
	return []prometheus.Collector{t.spans}
}

// Stats counts spans that have ended by what became of them.
type Stats struct {
	Sent    uint64 // the endpoint took them
	Failed  uint64 // the endpoint did not
	Dropped uint64 // too many were waiting
	Waiting int    // not sent yet
}

// Stats returns the counts so far.
func (t *Tracing) Stats() Stats { return t.spans.stats() }

// Close sends what is waiting and ends. What ctx does not leave the time for is lost;
// the error says how much.
func (t *Tracing) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	_ = t.provider.Shutdown(ctx)
	t.spans.log.Flush(time.Now())
	if n := t.Stats().Waiting; n > 0 {
		return fmt.Errorf("%d spans were not sent in time", n)
	}
	return nil
}
