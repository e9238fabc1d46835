package httpapi

import (
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// quiet is an API over a few simulated patients, without a network.
func quiet(t testing.TB) *API {
	t.Helper()
	store, err := simulated.New(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	runner, err := patterns.New(patterns.Naive, patterns.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	return New(Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Verifier: accesstest.Verifier{}})
}

func FuzzBatchBody(f *testing.F) {
	s := quiet(f)
	f.Add(`{"ids":["P000001"]}`)
	f.Add(`{"ids":null}`)
	f.Add(`{"ids":[1]}{}`)
	f.Fuzz(func(t *testing.T, body string) {
		r := httptest.NewRequest("POST", "/api/v1/patients:batch", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", accesstest.Clinician)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		var req struct{ IDs []string }
		if w.Code == 200 && (json.Unmarshal([]byte(body), &req) != nil || len(req.IDs) < 1 || len(req.IDs) > MaxBatch) {
			t.Fatalf("%q is answered", body)
		}
		if w.Code >= 500 {
			t.Fatalf("%q is blamed on the server: %d %s", body, w.Code, w.Body)
		}
	})
}
