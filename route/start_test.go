package route

import (
	"context"
	"net/http"
	"strings"
	"testing"
)

// atStart checks the error that a request type causes.
func atStart[Req any](t *testing.T, pattern, want string) {
	t.Helper()
	err := NewMux(Config{}).Add(New("POST", pattern, func(context.Context, Req) (Empty, error) { return Empty{}, nil }))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v does not say %q", err, want)
	}
}

// A setting that would fail in every request, or have no effect, is an error at start-up.
func TestWhatCannotWorkIsAnErrorAtStart(t *testing.T) {
	atStart[struct {
		N int `query:"n" default:"0" validate:"min=1"`
	}](t, "/", `field N: default "0": must be at least 1`)
	atStart[struct {
		N int `query:"n" default:"1" validate:"required"`
	}](t, "/", `field N: has a default, and is required`)
	atStart[struct {
		N int `json:"n" default:"1"`
	}](t, "/", `field N: a default is for a query or header parameter`)
	atStart[struct {
		N []int `path:"n"`
	}](t, "/{n}", `field N: a path has one value`)
	atStart[struct {
		H string `header:"Host"`
	}](t, "/", `field H: net/http keeps header Host elsewhere`)
	atStart[struct {
		H string `header:"not a name"`
	}](t, "/", `field H: "not a name" is no name of a header`)
	for _, status := range []int{-1, 99, 199, 1000} {
		r := New("GET", "/", func(context.Context, Empty) (int, error) { return 0, nil }).Status(status)
		if err := NewMux(Config{}).Add(r); err == nil || !strings.Contains(err.Error(), "is no status of a success") {
			t.Errorf("%d: %v", status, err)
		}
	}
	if err := NewMux(Config{}).Add(New("GET", "/", func(context.Context, Empty) (*File, error) { return nil, nil })); err == nil || !strings.Contains(err.Error(), "return route.File itself") {
		t.Error(err)
	}
	if err := NewMux(Config{}).Add(New("GET", "/", func(context.Context, Empty) (Response[*Stream], error) { return Response[*Stream]{}, nil })); err == nil || !strings.Contains(err.Error(), "return route.Stream itself") {
		t.Error(err)
	}
	if err := NewMux(Config{}).Add(New("GET", "/", func(context.Context, Empty) (*Response[int], error) { return nil, nil })); err == nil || !strings.Contains(err.Error(), "return route.Response[int] itself") {
		t.Error(err)
	}
}

func TestARouteWithAFaultIsNotServed(t *testing.T) {
	ok := func(context.Context, Empty) (Empty, error) { return Empty{}, nil }
	m := NewMux(Config{})
	if err := m.Add(New("GET", "/a", ok).Name("a"), New("GET", "/b", ok).Name("a")); err == nil {
		t.Error("no error")
	}
	if w := do(m, "GET", "/b", "", ""); w.Code != 404 {
		t.Error(w.Code)
	}
}

func TestMethodsOfPlainHandlersAreAllowedToo(t *testing.T) {
	m := NewMux(Config{})
	check(t, m.Handle("PUT example.com/a", http.NotFoundHandler()))
	if w := do(m, "GET", "http://example.com/a", "", ""); w.Code != 405 || w.Header().Get("Allow") != "PUT" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}
