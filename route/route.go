// Package route turns a function from a request type to a response type into an
// http.Handler for the patterns of http.ServeMux.
//
//	api := route.NewMux(route.Config{Errors: errors})
//	err := api.Add(
//		route.New("GET", "/patients/{id}", svc.patient).Name("getPatient"),
//		route.New("POST", "/patients", svc.create).Name("createPatient").Status(http.StatusCreated),
//	)
//
// # Requests
//
// A request type is a struct. A tag says where each field comes from:
//
//	ID     string                 `path:"id"`
//	Limit  route.Optional[int]    `query:"limit" validate:"min=1,max=100"`
//	Match  string                 `header:"If-Match" validate:"required"`
//	Name   string                 `json:"name" form:"name" xml:"name" validate:"required,max=80"`
//	Photo  route.Upload           `form:"photo"`
//	Note   string                 `body:"text"`
//	All    []Patient              `body:"json"`
//
// Fields with json, form or xml tags are members of the body, and the tags
// present decide which content types the route accepts: application/json,
// application/x-www-form-urlencoded and multipart/form-data, application/xml and
// text/xml. A field of body:"text" is the whole text/plain body and one of
// body:"json" the whole JSON document. A Codec adds further types; Transcoded
// makes one of a function that rewrites a body as JSON. Embedded structs lend
// their fields. A slice takes every value of a query parameter or form field, and
// every element of a header that is a list. Strings are UTF-8; a []byte takes
// text as it is.
//
// The types are compiled once, by New: a tag that makes no sense is an error at
// start that names the field. A request is bound from all its sources, then
// validated once, and everything wrong with it is listed in one RFC 9457 answer
// with a pointer to each fault. What was not asked for is a fault too: unknown
// members and query parameters are refused unless AllowUnknown says otherwise.
// Absent is told from zero by a pointer or an Optional; null is as good as
// absent where it may be at all, and so is no body at all, without a Content-Type,
// where nothing in it is required. Of a JSON number only the value counts, so that
// 1.0 is an integer. Limits bound what a request may cost before its
// handler runs; they have defaults. They hold for a body that no field asks for,
// too, which is read and dropped.
//
// # Rules
//
// The validate tag is a list, separated by commas, of
//
//	required        must be sent; null and, from a Codec, zero are not enough
//	min=N, max=N    of a number its value, of a string its length in characters,
//	                of a slice or map its number of elements; of a time.Duration
//	                its value, written with a unit: min=1.5s
//	len=N           exactly that length
//	enum=a|b|c      one of these
//	format=F        email (ASCII, without quotes), uuid, date, date-time (RFC 3339)
//	                or uri (RFC 3986, with a scheme)
//	pattern=RE      matches the regular expression RE, anchor it yourself; last,
//	                because it may contain commas
//
// A must tag says in words what pattern asks for: must:"be P and six digits". RE is one
// of package regexp. The OpenAPI document has it as ECMA-262 writes it, with the flag u,
// or not at all where that has no such pattern: one with flags such as (?i).
//
// A time.Time is a date-time of RFC 3339, in JSON too, where encoding/json takes more
// than it writes. One whose year in UTC is none of 0 to 9999 is refused, and so are leap
// seconds, which a time.Time cannot hold; format=date-time has them. A json.Number is a
// number.
//
// Rules apply to values that were sent, to a zero one too. On a slice, enum,
// format and pattern apply to each element. A request type may have a method
// Validate() error for what needs more than one field; the text of its error is
// shown to the client.
//
// A default tag stands in for a query or header parameter that was not sent;
// that of a slice has commas between its elements. A doc tag describes a field
// in the OpenAPI document.
//
// # Responses
//
// A response is encoded as JSON with the route's status, as encoding/json does,
// but a nil slice or map is an empty one; only what has a rare tag is left to
// that package, and may be null. It may choose its own
// status (Statuser) and headers (HeaderSetter, or a Response), and File, Stream
// and Empty are not encoded at all. One that is lent memory gives it back when it
// is written (Releaser). Errors become problems by the rules of Errors, in one
// place, and Config.OnProblem sees each before it is written. Server-Timing tells
// clients how long decoding, waiting for the route's Limiter and handling took,
// unless the route is Untimed.
//
// # Around the routes
//
// Mux.Use and Group put middleware around routes, and around what the Mux answers
// itself; see Mux for the order. A Group has a prefix and a Config of its own: another
// ProblemFormat, other media types (Consumes, Produces), limits, rules for errors.
// A route's Priority and Cost are in the context before any middleware runs, so that
// admission finds them there. Config.Observe is told the outcome of each request. What
// the types do not say, the OpenAPI document is told by Answers, Operation and Info.Edit.
//
// # What is reused
//
// Buffers, decoder state and the memory that a request is bound into are pooled
// and cleared. The handler gets copies: nothing it keeps, nor its context, is
// seen by or changed by another request.
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
)

