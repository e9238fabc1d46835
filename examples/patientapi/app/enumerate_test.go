package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
)

const (
	ownID      = accesstest.Patient
	anotherID  = "P000008"
	nobodiesID = "P000888" // of ten patients

	formType   = "application/x-www-form-urlencoded"
	objectType = "application/json"
)

// question is a request about a patient.
type question struct {
	method, path, body string
	header             [2]string
}

func (q question) String() string { return q.method + " " + q.path + " " + q.body + " " + q.header[0] }

// questions are all ways to ask for the patient of that id.
func questions(id string) (all []question) {
	for _, path := range []string{
		"/api/v1/patients/%s", "/api/v1/patients?id=%s", "/fhir/Patient/%s", "/fhir/Patient/%s/$everything", "/fhir/Patient?_id=%s", "/fhir/Patient?_id=" + ownID + ",%s", "/fhir/Patient?_id=%s&name=a",
		"/fhir/Observation/%s-o1", "/fhir/Observation/%s-o999", "/fhir/Observation?patient=%s", "/fhir/Observation?patient=Patient/%s&_count=1", "/fhir/MedicationRequest/%s-m1", "/fhir/MedicationRequest?patient=%s",
	} {
		for _, method := range []string{"GET", "HEAD"} {
			all = append(all, question{method: method, path: fmt.Sprintf(path, id)})
		}
	}
	for _, header := range [][2]string{{"If-None-Match", "*"}, {"If-None-Match", `W/"1"`}, {"If-Modified-Since", "Fri, 31 Dec 2100 00:00:00 GMT"}, {"Prefer", "handling=lenient"}, {"Accept", "text/html"}} {
		all = append(all, question{"GET", "/fhir/Patient/" + id, "", header}, question{"GET", "/api/v1/patients/" + id, "", header}, question{"GET", "/fhir/Observation/" + id + "-o1", "", header})
	}
	for _, ids := range []string{`"` + id + `"`, `"` + ownID + `","` + id + `"`, `"` + id + `","` + id + `"`} {
		all = append(all, question{method: "POST", path: "/api/v1/patients:batch", body: `{"ids":[` + ids + `]}`})
	}
	all = append(all, question{method: "POST", path: "/fhir/Patient/" + id + "/$everything"})
	for _, kind := range []string{"Patient/_search _id", "Observation/_search patient", "MedicationRequest/_search patient"} {
		path, name, _ := strings.Cut(kind, " ")
		all = append(all, question{method: "POST", path: "/fhir/" + path, body: name + "=" + id})
	}
	return all
}

// varying is what two answers to one question may differ in.
var varying = regexp.MustCompile(`"request_id":"[^"]*"|_page=[A-Za-z0-9_-]+|http://127\.0\.0\.1:[0-9]+|Content-Length:\[[0-9]+]`)

// answered is all that the patient sees of an answer.
func answered(h http.Handler, q question) string {
	w, r := httptest.NewRecorder(), httptest.NewRequest(q.method, q.path, strings.NewReader(q.body))
	r.Header.Set("Authorization", "Bearer patient")
	r.Header.Set("X-Request-Id", "r-1")
	switch {
	case strings.HasPrefix(q.body, "{"):
		r.Header.Set("Content-Type", objectType)
	case q.body != "":
		r.Header.Set("Content-Type", formType)
	}
	if q.header[0] != "" {
		r.Header.Set(q.header[0], q.header[1])
	}
	h.ServeHTTP(w, r)
	return fmt.Sprint(w.Code, " ", w.Header(), " ", w.Body)
}

// A patient cannot find out who else is one: neither by what is answered nor by how long
// it takes, since nothing is looked up.
func TestWhoElseIsAPatientCannotBeFoundOut(t *testing.T) {
	h, _, store := everything(t)
	nobodies := questions(nobodiesID)
	for i, q := range questions(anotherID) {
		there, missing := answered(h, q), answered(h, nobodies[i])
		if there != missing {
			t.Errorf("%s:\n%s\nand of nobody:\n%s", q, there, missing)
		}
		if q.header[0] != "Accept" && !strings.HasPrefix(there, "403 ") {
			t.Errorf("%s: %s", q, there)
		}
	}
	if n := store.Calls(); n != 0 {
		t.Errorf("the store was asked %d times", n)
	}
}

// A search of a patient is for the own record alone: what it asks for may be true of
// somebody else, or of nobody, and neither the answer nor the number of questions to the
// store tells.
func TestASearchDoesNotTellOfOthers(t *testing.T) {
	h, _, store := everything(t)
	ask := func(n int) (calls uint64, said []string) {
		var p patientapi.Patient
		patientapi.Generator{Seed: 1}.Patient(n, &p)
		before := store.Calls()
		for _, pair := range []string{
			"identifier=" + p.Identifiers[0].Value, "identifier=urn:patientapi:mrn|" + p.Identifiers[0].Value, "name=" + p.Name.Family, "birthdate=" + p.BirthDate, "name=" + p.Name.Given + "&birthdate=" + p.BirthDate,
			"_lastUpdated=" + p.Updated.Format(time.RFC3339),
		} {
			got := answered(h, question{method: "POST", path: "/fhir/Patient/_search", body: url.PathEscape(pair)})
			if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"total":0`) {
				t.Errorf("%s: %s", pair, got)
			}
			said = append(said, varying.ReplaceAllString(got, ""))
		}
		return store.Calls() - before, said
	}
	calls, somebody := ask(8)
	again, nobody := ask(888)
	if calls != again || !slices.Equal(somebody, nobody) {
		t.Errorf("the store was asked %d times about somebody, and %d times about nobody:\n%s\n%s", calls, again, somebody, nobody)
	}
}
