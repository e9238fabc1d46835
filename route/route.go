// Package route turns a function from a request type to a response type into an http.Handler for
// the patterns of http.ServeMux.
//
//	api := route.NewMux(route.Config{Errors: errors})
//	err := api.Add(
//		route.New("GET", "/patients/{id}", svc.patient).Name("getPatient"),
//		route.New("POST", "/patients", svc.create).Name("createPatient").Status(http.StatusCreated),
//	)
//
// # Requests
//
// A request type is a struct. A tag names the source of each field:
//
//	ID     string                 `path:"id"`
//	Limit  route.Optional[int]    `query:"limit" validate:"min=1,max=100"`
//	Match  string                 `header:"If-Match" validate:"required"`
//	Name   string                 `json:"name" form:"name" xml:"name" validate:"required,max=80"`
//	Photo  route.Upload           `form:"photo"`
//	Note   string                 `body:"text"`
//	All    []Patient              `body:"json"`
//
// Fields with json, form or xml tags are members of the body. The tags that are present decide
// which content types the route accepts: application/json, application/x-www-form-urlencoded and
// multipart/form-data, application/xml and text/xml. A field of body:"text" is the whole text/plain
// body. A field of body:"json" is the whole JSON document. Config.Codecs adds further types, by
// functions that rewrite a body as JSON. Fields of embedded structs count as fields of the request type. A slice takes every value of a query parameter or form
// field, and every element of a list header. Strings must be UTF-8; a []byte takes text unchanged.
//
// New compiles the types at start-up: a tag that makes no sense is an error that names the field. A
// request is bound from all its sources and then validated once. One RFC 9457 answer lists its
// faults, at most 32, each with a pointer or a name. Unknown members and query parameters are
// faults too, unless [Route.AllowUnknown] permits them. A pointer or an [Optional] tells absent from zero.
// Where null is allowed, it means absent. A request without body and Content-Type is accepted if no
// body field is required. Only the value of a JSON number counts, so 1.0 is an integer. [Limits]
// bound the cost of a request before its handler runs; they have defaults. They also hold for a
// body that no field needs, which is read and dropped.
//
// # Rules
//
// The validate tag is a list, separated by commas, of
//
//	required        must be sent; null counts as not sent
//	min=N, max=N    bounds the value of a number, the length of a string in characters,
//	                or the number of elements of a slice or map; the bound of a
//	                time.Duration has a unit: min=1.5s
//	len=N           has exactly this length
//	enum=a|b|c      is one of these values
//	format=F        email (ASCII, without quotes), uuid, date, date-time (RFC 3339)
//	                or uri (RFC 3986, with a scheme)
//	pattern=RE      matches the regular expression RE, which is not anchored; the
//	                last rule of the tag, because RE may contain commas
//
// A must tag describes the pattern in words: must:"be P and six digits". RE has the syntax of
// package regexp. The OpenAPI document gives RE as an ECMA-262 pattern with the flag u. The
// document omits a pattern that ECMA-262 cannot express, such as one with the flag (?i).
//
// A time.Time is an RFC 3339 date-time, in JSON too, where encoding/json accepts more forms than it
// writes. A time whose year in UTC is outside 0 to 9999 is refused. Leap seconds are refused
// because a time.Time cannot hold them; format=date-time accepts them. A json.Number is a number.
//
// Rules apply to values that were sent, including zero values. On a slice, enum, format and pattern
// apply to each element. A request type may have a method Validate() error for rules that involve
// more than one field. The client sees the text of its error.
//
// A default tag gives the value of a query or header parameter that was not sent. The default of a
// slice has commas between its elements. A doc tag describes a field in the OpenAPI document.
//
// # Responses
//
// A response is encoded as JSON with the route's status. The JSON is that of encoding/json, except
// that a nil slice or map is written as an empty one. A nil slice or map may be null where
// encoding/json itself encodes the value: in interfaces, arrays, structs with rare tags, maps with
// other keys than strings, and types with marshaling methods. A [Response] has its own status and
// headers. [File], [Stream] and [Empty] are not encoded. A response that holds pooled memory
// returns it after the write, if it is an io.Closer. [Errors] maps errors to problems in one place, and
// Config.OnProblem sees each problem before it is written. Server-Timing tells clients how long
// decoding, waiting for the route's Limiter and handling took, unless Config.Untimed is set.
//
// # Around the routes
//
// Mux.Use and Group put middleware around routes, and around the answers of the Mux itself; see
// [Mux] for the order. A [Group] has a prefix and its own Config: another ProblemFormat, other
// media types (Consumes, Produces), limits, rules for errors. A route's Priority and Cost enter the
// context before any middleware runs, so that admission middleware finds them there. Config.Observe
// receives the outcome of each request. Answers, Operation and Info.Edit add to the OpenAPI
// document the facts that the types do not express.
//
// # What is reused
//
// Buffers, decoder state and the memory that a request is bound into are pooled and cleared. The
// handler gets copies. No other request can read or change them, or the handler's context.
//
// # Cost
//
// "go test ./route -run Alloc" tests the allocations of each kind of request. "spillway lab R"
// measures the time beside handlers written by hand, gin and chi. With encoding/json
// a GET takes a little longer than one written by hand.
//
// # Pitfalls
//
//   - A wrong tag is an error of [Mux.Add] and [Route.Handler] at start-up, not of the first
//     request. Handle this error.
//   - Clients that send more than they should are refused, until [Route.AllowUnknown] permits
//     unknown names.
//   - limiter.Limiter.Drain and http.Server.Shutdown wait for streams and long polls. Give endless
//     routes a [Route.Until], and end its context before.
//
// # When not to use it
//
// A few handlers without input need no typed routes. Proxies, and services that mostly stream, gain
// nothing either.
package route

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/spillway-go/spillway/limiter"
	"github.com/spillway-go/spillway/route/internal/shape"
	"github.com/spillway-go/spillway/route/internal/wire"
)

