package route

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Name is the operation's id in the OpenAPI document.
func (r *Route) Name(name string) *Route { r.name = name; return r }

// Describe says in a sentence what the operation does.
func (r *Route) Describe(text string) *Route { r.summary = text; return r }

// Tags group operations in the OpenAPI document.
func (r *Route) Tags(tags ...string) *Route { r.tags = append(r.tags, tags...); return r }

// Status is the status of a success; without it 200, or 204 for Empty.
func (r *Route) Status(code int) *Route { r.status = code; return r }

// Fails documents statuses that errors of this operation are mapped to.
func (r *Route) Fails(codes ...int) *Route { r.fails = append(r.fails, codes...); return r }

// FailsWith documents errors of this operation as the problems that Config.Errors
// makes of them: their statuses, types and details. A route that says so lists all; without
// it the document says that the operation may fail in other ways, too.
func (r *Route) FailsWith(errs ...error) *Route { r.failsWith = append(r.failsWith, errs...); return r }

// Use adds middleware around this route; the first added is the outermost.
func (r *Route) Use(middleware ...func(http.Handler) http.Handler) *Route {
	r.use = append(r.use, middleware...)
	return r
}

// Limits replaces the limits that are not zero.
func (r *Route) Limits(l Limits) *Route { r.limits = l.or(r.limits); return r }

// Limiter asks l before the body is read. The time that takes is the wait of
// Server-Timing; a refusal is answered with Retry-After. What the client sent
// wrongly and a stream are no latency samples.
func (r *Route) Limiter(l *limiter.Limiter) *Route { r.limiter = l; return r }

// Untimed leaves out Server-Timing, which tells clients how long decoding,
// waiting and handling took, and costs three clock reads.
func (r *Route) Untimed() *Route { r.untimed = true; return r }

// Consumes lists the media types that the JSON body may have, in place of those of
// Config.Consumes.
func (r *Route) Consumes(mediaTypes ...string) *Route { r.consumes = mediaTypes; return r }

// Produces is the content type of a response that is encoded as JSON, in place of
// that of Config.Produces.
func (r *Route) Produces(contentType string) *Route { r.produces = contentType; return r }

// Priority is that of the route's requests. It is put into their context, in place of
// what is there, before any middleware of the Mux, its groups and the route runs, so
// that spillway.PriorityFrom finds it there. It costs two allocations a request.
func (r *Route) Priority(p spillway.Priority) *Route {
	r.mark.priority, r.mark.prioritized = p, true
	return r
}

// Cost is how many slots of a limiter a request takes. It is put into the context as
// Priority is, for spillway.CostFrom; both together cost no more than one.
func (r *Route) Cost(n int) *Route { r.mark.cost, r.mark.costs = n, true; return r }

// AllowUnknown ignores body members and query parameters the type does not know.
func (r *Route) AllowUnknown() *Route { r.lax = true; return r }

// AllowUnknownIf ignores them in the requests for which asked is true, such as those
// with Prefer: handling=lenient (RFC 7240). It is called before the body is read, and
// must not read it.
func (r *Route) AllowUnknownIf(asked func(*http.Request) bool) *Route { r.laxIf = asked; return r }

// RefuseUnknown refuses query parameters and form fields that the type does not know and
// for whose name refuse is true, also where AllowUnknown or AllowUnknownIf ignores the
// rest: those without which the answer would be to another question, such as name:exact
// where name is known. It is called for names alone, and by several requests at one time.
func (r *Route) RefuseUnknown(refuse func(name string) bool) *Route { r.refuse = refuse; return r }

// Operation edits the route's operation in the OpenAPI document, once it is made:
// security, examples, extensions and any other member. The values are those of
// encoding/json, numbers are json.Number.
func (r *Route) Operation(edit func(op map[string]any)) *Route {
	r.edits = append(r.edits, edit)
	return r
}

// check lists what is wrong with what was set.
func (r *Route) check(cfg *Config) (errs []error) {
	if r.status != 0 && (r.status < 200 || r.status > 399) {
		errs = append(errs, fmt.Errorf("%d is no status of a success", r.status))
	}
	errs = append(errs, r.limits.check())
	for _, mediaType := range r.consumes {
		errs = append(errs, cfg.consumable(mediaType))
	}
	if len(r.consumes) > 0 && !r.plan.accepts.json {
		errs = append(errs, errors.New("Consumes is for a JSON body, and the request type has none"))
	}
	if r.produces != "" {
		errs = append(errs, producible(r.produces))
		if r.answer.shape == nil {
			errs = append(errs, errors.New("Produces is for what is encoded, and the response type is not"))
		}
	}
	for _, middleware := range r.use {
		if middleware == nil {
			errs = append(errs, errors.New("a middleware is nil"))
		}
	}
	return append(append(errs, r.mark.check()), r.checkAnswers()...)
}
