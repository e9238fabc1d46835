package fhir

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

func BenchmarkAnswers(b *testing.B) {
	api := newAPI(b, newStore(b), patterns.Optimized)
	for name, target := range map[string]string{"read": "/fhir/Patient/P000042", "search": "/fhir/Patient?_count=20", "everything": "/fhir/Patient/P000042/$everything"} {
		b.Run(name, func(b *testing.B) {
			w, r := discard{http.Header{}}, httptest.NewRequest("GET", target, nil)
			r.Header.Set("Authorization", accesstest.Clinician)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				api.ServeHTTP(w, r)
			}
		})
	}
}