// Route is one operation: a method, a pattern and a typed function. Its methods change the Route
// and return it, so that calls chain. They are for start-up and not safe for concurrent use. They
// have no effect after Handler or Mux.Add was called.
type Route struct {
	method, pattern string
	name, summary   string
	tags            []string
	failsWith       []error
	status          int
	limits          Limits
	consumes        []string
	produces        string
	answers         []documentedAnswer
	edits           []func(op map[string]any)
	use             []func(http.Handler) http.Handler
	limiter         *limiter.Limiter
	until           context.Context // nil: no end but that of the request
	admission       admission
	allowUnknown    bool
	ignores         []func(r *http.Request, name string) bool // of AllowUnknown; none: all names

	plan     *shape.Plan
	answer   *answer
	compile  func(pattern string) (*shape.Plan, error) // made for Req
	handler  func(*core) http.Handler                  // made for Req and Res
	cfg      *Config                                   // of the group that the route was added to
	typeErrs []error                                   // errors that do not depend on the pattern
	err      error                                     // all errors, including those for this pattern
}

// New compiles a route. An empty method means all methods. pattern is the path (and host) of an
// http.ServeMux pattern. Handler and Mux.Add report errors in the types, so that routes can be
// listed without a check after each.
func New[Req, Res any](method, pattern string, handle func(ctx context.Context, req Req) (Res, error)) *Route {
	r := &Route{method: method, handler: func(c *core) http.Handler { return newEndpoint(c, handle) }}
	r.compile = func(pattern string) (*shape.Plan, error) {
		return shape.Compile(reflect.TypeFor[Req](), pattern, ownTypes)
	}
	var err error
	if r.answer, err = answerOf(reflect.TypeFor[Res]()); err != nil {
		r.typeErrs = append(r.typeErrs, err)
	}
	if handle == nil {
		r.typeErrs = append(r.typeErrs, errors.New("no function"))
	}
	return r.at(pattern)
}

