package tracing

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

func TestEachQuestionIsASpanThatNamesNobody(t *testing.T) {
	base, err := simulated.New(100, 1)
	require.NoError(t, err)
	spans := tracetest.NewSpanRecorder()
	store := (&Tracing{provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))}).Store(base)
	ctx := t.Context()
	_ = store.Patient(ctx, "P000042", new(patientapi.Patient))
	_ = store.Patients(ctx, []string{"P000042"}, new(patientapi.Batch))
	_ = store.Search(ctx, patientapi.PatientSearch{}, new(patientapi.Page))
	_, _ = store.Count(ctx, patientapi.PatientSearch{})
	_, _ = store.Observations(ctx, "P000042")
	_, _ = store.Clinicians(ctx, patientapi.ClinicianQuery{})
	_ = store.Ping(ctx)
	var names []string
	for _, s := range spans.Ended() {
		names = append(names, s.Name())
		if len(s.Attributes())+len(s.Events()) != 0 || s.Status().Code != codes.Unset {
			t.Errorf("%s says %v, %v, %v", s.Name(), s.Attributes(), s.Events(), s.Status())
		}
	}
	if got := strings.Join(names, ", "); got != "store patient, store patients, store search, store count, store observations, store clinicians" {
		t.Error(got)
	}
}
