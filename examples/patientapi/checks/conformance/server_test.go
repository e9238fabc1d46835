package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/audit"
	"github.com/spillway-go/spillway/examples/patientapi/directory"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/assert"
	"github.com/spillway-go/spillway/examples/patientapi/internal/audittest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
)

// serve serves the API over store on loopback, with every access on record.
func serve(t testing.TB, store patientapi.Store, pattern string, cfg httpapi.Config) (url string, runner *patterns.Runner) {
	t.Helper()
	runner, err := patterns.New(pattern, patterns.Config{Workers: 4, QueueSize: 16})
	require.NoError(t, err)
	records, err := audit.NewWriter(t.Context(), audit.WriterConfig{Storage: new(audittest.Memory)})
	require.NoError(t, err)
	cfg.Runner, cfg.Patients, cfg.Clinicians, cfg.Health, cfg.Verifier = runner, store, directory.Alone(store), store, accesstest.Verifier{}
	cfg.Audit, cfg.AuditClosed = records, true
	api := httpapi.New(cfg)
	api.SetReady(true)
	server := httptest.NewServer(api)
	t.Cleanup(func() {
		server.Close()
		assert.NoError(t, runner.Drain(context.Background()))
		assert.NoError(t, records.Close())
	})
	return server.URL, runner
}

// specification is the document, as its readers see it.
type specification struct {
	validator validator.Validator
	schemas   *jsonschema.Compiler
	paths     map[string]map[string]operation // by path and method
}

type operation struct {
	ID         string `json:"operationId"`
	Parameters []struct {
		Name, In string
		Required bool
	}
	Responses map[string]response
}

type response struct {
	Ref     string `json:"$ref"` // to a component
	Content map[string]struct {
		Schema struct {
			Ref string `json:"$ref"`
		}
	}
}

const location = "openapi.json"

func read(t testing.TB) *specification {
	t.Helper()
	doc, err := libopenapi.NewDocument(Document)
	require.NoError(t, err)
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, faults := v.ValidateDocument(); !ok {
		for _, f := range faults {
			t.Error(f)
		}
	}
	s := &specification{validator: v, schemas: jsonschema.NewCompiler()}
	parsed, err := jsonschema.UnmarshalJSON(bytes.NewReader(Document))
	require.NoError(t, err)
	require.NoError(t, s.schemas.AddResource(location, parsed))
	var d struct {
		Paths map[string]map[string]operation
	}
	require.NoError(t, json.Unmarshal(Document, &d))
	s.paths = d.Paths
	return s
}

// schema compiles the schema that a pointer leads to, from the path on.
func (s *specification) schema(t testing.TB, path string, tokens ...string) *jsonschema.Schema {
	t.Helper()
	pointer := "paths/" + strings.ReplaceAll(strings.ReplaceAll(path, "/", "~1"), "{", "%7B")
	schema, err := s.schemas.Compile(location + "#/" + strings.ReplaceAll(pointer, "}", "%7D") + "/" + strings.Join(tokens, "/"))
	require.NoError(t, err)
	return schema
}

// types returns the problem types that the document has for a status of an
// operation.
func (s *specification) types(t *testing.T, op operation, status string) []string {
	t.Helper()
	var d struct {
		Components struct {
			Responses map[string]response
			Schemas   map[string]struct {
				AllOf []struct {
					Properties struct{ Type struct{ Enum []string } }
				}
			}
		}
	}
	require.NoError(t, json.Unmarshal(Document, &d))
	answer := op.Responses[status]
	if name, ok := strings.CutPrefix(answer.Ref, "#/components/responses/"); ok {
		answer = d.Components.Responses[name]
	}
	name := strings.TrimPrefix(answer.Content["application/problem+json"].Schema.Ref, "#/components/schemas/")
	all := d.Components.Schemas[name].AllOf
	if len(all) != 2 || len(all[1].Properties.Type.Enum) == 0 {
		t.Fatalf("%s %s: the document does not say which problem types there are", op.ID, status)
	}
	return all[1].Properties.Type.Enum
}

// samples are requests that the document allows, by operation.
var samples = map[string]func(base string) *http.Request{
	"getPatient":  func(base string) *http.Request { return request("GET", base+"/api/v1/patients/P000001", "") },
	"findPatient": func(base string) *http.Request { return request("GET", base+"/api/v1/patients?id=P000001", "") },
	"getPatients": func(base string) *http.Request {
		return request("POST", base+"/api/v1/patients:batch", `{"ids":["P000001"]}`)
	},
	"findClinicians": func(base string) *http.Request {
		return request("GET", base+"/api/v1/clinicians?email=a@b.example&org=Weir%20Road%20Surgery", "")
	},
}

func request(method, url, body string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequest(method, url, r)
	if err != nil {
		panic(err)
	}
	req.Header.Set("Authorization", accesstest.Clinician)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// answered checks that the document describes the answer to an operation, and
// leaves its body to be read again.
func (s *specification) answered(t testing.TB, op operation, resp *http.Response) (body []byte) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	assert.NoError(t, err)
	if _, ok := op.Responses[itoa(resp.StatusCode)]; !ok {
		t.Errorf("%s answered %d, which is not documented: %s", op.ID, resp.StatusCode, body)
		return body
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	// Any request of the operation will do: the validator looks for the operation.
	if ok, faults := s.validator.ValidateHttpResponse(samples[op.ID]("http://127.0.0.1"), resp); !ok {
		for _, f := range faults {
			t.Errorf("%s answered otherwise than documented: %v %v\n%s", op.ID, f, f.SchemaValidationErrors, body)
		}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

func itoa(status int) string {
	return string([]byte{byte('0' + status/100), byte('0' + status/10%10), byte('0' + status%10)})
}

func (s *specification) operations() (all []operation) {
	for _, methods := range s.paths {
		for _, op := range methods {
			all = append(all, op)
		}
	}
	slices.SortFunc(all, func(a, b operation) int { return strings.Compare(a.ID, b.ID) })
	return all
}

const moment = time.Millisecond // for what is never going to happen in time
