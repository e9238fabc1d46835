package tracing

import (
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/internal/storetest"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// questions returns a store with spans, the spans, and what is below.
func questions(t *testing.T, cfg simulated.Config) (patientapi.Store, *tracetest.SpanRecorder) {
	t.Helper()
	base, err := simulated.New(storetest.Patients, storetest.Seed)
	require.NoError(t, err)
	below, err := simulated.Inject(base, cfg)
	require.NoError(t, err)
	spans := tracetest.NewSpanRecorder()
	tracing := &Tracing{provider: sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))}
	return tracing.Store(below), spans
}

func TestAStoreWithSpansAnswersAsBefore(t *testing.T) {
	store, _ := questions(t, simulated.Config{})
	storetest.Lookups(t, store)
}

func TestEachQuestionIsASpanThatNamesNobody(t *testing.T) {
	store, spans := questions(t, simulated.Config{})
	ctx := t.Context()
	_ = store.Patient(ctx, "P000042", new(patientapi.Patient))
	_ = store.Patients(ctx, []string{"P000042"}, new(patientapi.Batch))
	_ = store.Search(ctx, patientapi.PatientSearch{}, new(patientapi.Page))
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
	if got := strings.Join(names, ", "); got != "store patient, store patients, store search, store observations, store clinicians" {
		t.Error(got)
	}
}
