package conformance

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/spillway-go/spillway/examples/patientapi"
	"github.com/spillway-go/spillway/examples/patientapi/httpapi"
	"github.com/spillway-go/spillway/examples/patientapi/internal/accesstest"
	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/examples/patientapi/patterns"
	"github.com/spillway-go/spillway/examples/patientapi/simulated"
)

const ours = "urn:patientapi:problem:"

// fault is a way to make an operation fail.
type fault struct {
	status int
	kind   string
	name   string
	change func(*http.Request)         // of the sample request
	raw    string                      // sent instead, as it is
	fails  func(context.Context) error // the store
	config httpapi.Config
	drain  bool // the service is stopping
}

// always may happen to any operation.
var always = []fault{
	{status: 500, kind: ours + "internal", name: "bug", fails: func(context.Context) error { return errors.New("a bug") }},
	{status: 500, kind: ours + "internal", name: "panic", fails: func(context.Context) error { panic("a bug") }},
	{status: 502, kind: ours + "store-unavailable", name: "store", fails: func(context.Context) error { return fmt.Errorf("%w: gone", patientapi.ErrUnavailable) }},
	{status: 503, kind: "https://iana.org/assignments/http-problem-types#temporary-reduced-capacity", name: "stopping", drain: true},
	{status: 504, kind: ours + "timeout", name: "late", config: httpapi.Config{Timeout: moment}, fails: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }},
	{status: 400, kind: ours + "invalid-request", name: "unknown parameter", change: func(r *http.Request) { r.URL.RawQuery += "&x=1" }},
	{status: 401, kind: ours + "unauthenticated", name: "no token", change: func(r *http.Request) { r.Header.Del("Authorization") }},
	{status: 401, kind: ours + "unauthenticated", name: "a bad token", change: func(r *http.Request) { r.Header.Set("Authorization", "Bearer bad") }},
	{status: 403, kind: ours + "forbidden", name: "no scope", change: func(r *http.Request) { r.Header.Set("Authorization", "Bearer no-scope") }},
}

// faults are those of one operation.
var faults = map[string][]fault{
	"getPatient": {
		{status: 400, kind: ours + "invalid-request", change: path("/api/v1/patients/42")},
		{status: 404, kind: ours + "unknown-patient", change: path("/api/v1/patients/P999999")},
	},
	"findPatient": {
		{status: 400, kind: ours + "invalid-request", change: query("id=42")},
		{status: 400, kind: ours + "invalid-request", name: "missing", change: query("")},
		{status: 404, kind: ours + "unknown-patient", change: query("id=P999999")},
	},
	"findClinicians": {
		{status: 400, kind: ours + "invalid-request", change: query("email=a@b&org=c&cache=maybe")},
	},
	"getPatients": {
		{status: 400, kind: ours + "invalid-request", raw: post + "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n" + `{"ids":[]}`},
		{status: 400, kind: ours + "missing-content-type", raw: post + "Content-Length: 10\r\n\r\n" + `{"ids":[]}`},
		{status: 400, kind: ours + "incomplete-body", raw: post + "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"},
		{status: 408, kind: ours + "body-too-slow", config: httpapi.Config{BodyTimeout: moment},
			raw: post + "Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{"},
		{status: 413, kind: ours + "body-too-large", raw: post + "Content-Type: application/json\r\nContent-Length: 100000\r\n\r\n{"},
		{status: 415, kind: ours + "unsupported-media-type", change: func(r *http.Request) { r.Header.Set("Content-Type", "text/csv") }},
	},
}

const post = "POST /api/v1/patients:batch HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nAuthorization: " + accesstest.Clinician + "\r\n"

func path(p string) func(*http.Request)  { return func(r *http.Request) { r.URL.Path = p } }
func query(q string) func(*http.Request) { return func(r *http.Request) { r.URL.RawQuery = q } }

// Whatever the document says may go wrong can be brought about, and nothing else
// goes wrong.
func TestEveryDocumentedErrorHasACaseAndEveryCaseIsDocumented(t *testing.T) {
	spec := read(t)
	for _, op := range spec.operations() {
		open := map[string]bool{} // status and type; true once it was brought about
		for status := range op.Responses {
			if status >= "400" {
				for _, kind := range spec.types(t, op, status) {
					open[status+" "+kind] = false
				}
			}
		}
		for _, f := range append(faults[op.ID], always...) {
			t.Run(fmt.Sprintf("%s %d %s", op.ID, f.status, f.name), func(t *testing.T) {
				resp := f.produce(t, op.ID)
				body := spec.answered(t, op, resp)
				var p struct{ Type string }
				if err := json.Unmarshal(body, &p); err != nil || resp.StatusCode != f.status || p.Type != f.kind {
					t.Fatalf("want %d %s, got %d %s", f.status, f.kind, resp.StatusCode, body)
				}
				id := itoa(f.status) + " " + f.kind
				if _, documented := open[id]; !documented {
					t.Errorf("%s is not documented", id)
				}
				open[id] = true
			})
		}
		if len(open) < 5 {
			t.Errorf("%s: only %d documented errors: were they lost?", op.ID, len(open))
		}
		for id, produced := range open {
			if !produced {
				t.Errorf("%s documents %s, and no case produces it", op.ID, id)
			}
		}
	}
}

// produce makes the operation of a service of its own fail.
func (f fault) produce(t *testing.T, op string) *http.Response {
	t.Helper()
	var store patientapi.Store
	store, err := simulated.New(10, 1)
	require.NoError(t, err)
	if f.fails != nil {
		store = patientapi.Around(store, func(ctx context.Context, _ patientapi.Question, _ func(context.Context) error) error {
			return f.fails(ctx)
		})
	}
	base, runner := serve(t, store, patterns.Adaptive, f.config)
	if f.drain {
		require.NoError(t, runner.Drain(t.Context()))
	}
	if f.raw != "" {
		conn, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
		require.NoError(t, err)
		t.Cleanup(func() { conn.Close() })
		if _, err := conn.Write([]byte(f.raw)); err != nil {
			t.Fatal(err)
		}
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err)
		return resp
	}
	r := samples[op](base)
	if f.change != nil {
		f.change(r)
	}
	resp, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	return resp
}
