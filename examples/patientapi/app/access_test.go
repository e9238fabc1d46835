package app

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

// endpoint is a pattern of the service and how to ask it about a patient.
type endpoint struct {
	pattern, opens string
	path, form     string // %s is the id of the patient
	may            string // which roles; +own: about the own record alone
}

const (
	readers   = "clinician patient+own"
	searchers = "clinician export-job patient+own"
	exporters = "clinician export-job patient+own"
)

// endpoints are all that the service answers, written down without a look at its code.
// What is public has no path: it is not about patients.
var endpoints = []endpoint{
	{"GET /{$}", "public", "", "", ""},
	{"GET /livez", "public", "", "", ""},
	{"GET /readyz", "public", "", "", ""},
	{"GET /openapi.json", "public", "", "", ""},
	{"GET /fhir/metadata", "public", "", "", ""},
	{"GET /api/v1/patients/{id}", "Patient read", "/api/v1/patients/%s", "", readers},
	{"GET /api/v1/patients", "Patient read", "/api/v1/patients?id=%s", "", readers},
	{"POST /api/v1/patients:batch", "Patient search", "/api/v1/patients:batch", `{"ids":["%s"]}`, searchers},
	{"GET /api/v1/clinicians", "Clinician search", "/api/v1/clinicians?email=a@b.example&org=Weir+Road+Surgery", "", "clinician administrator"},
	{"GET /fhir/Patient/{id}", "Patient read", "/fhir/Patient/%s", "", readers},
	{"GET /fhir/Patient", "Patient search", "/fhir/Patient?_id=%s", "", searchers},
	{"POST /fhir/Patient/_search", "Patient search", "/fhir/Patient/_search", "_id=%s", searchers},
	{"GET /fhir/Observation/{id}", "Observation read", "/fhir/Observation/%s-o1", "", readers},
	{"GET /fhir/Observation", "Observation search", "/fhir/Observation?patient=%s", "", searchers},
	{"POST /fhir/Observation/_search", "Observation search", "/fhir/Observation/_search", "patient=%s", searchers},
	{"GET /fhir/MedicationRequest/{id}", "MedicationRequest read", "/fhir/MedicationRequest/%s-m1", "", readers},
	{"GET /fhir/MedicationRequest", "MedicationRequest search", "/fhir/MedicationRequest?patient=%s", "", searchers},
	{"POST /fhir/MedicationRequest/_search", "MedicationRequest search", "/fhir/MedicationRequest/_search", "patient=%s", searchers},
	{"GET /fhir/Patient/{id}/$everything", "Patient export", "/fhir/Patient/%s/$everything", "", exporters},
	{"GET /fhir/Patient/$everything", "Patient export-all", "/fhir/Patient/$everything", "", "export-job"},
	{"POST /fhir/Patient/{id}/$everything", "Patient export", "/fhir/Patient/%s/$everything", "", exporters},
	{"POST /fhir/Patient/$everything", "Patient export-all", "/fhir/Patient/$everything", "", "export-job"},
	{"GET /fhir/$export", "Patient export-all", "/fhir/$export", "", "export-job"},
	{"GET /fhir/Patient/$export", "Patient export-all", "/fhir/Patient/$export", "", "export-job"},
	{"GET /fhir/export/{id}", "Patient export-all", "/fhir/export/%s", "", "export-job"},
	{"DELETE /fhir/export/{id}", "Patient export-all", "/fhir/export/%s", "", "export-job"},
	{"GET /fhir/export/{id}/{file}", "Patient export-all", "/fhir/export/%s/Patient-000001.ndjson", "", "export-job"},
}

// everything is all APIs of the service over ten patients, without a network.
func everything(t *testing.T) (http.Handler, map[string]string, *simulated.Injected) {
	t.Helper()
	return everythingOf(t, 10, accesstest.Verifier{})
}

func everythingOf(t *testing.T, people int, verifier front.Verifier) (http.Handler, map[string]string, *simulated.Injected) {
	t.Helper()
	base, err := simulated.New(people, 1)
	require.NoError(t, err)
	store, err := simulated.Inject(base, simulated.Config{})
	require.NoError(t, err)
	runner, err := patterns.New(patterns.Adaptive, patterns.Config{Workers: 1})
	require.NoError(t, err)
	api := httpapi.New(httpapi.Config{Runner: runner, Patients: store, Clinicians: directory.Alone(store), Health: store, Verifier: verifier})
	queue, err := memory.Open(memory.Config{})
	require.NoError(t, err)
	exports, err := export.New(export.Config{Queue: queue, Store: store, Runner: runner, Resources: fhir.Resources, Dir: t.TempDir()})
	require.NoError(t, err)
	c := quick()
	fhir, err := c.fhirAPI(api.Front(), runner, store, exports)
	require.NoError(t, err)
	return fhir.Beside(api), api.Front().Access(), store
}

// mayUse reports whether the role may use the endpoint about that patient.
func (e endpoint) mayUse(role, id string) bool {
	for word := range strings.FieldsSeq(e.may) {
		if word == role || word == role+"+own" && id == accesstest.Patient {
			return true
		}
	}
	return false
}

func (e endpoint) ask(h http.Handler, method, role, id string) *httptest.ResponseRecorder {
	body := strings.ReplaceAll(e.form, "%s", id)
	r := httptest.NewRequest(method, strings.ReplaceAll(e.path, "%s", id), strings.NewReader(body))
	if strings.HasPrefix(body, "{") {
		r.Header.Set("Content-Type", "application/json")
	} else if body != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if role != "" {
		r.Header.Set("Authorization", "Bearer "+role)
	}
	r.Header.Set("Prefer", "respond-async") // which most ignore
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestEveryPatternIsListedAbove(t *testing.T) {
	_, opens, _ := everything(t)
	for _, e := range endpoints {
		if opens[e.pattern] != e.opens {
			t.Errorf("%s opens %q, want %q", e.pattern, opens[e.pattern], e.opens)
		}
		delete(opens, e.pattern)
	}
	for pattern, what := range opens {
		t.Errorf("%s (%s) is not in the list of this test: say there who may use it", pattern, what)
	}
}

var oneRequest = regexp.MustCompile(`[A-Z2-7]{26}`) // the id of a request

// Every endpoint, by every role, about the own record, another one, and one that does
// not exist.
func TestWhoMayUseWhatAboutWhom(t *testing.T) {
	h, _, _ := everything(t)
	for _, e := range endpoints {
		if e.path == "" {
			continue
		}
		method, _, _ := strings.Cut(e.pattern, " ")
		for _, role := range []string{"", "nobody", "no-scope", "clinician", "administrator", "export-job", "patient"} {
			refusals := map[string]bool{}
			for _, id := range []string{accesstest.Patient, "P000002", "P999999"} {
				w := e.ask(h, method, role, id)
				_, known := accesstest.Roles[role]
				refused := http.StatusForbidden
				if !known {
					refused = http.StatusUnauthorized
				}
				if may := e.mayUse(role, id); may && w.Code != 200 && w.Code != 202 && w.Code != 404 || !may && w.Code != refused {
					t.Errorf("%s as %q about %s: %d %.300s", e.pattern, role, id, w.Code, w.Body)
				} else if !may {
					refusals[oneRequest.ReplaceAllString(w.Body.String(), "")] = true
				}
			}
			if len(refusals) > 1 {
				t.Errorf("%s as %q: refusals differ by the patient: %v", e.pattern, role, refusals)
			}
		}
	}
}
