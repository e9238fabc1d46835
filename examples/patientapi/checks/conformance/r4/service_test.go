package r4

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/fhir"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

const (
	people    = 300
	exportJob = "Bearer export-job"
	form      = "application/x-www-form-urlencoded"
)

func newStore(t testing.TB) patientapi.Store {
	t.Helper()
	store, err := simulated.New(people, 11)
	require.NoError(t, err)
	return store
}

// serve serves store without a network, with every access on record.
func serve(t testing.TB, store patientapi.Store) http.Handler {
	t.Helper()
	runner, err := patterns.New(patterns.Limiter, patterns.Config{Workers: 4, QueueSize: 16})
	require.NoError(t, err)
	records, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: new(audittest.Memory)})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, errors.Join(runner.Drain(context.Background()), records.Close()))
	})
	shared := front.New(front.Config{Verifier: accesstest.Verifier{}, Audit: records, AuditClosed: true})
	api, err := fhir.New(fhir.Config{Runner: runner, Store: store, Front: shared})
	require.NoError(t, err)
	return api
}

// resource is what the tests look at in an answer.
type resource struct {
	ResourceType, ID string
	Meta             struct {
		VersionID   string
		LastUpdated time.Time
	}
	BirthDate         string
	Name              []struct{ Family string }
	Identifier        []struct{ System, Value string }
	Subject           struct{ Reference string }
	AuthoredOn        string
	EffectiveDateTime time.Time
	ValueQuantity     struct{ Value float64 }
	Total             *int
	Link              []struct{ Relation, URL string }
	Entry             []entry
	Issue             []struct{ Code, Diagnostics string }
}

type entry struct {
	FullURL  string
	Resource json.RawMessage
	Search   struct{ Mode string }
}

func parse(t testing.TB, text []byte) (r resource) {
	t.Helper()
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return r
}

// ask sends a request, and puts the answer to the schema.
func ask(t testing.TB, h http.Handler, method, target, body string, header ...string) (*httptest.ResponseRecorder, resource) {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Authorization", accesstest.Clinician)
	if method == "POST" {
		r.Header.Set("Content-Type", form)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return answer(t, h, r)
}

func answer(t testing.TB, h http.Handler, r *http.Request) (*httptest.ResponseRecorder, resource) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Body.Len() == 0 {
		return w, resource{}
	}
	if err := schema().Check(w.Body.Bytes()); err != nil || w.Header().Get("Content-Type") != "application/fhir+json" {
		t.Fatalf("%s %q: %d %s: %v\n%s", r.Method, r.URL, w.Code, w.Header().Get("Content-Type"), err, w.Body)
	}
	return w, parse(t, w.Body.Bytes())
}

func get(t testing.TB, h http.Handler, target string, header ...string) resource {
	t.Helper()
	w, r := ask(t, h, "GET", target, "", header...)
	if w.Code != 200 {
		t.Fatalf("%s: %d %s", target, w.Code, w.Body)
	}
	return r
}

// Every resource of some hundred patients is one of FHIR, is the same wherever it comes,
// and says nothing that cannot be.
func TestEverythingIsFHIR(t *testing.T) {
	api := serve(t, newStore(t))
	all := get(t, api, "/fhir/Patient/$everything", "Authorization", exportJob)
	patients, kinds := map[string]resource{}, map[string]int{}
	for _, e := range all.Entry {
		r := parse(t, e.Resource)
		if kinds[r.ResourceType]++; r.ResourceType == "Patient" {
			patients["Patient/"+r.ID] = r
		}
	}
	if kinds["Patient"] != people || kinds["Observation"] < people || kinds["MedicationRequest"] < people/2 {
		t.Fatalf("%v", kinds)
	}
	seen := map[string]bool{}
	for _, e := range all.Entry {
		r := parse(t, e.Resource)
		path := strings.TrimPrefix(e.FullURL, "http://example.com")
		if seen[e.FullURL] || path != "/fhir/"+r.ResourceType+"/"+r.ID {
			t.Errorf("%s %s at %s", r.ResourceType, r.ID, e.FullURL)
		}
		seen[e.FullURL] = true
		consistent(t, r, patients)
		if r.ResourceType == "Patient" {
			continue // an export job may not read one by one; the clinician does below
		}
		if n := len(seen); n%7 == 0 { // a part of them, for the time it takes
			same(t, api, path, e.Resource)
		}
	}
	for path := range patients {
		one := get(t, api, "/fhir/"+path+"/$everything")
		for _, page := range []string{"?_count=1", "?_count=2&_type=Observation", "?start=2999&_type=Observation", "?_since=2025-06-01T00:00:00Z"} {
			get(t, api, "/fhir/"+path+"/$everything"+page)
		}
		if first := parse(t, one.Entry[0].Resource); "Patient/"+first.ID != path || one.Entry[0].Search.Mode != "match" {
			t.Errorf("%s: everything begins with %s", path, first.ID)
		}
		same(t, api, "/fhir/"+path, one.Entry[0].Resource)
	}
}

