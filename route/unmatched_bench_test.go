package route

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// unmatchedCases are requests without a route, and the muxes they are sent to: a Mux and a bare ServeMux
// with the same patterns.
func unmatchedCases(do func(name string, ours, bare http.Handler, r *harness)) {
	all := []string{"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "TRACE"}
	for _, methods := range [][]string{all[:1], all[:2], all} {
		m, bare := NewMux(Config{}), http.NewServeMux()
		group := m.Group("/fhir/{tenant}")
		for _, method := range methods {
			for _, path := range []string{"/patients/{id}", "/fhir/{tenant}/patients/{id}"} {
				bare.Handle(method+" "+path, http.NotFoundHandler())
			}
			if err := m.Handle(method+" /patients/{id}", http.NotFoundHandler()); err != nil {
				panic(err)
			}
			if err := group.Handle(method+" /patients/{id}", http.NotFoundHandler()); err != nil {
				panic(err)
			}
		}
		for _, request := range []string{
			"GET /patients", "GET /x/y/z", "GET /patients/%2f", "GET /fhir/t/none/7",
			"LINK /patients/P000042", "LINK /patients/a%2fb", "LINK /fhir/t/patients/7",
		} {
			method, path, _ := strings.Cut(request, " ")
			do(fmt.Sprintf("%d/%s%s", len(methods), method, path), m, bare, newHarness(method, path, "", ""))
		}
	}
}

// A request without a route costs no more than a bare ServeMux takes for a page of plain text.
func TestAllocationsOfAnAnswerWithoutARoute(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	unmatchedCases(func(name string, ours, bare http.Handler, r *harness) {
		want := testing.AllocsPerRun(100, func() { r.run(bare) })
		status := r.status
		got := testing.AllocsPerRun(100, func() { r.run(ours) })
		if got > want || r.status != status || status != 404 && status != 405 {
			t.Errorf("%s: %v allocations for a %d, and ServeMux makes %v for a %d", name, got, r.status, want, status)
		}
	})
}

// BenchmarkUnmatched reports the time of a Mux in times of ServeMux, which takes turns with it.
func BenchmarkUnmatched(b *testing.B) {
	unmatchedCases(func(name string, ours, bare http.Handler, r *harness) {
		b.Run(name, func(b *testing.B) {
			var took [2]time.Duration
			for b.Loop() {
				for i, h := range []http.Handler{ours, bare} {
					began := time.Now()
					for range 100 {
						r.run(h)
					}
					took[i] += time.Since(began)
				}
			}
			b.ReportMetric(float64(took[0])/float64(took[1]), "of-ServeMux")
			b.ReportMetric(float64(took[0].Nanoseconds())/float64(100*b.N), "ns/answer")
			b.ReportMetric(0, "ns/op")
		})
	})
}

// BenchmarkRegister reports the time for each of n routes, which are named and described.
func BenchmarkRegister(b *testing.B) {
	type byID struct {
		ID string `path:"id"`
	}
	for _, n := range []int{100, 1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var added, described time.Duration
			for b.Loop() {
				m, began := NewMux(Config{}), time.Now()
				for i := range n {
					r := New("GET", fmt.Sprintf("/api/things%d/{id}", i), func(context.Context, byID) (Empty, error) { return Empty{}, nil })
					check(b, m.Add(r.Name(fmt.Sprintf("getThingsOfAKind%d", i))))
				}
				added += time.Since(began)
				began = time.Now()
				must(m.OpenAPI(Info{}))
				described += time.Since(began)
			}
			b.ReportMetric(float64(added.Nanoseconds())/float64(n*b.N), "ns/route")
			b.ReportMetric(float64(described.Nanoseconds())/float64(n*b.N), "ns/described")
			b.ReportMetric(0, "ns/op")
		})
	}
}
