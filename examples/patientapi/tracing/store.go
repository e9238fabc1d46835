package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// Store returns s with a span around every question but Ping, which is for probes; s itself where
// there are no spans. A span is named by the kind of the question, and says nothing of whom it is
// about.
func (t *Tracing) Store(s patientapi.Store) patientapi.Store {
	if t == nil {
		return s
	}
	tracer := t.Tracer()
	return patientapi.Around(s, func(ctx context.Context, q patientapi.Question, ask func(context.Context) error) error {
		ctx, span := tracer.Start(ctx, "store "+q.Kind, trace.WithSpanKind(trace.SpanKindClient))
		defer span.End()
		err := ask(ctx)
		if errors.Is(err, patientapi.ErrUnavailable) {
			span.SetStatus(codes.Error, "")
		}
		return err
	})
}
