package fhir

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/export"
	"github.com/spillway-go/spillway/examples/patientapi/front"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/jobqueue/memory"
)

const people = 60

func newStore(t testing.TB) patientapi.Store {
	t.Helper()
	store, err := simulated.New(people, 7)
	require.NoError(t, err)
	return store
}

// newAPI serves store under a pattern, without a network.
func newAPI(t testing.TB, store patientapi.Store, pattern string, set ...func(*Config)) *API {
	t.Helper()
	runner, err := patterns.New(pattern, patterns.Config{Workers: 4, QueueSize: 16})
	require.NoError(t, err)
	t.Cleanup(func() {
		assert.NoError(t, runner.Drain(context.Background()))
	})
	queue, err := memory.Open(memory.Config{Policy: export.Policy()})
	require.NoError(t, err)
	bulk, err := export.New(export.Config{Queue: queue, Store: store, Runner: runner, Resources: Resources, Dir: t.TempDir(), PartSize: 25})
	require.NoError(t, err)
	cfg := Config{Runner: runner, Store: store, Bulk: bulk, Front: front.New(front.Config{Verifier: accesstest.Verifier{}, Limiter: runner.Admission(), Pattern: pattern})}
	for _, change := range set {
		change(&cfg)
	}
	api, err := New(cfg)
	require.NoError(t, err)
	return api
}

// answer is an answer, and what the tests look at in it.
type answer struct {
	*httptest.ResponseRecorder
	content
}

type content struct {
	ResourceType string
	ID           string
	Type         string
	Meta         meta
	Total        *int
	Link         []link
	Entry        []struct {
		FullURL  string
		Resource struct{ ResourceType, ID string }
		Search   found
	}
	Issue []issue
}

func (a *answer) link(relation string) string {
	for _, l := range a.Link {
		if l.Relation == relation {
			return l.URL
		}
	}
	return ""
}

// path is where the link of that relation leads, which must be there.
func (a *answer) path(t testing.TB, relation string) string {
	t.Helper()
	u, err := url.Parse(a.link(relation))
	require.NoError(t, err)
	return u.RequestURI()
}

// ids are those of the entries.
func (a *answer) ids() (ids []string) {
	for _, e := range a.Entry {
		ids = append(ids, e.Resource.ID)
	}
	return ids
}