// consistent looks for what no schema sees.
func consistent(t *testing.T, r resource, patients map[string]resource) {
	t.Helper()
	if r.Meta.VersionID == "" || r.Meta.VersionID == "0" || r.Meta.LastUpdated.IsZero() {
		t.Errorf("%s has no version: %+v", r.ID, r.Meta)
	}
	p := r
	if r.ResourceType != "Patient" {
		var ok bool
		if p, ok = patients[r.Subject.Reference]; !ok || !strings.HasPrefix(r.ID, p.ID+"-") {
			t.Errorf("%s is of %s", r.ID, r.Subject.Reference)
		}
	}
	born, err := time.Parse(time.DateOnly, p.BirthDate)
	assert.NoError(t, err)
	when := r.EffectiveDateTime
	if r.AuthoredOn != "" {
		when, err = time.Parse(time.DateOnly, r.AuthoredOn)
	}
	if err != nil || !when.IsZero() && (when.Before(born) || when.After(r.Meta.LastUpdated)) || r.Meta.LastUpdated.Before(born) {
		t.Errorf("%s: born %s, of %v, changed %v, %v", r.ID, p.BirthDate, when, r.Meta.LastUpdated, err)
	}
}

// same reports a resource that is another one where it is read by its id.
func same(t *testing.T, api http.Handler, path string, want []byte) {
	t.Helper()
	w, r := ask(t, api, "GET", path, "")
	if w.Code != 200 || !bytes.Equal(bytes.TrimSpace(w.Body.Bytes()), bytes.TrimSpace(want)) {
		t.Errorf("%s: %d %s\nwant %s", path, w.Code, w.Body, want)
	}
	if w.Header().Get("ETag") != `W/"`+r.Meta.VersionID+`"` || w.Header().Get("Last-Modified") != r.Meta.LastUpdated.Format(http.TimeFormat) {
		t.Errorf("%s: %v", path, w.Header())
	}
}

var operations = []string{
	"GET /fhir/Patient/P000001", "GET /fhir/Patient", "POST /fhir/Patient/_search", "GET /fhir/Patient/P000001/$everything",
	"GET /fhir/Patient?_count=0", "GET /fhir/Patient/P000001/$everything?_count=3", "POST /fhir/Patient/P000001/$everything",
	"GET /fhir/Observation/P000001-o1", "GET /fhir/Observation?patient=P000001", "POST /fhir/Observation/_search patient=P000001",
	"GET /fhir/MedicationRequest/P000001-m1", "GET /fhir/MedicationRequest?patient=P000001", "POST /fhir/MedicationRequest/_search patient=P000001",
}

// Every operation says in FHIR whatever becomes of it.
func TestEveryFailureIsFHIR(t *testing.T) {
	for err, want := range map[error]string{
		patientapi.ErrUnavailable:                             "502 no-store",
		context.DeadlineExceeded:                              "504 timeout",
		io.ErrUnexpectedEOF:                                   "500 exception",
		&spillway.Rejection{Reason: spillway.ReasonQueueFull}: "503 throttled",
		&spillway.Rejection{Reason: spillway.ReasonQuota}:     "429 throttled",
	} {
		api := serve(t, patientapi.Around(newStore(t), func(context.Context, patientapi.Question, func(context.Context) error) error { return err }))
		for _, operation := range operations {
			method, target, _ := strings.Cut(operation, " ")
			target, body, _ := strings.Cut(target, " ")
			w, r := ask(t, api, method, target, body)
			if len(r.Issue) != 1 || w.Result().Status[:3]+" "+r.Issue[0].Code != want || strings.HasSuffix(want, "throttled") && w.Header().Get("Retry-After") == "" {
				t.Errorf("%s: %d %s, want %s", operation, w.Code, w.Body, want)
			}
			if w, _ := ask(t, api, method, target, body, "Authorization", ""); w.Code != 401 || w.Header().Get("WWW-Authenticate") != "Bearer" {
				t.Errorf("%s without a token: %d", operation, w.Code)
			}
			if w, _ := ask(t, api, method, target, body, "Authorization", "Bearer administrator"); w.Code != 403 {
				t.Errorf("%s by an administrator: %d", operation, w.Code)
			}
		}
		if r := get(t, api, "/fhir/metadata", "Authorization", ""); r.ResourceType != "CapabilityStatement" {
			t.Errorf("the CapabilityStatement depends on the store")
		}
	}
}
