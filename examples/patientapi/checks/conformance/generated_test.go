package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp/syntax"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/checks/conformance/client"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
	"github.com/spillway-go/spillway/examples/patientapi/sqlite"
)

// inputs is how many inputs each operation is given on each store, for each seed.
const inputs = 250

const population = 200

type store interface {
	patientapi.Store
	io.Closer
}

// The generated client sends what the schemas allow and what they forbid. What
// they allow is not refused as bad input, what they forbid always is, and every
// answer is one that the document describes and the client understands.
func TestGeneratedClientFindsNoContradiction(t *testing.T) {
	generatedClient(t, 1)
}

// generatedClient drives a client of generated inputs against every store.
func generatedClient(t *testing.T, seed uint64) {
	t.Helper()
	t.Logf("seed %d", seed)
	for name, open := range map[string]func() (store, error){
		"simulated": func() (store, error) { return simulated.New(population, 1) },
		"sqlite": func() (store, error) {
			file := filepath.Join(t.TempDir(), "patients.db")
			return sqlite.OpenSet(t.Context(), file, sqlite.Set{Patients: population, Seed: 1}, sqlite.Options{}, nil)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := open()
			require.NoError(t, err)
			t.Cleanup(func() { store.Close() })
			base, _ := serve(t, store, patterns.Optimized, httpapi.Config{})
			d := newDriver(t, base, seed)
			for range inputs {
				d.getPatient()
				d.findPatient()
				d.findClinicians()
				d.getPatients()
				d.getAnything()
			}
			d.balanced()
		})
	}
}

// driver drives the client.
type driver struct {
	t      *testing.T
	rand   *rand.Rand
	spec   *specification
	client *client.ClientWithResponses
	ops    map[string]operation
	last   *http.Response // of the client's last request
	counts map[string]*[2]int

	byPath, byQuery, email, org, batch *jsonschema.Schema
}

func newDriver(t *testing.T, base string, seed uint64) *driver {
	t.Helper()
	d := &driver{t: t, rand: rand.New(rand.NewPCG(seed, 0)), spec: read(t), ops: map[string]operation{}, counts: map[string]*[2]int{}}
	for _, op := range d.spec.operations() {
		d.ops[op.ID], d.counts[op.ID] = op, new([2]int)
	}
	var err error
	if d.client, err = client.NewClientWithResponses(base, client.WithHTTPClient(d)); err != nil {
		t.Fatal(err)
	}
	parameter := func(path, name string) *jsonschema.Schema {
		for i, p := range d.spec.paths[path]["get"].Parameters {
			if p.Name == name {
				return d.spec.schema(t, path, "get", "parameters", fmt.Sprint(i), "schema")
			}
		}
		t.Fatalf("%s has no %s", path, name)
		return nil
	}
	d.byPath, d.byQuery = parameter("/api/v1/patients/{id}", "id"), parameter("/api/v1/patients", "id")
	d.email, d.org = parameter("/api/v1/clinicians", "email"), parameter("/api/v1/clinicians", "org")
	d.batch = d.spec.schema(t, "/api/v1/patients:batch", "post", "requestBody", "content", "application~1json", "schema")
	return d
}

// Do implements client.HttpRequestDoer.
func (d *driver) Do(r *http.Request) (resp *http.Response, err error) {
	r.Header.Set("Authorization", accesstest.Clinician)
	d.last, err = http.DefaultClient.Do(r)
	if err == nil {
		for id, op := range d.ops {
			if sample := samples[id]("http://x"); sample.Method == r.Method && (sample.URL.Path == r.URL.Path || id == "getPatient" && strings.HasPrefix(r.URL.Path, "/api/v1/patients/")) {
				d.spec.answered(d.t, op, d.last)
			}
		}
	}
	return d.last, err
}

// judge compares what became of an input with what the schemas say of it.
func (d *driver) judge(op string, allowed bool, err error, input any) {
	d.t.Helper()
	if err != nil {
		d.t.Fatalf("%s %q: the client: %v", op, input, err)
	}
	if status := d.last.StatusCode; allowed && status != 200 && status != 404 || !allowed && status != 400 {
		d.t.Errorf("%s %q: allowed is %v, answered %d", op, input, allowed, status)
	}
	if allowed {
		d.counts[op][0]++
	} else {
		d.counts[op][1]++
	}
}

// balanced fails if what was sent tells nothing.
func (d *driver) balanced() {
	for op, n := range d.counts {
		if n[0] < inputs/10 || n[1] < inputs/10 {
			d.t.Errorf("%s: %d allowed and %d forbidden inputs are too few", op, n[0], n[1])
		}
	}
}

func (d *driver) getPatient() {
	id := d.text(d.byPath)
	if id == "" || id == "." || id == ".." {
		return // these make another path
	}
	answer, err := d.client.GetPatientWithResponse(d.t.Context(), id)
	d.judge("getPatient", valid(d.byPath, id), err, id)
	if d.last.StatusCode == 200 && (answer.JSON200 == nil || answer.JSON200.Id != id) {
		d.t.Errorf("asked for %q, got %+v", id, answer.JSON200)
	}
}

func (d *driver) findPatient() {
	id := d.text(d.byQuery)
	answer, err := d.client.FindPatientWithResponse(d.t.Context(), &client.FindPatientParams{Id: id})
	d.judge("findPatient", valid(d.byQuery, id), err, id)
	if d.last.StatusCode == 200 && (answer.JSON200 == nil || answer.JSON200.Id != id) {
		d.t.Errorf("asked for %q, got %+v", id, answer.JSON200)
	}
}

