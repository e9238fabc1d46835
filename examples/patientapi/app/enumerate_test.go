package app

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/token"
)

const (
	ownID      = "P000007"
	anotherID  = "P000008"
	nobodiesID = "P000888" // of a hundred patients
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

// answered is all that a caller sees of an answer, but for the time and the request's id.
func answered(t *testing.T, addr, bearer string, q question) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), q.method, "http://"+addr+q.path, strings.NewReader(q.body))
	require.NoError(t, err)
	r.Header.Set("Authorization", "Bearer "+bearer)
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
	resp, err := http.DefaultTransport.RoundTrip(r)
	require.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	header := maps.Clone(resp.Header)
	delete(header, "Date")
	return fmt.Sprint(resp.StatusCode, " ", header, " ", string(body))
}

// A patient cannot find out who else is one: neither by what is answered nor by how long
// it takes, since nothing is looked up.
func TestWhoElseIsAPatientCannotBeFoundOut(t *testing.T) {
	c := quick()
	c.Audit = AuditFlags{Mode: auditOn, DB: t.TempDir() + "/audit.db"}
	r := start(t, c)
	bearer := tokenOf(token.Grant{Role: access.Patient, Patient: ownID})
	others, nobodies := questions(anotherID), questions(nobodiesID)
	for i, q := range others {
		there, missing := answered(t, r.addr, bearer, q), answered(t, r.addr, bearer, nobodies[i])
		if there != missing {
			t.Errorf("%s:\n%s\nand of nobody:\n%s", q, there, missing)
		}
		if q.header[0] != "Accept" && !strings.HasPrefix(there, "403 ") {
			t.Errorf("%s: %s", q, there)
		}
	}
	if report, err := r.report(t); err != nil || report.StoreCalls != 0 {
		t.Errorf("%v, the store was asked %d times", err, report.StoreCalls)
	}
}

// searches are those that a patient may make, for what is known of somebody.
func searches(p *patientapi.Patient) (all []question) {
	for _, pair := range []string{
		"identifier=" + p.Identifiers[0].Value, "identifier=urn:patientapi:mrn|" + p.Identifiers[0].Value, "name=" + p.Name.Family, "birthdate=" + p.BirthDate, "name=" + p.Name.Given + "&birthdate=" + p.BirthDate,
		"_lastUpdated=" + p.Updated.Format(time.RFC3339),
	} {
		all = append(all, question{method: "POST", path: "/fhir/Patient/_search", body: url.PathEscape(pair)})
	}
	return all
}

// A search of a patient is for the own record alone: what it asks for may be true of
// somebody else, or of nobody, and neither the answer nor the number of questions to the
// store tells.
func TestASearchDoesNotTellOfOthers(t *testing.T) {
	var somebody, nobody patientapi.Patient
	patientapi.Generator{Seed: 1}.Patient(8, &somebody)
	patientapi.Generator{Seed: 1}.Patient(888, &nobody)
	bearer := tokenOf(token.Grant{Role: access.Patient, Patient: ownID})
	var calls []uint64
	var all [][]string
	for _, p := range []*patientapi.Patient{&somebody, &nobody} {
		r := start(t, quick())
		var said []string
		for _, q := range searches(p) {
			got := answered(t, r.addr, bearer, q)
			if !strings.HasPrefix(got, "200 ") || !strings.Contains(got, `"total":0`) {
				t.Errorf("%s: %s", q, got)
			}
			said = append(said, regexp.MustCompile(`Content-Length:\[[0-9]+]`).ReplaceAllString(varying.ReplaceAllString(got, ""), ""))
		}
		report, err := r.report(t)
		assert.NoError(t, err)
		calls, all = append(calls, report.StoreCalls), append(all, said)
	}
	if calls[0] != calls[1] {
		t.Errorf("the store was asked %d times about somebody, and %d times about nobody", calls[0], calls[1])
	}
	for i := range all[0] {
		if all[0][i] != all[1][i] {
			t.Errorf("somebody:\n%s\nnobody:\n%s", all[0][i], all[1][i])
		}
	}
}
