package front

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/spillway-go/spillway/admissionhttp"
)

// traces makes three spans of a request: all of it, its wait for admission, and its
// work. One that was refused has no work. They name the route and never what was in
// the request: no path, no query, no header.
type traces struct{ tracer trace.Tracer }

// trip is a request on its way.
type trip struct {
	wait     trace.Span
	admitted bool
}

type tripKey struct{}

// resultKey has the values of the label result of spillway_requests_total.
const resultKey = "spillway.result"

// trace puts spans around what f does, if there is a tracer.
func (f *Front) trace(tracer trace.Tracer) {
	if tracer == nil {
		return
	}
	t := traces{tracer}
	f.traced = t.requests
	if f.admission != nil {
		f.admission = t.around(f.admission)
	}
}

// requests makes the span of the whole request, as a part of the caller's trace.
// Probes have none: they come by the clock.
func (t traces) requests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if isProbe(r) {
			next.ServeHTTP(w, r)
			return
		}
		ctx, span := t.tracer.Start(callers(r), cmp.Or(r.Pattern, unmatched),
			trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("http.request.method", method(r.Method)), attribute.String("http.route", pathOf(cmp.Or(r.Pattern, unmatched)))))
		if sc := span.SpanContext(); sc.IsSampled() {
			w.Header().Set("Traceresponse", "00-"+sc.TraceID().String()+"-"+sc.SpanID().String()+"-01")
		}
		returned := false
		defer func() { describe(span, w, returned) }()
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, tripKey{}, &trip{})))
		returned = true
	})
}

// around makes the spans of the wait in front of admission, and of the work behind it.
func (t traces) around(admission func(http.Handler) http.Handler) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		admitted := admission(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { t.work(next, w, r) }))
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			on, ok := r.Context().Value(tripKey{}).(*trip)
			if !ok { // a probe
				admitted.ServeHTTP(w, r)
				return
			}
			_, on.wait = t.tracer.Start(r.Context(), "admission")
			defer func() {
				if !on.admitted { // refused, or its caller left
					on.wait.SetAttributes(attribute.String(resultKey, cmp.Or(w.Header().Get(admissionhttp.HeaderReason), "cancelled")))
					on.wait.End()
				}
			}()
			admitted.ServeHTTP(w, r)
		})
	}
}

// work runs what was admitted.
func (t traces) work(next http.Handler, w http.ResponseWriter, r *http.Request) {
	on, ok := r.Context().Value(tripKey{}).(*trip)
	if !ok {
		next.ServeHTTP(w, r)
		return
	}
	on.admitted = true
	on.wait.SetAttributes(attribute.String(resultKey, "admitted"))
	on.wait.End()
	ctx, span := t.tracer.Start(r.Context(), "work")
	defer span.End()
	next.ServeHTTP(w, r.WithContext(ctx))
}

// callers returns the context of r with what the caller's traceparent says. Its tracestate
// and baggage are left out: they may hold anything.
func callers(r *http.Request) context.Context {
	ctx := propagation.TraceContext{}.Extract(r.Context(), propagation.HeaderCarrier(r.Header))
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, sc.WithTraceState(trace.TraceState{}))
	}
	return ctx
}

// describe ends the span with the answer that w has got, after the handler.
func describe(span trace.Span, w http.ResponseWriter, returned bool) {
	status := http.StatusOK
	if ans := answerIn(w); ans != nil {
		status = cmp.Or(ans.status, status)
		if !returned && ans.status == 0 {
			status = http.StatusInternalServerError
		}
	}
	if status > 0 {
		span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if reason := w.Header().Get(admissionhttp.HeaderReason); reason != "" {
		span.SetAttributes(attribute.String(resultKey, reason))
	}
	if !returned || status < 100 || status >= 500 {
		span.SetStatus(codes.Error, "")
	}
	span.End()
}

// pathOf is the pattern without its method.
func pathOf(pattern string) string {
	if _, path, ok := strings.Cut(pattern, " "); ok {
		return path
	}
	return pattern
}

// method is that of HTTP, and no other text of a client.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "_OTHER"
}
