package routegin_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/gin-gonic/gin"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/route"
	"github.com/spillway-go/spillway/routegin"
)

// A route on gin has the same features around it as a route of package route: formats, media types,
// priorities, observers and text for the document.
func TestSeamsOfRouteOnGin(t *testing.T) {
	const fhir = "application/fhir+json"
	type in struct {
		ID   string `path:"id"`
		Name string `json:"name"`
	}
	unknown := errors.New("unknown")
	var seen []string
	api := routegin.NewAPI(route.Config{
		Consumes: []string{fhir}, Produces: fhir,
		Errors: route.Errors{route.Is(unknown, route.Problem{Status: 404, Detail: "none"})},
		ProblemFormat: route.ProblemFormat{MediaType: fhir, Encode: func(p *route.Problem) ([]byte, error) {
			return fmt.Appendf(nil, `{"issue":%q}`, p.Detail), nil
		}},
		Observe: func(r *http.Request, o route.Outcome) {
			seen = append(seen, fmt.Sprintf("%s %v %d %v %v", o.Pattern, o.Request, o.Status, o.Err, r.Context().Value("user")))
		},
	})
	engine := gin.New()
	check(t, api.Register(engine.Group("/v1", func(g *gin.Context) { g.Set("user", "grace") }),
		routegin.New("POST", "/patients/:id", func(c *routegin.Context, req in) (string, error) {
			seen = append(seen, fmt.Sprintf("handler %v %d", spillway.PriorityFrom(c), spillway.CostFrom(c)))
			if req.Name == "" {
				return "", unknown
			}
			return req.Name, nil
		}).With(func(r *route.Route) {
			r.Priority(spillway.High).Cost(2).Answers(200, route.Answer{Headers: map[string]string{"ETag": "version"}}).
				Operation(func(op map[string]any) { op["x-gin"] = true })
		})))
	for _, c := range []struct {
		media, body string
		status      int
		answer      string
		seen        string
	}{
		{fhir, `{"name":"Ada"}`, 200, `"Ada"`, "handler high 2; POST /v1/patients/{id} {P1 Ada} 200 <nil> grace"},
		{fhir, `{}`, 404, `{"issue":"none"}`, "handler high 2; POST /v1/patients/{id} {P1 } 404 unknown grace"},
		{"application/json", `{}`, 415, `{"issue":"send application/fhir+json"}`, "POST /v1/patients/{id} <nil> 415 415 unsupported-media-type: send application/fhir+json grace"},
	} {
		seen = nil
		w := do(engine, "POST", "/v1/patients/P1", c.media, c.body)
		if w.Code != c.status || w.Header().Get("Content-Type") != fhir || w.Body.String() != c.answer || strings.Join(seen, "; ") != c.seen {
			t.Errorf("%s %s: %d %v %s, seen %q", c.media, c.body, w.Code, w.Header(), w.Body, seen)
		}
	}
	doc, err := api.OpenAPI(route.Info{Title: "T", Version: "1"})
	if text := string(doc); err != nil || !strings.Contains(text, `"x-gin":true`) || !strings.Contains(text, `"Etag"`) || strings.Contains(text, "application/problem+json") {
		t.Errorf("%v %s", err, doc)
	}
}
