package fhir

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/route"
)

// watched counts what a store is asked.
type watched struct {
	patientapi.Store
	asked atomic.Int64
}

func (w *watched) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	w.asked.Add(1)
	return w.Store.Patient(ctx, id, dst)
}

func (w *watched) Search(ctx context.Context, q patientapi.PatientSearch, dst *patientapi.Page) error {
	w.asked.Add(1)
	return w.Store.Search(ctx, q, dst)
}

func (w *watched) Observations(ctx context.Context, id string) ([]patientapi.Observation, error) {
	w.asked.Add(1)
	return w.Store.Observations(ctx, id)
}

// What belongs to another and what does not exist are refused alike, before the store is
// asked: neither the answer nor its time tells them apart.
func TestWhatIsRefusedIsNotLookedFor(t *testing.T) {
	store := &watched{Store: newStore(t)}
	api := newAPI(t, store, patterns.Limiter)
	for _, token := range []string{"patient", "administrator", "nobody"} {
		for _, paths := range [][2]string{
			{"/fhir/Patient/P000002", "/fhir/Patient/P000999"},
			{"/fhir/Patient?_id=P000002", "/fhir/Patient?_id=P000999"},
			{"/fhir/Patient?_id=P000001,P000002", "/fhir/Patient?_id=P000001,P000999"},
			{"/fhir/Observation/P000002-o1", "/fhir/Observation/P000999-o1"},
			{"/fhir/Observation?patient=P000002", "/fhir/Observation?patient=P000999"},
			{"/fhir/MedicationRequest/P000002-m1", "/fhir/MedicationRequest/P000999-m1"},
			{"/fhir/MedicationRequest?patient=P000002", "/fhir/MedicationRequest?patient=P000999"},
			{"/fhir/Patient/P000002/$everything", "/fhir/Patient/P000999/$everything"},
			{"/fhir/Patient/$everything", "/fhir/Patient/$everything?_format=json"},
		} {
			there, missing := get(t, api, paths[0], "Authorization", "Bearer "+token), get(t, api, paths[1], "Authorization", "Bearer "+token)
			if there.Code != 403 && there.Code != 401 || there.Code != missing.Code || there.Body.String() != missing.Body.String() {
				t.Errorf("%s %s: %d %s, %d %s", token, paths[0], there.Code, there.Body, missing.Code, missing.Body)
			}
		}
	}
	if n := store.asked.Load(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

func TestAPatientFindsTheOwnRecordAlone(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	const self = "Bearer patient"
	for _, target := range []string{"/fhir/Patient", "/fhir/Patient?_id=" + accesstest.Patient, "/fhir/Patient?birthdate=ge1900", "/fhir/Patient?_id=" + accesstest.Patient + ",x"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 || !slices.Equal(a.ids(), []string{accesstest.Patient}) {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	for _, target := range []string{"/fhir/Patient?_id=x", "/fhir/Patient?birthdate=lt1900", "/fhir/Observation?patient=x"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 || len(a.Entry) != 0 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	// In FHIR a comma means or. It is not supported here, and was answered as if nothing were known.
	for _, target := range []string{"/fhir/Observation?patient=P000001,P000002", "/fhir/MedicationRequest?patient=x,P000001"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 400 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
	for _, target := range []string{"/fhir/Patient/P000001", "/fhir/Observation/P000001-o1", "/fhir/Patient/P000001/$everything", "/fhir/MedicationRequest?patient=P000001"} {
		if a := get(t, api, target, "Authorization", self); a.Code != 200 {
			t.Errorf("%s: %d %s", target, a.Code, a.Body)
		}
	}
}

// Somebody whose token opens patients alone got the observations with everything.
func TestEverythingIsWhatTheTokenIsGoodFor(t *testing.T) {
	const token = "patients-only"
	principal := accesstest.Roles["clinician"]
	principal.Scopes = []string{"user/Patient.rs"}
	accesstest.Roles[token] = principal
	defer delete(accesstest.Roles, token)
	api := newAPI(t, newStore(t), patterns.Limiter)
	a := get(t, api, "/fhir/Patient/P000002/$everything", "Authorization", "Bearer "+token)
	if a.Code != 200 || !slices.Equal(a.ids(), []string{"", "P000002"}) {
		t.Errorf("%d %s", a.Code, a.Body)
	}
	if a := get(t, api, "/fhir/Observation?patient=P000002", "Authorization", "Bearer "+token); a.Code != 403 {
		t.Errorf("%d", a.Code)
	}
}

// Every route, and what each role gets of it about the own patient and about others. A
// route that is not here fails the test.
func TestWhoMaySeeWhat(t *testing.T) {
	const (
		clinician = 1 << iota
		exportJob
		own   // a patient, of the own record
		other // a patient, of another's
		nobody
	)
	matrix := map[string]int{
		"GET /fhir/metadata":                   clinician | exportJob | own | other | nobody,
		"GET /fhir/Patient/{id}":               clinician | own,
		"GET /fhir/Patient":                    clinician | exportJob | own,
		"POST /fhir/Patient/_search":           clinician | exportJob | own,
		"GET /fhir/Patient/{id}/$everything":   clinician | exportJob | own,
		"GET /fhir/Patient/$everything":        exportJob,
		"POST /fhir/Patient/{id}/$everything":  clinician | exportJob | own,
		"POST /fhir/Patient/$everything":       exportJob,
		"GET /fhir/$export":                    exportJob,
		"GET /fhir/Patient/$export":            exportJob,
		"GET /fhir/export/{id}":                exportJob,
		"DELETE /fhir/export/{id}":             exportJob,
		"GET /fhir/export/{id}/{file}":         exportJob,
		"GET /fhir/Observation/{id}":           clinician | own,
		"GET /fhir/Observation":                clinician | exportJob | own,
		"POST /fhir/Observation/_search":       clinician | exportJob | own,
		"GET /fhir/MedicationRequest/{id}":     clinician | own,
		"GET /fhir/MedicationRequest":          clinician | exportJob | own,
		"POST /fhir/MedicationRequest/_search": clinician | exportJob | own,
	}
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, r := range routes(t, api) {
		if _, known := matrix[r]; !known {
			t.Errorf("%s is not in the matrix", r)
		}
	}
	for operation, allowed := range matrix {
		method, path, _ := strings.Cut(operation, " ")
		for _, c := range []struct {
			who           int
			token, target string
		}{
			{clinician, "clinician", "P000002"}, {exportJob, "export-job", "P000002"}, {own, "patient", accesstest.Patient}, {other, "patient", "P000002"},
			{nobody, "nobody", "P000002"}, {0, "administrator", "P000002"},
		} {
			if path == "/fhir/metadata" && c.who == 0 {
				continue
			}
			a := askAbout(t, api, method, path, c.target, "Authorization", "Bearer "+c.token)
			got := a.Code != 401 && a.Code != 403
			if want := allowed&c.who != 0; got != want || a.Code >= 500 || a.Code == 400 {
				t.Errorf("%s by %s of %s: %d", operation, c.token, c.target, a.Code)
			}
		}
		for _, wrong := range []string{"PUT", "DELETE", "PATCH", "POST"} {
			if _, right := matrix[wrong+" "+path]; right {
				continue
			}
			if a := askAbout(t, api, wrong, path, "P000002"); a.Code != 405 {
				t.Errorf("%s %s: %d", wrong, path, a.Code)
			}
		}
	}
}

// askAbout asks for what is behind a path about that patient.
func askAbout(t *testing.T, api *API, method, path, patient string, header ...string) *answer {
	t.Helper()
	id := patient
	if strings.Contains(path, "Observation") {
		id += "-o1"
	} else if strings.Contains(path, "MedicationRequest") {
		id += "-m1"
	}
	path = strings.ReplaceAll(strings.ReplaceAll(path, "{id}", id), "{file}", "Patient-000001.ndjson")
	condition := "patient=" + patient
	if strings.Contains(path, "/Patient") {
		condition = "_id=" + patient
	}
	switch {
	case method == "POST" && strings.HasSuffix(path, "$everything"):
		return do(t, api, method, path, nil, header...)
	case method == "POST":
		return post(t, api, path, condition, header...)
	case strings.Contains(path, id) || strings.Contains(path, "$") || strings.HasSuffix(path, "metadata"):
		condition = ""
	}
	header = append(header, "Prefer", "respond-async") // which most ignore
	return do(t, api, method, path+"?"+condition, nil, header...)
}

// routes are those that the API has, by its own account.
func routes(t *testing.T, api *API) (all []string) {
	t.Helper()
	doc, err := api.clients.OpenAPI(route.Info{Title: "FHIR", Version: "4.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	var d struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	for path, methods := range d.Paths {
		for method := range methods {
			all = append(all, strings.ToUpper(method)+" "+path)
		}
	}
	if len(all) < 12 {
		t.Errorf("only %d routes: %v", len(all), all)
	}
	return all
}
