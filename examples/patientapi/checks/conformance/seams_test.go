package conformance

import (
	"context"
	"testing"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/spillway-go/spillway/examples/patientapi/internal/require"
	"github.com/spillway-go/spillway/route"
)

// What is said by hand beside what the types say leaves the document valid: groups,
// media types, formats of problems, headers, further answers and security.
func TestADocumentWithAllThatCanBeAddedIsValid(t *testing.T) {
	type in struct {
		Ward string `path:"ward"`
		ID   string `path:"id"`
		Name string `json:"name" validate:"required"`
	}
	type made struct {
		Version int `json:"version"`
	}
	secured := func(op map[string]any) { op["security"] = []any{map[string]any{"token": []any{}}} }
	mux := route.NewMux(route.Config{})
	fhir := mux.Group("/wards/{ward}", func(c *route.Config) {
		c.Consumes, c.Produces = []string{"application/fhir+json"}, "application/fhir+json"
		c.ProblemFormat = route.ProblemFormat{
			MediaType: "application/fhir+json",
			Encode:    func(*route.Problem) ([]byte, error) { return []byte(`{"resourceType":"OperationOutcome"}`), nil },
			Schema:    map[string]any{"$ref": "#/components/schemas/OperationOutcome"},
		}
	})
	put := func(context.Context, in) (made, error) { return made{}, nil }
	seamed := func() *route.Route {
		return route.New("PUT", "/{id}", put).Operation(secured).Answers(404, route.Answer{}).
			Answers(200, route.Answer{Headers: map[string]string{"ETag": "the version", "Last-Modified": "when"}}).
			Answers(201, route.Answer{Headers: map[string]string{"Location": "where"}}).
			Answers(202, route.Answer{Body: route.Empty{}}).
			Answers(412, route.Answer{Description: "There is a newer version"})
	}
	other := route.New("PUT", "/other/{ward}/{id}", put).Answers(401, route.Answer{Headers: map[string]string{"WWW-Authenticate": "how"}}).
		Operation(secured).Operation(func(op map[string]any) { op["x-audit"] = "write" })
	require.NoError(t, fhir.Add(seamed()))
	require.NoError(t, mux.Add(other))
	text, err := mux.OpenAPI(route.Info{Title: "T", Version: "1", Edit: func(doc map[string]any) {
		components := doc["components"].(map[string]any)
		components["securitySchemes"] = map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer"}}
		components["schemas"].(map[string]any)["OperationOutcome"] = map[string]any{"type": "object"}
	}})
	require.NoError(t, err)
	doc, err := libopenapi.NewDocument(text)
	require.NoError(t, err)
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	if ok, faults := v.ValidateDocument(); !ok {
		for _, f := range faults {
			t.Error(f)
		}
		t.Logf("%s", text)
	}
	model, err := doc.BuildV3Model()
	require.NoError(t, err)
	op := model.Model.Paths.PathItems.GetOrZero("/wards/{ward}/{id}").Put
	if op.Responses.Codes.GetOrZero("200").Headers.GetOrZero("Etag") == nil || op.Responses.Codes.GetOrZero("201") == nil || len(op.Security) != 1 {
		t.Errorf("%s", text)
	}
}
