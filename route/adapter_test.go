package route

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limit"
	"github.com/spillway-go/spillway/limiter"
)

// Tests of the functions that an adapter to another router needs: Handler with Config.PathValue,
// and Describe.

func TestAnotherRouterKnowsThePathValues(t *testing.T) {
	type in struct {
		Ward string `path:"ward"`
		Bed  int    `path:"bed"`
	}
	var got in
	r := New("GET", "/wards/{ward}/beds/{bed}", func(_ context.Context, req in) (Empty, error) { got = req; return Empty{}, nil })
	values := map[string]string{"ward": "a/b", "bed": "7"}
	h := must(r.Handler(Config{PathValue: func(_ *http.Request, name string) string { return values[name] }}))
	if w := do(h, "GET", "/anything", "", ""); w.Code != 204 || got != (in{"a/b", 7}) {
		t.Errorf("%d %v", w.Code, got)
	}
	values["bed"] = "x"
	if w := do(h, "GET", "/anything", "", ""); w.Code != 400 || !strings.Contains(w.Body.String(), `"parameter":"bed","in":"path"`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestRoutesOfAnotherRouterAreDescribedAsThoseOfAMux(t *testing.T) {
	m := documented(t)
	info := Info{Title: "Test", Version: "1"}
	want := must(m.OpenAPI(info))
	if got, err := Describe(m.root.cfg, info, m.routes...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v\n%s", err, got)
	}
	broken := New("GET", "/{id}", func(context.Context, Empty) (Empty, error) { return Empty{}, nil })
	if _, err := Describe(Config{}, info, broken); err == nil || !strings.Contains(err.Error(), "no field comes from {id}") {
		t.Error(err)
	}
}

type wards map[string]string

func (w wards) PathValue(name string) string { return w[name] }

// A router can pass a context beside the request, without a copy of the request. Code that reads
// the request's context finds the same values.
func TestAContextBesideTheRequestIsTheHandlersAndThatOfItsProblems(t *testing.T) {
	type key struct{}
	type in struct {
		Ward string `path:"ward"`
	}
	var seen []any
	cfg := Config{
		Report: func(ctx context.Context, _ string, _ error) { seen = append(seen, "report", ctx.Value(key{})) },
		OnProblem: func(_ http.ResponseWriter, r *http.Request, _ *Problem, _ error) {
			seen = append(seen, r.Context().Value(key{}))
		},
	}
	lim := must(limiter.New(limiter.Config{Law: limit.NewFixed(1)}))
	defer lim.Close()
	for _, c := range []struct {
		name string
		set  func(*Route)
	}{
		{"plain", func(*Route) {}},
		{"with a time limit", func(r *Route) { r.Limits(Limits{Handle: 1 << 40}) }},
		{"with a limiter", func(r *Route) { r.Limiter(lim) }},
	} {
		r := New("GET", "/wards/{ward}", func(ctx context.Context, req in) (Empty, error) {
			_, bounded := ctx.Deadline()
			seen = append(seen, req.Ward, ctx.Value(key{}), bounded)
			return Empty{}, errors.New("broken")
		})
		c.set(r)
		h := must(r.Handler(cfg))
		serve := func() *httptest.ResponseRecorder {
			seen = nil
			w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
			h.(contextHandler).ServeContext(context.WithValue(r.Context(), key{}, "here"), w, r, wards{"ward": "7"})
			return w
		}
		want := []any{"7", "here", c.name == "with a time limit", "report", "here", "here"}
		if w := serve(); w.Code != 500 || !slices.Equal(seen, want) {
			t.Errorf("%s: %d %v", c.name, w.Code, seen)
		}
		if c.name != "with a limiter" {
			continue
		}
		if err := lim.Drain(t.Context()); err != nil { // from now on lim rejects
			t.Fatal(err)
		}
		if w := serve(); w.Code != 503 || !slices.Equal(seen, []any{"here"}) {
			t.Errorf("%s that refuses: %d %v", c.name, w.Code, seen)
		}
	}
}

func TestMiddlewareOfARouteHasToFindAllInTheRequest(t *testing.T) {
	r := New("GET", "/", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }).Use(func(h http.Handler) http.Handler { return http.HandlerFunc(h.ServeHTTP) })
	h := must(r.Handler(Config{}))
	if _, beside := h.(contextHandler); beside {
		t.Error("its middleware would be left out")
	}
}

// A route's priority and cost are in the context of its middleware and its handler.
func TestAMarkedRouteTakesAContextBesideTheRequest(t *testing.T) {
	for _, behind := range []bool{false, true} {
		var got []any
		see := func(ctx context.Context) { got = append(got, spillway.PriorityFrom(ctx), spillway.CostFrom(ctx)) }
		r := New("GET", "/", func(ctx context.Context, _ Empty) (Empty, error) { see(ctx); return Empty{}, nil }).Priority(spillway.Low).Cost(2)
		if behind {
			r.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { see(r.Context()); next.ServeHTTP(w, r) })
			})
		}
		h := must(r.Handler(Config{}))
		direct, ok := h.(contextHandler)
		if ok == behind {
			t.Fatal("a contextHandler is what has no middleware")
		}
		ctx := spillway.WithPriority(t.Context(), spillway.Critical)
		w, req := httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil)
		want := []any{spillway.Low, 2}
		if behind {
			h.ServeHTTP(w, req.WithContext(ctx))
			want = append(want, want...)
		} else {
			direct.ServeContext(ctx, w, req, nil)
			h.ServeHTTP(w, req.WithContext(ctx))
			want = append(want, want...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("behind middleware: %v: %v", behind, got)
		}
	}
}
