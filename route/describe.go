package route

import (
	"cmp"
	"context"
	"time"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/route/internal/openapi"
)

// Info is the head of an OpenAPI document.
type Info struct {
	Title       string
	Version     string
	Description string

	// Edit changes the document after its generation: servers, security schemes, and any other member.
	// The values have the types of encoding/json; numbers are json.Number.
	Edit func(doc map[string]any)
}

// OpenAPI returns the document of the routes added so far, for a file or for a handler that serves
// it as application/json. See [Describe].
func (m *Mux) OpenAPI(info Info) ([]byte, error) { return Describe(m.root.cfg, info, m.routes...) }

// Describe returns the OpenAPI 3.1 document of routes, from the plans that bind them. It is for
// routes that another router than Mux serves; cfg is the Config of their Handlers. Routes for all
// methods, or for a method that HTTP does not define, are left out, because OpenAPI cannot express
// them. The document is JSON without indentation, which json.Indent adds. What operations repeat,
// responses to failures and schemas of bodies, is moved to its components last, after all edits.
func Describe(cfg Config, info Info, routes ...*Route) ([]byte, error) {
	var operations []openapi.Operation
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
	return openapi.Marshal(openapi.Info(info), operations)
}

// operation describes the operation of r for the document.
func (r *Route) operation(cfg *Config) openapi.Operation {
	op := openapi.Operation{
		Method: r.method, Pattern: r.pattern, ID: r.name, Summary: r.summary, Tags: r.tags,
		Plan: r.plan, AllowUnknown: r.allowUnknown && len(r.ignores) == 0, JSON: r.jsonTypes(cfg), Codecs: cfg.codecTypes(),
		Produces: cmp.Or(r.produces, cfg.Produces, jsonContent[0]), Status: r.success(), Body: r.answer.body(),
		Problems: r.problems(cfg), Open: len(r.failsWith) == 0, Edits: r.edits,
	}
	for _, a := range r.answers {
		described := openapi.Answer{Status: a.status, Description: a.Description, Headers: a.Headers}
		if answer, _ := a.body(); answer != nil {
			body := answer.body()
			described.Body = &body
		}
		op.Answers = append(op.Answers, described)
	}
	if f := &cfg.ProblemFormat; f.Encode != nil {
		op.Format = &openapi.Format{MediaType: f.MediaType, Schema: f.Schema}
	}
	return op
}

// body describes the body of an answer for the document.
func (a *answer) body() openapi.Body {
	return openapi.Body{Shape: a.shape, Nulls: a.nulls, Streams: a.streams}
}

// problems lists the problems that the route itself answers, as mapped by the rules of
// Config.Errors, and those documented by FailsWith.
func (r *Route) problems(cfg *Config) (problems []openapi.Problem) {
	errs := append([]error{errInternal}, r.failsWith...)
	if len(r.plan.Fields) > 0 || !r.allowUnknown || len(r.ignores) > 0 {
		errs = append(errs, &InvalidError{})
	}
	if r.plan.Body() {
		errs = append(errs, errNoType, errCut, errTooSlow, errTooBig, unsupported(r.plan, r.jsonTypes(cfg), cfg.codecTypes()))
	}
	if r.limiter != nil || r.until != nil {
		errs = append(errs, &spillway.Rejection{RetryAfter: time.Second})
	}
	if r.limits.withDefaults(cfg.Limits).Handle > 0 {
		errs = append(errs, context.DeadlineExceeded)
	}
	for _, err := range errs {
		if p, _ := cfg.Errors.problem(err); p.Status != statusClientLeft {
			problems = append(problems, openapi.Problem{
				Status: p.Status, Kind: p.uri(cfg.problemBase()), Text: cmp.Or(p.Title, p.Detail), Retry: p.RetryAfter > 0,
			})
		}
	}
	return problems
}
