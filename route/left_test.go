package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// A client that waits must not be told that it has left.
func TestACancelledContextIsNotTheClientsUnlessItIs(t *testing.T) {
	cancelled := fmt.Errorf("query: %w", context.Canceled)
	m := NewMux(Config{})
	h := func(ctx context.Context, _ Empty) (Empty, error) {
		<-ctx.Done()
		return Empty{}, cancelled
	}
	check(t, errors.Join(
		m.Add(New("GET", "/late", h).Limits(Limits{Handle: time.Second})),
		m.Handle("GET /plain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Problem(w, r, cancelled) })),
	))
	synctest.Test(t, func(t *testing.T) {
		for path, want := range map[string]int{"/late": http.StatusGatewayTimeout, "/plain": http.StatusInternalServerError} {
			if w := do(m, "GET", path, "", ""); w.Code != want || w.Body.Len() == 0 {
				t.Errorf("%s: %d %q", path, w.Code, w.Body)
			}
		}
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	for _, path := range []string{"/late", "/plain"} {
		w := httptest.NewRecorder()
		if m.ServeHTTP(w, httptest.NewRequestWithContext(gone, "GET", path, nil)); w.Code != statusClientLeft {
			t.Errorf("%s: %d for a client that has left", path, w.Code)
		}
	}
}

// A problem is often shared by all requests, as a variable or in a rule.
func TestProblemsThatRequestsShareAreNotChangedByOnProblem(t *testing.T) {
	shared := &Problem{Status: 409, Members: map[string]any{"a": 1}, Errors: append(make([]Fault, 0, 4), Fault{Detail: "first"})}
	m := NewMux(Config{OnProblem: func(_ http.ResponseWriter, _ *http.Request, p *Problem, _ error) {
		p.Members["request_id"] = 7
		p.Errors[0].Detail = "changed"
		p.Errors = append(p.Errors, Fault{Detail: "mine"})
	}})
	check(t, errors.Join(
		m.Add(New("GET", "/", func(context.Context, Empty) (Empty, error) { return Empty{}, shared })),
		m.Handle("GET /plain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Problem(w, r, shared) })),
	))
	for _, path := range []string{"/", "/plain"} {
		if w := do(m, "GET", path, "", ""); w.Code != 409 {
			t.Error(w.Code)
		}
		if len(shared.Members) != 1 || shared.Errors[0].Detail != "first" || shared.Errors[:2][1].Detail != "" {
			t.Fatalf("%s: %+v", path, shared)
		}
	}
}