func do(t testing.TB, h http.Handler, method, target string, body io.Reader, header ...string) *answer {
	t.Helper()
	r := httptest.NewRequest(method, target, body)
	r.Header.Set("Authorization", accesstest.Clinician)
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	a := &answer{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(a, r)
	if a.Body.Len() > 0 {
		if got := a.Header().Get("Content-Type"); got != mediaType {
			t.Errorf("%s %s: Content-Type %q", method, target, got)
		}
		if err := json.Unmarshal(a.Body.Bytes(), &a.content); err != nil {
			t.Fatalf("%s %s: %v: %s", method, target, err, a.Body)
		}
	}
	return a
}

func get(t testing.TB, h http.Handler, target string, header ...string) *answer {
	t.Helper()
	return do(t, h, "GET", target, nil, header...)
}

// post sends a form.
func post(t testing.TB, h http.Handler, target, form string, header ...string) *answer {
	t.Helper()
	return do(t, h, "POST", target, strings.NewReader(form), append([]string{"Content-Type", "application/x-www-form-urlencoded"}, header...)...)
}

func TestAReadIsConditional(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	const target = "/fhir/Patient/P000002"
	first := get(t, api, target)
	tag, modified := first.Header().Get("ETag"), first.Header().Get("Last-Modified")
	if tag != `W/"`+first.Meta.VersionID+`"` || modified != first.Meta.LastUpdated.Format(http.TimeFormat) {
		t.Fatalf("%q %q", tag, modified)
	}
	for _, c := range []struct {
		header []string
		want   int
	}{
		{[]string{"If-None-Match", tag}, 304},
		{[]string{"If-None-Match", `"7", ` + tag}, 304},
		{[]string{"If-None-Match", strings.TrimPrefix(tag, "W/")}, 304},
		{[]string{"If-None-Match", "*"}, 304},
		{[]string{"If-None-Match", `W/"99"`}, 200},
		{[]string{"If-None-Match", `W/"99"`, "If-Modified-Since", modified}, 200},
		{[]string{"If-Modified-Since", modified}, 304},
		{[]string{"If-Modified-Since", first.Meta.LastUpdated.Add(-1e9).Format(http.TimeFormat)}, 200},
		{[]string{"If-Modified-Since", "yesterday"}, 200},
	} {
		a := get(t, api, target, c.header...)
		if a.Code != c.want || a.Header().Get("ETag") != tag || c.want == 304 && a.Body.Len() > 0 {
			t.Errorf("%q: %d %v %s", c.header, a.Code, a.Header(), a.Body)
		}
	}
	if a := get(t, api, "/fhir/Patient/P000999", "If-None-Match", "*"); a.Code != 404 || a.Header().Get("ETag") != "" {
		t.Errorf("nobody: %d", a.Code)
	}
}

// Everything that can be wrong has an OperationOutcome with a code of the value set, and
// says nothing of what was sent.
func TestProblemsAreOperationOutcomes(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	const search, form = "/fhir/Patient?", "application/x-www-form-urlencoded"
	for _, c := range []struct {
		method, target string
		header         []string
		status         int
		code, location string
	}{
		{"GET", "/fhir/Patient/P000999", nil, 404, "not-found", ""},
		{"GET", "/fhir/Observation/P000001-o01", nil, 404, "not-found", ""},
		{"GET", "/fhir/MedicationRequest/P000001-m99", nil, 404, "not-found", ""},
		{"GET", "/fhir/Patient/secret/$everything", nil, 404, "not-found", ""},
		{"GET", "/fhir", nil, 404, "not-found", ""},
		{"DELETE", "/fhir/Patient/P000001", nil, 405, "not-supported", ""},
		{"GET", "/fhir/Patient/P000001", []string{"Authorization", "Bearer secret"}, 401, "login", ""},
		{"GET", "/fhir/Patient/P000002", []string{"Authorization", "Bearer patient"}, 403, "forbidden", ""},
		{"GET", "/fhir/Patient/P000001?_format=xml", nil, 406, "not-supported", ""},
		{"GET", search + "secret=1", nil, 400, "not-supported", ""},
		{"GET", search + "name:exact=secret", nil, 400, "not-supported", "http.name:exact"},
		{"GET", search + "_sort=secret", nil, 400, "not-supported", "http._sort"},
		{"GET", search + "birthDate=secret", nil, 400, "not-supported", "http.birthDate"},
		{"GET", search + "_count=2&_count=3", nil, 400, "value", "http._count"},
		{"GET", search + "name=secret%ff", nil, 400, "value", "http.name"},
		{"GET", search + "name=" + strings.Repeat("secret", 99), nil, 400, "value", "http.name"},
		{"GET", search + "birthdate=2000-02-30", nil, 400, "value", "http.birthdate"},
		{"GET", search + "_count=-1", nil, 400, "value", "http._count"},
		{"GET", search + "_id=" + strings.Repeat(",", 101), nil, 400, "value", "http._id"},
		{"GET", search + "_page=secret", nil, 410, "expired", ""},
		{"GET", "/fhir/Observation", nil, 400, "required", "http.patient"},
		{"POST", "/fhir/Patient/_search", []string{"Content-Type", "application/json"}, 415, "not-supported", ""},
		{"POST", "/fhir/Patient/_search?name=secret", []string{"Content-Type", form}, 400, "not-supported", "http.name"},
	} {
		a := do(t, api, c.method, c.target, http.NoBody, c.header...)
		if a.Code != c.status || a.ResourceType != "OperationOutcome" || len(a.Issue) == 0 || a.Issue[0].Code != c.code || a.Issue[0].Diagnostics == "" {
			t.Errorf("%s %s %v: %d %s", c.method, c.target, c.header, a.Code, a.Body)
			continue
		}
		if c.status == 415 && !strings.Contains(a.Issue[0].Diagnostics, "a search by POST is a form") {
			t.Errorf("%s %v: %s", c.target, c.header, a.Body)
		}
		named := []string{c.location}
		if c.location == "" {
			named = nil
		}
		if !slices.Equal(a.Issue[0].Location, named) || !slices.Equal(a.Issue[0].Expression, named) || !strings.Contains(a.Issue[0].Diagnostics, strings.TrimPrefix(c.location, "http.")) {
			t.Errorf("%s: %+v", c.target, a.Issue)
		}
		if strings.Contains(strings.ToLower(a.Body.String()), "secret") {
			t.Errorf("%s: repeated: %s", c.target, a.Body)
		}
	}
}

func TestAClientMayPreferLeniency(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Limiter)
	for _, prefer := range []string{"handling=lenient", `return=minimal, handling="lenient"`, "Handling = Lenient; q=1"} {
		a := get(t, api, "/fhir/Patient?_summary=true&_sort=name&_id=P000001", "Prefer", prefer)
		if a.Code != 200 || len(a.Entry) != 1 || strings.Contains(a.link("self"), "sort") {
			t.Errorf("%s: %d %s", prefer, a.Code, a.Body)
		}
		if a := post(t, api, "/fhir/Patient/_search", "_sort=name&_id=P000001", "Prefer", prefer); a.Code != 200 || len(a.Entry) != 1 {
			t.Errorf("%s: %d %s", prefer, a.Code, a.Body)
		}
	}
	for _, prefer := range []string{"handling=strict", "handling=strict, handling=lenient", "handling=strict; a=1, respond-async, handling=lenient"} {
		if a := get(t, api, "/fhir/Patient?_sort=name", "Prefer", prefer); a.Code != 400 {
			t.Errorf("%s: %d", prefer, a.Code)
		}
	}
	if a := get(t, api, "/fhir/Patient/P000001?name=nobody", "Prefer", "handling=lenient"); a.Code != 200 {
		t.Errorf("one resource, which nothing narrows: %d", a.Code)
	}
}

