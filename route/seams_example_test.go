package route_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/route"
)

func getPatient(_ context.Context, req get) (patient, error) {
	if req.ID != "P000042" {
		return patient{}, errUnknown
	}
	return patient{req.ID, "Ada"}, nil
}

// note is middleware that prints the pattern of each request.
func note(name string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Printf("%s sees %q\n", name, r.Pattern)
			next.ServeHTTP(w, r)
		})
	}
}

// Middleware of the mux is outside the middleware of a group. Both also see requests without a
// route.
func ExampleMux_Use() {
	api := route.NewMux(route.Config{Untimed: true})
	api.Use(note("request id"), note("authentication"))
	v1 := api.Group("/v1")
	v1.Use(note("admission"))
	if err := v1.Add(route.New("GET", "/patients/{id}", getPatient)); err != nil {
		panic(err)
	}
	send(api, "GET", "/v1/patients/P000042", "", "")
	send(api, "DELETE", "/v1/patients/P000042", "", "")
	// Output:
	// request id sees "GET /v1/patients/{id}"
	// authentication sees "GET /v1/patients/{id}"
	// admission sees "GET /v1/patients/{id}"
	// 200 {"id":"P000042","name":"Ada"}
	// request id sees ""
	// authentication sees ""
	// admission sees ""
	// 405 {"type":"urn:spillway:problem:method-not-allowed","title":"Method Not Allowed","status":405,"detail":"this path does not have this method"}
}

// A group has a prefix, and the Config of the mux with changes of its own.
func ExampleMux_Group() {
	api := route.NewMux(route.Config{Untimed: true, Errors: route.Errors{
		route.Is(errUnknown, route.Problem{Status: http.StatusNotFound, Type: "unknown-patient"}),
	}})
	wards := api.Group("/wards/{ward}", func(c *route.Config) { c.ProblemBase = "https://example.org/problems/" })
	err := wards.Add(
		route.New("GET", "", func(_ context.Context, req struct {
			Ward string `path:"ward"` // of the prefix
		}) (string, error) {
			return "ward " + req.Ward, nil
		}),
		route.New("GET", "/head", func(context.Context, struct {
			Ward string `path:"ward"`
		}) (patient, error) {
			return patient{}, errUnknown
		}),
	)
	if err != nil {
		panic(err)
	}
	send(api, "GET", "/wards/7", "", "")
	send(api, "GET", "/wards/7/head", "", "")
	// Output:
	// 200 "ward 7"
	// 404 {"type":"https://example.org/problems/unknown-patient","title":"Not Found","status":404}
}

// outcome writes problems in the format of FHIR.
var outcome = route.ProblemFormat{
	MediaType: "application/fhir+json",
	Encode: func(p *route.Problem) ([]byte, error) {
		type issue struct {
			Severity    string   `json:"severity"`
			Code        string   `json:"code"`
			Diagnostics string   `json:"diagnostics"`
			Expression  []string `json:"expression,omitempty"`
		}
		code := map[int]string{400: "invalid", 404: "not-found", 429: "throttled", 503: "throttled"}[p.Status]
		if code == "" {
			code = "processing"
		}
		issues := []issue{{"error", code, p.Detail, nil}}
		for _, f := range p.Errors {
			issues = append(issues, issue{"error", "value", f.Detail, []string{f.Parameter + f.Pointer}})
		}
		return json.Marshal(map[string]any{"resourceType": "OperationOutcome", "issue": issues})
	},
	Schema: map[string]any{"type": "object", "required": []string{"resourceType", "issue"}},
}

// One service may have an API for FHIR clients beside its own API.
func ExampleProblemFormat() {
	api := route.NewMux(route.Config{Untimed: true, Errors: route.Errors{
		route.Is(errUnknown, route.Problem{Status: http.StatusNotFound, Detail: "there is no patient of that id"}),
	}})
	fhir := api.Group("/fhir", func(c *route.Config) {
		c.ProblemFormat = outcome
		c.Produces = "application/fhir+json"
		c.Consumes = []string{"application/fhir+json", "application/json"}
	})
	if err := fhir.Add(route.New("GET", "/Patient/{id}", getPatient)); err != nil {
		panic(err)
	}
	send(api, "GET", "/fhir/Patient/P000001", "", "")
	send(api, "GET", "/fhir/Patient/7", "", "")
	send(api, "GET", "/fhir/Nurse", "", "")
	send(api, "GET", "/elsewhere", "", "")
	// Output:
	// 404 {"issue":[{"severity":"error","code":"not-found","diagnostics":"there is no patient of that id"}],"resourceType":"OperationOutcome"}
	// 400 {"issue":[{"severity":"error","code":"invalid","diagnostics":"the request has faults; each is listed"},{"severity":"error","code":"value","diagnostics":"must match ^P[0-9]{6}$","expression":["id"]}],"resourceType":"OperationOutcome"}
	// 404 {"issue":[{"severity":"error","code":"not-found","diagnostics":"there is nothing at this path"}],"resourceType":"OperationOutcome"}
	// 404 {"type":"urn:spillway:problem:no-such-resource","title":"Not Found","status":404,"detail":"there is nothing at this path"}
}