// at returns a copy of r for pattern.
func (r *Route) at(pattern string) *Route {
	own, plan := *r, r.plan
	own.pattern, own.err = pattern, nil
	if plan == nil || pattern != r.pattern {
		var err error
		if plan, err = r.compile(pattern); err != nil {
			own.err = err
		}
	}
	own.plan = plan
	if err := errors.Join(append([]error{own.err}, r.typeErrs...)...); err != nil {
		own.err = fmt.Errorf("route %s: %w", own.Pattern(), err)
	}
	return &own
}

// Pattern is the route's pattern for http.ServeMux, such as "GET /patients/{id}".
func (r *Route) Pattern() string { return strings.TrimSpace(r.method + " " + r.pattern) }

// pathValues returns the values of a pattern's wildcards. An *http.Request implements pathValues.
type pathValues = interface{ PathValue(name string) string }

// contextHandler is the type that Handler returns for a route without middleware of its own. A
// route with middleware has no ServeContext, because middleware sees only the request. Package
// routegin has the same type.
type contextHandler interface {
	http.Handler

	// ServeContext is ServeHTTP of r with ctx, without the copy of r that r.WithContext makes. ctx
	// is derived from the context of r, and ends with the context of r. values replace
	// Config.PathValue, unless values are nil.
	ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values pathValues)
}

// Handler returns the route with its current settings and its middleware. It works with any mux
// that sets the request's path values, such as a plain http.ServeMux. For another mux,
// Config.PathValue looks up the path values.
func (r *Route) Handler(cfg Config) (http.Handler, error) {
	h, err := r.build(cfg)
	if err = errors.Join(cfg.check(), err); err != nil {
		return nil, err
	}
	return r.admission.wrap(h), nil
}

// build returns the route for a Config that has been checked. The result does not set the route's
// admission, because the admission is set outside the middleware of the Mux and its groups as well.
func (r *Route) build(cfg Config) (http.Handler, error) {
	if r.err != nil {
		return nil, r.err
	}
	c := &core{
		cfg: cfg, plan: r.plan, answer: r.answer, limits: r.limits.withDefaults(cfg.Limits).withDefaults(defaults),
		json: r.jsonTypes(&cfg), content: jsonContent, pathValue: cfg.PathValue,
		pattern: r.Pattern(), status: r.success(), limiter: r.limiter, until: r.until, allowUnknown: r.allowUnknown,
	}
	if !cfg.Untimed {
		c.timings = &timings{start: time.Now(), waits: r.limiter != nil}
	}
	if produces := cmp.Or(r.produces, cfg.Produces); produces != "" {
		c.content = []string{produces}
	}
	if c.limits.File == 0 {
		c.limits.File = c.limits.Body
	}
	if c.limits.memory == 0 {
		c.limits.memory = 32 * min(c.limits.Body, math.MaxInt64/32)
	}
	l := &c.limits
	c.binder = wire.Binder{
		Plan: c.plan, Ignores: r.ignores,
		Limits: wire.Limits{File: l.File, Memory: l.memory, Depth: l.Depth, Fields: l.Fields, Parts: l.Parts},
	}
	c.unsupported = unsupported(c.plan, c.json, cfg.codecTypes())
	if err := errors.Join(r.check(&cfg)...); err != nil {
		return nil, fmt.Errorf("route %s: %w", r.Pattern(), err)
	}
	h := r.handler(c)
	for _, middleware := range slices.Backward(r.use) {
		h = middleware(h)
	}
	return h, nil
}

// jsonTypes are the media types of a JSON body.
func (r *Route) jsonTypes(cfg *Config) []string {
	switch {
	case len(r.consumes) > 0:
		return r.consumes
	case len(cfg.Consumes) > 0:
		return cfg.Consumes
	}
	return jsonContent
}

// success is the status of a successful response.
func (r *Route) success() int { return cmp.Or(r.status, r.answer.status) }