// following searches, follows the links to the end, and returns all ids.
func following(t *testing.T, h http.Handler, a *answer, header ...string) (ids, urls []string) {
	t.Helper()
	for {
		if a.Code != 200 {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
		ids = append(ids, a.ids()...)
		next := a.link("next")
		if next == "" {
			return ids, urls
		}
		urls = append(urls, next, a.link("self"))
		a = get(t, h, a.path(t, "next"), header...)
	}
}

func TestLinksLeadThroughAllPagesAndNameNobody(t *testing.T) {
	api := newAPI(t, newStore(t), patterns.Optimized)
	for _, count := range []string{"1", "7", "60", "5000"} {
		if ids, _ := following(t, api, get(t, api, "/fhir/Patient?_count="+count)); len(ids) != people || ids[0] != "P000001" || ids[people-1] != "P000060" {
			t.Errorf("pages of %s: %d patients", count, len(ids))
		}
	}
	_, urls := following(t, api, post(t, api, "/fhir/Patient/_search", "_count=1&birthdate=ge1900&name=a"))
	if len(urls) == 0 {
		t.Error("one page")
	}
	for _, u := range urls {
		if strings.Contains(u, "name=") || strings.Contains(u, "1900") || len(u) > 500 {
			t.Errorf("a link that tells: %s", u)
		}
	}
	want := 0
	observations, err := newStore(t).Observations(t.Context(), "P000002")
	for _, o := range observations {
		if o.Code == "8867-4" {
			want++
		}
	}
	ids, _ := following(t, api, get(t, api, "/fhir/Observation?patient=Patient/P000002&code=http://loinc.org|8867-4,x&_count=1"))
	if err != nil || want == 0 || len(ids) != want {
		t.Errorf("observations %v, want %d, %v", ids, want, err)
	}
}
