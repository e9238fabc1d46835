package app

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// The spans of a request that was answered before the end are sent before it.
func TestSpansOfTheLastRequestAreSent(t *testing.T) {
	names := make(chan string, 100)
	endpoint := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err := proto.Unmarshal(body, &data); err != nil {
			t.Error(err)
		}
		if text := data.String(); strings.Contains(text, "P000042") {
			t.Errorf("a span names a patient: %s", text)
		}
		for _, res := range data.ResourceSpans {
			for _, scope := range res.ScopeSpans {
				for _, s := range scope.Spans {
					names <- s.Name
				}
			}
		}
	}))
	defer endpoint.Close()
	c := quick()
	c.Traces.Endpoint, c.Admin.Addr = endpoint.URL, "127.0.0.1:0"
	r := start(t, c)
	if _, metrics := r.operate(t, "/metrics"); !strings.Contains(metrics, "patientapi_trace_spans_total") {
		t.Error("/metrics does not count spans")
	}
	r.get(t, "/api/v1/patients/P000042")
	if _, err := r.report(t); err != nil {
		t.Error(err)
	}
	close(names)
	seen := map[string]int{}
	for name := range names {
		seen[name]++
	}
	if seen["GET /api/v1/patients/{id}"] != 1 {
		t.Errorf("%v", seen)
	}
}

// An endpoint that is away is no reason not to serve.
func TestAServiceWhoseCollectorIsAwayServes(t *testing.T) {
	c := quick()
	c.Traces.Endpoint = "http://127.0.0.1:1"
	r := start(t, c)
	if status, _ := r.get(t, "/livez"); status != 200 {
		t.Errorf("%d", status)
	}
	if _, err := r.report(t); err != nil {
		t.Error(err)
	}
}

func TestABadEndpointIsFoundBeforeAnythingIsTouched(t *testing.T) {
	c := quick()
	c.Traces.Endpoint = "collector:4318"
	if err := c.Run(t.Context(), io.Discard, io.Discard); !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), "http://") {
		t.Errorf("%v", err)
	}
}