// A JSON body and a response may have other media types than application/json.
func ExampleRoute_Consumes() {
	api := route.NewMux(route.Config{Untimed: true})
	err := api.Add(route.New("POST", "/Patient", func(_ context.Context, req struct {
		Name string `json:"name"`
	}) (patient, error) {
		return patient{"P000043", req.Name}, nil
	}).Consumes("application/fhir+json").Produces("application/fhir+json"))
	if err != nil {
		panic(err)
	}
	send(api, "POST", "/Patient", "application/fhir+json; fhirVersion=4.0", `{"name":"Grace"}`)
	send(api, "POST", "/Patient", "application/json", `{"name":"Grace"}`)
	// Output:
	// 200 {"id":"P000043","name":"Grace"}
	// 415 {"type":"urn:spillway:problem:unsupported-media-type","title":"Unsupported Media Type","status":415,"detail":"send application/fhir+json"}
}

// Answers, Operation and Info.Edit add facts to the document that the types cannot express:
// headers, further answers, security.
func ExampleRoute_Answers() {
	api := route.NewMux(route.Config{})
	err := api.Add(route.New("PUT", "/patients/{id}", getPatient).
		Answers(200, route.Answer{Headers: map[string]string{"ETag": "of this version"}}).
		Answers(201, route.Answer{Description: "There was none", Headers: map[string]string{"Location": "where it is"}}).
		Answers(304, route.Answer{}).
		Operation(func(op map[string]any) { op["security"] = []any{map[string]any{"token": []any{"write"}}} }))
	if err != nil {
		panic(err)
	}
	doc, err := api.OpenAPI(route.Info{Title: "Patients", Version: "1", Edit: func(doc map[string]any) {
		doc["components"].(map[string]any)["securitySchemes"] = map[string]any{
			"token": map[string]any{"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
		}
	}})
	if err != nil {
		panic(err)
	}
	var d struct {
		Paths map[string]map[string]struct {
			Security  any
			Responses map[string]struct {
				Description string
				Headers     map[string]any
			}
		}
		Components struct{ SecuritySchemes any }
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		panic(err)
	}
	put := d.Paths["/patients/{id}"]["put"]
	for _, status := range []string{"200", "201", "304"} {
		fmt.Println(status, put.Responses[status])
	}
	fmt.Println(put.Security, d.Components.SecuritySchemes)
	// Output:
	// 200 {OK map[Etag:map[description:of this version schema:map[type:string]]]}
	// 201 {There was none map[Location:map[description:where it is schema:map[type:string]]]}
	// 304 {Not Modified map[]}
	// [map[token:[write]]] map[token:map[bearerFormat:JWT scheme:bearer type:http]]
}

// Observe gets the request as the handler got it.
func ExampleOutcome() {
	api := route.NewMux(route.Config{Untimed: true,
		Errors: route.Errors{route.Is(errUnknown, route.Problem{Status: http.StatusNotFound})},
		Observe: func(_ *http.Request, o route.Outcome) {
			of := "no patient"
			if req, ok := o.Request.(get); ok {
				of = req.ID
			}
			fmt.Println(strings.TrimSpace(o.Pattern+" of "+of), o.Status, o.Bytes, o.Err)
		},
	})
	if err := api.Add(route.New("GET", "/patients/{id}", getPatient)); err != nil {
		panic(err)
	}
	send(api, "GET", "/patients/P000042", "", "")
	send(api, "GET", "/patients/P000001", "", "")
	send(api, "GET", "/nurses", "", "")
	// Output:
	// GET /patients/{id} of P000042 200 29 <nil>
	// 200 {"id":"P000042","name":"Ada"}
	// GET /patients/{id} of P000001 404 34 unknown patient
	// 404 {"title":"Not Found","status":404}
	// of no patient 404 122 404 no-such-resource: there is nothing at this path
	// 404 {"type":"urn:spillway:problem:no-such-resource","title":"Not Found","status":404,"detail":"there is nothing at this path"}
}

// Admission middleware in front of all routes sees the priority and cost of each route.
func ExampleRoute_Priority() {
	api := route.NewMux(route.Config{Untimed: true})
	api.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Println(spillway.PriorityFrom(r.Context()), spillway.CostFrom(r.Context()), r.Pattern)
			next.ServeHTTP(w, r)
		})
	})
	ok := func(context.Context, route.Empty) (route.Empty, error) { return route.Empty{}, nil }
	err := api.Add(
		route.New("GET", "/alarms", ok).Priority(spillway.Critical),
		route.New("GET", "/export", ok).Priority(spillway.Low).Cost(4),
		route.New("GET", "/ward", ok),
	)
	if err != nil {
		panic(err)
	}
	for _, path := range []string{"/alarms", "/export", "/ward"} {
		api.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, strings.NewReader("")))
	}
	// Output:
	// critical 0 GET /alarms
	// low 4 GET /export
	// normal 0 GET /ward
}
