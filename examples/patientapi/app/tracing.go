package app

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi/tracing"
)

// TraceFlags say where the spans of requests go.
type TraceFlags struct {
	Endpoint string  `name:"otlp-endpoint" help:"Base URL of a collector that takes spans as OTLP over HTTP, such as http://127.0.0.1:4318; off unless given. Headers with credentials come from OTEL_EXPORTER_OTLP_HEADERS." env:"SPILLWAY_OTLP_ENDPOINT,OTEL_EXPORTER_OTLP_ENDPOINT" placeholder:"URL"`
	Sample   float64 `name:"trace-sample" help:"Share of requests whose spans are sent, 0 to 1." default:"1" env:"SPILLWAY_TRACE_SAMPLE"`
}

// flushTime is how long a service that has stopped waits for the last spans to be sent.
const flushTime = 3 * time.Second

// checkTraces finds what is wrong with the flags, before anything is touched.
func (c *Command) checkTraces() error {
	if !(c.Traces.Sample >= 0 && c.Traces.Sample <= 1) {
		return usagef("trace-sample is %v: want a share from 0 to 1", c.Traces.Sample)
	}
	t, err := c.openTraces(nil)
	if err == nil {
		_ = t.Close(context.Background())
	}
	return err
}

// openTraces starts sending spans; nil if there is nowhere to send them.
func (c *Command) openTraces(logger *slog.Logger) (*tracing.Tracing, error) {
	if c.Traces.Endpoint == "" {
		return nil, nil
	}
	t, err := tracing.New(tracing.Config{
		Endpoint: c.Traces.Endpoint, Headers: os.Getenv("OTEL_EXPORTER_OTLP_HEADERS"), Sample: c.Traces.Sample, Logger: logger,
	})
	return t, usage(err)
}

// closeTraces sends what is left.
func closeTraces(t *tracing.Tracing, logger *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.Close(ctx); err != nil {
		logger.Warn("traces are incomplete", "error", err)
	}
}
