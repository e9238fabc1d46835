package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway/examples/patientapi"
)

// store makes a span of each question to a store. It is named by the question, and says
// nothing of whom it is about.
type store struct {
	patientapi.Store // Ping is for probes, and has none
	tracer           trace.Tracer
}

// Store returns s with a span around every question; s itself where there are no spans.
func (t *Tracing) Store(s patientapi.Store) patientapi.Store {
	if t == nil {
		return s
	}
	return store{s, t.Tracer()}
}

// asks makes the span of one question.
func (s store) asks(ctx context.Context, what string, ask func(context.Context) error) error {
	ctx, span := s.tracer.Start(ctx, what, trace.WithSpanKind(trace.SpanKindClient))
	defer span.End()
	err := ask(ctx)
	if errors.Is(err, patientapi.ErrUnavailable) {
		span.SetStatus(codes.Error, "")
	}
	return err
}

func (s store) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	return s.asks(ctx, "store patient", func(ctx context.Context) error { return s.Store.Patient(ctx, id, dst) })
}

func (s store) Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error {
	return s.asks(ctx, "store patients", func(ctx context.Context) error { return s.Store.Patients(ctx, ids, dst) })
}

func (s store) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	return s.asks(ctx, "store search", func(ctx context.Context) error { return s.Store.Search(ctx, q, dst) })
}

func (s store) Count(ctx context.Context, q patientapi.PatientSearch) (n int, err error) {
	err = s.asks(ctx, "store count", func(ctx context.Context) error { n, err = s.Store.Count(ctx, q); return err })
	return n, err
}

func (s store) Observations(ctx context.Context, id string) (all []patientapi.Observation, err error) {
	err = s.asks(ctx, "store observations", func(ctx context.Context) error { all, err = s.Store.Observations(ctx, id); return err })
	return all, err
}

func (s store) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) (all []patientapi.Clinician, err error) {
	err = s.asks(ctx, "store clinicians", func(ctx context.Context) error { all, err = s.Store.Clinicians(ctx, q); return err })
	return all, err
}