func (d *driver) findClinicians() {
	params := &client.FindCliniciansParams{Email: d.text(d.email), Org: d.text(d.org)}
	known := d.rand.IntN(3) == 0
	if known {
		c := patientapi.Generator{Seed: 1}.Clinician(1 + d.rand.IntN(patientapi.Clinicians))
		params.Email, params.Org = c.Mailboxes()[d.rand.IntN(2)], c.Organisation
	}
	if n := d.rand.IntN(3); n > 0 {
		cache := n == 1
		params.Cache = &cache
	}
	answer, err := d.client.FindCliniciansWithResponse(d.t.Context(), params)
	d.judge("findClinicians", valid(d.email, params.Email) && valid(d.org, params.Org), err, *params)
	if known && (answer.JSON200 == nil || len(answer.JSON200.Clinicians) == 0) {
		d.t.Errorf("nobody is found for %+v", params)
	}
}

func (d *driver) getPatients() {
	body := client.GetPatientsJSONRequestBody{}
	for range d.size() {
		id := patientapi.FormatID(d.rand.IntN(2 * population))
		if d.rand.IntN(100) == 0 {
			id = d.text(d.byPath)
		}
		body.Ids = append(body.Ids, id)
	}
	answer, err := d.client.GetPatientsWithResponse(d.t.Context(), body)
	sent, _ := json.Marshal(body)
	d.judge("getPatients", validJSON(d.batch, sent), err, body.Ids)
	if got := answer.JSON200; d.last.StatusCode == 200 && (got == nil || len(got.Patients)+len(got.Missing) != len(body.Ids)) {
		d.t.Errorf("%d were asked for, got %s", len(body.Ids), answer.Body)
	}
}

// getAnything sends JSON of any shape.
func (d *driver) getAnything() {
	sent, _ := json.Marshal(d.value(3))
	_, err := d.client.GetPatientsWithBodyWithResponse(d.t.Context(), "application/json", bytes.NewReader(sent))
	d.judge("getPatients", validJSON(d.batch, sent), err, sent)
}

func (d *driver) size() int {
	if edges := []int{0, 1, 100, 101}; d.rand.IntN(4) == 0 {
		return edges[d.rand.IntN(len(edges))]
	}
	return d.rand.IntN(8)
}

func (d *driver) value(depth int) any {
	switch n := d.rand.IntN(10); {
	case n < 3 && depth > 0:
		members := map[string]any{}
		for range d.rand.IntN(3) {
			members[[]string{"ids", "id", "IDs", ""}[d.rand.IntN(4)]] = d.value(depth - 1)
		}
		return members
	case n < 5 && depth > 0:
		list := []any{}
		for range d.rand.IntN(3) {
			list = append(list, d.value(depth-1))
		}
		return list
	case n < 6:
		return map[string]any{"ids": []string{d.text(d.byPath)}}
	case n < 8:
		return d.text(d.byPath)
	}
	return []any{nil, true, 1.5, -1, "P000001"}[d.rand.IntN(5)]
}

// text makes a text that the schema allows, in most cases or by chance.
func (d *driver) text(s *jsonschema.Schema) string {
	expression, err := syntax.Parse(s.Pattern.String(), syntax.Perl)
	require.NoError(d.t, err)
	var b strings.Builder
	d.match(&b, expression.Simplify())
	text := b.String()
	for range max(0, d.rand.IntN(5)-2) {
		text = d.mutated(text)
	}
	return text
}

// match writes something that matches re.
func (d *driver) match(b *strings.Builder, re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		b.WriteString(string(re.Rune))
	case syntax.OpCharClass:
		// Mostly what people write, and anything at times.
		if re.Rune[0] <= '~' && d.rand.IntN(4) > 0 {
			for {
				if r := rune(' ' + d.rand.IntN('~'-' '+1)); within(re.Rune, r) {
					b.WriteRune(r)
					return
				}
			}
		}
		for {
			i := d.rand.IntN(len(re.Rune)/2) * 2
			r := re.Rune[i] + rune(d.rand.IntN(int(re.Rune[i+1]-re.Rune[i])+1))
			if r < 0xD800 || r > 0xDFFF {
				b.WriteRune(r)
				return
			}
		}
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range re.Sub {
			d.match(b, sub)
		}
	case syntax.OpAlternate:
		d.match(b, re.Sub[d.rand.IntN(len(re.Sub))])
	case syntax.OpStar, syntax.OpPlus, syntax.OpQuest:
		most := 6
		if re.Op == syntax.OpQuest {
			most = 1
		} else if d.rand.IntN(20) == 0 {
			most = 300
		}
		least := 0
		if re.Op == syntax.OpPlus {
			least = 1
		}
		for range least + d.rand.IntN(most+1) {
			if d.match(b, re.Sub[0]); b.Len() > 2000 {
				return
			}
		}
	}
}

func within(ranges []rune, r rune) bool {
	for i := 0; i < len(ranges); i += 2 {
		if ranges[i] <= r && r <= ranges[i+1] {
			return true
		}
	}
	return false
}

// mutated changes one character.
func (d *driver) mutated(text string) string {
	runes := []rune(text)
	at := d.rand.IntN(len(runes) + 1)
	r := []rune(" \t\n\x00/%?#&;+.\"'é€\u00a0\u2028\U0001F600P0@")[d.rand.IntN(22)]
	switch {
	case at == len(runes) || d.rand.IntN(3) == 0:
		return string(runes[:at]) + string(r) + string(runes[at:])
	case d.rand.IntN(2) == 0:
		return string(runes[:at]) + string(runes[at+1:])
	}
	runes[at] = r
	return string(runes)
}

func valid(s *jsonschema.Schema, v any) bool { return s.Validate(v) == nil }

func validJSON(s *jsonschema.Schema, text []byte) bool {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	return err == nil && valid(s, v)
}
