package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// counted is a store that counts what it is asked.
type counted struct {
	*simulated.Store
	asked atomic.Int64
}

func (s *counted) Patient(ctx context.Context, id string, dst *patientapi.Patient) error {
	s.asked.Add(1)
	return s.Store.Patient(ctx, id, dst)
}

func (s *counted) Patients(ctx context.Context, ids []string, dst *patientapi.Batch) error {
	s.asked.Add(1)
	return s.Store.Patients(ctx, ids, dst)
}

func (s *counted) Clinicians(ctx context.Context, q patientapi.ClinicianQuery) ([]patientapi.Clinician, error) {
	s.asked.Add(1)
	return s.Store.Clinicians(ctx, q)
}

// overCounted is an API over ten patients, without a network, and its store.
func overCounted(t *testing.T, verifier front.Verifier) (*API, *counted) {
	t.Helper()
	base, err := simulated.New(10, 1)
	if err != nil {
		t.Fatal(err)
	}
	store := &counted{Store: base}
	runner, err := patterns.New(patterns.Adaptive, patterns.Config{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = runner.Drain(context.Background()) })
	return New(Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Verifier: verifier}), store
}

// askAs sends a request with that token; empty means without one.
func askAs(h http.Handler, token, method, path, body string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest(method, path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	h.ServeHTTP(w, r)
	return w
}

// operation is one of the document, as this test asks for it.
type operation struct {
	method, path, body string              // %s is the id of a patient
	may                map[string][]string // by role: about whom
}

const own, other, stranger = accesstest.Patient, "P000002", "P999999" // the last does not exist

// byOperation says of every operation who may use it about whom, written down without
// a look at the code.
var byOperation = map[string]operation{
	"getPatient":  {"GET", "/api/v1/patients/%s", "", map[string][]string{"clinician": {own, other, stranger}, "patient": {own}}},
	"findPatient": {"GET", "/api/v1/patients?id=%s", "", map[string][]string{"clinician": {own, other, stranger}, "patient": {own}}},
	"getPatients": {"POST", "/api/v1/patients:batch", `{"ids":["` + own + `","%s"]}`, map[string][]string{
		"clinician": {own, other, stranger}, "export-job": {own, other, stranger}, "patient": {own}}},
	"findClinicians": {"GET", "/api/v1/clinicians?email=a@b.example&org=Weir%%20Road%%20Surgery", "", map[string][]string{
		"clinician": {own, other, stranger}, "administrator": {own, other, stranger}}},
}

// opened is what every pattern of the API opens.
var opened = map[string]string{
	"GET /livez": "public", "GET /openapi.json": "public", "GET /readyz": "public", "GET /{$}": "public",
	"GET /api/v1/patients/{id}": "Patient read", "GET /api/v1/patients": "Patient read", "POST /api/v1/patients:batch": "Patient search",
	"GET /api/v1/clinicians": "Clinician search",
}

// described are the operations of the document: method and path by name.
func described(t *testing.T) map[string][2]string {
	t.Helper()
	text, err := Document()
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]map[string]struct {
			OperationID string
			Security    []map[string][]string
		}
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	found := map[string][2]string{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if len(op.Security) != 1 || op.Security[0]["bearer"] == nil {
				t.Errorf("%s %s does not say that it takes a token", method, path)
			}
			found[op.OperationID] = [2]string{strings.ToUpper(method), path}
		}
	}
	return found
}

func (o operation) about(id string) (path, body string) {
	return strings.ReplaceAll(strings.ReplaceAll(o.path, "%s", id), "%%", "%"), strings.ReplaceAll(o.body, "%s", id)
}

// requestID is what differs between answers that are the same.
var requestID = regexp.MustCompile(`"request_id":"[^"]*"`)

func told(w *httptest.ResponseRecorder) string {
	return requestID.ReplaceAllString(w.Body.String(), "")
}

func TestEveryOperationIsForThoseInTheMatrixAlone(t *testing.T) {
	api, store := overCounted(t, accesstest.Verifier{})
	operations := described(t)
	if len(operations) != len(byOperation) {
		t.Errorf("the document has %v: say above who may use them", operations)
	}
	for name, o := range byOperation {
		if operations[name][0] != o.method {
			t.Errorf("%s is %v in the document", name, operations[name])
		}
		for _, token := range []string{"", "nobody", "no-scope", "clinician", "administrator", "export-job", "patient"} {
			refusals := map[string]bool{}
			for _, id := range []string{own, other, stranger} {
				store.asked.Store(0)
				path, body := o.about(id)
				w := askAs(api, token, o.method, path, body)
				asked, may := store.asked.Load() > 0, slices.Contains(o.may[token], id)
				_, known := accesstest.Roles[token]
				switch {
				case may && (w.Code != 200 && w.Code != 404 || !asked):
					t.Errorf("%s as %q about %s: %d, store asked: %v", name, token, id, w.Code, asked)
				case !may && known && w.Code != 403, !may && !known && w.Code != 401, !may && asked:
					t.Errorf("%s as %q about %s: %d, store asked: %v", name, token, id, w.Code, asked)
				case !may:
					refusals[told(w)] = true
				}
			}
			if len(refusals) > 1 {
				t.Errorf("%s as %q: refusals differ by the patient: %v", name, token, refusals)
			}
		}
	}
}

// Reading is all that there is, whatever the role.
func TestNoOtherMethodIsAnswered(t *testing.T) {
	api, store := overCounted(t, accesstest.Verifier{})
	for name, o := range byOperation {
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"} {
			if method == o.method {
				continue
			}
			head := method == "HEAD" && o.method == "GET"
			path, body := o.about(own)
			for token := range accesstest.Roles {
				store.asked.Store(0)
				w := askAs(api, token, method, path, body)
				if w.Code < 400 && !head || (w.Code < 400) != (head && slices.Contains(o.may[token], own)) || w.Code >= 400 && store.asked.Load() > 0 {
					t.Errorf("%s %s as %s: %d", method, name, token, w.Code)
				}
			}
		}
	}
}

func TestWhatIsPublicIsListedAndTellsNothingAboutAnybody(t *testing.T) {
	api, store := overCounted(t, accesstest.Verifier{})
	api.SetReady(true)
	if got := api.Front().Access(); !maps.Equal(got, opened) {
		t.Errorf("opened is %v, want %v", got, opened)
	}
	pages := map[string]string{}
	for _, path := range []string{"/", "/livez", "/readyz", "/openapi.json", "/nowhere", "/api/v1/", "/api/v1/patients/", "/API/v1/patients/P000001"} {
		pages[path] = askAs(api, "", "GET", path, "").Body.String()
	}
	for _, path := range []string{"/metrics", "/health", "/debug/spillway/", "/debug/spillway/?format=json", "/livez", "/readyz"} {
		askAs(api, "clinician", "GET", "/api/v1/patients/P000007", "") // for the pages to tell of
		w := httptest.NewRecorder()
		api.Admin().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		pages["admin "+path] = w.Body.String()
	}
	store.asked.Store(0)
	var p patientapi.Patient
	patientapi.Generator{Seed: 1}.Patient(7, &p)
	for path, body := range pages {
		for _, secret := range []string{p.ID, p.Name.Given, p.Name.Family, p.Phone, p.BirthDate, "doctor-1", "Bearer clinician"} {
			if strings.Contains(body, secret) {
				t.Errorf("%s tells %q", path, secret)
			}
		}
	}
	if n := store.asked.Load(); n > 0 {
		t.Errorf("pages asked the store %d times", n)
	}
}
