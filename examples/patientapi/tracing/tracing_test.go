package tracing

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
)

// collector is an OTLP endpoint in memory.
type collector struct {
	mu      sync.Mutex
	spans   []*tracepb.Span
	service string
	header  http.Header
	path    string
	answer  int
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var data tracepb.TracesData
	if err := proto.Unmarshal(body, &data); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.header, c.path = r.Header, r.URL.Path
	for _, res := range data.ResourceSpans {
		for _, a := range res.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, scope := range res.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	w.WriteHeader(max(c.answer, 200))
}

// listening starts an endpoint and what sends to it.
func listening(t *testing.T, answer int, cfg Config) (*collector, *Tracing) {
	t.Helper()
	c := &collector{answer: answer}
	srv := httptest.NewServer(c)
	t.Cleanup(srv.Close)
	cfg.Endpoint = srv.URL
	return c, started(t, cfg)
}

func started(t *testing.T, cfg Config) *Tracing {
	t.Helper()
	tracing, err := New(cfg)
	require.NoError(t, err)
	return tracing
}

func end(t *testing.T, tracing *Tracing) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	assert.NoError(t, tracing.Close(ctx))
}

func TestSpansArriveWithTheirTimes(t *testing.T) {
	c, tracing := listening(t, 0, Config{Sample: 1, Headers: "authorization=Bearer%20secret, X-Tenant=a"})
	began := time.Now().Add(-time.Hour)
	ctx, request := tracing.Tracer().Start(t.Context(), "GET /patients/{id}", trace.WithTimestamp(began))
	_, wait := tracing.Tracer().Start(ctx, "admission", trace.WithTimestamp(began))
	wait.End(trace.WithTimestamp(began.Add(20 * time.Millisecond)))
	request.End(trace.WithTimestamp(began.Add(70 * time.Millisecond)))
	end(t, tracing)

	if len(c.spans) != 2 || c.service != "patientapi" || c.path != "/v1/traces" ||
		c.header.Get("Authorization") != "Bearer secret" || c.header.Get("X-Tenant") != "a" || c.header.Get("Content-Type") != "application/x-protobuf" {
		t.Fatalf("%d spans of %q at %s with %v", len(c.spans), c.service, c.path, c.header)
	}
	for i, want := range []time.Duration{20 * time.Millisecond, 70 * time.Millisecond} {
		if s := c.spans[i]; time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano) != want {
			t.Errorf("%s took %v, want %v", s.Name, time.Duration(s.EndTimeUnixNano-s.StartTimeUnixNano), want)
		}
	}
	if !bytes.Equal(c.spans[0].ParentSpanId, c.spans[1].SpanId) {
		t.Error("the wait is not a part of the request")
	}
	if s := tracing.Stats(); s != (Stats{Sent: 2}) {
		t.Errorf("%+v", s)
	}
}

// What a collector says that cannot take spans goes to the log once, and its spans are
// counted; requests do not notice.
func TestAnEndpointThatFailsCostsOnlyTheSpans(t *testing.T) {
	var log bytes.Buffer
	_, tracing := listening(t, http.StatusServiceUnavailable, Config{Sample: 1, Headers: "authorization=secret", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 10 {
		_, span := tracing.Tracer().Start(t.Context(), "request")
		span.End()
	}
	end(t, tracing)
	if s := tracing.Stats(); s != (Stats{Failed: 10}) {
		t.Errorf("%+v", s)
	}
	if text := log.String(); !strings.Contains(text, "503") || strings.Contains(text, "secret") {
		t.Errorf("log: %s", text)
	}
}

// The endpoint takes connections and says nothing: what does not fit is dropped, and
// each span is counted once.
func TestAnEndpointThatHangsHoldsNobodyUp(t *testing.T) {
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer srv.Close()
	defer close(release)
	tracing := started(t, Config{Endpoint: srv.URL, Sample: 1})
	const n = 3 * maxWaiting
	for range n {
		_, span := tracing.Tracer().Start(t.Context(), "request")
		span.End()
	}
	s := tracing.Stats() // on a busy machine the first batch may have failed already
	if s.Sent != 0 || s.Dropped == 0 || s.Waiting > maxWaiting || s.Failed+s.Dropped+uint64(s.Waiting) != n {
		t.Errorf("%+v of %d, want at most %d waiting and the rest dropped", s, n, maxWaiting)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := tracing.Close(ctx); err == nil || !strings.Contains(err.Error(), "not sent in time") {
		t.Errorf("closed with %v", err)
	}
}

func TestACallerMayLeaveItsTraceOutAndCannotForceItIn(t *testing.T) {
	for _, tc := range []struct {
		sample float64
		flags  trace.TraceFlags
		want   bool
	}{{1, trace.FlagsSampled, true}, {1, 0, false}, {0, trace.FlagsSampled, false}, {0, 0, false}} {
		tracing := started(t, Config{Endpoint: "http://127.0.0.1:1", Sample: tc.sample})
		ctx := trace.ContextWithRemoteSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: trace.TraceID{1, 15: 1}, SpanID: trace.SpanID{1}, TraceFlags: tc.flags, Remote: true,
		}))
		if _, span := tracing.Tracer().Start(ctx, "request"); span.IsRecording() != tc.want {
			t.Errorf("share %v, flags %v: sent is %v", tc.sample, tc.flags, span.IsRecording())
		}
		end(t, tracing)
	}
}

func TestBadConfigurationsSayWhatToDoAndNoSecrets(t *testing.T) {
	for name, cfg := range map[string]Config{
		"no scheme":   {Endpoint: "127.0.0.1:4318"},
		"grpc":        {Endpoint: "grpc://127.0.0.1:4317"},
		"no host":     {Endpoint: "http:///v1"},
		"a query":     {Endpoint: "http://127.0.0.1:4318?key=hunter2"},
		"credentials": {Endpoint: "http://me:hunter2@127.0.0.1:4318"},
		"headers":     {Endpoint: "http://127.0.0.1:4318", Headers: "hunter2"},
		"encoding":    {Endpoint: "http://127.0.0.1:4318", Headers: "key=hunter2%zz"},
		"share":       {Endpoint: "http://127.0.0.1:4318", Sample: 1.5},
		"negative":    {Endpoint: "http://127.0.0.1:4318", Sample: -1},
	} {
		if _, err := New(cfg); err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "1") && !strings.Contains(err.Error(), "=") && !strings.Contains(err.Error(), "HEADERS") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzHeaders(f *testing.F) {
	f.Add("a=b,c=d%20e")
	f.Add("=,")
	f.Fuzz(func(t *testing.T, headers string) {
		c, err := newClient("http://127.0.0.1:4318", headers)
		if err == nil && c.header.Get("Content-Type") != "application/x-protobuf" {
			t.Fatal(c.header)
		}
	})
}
