package r4

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
)

// hostile are values that have broken services: in each parameter, path and body.
var hostile = []string{
	"", " ", "'", "' OR 1=1 --", "'; DROP TABLE patients; --", `" OR ""="`, "1) UNION SELECT * FROM patients --", "%", "_", "%25", `\`, `\,`, "$1", "?", ":id",
	"../../etc/passwd", "..%2f..%2fetc%2fpasswd", "/", "//", "P000001/../P000002", "P000001\x00", "\x00", "\xff\xfe", "\u202e", "\u0000", "\U0001F9EA", "a\r\nSet-Cookie: x=y",
	"null", "NaN", "-1", "0", "1e309", "99999999999999999999999", "9223372036854775807", "-9223372036854775808", "0x10", "1.5", "+1", "١",
	"P000000", "P999999", "p000001", "P0000001", "P000001-o0", "P000001-o-1", "P000001-o9223372036854775808", "P000001-m1-m1", "Patient/Patient/P000001", "http://example.com/fhir/Patient/P000001",
	"ge", "ge1", "eq0000-00-00", "le9999-12-31T23:59:60Z", "gt9999-12-31T23:59:59.999999999-14:00", "2025-02-30", "-2025", "10000", "2025-01-01T00:00:00 00:00",
	"|", "||", "urn:patientapi:|x", "urn:patientapi:mrn|", "|x", "a,b", "${jndi:ldap://x}", "<script>alert(1)</script>", "{{7*7}}", strings.Repeat("A", 5000), strings.Repeat(",", 200), strings.Repeat("%41", 300),
}

var parameters = []string{"_id", "identifier", "name", "name:exact", "birthdate", "_lastUpdated", "_count", "_count:not", "_summary", "_type", "_since", "start", "end", "_page", "_format", "_pretty", "patient", "code", "_sort", "", "a[b]", "\x00", "_id:missing"}

var collections = []string{"/fhir/Patient", "/fhir/Observation", "/fhir/MedicationRequest", "/fhir/metadata"}

// sane reports an answer that no input may bring about. That it is FHIR is checked by
// answer.
func sane(t *testing.T, h http.Handler, r *http.Request) {
	t.Helper()
	w, content := answer(t, h, r)
	switch {
	case w.Code >= 500:
		t.Fatalf("%s %q: %d %s", r.Method, r.URL, w.Code, w.Body)
	case w.Code >= 400 && content.ResourceType != "OperationOutcome" && r.Method != "HEAD":
		t.Fatalf("%s %q: %d %s", r.Method, r.URL, w.Code, w.Body)
	}
}

// request is one as net/http hands it over, whatever is in it; nil where it would not.
func request(method, path, query, body, contentType string) *http.Request {
	u, err := url.ParseRequestURI(path)
	if err != nil || u.Host != "" || !strings.HasPrefix(path, "/fhir") {
		return nil
	}
	u.RawQuery = query
	r := httptest.NewRequest("GET", "/", strings.NewReader(body))
	r.Method, r.URL = method, u
	r.Header.Set("Authorization", accesstest.Clinician)
	r.Header.Set("Content-Type", contentType)
	return r
}

func FuzzRequests(f *testing.F) {
	api := serve(f, newStore(f))
	for _, seed := range []struct{ method, path, query, body, contentType string }{
		{"GET", "/fhir/Patient", "name=a&birthdate=ge1980&_count=2", "", ""},
		{"POST", "/fhir/Patient/_search", "", "identifier=urn:patientapi:mrn|x&_lastUpdated=le2025", form},
		{"POST", "/fhir/Observation/_search", "_format=json", "patient=P000001&code=http://loinc.org|8867-4", form},
		{"GET", "/fhir/Observation/P000001-o1", "", "", ""},
		{"HEAD", "/fhir/Patient/P000001/$everything", "", "", ""},
		{"GET", "/fhir/Patient/P000001/$everything", "_count=2&_type=Observation&start=2024", "", ""},
		{"POST", "/fhir/Patient/P000001/$everything", "", `{"resourceType":"Parameters","parameter":[{"name":"_count","valueInteger":2},{"name":"end","valueDate":"2025"}]}`, "application/fhir+json"},
		{"PUT", "/fhir/Patient/%2e%2e", "%zz", "{", "application/fhir+json"},
		{"POST", "/fhir/MedicationRequest/_search", "a;b", "--x\r\nContent-Disposition: form-data; name=patient\r\n\r\nP000001\r\n--x--", "multipart/form-data; boundary=x"},
	} {
		f.Add(seed.method, seed.path, seed.query, seed.body, seed.contentType)
	}
	for i, value := range hostile {
		f.Add("GET", collections[i%4], parameters[i%len(parameters)]+"="+value, value, form)
	}
	f.Fuzz(func(t *testing.T, method, path, query, body, contentType string) {
		if r := request(method, path, query, body, contentType); r != nil {
			sane(t, api, r)
		}
	})
}
