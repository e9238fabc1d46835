package route

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

func TestObserveIsToldEveryOutcome(t *testing.T) {
	type in struct {
		N int `query:"n" validate:"max=9"`
	}
	closed := must(limiter.New(limiter.Config{}))
	closed.Close()
	var got []string
	broken := errors.New("broken")
	m := NewMux(Config{Untimed: true, Observe: func(r *http.Request, o Outcome) {
		if o.Err != nil {
			o.Err = errors.New(strings.SplitN(o.Err.Error(), ":", 2)[0])
		}
		got = append(got, fmt.Sprintf("%s %v %d %d %v %v", o.Pattern, o.Request, o.Status, o.Bytes, o.Err, r.Context().Value(nameKey("who"))))
	}})
	m.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), nameKey("who"), "me")))
		})
	})
	if err := errors.Join(m.Add(
		New("GET", "/json", func(_ context.Context, req in) (Response[string], error) {
			return Response[string]{Code: 201, Body: "abc"}, nil
		}),
		New("GET", "/empty", func(context.Context, in) (Empty, error) { return Empty{}, nil }),
		New("GET", "/unchanged", func(context.Context, in) (Response[string], error) { return Response[string]{Code: 304}, nil }),
		New("GET", "/file", func(context.Context, in) (File, error) { return File{Content: strings.NewReader("0123456789")}, nil }),
		New("GET", "/copy", func(context.Context, in) (Response[File], error) {
			return Response[File]{Code: 202, Body: File{Content: strings.NewReader("0123456789")}}, nil
		}),
		New("GET", "/stream", func(context.Context, in) (Stream, error) {
			return Stream{Write: func(w io.Writer) error { _, err := io.WriteString(w, "four"); return err }}, nil
		}),
		New("GET", "/late", func(context.Context, in) (Stream, error) {
			return Stream{Write: func(w io.Writer) error { _, _ = io.WriteString(w, "four"); return broken }}, nil
		}),
		New("GET", "/early", func(context.Context, in) (Stream, error) {
			return Stream{Write: func(io.Writer) error { return &Problem{Status: 410, Type: "x"} }}, nil
		}),
		New("GET", "/fails", func(context.Context, in) (Empty, error) { return Empty{}, broken }),
		New("GET", "/panics", func(context.Context, in) (Empty, error) { panic("boom") }),
		New("GET", "/refused", func(context.Context, in) (Empty, error) { return Empty{}, nil }).Limiter(closed),
		New("GET", "/folder/{$}", func(context.Context, Empty) (Empty, error) { return Empty{}, nil }),
	), m.Handle("GET /plain", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) })),
		m.Handle("GET /shed", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m.Problem(w, r, &spillway.Rejection{Reason: spillway.ReasonDraining})
		}))); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ method, target, want string }{
		{"GET", "/json?n=3", "GET /json {3} 201 %d <nil> me"},
		{"HEAD", "/json?n=3", "GET /json {3} 201 0 <nil> me"},
		{"GET", "/json?n=x", "GET /json <nil> 400 %d invalid request; n must be a whole number me"},
		{"GET", "/empty", "GET /empty {0} 204 %d <nil> me"},
		{"GET", "/unchanged", "GET /unchanged {0} 304 %d <nil> me"},
		{"GET", "/file", "GET /file {0} 200 %d <nil> me"},
		{"HEAD", "/file", "GET /file {0} 200 0 <nil> me"},
		{"GET", "/copy", "GET /copy {0} 202 %d <nil> me"},
		{"GET", "/stream", "GET /stream {0} 200 %d <nil> me"},
		{"GET", "/late", "GET /late {0} 200 4 broken me"},
		{"GET", "/early", "GET /early {0} 410 %d 410 x me"},
		{"GET", "/fails", "GET /fails {0} 500 %d broken me"},
		{"GET", "/panics", "GET /panics {0} 0 0 <nil> me"},
		{"GET", "/refused", "GET /refused <nil> 503 %d spillway me"},
		{"GET", "/shed", "GET /shed <nil> 503 %d spillway me"},
		{"GET", "/none", " <nil> 404 %d 404 no-such-resource me"},
		{"PUT", "/json", " <nil> 405 %d 405 method-not-allowed me"},
		{"GET", "/folder", " <nil> 307 %d <nil> me"},
		{"GET", "/plain", ""},
	} {
		got = nil
		w := httptest.NewRecorder()
		func() {
			defer func() { _ = recover() }()
			m.ServeHTTP(w, httptest.NewRequest(c.method, c.target, nil))
		}()
		want := strings.ReplaceAll(c.want, "%d", fmt.Sprint(w.Body.Len()))
		if one := strings.Join(got, "; "); one != want {
			t.Errorf("%s %s: observed %q, want %q", c.method, c.target, one, want)
		}
	}
}

// Observed requests are not reused. Without Observe there is no cost.
func TestObservedRequestsStay(t *testing.T) {
	type in struct {
		Name string `json:"name"`
	}
	var all []any
	m := NewMux(Config{Observe: func(_ *http.Request, o Outcome) { all = append(all, o.Request) }})
	check(t, m.Add(New("POST", "/", func(context.Context, in) (Empty, error) { return Empty{}, nil })))
	for i := range 10 {
		do(m, "POST", "/", "application/json", fmt.Sprintf(`{"name":"%d"}`, i))
	}
	for i, one := range all {
		if one != (in{fmt.Sprint(i)}) {
			t.Errorf("%d: %v", i, one)
		}
	}
}
