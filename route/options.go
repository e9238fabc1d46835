package route

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/spillway-go/spillway"
	"github.com/spillway-go/spillway/limiter"
)

// Name sets the operation's id in the OpenAPI document.
func (r *Route) Name(name string) *Route { r.name = name; return r }

// Describe sets a sentence that describes the operation.
func (r *Route) Describe(text string) *Route { r.summary = text; return r }

// Tags group operations in the OpenAPI document.
func (r *Route) Tags(tags ...string) *Route { r.tags = append(r.tags, tags...); return r }

// Status sets the status of a success. The default is 200, or 204 for Empty.
func (r *Route) Status(code int) *Route { r.status = code; return r }

// FailsWith documents errors of this operation as the problems that Config.Errors makes of them:
// their statuses, types and details. A route with FailsWith must list all its errors. Without
// FailsWith the document states that the operation may fail in other ways, too.
func (r *Route) FailsWith(errs ...error) *Route { r.failsWith = append(r.failsWith, errs...); return r }

// Use adds middleware around this route; the first added is the outermost.
func (r *Route) Use(middleware ...func(http.Handler) http.Handler) *Route {
	r.use = append(r.use, middleware...)
	return r
}

// Limits sets the route's limits from the non-zero fields of l.
func (r *Route) Limits(l Limits) *Route { r.limits = l.withDefaults(r.limits); return r }

// Limiter makes the route acquire a permit of l before the body is read. Server-Timing reports the
// time in Acquire as the wait. A refusal is answered with Retry-After. Invalid requests and
// responses that are a File or Stream give no latency sample.
func (r *Route) Limiter(l *limiter.Limiter) *Route { r.limiter = l; return r }

// Until ends the route's requests when stop ends: streams and long polls, for which a service that
// stops would wait. Their contexts are then cancelled, with a *spillway.Rejection as the cause whose
// reason is Draining. A request that has no answer yet when its handler returns that cause or
// context.Canceled, and a request that comes later, is refused like one at a limiter that drains.
//
// Work that ends by itself should not end before: give Until to endless routes only, and end stop
// before limiter.Limiter.Drain and http.Server.Shutdown, which wait for them.
func (r *Route) Until(stop context.Context) *Route { r.until = stop; return r }

// Consumes lists the media types that the JSON body may have. They replace those of
// Config.Consumes.
func (r *Route) Consumes(mediaTypes ...string) *Route { r.consumes = mediaTypes; return r }

// Produces sets the content type of a response that is encoded as JSON. It replaces
// Config.Produces.
func (r *Route) Produces(contentType string) *Route { r.produces = contentType; return r }

// Priority sets the priority of the route's requests. It replaces the priority in their context
// before any middleware of the Mux, its groups and the route runs, so that spillway.PriorityFrom
// finds the new priority. Middleware around the whole Mux, such as admission, runs earlier and does
// not: use Mux.Use. Priority costs two allocations per request.
func (r *Route) Priority(p spillway.Priority) *Route {
	r.admission.priority, r.admission.prioritized = p, true
	return r
}

// Cost sets how many slots of a limiter a request takes. Like the priority, the cost is put into
// the context, for spillway.CostFrom. Cost and Priority together allocate no more than one of them.
func (r *Route) Cost(n int) *Route { r.admission.cost, r.admission.costs = n, true; return r }

// AllowUnknown ignores query parameters, form fields and body members that the request type does not
// have. With functions, only those names are ignored for which all functions return true, such as in
// requests with Prefer: handling=lenient (RFC 7240), or apart from names that change the meaning of
// the request, such as name:exact where name is known. The functions are called for unknown names
// only, by several requests at the same time, and must not read the body. The last call counts.
func (r *Route) AllowUnknown(only ...func(r *http.Request, name string) bool) *Route {
	r.allowUnknown, r.ignores = true, only
	return r
}

// Operation edits the route's operation in the OpenAPI document after its generation: security,
// examples, extensions and any other member. The values have the types of encoding/json; numbers
// are json.Number.
func (r *Route) Operation(edit func(op map[string]any)) *Route {
	r.edits = append(r.edits, edit)
	return r
}

// check lists the errors in the route's settings.
func (r *Route) check(cfg *Config) (errs []error) {
	if r.status != 0 && (r.status < 200 || r.status > 399) {
		errs = append(errs, fmt.Errorf("%d is no status of a success", r.status))
	}
	errs = append(errs, r.limits.check())
	for _, mediaType := range r.consumes {
		errs = append(errs, cfg.consumable(mediaType))
	}
	if len(r.consumes) > 0 && !r.plan.Accepts.JSON {
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
	return append(append(errs, r.admission.check()), r.checkAnswers()...)
}
