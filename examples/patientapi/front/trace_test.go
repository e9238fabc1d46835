package front

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route"
)

const (
	callersTrace  = "0af7651916cd43dd8448eb211c80319c"
	callersSpan   = "b7ad6b7169203331"
	callersParent = "00-" + callersTrace + "-" + callersSpan + "-01"
)

type who struct {
	ID   string `path:"id"`
	Name string `query:"name"`
}

// withSpans returns what makes spans, and where they end up.
func withSpans() (*tracetest.SpanRecorder, Config) {
	spans := tracetest.NewSpanRecorder()
	return spans, Config{Tracer: sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)).Tracer("")}
}

// named returns the ended spans of that name.
func named(spans *tracetest.SpanRecorder, name string) (found []sdk.ReadOnlySpan) {
	for _, s := range spans.Ended() {
		if s.Name() == name {
			found = append(found, s)
		}
	}
	return found
}

func attributes(s sdk.ReadOnlySpan) map[attribute.Key]string {
	all := map[attribute.Key]string{}
	for _, a := range s.Attributes() {
		all[a.Key] = a.Value.String()
	}
	return all
}

func lasted(s sdk.ReadOnlySpan) time.Duration { return s.EndTime().Sub(s.StartTime()) }

// One slot, two requests of a second each: the second one waits for the first.
func TestSpansSayHowLongARequestWaitedAndWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans, cfg := withSpans()
		cfg.Limiter = newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: 1, MaxWait: time.Minute})
		api := newAPI(t, New(cfg), route.New("GET", "/work/{id}", func(context.Context, who) (route.Empty, error) {
			time.Sleep(time.Second)
			return route.Empty{}, nil
		}))
		go ask(api, "GET", "/work/P000001?name=Marple", nil)
		synctest.Wait()
		w := ask(api, "GET", "/work/P000042?name=Marple", nil, "Traceparent", callersParent, "Tracestate", "patient=P000042", "Baggage", "patient=P000042")
		if w.Code != 204 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		requests, waits, works := named(spans, "GET /work/{id}"), named(spans, "admission"), named(spans, "work")
		if len(requests) != 2 || len(waits) != 2 || len(works) != 2 {
			t.Fatalf("%d requests, %d waits, %d works", len(requests), len(waits), len(works))
		}
		for i, want := range []time.Duration{0, time.Second} {
			if lasted(waits[i]) != want || lasted(works[i]) != time.Second || lasted(requests[i]) != want+time.Second {
				t.Errorf("request %d: waited %v, worked %v, took %v", i, lasted(waits[i]), lasted(works[i]), lasted(requests[i]))
			}
		}
		request := requests[1]
		if request.SpanContext().TraceID().String() != callersTrace || request.Parent().SpanID().String() != callersSpan {
			t.Errorf("not a part of the caller's trace: %v in %v", request.SpanContext(), request.Parent())
		}
		if got, want := w.Header().Get("Traceresponse"), "00-"+callersTrace+"-"+request.SpanContext().SpanID().String()+"-01"; got != want {
			t.Errorf("the caller is told %q, want %q", got, want)
		}
		for _, s := range []sdk.ReadOnlySpan{waits[1], works[1]} {
			if s.Parent().SpanID() != request.SpanContext().SpanID() {
				t.Errorf("%s is not a part of the request", s.Name())
			}
		}
		if a := attributes(request); a["http.route"] != "/work/{id}" || a["http.request.method"] != "GET" || a["http.response.status_code"] != "204" {
			t.Errorf("%v", a)
		}
		for _, s := range spans.Ended() { // of the path, the query and the caller's own words nothing
			if text := s.Name() + s.SpanContext().TraceState().String() + strings.Join(values(s), " "); strings.Contains(text, "P0000") || strings.Contains(text, "Marple") {
				t.Errorf("a span names a patient: %s", text)
			}
		}
	})
}

func values(s sdk.ReadOnlySpan) (all []string) {
	for _, v := range attributes(s) {
		all = append(all, v)
	}
	return all
}

func TestARefusedRequestHasAReasonAndNoWork(t *testing.T) {
	spans, cfg := withSpans()
	lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: -1})
	cfg.Limiter = lim
	api := newAPI(t, New(cfg), route.New("POST", "/echo", echo))
	permit, err := lim.Acquire(t.Context())
	require.NoError(t, err)
	defer permit.Release()
	for _, path := range []string{"/echo", "/nowhere"} {
		if w := ask(api, "POST", path, unread{t}); w.Code != 503 {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	if works := named(spans, "work"); len(works) != 0 {
		t.Errorf("%d requests worked", len(works))
	}
	ended := append(named(spans, "POST /echo"), named(spans, unmatched)...)
	ended = append(ended, named(spans, "admission")...)
	if len(ended) != 4 {
		t.Fatalf("%d spans, want two requests and two waits", len(ended))
	}
	for _, s := range ended {
		if a := attributes(s); a[resultKey] != "queue_full" || s.Name() != "admission" && (a["http.response.status_code"] != "503" || s.Status().Code != codes.Error) {
			t.Errorf("%s: %v %v", s.Name(), a, s.Status())
		}
	}
}

// A caller that leaves while it waits has no work either; nor is it refused.
func TestACallerThatLeavesIsSaidToHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		spans, cfg := withSpans()
		lim := newLimiter(t, limiter.Config{Law: limit.NewFixed(1), QueueSize: 1, MaxWait: time.Minute})
		cfg.Limiter = lim
		api := newAPI(t, New(cfg), route.New("POST", "/echo", echo))
		permit, err := lim.Acquire(t.Context())
		require.NoError(t, err)
		defer permit.Release()
		ctx, leave := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, leave)
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/echo", nil).WithContext(ctx))
		waits := named(spans, "admission")
		if len(waits) != 1 || len(named(spans, "work")) != 0 {
			t.Fatalf("%v", spans.Ended())
		}
		if a := attributes(waits[0]); a[resultKey] != "cancelled" || lasted(waits[0]) != time.Second {
			t.Errorf("%v after %v", a, lasted(waits[0]))
		}
	})
}
