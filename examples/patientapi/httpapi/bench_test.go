package httpapi

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// discard is a ResponseWriter that keeps nothing, so that a benchmark counts the
// API alone.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(int)             {}

// What a lookup costs without connection and latency.
func BenchmarkGet(b *testing.B) {
	for _, pattern := range patterns.Names() {
		b.Run(pattern, func(b *testing.B) {
			store, err := simulated.New(people, 1)
			if err != nil {
				b.Fatal(err)
			}
			runner, err := patterns.New(pattern, patterns.Config{Workers: 4, QueueSize: 16})
			if err != nil {
				b.Fatal(err)
			}
			defer runner.Drain(b.Context())
			api := New(Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Verifier: accesstest.Verifier{}})
			w := &discard{http.Header{}}
			r := httptest.NewRequest("GET", "/api/v1/patients/P000042", nil)
			r.Header.Set("Authorization", accesstest.Clinician)
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				api.ServeHTTP(w, r)
			}
		})
	}
}
