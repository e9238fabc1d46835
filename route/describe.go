package route

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/spillway-go/spillway"
)

// Info is the head of an OpenAPI document.
type Info struct {
	Title       string
	Version     string
	Description string
	Servers     []string // URLs

	// Edit changes the document after its generation: security schemes, tags, and any other member.
	// The values have the types of encoding/json; numbers are json.Number.
	Edit func(doc map[string]any)
}

// OpenAPI returns the document of the routes added so far. See [Describe].
func (m *Mux) OpenAPI(info Info) ([]byte, error) { return Describe(m.root.cfg, info, m.routes...) }

// Describe returns the OpenAPI 3.1 document of routes, from the plans that bind them. It is for
// routes that another router than Mux serves; cfg is the Config of their Handlers. Routes for all
// methods, or for a method that HTTP does not define, are left out, because OpenAPI cannot express
// them.
func Describe(cfg Config, info Info, routes ...*Route) ([]byte, error) {
	var operations []apiOperation
	for _, r := range routes {
		if r.err != nil {
			return nil, r.err
		}
		own := r.cfg
		if own == nil {
			own = &cfg
		}
		operations = append(operations, r.operation(own))
	}
	return apiDocument(apiInfo(info), operations)
}

// Document serves the OpenAPI document of the routes added so far. A pattern is, for example, "GET
// /openapi.json".
func (m *Mux) Document(pattern string, info Info) error {
	doc, err := m.OpenAPI(info)
	if err != nil {
		return err
	}
	return m.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(doc)
	}))
}

// operation describes the operation of r for the document.
func (r *Route) operation(cfg *Config) apiOperation {
	op := apiOperation{
		method: r.method, pattern: r.pattern, id: r.name, summary: r.summary, tags: r.tags,
		plan: r.plan, allowUnknown: r.allowUnknown, json: r.jsonTypes(cfg),
		produces: cmp.Or(r.produces, cfg.Produces, jsonContent[0]), status: r.success(), body: r.answer.body(),
		problems: r.problems(cfg), fails: r.fails, open: len(r.failsWith) == 0, edits: r.edits,
	}
	for _, codec := range cfg.Codecs {
		op.codecs = append(op.codecs, codec.MediaType())
	}
	for _, a := range r.answers {
		described := apiAnswer{status: a.status, description: a.Description, headers: a.Headers}
		if answer, _ := a.body(); answer != nil {
			body := answer.body()
			described.body = &body
		}
		op.answers = append(op.answers, described)
	}
	if f := &cfg.ProblemFormat; f.Encode != nil {
		op.format = &apiFormat{f.MediaType, f.Schema}
	}
	if cfg.Operation != nil {
		op.edits = append([]func(map[string]any){cfg.Operation}, op.edits...)
	}
	return op
}

// body describes the body of an answer for the document.
func (a *answer) body() apiBody { return apiBody{a.shape, a.nulls, a.streams} }

// problems lists the problems that the route itself answers, as mapped by the rules of
// Config.Errors, and those documented by FailsWith.
func (r *Route) problems(cfg *Config) (problems []apiProblem) {
	errs := append([]error{errInternal}, r.failsWith...)
	if len(r.plan.Fields) > 0 || !r.allowUnknown || r.refuse != nil {
		errs = append(errs, &InvalidError{})
	}
	if r.plan.Body() {
		errs = append(errs, errNoType, errCut, errTooSlow, errTooBig, unsupported(r.plan, r.jsonTypes(cfg), cfg.Codecs))
	}
	if r.limiter != nil {
		errs = append(errs, &spillway.Rejection{RetryAfter: time.Second})
	}
	if r.limits.withDefaults(cfg.Limits).Handle > 0 {
		errs = append(errs, context.DeadlineExceeded)
	}
	for _, err := range errs {
		if p, _ := cfg.Errors.problem(err); p.Status != statusGone {
			problems = append(problems, apiProblem{p.Status, p.uri(cfg.problemBase()), cmp.Or(p.Title, p.Detail), p.RetryAfter > 0})
		}
	}
	return problems
}
