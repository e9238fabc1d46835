package front

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/spillway-go/spillway/examples/patientapi/access"
	"github.com/spillway-go/spillway/route"
)

// need is what a caller must be allowed to get behind a pattern.
type need struct {
	public   bool
	resource access.Resource
	action   access.Action
	patient  string // the wildcard that names the patient; empty where the path does not
}

// Operations are routes by which callers do the same thing. Make them with For or Public.
type Operations struct {
	need   need
	routes []*route.Route
}

// For returns routes for those who may do that with such a resource. Their requests have
// an access.Visit in the context, which the handler must ask about each patient: see
// access.Visit.Touch.
func For(r access.Resource, a access.Action, routes ...*route.Route) Operations {
	return Operations{need{resource: r, action: a}, routes}
}

// Of says which wildcard of the path is the id of the patient, or begins with it and a
// hyphen, as the id of an observation does. Those who may not see that patient are
// refused before admission.
func (o Operations) Of(wildcard string) Operations {
	o.need.patient = wildcard
	return o
}

// Public returns routes for everybody, authenticated or not. They must not show data of
// patients or clinicians.
func Public(routes ...*route.Route) Operations { return Operations{need{public: true}, routes} }

// Add registers operations, and says in their description who may use them. Its errors
// are mistakes of the program.
func (a *API) Add(operations ...Operations) error {
	var errs []error
	for _, o := range operations {
		for _, r := range o.routes {
			if err := o.need.check(r.Pattern()); err != nil {
				errs = append(errs, err)
				continue
			}
			if !o.need.public {
				r.FailsWith(errUnauthenticated, access.ErrDenied).Operation(secured)
				r.Answers(http.StatusUnauthorized, route.Answer{Headers: map[string]string{challengeHeader: "Bearer"}})
			}
			a.needs[r.Pattern()] = o.need
			errs = append(errs, a.mux.Add(r))
		}
	}
	return errors.Join(errs...)
}

// check reports what makes no sense for a route of that pattern.
func (n need) check(pattern string) error {
	method, _, _ := strings.Cut(pattern, " ")
	switch {
	case n.public && n.patient != "":
		return fmt.Errorf("front: %s is public and about a patient", pattern)
	case !n.public && (n.resource == "" || n.action == ""):
		return fmt.Errorf("front: %s does not say who may use it: add it with For or Public", pattern)
	case method != http.MethodGet && method != http.MethodPost && !(method == http.MethodDelete && n.action == access.ExportAll):
		return fmt.Errorf("front: %s: operations read, by GET or by POST; only an export can be deleted", pattern)
	case n.patient != "" && !strings.Contains(pattern, "{"+n.patient+"}"):
		return fmt.Errorf("front: %s has no wildcard %s to name the patient", pattern, n.patient)
	}
	return nil
}

// Page registers a plain handler for everybody, authenticated or not, such as a probe.
// It must not show data of patients or clinicians.
func (a *API) Page(pattern string, h http.Handler) error {
	a.needs[pattern] = need{public: true}
	return a.mux.Handle(pattern, h)
}

// OpenAPI returns the document of the operations added so far.
func (a *API) OpenAPI(info route.Info) ([]byte, error) { return a.mux.OpenAPI(a.secure(info)) }

// Document serves the document of the operations added so far as a page.
func (a *API) Document(pattern string, info route.Info) error {
	doc, err := a.OpenAPI(info)
	if err != nil {
		return err
	}
	return a.Page(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	}))
}

const scheme = "bearer"

// secured says in the description of an operation that it takes a token.
func secured(op map[string]any) { op["security"] = []any{map[string]any{scheme: []any{}}} }

// secure adds to the document what kind of token that is.
func (a *API) secure(info route.Info) route.Info {
	edit := info.Edit
	info.Edit = func(doc map[string]any) {
		doc["components"].(map[string]any)["securitySchemes"] = map[string]any{
			scheme: map[string]any{"type": "http", "scheme": scheme, "bearerFormat": "JWT"},
		}
		if edit != nil {
			edit(doc)
		}
	}
	return info
}

// Access returns what every pattern of all APIs opens, in words: public, or a resource and
// an action, such as Patient read.
func (f *Front) Access() map[string]string {
	words := map[string]string{}
	for _, a := range f.apis {
		for pattern, n := range a.needs {
			words[pattern] = "public"
			if !n.public {
				words[pattern] = string(n.resource) + " " + string(n.action)
			}
		}
	}
	return words
}