// Route is one operation: a method, a pattern and a typed function. Its methods
// set and return it, so that calls chain; they are for start-up, not safe for
// concurrent use, and change nothing once Handler or Mux.Add was called.
type Route struct {
	method, pattern string
	name, summary   string
	tags            []string
	fails           []int
	failsWith       []error
	status          int
	limits          Limits
	consumes        []string
	produces        string
	answers         []further
	edits           []func(op map[string]any)
	use             []func(http.Handler) http.Handler
	limiter         *limiter.Limiter
	mark            mark
	untimed, lax    bool
	laxIf           func(*http.Request) bool
	refuse          func(name string) bool

	plan    *plan
	answer  *answer
	compile func(pattern string) (*plan, error) // knows Req
	handler func(*core) http.Handler            // knows Req and Res
	cfg     *Config                             // of the group it was added to
	wrong   []error                             // with the types, whatever the pattern
	err     error                               // all that is wrong with the types
}

// New compiles a route. Method may be empty for all methods; pattern is the
// path (and host) of an http.ServeMux pattern. What is wrong with the types is
// reported by Handler and by Mux.Add, so that routes can be listed without a
// check after each.
func New[Req, Res any](method, pattern string, handle func(ctx context.Context, req Req) (Res, error)) *Route {
	r := &Route{method: method, handler: func(c *core) http.Handler { return newEndpoint(c, handle) }}
	r.compile = func(pattern string) (*plan, error) { return compile(reflect.TypeFor[Req](), pattern) }
	var err error
	if r.answer, err = answerOf(reflect.TypeFor[Res]()); err != nil {
		r.wrong = append(r.wrong, err)
	}
	if handle == nil {
		r.wrong = append(r.wrong, errors.New("no function"))
	}
	return r.at(pattern)
}

// at returns a copy of r for that pattern.
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
	if err := errors.Join(append([]error{own.err}, r.wrong...)...); err != nil {
		own.err = fmt.Errorf("route %s: %w", own.Pattern(), err)
	}
	return &own
}

// Pattern is the route's pattern for http.ServeMux, such as "GET /patients/{id}".
func (r *Route) Pattern() string { return strings.TrimSpace(r.method + " " + r.pattern) }

// PathValues is what the wildcards of a pattern matched. An *http.Request is one.
type PathValues interface{ PathValue(name string) string }

// ContextHandler is what Handler returns for a route without middleware of its
// own, which needs all it is told in the request.
type ContextHandler interface {
	http.Handler

	// ServeContext is ServeHTTP of r with ctx, without the copy of r that
	// r.WithContext makes. ctx is derived from the context of r, and ends with
	// it; values stand in for Config.PathValue, unless they are nil.
	ServeContext(ctx context.Context, w http.ResponseWriter, r *http.Request, values PathValues)
}

// Handler returns the route as it stands, middleware included, for any mux that
// sets the request's path values, such as a plain http.ServeMux, or whose own
// way to them is Config.PathValue. A router with a context of its own may do
// better with a ContextHandler.
func (r *Route) Handler(cfg Config) (http.Handler, error) {
	h, err := r.build(cfg)
	if err = errors.Join(cfg.check(), err); err != nil {
		return nil, err
	}
	return r.mark.around(h), nil
}

// build returns the route for a Config that has been checked, without its mark, which
// is set outside the middleware of others, too.
func (r *Route) build(cfg Config) (http.Handler, error) {
	if r.err != nil {
		return nil, r.err
	}
	c := &core{
		cfg: cfg, plan: r.plan, answer: r.answer, limits: r.limits.or(cfg.Limits).or(defaults),
		json: r.jsonTypes(&cfg), content: jsonContent, pathValue: cfg.PathValue,
		pattern: r.Pattern(), status: r.success(), limiter: r.limiter, lax: r.lax, laxIf: r.laxIf, refuse: r.refuse,
	}
	if !r.untimed && !cfg.Untimed {
		c.timings = &timings{start: time.Now(), waits: r.limiter != nil}
	}
	if produces := cmp.Or(r.produces, cfg.Produces); produces != "" {
		c.content = []string{produces}
	}
	if c.pathValue == nil {
		c.pathValue = (*http.Request).PathValue
	}
	if c.limits.File == 0 {
		c.limits.File = c.limits.Body
	}
	if c.limits.Memory == 0 {
		c.limits.Memory = 32 * min(c.limits.Body, math.MaxInt64/32)
	}
	c.unsupported = unsupported(c.plan, c.json, cfg.Codecs)
	c.holds = c.plan.holds || c.plan.accepts.json && slices.ContainsFunc(cfg.Codecs, func(codec Codec) bool {
		_, ours := codec.(transcoder)
		return !ours
	})
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

// success is the status of a success.
func (r *Route) success() int { return cmp.Or(r.status, r.answer.status) }
