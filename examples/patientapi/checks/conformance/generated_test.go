package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	urlpath "path"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-go/spillway/examples/patientapi/checks/conformance/client"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

// spoiled returns a text, and the text with each character replaced or removed, and with one more in each place.
func spoiled(text string) []string {
	all := []string{text, strings.Repeat(text, 30), ""}
	runes := []rune(text)
	for at := range len(runes) + 1 {
		for _, r := range " \n\x00/%&;.'é\u00a0\u2028P0@" {
			all = append(all, string(runes[:at])+string(r)+string(runes[at:]))
			if at < len(runes) {
				all = append(all, string(runes[:at])+string(r)+string(runes[at+1:]))
			}
		}
		if at < len(runes) {
			all = append(all, string(runes[:at])+string(runes[at+1:]))
		}
	}
	return all
}

// bodies are those of a batch, good and bad.
func bodies() []string {
	all := []string{
		"", "{", "null", "1.5", `"P000001"`, "[]", "{}", `{"":1}`, `{"ids":null}`, `{"ids":"P000001"}`, `{"ids":[1]}`, `{"ids":[null]}`, `{"ids":[["P000001"]]}`, `{"ids":[{}]}`,
		`{"IDs":["P000001"]}`, `{"ids":["P000001"],"id":1}`, `{"ids":["P000001","P000001","P999999"]}`, `{"ids":["P000001","P1"]}`,
	}
	for _, n := range []int{0, 1, 99, 100, 101} {
		all = append(all, `{"ids":[`+strings.TrimSuffix(strings.Repeat(`"P000001",`, n), ",")+`]}`)
	}
	return all
}

// The generated client sends what the schemas allow and what they forbid. What
// they allow is not refused as bad input, what they forbid always is, and every
// answer is one that the document describes and the client understands.
func FuzzGeneratedClient(f *testing.F) {
	ids, emails, orgs, bodies := spoiled("P000007"), spoiled("o'n.x+y@b-c.example"), spoiled("Weir Rd Årstad"), bodies()
	for r := rune(1); r <= utf8.MaxRune; r += 9973 {
		orgs = append(orgs, "Weir "+string(r))
	}
	for n := range 2 { // as long as they may be, and longer
		emails, orgs = append(emails, strings.Repeat("a", 244+n)+"@b.example"), append(orgs, strings.Repeat("Å", 200+n))
	}
	for i, email := range emails {
		f.Add(ids[i%len(ids)], email, "Weir Road Surgery", bodies[i%len(bodies)])
	}
	for _, org := range orgs {
		f.Add("P000001", "a@b.example", org, "{}")
	}
	store, err := simulated.New(200, 1)
	require.NoError(f, err)
	base, _ := serve(f, store, patterns.Optimized, httpapi.Config{})
	spec := read(f)
	f.Fuzz(func(t *testing.T, id, email, org, body string) {
		if !utf8.ValidString(id + email + org + body) {
			return // of which JSON knows nothing
		}
		d := newDriver(t, base, spec)
		if urlpath.Clean("/"+id) == "/"+id && id != "" { // others make another path
			d.getPatient(id)
		}
		d.findPatient(id)
		d.findClinicians(email, org)
		d.getPatients(body)
	})
}

// driver drives the client.
type driver struct {
	t      *testing.T
	spec   *specification
	client *client.ClientWithResponses
	last   *http.Response // of the client's last request
}

func newDriver(t *testing.T, base string, spec *specification) *driver {
	t.Helper()
	d := &driver{t: t, spec: spec}
	var err error
	d.client, err = client.NewClientWithResponses(base, client.WithHTTPClient(d))
	require.NoError(t, err)
	return d
}

// Do implements client.HttpRequestDoer.
func (d *driver) Do(r *http.Request) (resp *http.Response, err error) {
	r.Header.Set("Authorization", accesstest.Clinician)
	d.last, err = http.DefaultClient.Do(r)
	if err == nil {
		for _, op := range d.spec.operations() {
			if sample := samples[op.ID]("http://x"); sample.Method == r.Method && (sample.URL.Path == r.URL.Path || op.ID == "getPatient" && strings.HasPrefix(r.URL.Path, "/api/v1/patients/")) {
				d.spec.answered(d.t, op, d.last)
			}
		}
	}
	return d.last, err
}

// parameter is the schema of a parameter of GET.
func (d *driver) parameter(path, name string) *jsonschema.Schema {
	for i, p := range d.spec.paths[path]["get"].Parameters {
		if p.Name == name {
			return d.spec.schema(d.t, path, "get", "parameters", fmt.Sprint(i), "schema")
		}
	}
	d.t.Fatalf("%s has no %s", path, name)
	return nil
}

// judge compares what became of an input with what the schemas say of it, and reports whether it
// was answered.
func (d *driver) judge(allowed bool, err error, input ...string) (answered bool) {
	d.t.Helper()
	require.NoError(d.t, err)
	if status := d.last.StatusCode; allowed && status != 200 && status != 404 || !allowed && status != 400 {
		d.t.Errorf("%q: allowed is %v, answered %d", input, allowed, status)
	}
	return d.last.StatusCode == 200
}

func (d *driver) getPatient(id string) {
	answer, err := d.client.GetPatientWithResponse(d.t.Context(), id)
	if d.judge(valid(d.parameter("/api/v1/patients/{id}", "id"), id), err, id) && (answer.JSON200 == nil || answer.JSON200.Id != id) {
		d.t.Errorf("asked for %q, got %+v", id, answer.JSON200)
	}
}

func (d *driver) findPatient(id string) {
	answer, err := d.client.FindPatientWithResponse(d.t.Context(), &client.FindPatientParams{Id: id})
	if d.judge(valid(d.parameter("/api/v1/patients", "id"), id), err, id) && (answer.JSON200 == nil || answer.JSON200.Id != id) {
		d.t.Errorf("asked for %q, got %+v", id, answer.JSON200)
	}
}

func (d *driver) findClinicians(email, org string) {
	const path = "/api/v1/clinicians"
	answer, err := d.client.FindCliniciansWithResponse(d.t.Context(), &client.FindCliniciansParams{Email: email, Org: org})
	if d.judge(valid(d.parameter(path, "email"), email) && valid(d.parameter(path, "org"), org), err, email, org) && answer.JSON200 == nil {
		d.t.Errorf("%s", answer.Body)
	}
}

func (d *driver) getPatients(body string) {
	var sent any
	if json.Unmarshal([]byte(body), &sent) == nil { // as a program writes it: no member twice
		text, err := json.Marshal(sent)
		require.NoError(d.t, err)
		body = string(text)
	}
	if len(body) > 16<<10 {
		return
	}
	schema := d.spec.schema(d.t, "/api/v1/patients:batch", "post", "requestBody", "content", "application~1json", "schema")
	answer, err := d.client.GetPatientsWithBodyWithResponse(d.t.Context(), "application/json", strings.NewReader(body))
	value, malformed := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(body)))
	if !d.judge(malformed == nil && valid(schema, value), err, body) {
		return
	}
	ids := sent.(map[string]any)["ids"].([]any)
	if got := answer.JSON200; got == nil || len(got.Patients)+len(got.Missing) != len(ids) {
		d.t.Errorf("%d were asked for, got %s", len(ids), answer.Body)
	}
}

func valid(s *jsonschema.Schema, v any) bool { return s.Validate(v) == nil }
